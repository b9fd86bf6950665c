"""Numbers of next hops by their names."""

from collections.abc import Sequence

__all__ = ["NextHops"]

_MOST_SAID = 8


class NextHops:
    """Next hops, known beforehand or numbered as they come.

    Parameters
    ----------
    known : sequence of str, optional
        Names of those that exist; None: every name does.
    """

    def __init__(self, known: Sequence[str] | None) -> None:
        self._is_open = known is None
        self._numbers: dict[str, int] = {}
        for name in known or ():
            self._numbers.setdefault(name, len(self._numbers))

    def number(self, name: str) -> int | None:
        """Return the number of a next hop; None: it does not exist."""
        if self._is_open:
            return self._numbers.setdefault(name, len(self._numbers))
        return self._numbers.get(name)

    def names(self) -> tuple[str, ...]:
        """Return the names in the order of their numbers."""
        return tuple(self._numbers)

    def words(self) -> str:
        """Say which there are."""
        names = list(self._numbers)
        return ", ".join(names) if len(names) <= _MOST_SAID else f"{len(names)}: {names[0]} to {names[-1]}"

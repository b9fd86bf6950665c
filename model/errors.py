"""The errors that the command line shows as a single line."""

from typing import Any, NamedTuple


class Mistake(NamedTuple):
    """One thing that is wrong.

    Attributes
    ----------
    file : str
        Where it stands; empty: not in a file.
    line : int or None
        From 1; None: not known, or a value that was given in Python.
    key : str
        Dotted key of the configuration; empty: none is to blame.
    reason : str
        What is wrong, with limit and value.
    """

    file: str
    line: int | None
    key: str
    reason: str


class UserError(Exception):
    """A user's mistake or a missing tool: the message is one clear line; exit status 2."""

    exit_status = 2
    _mistakes: tuple[Mistake, ...] = ()
    """Set where an error leaves `hopforge.api`."""

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """What the message says, line by line, with file, line and key where they are known."""
        return self._mistakes or tuple(Mistake("", None, "", reason) for reason in str(self).split("\n"))


class DivergedError(UserError):
    """Training that gave no numbers: names agent and step.

    Attributes
    ----------
    result : hopforge.Result or None
        What the run found until then (`hopforge.simulate`, `hopforge.series`).
    """

    result: Any = None


def error_words(error: BaseException) -> str:
    """Return what an error says; one of the user's own may fail in saying it."""
    try:
        return str(error)
    except Exception:  # whatever a `__str__` of the user's raises
        return ""

"""Lines of the cache, and which of them are live."""

from dataclasses import dataclass

from hopforge.model.lookup.golden.replacement import Replacement
from hopforge.model.lookup.params import LookupParams


@dataclass
class _Line:
    valid: bool = False
    tag: int = 0
    output: int = 0
    epoch: int = 0


class Cache:
    """The lines; a key may lie in one row of each way.

    Parameters
    ----------
    params : LookupParams
        The engine.

    Attributes
    ----------
    epoch : int
        The present one; lines of others are not live.
    """

    def __init__(self, params: LookupParams) -> None:
        self.epoch = 0
        self._lines = [[_Line() for _ in range(params.ways)] for _ in range(params.sets)]
        self._replacement = Replacement(params)

    def lookup(self, rows: tuple[int, ...], key: int) -> int | None:
        """Return the output of the live line with `key`, which is touched; None if there is none."""
        way = self._find(rows, key)
        if way is None:
            return None
        self._replacement.touch(rows[way], way)
        return self._lines[rows[way]][way].output

    def fill(self, rows: tuple[int, ...], key: int, output: int) -> bool:
        """Write a line for `key`, which no live line has; return whether a live line was evicted."""
        dead = [way for way, row in enumerate(rows) if not self._live(self._lines[row][way])]
        # with skewed association the policy is random, which does not look at the row
        way = dead[0] if dead else self._replacement.victim(rows[0])
        self._lines[rows[way]][way] = _Line(True, key, output, self.epoch)
        self._replacement.filled(rows[way], way, evicted=not dead)
        return not dead

    def invalidate(self, rows: tuple[int, ...], key: int) -> None:
        """Remove the live line with `key`."""
        way = self._find(rows, key)
        if way is not None:
            self._lines[rows[way]][way].valid = False

    def scrub(self, row: int) -> None:
        """Remove the lines of a row that are not live."""
        for line in self._lines[row]:
            if not self._live(line):
                line.valid = False

    def _live(self, line: _Line) -> bool:
        return line.valid and line.epoch == self.epoch

    def _find(self, rows: tuple[int, ...], key: int) -> int | None:
        """Return the way of the live line with `key`."""
        for way, row in enumerate(rows):
            line = self._lines[row][way]
            if self._live(line) and line.tag == key:
                return way
        return None

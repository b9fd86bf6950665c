"""Lines of the cache, and which of them are live."""

from typing import NamedTuple

from hopforge.model.lookup.golden.line import Line, LineWords
from hopforge.model.lookup.golden.replacement import Replacement
from hopforge.model.lookup.params import LookupParams

__all__ = ["Cache", "ReadLines"]


class ReadLines(NamedTuple):
    """Lines that an operation has read, one of each way, and the rows that they lie in."""

    rows: tuple[int, ...]
    lines: tuple[Line, ...]

    @property
    def wrong(self) -> bool:
        """Whether a line is wrong."""
        return any(line.wrong for line in self.lines)

    @property
    def repaired(self) -> bool:
        """Whether a line has been repaired."""
        return any(line.repaired for line in self.lines)


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
        self.words = LineWords(params)
        self._lines = [[Line() for _ in range(params.ways)] for _ in range(params.sets)]
        self._replacement = Replacement(params)
        self._repairs: list[tuple[int, int, Line]] = []

    def write_back(self) -> None:
        """Write the lines that a LOOKUP of this cycle has repaired: what B reads in this cycle does not see it."""
        for row, way, line in self._repairs:
            self._lines[row][way] = line
        self._repairs.clear()

    def read(self, rows: tuple[int, ...]) -> ReadLines:
        """Return the lines in these rows as they are."""
        return ReadLines(rows, tuple([self._lines[row][way] for way, row in enumerate(rows)]))

    def lookup(self, found: ReadLines, key: int) -> int | None:
        """Return the output of the live line with `key`, which is touched; None if there is none."""
        for way, line in enumerate(found.lines):
            if line.wrong:
                self._remove(found, way)
            elif line.repaired:
                self._repairs.append((found.rows[way], way, line._replace(repaired=False, word=None)))
        return self.touch(found, key)

    def touch(self, found: ReadLines, key: int) -> int | None:
        """Do what `lookup` does for a FILL, which leaves changed lines as they are."""
        way = self._find(found, key)
        if way is None:
            return None
        self._replacement.touch(found.rows[way], way)
        return found.lines[way].output

    def fill(self, found: ReadLines, key: int, output: int) -> bool:
        """Write a line for `key`, which no live line has; return whether a live line was evicted."""
        rows = found.rows
        dead = [way for way, line in enumerate(found.lines) if not self._live(line)]
        # with skewed association the policy is random, which does not look at the row
        way = dead[0] if dead else self._replacement.victim(rows[0])
        self._lines[rows[way]][way] = Line(True, key, output, self.epoch)
        self._replacement.filled(rows[way], way, evicted=not dead)
        return not dead

    def invalidate(self, found: ReadLines, key: int) -> None:
        """Remove the live line with `key`, and wrong ones."""
        way = self._find(found, key)
        if way is not None:
            self._remove(found, way)
        self._remove_wrong(found)

    def scrub(self, found: ReadLines) -> None:
        """Remove the lines of a row that are not live."""
        for way, line in enumerate(found.lines):
            if line.valid and not self._live(line):
                self._remove(found, way)
        self._remove_wrong(found)

    def flip(self, row: int, way: int, bit: int) -> None:
        """Invert a stored bit."""
        self._lines[row][way] = self.words.flipped(self._lines[row][way], bit)

    def at(self, row: int, way: int) -> Line:
        """Return a line as it is."""
        return self._lines[row][way]

    def _remove_wrong(self, found: ReadLines) -> None:
        for way, line in enumerate(found.lines):
            if line.wrong:
                self._remove(found, way)

    def _remove(self, found: ReadLines, way: int) -> None:
        line = found.lines[way]
        self._lines[found.rows[way]][way] = Line(False, line.tag, line.output, line.epoch)

    def _live(self, line: Line) -> bool:
        return line.valid and not line.wrong and line.epoch == self.epoch

    def _find(self, found: ReadLines, key: int) -> int | None:
        """Return the way of the live line with `key`."""
        for way, line in enumerate(found.lines):
            if self._live(line) and line.tag == key:
                return way
        return None

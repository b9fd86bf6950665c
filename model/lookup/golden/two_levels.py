"""Two levels of caches of a switch, readably, from docs/definitions/second-level.md."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

__all__ = ["LevelCounts", "LevelShape", "run_levels"]


class LevelShape(NamedTuple):
    """An LRU cache: its lines, ways, and the number that chooses the set (modulo the sets)."""

    entries: int
    ways: int
    number: Callable[[int], int]


class LevelCounts(NamedTuple):
    """Lookups by where they were answered, and lines that left a first level with their key."""

    first_hits: int
    second_hits: int
    tcam: int
    back: int


class _Cache:
    def __init__(self, shape: LevelShape) -> None:
        self._shape = shape
        self._rows: list[list[int]] = [[] for _ in range(shape.entries // shape.ways)]  # the oldest first

    def _row(self, key: int) -> list[int]:
        return self._rows[self._shape.number(key) % len(self._rows)]

    def use(self, key: int) -> bool:
        """Look up; a hit refreshes."""
        found = self.drop(key)
        if found:
            self._row(key).append(key)
        return found

    def drop(self, key: int) -> bool:
        row = self._row(key)
        if key not in row:
            return False
        row.remove(key)
        return True

    def fill(self, key: int) -> int | None:
        """Write or refresh; return the key that is given up."""
        if self.use(key):
            return None
        row = self._row(key)
        gone = row.pop(0) if len(row) == self._shape.ways else None
        row.append(key)
        return gone


def run_levels(
    lookups: Iterable[tuple[int, int]], ports: int, first: LevelShape, second: LevelShape, content: str
) -> LevelCounts:
    """Look up (port, key) after (port, key); a cache for each port, one second level behind them all.

    Parameters
    ----------
    lookups : iterable of (int, int)
        Ports and keys.
    ports : int
        How many.
    first, second : LevelShape
        The levels.
    content : str
        ``nine``, ``inclusive`` or ``exclusive``.
    """
    caches, behind = [_Cache(first) for _ in range(ports)], _Cache(second)
    hits = [0, 0]
    tcam = back = 0
    for port, key in lookups:
        if caches[port].use(key):
            hits[0] += 1
            continue
        found = behind.use(key)
        hits[1] += found
        tcam += not found
        if content == "exclusive":
            behind.drop(key)
            victim = caches[port].fill(key)
            if victim is not None:
                behind.fill(victim)
            continue
        if not found:
            gone = behind.fill(key)
            if content == "inclusive" and gone is not None:
                back += sum(cache.drop(gone) for cache in caches)
        caches[port].fill(key)
    return LevelCounts(hits[0], hits[1], tcam, back)

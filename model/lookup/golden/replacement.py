"""Victims of the replacement policies."""

from hopforge.model.lookup.params import LookupParams


class Replacement:
    """Victims of one policy.

    Parameters
    ----------
    params : LookupParams
        The engine.
    """

    def __init__(self, params: LookupParams) -> None:
        self._policy = params.policy
        self._ways = params.ways
        self._order = [list(range(params.ways)) for _ in range(params.sets)]  # LRU: the oldest first
        self._nodes = [[0] * params.ways for _ in range(params.sets)]  # PLRU: node n has children 2n and 2n + 1
        self._pointer = [0] * params.sets  # FIFO
        self._lfsr = params.random_seed

    def touch(self, row: int, way: int) -> None:
        """Note that a line was used."""
        if self._policy == "lru":
            self._order[row].remove(way)
            self._order[row].append(way)
        elif self._policy == "plru":
            node = 1
            for level in reversed(range(self._ways.bit_length() - 1)):
                side = way >> level & 1
                self._nodes[row][node] = 1 - side
                node = 2 * node + side

    def victim(self, row: int) -> int:
        """Return the way that policy gives up; all ways of the row are live."""
        if self._policy == "lru":
            return self._order[row][0]
        if self._policy == "plru":
            node = 1
            while node < self._ways:
                node = 2 * node + self._nodes[row][node]
            return node - self._ways
        if self._policy == "fifo":
            return self._pointer[row]
        return self._lfsr * self._ways >> 16

    def filled(self, row: int, way: int, *, evicted: bool) -> None:
        """Note that a line was written, in place of a live one if `evicted`."""
        if self._policy == "fifo" and self._pointer[row] == way:
            self._pointer[row] = (way + 1) % self._ways
        elif self._policy == "random" and evicted:
            taps = (self._lfsr >> 15) ^ (self._lfsr >> 14) ^ (self._lfsr >> 12) ^ (self._lfsr >> 3)
            self._lfsr = (self._lfsr << 1 & 0xFFFF) | taps & 1
        self.touch(row, way)

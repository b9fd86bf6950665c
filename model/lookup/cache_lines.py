"""The lines of a routing cache inside kernels: where a key may lie, whether it does, which line it gets.

Many caches of a kind lie one after the other in the same arrays; `begin` is the first line of one of them.
"""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.array_record import ArrayRecord
from hopforge.model.kernel.compile import inlined, inner
from hopforge.model.lookup.replacement import (
    LRU,
    PLRU,
    RANDOM,
    SRRIP,
    choose_victim,
    next_random,
    note_fill,
    note_use,
    random_way,
)

__all__ = ["EMPTY", "CacheState", "CacheTables", "claim_line", "find_line", "hash_row", "line_of", "touch_line"]

EMPTY = -1
"""Tag of a line that is not live."""

_WORD_MASK = -1


class CacheTables(ArrayRecord):
    """What a cache is, for kernels.

    Attributes
    ----------
    rows : ndarray, uint64[way or 1, byte, 256]
        Byte tables of the row number of each way; one for all ways without skewing.
    payload_mask : int
        Bits of a key that are hashed.
    ways, policy : int
        Ways, and index in `REPLAYED_POLICIES`.
    """

    rows: NDArray[np.uint64]
    payload_mask: int
    ways: int
    policy: int


class CacheState(ArrayRecord):
    """What caches hold, for kernels; line of (row, way) = begin + row·ways + way.

    Attributes
    ----------
    tags, outputs : ndarray, int64[line]
        Key (-1: not live) and output.
    order : ndarray, int64[line]
        Replacement state (`model.lookup.replacement`); fifo with skewing: time of the fill.
    shift_register : ndarray, int64[cache]
        random: the LFSR.
    """

    tags: NDArray[np.int64]
    outputs: NDArray[np.int64]
    order: NDArray[np.int64]
    shift_register: NDArray[np.int64]

    def repeated(self, caches: int) -> Self:
        """Return a copy of it for each of many caches."""
        return type(self)(**{name: np.tile(array, caches) for name, array in self.fields().items()})


@inlined
def hash_row(rows, which, word):  # type: ignore[no-untyped-def]
    """Return the row of `word` by the byte tables of index function `which`."""
    result = rows[which, 0, word & 255]
    for byte in range(1, rows.shape[1]):
        result ^= rows[which, byte, (word >> (8 * byte)) & 255]
    return np.int64(result)


@inlined
def find_line(rows, skewed, tags, begin, ways, key, word):  # type: ignore[no-untyped-def]
    """Return the line that holds `key`, -1 if none does."""
    found = -1
    if skewed:
        for way in range(ways):
            line = begin + hash_row(rows, way, word) * ways + way
            found = line if tags[line] == key else found
    else:
        first = begin + hash_row(rows, 0, word) * ways
        # no early exit: which way hits is as good as random, and a wrong guess costs more than the compares
        for line in range(first, first + ways):
            found = line if tags[line] == key else found
    return found


@inlined
def touch_line(policy, ways, order, line, now):  # type: ignore[no-untyped-def]
    """Note that a line was used."""
    if policy == LRU:
        note_use(LRU, ways, order, line, 1, 0, now)  # a time belongs to its line alone, also with skewing
    elif policy == PLRU:
        way = line & (ways - 1)  # the ways are a power of two; a division would take longer than the rest
        note_use(PLRU, ways, order, line - way, 1, way, now)
    elif policy == SRRIP:
        note_use(SRRIP, ways, order, line, 1, 0, now)  # so does a prediction


@inlined
def line_of(rows, begin, ways, word, way):  # type: ignore[no-untyped-def]
    """Return the line of `way` in which the key with payload `word` may lie."""
    return begin + hash_row(rows, way if len(rows) > 1 else 0, word) * ways + way


@inner
def _victim(rows, ways, policy, tags, begin, order, register, word, now):  # type: ignore[no-untyped-def]
    """Return the line to be filled: the lowest way that is not live, else the policy's choice."""
    for way in range(ways):
        line = line_of(rows, begin, ways, word, way)
        if tags[line] == EMPTY:
            return line
    if len(rows) == 1:
        first = line_of(rows, begin, ways, word, 0)
        return first + choose_victim(policy, ways, order, first, 1, now, _WORD_MASK, register)
    if policy == RANDOM:
        return line_of(rows, begin, ways, word, random_way(ways, register))
    oldest = line_of(rows, begin, ways, word, 0)
    for way in range(1, ways):
        line = line_of(rows, begin, ways, word, way)
        if order[line] < order[oldest]:
            oldest = line
    return oldest


@inner
def claim_line(c, s, cache, begin, key, now):  # type: ignore[no-untyped-def]
    """Return the line that a key gets in a cache, and do to the replacement state what a fill does."""
    word = key & c.payload_mask
    line = _victim(c.rows, c.ways, c.policy, s.tags, begin, s.order, s.shift_register[cache], word, now)
    if c.policy == RANDOM:
        if s.tags[line] != EMPTY:
            s.shift_register[cache] = next_random(s.shift_register[cache])
    elif len(c.rows) > 1:
        s.order[line] = now
    else:
        way = line % c.ways
        note_fill(c.policy, c.ways, s.order, line - way, 1, way, now)
    return line

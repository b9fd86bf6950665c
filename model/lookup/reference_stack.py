"""Why a lookup misses: what a fully associative LRU cache of the same size would have done, for many caches at once.

A miss is *compulsory* if the cache has never had the key, a *capacity* miss if the fully associative cache misses too,
and else a *conflict* miss (Hill, "Aspects of cache memory and instruction buffer performance", 1987). Every distinct
(cache, key) gets a number, its *slot*, once; a lookup then costs a few steps in a linked list.
"""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.array_record import ArrayRecord
from hopforge.model.kernel.compile import inlined, kernel

HIT, COMPULSORY, CAPACITY = 0, 1, 2
_EMPTY = -1


class StackArrays(ArrayRecord):
    """State of the fully associative caches, for kernels.

    Attributes
    ----------
    head, tail, held : ndarray, int64[cache]
        Slots used last and longest ago (-1: none), and how many are held.
    newer, older : ndarray, int32[slot]
        Neighbours in the list of the slot's cache; -1: none.
    status : ndarray, uint8[slot]
        0 never looked up, 1 looked up and dropped, 2 held.
    """

    head: NDArray[np.int64]
    tail: NDArray[np.int64]
    held: NDArray[np.int64]
    newer: NDArray[np.int32]
    older: NDArray[np.int32]
    status: NDArray[np.uint8]


class ReferenceStacks:
    """Fully associative LRU caches of `entries` keys.

    Parameters
    ----------
    caches : int
        How many.
    entries : int
        Keys that each can hold; 0: every lookup misses.
    """

    def __init__(self, caches: int, entries: int) -> None:
        self.entries = entries
        self.slots = 0
        self._keys = np.empty(1024, np.int64)
        self._caches = np.full(1024, _EMPTY, np.int32)
        self._numbers = np.empty(1024, np.int32)
        self.arrays = StackArrays(
            head=np.full(caches, _EMPTY, np.int64), tail=np.full(caches, _EMPTY, np.int64),
            held=np.zeros(caches, np.int64), newer=np.empty(0, np.int32), older=np.empty(0, np.int32),
            status=np.empty(0, np.uint8),
        )  # fmt: skip

    def slots_of(self, caches: NDArray[np.int32], keys: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the slot of each (cache, key), new ones included."""
        result = np.empty(len(keys), np.int32)
        done = 0
        while True:
            done, self.slots = _number(self._caches, self._keys, self._numbers, self.slots, caches, keys, result, done)
            if done == len(keys):
                break
            self._grow()
        self._make_room()
        return result

    def slot_keys(self) -> NDArray[np.int64]:
        """Return the key of each slot, int64[slot]."""
        used = self._caches != _EMPTY
        keys = np.empty(self.slots, np.int64)
        keys[self._numbers[used]] = self._keys[used]
        return keys

    def _grow(self) -> None:
        used = self._caches != _EMPTY
        old = self._caches[used], self._keys[used], self._numbers[used]
        size = 2 * len(self._caches)
        self._keys, self._numbers = np.empty(size, np.int64), np.empty(size, np.int32)
        self._caches = np.full(size, _EMPTY, np.int32)
        _rehash(self._caches, self._keys, self._numbers, *old)

    def _make_room(self) -> None:
        have = len(self.arrays.status)
        if self.slots <= have:
            return
        more = max(self.slots, 2 * have) - have
        none = np.full(more, _EMPTY, np.int32)
        a = self.arrays
        self.arrays = a.with_fields(
            newer=np.concatenate([a.newer, none]), older=np.concatenate([a.older, none]),
            status=np.concatenate([a.status, np.zeros(more, np.uint8)]),
        )  # fmt: skip


@inlined
def _place(caches, keys, cache, key):  # type: ignore[no-untyped-def]
    """Index of (cache, key) in the open-addressed table, or of the free place where it belongs."""
    mask = len(caches) - 1
    mixed = (np.uint64(key) + np.uint64(cache) * np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
    at = np.int64((mixed ^ (mixed >> np.uint64(31))) & np.uint64(mask))
    while caches[at] != _EMPTY and (caches[at] != cache or keys[at] != key):
        at = (at + 1) & mask
    return at


@kernel
def _number(table_caches, table_keys, numbers, slots, caches, keys, result, start):  # type: ignore[no-untyped-def]
    for index in range(start, len(keys)):
        at = _place(table_caches, table_keys, caches[index], keys[index])
        if table_caches[at] == _EMPTY:
            if 2 * (slots + 1) > len(table_caches):
                return index, slots
            table_caches[at], table_keys[at], numbers[at] = caches[index], keys[index], slots
            slots += 1
        result[index] = numbers[at]
    return len(keys), slots


@kernel
def _rehash(table_caches, table_keys, table_numbers, caches, keys, numbers):  # type: ignore[no-untyped-def]
    for index in range(len(keys)):
        at = _place(table_caches, table_keys, caches[index], keys[index])
        table_caches[at], table_keys[at], table_numbers[at] = caches[index], keys[index], numbers[index]


@inlined
def reference_lookup(  # type: ignore[no-untyped-def]
    head, tail, held, newer, older, status, entries, cache, slot
):
    """Look a slot up in its fully associative cache and make it the newest; for use in kernels.

    Takes the fields of `StackArrays` one by one.

    Returns
    -------
    int
        `HIT`, `COMPULSORY` or `CAPACITY`.
    """
    before = status[slot]
    if before == 2:
        if head[cache] == slot:
            return HIT
        above, below = newer[slot], older[slot]
        older[above] = below
        if below >= 0:
            newer[below] = above
        else:
            tail[cache] = above
    elif held[cache] < entries:
        held[cache] += 1
    else:
        if entries == 0:
            status[slot] = 1
            return CAPACITY if before == 1 else COMPULSORY
        last = tail[cache]
        status[last] = 1
        following = newer[last]
        tail[cache] = following
        if following >= 0:
            older[following] = _EMPTY
        else:
            head[cache] = _EMPTY
    old_head = head[cache]
    older[slot] = old_head
    newer[slot] = _EMPTY
    if old_head >= 0:
        newer[old_head] = slot
    else:
        tail[cache] = slot
    head[cache] = slot
    status[slot] = 2
    if before == 2:
        return HIT
    return CAPACITY if before == 1 else COMPULSORY

"""Why a lookup misses: Hill's three causes, from what a fully associative LRU cache of the same size would do."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.kernel.compile import kernel

__all__ = ["CAUSES", "full_lru", "miss_causes"]

CAUSES = ("hit", "compulsory", "capacity", "conflict")
"""Meaning of the values that `miss_causes` returns."""


@kernel
def _number_keys(keys, numbers):  # type: ignore[no-untyped-def]
    """Give keys numbers by first appearance (open addressing, the table doubles when half full); return how many."""
    size = 1024
    slots = np.full(size, -1, np.int64)
    names = np.empty(size, np.int64)
    count = 0
    for index in range(len(keys)):
        key = keys[index]
        slot = ((key * -7046029254386353131) >> 20) & (size - 1)
        while slots[slot] >= 0 and names[slot] != key:
            slot = (slot + 1) & (size - 1)
        if slots[slot] < 0:
            slots[slot] = count
            names[slot] = key
            count += 1
        numbers[index] = slots[slot]
        if 2 * count > size:
            old_slots, old_names = slots, names
            size *= 2
            slots = np.full(size, -1, np.int64)
            names = np.empty(size, np.int64)
            for old in range(len(old_slots)):
                if old_slots[old] >= 0:
                    slot = ((old_names[old] * -7046029254386353131) >> 20) & (size - 1)
                    while slots[slot] >= 0:
                        slot = (slot + 1) & (size - 1)
                    slots[slot] = old_slots[old]
                    names[slot] = old_names[old]
    return count


@kernel
def full_lru(numbers, entries, seen, newer, older, causes):  # type: ignore[no-untyped-def]
    """Write what a fully associative LRU cache of `entries` lines makes of `numbers`: 0 hit, 1 compulsory, 2 capacity.

    ``seen``: 0 never, 1 gone, 2 held; zeros at the start. ``newer`` and ``older`` link the numbers that are held.
    """
    newest = oldest = -1
    held = 0
    for index in range(len(numbers)):
        number = numbers[index]
        state = seen[number]
        causes[index] = 1 if state == 0 else 2 * (2 - state)
        if state == 2:
            if number == newest:
                continue
            above, below = newer[number], older[number]
            older[above] = below
            if below >= 0:
                newer[below] = above
            else:
                oldest = above
        elif held == entries:
            seen[oldest] = 1
            oldest = newer[oldest]
            if oldest >= 0:
                older[oldest] = -1
            else:
                newest = -1
        else:
            held += 1
        seen[number] = 2
        older[number] = newest
        newer[number] = -1
        if newest >= 0:
            newer[newest] = number
        else:
            oldest = number
        newest = number


@kernel
def _blame(hits, causes):  # type: ignore[no-untyped-def]
    """Turn what the fully associative cache did into the causes of the real one's misses."""
    for index in range(len(hits)):
        if hits[index]:
            causes[index] = 0
        elif causes[index] == 0:
            causes[index] = 3


def miss_causes(keys: ArrayLike, hits: ArrayLike, entries: int) -> NDArray[np.uint8]:
    """Return why each lookup missed (Hill's three causes).

    Compulsory: the first lookup of this key. Capacity: a fully associative LRU cache of as many entries would miss,
    too. Conflict: it would not.

    Parameters
    ----------
    keys : array_like of int [lookup]
        All lookups since the cache was empty.
    hits : array_like of bool [lookup]
        What `RoutingCache.run` found.
    entries : int
        Lines of the cache.

    Returns
    -------
    ndarray, uint8[lookup]
        Index in `CAUSES`.

    Raises
    ------
    ValueError
        If `entries` is below 1, or `keys` and `hits` differ in length.

    Examples
    --------
    >>> from hopforge.model.lookup.routing_cache import RoutingCache
    >>> keys = [1, 2, 3, 1, 1]
    >>> miss_causes(keys, RoutingCache(entries=2, ways=2).run(keys).hits, 2).tolist()
    [1, 1, 1, 2, 0]
    """
    words = np.ascontiguousarray(keys, dtype=np.int64)
    found = np.ascontiguousarray(hits, dtype=np.bool_)
    if entries < 1:
        raise ValueError(f"entries must be at least 1, not {entries}")
    if len(words) != len(found):
        raise ValueError(f"hits must be as many as keys={len(words)}, not {len(found)}")
    causes = _ideal_causes(words, entries)
    _blame(found, causes)
    return causes


def _ideal_causes(words: NDArray[np.int64], entries: int) -> NDArray[np.uint8]:
    numbers = np.empty(len(words), dtype=np.int64)
    count = _number_keys(words, numbers)
    causes = np.empty(len(words), dtype=np.uint8)
    seen, newer, older = np.zeros(count, np.uint8), np.empty(count, np.int64), np.empty(count, np.int64)
    full_lru(numbers, entries, seen, newer, older, causes)
    return causes

"""Causes of misses against an ordered dictionary."""

from collections import OrderedDict

import numpy as np
import pytest
from numba import njit

from hopforge.model.lookup.reference_stack import CAPACITY, COMPULSORY, HIT, ReferenceStacks, reference_lookup


@njit
def run(stacks, entries, caches, slots, result):
    head, tail, held = stacks.head, stacks.tail, stacks.held
    newer, older, status = stacks.newer, stacks.older, stacks.status
    for index in range(len(slots)):
        result[index] = reference_lookup(
            head, tail, held, newer, older, status, entries, caches[index], slots[index]
        )


@pytest.mark.parametrize("entries", [0, 1, 2, 7, 64])
def test_against_an_ordered_dictionary(entries):
    rng = np.random.default_rng(entries)
    stacks = ReferenceStacks(5, entries)
    held, seen = [OrderedDict() for _ in range(5)], set()
    for _ in range(4):  # in several pieces, new keys in each
        caches = rng.integers(0, 5, 3000).astype(np.int32)
        keys = (rng.zipf(1.3, 3000) % 200 << 40) + rng.integers(0, 2, 3000)
        result = np.empty(3000, np.int64)
        slots = stacks.slots_of(caches, keys)
        run(stacks.arrays, entries, caches, slots, result)
        for cache, key, got in zip(caches.tolist(), keys.tolist(), result.tolist(), strict=True):
            line = held[cache]
            if key in line:
                want = HIT
                line.move_to_end(key)
            else:
                want = CAPACITY if (cache, key) in seen else COMPULSORY
                line[key] = None
                if len(line) > entries:
                    line.popitem(last=False)
            seen.add((cache, key))
            assert got == want
    assert stacks.slots == len(seen)


def test_slots_are_numbered_by_first_appearance():
    stacks = ReferenceStacks(3, 4)
    caches = np.array([0, 1, 0, 0], np.int32)
    assert stacks.slots_of(caches, np.array([9, 9, 9, 5])).tolist() == [0, 1, 0, 2]
    many = np.arange(50_000, dtype=np.int64)
    assert np.unique(stacks.slots_of(np.full(50_000, 2, np.int32), many)).size == 50_000
    assert stacks.slots_of(caches, np.array([9, 9, 9, 5])).tolist() == [0, 1, 0, 2]

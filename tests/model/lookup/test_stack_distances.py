"""Stack distances against lists in the order of use, against the cache itself, and the golden cases."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopforge.model.lookup.belady import KeyStreams
from hopforge.model.lookup.routing_cache import RoutingCache
from hopforge.model.lookup.stack_distances import group_by_set, stack_distances

_PLACES = [folder / "shared" / "beyond" / "replacement.json" for folder in Path(__file__).parents]
GOLDEN = next((place for place in _PLACES if place.exists()), None)


@given(st.lists(st.lists(st.integers(0, 12), max_size=80), min_size=1, max_size=3))
def test_distances_are_those_of_a_list(streams):
    first, counts = 0, [0] * 20
    for stream in streams:
        stack = []
        for key in stream:
            if key in stack:
                counts[stack.index(key) + 1] += 1
                stack.remove(key)
            else:
                first += 1
            stack.insert(0, key)
    starts = np.cumsum([0, *map(len, streams)])
    found = stack_distances(KeyStreams.of_keys([key for stream in streams for key in stream], starts))
    assert found.first == first
    assert found.counts.tolist() == counts[: len(found.counts)]
    assert sum(counts) == found.counts.sum()


@pytest.mark.parametrize("sets", [1, 4, 32])
def test_every_number_of_ways_is_the_cache(sets):
    keys = np.random.default_rng(2).zipf(1.2, 20_000) % 3000
    streams = KeyStreams.of_keys(keys)
    rows = [RoutingCache(entries=sets, ways=1).rows(int(key))[0] for key in streams.keys]
    misses = stack_distances(group_by_set(streams, rows, sets)).misses()
    assert misses[0] == len(keys)
    for ways in (1, 2, 3, 8, 64):
        cache = RoutingCache(entries=sets * ways, ways=ways)
        assert np.count_nonzero(~cache.run(keys).hits) == misses[min(ways, len(misses) - 1)]


@pytest.mark.skipif(GOLDEN is None, reason="the folder shared is not beside this checkout")
def test_golden_curves():
    cases = json.loads(GOLDEN.read_text())["cases"]
    assert cases
    for case in cases:
        found = stack_distances(KeyStreams.of_keys(case["stream"]))
        assert found.first == case["stack"]["first"]
        assert {str(d): n for d, n in enumerate(found.counts.tolist()) if n} == case["stack"]["hist"]
        misses = found.misses()
        sizes, want = case["lru_curve"]
        assert [misses[min(size, len(misses) - 1)] for size in sizes] == want

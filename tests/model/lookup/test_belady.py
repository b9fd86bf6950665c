"""Belady's choice against all that a cache could do, and against the golden cases (docs/definitions/replacement.md)."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopforge.model.config.lookup import CrcConfig
from hopforge.model.lookup.belady import BOUNDS, KeyStreams, optimal_misses
from hopforge.model.lookup.routing_cache import RoutingCache
from hopforge.model.numbers.crc import crc_address

_PLACES = [folder / "shared" / "beyond" / "replacement.json" for folder in Path(__file__).parents]
GOLDEN = next((place for place in _PLACES if place.exists()), None)
#: the remainder by x^24 + 1 of a word times x^24 is the word: a cache with this hash takes the key modulo its sets
MODULO = CrcConfig(width=24, poly=1)


def fewest(stream, ways, bypass):
    """Misses of the best of all ways to run one set: every choice is tried."""

    @cache
    def rest(at, held):
        if at == len(stream):
            return 0
        key = stream[at]
        if key in held:
            return rest(at + 1, held)
        after = [held] if bypass else []
        if len(held) < ways:
            after.append(held | {key})
        after += [held - {victim} | {key} for victim in held]
        return 1 + min(rest(at + 1, each) for each in after)

    return rest(0, frozenset())


def lru_misses(stream, ways):
    held, misses = [], 0
    for key in stream:
        misses += key not in held
        held = [other for other in held if other != key][-(ways - 1) or len(held) :] if ways > 1 else []
        held.append(key)
    return misses


@given(st.lists(st.integers(0, 5), max_size=12), st.integers(1, 4))
def test_no_choice_is_better(stream, ways):
    streams = KeyStreams.of_keys(stream)
    found = dict(zip(BOUNDS, optimal_misses(streams, [0] * len(streams.keys), ways=ways, set_count=1)[0], strict=True))
    assert found["min"] == fewest(tuple(stream), ways, bypass=False)
    assert found["min_bypass"] == fewest(tuple(stream), ways, bypass=True)
    assert found["lru"] == lru_misses(stream, ways)


@given(st.lists(st.lists(st.integers(0, 9), max_size=30), min_size=1, max_size=4), st.sampled_from([1, 2, 4]))
def test_streams_and_sets_do_not_meet(streams, sets):
    starts = np.cumsum([0, *map(len, streams)])
    whole = KeyStreams.of_keys([key for stream in streams for key in stream], starts)
    found = optimal_misses(whole, whole.keys % sets, ways=2, set_count=sets)
    for stream, misses in zip(streams, found.tolist(), strict=True):
        parts = [[key for key in stream if key % sets == row] for row in range(sets)]
        ones = [KeyStreams.of_keys(part) for part in parts]
        alone = [optimal_misses(one, [0] * len(one.keys), ways=2, set_count=1)[0] for one in ones]
        assert misses == np.sum(alone, axis=0).tolist()


def test_lru_is_that_of_the_cache():
    keys = np.random.default_rng(5).integers(0, 300, 20_000)
    routing_cache = RoutingCache(entries=64, ways=4)
    streams = KeyStreams.of_keys(keys)
    rows = [routing_cache.rows(int(key))[0] for key in streams.keys]
    lru, least, bound = optimal_misses(streams, rows, ways=4, set_count=16)[0]
    assert lru == np.count_nonzero(~routing_cache.run(keys).hits)
    assert bound < least < lru


def test_bad_arguments():
    streams = KeyStreams.of_keys([1, 2])
    with pytest.raises(ValueError, match="ways must be at least 1, not 0"):
        optimal_misses(streams, [0, 0], ways=0, set_count=1)
    with pytest.raises(ValueError, match="a set below set_count=2 for each of 2 keys"):
        optimal_misses(streams, [0, 2], ways=1, set_count=2)


def golden_cases():
    return json.loads(GOLDEN.read_text())["cases"] if GOLDEN else []


def _rows(keys, sets, index):
    return [(key if index == "mod" else crc_address("CRC-32C", key)) % sets for key in keys]


@pytest.mark.skipif(GOLDEN is None, reason="the folder shared is not beside this checkout")
def test_golden_cases():
    cases = golden_cases()
    assert cases
    for case in cases:
        streams = KeyStreams.of_keys(case["stream"])
        for want in case["misses"]:
            sets = want["entries"] // want["ways"]
            rows = _rows(streams.keys.tolist(), sets, want["index"])
            found = optimal_misses(streams, rows, ways=want["ways"], set_count=sets)[0]
            assert found.tolist() == [want[name] for name in BOUNDS], (case["name"], want)
        for name, curve in (("lru", "lru_curve"), ("min", "min_curve")):
            sizes, misses = case[curve]
            column = BOUNDS.index(name)
            found = [
                optimal_misses(streams, [0] * len(streams.keys), ways=size, set_count=1)[0, column] for size in sizes
            ]
            assert found == misses, (case["name"], curve)


@pytest.mark.skipif(GOLDEN is None, reason="the folder shared is not beside this checkout")
@pytest.mark.parametrize("policy", ["lru", "fifo", "plru", "srrip"])
def test_golden_policies(policy):
    for case in golden_cases():
        for want in case["misses"]:
            crc = MODULO if want["index"] == "mod" else "CRC-32C"
            routing_cache = RoutingCache(entries=want["entries"], ways=want["ways"], policy=policy, crc=crc)
            assert np.count_nonzero(~routing_cache.run(case["stream"]).hits) == want[policy], (case["name"], want)

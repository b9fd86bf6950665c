"""Prefetch and refill: kernel against golden model, both against the golden cases (docs/definitions/prefetch.md)."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopforge.model.config.lookup import REPLAYED_POLICIES, CrcConfig
from hopforge.model.lookup.assisted_cache import ASSISTED, HARD, SOFT, Operations, detect, packets_ahead, run_operations
from hopforge.model.lookup.golden.assisted_cache import SequenceDetector, run_assisted
from hopforge.model.lookup.miss_causes import miss_causes
from hopforge.model.lookup.routing_cache import RoutingCache

_PLACES = [folder / "shared" / "beyond" for folder in Path(__file__).parents]
GOLDEN = next((place for place in _PLACES if place.exists()), None)
needs_golden = pytest.mark.skipif(GOLDEN is None, reason="the folder shared is not beside this checkout")
COUNTED = ASSISTED[: ASSISTED.index("evictions")]
EJECT = {None: 0, "hard": HARD, "soft": SOFT}
LRU = REPLAYED_POLICIES.index("lru")


def kernel(demands, times=None, *, size, fill=0, distance=None, ranks=0, lead=0, eject=None):
    """The kernel on one fully associative cache, called as the golden model is."""
    source, key = np.array(demands, np.int64).reshape(-1, 2).T.copy()
    cycles = np.arange(len(key)) if times is None else np.array(times, np.int64)
    starts, numbers = np.array([0, len(key)]), key.astype(np.int32)
    keys = max(64, ranks)
    if distance is not None:
        o = packets_ahead(starts, cycles, numbers, np.ones(len(key), np.bool_), distance)
    else:
        none = np.full(len(key), -1, np.int32)
        o = Operations(starts, cycles, numbers, np.zeros(len(key), np.bool_), none.copy(), none.copy())
    if ranks:
        known, coming = np.zeros(len(key), np.bool_), np.full(len(key), -1)
        detect(starts, source, key, ranks, lead, known, coming)
        o.refill[:] = coming
        before = {}
        for at, (s, d) in enumerate(demands):
            o.eject[at] = before.get(s, -1) if known[at] else -1
            before[s] = d
    found = run_operations(
        o, np.zeros(keys, np.int64), set_count=1, ways=size, policy=LRU, fill=fill, eject=EJECT[eject]
    )
    return dict(zip(ASSISTED, found[0].tolist(), strict=True))


def same(demands, times=None, **options):
    want, found = run_assisted(demands, times, **options), kernel(demands, times, **options)
    assert {name: found[name] for name in COUNTED} == {name: want[name] for name in COUNTED}
    assert found["fills"] == found["useful"] + found["unused"]
    return want


streams = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7)), max_size=60)


@given(streams, st.data(), st.integers(1, 6), st.sampled_from([0, 1, 4]), st.sampled_from([None, 1, 3, 20]))
def test_prefetch(demands, data, size, fill, distance):
    gaps = data.draw(st.lists(st.integers(1, 5), min_size=len(demands), max_size=len(demands)))
    same(demands, np.cumsum(gaps).tolist(), size=size, fill=fill, distance=distance)


def alltoall(algorithm, ranks):
    """Source and destination of each message of a collective."""
    last = ranks.bit_length() if algorithm == "bruck" else ranks
    for step in range(last) if algorithm == "bruck" else range(1, last):
        for rank in range(ranks):
            if algorithm == "pairwise":
                yield rank, rank ^ step
            elif algorithm == "ring":
                yield rank, (rank + step) % ranks
            elif 1 << step < ranks:
                yield rank, (rank + (1 << step)) % ranks


def way(dims, source, target):
    """Switch and input port along dimension order on a torus."""
    here, there = (list(np.unravel_index(node, dims, order="F")) for node in (source, target))
    passed = [(source, "L")]
    for axis, radix in enumerate(dims):
        while here[axis] != there[axis]:
            forward = (there[axis] - here[axis]) % radix
            plus = 2 * forward < radix or (2 * forward == radix and there[axis] > here[axis])
            here[axis] = (here[axis] + (1 if plus else -1)) % radix
            passed.append((int(np.ravel_multi_index(here, dims, order="F")), f"{axis}{'+' if plus else '-'}"))
    return passed


@cache
def ports(algorithm, dims):
    """What is looked up at each port in one round."""
    found = {}
    for source, target in alltoall(algorithm, int(np.prod(dims))):
        for place in way(dims, source, target):
            found.setdefault(place, []).append((source, target))
    return found


@pytest.mark.parametrize("algorithm", ["ring", "pairwise", "bruck"])
@pytest.mark.parametrize("port", [(5, "L"), (6, "0+")])
@pytest.mark.parametrize("eject", list(EJECT))
def test_refill(algorithm, port, eject):
    demands = ports(algorithm, (4, 4)).get(port, []) * 3
    assert demands
    for fill, lead, size in [(0, 1, 2), (0, 2, 4), (3, 0, 4), (3, 4, 16)]:
        same(demands, size=size, fill=fill, ranks=16, lead=lead, eject=eject)


def test_a_detector_hides_a_sequence():
    """Of a sequence of 15 three have to be seen before the rest is known; with the last line ejected two are enough."""
    demands = [(5, (5 + step) % 16) for step in range(1, 16)]
    found = same(demands * 3, size=4, ranks=16, lead=1)
    assert found["misses"] < 6 and found["useful"] == found["hits"] == 45 - found["misses"]
    assert same(demands * 3, size=4)["misses"] == 45
    assert same(demands * 3, size=2, ranks=16, lead=1, eject="hard")["ejected"] > 30


@given(st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=120), st.integers(0, 3))
def test_detectors_agree(demands, lead):
    golden = SequenceDetector(20)
    source, target = np.array(demands, np.int64).reshape(-1, 2).T.copy()
    known, coming = np.zeros(len(demands), np.bool_), np.zeros(len(demands), np.int64)
    detect(np.array([0, len(demands)]), source, target, 20, lead, known, coming)
    for at, (s, d) in enumerate(demands):
        _, prediction = golden.see(s, d)
        assert known[at] == (prediction is not None)
        assert coming[at] == (prediction.after(lead) if prediction is not None and lead else -1)


@given(st.lists(st.integers(0, 23), max_size=150), st.sampled_from(REPLAYED_POLICIES))
def test_without_help_it_is_the_routing_cache(keys, policy):
    none = np.full(len(keys), -1, np.int32)
    o = Operations(
        np.array([0, len(keys)]), np.arange(len(keys)), np.array(keys, np.int32), np.zeros(len(keys), np.bool_), none,
        none,
    )  # fmt: skip
    found = run_operations(o, np.arange(24) % 2, set_count=2, ways=4, policy=REPLAYED_POLICIES.index(policy))[0]
    counted = dict(zip(ASSISTED, found.tolist(), strict=True))
    run = RoutingCache(entries=8, ways=4, policy=policy, crc=CrcConfig(width=24, poly=1)).run(keys)
    assert (counted["hits"], counted["evictions"]) == (run.hits.sum(), run.evictions)
    causes = np.bincount(miss_causes(keys, run.hits, 8), minlength=4).tolist()
    assert [counted[name] for name in ("hits", "compulsory", "capacity", "conflict")] == causes


@needs_golden
def test_golden_prefetch():
    golden = json.loads((GOLDEN / "prefetch.json").read_text())
    assert len(golden["cases"]) > 50
    for case in golden["cases"]:
        trace = golden["traces"][case["trace"]]
        found = same(
            trace["demand"], trace["times"], size=case["size"], fill=case["fill"], distance=case["distance"]
        )
        assert {name: found[name] for name in COUNTED} == {name: case[name] for name in COUNTED}


@needs_golden
def test_golden_refill():
    cases = json.loads((GOLDEN / "mpi_refill.json").read_text())["cases"]
    assert len(cases) == 40
    for case in cases:
        once = ports(case["algo"], tuple(case["dims"]))[case["switch"], case["port"]]
        demands = [each for each in once for _ in range(case["packets"])] * case["rounds"]
        for run in case["runs"]:
            found = same(
                demands, size=case["size"], fill=run["fill"], ranks=int(np.prod(case["dims"])), lead=run["lead"],
                eject=run["eject"],
            )  # fmt: skip
            assert {name: found[name] for name in COUNTED} == {name: run[name] for name in COUNTED}, (case, run)

"""Interference against the golden cases of shared/beyond and packets that are followed one by one."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge.sim.jobs import interference as module
from hopforge.sim.jobs.interference import interference, link_loads

_PLACES = [folder / "shared" / "beyond" / "interference.json" for folder in Path(__file__).parents]
GOLDEN = next((place for place in _PLACES if place.exists()), None)


@pytest.mark.skipif(GOLDEN is None, reason="shared/beyond is not here")
def test_counts_of_the_reference():
    cases = json.loads(GOLDEN.read_text())["cases"]
    assert len(cases) > 4
    for case in cases:
        found = interference(case["dims"], [np.array(job) for job in case["jobs"]])
        for one, expected in zip(found, case["report"], strict=True):
            assert {key: round(getattr(one, key), 9) for key in expected} == expected, case["how"]


def followed(dims, nodes):
    """Count (switch entered, port) of every packet, hop by hop."""
    counts = Counter()
    for source in nodes:
        for goal in nodes:
            at = [source // int(np.prod(dims[:d])) % k for d, k in enumerate(dims)]
            to = [goal // int(np.prod(dims[:d])) % k for d, k in enumerate(dims)]
            for d, k in enumerate(dims):
                up = (to[d] - at[d]) % k
                step = 1 if 2 * up < k or (2 * up == k and to[d] > at[d]) else -1
                while at[d] != to[d]:
                    at[d] = (at[d] + step) % k
                    entered = sum(x * int(np.prod(dims[:i])) for i, x in enumerate(at))
                    counts[entered, 2 * d + (step < 0)] += 1
    return counts


@settings(max_examples=50)
@given(st.sampled_from([(5,), (4, 3), (2, 3, 4)]), st.data())
def test_loads_are_those_of_packets_that_are_followed(dims, data):
    nodes = data.draw(st.lists(st.integers(0, int(np.prod(dims)) - 1), min_size=1, unique=True))
    loads = link_loads(dims, np.array(nodes))
    counts = followed(dims, nodes)
    assert {(int(r), int(p)): int(loads[r, p]) for r, p in np.argwhere(loads)} == dict(counts)


def test_blocks_of_pairs_add_up(monkeypatch):
    nodes = np.arange(3, 40)
    whole = link_loads((4, 4, 4), nodes)
    monkeypatch.setattr(module, "_PAIRS_AT_ONCE", 100)
    assert (link_loads((4, 4, 4), nodes) == whole).all()


def test_a_job_of_one_node_meets_nobody():
    one, other = interference((4,), [np.array([0]), np.array([1, 3])])
    assert (one.mean_hops, one.links, one.own_max, one.slowdown) == (0.0, 0, 0, 1.0)
    assert (other.foreign, other.links) == (1, 4)  # half the ring away, up and down again: both over 2
    assert interference((4,), []) == []

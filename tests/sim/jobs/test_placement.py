"""Placements against the golden cases of shared/beyond and a search by hand."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopforge.sim.jobs.placement import PLACEMENTS

_PLACES = [folder / "shared" / "beyond" / "swf.json" for folder in Path(__file__).parents]
GOLDEN = next((place for place in _PLACES if place.exists()), None)
DIMS = [(6,), (4, 3), (2, 3, 3), (2, 2, 2, 2)]


def placing(name, dims):
    return PLACEMENTS[name](dims, np.random.default_rng(1))


@pytest.mark.skipif(GOLDEN is None, reason="shared/beyond is not here")
def test_places_of_the_reference():
    cases = json.loads(GOLDEN.read_text())["placements"]
    assert {case["how"] for case in cases} == {"linear", "contiguous", "block"}
    for case in cases:
        free = np.ones(np.prod(case["dims"]), bool)
        free[case["busy"]] = False
        place = placing(case["how"], case["dims"]).place(free, case["n"])
        found = (None, None) if place is None else (place.used.tolist(), place.taken.tolist())
        assert found == (case["used"], case["taken"]), case


def first_box(dims, free, count):
    """Try all boxes and all origins."""
    shapes = [sides for sides in product(*(range(1, k + 1) for k in dims)) if count <= np.prod(sides) < 2 * count]
    for sides in sorted(shapes, key=lambda one: (np.prod(one), sum(one), one)):
        for origin in product(*(range(k) for k in reversed(dims))):
            corner = origin[::-1]
            if any(c + s > k for c, s, k in zip(corner, sides, dims, strict=True)):
                continue
            cells = [
                sum((c + s) * int(np.prod(dims[:i])) for i, (c, s) in enumerate(zip(corner, step[::-1], strict=True)))
                for step in product(*(range(s) for s in reversed(sides)))
            ]
            if free[cells].all():
                return cells[:count], cells
    return None


@given(st.data())
def test_the_box_is_the_first_one(data):
    dims = data.draw(st.sampled_from(DIMS))
    nodes = int(np.prod(dims))
    block = placing("block", dims)
    for _ in range(2):  # it keeps what it knows of one state
        free = np.array(data.draw(st.lists(st.booleans(), min_size=nodes, max_size=nodes)))
        free |= np.array(data.draw(st.lists(st.booleans(), min_size=nodes, max_size=nodes)))
        count = data.draw(st.integers(1, nodes))
        expected, place = first_box(dims, free, count), block.place(free, count)
        assert block.fits(free, count) is (expected is not None)
        assert expected == (None if place is None else (place.used.tolist(), place.taken.tolist()))


@given(st.data())
def test_every_placement_takes_free_nodes_once(data):
    dims = data.draw(st.sampled_from(DIMS))
    nodes = int(np.prod(dims))
    free = np.array(data.draw(st.lists(st.booleans(), min_size=nodes, max_size=nodes)))
    count = data.draw(st.integers(1, nodes))
    for name in PLACEMENTS:
        chosen = placing(name, dims)
        place = chosen.place(free, count)
        assert chosen.fits(free, count) is (place is not None)
        if place is None:
            assert name in ("contiguous", "block", "subtree") or free.sum() < count
            continue
        assert free[place.taken].all() and set(place.used.tolist()) <= set(place.taken.tolist())
        assert len(set(place.used.tolist())) == len(place.used) == count


@given(st.sampled_from([*DIMS, (5, 3), (7, 2, 2)]), st.data())
def test_an_empty_machine_takes_every_job(dims, data):
    nodes = int(np.prod(dims))
    count = data.draw(st.integers(1, nodes))
    assert all(placing(name, dims).fits(np.ones(nodes, bool), count) for name in PLACEMENTS)

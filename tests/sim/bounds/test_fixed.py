"""Loads of routings with fixed ways, against lists made elsewhere and against packets that a plain program moves."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.sim.bounds.bounds import find_bounds
from hopforge.sim.bounds.prepared import BoundsSetup, prepare_bounds
from hopforge.sim.bounds.shares import PER_HOP, PER_PATH
from hopforge.sim.start.preparation import for_command

_PLACES = [folder / "shared" / "networks" / "golden" / "hyperx_patterns.json" for folder in Path(__file__).parents]
GOLDEN = next((place for place in _PLACES if place.exists()), _PLACES[0])
#: name of a pattern there → ours
OURS = {
    "complement": "bit_complement",
    "tornado_per_dimension": "dimension_tornado",
    **{f"uniform_random_bisection_dim{d}": f"uniform_random_bisection, dimension: {d}" for d in range(3)},
}


def prepared(text: str) -> BoundsSetup:
    return prepare_bounds(for_command("bounds", parse_config(f"name: x\n{text}")))


def loads(setup: BoundsSetup, key: str = "traffic") -> Any:
    assert setup.fixed is not None, setup.left_out
    return setup.fixed.loads(setup.topology, setup.to_hosts[key])


@pytest.mark.skipif(not GOLDEN.exists(), reason="no golden patterns beside this checkout")
def test_golden_patterns_of_hyperx() -> None:
    cases = json.loads(GOLDEN.read_text())
    assert len(cases) == 20
    for case in cases:
        pattern = OURS.get(case["pattern"], case["pattern"])
        text = (
            f"topology: {{kind: hyperx, sizes: {case['dims']}, hosts_per_router: {case['terminals']}}}\n"
            f"traffic: {{pattern: {pattern}}}\n"
        )
        setup = prepared(text)
        fixed, minimal = loads(setup), setup.ways.loads(PER_PATH, setup.traffic.rate)
        assert fixed.max() == pytest.approx(case["dor_max_channel_load"], abs=1e-8), case
        assert min(1, 1 / fixed.max()) == pytest.approx(case["dor_throughput"], abs=1e-8)
        wanted = case["minimal_random_dimension_order_max_channel_load"]
        assert minimal.max() == pytest.approx(wanted, abs=1e-8), case
        assert setup.traffic.received == pytest.approx(1.0)


def moved(setup: BoundsSetup, step: Any) -> Any:
    """Load of every channel, host by host; `step(router, host)` says the next router."""
    topology = setup.topology
    load = np.zeros(topology.peer_router.shape)
    for source, goal in np.argwhere(setup.to_hosts["traffic"] > 0).tolist():
        here = source
        while here != topology.host_router[goal]:
            there = step(here, goal)
            (port,) = np.flatnonzero(topology.peer_router[here] == there)
            load[here, port] += setup.to_hosts["traffic"][source, goal]
            here = there
    return load


def test_dimension_order_of_a_mesh_and_a_torus() -> None:
    setup = prepared("topology: {kind: mesh, radices: [4, 3], hosts_per_router: 2}\ntraffic: {pattern: permutation}\n")

    def xy(router: int, host: int) -> int:
        goal = host // 2
        dx, dy = goal % 4 - router % 4, goal // 4 - router // 4
        return router + (int(np.sign(dx)) if dx else 4 * int(np.sign(dy)))

    assert loads(setup) == pytest.approx(moved(setup, xy))
    ring = prepared("topology: {kind: torus, radices: [5]}\ntraffic: {pattern: tornado}\nrouter: {vcs: 1}\n")
    assert loads(ring)[:, 1].tolist() == [2.0] * 5  # two links on, whatever virtual channels a run has
    assert loads(ring)[:, 2].tolist() == [0.0] * 5


def test_a_tree_chooses_the_way_up_by_the_destination() -> None:
    """Of a 4-ary tree of two levels leaf 0's hosts 0 … 3 send to 4 … 7: each destination has an uplink of its own."""
    goals = [4, 5, 6, 7, 0, 1, 2, 3, *range(8, 16)]
    text = (
        f"topology: {{kind: fat_tree, k: 4, n: 1}}\nrouting: {{algorithm: d_mod_k}}\n"
        f"traffic: {{pattern: destinations, destinations: {goals}}}\n"
    )
    setup = prepared(text)
    leaf = int(setup.topology.host_router[0])
    assert loads(setup).max() == 1.0
    assert (loads(setup)[leaf] == 1.0).sum() == 4
    assert setup.ways.loads(PER_HOP, setup.traffic.rate).max() == 1.0
    clash = prepared(text.replace(str(goals), str([4, 8, 12, 7, 0, 1, 2, 3, 5, 9, 10, 11, 6, 13, 14, 15])))
    assert loads(clash)[leaf].max() == 3.0  # hosts 4, 8 and 12 have the same digit


def test_the_row_of_a_command() -> None:
    text = "topology: {kind: hyperx, sizes: [4, 4], hosts_per_router: 4}\ntraffic: {pattern: bit_complement}\n"
    config = for_command("bounds", parse_config(f"name: x\n{text}"))
    setup = prepare_bounds(config)
    found = find_bounds(config, BoundsSetup(**(vars(setup) | {"left_out": {"ideal": "", "worst permutation": ""}})),
                        lambda done, total: None)  # fmt: skip
    row = found.table["routing"].tolist().index("dor")
    assert found.table["uniform_load"][row] == 1.0
    assert found.table["traffic_load"][row] == 4.0
    assert found.table["traffic_throughput"][row] == 0.25
    assert np.isnan(found.table["worst_load"][row])
    assert found.loads["dor", "uniform"].sum() == pytest.approx(64 * 1.5)  # mean links of a packet


TORUS = "topology: {kind: torus, radices: [4, 4]}\n"


@pytest.mark.parametrize(("text", "said"), [
    (TORUS + "routing: {algorithm: minimal}\n", "minimal: it gives several ports for a destination"),
    (TORUS + "routing: {algorithm: valiant}\n", "valiant: it draws random numbers"),
    (TORUS + "routing: {algorithm: dragonfly_min}\n", "dragonfly_min: routing.algorithm dragonfly_min needs"),
    (TORUS + "routing: {algorithm: minimal, spread: flow}\n", "minimal: the host that sends chooses among ways"),
    ("topology: {kind: slim_fly, q: 4}\n", ""),
])  # fmt: skip
def test_no_row_and_why(text: str, said: str) -> None:
    setup = prepared(text)
    assert setup.fixed is None
    assert said in setup.left_out.get("routing", "")
    assert bool(said) == ("routing" in setup.left_out)


def test_ways_that_do_not_end() -> None:
    setup = prepared("topology: {kind: mesh, radices: [3]}\n")
    assert setup.fixed is not None
    lost = setup.fixed._replace(plan=prepared("topology: {kind: mesh, radices: [2]}\n").fixed.plan)  # type: ignore[union-attr]
    with pytest.raises(UserError, match=r"no loads of routing\.algorithm dor: no way from router \d to host \d"):
        lost.loads(setup.topology, setup.to_hosts["traffic"])

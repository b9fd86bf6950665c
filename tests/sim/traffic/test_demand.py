"""Mean rates of traffic patterns against destinations that a run draws."""

import numpy as np
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.topology import build
from hopforge.sim.run.packet_trace import list_packets
from hopforge.sim.traffic.demand import mean_demand
from hopforge.sim.traffic.patterns import PATTERNS

GRID = "topology: {kind: mesh, radices: [4, 2], hosts_per_router: 2}"
DRAGONFLY = "topology: {kind: dragonfly, p: 2, a: 2, h: 1}\nrouting: {algorithm: dragonfly_min}"
OPTIONS = {
    "hotspot": "share: 0.5, targets: [1, 6]", "local": "share: 0.75", "stencil": "grid: [4, 4]",
    "many_to_many": "line: 4", "random_neighbours": "low: 2, high: 5",
    "destinations": f"destinations: {[0, *range(15, 0, -1)]}", "uniform_random_bisection": "dimension: 1",
}  # fmt: skip
DRAWN = ("uniform", "hotspot", "taper64", "stencil", "transpose", "uniform_random_bisection")
CUBE = "topology: {kind: mesh, radices: [2, 2, 2]}"


def config(pattern: str) -> Config:
    place = {"adversarial": DRAGONFLY, "transpose3d": CUBE, "dimension_complement_reverse": CUBE,
             "taper64": "topology: {kind: mesh, radices: [4, 4], hosts_per_router: 4}"}.get(pattern, GRID)
    options = f", {OPTIONS[pattern]}" if pattern in OPTIONS else ""
    return parse_config(
        f"name: x\nseed: 5\n{place}\ntraffic: {{pattern: {pattern}{options}}}\n"
        "simulation: {warmup_cycles: 100, min_cycles: 1000, max_cycles: 1000}\n"
    )


@pytest.mark.parametrize("pattern", [pytest.param(one, marks=() if one in DRAWN
                                                  else pytest.mark.study) for one in PATTERNS])  # fmt: skip
def test_rates_are_those_of_a_run(pattern: str) -> None:
    wanted = config(pattern)
    topology = build(wanted.topology, wanted.address)
    demand = mean_demand(topology, pattern, wanted.traffic.model_dump(), np.random.default_rng((wanted.seed, 3)))
    packets = list_packets(wanted, 0.1, wanted.seed, 4_000)
    counts = np.zeros((topology.routers, topology.routers))
    np.add.at(counts, (topology.host_router[packets["host"]], topology.host_router[packets["dst"]]), 1.0)
    assert demand.rate.sum() == pytest.approx(demand.received.sum()) == pytest.approx(topology.hosts)
    assert np.array_equal(demand.rate > 0, counts > 0)
    share = demand.rate / demand.rate.sum()
    far = np.abs(counts - len(packets) * share) / np.sqrt(len(packets) * np.maximum(share, 1e-12))
    assert far.max() < 6
    into, wanted_into = np.bincount(packets["dst"], minlength=topology.hosts), demand.received / topology.hosts
    assert (np.abs(into - len(packets) * wanted_into) <= 6 * np.sqrt(len(packets) * wanted_into)).all()


def test_the_sender_itself() -> None:
    topology = build(config("uniform").topology, config("uniform").address)
    others = mean_demand(topology, "uniform", {"include_self": False}, np.random.default_rng(0))
    assert others.rate[0, 0] == pytest.approx(2 / 15)  # each of two hosts to the other one
    assert others.rate[0, 1] == pytest.approx(4 / 15)
    assert others.received == pytest.approx(1.0)


@pytest.mark.parametrize("pattern", ["uniform", "hotspot", "local", "stencil", "uniform_random_bisection", "tornado"])
def test_rates_to_hosts_add_up_to_those_between_routers(pattern: str) -> None:
    wanted = config(pattern)
    topology, options = build(wanted.topology, wanted.address), wanted.traffic.model_dump() | {"include_self": False}
    coarse, fine = (mean_demand(topology, pattern, options, np.random.default_rng(0), to_hosts=to_hosts)
                    for to_hosts in (False, True))  # fmt: skip
    assert fine.rate.shape == (topology.routers, topology.hosts)
    assert fine.rate.reshape(topology.routers, topology.routers, -1).sum(axis=2) == pytest.approx(coarse.rate)
    assert fine.rate.sum(axis=0) == pytest.approx(coarse.received)
    assert fine.received == pytest.approx(coarse.received)

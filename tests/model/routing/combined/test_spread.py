"""`routing.spread`: ECMP for each packet or each flow, in simulator and flow engine, beside loads by definition."""

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.model.topology.spread_by_bits import port_of

from hopforge.model.config import Config, ConfigError, parse_config
from hopforge.model.errors import UserError
from hopforge.model.irregular.table_routes import configured_routes
from hopforge.model.lookup.spread_routes import SpreadRoutes
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.model.topology import build
from hopforge.model.topology.spread import flow_place, port_place, router_key
from hopforge.sim.bounds.shares import PER_HOP, MinimalWays
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.start.preparation import prepare

HYPERX = "{kind: hyperx, sizes: [3, 4], hosts_per_router: 2}"
TREE = "{kind: clos, hosts_per_router: 4, leaves: 6, middles: 3}"
TORUS = "{kind: torus, radices: [4, 4]}"
RUN = "simulation: {warmup_cycles: 100, min_cycles: 1000, max_cycles: 1000}"
#: among which a hash chooses
PLACES = 8


def config_of(topology: str, routing: str, vcs: int = 4, more: str = "", flit_bits: int = 64) -> Config:
    router = f"{{vcs: {vcs}, buffer_flits: 4, flit_bits: {flit_bits}}}"
    return parse_config(f"name: x\ntopology: {topology}\nrouting: {{{routing}}}\nrouter: {router}\n{RUN}\n{more}")


def run_of(topology: str, routing: str, load: float, cycles: int, vcs: int = 4, more: str = "") -> Simulation:
    run = Simulation(config_of(topology, routing, vcs, more), load, 3)
    run.advance(cycles)
    run.check_conservation()
    assert int(run.state["packets_dropped"]) == 0
    return run


def loads_of(run: Simulation) -> Any:
    """Flits over each channel, float64[router, port], for each flit of a host."""
    sent = run.state["output_port"]["flits"].reshape(run.topology.routers, -1).astype(float)
    return sent[:, : run.topology.max_ports] / (run.state["host"]["flits_received"].mean())


@pytest.mark.parametrize("topology", [HYPERX, TREE, TORUS])
def test_loads_are_those_of_equal_shares_per_hop(topology: str) -> None:
    run = run_of(topology, "algorithm: minimal, spread: packet", 0.1, 30_000, vcs=6)
    hosts = np.bincount(run.topology.host_router, minlength=run.topology.routers).astype(float)
    wanted = MinimalWays(run.topology).loads(PER_HOP, np.outer(hosts, hosts) / run.topology.hosts)
    linked = run.topology.peer_router >= 0
    flits = run.state["host"]["flits_received"].mean() * wanted[linked]
    assert (np.abs(loads_of(run)[linked] / wanted[linked] - 1) * np.sqrt(flits) < 5).all()


def test_a_flow_keeps_its_way_and_packets_do_not() -> None:
    """With one host sending to one, all or some of the middle routers carry packets."""
    goals = [23, *range(1, 24)]
    traffic = f"traffic: {{pattern: destinations, destinations: {goals}}}"
    for spread, middles in (("flow", 1), ("packet", 3)):
        run = run_of(TREE, f"algorithm: minimal, spread: {spread}", 0.3, 4000, more=traffic)
        sent = run.state["output_port"]["flits"].reshape(run.topology.routers, -1)
        assert np.count_nonzero(sent[0][run.topology.peer_router[0] >= 0]) == middles


def test_simulator_and_flow_engine_take_the_same_ways() -> None:
    """Every pair of one source: the channels that carry its packets are those of the routes."""
    for pattern in ("transpose", "bit_complement", "tornado"):
        more = f"traffic: {{pattern: {pattern}}}"
        run = run_of(TORUS, "algorithm: minimal, spread: flow", 0.1, 6000, vcs=6, more=more)
        routes = configured_routes(run.config, run.topology)
        assert isinstance(routes, SpreadRoutes)
        sources = np.arange(run.topology.hosts)
        paths = routes.paths(sources, run.traffic.table[: run.topology.hosts])
        used = {(r, p) for r, p in zip(paths.router.tolist(), paths.output.tolist(), strict=True)}
        sent = run.state["output_port"]["flits"].reshape(run.topology.routers, -1)
        linked = np.argwhere((sent > 0) & (run.topology.peer_router >= 0))
        assert {tuple(one) for one in linked.tolist()} == {
            (r, p) for r, p in used if run.topology.peer_router[r, p] >= 0
        }


def test_routes_are_shortest_and_the_hash_is_fair() -> None:
    config = config_of(HYPERX, "algorithm: minimal, spread: flow")
    topology = build(config.topology, config.address)
    routes = SpreadRoutes(topology)
    pairs = np.array(list(itertools.product(range(topology.hosts), repeat=2)))
    paths = routes.paths(pairs[:, 0], pairs[:, 1])
    far = MinimalWays(topology).distance
    wanted = far[topology.host_router[pairs[:, 1]], topology.host_router[pairs[:, 0]]] + 1
    assert np.array_equal(paths.lengths, wanted)
    assert np.array_equal(paths.router[paths.first[1:] - 1], topology.host_router[pairs[:, 1]])
    load = np.zeros(topology.peer_router.shape)
    np.add.at(load, (paths.router, paths.output), 1.0 / topology.hosts)
    hosts = np.bincount(topology.host_router).astype(float)
    mean = MinimalWays(topology).loads(PER_HOP, np.outer(hosts, hosts) / topology.hosts)
    linked = topology.peer_router >= 0
    assert load[linked].sum() == pytest.approx(mean[linked].sum())
    assert load[linked].max() < 1.6 * mean[linked].max()
    for counts in (
        Counter(int(port_place(s, d, 0, 5, PLACES)) for s in range(100) for d in range(100)),
        Counter(int(flow_place(s, d, 5, PLACES)) for s in range(100) for d in range(100)),
    ):
        assert set(counts) == set(range(PLACES))
        assert max(counts.values()) < 1.1 * 10_000 / PLACES
    assert int(flow_place(1, 2, 5, PLACES)) == flow_place.py_func(1, 2, 5, PLACES)


@pytest.mark.parametrize("ports", [1, 2, 3, 7, 16, 17, 64, 500])
def test_the_port_is_the_definition(ports: int) -> None:
    rng = np.random.default_rng(ports)
    for bits in (2, 12, 31):
        for source, goal, router in rng.integers(0, 1 << bits, (40, 3)).tolist():
            entropy = int(rng.integers(1 << 16))
            place = port_of(source, goal, entropy, router, ports)
            assert 0 <= place < ports
            assert port_place.py_func(source, goal, entropy, router, ports) == place
            assert port_place(source, goal, entropy, router, ports) == place


def test_routers_choose_independently() -> None:
    """Of the flows that one router sends to a port, all others send half to each of two: no router repeats another."""
    flows = [(s, d) for s in range(64) for d in range(64)]
    chosen = np.array([[port_place(s, d, 0, router, 2) for s, d in flows] for router in range(24)])
    assert len({router_key(router) for router in range(1000)}) == 1000
    for one, other in itertools.combinations(range(24), 2):
        together = np.bincount(2 * chosen[one] + chosen[other], minlength=4)
        assert together.min() > 0.85 * len(flows) / 4, (one, other)


def test_valiant_spreads_both_parts() -> None:
    """Loads of the minimal way to and from every other router with hosts, for uniform traffic."""
    run = run_of(TREE, "algorithm: valiant, spread: packet", 0.05, 30_000)
    linked = run.topology.peer_router >= 0
    load = loads_of(run)[:6][linked[:6]]  # up: three ports of each leaf alike
    assert load == pytest.approx(load.mean(), rel=0.06)
    assert load.mean() == pytest.approx(2 * 4 * 5 / 6 / 3, rel=0.06)


@pytest.mark.parametrize(("routing", "said"), [
    ("algorithm: ugal, spread: packet", "spread: packet is for minimal, valiant, tables only, not algorithm=ugal"),
    ("algorithm: valiant, spread: flow", "spread: flow is for minimal, tables only, not algorithm=valiant"),
    ("algorithm: minimal, spread: flow, ways: one", "spread: is for ways=all only, not ways=one"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(routing: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        config_of(HYPERX, routing)


@pytest.mark.parametrize(("command", "routing", "more", "said"), [
    ("app", "algorithm: minimal, spread: packet", "workload: {kind: collective, operation: barrier}",
     r"routing\.spread: packet is not for routes that are known beforehand"),
    ("app", "algorithm: minimal, spread: packet",
     "workload: {kind: collective, operation: barrier}\napp: {lookup: cache}",
     r"routing\.spread: packet is not for engine: flow"),
])  # fmt: skip
def test_commands_that_cannot_spread_say_so(command: str, routing: str, more: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        prepare(command, config_of(TORUS, routing, more=more))


def test_hardware_spreads_by_flow_and_entropy() -> None:
    prepare("gen router", config_of(TORUS, "algorithm: minimal, spread: flow", vcs=6))
    wide = config_of(TORUS, "algorithm: minimal, spread: entropy", vcs=6, more="traffic: {entropy: {}}", flit_bits=128)
    prepare("gen router", wide)
    with pytest.raises(UserError, match=r"cannot be a table of a router: it (draws|chooses)"):
        prepare("gen router", config_of(TORUS, "algorithm: minimal, spread: packet", vcs=6))


def test_the_proof_covers_all_ways() -> None:
    for spread in ("packet", "flow", "entropy"):
        more = "traffic: {entropy: {}}" if spread == "entropy" else ""
        config = config_of(HYPERX, f"algorithm: minimal, spread: {spread}", more=more)
        plan = routing_plan(config, build(config.topology, config.address))
        assert plan.every is not None and plan.max_candidates == 1 and plan.every_candidates == 2


def test_valiant_spreads_on_tori_too() -> None:
    """There it is Valiant of dimension order by default, which has one way and so does not spread."""
    torus = "{kind: torus, radices: [4, 4]}"
    spread, ways = (routing_plan(c, build(c.topology, c.address)) for c in (
        config_of(torus, f"algorithm: valiant, {key}", 8) for key in ("spread: packet", "ways: all")
    ))  # fmt: skip
    assert np.array_equal(spread.table, ways.table)
    assert (spread.max_candidates, ways.max_candidates) == (1, 4)  # to the opposite corner

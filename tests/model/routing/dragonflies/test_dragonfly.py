"""Non-minimal, adaptive and learning routing on dragonflies: proofs, ways, invariants; loads of channels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopforge.model.config import ConfigError
from hopforge.model.config.load import parse_config
from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.router import RouterConfig
from hopforge.model.config.simulation import FailedConfig
from hopforge.model.config.topology import DragonflyConfig
from hopforge.model.network.build import build_net
from hopforge.model.network.settings import RouterParameters, SourceParameters, Tables, router_parameters
from hopforge.model.routing import ROUTING, RoutingError, RoutingPlan
from hopforge.model.routing.proof.deadlock import DeadlockError, check_routing
from hopforge.model.topology import Topology, build
from hopforge.model.topology.failed import FailureError, without_failed
from hopforge.model.topology.link_times import LinkTimeError, common_cycle_ns, queued_times
from hopforge.sim.hits.channel_loads import (
    adversarial_rates,
    minimal_loads,
    throughput_bound,
    uniform_rates,
    valiant_loads,
)
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.run.time_series import run_series, write_series
from hopforge.sim.traffic import TrafficError

VCS = {
    "valiant_group": 3,
    "valiant_node": 4,
    "ugal_group": 3,
    "ugal_node": 4,
    "par": 5,
    "q_adaptive": 5,
    "q_routing": 6,
}
#: most links between routers on a way
MOST_HOPS = {
    "valiant_group": 5, "valiant_node": 6, "ugal_group": 5, "ugal_node": 6, "par": 7, "q_adaptive": 5, "q_routing": 6,
}  # fmt: skip


def dragonfly(p: int, a: int, h: int, **others: Any) -> Topology:
    return build(DragonflyConfig(kind="dragonfly", p=p, a=a, h=h, **others), AddressConfig(chunk_bits=4))


def prove(topology: Topology, plan: RoutingPlan, vcs: int, name: str) -> int:
    tables = Tables(plan.table, plan.memory, max_candidates=plan.max_candidates, inject_mask=plan.inject_mask)
    state = build_net(topology, RouterParameters(vcs=vcs), SourceParameters(), tables, 1)
    return check_routing(topology, plan, state, name)


@pytest.mark.parametrize("name", VCS)
@pytest.mark.parametrize(
    "shape",
    [
        {"p": 1, "a": 2, "h": 2},
        {"p": 1, "a": 4, "h": 2, "g": 5},  # two links for each pair of groups
        {"p": 2, "a": 3, "h": 1, "arrangement": "relative"},
        {"p": 1, "a": 3, "h": 2, "arrangement": "palmtree"},
        {"p": 1, "a": 2, "h": 1, "g": 2},  # no intermediate group
    ],
)
def test_all_dependencies_are_acyclic(name: str, shape: dict[str, Any]) -> None:
    topology = dragonfly(**shape)
    plan = ROUTING[name](topology, VCS[name], {})
    assert prove(topology, plan, VCS[name], name) > 0


def lose(topology: Topology, *pairs: tuple[int, int]) -> Topology:
    """Return the dragonfly without the links between pairs of groups."""
    a = int(topology.params["a"])
    links = [
        (x, int(y))
        for x, row in enumerate(topology.peer_router)
        for y in row[row >= 0]
        if (x // a, int(y) // a) in pairs
    ]
    assert len(links) >= len(pairs)
    return without_failed(topology, FailedConfig(links=tuple(links)))


def assert_delivered_within_hops(run: Simulation, name: str) -> None:
    """Run for a while: much arrives, nothing is lost, and no packet takes more hops than the algorithm's most."""
    longest = 0
    for _ in range(200):
        run.advance(80)
        longest = max(longest, int(run.state["packet"]["hops"].max()))
    run.check_conservation()
    assert run.state["packets_ejected"] > 200
    assert longest - 1 <= MOST_HOPS[name]
    assert run.state["packets_dropped"] == 0


@pytest.mark.parametrize("name", [name for name in VCS if name != "q_routing"])
@pytest.mark.parametrize(
    ("shape", "lost"),
    [
        ({"p": 1, "a": 2, "h": 2}, [(0, 1)]),
        ({"p": 2, "a": 3, "h": 1}, [(0, 1), (2, 3)]),
        ({"p": 1, "a": 3, "h": 2, "arrangement": "palmtree"}, [(0, 3), (4, 5), (5, 6)]),
    ],
)
def test_groups_without_a_link_are_reached_over_others(
    name: str, shape: dict[str, Any], lost: list[tuple[int, int]]
) -> None:
    """Proved free of deadlock; a run delivers everything within the hops of the algorithm."""
    topology = lose(dragonfly(**shape), *lost)
    assert prove(topology, ROUTING[name](topology, VCS[name], {}), VCS[name], name) > 0
    text = ", ".join(f"{key}: {value}" for key, value in shape.items())
    extra = ", epsilon: 0.3" if name == "q_adaptive" else ""
    a = shape["a"]
    links = [
        [x, int(y)]
        for x, row in enumerate(dragonfly(**shape).peer_router)
        for y in row[row >= 0]
        if (x // a, int(y) // a) in lost
    ]
    run = simulation(name, shape=text, extra=extra, failed=f"failed: {{links: {links}}}\n")
    assert_delivered_within_hops(run, name)


def test_several_links_of_a_pair_may_fail_one_by_one() -> None:
    """Two links for each pair of groups: without one of them minimal routing takes the other."""
    whole = dragonfly(1, 4, 2, g=5)
    port = int(np.flatnonzero(whole.peer_router[0] // 4 == 1)[0])
    topology = without_failed(whole, FailedConfig(ports=((0, port),)))
    for name in ("dragonfly_min", "ugal_group", "q_routing"):
        vcs = VCS.get(name, 2)
        assert prove(topology, ROUTING[name](topology, vcs, {}), vcs, name) > 0


def test_learned_times_go_round_one_failed_link_of_several() -> None:
    """Q-routing: nothing uses the failed link, and everything arrives within the hops of the algorithm."""
    port = int(np.flatnonzero(dragonfly(1, 4, 2, g=5).peer_router[0] // 4 == 1)[0])
    failed = f"failed: {{ports: [[0, {port}]]}}\n"
    run = simulation("q_routing", shape="p: 1, a: 4, h: 2, g: 5", extra=", epsilon: 0.3", failed=failed)
    assert_delivered_within_hops(run, "q_routing")
    assert run.topology.peer_router[0, port] < 0


@pytest.mark.parametrize(
    ("name", "failed", "reason"),
    [
        ("dragonfly_min", [(0, 1)], "groups 0 and 1 have no link"),
        ("q_routing", [(0, 1)], "groups 0 and 1 have no link"),
        ("ugal_group", [(0, 1), (0, 2), (0, 3)], "the network falls apart"),
    ],
)
def test_groups_without_a_way_are_refused(name: str, failed: list[tuple[int, int]], reason: str) -> None:
    with pytest.raises((RoutingError, FailureError), match=reason):
        ROUTING[name](lose(dragonfly(2, 3, 1), *failed), VCS.get(name, 2), {})


def test_groups_two_apart_and_links_inside_a_group_are_refused() -> None:
    topology = lose(dragonfly(2, 3, 1), (0, 1), (0, 2))  # 0 has a link with 3 only; 1 and 3 have one no more
    with pytest.raises(RoutingError, match="groups 0 and 1 have no link, and no third group has links with both"):
        ROUTING["par"](lose(topology, (1, 3)), 5, {})
    inside = without_failed(dragonfly(2, 3, 1), FailedConfig(links=((0, 1),)))
    for name in ("ugal_node", "dragonfly_min"):
        with pytest.raises(RoutingError, match=r"only links between groups may fail, not that of routers 0 and 1"):
            ROUTING[name](inside, VCS.get(name, 2), {})
    alone = dragonfly(2, 3, 1, g=1)  # a group without others
    for name in ("ugal_node", "dragonfly_min"):
        ROUTING[name](alone, VCS.get(name, 2), {})
        with pytest.raises(RoutingError, match=r"only links between groups may fail, not that of routers 0 and 1"):
            ROUTING[name](without_failed(alone, FailedConfig(switches=(1,))), VCS.get(name, 2), {})


@pytest.mark.parametrize("name", VCS)
def test_too_few_channels_are_refused(name: str) -> None:
    topology = dragonfly(1, 2, 1)
    with pytest.raises(RoutingError, match=rf"router.vcs must be at least {VCS[name]} for routing.algorithm {name}"):
        ROUTING[name](topology, VCS[name] - 1, {})


def test_a_planted_cycle_is_found() -> None:
    """Local hops of the destination group on the channel of the source group wait in a ring of groups."""
    topology = dragonfly(1, 3, 1)
    plan = ROUTING["valiant_group"](topology, 3, {})
    plan.table[5] = 1  # the relation believes in one channel for the destination group
    with pytest.raises(DeadlockError, match="can deadlock"):
        prove(topology, plan, 3, "valiant_group")


def simulation(
    name: str, *, shape: str, extra: str = "", traffic: str = "", load: float = 0.9, queue: int = 2, failed: str = ""
) -> Simulation:
    text = f"""{failed}
name: x
topology: {{kind: dragonfly, {shape}}}
address: {{chunk_bits: 4}}
router: {{model: input_output_queued, vcs: {VCS[name]}, buffer_flits: {queue}, output_buffer_flits: {queue - 1}}}
routing: {{algorithm: {name}{extra}}}
traffic: {{source: interval{traffic}}}
simulation: {{load: {load}, deadlock_cycles: 200, measure_us: 20, series_bins: 20, series_routers: [0],
  load_steps: [{{bin: 10, load: 0.1}}]}}
"""
    return Simulation(parse_config(text), load, 3)


@pytest.mark.parametrize("name", VCS)
def test_ways_are_short_and_nothing_is_lost_at_full_load_with_tiny_queues(name: str) -> None:
    """Every packet arrives within the hops of its algorithm; no deadlock; packets are conserved."""
    learning = name.startswith("q_")
    extra = ", epsilon: 0.3" if learning else ", bias: -1"
    run = simulation(name, shape="p: 2, a: 2, h: 2", extra=extra, traffic=", pattern: adversarial")
    longest = 0
    for _ in range(300):
        run.reset_measures()
        run.advance(80)
        run.check_conservation()
        packets = int(run.state["measured"])
        if packets:
            longest = max(longest, int(run.state["packet"]["hops"].max()))
    assert run.state["packets_ejected"] > 200
    assert longest - 1 <= MOST_HOPS[name]  # `hops` counts routers
    assert longest - 1 >= 4  # detours were taken
    assert run.state["packets_dropped"] == 0


def test_valiant_goes_through_another_group() -> None:
    """Mean hops of VALn without contention: exact from the topology."""
    run = simulation("valiant_node", shape="p: 1, a: 2, h: 1", traffic=", pattern: adversarial", load=0.02)
    run.advance(80 * 4000)
    assert run.state["packets_ejected"] > 300
    assert run.built.derouted() == run.state["packets_ejected"]
    topology = run.topology
    rates = adversarial_rates(topology, 1)
    between = topology.peer_router >= 0
    wanted = valiant_loads(topology, rates, to_router=True)[between].sum() / topology.hosts
    assert int(run.state["hops_sum"]) / int(run.state["measured"]) - 1 == pytest.approx(wanted, abs=0.15)


@pytest.mark.parametrize(
    ("shape", "bounds"),
    [((4, 8, 4), (1.015, 0.031, 0.484, 0.194, 0.484)), ((5, 10, 5), (1.010, 0.020, 0.490, 0.163, 0.490))],
)
def test_bounds_of_the_paper(shape: tuple[int, int, int], bounds: tuple[float, ...]) -> None:
    topology = dragonfly(*shape)
    near, far = adversarial_rates(topology, 1), adversarial_rates(topology, shape[2])
    loads = [
        minimal_loads(topology, uniform_rates(topology)),
        minimal_loads(topology, near),
        valiant_loads(topology, near, to_router=False),
        valiant_loads(topology, far, to_router=False),
        valiant_loads(topology, far, to_router=True),
    ]
    assert [round(throughput_bound(topology, load), 3) for load in loads] == list(bounds)


def test_learned_times_begin_as_in_the_paper() -> None:
    """300 ns for the port with the link to the group, 330 for others; (g − 1)·p rows and k − p columns matter."""
    topology = dragonfly(4, 8, 4)
    config = parse_config("name: x\ntopology: {kind: dragonfly, p: 4, a: 8, h: 4}\naddress: {chunk_bits: 4}\n"
                          "router: {model: input_output_queued, vcs: 5}\n")  # fmt: skip
    plan = ROUTING["q_adaptive"](topology, 5, {"router": config.router})
    assert plan.estimates is not None
    first, shape = plan.estimates
    assert shape == (264, 33 * 4, 11)
    table = plan.memory[first:].reshape(shape)
    direct = table == 300.0
    assert np.isin(table, (300.0, 330.0)).all()
    assert plan.asked is not None
    assert (plan.asked.shape, plan.asked.sum(axis=1).tolist()) == (shape[:2], 264 * [32 * 4])
    assert (direct[:, :, :7].sum(), direct.sum()) == (0, 264 * 4 * 4)
    peer = topology.peer_router[:, 4:]
    for router, port in ((0, 7), (17, 10)):
        rows = np.flatnonzero(direct[router, :, port])
        assert rows.tolist() == [peer[router, port] // 8 * 4 + k for k in range(4)]


def test_learned_times_of_input_queued_routers_are_in_ns_once_a_cycle_has_a_length() -> None:
    topology = dragonfly(2, 4, 2)
    text = ("name: x\ntopology: {kind: dragonfly, p: 2, a: 4, h: 2}\naddress: {chunk_bits: 4}\n"
            "router: {vcs: 5, link_latency_cycles: 3, global_latency_cycles: 20%s}\n")  # fmt: skip
    for more, local, far in (("", 3.0, 20.0), (", cycle_ns: 2.5", 7.5, 50.0), (", cycle_ns: 0.5", 1.5, 10.0)):
        plan = ROUTING["q_adaptive"](topology, 5, {"router": parse_config(text % more).router})
        assert plan.estimates is not None
        first, _ = plan.estimates
        assert set(plan.memory[first:]) == {far, local + far}
    runs = [
        Simulation(parse_config(text % more + "routing: {algorithm: q_adaptive}\n"), 0.3, 1)
        for more in ("", ", cycle_ns: 2.0")
    ]
    for run in runs:
        run.advance(1000)
    cycles, ns = (run.state["memory"][first:] for run in runs)
    assert len(set(cycles)) > 100
    assert ns.tolist() == (2 * cycles).tolist()


@pytest.mark.parametrize("algorithm", ["q_adaptive", "q_routing"])
def test_estimates_too_narrow_for_the_empty_network_are_refused(algorithm: str) -> None:
    """Once all of them were the largest there is, and stayed so: nothing was learned, without a word."""
    topology, router = dragonfly(2, 4, 2), RouterConfig(model="input_output_queued")
    narrow = {"router": router, "estimate_bits": 8, "estimate_fraction_bits": 0}
    message = r"^routing.estimate_bits: first estimates go up to \d+, beyond the largest, 254 "
    with pytest.raises(RoutingError, match=message):
        ROUTING[algorithm](topology, 6, narrow)
    plan = ROUTING[algorithm](topology, 6, narrow | {"estimate_bits": 11})
    assert plan.estimates is not None
    assert len(set(plan.memory[plan.estimates[0] :])) > 1


@pytest.mark.parametrize("algorithm", ["q_adaptive", "q_routing"])
def test_series_counts_the_learned_times_that_packets_ask_for(algorithm: str) -> None:
    """Not those to the own group, or router, which stay as they began."""
    run = simulation(algorithm, shape="p: 2, a: 2, h: 2", load=0.8, queue=20)
    series = run_series(run, lambda _done, _all: None)
    assert run.plan.estimates is not None
    first, shape = run.plan.estimates
    own = 2 if algorithm == "q_adaptive" else 1  # rows of group 0: p; of router 0: one
    table = run.state["memory"][first:].reshape(shape)[0, own:]
    last = series.estimates[series.estimates["time"] == series.estimates["time"].max()]
    assert last["mean"].tolist() == pytest.approx(table.mean(axis=0).tolist(), rel=1e-12)
    assert last["least"].tolist() == table.min(axis=0).tolist()


def test_times_in_ns() -> None:
    config = parse_config("name: x\ntopology: {kind: dragonfly, p: 2, a: 4, h: 2}\naddress: {chunk_bits: 4}\n"
                          "router: {model: input_output_queued}\n")  # fmt: skip
    topology = dragonfly(2, 4, 2)
    times = queued_times(config.router, topology)
    assert (times.cycle_ns, times.flit_cycles, times.crossbar_cycles) == (0.4, 80, 8)
    assert times.flight_cycles[0].tolist() == [75, 75, 125, 125, 125, 800, 800]
    assert common_cycle_ns([3.0, 4.5]) == 1.5
    with pytest.raises(LinkTimeError, match="no cycle fits all times"):
        common_cycle_ns([1000.0, 1e-6])
    text = "name: x\ntopology: {kind: dragonfly, p: 2, a: 4, h: 2}\naddress: {chunk_bits: 4}\nrouter: {%s}\n"
    config = parse_config(text % "cycle_ns: 2, link_ns: 5, global_ns: 30, end_ns: 1, host_ns: 1, flit_ns: 3")
    found = router_parameters(config, topology)
    assert np.asarray(found.link_latency_cycles)[0, 2:].tolist() == [4, 4, 4, 16, 16]
    assert (found.host_latency_cycles, found.cycles_per_flit) == (2, 2)


@pytest.mark.parametrize(
    ("router", "traffic", "reason"),
    [
        ("model: input_output_queued, va: islip", "", r"router.va: is for model=input_queued only"),
        ("crossbar_ns: 3", "", r"router.crossbar_ns: is for model=input_output_queued only"),
        ("idle_ports: flit_later", "", r"router.idle_ports: is for model=input_output_queued only"),
        ("link_ns: 3", "", r"router.link_ns: needs cycle_ns with model=input_queued"),
        ("cycle_ns: 1, link_ns: 3, link_latency_cycles: 2", "", r"router.link_ns: cannot stand together"),
        ("model: input_output_queued", "packet_flits: 2", r"traffic.packet_flits: packets must have 1 flit .*, not 2"),
        ("vcs: 2", "source: interval", r"traffic.source: interval needs router.model=input_output_queued"),
    ],
)
def test_keys_of_another_model_are_refused(router: str, traffic: str, reason: str) -> None:
    text = (
        f"name: x\ntopology: {{kind: dragonfly, p: 2, a: 4, h: 2}}\naddress: {{chunk_bits: 4}}\nrouter: {{{router}}}\n"
    )
    with pytest.raises(ConfigError, match=reason):
        parse_config(text + (f"traffic: {{{traffic}}}\n" if traffic else ""))


def test_series_over_a_step_of_the_load(tmp_path: Path) -> None:
    run = simulation("q_adaptive", shape="p: 2, a: 2, h: 2", load=0.3, queue=20)
    series = run_series(run, lambda _done, _all: None)
    bins = series.bins
    assert bins["time"].tolist() == pytest.approx([1.0 * k for k in range(1, 21)])
    assert bins["load"].tolist() == [0.3] * 10 + [0.1] * 10
    assert bins["accepted"][5:10].mean() == pytest.approx(0.3, abs=0.03)
    assert bins["accepted"][13:].mean() == pytest.approx(0.1, abs=0.02)
    assert series.distribution["packets"].sum() == run.state["packets_ejected"]
    assert [begin for begin, _ in series.converged] == [0.0, 10.0]
    assert set(series.estimates["port"]) == {2, 3, 4}
    assert len(series.estimates) == 20 * 3
    write_series(run.config, series, tmp_path / "out")
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files >= {f"{name}.{kind}" for name in ("series", "estimates", "distribution") for kind in ("csv", "png")}


def test_series_needs_an_algorithm_that_learns() -> None:
    with pytest.raises(TrafficError, match=r"simulation.series_routers: par learns no times"):
        run_series(simulation("par", shape="p: 2, a: 2, h: 2"), lambda _done, _all: None)

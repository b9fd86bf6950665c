"""Q-adaptive on groups of other shapes: proofs, most links, what is refused, links that fail."""

from typing import Any

import numpy as np
import pytest

from hopforge.model.config.load import parse_config
from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.simulation import FailedConfig
from hopforge.model.config.topology import CascadeConfig, DragonflyPlusConfig
from hopforge.model.network.build import build_net
from hopforge.model.network.settings import RouterParameters, SourceParameters, Tables, router_parameters
from hopforge.model.routing import ROUTING, RoutingError, RoutingPlan
from hopforge.model.routing.dragonflies.group_learning import first_estimates
from hopforge.model.routing.dragonflies.group_ways import LAST, MASKS
from hopforge.model.routing.proof.deadlock import DeadlockError, check_routing
from hopforge.model.topology import Topology, build
from hopforge.model.topology.failed import without_failed
from hopforge.model.topology.groups import links_of_groups, router_groups
from hopforge.model.topology.parallel_links import group_links
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.run.time_series import run_series
from hopforge.sim.traffic import TrafficError, prepare_traffic

#: kind → classes, most links
LIMITS = {"dragonfly_plus": (2, 6), "cascade": (3, 7)}


def leaves_and_spines(leaves: int, spines: int, h: int, p: int, g: int | None = None) -> Topology:
    shape = {"leaves": leaves, "spines": spines, "h": h, "hosts_per_router": p, "g": g}
    return build(DragonflyPlusConfig(kind="dragonfly_plus", **shape), AddressConfig())


def grids(sizes: tuple[int, int], h: int, p: int, **more: Any) -> Topology:
    return build(CascadeConfig(kind="cascade", sizes=sizes, h=h, hosts_per_router=p, **more), AddressConfig())


def prove(topology: Topology, plan: RoutingPlan, vcs: int) -> int:
    tables = Tables(plan.table, plan.memory, max_candidates=plan.max_candidates, inject_mask=plan.inject_mask)
    state = build_net(topology, RouterParameters(vcs=vcs), SourceParameters(), tables, 1)
    return check_routing(topology, plan, state, "q_adaptive")


@pytest.mark.parametrize("links", ["own_first", "hash"])
@pytest.mark.parametrize(
    "topology",
    [
        leaves_and_spines(2, 2, 1, 1),
        leaves_and_spines(3, 2, 2, 2, 3),  # two links for each pair of groups
        leaves_and_spines(2, 3, 1, 1, 2),  # no intermediate group
        leaves_and_spines(1, 1, 2, 1),
        grids((2, 2), 1, 1),
        grids((3, 2), 1, 2, links=(1, 2), g=4),  # parallel links of all kinds
        grids((3, 3), 1, 1, g=3, arrangement="palmtree"),  # some routers without global links
        grids((2, 1), 1, 1, g=2),
        grids((3, 2), 1, 1, g=1),  # nothing but a group
    ],
)
def test_all_dependencies_are_acyclic(topology: Topology, links: str) -> None:
    least, _ = LIMITS[topology.kind]
    for vcs in (least, least + 3):
        assert prove(topology, ROUTING["q_adaptive"](topology, vcs, {"links": links}), vcs) > 0


def test_a_planted_cycle_is_found() -> None:
    """With one class a packet that came down in an intermediate group may wait for one that goes up there."""
    topology = leaves_and_spines(2, 2, 1, 1)
    plan = ROUTING["q_adaptive"](topology, 2, {})
    table = plan.table.copy()
    masks = int(table[MASKS])
    assert table[masks : masks + 2].tolist() == [1, 2]
    table[masks + 1] = 1
    plan.table[:] = table
    with pytest.raises(DeadlockError, match="can deadlock"):
        prove(topology, plan, 2)
    assert table[LAST] == 1


def simulation(
    kind: str, topology: str, more: str = "", *, vcs: int, load: float = 0.9, failed: str = ""
) -> Simulation:
    text = f"""{failed}
name: x
topology: {{kind: {kind}, {topology}}}
router: {{model: input_output_queued, vcs: {vcs}, buffer_flits: 2, output_buffer_flits: 1}}
routing: {{algorithm: q_adaptive, epsilon: 0.3}}
traffic: {{source: interval, pattern: adversarial}}
simulation: {{load: {load}, deadlock_cycles: 200, measure_us: 20, series_bins: 20, series_routers: [0, 2]{more}}}
"""
    return Simulation(parse_config(text), load, 3)


SHAPES = {
    "dragonfly_plus": "leaves: 2, spines: 2, h: 2, hosts_per_router: 2",
    "cascade": "sizes: [3, 2], links: [1, 2], h: 1, hosts_per_router: 2",
}


@pytest.mark.parametrize("kind", SHAPES)
def test_ways_are_short_and_nothing_is_lost_at_full_load_with_tiny_queues(kind: str) -> None:
    classes, most = LIMITS[kind]
    run = simulation(kind, SHAPES[kind], vcs=classes)
    longest = 0
    for _ in range(400):
        run.reset_measures()
        run.advance(80)
        run.check_conservation()
        longest = max(longest, int(run.state["packet"]["hops"].max()))
    assert run.state["packets_ejected"] > 200
    assert longest - 1 == most  # `hops` counts routers
    assert run.state["packets_dropped"] == 0


@pytest.mark.parametrize("kind", SHAPES)
def test_wormhole_routers_deliver_everything(kind: str) -> None:
    """Packets of several flits, classes of several channels, full load."""
    text = f"""
name: x
topology: {{kind: {kind}, {SHAPES[kind]}}}
router: {{vcs: 6, buffer_flits: 2, global_latency_cycles: 7}}
routing: {{algorithm: q_adaptive, epsilon: 0.3}}
traffic: {{pattern: adversarial, packet_flits: 3}}
"""
    run = Simulation(parse_config(text), 0.9, 3)
    run.advance(3000)
    run.check_conservation()
    assert run.state["packets_ejected"] > 300
    assert run.state["notes"] > 300
    assert run.plan.estimates is not None


def test_global_latency_counts_on_leaves_and_spines() -> None:
    """Input-queued routers have it on links between groups, of every kind with groups."""
    text = "name: x\ntopology: {kind: dragonfly_plus, %s}\nrouter: {link_latency_cycles: 2, global_latency_cycles: 9}\n"
    config = parse_config(text % SHAPES["dragonfly_plus"])
    topology = build(config.topology, config.address)
    latency = router_parameters(config, topology).link_latency_cycles
    group = router_groups(topology)
    assert group is not None
    for r in range(topology.routers):
        for o, y in enumerate(topology.peer_router[r].tolist()):
            assert latency[r, o] == (9 if y >= 0 and group[y] != group[r] else 2)


def test_first_estimates_are_times_of_the_empty_network() -> None:
    """By hand: groups of leaves 0, 1 and spines 2, 3 with one link each; link j of group A goes to A + 1 + j."""
    topology = leaves_and_spines(2, 2, 1, 1)
    first = first_estimates(topology, 10.0, 100.0)
    assert topology.peer_router[:4].tolist() == [[-1, 2, 3], [-1, 2, 3], [0, 1, 7], [0, 1, 10]]
    # leaf 0 to group 1, whose gate is spine 2; spine 3 leads to group 2: there its spine, a leaf and the gate to 1
    assert first[0, 1].tolist() == [np.inf, 110.0, 230.0]
    assert first[2, 1].tolist() == [120.0, 120.0, 100.0]
    # spine 2 is no gate to group 2: it goes down or over group 1
    assert first[2, 2].tolist() == [120.0, 120.0, 220.0]
    assert first[3, 1].tolist() == [120.0, 120.0, 220.0]


def test_first_estimates_on_a_grid() -> None:
    """By hand: rows 0 1 and 2 3, link i of group A at router i, to group i or i + 1; router 3 has none to group 1."""
    topology = grids((2, 2), 1, 1)
    first = first_estimates(topology, 10.0, 100.0)
    assert topology.peer_router[:4].tolist() == [[-1, 1, 2, 4], [-1, 0, 3, 8], [-1, 0, 3, 12], [-1, 1, 2, 16]]
    # to group 1, whose gate is router 0; over group 2 (router 8), whose gate to 1 is router 9
    assert first[0, 1].tolist() == [np.inf, 120.0, 120.0, 100.0]
    assert first[1, 1].tolist() == [np.inf, 110.0, 130.0, 210.0]
    assert first[3, 1].tolist() == [np.inf, 120.0, 120.0, 210.0]


def test_links_of_groups_are_those_of_the_dragonfly() -> None:
    """The general list equals that of dragonflies, which other parts use."""
    config = parse_config("name: x\ntopology: {kind: dragonfly, p: 1, a: 4, h: 2, g: 5}\n")
    topology = build(config.topology, config.address)
    assert np.array_equal(links_of_groups(topology), group_links(topology))


@pytest.mark.parametrize(
    ("vcs", "options", "reason"),
    [
        (1, {}, r"router.vcs must be at least 2 for routing.algorithm q_adaptive, not 1"),
        (4, {"links": "destination"}, r"routing.links must be own_first or hash .* on dragonfly_plus, not destination"),
    ],
)
def test_settings_that_do_not_fit_are_refused(vcs: int, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(RoutingError, match=reason):
        ROUTING["q_adaptive"](leaves_and_spines(2, 2, 1, 1), vcs, options)


def test_other_networks_are_refused() -> None:
    config = parse_config("name: x\ntopology: {kind: slim_fly, q: 3}\n")
    with pytest.raises(RoutingError, match=r"needs a topology of kind dragonfly or dragonfly_plus.*, not slim_fly"):
        ROUTING["q_adaptive"](build(config.topology, config.address), 5, {})


def test_links_that_are_missed_are_refused() -> None:
    whole = leaves_and_spines(2, 2, 1, 1)
    inside = without_failed(whole, FailedConfig(links=((4, 7),)))
    with pytest.raises(RoutingError, match=r"only links between groups may fail, not that of routers 4 and 7"):
        ROUTING["q_adaptive"](inside, 4, {})
    between = without_failed(whole, FailedConfig(links=((2, 7),)))
    with pytest.raises(RoutingError, match=r"groups 0 and 1 have no link"):
        ROUTING["q_adaptive"](between, 4, {})


def test_a_spine_that_has_lost_its_global_links_is_avoided() -> None:
    """Two links for each pair of groups, one of each at each spine; a spine loses both."""
    shape = "leaves: 2, spines: 2, h: 2, hosts_per_router: 1, g: 3"
    whole = leaves_and_spines(2, 2, 2, 1, 3)
    far = [int(y) for y in whole.peer_router[3] if y > 3]
    assert len(set(far)) == 2
    failed = f"failed: {{links: {[[3, y] for y in far]}}}\n"
    run = simulation("dragonfly_plus", shape, vcs=2, failed=failed)
    run.advance(80 * 400)
    run.check_conservation()
    assert run.state["packets_ejected"] > 100
    assert run.plan.estimates is not None
    begin, (_, rows, columns) = run.plan.estimates
    table = run.plan.memory[begin:].reshape(-1, rows, columns)
    assert np.isinf(table[0, rows // 3 :, 2]).all()  # leaf 0 to spine 3
    assert np.isfinite(table[0, rows // 3 :, 1]).all()


@pytest.mark.parametrize("kind", SHAPES)
def test_series_counts_the_learned_times_that_packets_ask_for(kind: str) -> None:
    """Router 0 asks for its two hosts and for other groups, though rows of spines tell more hosts apart."""
    run = simulation(kind, SHAPES[kind], vcs=LIMITS[kind][0], load=0.3)
    series = run_series(run, lambda _done, _all: None)
    assert run.plan.estimates is not None
    begin, (routers, rows, columns) = run.plan.estimates
    groups = len(links_of_groups(run.topology))
    table = run.state["memory"][begin:].reshape(routers, groups, rows // groups, columns)
    table = table[0, 1:, :2].reshape(-1, columns)
    last = series.estimates[series.estimates["time"] == series.estimates["time"].max()]
    last = last[last["router"] == 0]
    times = [column[np.isfinite(column)] for column in table.T if np.isfinite(column).any()]
    assert len(last) == len(times) > 1
    assert last["mean"].tolist() == pytest.approx([column.mean() for column in times], rel=1e-12)
    assert last["least"].tolist() == [column.min() for column in times]


def test_links_may_fail_during_a_run() -> None:
    """Parallel global links: learned times of the ports that stay are kept, the lost one has none."""
    more = ", failures: [{links: [[2, 6]], cycle: 400, detection_cycles: 10, reprogram_cycles: 20}]"
    shape = "leaves: 2, spines: 2, h: 2, hosts_per_router: 1, g: 3"
    run = simulation("dragonfly_plus", shape, more, vcs=2, load=0.3)
    series = run_series(run, lambda _done, _all: None)
    assert set(series.estimates["router"]) == {0, 2}
    assert series.failures is not None
    run.check_conservation()
    assert run.state["packets_ejected"] > 100
    port = run.topology.peer_router[2].tolist().index(6)
    late = series.estimates[(series.estimates["time"] > 17) & (series.estimates["router"] == 2)]
    assert port not in set(late["port"])
    assert len(set(late["port"])) == 3


def test_adversarial_traffic_goes_to_the_next_group() -> None:
    topology = leaves_and_spines(2, 2, 1, 2)
    plan = prepare_traffic(topology, "adversarial", {"shift": 2}, np.random.default_rng(1))
    index = plan.table[: 2 * topology.hosts].reshape(-1, 2).tolist()
    lists = [plan.table[first:last].tolist() for first, last in index]
    assert lists == [[(h // 4 + 2) % 3 * 4 + k for k in range(4)] for h in range(12)]
    config = parse_config("name: x\ntopology: {kind: hyperx, sizes: [2, 2]}\n")
    with pytest.raises(TrafficError, match=r"needs a topology of kind dragonfly, .* or cascade, not hyperx"):
        prepare_traffic(build(config.topology, config.address), "adversarial", {}, np.random.default_rng(1))


def test_lost_links_inside_a_grid_are_refused_and_parallel_ones_replace_them() -> None:
    whole = grids((2, 2), 1, 1, links=(1, 2))
    with pytest.raises(RoutingError, match=r"only links between groups may fail, not that of routers 4 and 5, which"):
        ROUTING["q_adaptive"](without_failed(whole, FailedConfig(links=((4, 5),))), 3, {})
    port = whole.peer_router[0].tolist().index(2)
    left = without_failed(whole, FailedConfig(ports=((0, port),)))
    assert (left.peer_router[0] == 2).sum() == 1
    assert prove(left, ROUTING["q_adaptive"](left, 3, {}), 3) > 0
    with pytest.raises(RoutingError, match=r"router.vcs must be at least 3 for routing.algorithm q_adaptive, not 2"):
        ROUTING["q_adaptive"](whole, 2, {})

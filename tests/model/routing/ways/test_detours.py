"""Minimal adaptive routing, Valiant and UGAL on any network: classes, proof, ways, and what is refused."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.network.build import build_net
from hopforge.model.network.core.kinds import ACTIVE
from hopforge.model.network.core.state import NetState
from hopforge.model.network.settings import SourceParameters, Tables
from hopforge.model.routing import RoutingError, RoutingPlan
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.model.routing.contract.fields_read import fields_read
from hopforge.model.routing.proof.deadlock import DeadlockError, check_routing
from hopforge.model.routing.proof.reachable import Exploration
from hopforge.model.routing.ways.all_pairs import find_ways
from hopforge.model.routing.ways.channel_classes import SCHEMES
from hopforge.model.routing.ways.survey import rising_channels, survey
from hopforge.model.routing.ways.table import CLASS, MASK
from hopforge.model.topology import Topology, build
from hopforge.model.topology.configured import network_topology
from hopforge.model.topology.failed import without_failed
from hopforge.model.topology.routing_table import distances
from hopforge.sim.run.flit_networks import flit_router_parameters
from hopforge.sim.run.run_words import class_rows
from hopforge.sim.run.simulation import Simulation

POLARFLY = "{kind: polarfly, q: 3}"
SLIM_FLY = "{kind: slim_fly, q: 3, hosts_per_router: 2}"
HYPERX = "{kind: hyperx, sizes: [3, 3], hosts_per_router: 2}"
PLUS = "{kind: dragonfly_plus, hosts_per_router: 2, leaves: 2, spines: 2, h: 1}"
TREE = "{kind: fat_tree, k: 2, n: 2}"
CLOS = "{kind: clos, hosts_per_router: 3, pods: 2, leaves: 2, middles: 2, roots: 2}"
RANDOM = "{kind: random_regular, routers: 14, degree: 3, seed: 2, hosts_per_router: 2}"
TORUS = "{kind: torus, radices: [4, 3]}"


def config_of(topology: str, routing: str, vcs: int, more: str = "") -> Config:
    return parse_config(
        f"name: x\ntopology: {topology}\nrouting: {{{routing}}}\nrouter: {{vcs: {vcs}, buffer_flits: 2}}\n{more}\n"
    )


def made(config: Config) -> tuple[Topology, RoutingPlan]:
    topology = build(config.topology, config.address)
    return topology, routing_plan(config, topology)


def built(config: Config) -> tuple[Topology, RoutingPlan, NetState]:
    topology, plan = made(config)
    tables = Tables(routing=plan.table, max_candidates=plan.max_candidates, memory=plan.memory)
    return topology, plan, build_net(
        topology, flit_router_parameters(config, topology, plan), SourceParameters(), tables, 1
    )  # fmt: skip


def proved(config: Config) -> int:
    topology, plan, state = built(config)
    return check_routing(topology, plan, state, config.routing.algorithm)


#: (network, algorithm, more of section routing, classes of the definition)
SHIPPED = [
    (POLARFLY, "minimal", "", 2), (POLARFLY, "valiant", "", 3), (POLARFLY, "ugal", "classes: hops", 4),
    (POLARFLY, "valiant_compact", "", 3), (POLARFLY, "ugal_compact", "", 3), (SLIM_FLY, "ugal_global", "", 3),
    (HYPERX, "minimal", "", 2), (HYPERX, "valiant", "ways: one", 2), (HYPERX, "minimal", "ways: one", 1),
    (PLUS, "minimal", "", 1), (PLUS, "ugal", "", 2), (CLOS, "minimal", "", 1), (CLOS, "valiant", "", 2),
    (CLOS, "valiant", "ways: one", 2), (PLUS, "ugal", "ways: one", 2), (TREE, "ugal_global", "ways: one", 2),
    (RANDOM, "ugal", "ways: tables", None), (RANDOM, "minimal", "", None), (TORUS, "ugal", "", None),
    (PLUS, "valiant", "over: groups", 2), (SLIM_FLY, "ugal", "over: groups", 3),
    (HYPERX, "dimwar", "", 2), (HYPERX, "omniwar", "", 4), (HYPERX, "omniwar", "deroutes: 1", 3),
    (HYPERX, "dal", "", 4), ("{kind: dragonfly, p: 1, a: 3, h: 1}", "valiant", "", None),
]  # fmt: skip


@pytest.mark.parametrize(("network", "algorithm", "more", "classes"), SHIPPED)
def test_fewest_classes_are_proved_and_one_less_is_refused(
    network: str, algorithm: str, more: str, classes: int | None
) -> None:
    routing = f"algorithm: {algorithm}" + (f", {more}" if more else "")
    tables = "tables: {layers: hop_indexed}" if "tables" in more else ""
    _, plan = made(config_of(network, routing, 12, tables))
    need = int(plan.words.split()[0])
    assert classes in (None, need)
    assert proved(config_of(network, routing, need, tables)) > 0
    if need > 1:
        with pytest.raises(RoutingError, match=rf"router.vcs must be at least {need} for .* it needs {need} classes"):
            made(config_of(network, routing, need - 1, tables))


@pytest.mark.parametrize(
    ("network", "routing", "vcs"),
    [
        (POLARFLY, "ugal", 3), (POLARFLY, "ugal_compact", 4), (POLARFLY, "valiant_compact, classes: hops", 4),
        (CLOS, "ugal_global", 2), (SLIM_FLY, "ugal, over: neighbours", 3),
        (HYPERX, "ugal, over: neighbours, ways: one", 2),
        (PLUS, "valiant, over: groups", 3), (HYPERX, "dimwar", 2), (HYPERX, "omniwar", 4), (HYPERX, "dal", 4),
        (RANDOM, "ugal, ways: tables", 6), (RANDOM, "valiant, ways: one", 6), (HYPERX, "ugal, ways: one", 2),
    ],
)  # fmt: skip
def test_the_second_relation_gives_all_that_the_first_one_does(network: str, routing: str, vcs: int) -> None:
    """What packets wait for in a run at full load is among the dependencies that were proved free of cycles."""
    more = "traffic: {packet_flits: 2}\ntables: {layers: hop_indexed}"
    config = config_of(network, f"algorithm: {routing}", vcs, more)
    topology, plan, state = built(config)
    hosts, length = list(range(topology.hosts)), np.ones(1, np.int64)
    every = Exploration(plan, plan.every, state, fields_read(plan.every), hosts, length)
    assert every.walk() is None
    proved_edges = set(zip(*map(np.ndarray.tolist, every.edges()), strict=True))
    run = Simulation(config, 1.0, 5, check=False)
    channels, inputs = len(run.state["output_vc"]), len(run.state["input_vc"])
    seen = set()
    for _ in range(300):
        run.advance(2)
        vcs_in = run.state["input_vc"]
        active = vcs_in[(vcs_in["state"] == ACTIVE) & (vcs_in["credit_to"] < channels)]
        onward = active[run.state["output_vc"]["target"][active["out_vc"]] < inputs]
        seen |= set(zip(onward["credit_to"].tolist(), onward["out_vc"].tolist(), strict=True))
    assert seen
    assert seen <= proved_edges


def test_ways_without_classes_are_not_proved() -> None:
    """The proof does not believe the scheme: with one class on all VCs it finds a cycle."""
    config = config_of(SLIM_FLY, "algorithm: minimal", 2)
    topology, plan = made(config)
    table = plan.table.copy()
    masks = int(table[MASK])
    assert table[masks : masks + 2].tolist() == [1, 2]
    table[masks : masks + 2], table[table[CLASS] : table[CLASS] + 2] = 3, 0
    state = build_net(
        topology, flit_router_parameters(config, topology, plan), SourceParameters(),
        Tables(routing=table, max_candidates=plan.max_candidates), 1,
    )  # fmt: skip
    with pytest.raises(DeadlockError, match="cycle of channels"):
        check_routing(topology, plan, state, "minimal")


#: networks in which no router is passed by all hosts, with one way: in the study
ALIKE = itertools.product((PLUS, HYPERX, SLIM_FLY, RANDOM), ("one",))


@pytest.mark.parametrize("classes", [None, *SCHEMES])
@pytest.mark.parametrize(("network", "ways"), [
    *itertools.product((CLOS, TREE, "{kind: fat_tree, k: 2, n: 1}"), ("all", "one")),
    *((network, "all") for network in (PLUS, HYPERX, SLIM_FLY, RANDOM)),
    *(pytest.param(*each, marks=pytest.mark.study) for each in ALIKE),
])  # fmt: skip
def test_every_scheme_is_proved_or_refused_with_the_classes_of_others(
    network: str, ways: str, classes: str | None
) -> None:
    """A channel on which no way begins is none that a packet could wait for, or find no way behind."""
    for algorithm in ("minimal", "valiant", "ugal", "ugal_global"):
        more = f", classes: {classes}" if classes else ""
        config = config_of(network, f"algorithm: {algorithm}, ways: {ways}{more}", 12)
        try:
            made(config)
        except RoutingError as refused:
            assert classes == "phases"
            assert "channels wait for themselves" in str(refused)
        else:
            assert proved(config) > 0


def run_of(network: str, routing: str, vcs: int, load: float = 0.9, more: str = "") -> Simulation:
    run = Simulation(config_of(network, routing, vcs, more), load, 3)
    run.advance(1500)
    run.check_conservation()
    assert (run.state["host"]["flits_received"] > 0).all()
    assert int(run.state["packets_dropped"]) == 0
    return run


@pytest.mark.parametrize(
    ("network", "algorithm", "vcs", "most"),
    [(SLIM_FLY, "ugal", 3, 4), (POLARFLY, "ugal_compact", 3, 4), (POLARFLY, "valiant_compact", 3, 4),
     (HYPERX, "omniwar", 4, 4), (HYPERX, "dal", 4, 4), (HYPERX, "dimwar", 2, 4), (PLUS, "ugal_global", 2, 6),
     (CLOS, "minimal", 1, 4)],
)  # fmt: skip
def test_overload_is_delivered_within_the_longest_way(network: str, algorithm: str, vcs: int, most: int) -> None:
    run = run_of(network, f"algorithm: {algorithm}", vcs)
    longest = 0
    for _ in range(100):
        run.advance(10)
        longest = max(longest, int(run.state["packet"]["hops"].max()))
    assert 2 < longest <= most + 1  # routers


def test_mean_hops_of_valiant_are_those_of_the_definition() -> None:
    """Every pair and every intermediate router, by breadth-first search; a packet ends where it meets its destination.

    Minimal paths of a PolarFly are unique.
    """
    run = run_of(POLARFLY, "algorithm: valiant", 3, 0.1)
    run.advance(20000)
    topology = run.topology
    far = distances(topology)
    total: list[float] = []
    for a, b in itertools.product(range(topology.routers), repeat=2):
        if a == b:
            total.append(0.0)
            continue
        others = [v for v in range(topology.routers) if v not in (a, b)]
        ways = [far[a, b] if far[a, b] + far[b, v] == far[a, v] else far[a, v] + far[v, b] for v in others]
        total.append(float(np.mean(ways)))
    assert run.state["hops_sum"] / run.state["measured"] == pytest.approx(1 + np.mean(total), rel=0.01)


@pytest.mark.parametrize(
    ("network", "routing", "message"),
    [
        (HYPERX, "algorithm: ugal, classes: phases", "routing.classes: phases is not for .*turns would need 3 classes"),
        (HYPERX, "algorithm: ugal_compact", "needs a topology of kind polarfly, not hyperx"),
        (POLARFLY, "algorithm: omniwar", "needs a topology of kind hyperx or fully_connected, not polarfly"),
        (POLARFLY, "algorithm: ugal, links: hash", "routing.links: hash is not for routing.algorithm ugal"),
        (POLARFLY, "algorithm: ugal, over: groups", "routing.over: groups needs a topology of kind dragonfly,"),
        (SLIM_FLY, "algorithm: ugal, over: groups, ways: one", "routing.over: groups needs routing.ways: all, not one"),
        (CLOS, "algorithm: ugal, over: neighbours", "routing.over: neighbours needs hosts at every router; router "),
        (POLARFLY, "algorithm: ugal, root: 99", "routing.root must be a router from 0 to 12, not 99"),
        (HYPERX, "algorithm: omniwar, deroutes: 3", "router.vcs must be at least 5 .* 2 dimensions and 3 deroutes"),
    ],
)
def test_what_cannot_be_is_refused(network: str, routing: str, message: str) -> None:
    with pytest.raises(RoutingError, match=message):
        made(config_of(network, routing, 4))


def test_without_knowledge_of_other_routers_there_is_no_global_ugal() -> None:
    more = "traffic: {packet_flits: 1}"
    text = f"name: x\ntopology: {POLARFLY}\nrouting: {{algorithm: ugal_global}}\n{more}\n"
    config: Any = parse_config(text + "router: {model: input_output_queued, vcs: 4}\n")
    with pytest.raises(RoutingError, match=r"ugal_global needs router\.model: input_queued, not input_output_queued"):
        made(config)


def test_a_way_of_more_than_255_links_is_refused() -> None:
    mesh = "{kind: mesh, radices: [256, 2]}"
    config = config_of(mesh, "algorithm: minimal, ways: one", 2, "address: {chunk_bits: 8}")
    with pytest.raises(RoutingError, match="minimal takes ways of at most 255 links, not 256"):
        made(config)


@pytest.mark.parametrize(("network", "algorithm"), [(SLIM_FLY, "ugal"), (HYPERX, "valiant"), (POLARFLY, "ugal_global")])
def test_detours_over_neighbours_begin_next_to_the_source(network: str, algorithm: str) -> None:
    """With diameter 2 no packet has more than three links; every intermediate router is a neighbour of the source."""
    run = Simulation(config_of(network, f"algorithm: {algorithm}, over: neighbours", 4), 0.9, 3)
    detours, longest = 0, 0
    for _ in range(300):
        run.advance(5)
        packets = run.state["packet"]
        longest = max(longest, int(packets["hops"].max()))
        for packet in packets[(packets["user1"] == 1) & (packets["via"] >= 0)]:
            home, there = run.topology.host_router[packet["src"]], run.topology.host_router[packet["dst"]]
            assert packet["via"] in run.topology.peer_router[home] and packet["via"] not in (home, there)
            detours += 1
    assert detours > 100
    assert longest == 4  # routers
    run.check_conservation()


# ---- switches that have failed --------------------------------------------------------------------------------------


@pytest.mark.parametrize("spread", ["", ", spread: flow", ", spread: packet", ", spread: entropy"])
def test_minimal_goes_around_a_failed_switch(spread: str) -> None:
    """A ring of six without router 0 is a line: from 1 to 5 all five routers. What is sent to host 0 is dropped."""
    entropy = "entropy: {per: packet}, " if "entropy" in spread else ""
    config = config_of(
        "{kind: torus, radices: [6]}", f"algorithm: minimal{spread}", 2,
        f"failed: {{switches: [0]}}\ntraffic: {{{entropy}pattern: destinations, destinations: [3, 5, 0, 0, 0, 1]}}\n"
        "simulation: {warmup_cycles: 100, min_cycles: 1000, max_cycles: 1000}",
    )  # fmt: skip
    found = Simulation(config, 0.2, 1).run()
    assert found.hops == 5
    assert found.packets > 100
    assert found.dropped_packets > 100


@pytest.mark.parametrize("missing", [0, 5, 11])
def test_a_survey_passes_by_a_failed_switch(missing: int, tmp_path: Path) -> None:
    """It is that of the network without the switch, whose routers move up by one."""
    whole = config_of(TORUS, "algorithm: minimal", 6, f"failed: {{switches: [{missing}]}}")
    failed = without_failed(network_topology(whole), whole.failed)
    rest = np.delete(np.arange(failed.routers), missing)
    number = np.searchsorted(rest, failed.peer_router)
    links = [(r, p) for r, p in np.argwhere(failed.peer_router >= 0).tolist() if failed.peer_router[r, p] > r]
    (tmp_path / "g.txt").write_text("".join(f"{np.searchsorted(rest, r)} {number[r, p]}\n" for r, p in links))
    without = network_topology(config_of(f"{{kind: edge_list, file: {tmp_path / 'g.txt'}}}", "algorithm: minimal", 6))
    first, last = int(rest[0]), 0
    here = survey(failed, find_ways(failed, "all", "x", {}), rising_channels(failed, first))
    there = survey(without, find_ways(without, "all", "x", {}), rising_channels(without, last))
    assert (here.turns[np.ix_(rest, rest)] == there.turns).all()
    assert (here.turned[rest] == there.turned).all()
    assert (here.passed[rest] == there.passed).all()
    assert there.turned.max() > 0


@pytest.mark.parametrize(("network", "routing", "vcs", "hops"), [
    (SLIM_FLY, "algorithm: valiant", 4, 4), (SLIM_FLY, "algorithm: valiant", 3, None),
    (SLIM_FLY, "algorithm: minimal", 2, 2), (SLIM_FLY, "algorithm: valiant, classes: turns", 4, None),
    (CLOS, "algorithm: valiant", 16, None), (HYPERX, "algorithm: valiant, ways: one", 8, None),
    (SLIM_FLY, "algorithm: ugal", 4, None),
])  # fmt: skip
def test_another_scheme_that_fits_is_named(network: str, routing: str, vcs: int, hops: int | None) -> None:
    """Two links a way: 2 classes for minimal and 4 with a detour, if a link has one each."""
    config = config_of(network, routing, vcs)
    advice = made(config)[1].advice
    assert bool(advice) == (hops is not None)
    if hops is not None:
        assert advice.startswith(f"routing.classes: hops would need {hops} of {vcs} virtual channels")
        assert made(config_of(network, f"{routing}, classes: hops", vcs))[1].words.startswith(f"{hops} of {vcs}")
    assert class_rows({"": config}) == ([("classes", advice)] if advice else [])
    two = class_rows({"a": config, "b": config_of(CLOS, routing, vcs)}) if hops is not None else []
    assert two == ([("classes", f"a: {advice}")] if advice else [])

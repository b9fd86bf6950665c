"""Routing functions as tables of routers: networks of golden routers with them against the simulator, flit by flit."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.errors import UserError
from hopforge.model.lookup.params import LookupParams
from hopforge.model.network.core.candidates import candidate
from hopforge.model.network.core.kinds import RECEIVED
from hopforge.model.router.configured import network_links, network_params
from hopforge.model.router.factor import compile_tables
from hopforge.model.router.flit import PortInputs
from hopforge.model.router.links import End, topology_hosts
from hopforge.model.router.network import HostModel, NetworkModel, Packet
from hopforge.model.router.tables import RouterTables
from hopforge.model.routing import RoutingError, RoutingPlan, relation
from hopforge.model.topology import Topology, build
from hopforge.sim.run.packet_script import draw_packets
from hopforge.sim.run.simulation import Simulation

TORUS = "{kind: torus, radices: [4, 4]}"
TREE = "{kind: fat_tree, k: 2, n: 2}"
DRAGONFLY = "{kind: dragonfly, p: 1, a: 2, h: 1, g: 3}"
SEVERAL = "{kind: dragonfly, p: 2, a: 2, h: 2, g: 3}"


def configure(
    topology: str, routing: str, router: str = "vcs: 2", *, traffic: str = "packet_range: [1, 4]", more: str = ""
) -> Config:
    return parse_config(
        f"name: test\ntopology: {topology}\nrouting: {{algorithm: {routing}}}\nrouter: {{{router}}}\n"
        f"traffic: {{{traffic}}}\n{more}\n"
    )


def tables_of(config: Config, topology: Topology | None = None) -> tuple[Topology, RouterTables]:
    run = Simulation(config, 0.1, 1, topology, check=False)
    return run.topology, compile_tables(run.topology, run.plan, config.router.vcs, config.routing.algorithm)


def delivered(config: Config, load: float, cycles: int, drained: int) -> tuple[list[Any], list[Any]]:
    """(cycle, host, packet, kind) of all flits that arrive: in the simulator, and in golden routers."""
    packets = draw_packets(Simulation(config, load, 3), cycles)
    run = Simulation(config, load, 3, script=packets, log_events=1 << 18)
    run.advance(drained)
    assert run.state.flits_in_flight == 0
    rows = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])].tolist()
    want = [(cycle, host, packet, flit) for cycle, kind, host, _, packet, flit in rows if kind == RECEIVED]
    assert len(want) == int(packets[3].sum())

    topology, tables = tables_of(config)
    params = network_params(config, topology, tables, width_bits=80, tag_bits=16)
    network = NetworkModel(params, network_links(config, topology))
    queues: list[list[Packet]] = [[] for _ in range(topology.hosts)]
    for host, created, dst, flits in zip(*(column.tolist() for column in packets), strict=True):
        queues[host].append(Packet(created, dst | host << 24 | len(queues[host]) << 48 | flits << 64, flits))
    ends = topology_hosts(topology)
    latency = config.router.host_latency_cycles
    models = [HostModel(params[end.router], queue, latency) for end, queue in zip(ends, queues, strict=True)]
    for cycle in range(max(row[0] for row in want) + 20):
        visible = network.visible()
        outside: dict[End, PortInputs] = {}
        for model, end in zip(models, ends, strict=True):
            outside[end] = model.step(cycle, visible[end.router][end.port])
        network.step(outside)
    got = []
    for host, model in enumerate(models):
        current: dict[int, int] = {}
        for cycle, flit in model.received:
            if flit.is_head:
                current[flit.vc] = (flit.data >> 24 & 0xFFFFFF) << 40 | flit.data >> 48 & 0xFFFF
            got.append((cycle, host, current[flit.vc], flit.kind))
    return sorted(want), sorted(got)


NETWORKS = {
    "mesh": ("{kind: mesh, radices: [3, 2]}", "dor", "vcs: 2, buffer_flits: 3"),
    "concentrated torus": ("{kind: torus, radices: [4, 3], hosts_per_router: 2}", "dor", "vcs: 2, buffer_flits: 4"),
    "torus with rings of 2": ("{kind: torus, radices: [5, 2]}", "dor", "vcs: 3, va: wavefront, link_latency_cycles: 2"),
    "torus, fixed classes": ("{kind: torus, radices: [4, 3]}", "dor, vc_rule: fixed", "vcs: 2, rc_cycles: 1"),
    "adaptive mesh": ("{kind: mesh, radices: [3, 3]}", "star_channel", "vcs: 2, buffer_flits: 4, vc_release: credits"),
    "adaptive torus": ("{kind: torus, radices: [4, 3]}", "star_channel", "vcs: 4, buffer_flits: 4, switching: vct"),
    "tree": (TREE, "d_mod_k", "vcs: 1, buffer_flits: 4, sa: wavefront"),
    "adaptive tree": (TREE, "nca", "vcs: 2, buffer_flits: 4, speculation: true"),
    "dragonfly": (DRAGONFLY, "dragonfly_min", "vcs: 2, link_latency_cycles: 1, global_latency_cycles: 3"),
    "dragonfly, classes to the host": (DRAGONFLY, "dragonfly_min, ejection: class", "vcs: 4, host_latency_cycles: 2"),
    "dragonfly, one channel a class": (DRAGONFLY, "dragonfly_min, class_vcs: one", "vcs: 3, buffer_flits: 4"),
    "dragonfly, several links": (SEVERAL, "dragonfly_min", "vcs: 2, buffer_flits: 4"),
    "dragonfly, links by destination": (SEVERAL, "dragonfly_min, links: destination", "vcs: 2, buffer_flits: 4"),
    "shortest": (DRAGONFLY, "shortest", "vcs: 3, buffer_flits: 4, vc_release: credits"),
    "up and down": (TORUS, "up_down, root: 5", "vcs: 2, credit_delay_cycles: 1"),
    "shortest with an escape": (TORUS, "shortest_escape", "vcs: 3, buffer_flits: 4, vc_release: credits"),
}


@pytest.mark.parametrize("name", list(NETWORKS))
@pytest.mark.thinned(2)
def test_golden_routers_with_the_tables_are_the_simulator(name: str) -> None:
    want, got = delivered(configure(*NETWORKS[name]), load=0.45, cycles=120, drained=900)
    assert len(want) > 100
    assert got == want


@pytest.mark.parametrize(
    "routing", ["up_down", "tables", "shortest_escape"]
)
def test_parallel_links(tmp_path: Path, routing: str) -> None:
    (tmp_path / "net.txt").write_text("0 1\n0 1\n0 1\n1 2\n1 2\n0 2\n")
    network = f"{{kind: edge_list, file: {str(tmp_path / 'net.txt')!r}, hosts_per_router: 3}}"
    router = "vcs: 2, buffer_flits: 4, vc_release: credits"
    want, got = delivered(configure(network, routing, router), load=0.4, cycles=120, drained=900)
    assert len(want) > 100
    assert got == want


@pytest.mark.parametrize("scheme", ["loren, t_max: 9", "cowen"])
def test_irregular_tables_with_acro(scheme: str) -> None:
    """16 switches; a packet's VC shows its layer, and the rule of a hop says whether it stays or goes one lower."""
    config = configure(
        "{kind: layout_random, n: 4, degree: 4, length: 2, seed: 1}", "tables", "vcs: 2, buffer_flits: 4",
        more=f"tables: {{scheme: {scheme}, layers: acro}}",
    )  # fmt: skip
    want, got = delivered(config, load=0.3, cycles=120, drained=900)
    assert len(want) > 400
    assert got == want


@pytest.mark.study
@pytest.mark.parametrize("switching", ["wormhole", "vct"])
def test_a_dragonfly_of_36_routers(switching: str) -> None:
    config = configure(
        "{kind: dragonfly, p: 2, a: 4, h: 2}", "dragonfly_min", f"vcs: 2, buffer_flits: 6, switching: {switching}"
    )
    want, got = delivered(config, load=0.5, cycles=200, drained=1200)
    assert len(want) > 5000
    assert got == want


def test_a_mesh_needs_no_rule_and_its_table_is_dimension_order() -> None:
    topology, tables = tables_of(configure("{kind: mesh, radices: [3, 3]}", "dor"))
    centre = 4  # ports: 0 host, 1 +x, 2 −x, 3 +y, 4 −y
    assert tables.ports[centre].tolist() == [1 << port for port in (2, 4, 1, 2, 0, 1, 2, 3, 1)]
    params = network_params(configure("{kind: mesh, radices: [3, 3]}", "dor"), topology, tables)
    assert params[centre].vc_rule == ()
    assert len(params[centre].routes) == topology.hosts


def test_the_dateline_is_in_the_rule() -> None:
    """Ring of 4: from the wrap-around link on the upper VC, on it too (docs: the other half from the wrap on)."""
    _, tables = tables_of(configure("{kind: torus, radices: [4]}", "dor"))
    plus, minus = 1, 2
    assert [rule.shape for rule in tables.vc_rule] == [(1, 3, 2, 3)] * 4
    # In from − (a packet going +): router 0 has just been reached over the wrap 3 → 0.
    assert tables.vc_rule[0][0, minus, 0, plus] == 2
    assert tables.vc_rule[2][0, minus, 0, plus] == 1
    # Hosts start below.
    assert tables.vc_rule[0][0, 0, :, plus].tolist() == [1, 1]
    # Nothing enters router 2 on the upper VC and goes on: a way is at most 2 hops long.
    assert tables.vc_rule[2][0, minus, 1, plus] == 0


def test_the_outputs_of_a_lookup() -> None:
    config = configure("{kind: mesh, radices: [2, 2]}", "dor", "vcs: 2, rc_cycles: 3")
    topology, tables = tables_of(config)
    assert tables.lookup_outputs(0) == [0, 1, 3, 1]
    lookup = LookupParams(entries=16, ways=2)
    params = network_params(config, topology, tables, lookup=lookup)
    assert {(p.rc, p.routes, p.output_kind, p.rc_cycles) for p in params} == {("lookup", (), "port", 0)}
    config = configure(TREE, "nca", more="lookup: {cache: {output_kind: port_set}}")
    topology, tables = tables_of(config)
    assert tables.lookup_outputs(0)[:3] == [1, 2, 0b1100]
    assert network_params(config, topology, tables, lookup=lookup)[0].output_kind == "port_set"
    _, tables = tables_of(configure(TORUS, "star_channel", "vcs: 3, vc_release: credits"))
    with pytest.raises(RoutingError, match="router 0 has an escape for host 1, which a lookup cannot give"):
        tables.lookup_outputs(0)


def test_links_have_their_latencies() -> None:
    config = configure(DRAGONFLY, "dragonfly_min", "vcs: 2, link_latency_cycles: 2, global_latency_cycles: 5")
    links = network_links(config, build(config.topology, config.address))
    # ports: 0 host, 1 local, 2 global
    assert {(link.source.port, link.latency_cycles) for link in links} == {(1, 2), (2, 5)}


def test_the_largest_number_of_classes() -> None:
    """A destination's mask of VCs is its number: as many classes as masks."""

    def by_host(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
        if packet.dst == router:
            out[0] = candidate(0, 1)
        else:
            out[0] = candidate(1 if packet.dst > router else 2, packet.dst % table[0] + 1)
        return 1

    config = parse_config("name: line\ntopology: {kind: mesh, radices: [18]}\naddress: {chunk_bits: 6}\n")
    topology = build(config.topology, config.address)
    tables = compile_tables(topology, RoutingPlan(relation(by_host), np.array([16], np.int32)), 5, "mine")
    # + needs 16 masks for 1 … 17, − as many for 0 … 16; in the middle 7 destinations of + share the classes of 10 of −.
    assert [tables.vc_rule[router].shape[0] for router in (0, 17, 10)] == [16, 16, 10]
    with pytest.raises(RoutingError, match="router 0 needs 17 classes of destinations, more than 16"):
        compile_tables(topology, RoutingPlan(relation(by_host), np.array([17], np.int32)), 5, "mine")


REFUSED = {
    "random": ("dor, ties: random", "it draws random numbers"),
    "via": ("valiant", "it sends packets over a router drawn at the source"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_refused(name: str) -> None:
    algorithm, reason = REFUSED[name]
    with pytest.raises(RoutingError, match=f"cannot be a table of a router: {reason}"):
        tables_of(configure(TORUS, algorithm, "vcs: 4"))


def test_links_of_an_order_of_their_own_are_refused() -> None:
    """A table holds a set of ports, of which the lowest comes first."""
    with pytest.raises(RoutingError, match=r"increasing order, as routing.links: adaptive does \(take own_first or"):
        tables_of(configure(SEVERAL, "dragonfly_min, links: adaptive", "vcs: 2"))


def plan_of(kind: str) -> RoutingPlan:
    """Routing on a line of four routers (port 0 host, 1 +, 2 −) that a table cannot give."""

    def route(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
        if packet.dst == router:
            out[0] = candidate(0, 3)
            return 1
        port = 1 if packet.dst > router else 2
        if table[0] == 0:  # a phase that the VC does not show
            if in_port == 0:
                packet.phase = router
            out[0] = candidate(port, 3 if packet.phase == 0 else 1)
            return 1
        if table[0] == 1:  # the source
            out[0] = candidate(port, 1 if packet.src == 0 else 2)
            return 1
        if table[0] == 2:  # something in the packet
            packet.user0 = 1
        if table[0] == 3:  # bubbles
            out[0] = candidate(port, 3, 0, 2)
            return 1
        if table[0] == 4:  # order
            out[0] = candidate(2, 3)
            out[1] = candidate(1, 3)
            return 2
        if table[0] == 5:  # levels
            out[0] = candidate(port, 1, 0)
            out[1] = candidate(port, 2, 1)
            out[2] = candidate(port, 3, 2)
            return 3
        if table[0] == 6:  # the escape depends on the VC
            out[0] = candidate(port, 1, 0)
            out[1] = candidate(port if in_vc == 0 else 0, 2, 1)
            return 2
        out[0] = candidate(port, 3)
        return 1

    number = list(REASONS).index(kind)
    return RoutingPlan(
        relation(route), np.array([number], np.int32), max_candidates=3, phases=4,
        memory=np.zeros(2 if kind == "learning" else 1),
    )  # fmt: skip


REASONS = {
    "phase": "for packets to host 3 in router 2, input port 2, VC 0 it answers phase 0 and phase 1 differently, which",
    "source": "it looks at more than destination, phase and input VC",
    "hidden": "for packets to host 0 in router 3, input port 0, VC 1 it keeps more in a packet than its phase",
    "bubble": "it asks for free flits (need_flits)",
    "order": "it lists ports other than in increasing order",
    "levels": "it has candidates of a higher level other than one at the end",
    "escape": "VC 1 it escapes to port 0 and to port 2 elsewhere",
    "learning": "it learns",
}


@pytest.mark.parametrize("kind", list(REASONS))
def test_refused_relations_of_a_user(kind: str) -> None:
    config = configure("{kind: mesh, radices: [4]}", "dor")
    with pytest.raises(RoutingError, match=re.escape(REASONS[kind])):
        compile_tables(build(config.topology, config.address), plan_of(kind), 2, "mine")


def test_too_large() -> None:
    config = configure("{kind: torus, radices: [16, 16, 16]}", "dor")
    with pytest.raises(RoutingError, match="1644167168 entries of tables, more than 268435456"):
        tables_of(config)


@pytest.mark.parametrize(
    ("router", "message"),
    [
        ("vcs: 2, cycles_per_flit: 2", "router.cycles_per_flit must be 1 in hardware, not 2"),
        ("vcs: 2, cycle_ns: 2, flit_ns: 5", "router.cycles_per_flit must be 1 in hardware, not 3 (flit_ns / cycle_ns)"),
        ("vcs: 2, speculation: shared", "router.speculation must be false or true in hardware, not shared"),
        ("vcs: 2, speculation: yielding", "router.speculation must be false or true in hardware, not yielding"),
        ("sa: loa", "router.sa must be another allocator in hardware, not loa (simulator only)"),
        (
            "sa: input_first_ports",
            "router.sa must be another allocator in hardware, not input_first_ports (simulator only)",
        ),
        ("vcs: 2, switching: saf, buffer_flits: 9", "router.switching must be wormhole or vct in hardware, not saf"),
        ("vcs: 2, buffer_flits: 2000", "router: buffer_flits must be in 1 to 1024, not 2000"),
    ],
)
def test_routers_that_cannot_be_built(router: str, message: str) -> None:
    config = configure("{kind: mesh, radices: [2, 2]}", "dor", router)
    topology, tables = tables_of(config)
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        network_params(config, topology, tables)


@pytest.mark.parametrize(("router", "va", "sa"), [
    ("allocator_iterations: 2", 2, 2), ("allocator_iterations: 3, va_iterations: 1", 1, 3),
    ("va_iterations: 4, sa: wavefront", 4, 1), ("allocator_iterations: 2, va: wavefront", 1, 2),
    ("allocator_iterations: 2, sa: input_first, speculation: true", 2, 1),
])  # fmt: skip
def test_iterations_are_those_of_islip(router: str, va: int, sa: int) -> None:
    config = configure("{kind: mesh, radices: [2, 2]}", "dor", f"vcs: 2, {router}")
    topology, tables = tables_of(config)
    assert {(p.va_iterations, p.sa_iterations) for p in network_params(config, topology, tables)} == {(va, sa)}

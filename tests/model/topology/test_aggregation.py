"""Aggregated links: the network with groups of parallel links, the routing over their members, and their failures."""

import re
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from hopforge.model.config import Config, load_config, parse_config
from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import TopologyConfig
from hopforge.model.numbers.crc import crc_address
from hopforge.model.routing.proof.deadlock import DeadlockError
from hopforge.model.topology import Topology, TopologyError, build
from hopforge.model.topology.aggregation import aggregate
from hopforge.model.topology.configured import network_topology
from hopforge.sim.hits.hit_rates import run_hits
from hopforge.sim.run.simulation import Simulation

NETWORKS = [
    "{kind: mesh, radices: [3, 2], hosts_per_router: 2}",
    "{kind: torus, radices: [2, 3]}",
    "{kind: fat_tree, k: 2, n: 1}",
    "{kind: dragonfly, p: 2, a: 2, h: 1}",
    "{kind: fully_connected, routers: 4}",
]


def configure(topology: str, *, members: int, algorithm: str = "dor", more: str = "", lookup: str = "") -> Config:
    return parse_config(
        f"name: test\ntopology: {topology}\nrouting: {{algorithm: {algorithm}}}\n"
        "router: {route_computation: lookup, vcs: 2}\n"
        f"lookup: {{lag: {{members: {members}, max_members: 16}}{lookup}}}\n{more}"
    )


def built(topology: TopologyConfig) -> Topology:
    return build(topology, AddressConfig())


@pytest.mark.parametrize("members", [2, 3])
@pytest.mark.parametrize("topology", NETWORKS)
def test_every_link_becomes_a_group_on_successive_ports(topology: str, members: int) -> None:
    before = built(configure(topology, members=1).topology)
    after = aggregate(before, members)
    found = after.aggregation
    assert found is not None
    assert found.logical is before
    assert after.host_router.tolist() == before.host_router.tolist()
    assert after.host_at[after.host_router, after.host_port].tolist() == list(range(before.hosts))
    links = 0
    for r, p in np.argwhere(before.peer_router >= 0).tolist():
        here = found.ports[r, p].tolist()
        assert here == list(range(here[0], here[0] + members))
        there = found.ports[before.peer_router[r, p], before.peer_port[r, p]].tolist()
        assert after.peer_router[r, here].tolist() == [before.peer_router[r, p]] * members
        assert after.peer_port[r, here].tolist() == there
        assert after.host_at[r, here].tolist() == [-1] * members
        links += members
    assert links == (after.peer_router >= 0).sum() > 0
    for r in range(after.routers):
        # no port is left out, none has two places
        named = found.ports[r][found.ports[r] >= 0]
        assert sorted(named) == list(range(after.ports[r]))
        assert (found.group[r, named] == np.nonzero(found.ports[r] >= 0)[0]).all()


def test_one_member_is_the_network_itself() -> None:
    before = built(configure(NETWORKS[0], members=1).topology)
    assert aggregate(before, 1) is before


def graph(tmp_path: Path, edges: list[tuple[int, int]], members: int) -> Config:
    """Only GraphML and node-link files can say that links are parallel."""
    nx.write_graphml(nx.MultiGraph(edges), tmp_path / "graph.graphml")
    file = tmp_path / "config.yml"
    file.write_text(
        "name: test\ntopology: {kind: edge_list, file: graph.graphml}\nrouting: {algorithm: up_down}\n"
        "router: {route_computation: lookup, vcs: 1}\n"
        f"lookup: {{reduction: false, lag: {{members: {members}, max_members: 4}}}}\n"
    )
    return load_config(file)


def test_parallel_links_of_a_file_are_the_groups(tmp_path: Path) -> None:
    twice = network_topology(graph(tmp_path, [(0, 1), (1, 2), (0, 1), (2, 1)], 2))
    once = network_topology(graph(tmp_path, [(0, 1), (1, 2)], 2))
    assert twice.aggregation is not None
    assert once.aggregation is not None
    for name in ("peer_router", "peer_port", "host_at", "ports"):
        assert getattr(twice, name).tolist() == getattr(once, name).tolist(), name
        assert getattr(twice.aggregation.logical, name).tolist() == getattr(once.aggregation.logical, name).tolist()
    assert twice.aggregation.ports.tolist() == once.aggregation.ports.tolist()
    assert twice.aggregation.group.tolist() == once.aggregation.group.tolist()


def test_hits_knows_the_same_groups(tmp_path: Path) -> None:
    found = []
    for edges in ([(0, 1), (1, 2), (0, 1), (2, 1)], [(0, 1), (1, 2)]):
        graph(tmp_path, edges, 2)
        file = tmp_path / "config.yml"
        file.write_text(file.read_text() + "workload: {kind: uniform, packets_per_host: 200}\n")
        found.append(run_hits(load_config(file)))
    pd.testing.assert_frame_equal(found[0].ports, found[1].ports)
    assert (found[0].ports.groupby("member")["lookups"].sum() > 0).tolist() == [True, True]


def test_groups_of_different_sizes_are_refused(tmp_path: Path) -> None:
    text = "lookup.lag.members: must be the number of links between any two neighbours of the graph graph.graphml"
    with pytest.raises(TopologyError, match=f"{re.escape(text)}.*, not 2: routers 1 and 2 have 1"):
        network_topology(graph(tmp_path, [(0, 1), (1, 2), (0, 1)], 2))


def test_routers_with_too_many_ports_are_refused() -> None:
    text = r"lookup\.lag\.members: 16 links in a group give routers of the .* 529 ports, more than 512"
    with pytest.raises(TopologyError, match=text):
        network_topology(configure("{kind: fully_connected, routers: 34}", members=16))


@pytest.mark.parametrize("choice", ["crc", "modulo"])
def test_packets_take_the_member_of_their_destination(choice: str) -> None:
    """Flits on every link of a line of two routers against the members of their destinations."""
    members = 3
    config = parse_config(
        "name: test\ntopology: {kind: mesh, radices: [2], hosts_per_router: 8}\nrouting: {algorithm: dor}\n"
        "router: {route_computation: lookup}\n"
        f"lookup: {{lag: {{members: {members}, max_members: 4, hash: {choice}}}}}\n"
    )
    targets = np.arange(16)
    script = (np.zeros(16, np.int64), np.arange(16) * 50, targets, np.full(16, 2))
    run = Simulation(config, 0.1, 1, script=script)
    run.advance(2000)
    topology = run.topology
    assert topology.aggregation is not None
    want = np.zeros((2, topology.max_ports), np.int64)
    for host in targets[8:]:
        address = int(topology.host_address[host])
        member = (crc_address("CRC-32C", address) if choice == "crc" else address) % members
        want[0, topology.aggregation.ports[0, 8, member]] += 2
    want[topology.host_router, topology.host_port] += 2
    assert run.state["output_port"]["flits"].reshape(want.shape).tolist() == want.tolist()
    assert (want[0, 8:11] > 0).sum() > 1, "the members share the load"


CLOCKWISE = """
import numpy as np
from hopforge.model.network.core.candidates import candidate
from hopforge.model.routing import RoutingPlan, relation

def _clockwise(router, in_port, in_vc, packet, net, table, memory, out):
    out[0] = candidate(table[2], 3) if packet.dst != router else candidate(0, 3)
    return 1

def prepare(topology, vcs, options):
    return RoutingPlan(relation(_clockwise), np.array([0, 0, 1], np.int32))
"""


def test_a_cycle_over_members_is_found(tmp_path: Path) -> None:
    """A relation of one's own sees logical ports and its own table; the proof is about the members."""
    (tmp_path / "clockwise.py").write_text(CLOCKWISE)
    file = tmp_path / "ring.yml"
    file.write_text(
        "name: ring\ntopology: {kind: torus, radices: [5]}\nrouting: {algorithm: file, file: clockwise.py}\n"
        "router: {route_computation: lookup, vcs: 2}\n"
        "lookup: {reduction: false, lag: {members: 2, max_members: 2, hash: modulo}}\n"
    )
    with pytest.raises(DeadlockError, match=r"can deadlock on the 5 torus with 2 links in a group .*0\.[12]→1 VC"):
        Simulation(load_config(file), 0.1, 1)


def failing(parts: str) -> Simulation:
    config = configure(
        "{kind: mesh, radices: [3, 3]}",
        members=2,
        algorithm="up_down",
        lookup=", reduction: false",
        more="traffic: {packet_flits: 3}\nsimulation:\n  failures: "
        f"[{{cycle: 500, {parts}, detection_cycles: 20, reprogram_cycles: 50}}]\n",
    )
    return Simulation(config, 0.3, 1)


def flits_after(run: Simulation, cycle: int) -> np.ndarray:
    run.advance(cycle)
    run.reset_measures()
    run.advance(2000)
    run.check_conservation()
    assert int(run.state["measured"]) > 500
    flits = run.state["output_port"]["flits"]
    return np.asarray(flits.reshape(run.topology.peer_router.shape).copy())


def test_the_other_members_stand_in_for_one_that_fails() -> None:
    # router 0: host at port 0; +x is ports 1 and 2
    run = failing("ports: [[0, 1]]")
    before = Simulation(run.config.model_copy(update={"simulation": run.config.simulation.model_copy(
        update={"failures": ()})}), 0.3, 1)  # fmt: skip
    normal, found = flits_after(before, 1000), flits_after(run, 1000)
    assert (normal[0, 1:3] > 0).all()
    assert found[0, 1] == 0
    assert found[0, 2] == pytest.approx(normal[0, 1:3].sum(), rel=0.15), "all of them over the one that is left"
    assert (run.plan.table != before.plan.table).any()


def test_a_group_fails_when_all_its_members_do() -> None:
    found = flits_after(failing("links: [[0, 1]]"), 1000)
    assert found[0, 1:3].tolist() == [0, 0]
    assert found[0].sum() > 500, "router 0 is reached the other way"

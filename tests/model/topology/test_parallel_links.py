"""The rule of parallel links by its definition, and the files that say that links are parallel."""

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from hopforge.model.config import Config, load_config, parse_config
from hopforge.model.topology import Topology, TopologyError, build, read_edges
from hopforge.model.topology.parallel_links import (
    chosen_link,
    group_links,
    group_ports,
    link_number,
    parallel_ports,
    refuse_adaptive,
)
from hopforge.sim.pages.export import edge_list_text

EDGES = [(0, 1), (0, 1), (1, 2), (0, 1), (2, 0), (0, 1), (2, 0)]


def graph(tmp_path: Path, edges: list[tuple[int, int]] = EDGES, more: str = "") -> Config:
    (tmp_path / "net.txt").write_text("".join(f"{a} {b}\n" for a, b in edges))
    file = tmp_path / "config.yml"
    file.write_text(f"name: test\ntopology: {{kind: edge_list, file: net.txt, hosts_per_router: 3}}\n{more}")
    return load_config(file)


def fly(p: int, a: int, h: int, g: int) -> Topology:
    config = parse_config(
        f"name: test\naddress: {{chunk_bits: 6}}\ntopology: {{kind: dragonfly, p: {p}, a: {a}, h: {h}, g: {g}}}\n"
    )
    return build(config.topology, config.address)


def test_repeated_lines_are_parallel_links(tmp_path: Path) -> None:
    topology = build(graph(tmp_path).topology, graph(tmp_path).address)
    assert topology.ports.tolist() == [3 + 6, 3 + 5, 3 + 3]
    assert topology.peer_router[0].tolist() == [-1] * 3 + [1] * 4 + [2] * 2
    (tmp_path / "again.txt").write_text(edge_list_text(topology))
    assert sorted(read_edges(tmp_path / "again.txt")) == sorted((min(e), max(e)) for e in EDGES)


def test_a_list_of_both_directions_is_no_list_of_parallel_links(tmp_path: Path) -> None:
    config = graph(tmp_path, [(0, 1), (1, 0)])
    with pytest.raises(TopologyError, match=r"net.txt:2: link 0 1 is already on line 1; write parallel links the same"):
        build(config.topology, config.address)


def test_other_formats_say_it_too(tmp_path: Path) -> None:
    nx.write_graphml(nx.MultiGraph(EDGES), tmp_path / "net.graphml")
    nodes = [{"id": k} for k in range(3)]
    links = [{"source": a, "target": b} for a, b in EDGES]
    data = {"directed": False, "multigraph": False, "graph": {}, "nodes": nodes, "links": links}  # says what is not so
    (tmp_path / "net.json").write_text(json.dumps(data))
    want = build(graph(tmp_path).topology, graph(tmp_path).address).peer_router.tolist()
    for name in ("net.graphml", "net.json"):
        file = tmp_path / "config.yml"
        file.write_text(f"name: test\ntopology: {{kind: edge_list, file: {name}, hosts_per_router: 3}}\n")
        config = load_config(file)
        assert build(config.topology, config.address).peer_router.tolist() == want, name


def test_parallel_ports_are_those_with_the_same_neighbour(tmp_path: Path) -> None:
    topologies = [build(graph(tmp_path).topology, graph(tmp_path).address), fly(1, 2, 4, 2), fly(2, 4, 2, 9)]
    for topology in topologies:
        found = parallel_ports(topology)
        assert found.links.max() == found.ports.shape[2]
        for router, row in enumerate(topology.peer_router.tolist()):
            for port, peer in enumerate(row):
                want = [other for other, same in enumerate(row) if peer >= 0 and same == peer] or [port]
                assert found.ports[router, port, : found.links[router, port]].tolist() == want
                assert (found.ports[router, port, len(want) :] == -1).all()
    assert [parallel_ports(topology).some for topology in topologies] == [True, True, False]


@pytest.mark.parametrize("shape", [(4, 4, 4, 3), (2, 4, 4, 9), (1, 1, 4, 3), (2, 3, 2, 4), (1, 2, 1, 3)])
def test_ports_to_groups_by_the_definition(shape: tuple[int, int, int, int]) -> None:
    p, a, h, g = shape
    topology = fly(*shape)
    links = a * h // (g - 1)
    for rule in ("own_first", "destination", "hash"):
        table = group_ports(topology, rule)
        assert table.shape == (a * g, g, links)
        for router in range(a * g):
            for goal in range(g):
                if goal == router // a:
                    assert (table[router, goal] == -1).all()
                    continue
                members = range(router // a * a, router // a * a + a)
                all_links = [
                    (r, port)
                    for r in members
                    for port in range(p + a - 1, topology.max_ports)
                    if topology.peer_router[r, port] // a == goal and topology.peer_router[r, port] >= 0
                ]
                own = [link for link in all_links if link[0] == router]
                for number in range(links):
                    there, port = all_links[number]
                    if rule == "own_first" and own:
                        there, port = own[number % len(own)]
                    if there != router:
                        port = topology.peer_router[router].tolist().index(there)
                    assert table[router, goal, number] == port


def test_ports_beyond_64_are_themselves() -> None:
    topology = fly(20, 40, 20, 3)  # 79 ports
    table = group_ports(topology, "destination")
    routers = np.arange(topology.routers)[:, None]
    for goal in range(3):
        ports = table[:, goal]
        away = routers[:, 0] // 40 != goal
        peer = topology.peer_router[routers[away], ports[away]]
        assert (ports[away] >= 0).all() and (peer >= 0).all()
        reached = (peer // 40 == goal) | (table[peer, goal, np.arange(ports.shape[1])] >= 59)
        assert reached.all(), "over a global link, or to the router that has it"


def test_links_that_are_left_take_turns() -> None:
    entries = group_links(fly(1, 2, 2, 3)).reshape(-1).copy()  # two links for each pair
    first = 2  # of groups 0 and 1
    assert [chosen_link(entries, first, 2, 5, n, False) for n in range(4)] == [entries[2], entries[3]] * 2
    entries[3] = -1
    assert [chosen_link(entries, first, 2, 5, n, False) for n in range(4)] == [entries[2]] * 4
    entries[2] = -1
    assert chosen_link(entries, first, 2, 5, 0, True) == -1


def test_the_hash_spreads_both_ends() -> None:
    for links in (2, 3, 4, 8):
        number = np.array([[link_number(src, dst, True) % links for dst in range(64)] for src in range(512)])
        rows = np.array([np.bincount(row, minlength=links) for row in number])
        assert (rows.max(axis=1) <= -(-64 // links)).all(), "destinations of one source take turns"
        columns = np.array([np.bincount(column, minlength=links) for column in number.T])
        assert (columns.max(axis=1) < 1.4 * 512 / links).all(), "sources of one destination use all links"
    assert [link_number(9, dst, False) for dst in range(3)] == [0, 1, 2]


def test_refusals_name_the_rule() -> None:
    refuse_adaptive("hash", "anything")
    text = r"routing.links: must be own_first, destination or hash for the flow, which knows no queues, not adaptive"
    with pytest.raises(TopologyError, match=text):
        refuse_adaptive("adaptive", "the flow")
    start = "name: x\ntopology: {kind: mesh, radices: [2]}\nrouting: {algorithm: "
    for algorithm in ("dor", "ugal_group", "q_adaptive"):
        text = f"routing.links: adaptive is for dragonfly_min.* not algorithm={algorithm}"
        with pytest.raises(ValueError, match=text):
            parse_config(f"{start}{algorithm}, links: adaptive}}\n")
    with pytest.raises(ValueError, match=r"routing.links: is for algorithms other than file, which names the ports"):
        parse_config(f"{start}file, file: a.py, links: hash}}\n")

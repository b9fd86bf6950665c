"""Graphs from files: every format read as it is written, and what a bad file is told."""

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from hopforge.model.config import AddressConfig, EdgeListConfig, parse_config
from hopforge.model.network.settings import router_parameters
from hopforge.model.topology import Topology, TopologyError, build
from hopforge.sim.run.simulation import Simulation


def read(path: Path, **more: object) -> Topology:
    return build(EdgeListConfig(kind="edge_list", file=path, **more), AddressConfig())


def links(topology: Topology) -> list[tuple[int, int]]:
    channels = topology.channels()
    return [(a, b) for a, b in zip(channels.src_router.tolist(), channels.dst_router.tolist(), strict=True) if a <= b]


def test_graph_golf_grid(tmp_path: Path) -> None:
    (tmp_path / "g.edges").write_text("0,0 1,0\n1,0 1,1\n0,1 1,1\n2,1 1,1\n2,0 2,1\n")
    topology = read(tmp_path / "g.edges")
    assert topology.routers == 6
    assert links(topology) == [(0, 1), (1, 4), (2, 5), (3, 4), (4, 5)]
    assert topology.position.tolist() == [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]]


ANYNET = (
    "router 0 node 0 node 1 router 1 7 router 2\nrouter 1 node 2 router 0 9\nrouter 2 router 1 3\nnode 3 router 2\n"
)


def test_anynet(tmp_path: Path) -> None:
    (tmp_path / "net").write_text(ANYNET)
    topology = read(tmp_path / "net", format="anynet", hosts_per_router=None)
    assert links(topology) == [(0, 1), (0, 2), (1, 2)]
    assert topology.host_router.tolist() == [0, 0, 1, 2]
    assert topology.ports.tolist() == [4, 3, 3]
    cycles = {
        (router, int(topology.peer_router[router, port])): int(topology.link_cycles[router, port])
        for router in range(3)
        for port in range(4)
        if topology.peer_router[router, port] >= 0
    }
    # 0 → 1 and 1 → 0 say different latencies; 2 → 1 holds for the way back; 0 – 2 says none
    assert cycles == {(0, 1): 7, (1, 0): 9, (2, 1): 3, (1, 2): 3, (0, 2): 0, (2, 0): 0}


def test_latencies_of_a_file_are_those_of_the_simulation(tmp_path: Path) -> None:
    (tmp_path / "net.anynet").write_text("router 0 node 0 router 1 7\nrouter 1 node 1 router 2\nrouter 2 node 2\n")
    text = "name: x\ntopology: {kind: edge_list, file: net.anynet}\nrouting: {algorithm: up_down}\n"
    config = parse_config(text + "router: {link_latency_cycles: 4}", folder=tmp_path)
    script = ([0, 1], [10, 200], [1, 2], [1, 1])
    run = Simulation(config, 0.1, 1, script=tuple(np.array(column) for column in script), log_events=1000)
    run.advance(1000)
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    arrived = {int(row[4]) >> 40: int(row[0]) for row in log if row[1] == 3}
    # docs/definitions/router.md: two routers, latency (3 + r)·H + L·(H − 1) + 3 with r = 0
    assert arrived == {0: 10 + 6 + 7 + 3, 1: 200 + 6 + 4 + 3}
    assert router_parameters(config, run.topology).link_latency_cycles.shape == run.topology.peer_router.shape


GRAPHML = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">{}</graph></graphml>'
)


@pytest.mark.parametrize("form", ["graphml", "json"])
def test_networkx_files(tmp_path: Path, form: str) -> None:
    graph = nx.MultiGraph(nx.petersen_graph())
    graph.add_edge(3, 7)
    graph.add_edge(3, 2)  # parallel to the edge of the Petersen graph
    path = tmp_path / f"net.{form}"
    for node in graph:
        graph.nodes[node].update(x=node / 2, y=node % 3)
    if form == "graphml":
        nx.write_graphml(graph, path)
    else:
        path.write_text(json.dumps(nx.node_link_data(graph, edges="edges")))
    topology = read(path, hosts_per_router=2)
    assert links(topology) == sorted(tuple(sorted(edge)) for edge in graph.edges())
    assert (topology.routers, topology.hosts) == (10, 20)
    assert topology.position.tolist() == [[node / 2, node % 3] for node in range(10)]


def test_names_and_hosts_of_a_graph(tmp_path: Path) -> None:
    graph = nx.Graph()
    graph.add_nodes_from([f"r{i}" for i in (10, 2, 1)], kind="router")
    graph.add_nodes_from(["h1", "h0"], kind="host")
    graph.add_edges_from([("r10", "r2"), ("r1", "r10"), ("h0", "r10"), ("h1", "r1")])
    nx.write_graphml(graph, tmp_path / "net.graphml")
    topology = read(tmp_path / "net.graphml")
    assert links(topology) == [(0, 2), (1, 2)]  # r1, r2, r10 in this order
    assert topology.host_router.tolist() == [2, 0]
    message = r"^topology.hosts_per_router: .*net.graphml says itself where its 2 hosts are$"
    with pytest.raises(TopologyError, match=message):
        read(tmp_path / "net.graphml", hosts_per_router=1)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "0,0 0,1\n0 1\n", r"a.txt:2: expected two places x,y, not '0 1'"),
        ("a.txt", "0 1\n0,0 0,1\n", r"a.txt:2: expected two router numbers, not '0,0 0,1'"),
        ("a.txt", "0,0 0,0\n", r"a.txt:1: router 0,0 is linked to itself"),
        ("a.txt", "0,0 0,1\n0,1 0,0\n", r"a.txt:2: link 0,0 0,1 is already on line 1"),
        ("a.txt", "0,0 70000,1\n", r"a.txt:1: coordinate 70000 is beyond the largest, 65535"),
        ("a.txt", "0,0 0,1\n0,0 0,9\n", r"a.txt: the graph is disconnected: no path from router 0 to router 2"),
        ("a.txt", "0,0 65535,65535\n", r"a.txt: 4294967296 places of the grid are more than the 1048576 routers"),
        ("a.anynet", "router 0 node 0 router 0\n", r"a.anynet:1: router 0 is linked to itself"),
        ("a.anynet", "router 0 nod 0\n", r"a.anynet:1: expected router or node, not 'nod'"),
        ("a.anynet", "router 0 node\n", r"a.anynet:1: expected a number after 'node'"),
        ("a.anynet", "router 0 node x\n", r"a.anynet:1: expected a node number, not 'x'"),
        ("a.anynet", "router 0 router 1 -5\n", r"a.anynet:1: expected a latency, not '-5'"),
        ("a.anynet", "router 0 router 1 0\n", r"a.anynet:1: a latency must be at least 1, not 0"),
        ("a.anynet", "router 0 5 router 1\n", r"a.anynet:1: a latency \(5\) after the first router of the line"),
        ("a.anynet", "router 0 node 0 5\n", r"a.anynet:1: the latency of links to nodes is router.host_latency_cycles"),
        ("a.anynet", "node 0 node 1\n", r"a.anynet:1: node 0 is linked to node 1"),
        ("a.anynet", "router 0 node 0\nrouter 1 node 0\n", r"a.anynet:2: node 0 is at router 1 and at router 0"),
        ("a.anynet", "router 0 node 0\n", r"a.anynet: holds no link between routers"),
        ("a.anynet", "router 0 node 1 router 1\n", r"a.anynet: node 0 is missing; nodes are numbered from 0"),
        ("a.anynet", "router 0 node 0 router 2\n", r"a.anynet: router 1 is missing; routers are numbered from 0"),
        ("a.anynet", "router 0 router 1\n", r"a.anynet: holds no node \(host\)"),
        ("a.graphml", "<graph", r"a.graphml: not GraphML: "),
        ("a.graphml", "<html></html>", r"a.graphml: not GraphML: "),
        ("a.json", '{"nodes": [{"id": 0}, {"id": 1}, {"id": 0}], "edges": []}', r"a.json: node 0 stands there twice"),
        ("a.json", '{"nodes": [{"id": 0}, {"id": 1}], "edges": [{"source": 0, "target": "1"}]}',
         r"a.json: link 0 \(from 0 on\) ends at '1', which is no node"),
        ("a.json", '{"nodes": [{"id": [0, 1]}, {"id": 1}], "edges": [{"source": [0, 1], "target": 1, "key": 0}, '
         '{"source": 1, "target": [0, 1], "key": 0}]}', r"link 1 .* 1 and \(0, 1\) has the key 0 of another one"),
        ("a.json", '{"nodes": [{"id": 0}, {"id": 1}], "edges": [{"source": 0, "target": 1}, '
         '{"source": 0, "target": 1, "key": 0}]}', r"a.json: networkx reads 1 of 2 links; give parallel links keys of"),
        ("a.graphml", GRAPHML.format('<node id="a"><graph><node id="b"/></graph></node>'),
         r"networkx reads 1 of 2 nodes"),
        ("a.graphml", GRAPHML.format('<node id="a"/><node id="b"/><node id="a"/>'),
         r"a.graphml: node 'a' stands there"),
        ("a.graphml", GRAPHML.format('<node id="a"/><edge source="a" target="b"/>'),
         r"link 0 .* ends at 'b', which is"),
        ("a.graphml", GRAPHML.format('<node id="a"/><node id="b"/>' + '<edge id="x" source="a" target="b"/>' * 2),
         r"link 1 \(from 0 on\) between 'a' and 'b' has the key 'x' of another one"),
        ("a.json", "{", r"a.json: not node-link JSON: "),
        ("a.json", "[1, 2]", r"a.json: not node-link JSON: "),
        ("a.json", '{"nodes": [], "edges": []}', r"a.json: holds no link between routers"),
        ("a.json", '{"directed": true, "nodes": [{"id": 0}], "edges": []}', r"a.json: the graph is directed"),
        ("a.json", '{"nodes": [{"id": 0}], "edges": [{"source": 0, "target": 0}]}', r"a.json: router 0 is linked to"),
        (
            "a.json",
            '{"nodes": [{"id": 0}, {"id": 1}, {"id": 2, "kind": "host"}], "edges": [{"source": 0, "target": 1}]}',
            r"a.json: host 2 must have one link, to a router",
        ),
        (
            "a.json",
            '{"nodes": [{"id": 0}, {"id": 1}, {"id": 2, "kind": "Host"}], "edges": [{"source": 0, "target": 2}]}',
            r"a.json: node 2: kind must be host for a host, not 'Host'",
        ),
        (
            "a.json",
            '{"nodes": [{"id": 0, "x": "a", "y": 1}, {"id": 1, "x": 1, "y": 1}],'
            ' "edges": [{"source": 0, "target": 1}]}',
            r"a.json: x and y of the routers must be numbers",
        ),
    ],
)
def test_bad_files_are_one_clear_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(TopologyError, match=message) as caught:
        read(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_latencies_of_a_graph_are_those_of_its_links(tmp_path: Path) -> None:
    graph = nx.path_graph(3)
    graph.edges[0, 1]["latency_cycles"] = 9
    nx.write_graphml(graph, tmp_path / "net.graphml")
    topology = read(tmp_path / "net.graphml")
    assert topology.link_cycles is not None
    found = {(int(a), int(b)): int(topology.link_cycles[a, topology.peer_router[a].tolist().index(b)])
             for a, b in ((0, 1), (1, 0), (1, 2), (2, 1))}  # fmt: skip
    assert found == {(0, 1): 9, (1, 0): 9, (1, 2): 0, (2, 1): 0}  # 0: router.link_latency_cycles


@pytest.mark.parametrize(
    ("edges", "nodes", "message"),
    [
        ({(0, 1): {"weight": 2.0}, (1, 2): {"weight": 1.0}}, {}, r"links differ in weight \(2.0, 1.0\), which is not"),
        ({(1, 2): {"length": 1.0}}, {}, r"links differ in length \(None, 1.0\), which is not used; .*latency_cycles"),
        ({(1, 2): {"latency": 5}}, {}, r"link 1 2: latency=5 is not used; of links hopforge knows the latency_cycles"),
        ({(1, 2): {"latency_cycles": 1.5}}, {}, r"link 1 2: latency_cycles must be a whole number, 1 to 65535, not 1"),
        ({(1, 2): {"latency_cycles": 0}}, {}, r"link 1 2: latency_cycles must be a whole number, 1 to 65535, not 0"),
        ({(1, 2): {"latency_cycles": "9"}}, {}, r"link 1 2: latency_cycles must be a whole number, .* not '9'"),
        ({(2, "h0"): {"latency_cycles": 9}}, {}, r"link 2 h0: the latency of links to hosts is router.host_latency"),
        ({}, {1: {"x": 1.0, "y": 1.0}}, r"router 0 has no x and y; give all routers x and y, or none"),
        ({}, {0: {"x": 1.0, "y": 1.0}, 1: {"x": 2.0, "y": 0.0}, 2: {"x": 0.0}}, r"router 2 has no y; give all routers"),
        ({(0, 1): {"weight": 1}, (1, 2): {"weight": 1.0}}, {}, None),  # the same everywhere: asks for nothing
    ],
)
def test_what_a_graph_asks_for_is_used_or_refused(
    tmp_path: Path, edges: dict[tuple[object, object], dict[str, object]], nodes: dict[int, dict[str, float]],
    message: str | None,
) -> None:  # fmt: skip
    graph = nx.path_graph(3)
    if any("h0" in edge for edge in edges):
        graph.add_node("h0", kind="host")
        graph.add_edge(2, "h0")
    for edge, keys in edges.items():
        graph.edges[edge].update(keys)
    for node, keys in nodes.items():
        graph.nodes[node].update(keys)
    path = tmp_path / "net.json"
    path.write_text(json.dumps(nx.node_link_data(graph, edges="edges")))
    if message is None:
        assert read(path).link_cycles is None
        return
    with pytest.raises(TopologyError, match=rf"net.json: {message}"):
        read(path)


@pytest.mark.parametrize(
    ("key", "values", "said"),
    [
        ("weight", (10**400, 1), "links differ in weight"),
        ("weight", (np.complex128(2 + 1j), np.complex128(2 + 3j)), "links differ in weight"),
        ("latency_cycles", (np.complex128(2), 1), "must be a whole number"),
    ],
)
def test_odd_numbers_of_links_are_refused(key: str, values: tuple[object, object], said: str) -> None:
    import hopforge

    graph = nx.path_graph(3)
    nx.set_edge_attributes(graph, {(0, 1): values[0], (1, 2): values[1]}, key)
    with pytest.raises(TopologyError, match=said):
        hopforge.network(graph)

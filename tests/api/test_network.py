"""Graphs of networkx and adjacency matrices as networks: the same as their files."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import hopforge as hf
from hopforge.model.topology import Topology
from hopforge.model.topology.configured import configured_network

QUICK = {"routing": {"algorithm": "tables"}, "simulation": {"min_cycles": 1000, "max_cycles": 1000, "load": 0.1}}


def built(config: hf.Configuration) -> Topology:
    found: Topology = configured_network(config._config)
    return found


def test_a_graph_is_the_network_of_its_edge_list(tmp_path: Path) -> None:
    graph = nx.petersen_graph()
    (tmp_path / "petersen.txt").write_text("".join(f"{a} {b}\n" for a, b in graph.edges()))
    here = built(hf.network(graph, hosts_per_router=2))
    text = "name: p\ntopology: {kind: edge_list, file: petersen.txt, hosts_per_router: 2}\n"
    there = built(hf.loads(text, folder=tmp_path))
    for name in ("peer_router", "peer_port", "host_router", "host_port"):
        assert np.array_equal(getattr(here, name), getattr(there, name)), name
    matrix = built(hf.network(nx.to_numpy_array(graph), hosts_per_router=2))
    assert np.array_equal(matrix.peer_router, here.peer_router)
    sparse = built(hf.network(nx.to_scipy_sparse_array(graph, dtype=int), hosts_per_router=2))
    assert np.array_equal(sparse.peer_router, here.peer_router)


def test_numbers_of_a_matrix_are_parallel_links() -> None:
    network = built(hf.network(np.array([[0, 2, 1], [2, 0, 0], [1, 0, 0]])))
    assert sorted(network.peer_router[0][network.peer_router[0] >= 0].tolist()) == [1, 1, 2]


def test_hosts_and_places_of_a_graph_are_kept() -> None:
    graph = nx.Graph()
    graph.add_nodes_from((f"s{k}", {"x": 10.0 * k, "y": 1.0}) for k in (2, 0, 1))
    graph.add_nodes_from((f"h{k}", {"kind": "host"}) for k in range(3))
    graph.add_edges_from([("s0", "s1"), ("s1", "s2"), ("h0", "s2"), ("h1", "s2"), ("h2", "s0")])
    network = built(hf.network(graph))
    assert network.host_router.tolist() == [2, 2, 0]
    assert network.position is not None and network.position[:, 0].tolist() == [0.0, 10.0, 20.0]


def test_a_network_runs_and_is_written_with_its_graph_named(tmp_path: Path) -> None:
    config = hf.network(nx.cycle_graph(5), name="five", **QUICK)
    result = hf.simulate(config, progress=False)
    assert result.accepted == pytest.approx(0.1, abs=0.02)
    assert repr(config).startswith("hopforge.network(<5 routers, 5 links>, name='five', routing=")
    again = hf.simulate(config.write(tmp_path / "five.yml"), progress=False)
    assert again.latency == result.latency


@pytest.mark.parametrize("here", [False, True])
def test_a_written_network_runs_where_python_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: bool
) -> None:
    """The graph lies beside the file, under a relative name; the folder can be moved."""
    if here:
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")
    config = hf.network(nx.cycle_graph(5), name="five", **QUICK)
    monkeypatch.chdir(tmp_path)
    path = config.write(tmp_path / "here" / "five.yml")
    assert config.write(path).read_text() == path.read_text()
    (graph,) = path.parent.glob("*.json")
    assert f"file: {graph.name}" in path.read_text()
    moved = path.parent.rename(tmp_path / "there") / "five.yml"
    assert hf.load(moved)["topology.file"] == str(moved.parent / graph.name)
    assert built(hf.load(moved)).routers == 5
    (moved.parent / graph.name).write_text("my own")
    with pytest.raises(hf.UserError, match="force=True"):
        config.write(moved)
    graph_of_results = Path(str(config["topology.file"]))
    assert "hopforge-" not in str(graph_of_results.parent), "a temporary folder"


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (nx.DiGraph([(0, 1)]), "graph: the graph is directed"),
        (nx.Graph([(0, 1), (2, 3)]), "graph: the graph is disconnected: no path from router 0 to router 2"),
        (nx.Graph([(0, 1), (1, 1)]), "graph: router 1 is linked to itself"),
        (nx.empty_graph(0), "graph: holds no link"),
        (np.zeros((2, 2), int), "graph: holds no link"),
        ([[0, 1], [0, 0]], "graph: links work in both directions, but 0 to 1 has 1 and 1 to 0 0"),
        ([[0, 0.5], [0.5, 0]], r"numbers of links must be whole, not 0.5 \(row 0, column 1\)"),
        ([[0, -1], [-1, 0]], "must be 0 to 1024, not -1"),
        ([[0, np.inf, 1], [np.inf, 0, 1], [1, 1, 0]], "must be 0 to 1024, not inf"),
        ([[0, 1e19], [1e19, 0]], "must be 0 to 1024, not 1e"),
        (np.array([[0, 2**63], [2**63, 0]], np.uint64), "must be 0 to 1024, not 9223372036854775808"),
        (np.ma.masked_equal([[0, 1], [1, 0]], 1), "a masked array does not say"),
        (scipy.sparse.eye_array(2_000_000), "may have at most 20000 routers, not 2000000"),
        ([[1, 1], [1, 0]], "router 0 is linked to itself"),
        ([[0, 1, 1], [1, 0, 1]], r"must be square, not of shape \(2, 3\)"),
    ],
    ids=str,
)
def test_what_is_no_network_is_refused(graph: object, reason: str) -> None:
    with pytest.raises(hf.UserError, match=reason) as caught:
        hf.network(graph)
    assert len(caught.value.mistakes) == 1


def test_hosts_stand_in_the_graph_or_beside_it() -> None:
    graph = nx.cycle_graph(4)
    for router in range(4):
        graph.add_node(f"h{router}", kind="host")
        graph.add_edge(router, f"h{router}")
    assert built(hf.network(graph)).hosts == 4
    with pytest.raises(hf.UserError, match="says itself where its 4 hosts are; leave hosts_per_router out"):
        hf.network(graph, hosts_per_router=2)


def test_wrong_sections_are_told() -> None:
    ring = nx.cycle_graph(4)
    with pytest.raises(hf.ConfigError, match=r"^<python>: router\.vcs: must be at most 16, not 99$"):
        hf.network(ring, router={"vcs": 99})
    with pytest.raises(hf.ConfigError, match=r"^<python>: name: must match"):
        hf.network(ring, name="../x")
    with pytest.raises(hf.ConfigError, match="unknown key"):
        hf.network(ring, ruoter={})
    with pytest.raises(TypeError, match="topology is made of the graph"):
        hf.network(ring, topology={})

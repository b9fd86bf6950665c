"""Nue: every pair arrives and no layer has a cycle, by networkx; what is known of rings, trees and many layers."""

import itertools

import networkx as nx
import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.irregular.channels import channel_list
from hopforge.model.irregular.failure import tables_after_failure
from hopforge.model.irregular.neighbours import distances, neighbour_array
from hopforge.model.irregular.nue import nue_tables
from hopforge.model.irregular.nue_escape import central_node, destination_parts, spanning_tree
from hopforge.model.irregular.tables import build_tables
from hopforge.model.topology import build


def _array(graph):
    return neighbour_array([list(graph[u]) for u in range(len(graph))])


def _torus(failed, *sides):
    graph = nx.convert_node_labels_to_integers(nx.grid_graph(sides, periodic=True))
    graph.remove_edges_from(list(graph.edges)[:: len(graph.edges) // failed][:failed] if failed else [])
    assert nx.is_connected(graph)
    return graph


def _nue(graph, layers):
    neighbours = _array(graph)
    return nue_tables(distances(neighbours), channel_list(neighbours), layers)


def _hops(graph, found):
    """Follow every pair; layers must be free of cycles. Returns hops, int[source, destination]."""
    nodes = len(graph)
    hops = np.zeros((nodes, nodes), int)
    waits = nx.DiGraph()
    for s, d in itertools.permutations(range(nodes), 2):
        way = [s]
        while way[-1] != d:
            way.append(int(found.next_hop[way[-1], d]))
            assert graph.has_edge(*way[-2:])
            assert len(way) <= nodes
        hops[s, d] = len(way) - 1
        waits.add_edges_from(itertools.pairwise((channel, found.layer[d]) for channel in itertools.pairwise(way)))
    assert nx.is_directed_acyclic_graph(waits)
    return hops


def _shortest(graph):
    far = dict(nx.all_pairs_shortest_path_length(graph))
    return np.array([[far[u][v] for v in range(len(graph))] for u in range(len(graph))])


@pytest.mark.parametrize("layers", [1, 2, 3, 9])
@pytest.mark.parametrize(
    "graph",
    [
        nx.random_regular_graph(3, 20, seed=1),
        nx.random_regular_graph(4, 32, seed=2),
        nx.barabasi_albert_graph(30, 2, seed=3),
        _torus(3, 5, 5),
        _torus(5, 3, 3, 3),
    ],
    ids=["cubic", "degree 4", "scale-free", "torus", "cube"],
)
def test_any_number_of_layers_will_do(graph, layers):
    found = _nue(graph, layers)
    hops = _hops(graph, found)
    assert len(found.roots) == layers == found.layer.max() + 1
    assert (hops >= _shortest(graph)).all()
    assert found.next_hop.diagonal().tolist() == [-1] * len(graph)


def test_a_layer_for_each_destination_has_shortest_paths():
    graph = _torus(4, 4, 6)
    found = _nue(graph, 100)  # more than there are routers
    assert sorted(found.layer.tolist()) == list(range(24))
    assert (_hops(graph, found) == _shortest(graph)).all()
    assert not found.escapes.any()


@pytest.mark.parametrize("nodes", [3, 4, 5, 8, 9])
def test_one_layer_of_a_ring_avoids_a_turn_in_each_direction(nodes):
    found = _nue(nx.cycle_graph(nodes), 1)
    hops = _hops(nx.cycle_graph(nodes), found)
    turns = set()
    for s, d in itertools.permutations(range(nodes), 2):
        way = [s]
        while way[-1] != d:
            way.append(int(found.next_hop[way[-1], d]))
        turns.update(itertools.pairwise(itertools.pairwise(way)))
    for step in (1, nodes - 1):  # a ring of turns would be a deadlock
        assert not all((((u, v := (u + step) % nodes)), (v, (v + step) % nodes)) in turns for u in range(nodes))
    assert hops.max() < nodes


def test_a_tree_leaves_no_choice():
    tree = nx.balanced_tree(2, 3)
    assert (_hops(tree, _nue(tree, 1)) == _shortest(tree)).all()


def test_neighbours_of_a_complete_graph_are_direct():
    graph = nx.complete_graph(7)
    assert (_hops(graph, _nue(graph, 1)) == _shortest(graph)).all()


def test_impasses():
    """On tori one layer is so narrow that only the spanning tree reaches some routers."""
    graph = _torus(0, 8, 8)
    edges = list(graph.edges)
    graph.remove_edges_from([edges[k] for k in np.random.default_rng(1).permutation(len(edges))[:4]])
    found = _nue(graph, 1)
    assert found.escapes.any()
    hops = _hops(graph, found)
    tree = nx.bfs_tree(graph, found.roots[0]).to_undirected()
    assert hops.mean() < _shortest(tree).mean()  # better than the tree alone
    assert _hops(graph, _nue(graph, 4)).mean() < hops.mean()


@pytest.mark.parametrize("seed", range(6))
def test_central_node_has_the_highest_betweenness(seed):
    graph = nx.connected_watts_strogatz_graph(24, 4, 0.5, seed=seed)
    channels = channel_list(_array(graph))
    of = nx.betweenness_centrality(graph, normalized=False, endpoints=True)
    best = max(of.values())
    assert central_node(np.arange(24), channels) == min(u for u in of if of[u] > best - 1e-9)
    some = sorted(np.random.default_rng(seed).permutation(24)[:7].tolist())
    count = dict.fromkeys(graph, 0.0)
    for s, d in itertools.permutations(some, 2):
        ways = list(nx.all_shortest_paths(graph, s, d))
        for way in ways:
            for u in way:
                count[u] += 1 / len(ways)
    best = max(count.values())
    assert central_node(np.array(some), channels) == min(u for u in count if count[u] > best - 1e-9)


def test_spanning_tree_has_the_least_weights():
    graph = nx.random_regular_graph(4, 30, seed=5)
    channels = channel_list(_array(graph))
    weight = np.random.default_rng(1).integers(1, 50, len(channels.source))
    tree = spanning_tree(3, weight, channels.target, channels.first)
    ways = nx.DiGraph()
    for u, v, w in zip(channels.source.tolist(), channels.target.tolist(), weight.tolist(), strict=True):
        ways.add_edge(u, v, weight=w)
    far = nx.single_source_dijkstra_path_length(ways, 3)
    for node in range(30):
        total, u = 0, node
        while u != 3:
            assert channels.target[tree[u]] == u
            total, u = total + weight[tree[u]], int(channels.source[tree[u]])
        assert total == far[node]
    assert tree[3] == -1


def test_parts_are_equal_and_hang_together():
    graph = _torus(0, 6, 6)
    part = destination_parts(distances(_array(graph)), 4, channel_list(_array(graph)))
    assert np.bincount(part).tolist() == [9] * 4
    assert nx.is_connected(graph.subgraph(np.flatnonzero(part == 0).tolist()))
    assert np.bincount(destination_parts(distances(_array(graph)), 5, channel_list(_array(graph)))).tolist() == [
        8, 7, 7, 7, 7,
    ]  # fmt: skip


TEXT = "name: x\ntopology: {kind: torus, radices: [4, 4]}\ntables: {SECTION}\n"


def test_failed_links_are_gone_around():
    config = parse_config(TEXT.replace("SECTION", "scheme: nue, layers: nue, max_layers: 2"), "test.yml")
    network = build(config.topology, config.address)
    whole = build_tables(config.tables, network, 1)
    assert whole.layers.count == 2
    assert "the spanning trees had to help on the way to 0 of 16 routers" in whole.checked_words
    failed = config.failed.model_copy(update={"links": ((0, 1), (5, 6)), "switches": (10,)})
    left, report = tables_after_failure(config.tables, network, failed, 1)
    assert left.hops.shape == (15, 15)
    assert report.named.next_hop[0, 1] not in (-1, 1)
    assert report.named.layers.count == 2


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("scheme: nue", "tables.layers: must be nue with scheme=nue, whose paths need its layers, not acro"),
        ("scheme: nue, layers: lash", "tables.layers: must be nue with scheme=nue, whose paths need its layers"),
        ("layers: nue", "tables.layers: nue is for scheme=nue only, which finds both together, not scheme=shortest"),
        ("layers: lash, max_layers: 2", "tables.max_layers: is for layers=dfsssp and nue only, not layers=lash"),
        ("scheme: nue, layers: nue, max_layers: 0", "tables.max_layers"),
        ("scheme: nue, layers: nue, ties: random", "tables.ties: is for scheme=shortest only"),
    ],
)
def test_errors(section, message):
    with pytest.raises(UserError, match=message):
        parse_config(TEXT.replace("SECTION", section), "test.yml")

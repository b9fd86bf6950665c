"""Every pair is delivered and no layers can deadlock, by a checker that shares nothing with the one of the program."""

import dataclasses
import itertools
import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.irregular.channels import channel_list, check_next_hops
from hopforge.model.irregular.layers import LayerError, assign_layers, check_layers
from hopforge.model.irregular.loren import loren_next_hops, loren_tables
from hopforge.model.irregular.neighbours import neighbour_array
from hopforge.model.irregular.shortest import shortest_next_hops
from hopforge.model.irregular.tables import build_tables
from hopforge.model.irregular.up_down import up_down_next_hops
from hopforge.model.topology import build

DATA = Path(__file__).parents[2] / "data"


def _check(next_hop, adjacent, layers=None):
    """Walk all pairs at once; with layers (one per pair and hop) also look for cycles. Returns the longest path."""
    nodes = len(next_hop)
    s, d = (part.reshape(-1) for part in np.indices((nodes, nodes)))
    s, d = s[s != d], d[s != d]
    at, pair, before = s.copy(), s * nodes + d, None
    vertices = nodes * nodes * (1 if layers is None else layers.count)
    edges = []
    for hop in range(nodes):
        after = next_hop[at, d]
        assert adjacent[at, after].all()
        if layers is not None:
            layer = layers.layer[layers.starts[pair] + hop].astype(np.int64)
            assert ((layer >= 0) & (layer < layers.count)).all()
            vertex = (layer * nodes + at) * nodes + after
            if before is not None:
                edges.append(np.unique(before * vertices + vertex))
            before = vertex
        at = after
        going = at != d
        if layers is not None:
            assert (layers.starts[pair[~going]] + hop + 1 == layers.starts[pair[~going] + 1]).all()
            before = before[going]
        at, d, pair = at[going], d[going], pair[going]
        if len(at) == 0:
            break
    assert len(at) == 0
    if edges:
        arcs = np.stack(np.divmod(np.unique(np.concatenate(edges)), vertices))
        names, ends = np.unique(arcs, return_inverse=True)
        ends = ends.reshape(2, -1)
        assert (ends[0] != ends[1]).all()
        graph = coo_array((np.ones(ends.shape[1], bool), (ends[0], ends[1])), shape=(len(names), len(names)))
        count, _ = connected_components(graph, directed=True, connection="strong")
        assert count == len(names)  # no two in one circle
    return hop + 1


def _adjacent(neighbours):
    matrix = np.zeros((len(neighbours),) * 2, bool)
    rows, _ = np.nonzero(neighbours >= 0)
    matrix[rows, neighbours[neighbours >= 0]] = True
    return matrix


METHODS = ("acro", "lash", "lash_tor", "dfsssp", "hop_indexed")


def _golden():
    loren = json.loads((DATA / "loren_instances.json").read_text(encoding="utf-8"))
    acro = json.loads((DATA / "acro_instances.json").read_text(encoding="utf-8"))["instances"]
    assert loren
    assert acro
    for case in loren:
        neighbours = neighbour_array(case["adj"])
        yield neighbours, loren_next_hops(loren_tables(neighbours, case["t_max"]))
    for case in acro:
        rows = [[-1 if w is None else w for w in row] for row in case["next_hop"]]
        yield neighbour_array(case["adj"]), np.array(rows, np.int32)


def test_golden_instances():
    for neighbours, next_hop in _golden():
        channels = channel_list(neighbours)
        adjacent = _adjacent(neighbours)
        up_down = up_down_next_hops(neighbours, 0)
        one = assign_layers("single", check_next_hops(up_down, channels), neighbours, channels)
        assert _check(up_down, adjacent, one) >= 1
        table = check_next_hops(next_hop, channels)
        for method in METHODS:
            assert _check(next_hop, adjacent, assign_layers(method, table, neighbours, channels)) >= 2


@pytest.mark.study
@pytest.mark.parametrize("nodes", [64, 256, 1024])
@pytest.mark.parametrize("scheme", ["shortest", "up_down", "loren", "cowen", "thorup_zwick"])
@pytest.mark.parametrize("seed", [1, 2])
def test_random_networks(nodes, scheme, seed):
    side = round(nodes**0.5)
    for kind in (
        f"kind: layout_random, n: {side}, degree: 4, length: {max(2, side // 4)}, seed: {seed}",
        f"kind: random_regular, routers: {nodes}, degree: {3 + 5 * seed}, seed: {seed}",
    ):
        for layers in (*METHODS, "single") if scheme == "up_down" else METHODS:
            if nodes == 1024 and layers in ("lash", "dfsssp"):
                continue
            text = f"name: x\ntopology: {{{kind}}}\ntables: {{scheme: {scheme}, layers: {layers}}}\n"
            config = parse_config(text, "test.yml")
            tables = build_tables(config.tables, build(config.topology, config.address), seed)
            assert _check(tables.next_hop, _adjacent(tables.neighbours), tables.layers) == tables.hops.max()


@given(st.integers(0, 99), st.data())
@settings(max_examples=40, deadline=None)
def test_one_wrong_entry_is_found_exactly_if_it_matters(seed, data):
    graph = nx.random_regular_graph(3, 10, seed=seed)
    if not nx.is_connected(graph):
        return
    neighbours = neighbour_array([list(graph[u]) for u in range(10)])
    channels = channel_list(neighbours)
    table = shortest_next_hops(neighbours)
    u, d, entry = (data.draw(st.integers(low, 9)) for low in (0, 0, -1))
    table[u, d] = entry
    np.fill_diagonal(table, -1)
    try:
        _check(table, np.pad(_adjacent(neighbours), ((0, 0), (0, 1))))  # entry -1: the last column, no neighbour
        good = True
    except AssertionError:
        good = False
    if good:
        check_next_hops(table, channels)
    else:
        with pytest.raises(UserError, match=rf"{u}.* (→|destination {d}) ") as caught:
            check_next_hops(table, channels)
        assert "path" in str(caught.value) or "circle" in str(caught.value)


@given(st.integers(0, 99), st.data())
@settings(max_examples=40, deadline=None)
def test_moved_layers_are_refused_exactly_if_they_close_a_cycle(seed, data):
    graph = nx.random_regular_graph(3, 8, seed=seed)
    if not nx.is_connected(graph):
        return
    neighbours = neighbour_array([list(graph[u]) for u in range(8)])
    channels = channel_list(neighbours)
    next_hop = shortest_next_hops(neighbours)
    table = check_next_hops(next_hop, channels)
    layers = assign_layers("lash", table, neighbours, channels)
    layer = layers.layer.copy()
    for _ in range(data.draw(st.integers(1, 12))):
        layer[data.draw(st.integers(0, len(layer) - 1))] = data.draw(st.integers(0, layers.count - 1))
    moved = dataclasses.replace(layers, layer=layer)
    waits = nx.DiGraph()
    for s, d in itertools.permutations(range(8), 2):
        way = [s]
        while way[-1] != d:
            way.append(int(next_hop[way[-1], d]))
        waits.add_edges_from(itertools.pairwise(zip(itertools.pairwise(way), moved.of_path(s, d), strict=True)))
    if nx.is_directed_acyclic_graph(waits):
        check_layers(moved, table, channels)
    else:
        with pytest.raises(LayerError, match="can deadlock"):
            check_layers(moved, table, channels)

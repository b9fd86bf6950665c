"""Tables and virtual layers of irregular networks: golden instances, oracles in networkx, limits and errors."""

import dataclasses
import itertools
import json
import re
import tracemalloc
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from hopforge.model.errors import UserError
from hopforge.model.irregular.acro import acro_layers
from hopforge.model.irregular.channels import channel_list, check_next_hops, hop_counts
from hopforge.model.irregular.landmarks import fitting
from hopforge.model.irregular.lash import lash_layers, lash_tor_layers
from hopforge.model.irregular.layers import LAYERS, LayerError, assign_layers, check_layers
from hopforge.model.irregular.loren import (
    FloorPlan,
    _beside,
    _sorted_entries,
    loren_next_hops,
    loren_path,
    loren_tables,
)
from hopforge.model.irregular.neighbours import distances, neighbour_array
from hopforge.model.irregular.shortest import shortest_next_hops
from hopforge.model.topology.random_graph import layout_random_edges

DATA = Path(__file__).parents[2] / "data"
LOREN = json.loads((DATA / "loren_instances.json").read_text(encoding="utf-8"))
ACRO = json.loads((DATA / "acro_instances.json").read_text(encoding="utf-8"))["instances"]


def _table(rows):
    return np.array([[-1 if w is None else w for w in row] for row in rows], np.int32)


def _plan(n, degree, length, seed):
    graph = nx.Graph(layout_random_edges(n, degree, length, np.random.default_rng(seed)).tolist())
    return neighbour_array([list(graph[u]) for u in range(n * n)])


def _regular(nodes, degree, seed):
    graph = nx.random_regular_graph(degree, nodes, seed=seed)
    return neighbour_array([list(graph[u]) for u in range(nodes)])


def _graph(neighbours):
    return nx.Graph([(u, int(w)) for u, row in enumerate(neighbours) for w in row if w >= 0])


@pytest.mark.parametrize("case", LOREN, ids=lambda case: f"t{case['t_max']}")
def test_loren_golden(case):
    tables = loren_tables(neighbour_array(case["adj"]), case["t_max"])
    pairs = np.stack([tables.destination, tables.successor], axis=-1)
    assert [pairs[u, :count].tolist() for u, count in enumerate(tables.entries)] == case["tables"]
    assert tables.least_entries == case["min_entries"]
    next_hop = loren_next_hops(tables)
    assert (next_hop == _table(case["next_hop"])).all()
    channels = channel_list(neighbour_array(case["adj"]))
    hops = hop_counts(check_next_hops(next_hop, channels), channels)
    pairs_count = hops.size - len(hops)
    assert hops.sum() / pairs_count == pytest.approx(case["avg"], rel=1e-12)
    assert hops.max() == case["max"]


@pytest.mark.parametrize("case", ACRO, ids=lambda case: f"{len(case['adj'])}-{case['acro_vl']}-{case['lash_lex']}")
def test_layers_golden(case):
    neighbours = neighbour_array(case["adj"])
    next_hop = _table(case["next_hop"])
    if "oneway_ring" in case:  # its table keeps to one direction of the ring
        assert all(int(w) in neighbours[u] for u, row in enumerate(next_hop) for w in row if w >= 0)
    channels = channel_list(neighbours)
    table = check_next_hops(next_hop, channels)
    found = acro_layers(table, channels)
    assert found.layers == case["acro_vl"]
    if "layer_orders_index_tie" in case:
        assert found.sequence.tolist() == case["layer_orders_index_tie"]
    assert lash_layers(table, channels)[1] == case["lash_lex"]
    assert lash_tor_layers(table, channels)[2] == case["lashtor_lex"]


@pytest.mark.parametrize(("n", "length", "seed"), [(6, 2, 0), (8, 3, 1), (12, 4, 2)])
@pytest.mark.parametrize("extra", [None, 0, 5, 200])
def test_loren_delivers_every_pair(n, length, seed, extra):
    neighbours = _plan(n, 4, length, seed)
    least = loren_tables(neighbours).least_entries
    tables = loren_tables(neighbours, None if extra is None else least + extra)
    assert (tables.entries <= least + (extra or 0)).all()
    next_hop = loren_next_hops(tables)
    channels = channel_list(neighbours)
    hops = hop_counts(check_next_hops(next_hop, channels), channels)
    graph = _graph(neighbours)
    far = dict(nx.all_pairs_shortest_path_length(graph))
    shortest = np.array([[far[u][v] for v in range(n * n)] for u in range(n * n)])
    assert (hops >= shortest).all()
    if extra == 200 and n * n <= least + 200:
        assert (hops == shortest).all()
    assert len(loren_path(tables, 0, n * n - 1)) == hops[0, n * n - 1] + 1


@pytest.mark.parametrize("seed", range(8))
def test_loren_delivers_where_places_are_empty(seed):
    side = 7
    generator = np.random.default_rng(seed)
    place = np.sort(generator.choice(side * side, 20 + 3 * seed, replace=False)).astype(np.int32)
    nodes = len(place)
    neighbours = _regular(nodes, 4, seed)
    tables = loren_tables(neighbours, None, FloorPlan(side, place))
    x, y = place % side, place // side
    found, node_at = np.empty(4 * side, np.int32), np.full(side * side, -1, np.int32)
    node_at[place] = np.arange(nodes)
    for u in range(nodes):
        between = [
            [
                w
                for w in range(nodes)
                if w not in (u, v)
                and min(x[u], x[v]) <= x[w] <= max(x[u], x[v])
                and min(y[u], y[v]) <= y[w] <= max(y[u], y[v])
            ]
            for v in range(nodes)
        ]
        count = _beside(side, place, node_at, u, found)
        assert sorted(found[:count]) == [v for v in range(nodes) if v != u and not between[v]]
    graph, next_hop = _graph(neighbours), loren_next_hops(tables)
    for u in range(nodes):  # forward by the text of the specification
        for v in set(range(nodes)) - {u}:
            at, hops = u, 0
            while at != v:
                known = list(zip(tables.hops[at], tables.destination[at], tables.successor[at], strict=True))
                known = sorted(known[: tables.entries[at]])
                far = [abs(x[d] - x[v]) + abs(y[d] - y[v]) for _, d, _ in known]
                after = int(known[far.index(min(far))][2])
                assert after == next_hop[at, v] and graph.has_edge(at, after)
                at, hops = after, hops + 1
                assert hops < nodes


def test_loren_names_the_least_table():
    neighbours = _plan(8, 4, 2, 5)
    least = loren_tables(neighbours).least_entries
    with pytest.raises(
        UserError, match=f"tables.t_max: must be at least {least} for loren on this network, not {least - 1}"
    ):
        loren_tables(neighbours, least - 1)


def test_a_loren_table_of_any_size_takes_the_room_of_its_entries():
    """Room for all that `t_max` allows, most of which no table can have, did not fit in memory."""
    neighbours = _plan(8, 4, 2, 5)
    nodes = len(neighbours)
    all_of_them, more = (loren_tables(neighbours, t_max) for t_max in (nodes - 1, 10**12))
    assert (all_of_them.entries == nodes - 1).all()
    for name in ("destination", "successor", "hops", "entries"):
        assert np.array_equal(getattr(more, name), getattr(all_of_them, name)), name


def test_entries_of_loren_are_put_in_order_in_little_memory():
    nodes, width = 2048, 256
    generator = np.random.default_rng(3)
    entries = generator.integers(1, width + 1, nodes).astype(np.int32)
    destination, successor = (
        generator.permuted(np.tile(np.arange(width, dtype=np.int32), (nodes, 1)), axis=1) for _ in range(2)
    )
    hops = generator.integers(1, 9, (nodes, width)).astype(np.int32)
    tracemalloc.start()
    ordered = _sorted_entries(destination, successor, hops, entries)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * sum(array.nbytes for array in ordered)
    for node in (*range(0, nodes, 50), nodes - 1):
        rows = zip(hops[node], destination[node], successor[node], strict=True)
        wanted = sorted(itertools.islice(rows, entries[node]))
        assert [tuple(row) for row in np.array(ordered)[[2, 0, 1], node, : entries[node]].T] == wanted


def test_loren_needs_a_square_and_a_connected_network():
    with pytest.raises(UserError, match="must be a square, not 5"):
        loren_tables(_regular(6, 3, 0)[:5])
    apart = neighbour_array([[1], [0], [3], [2]])
    with pytest.raises(UserError, match="not connected"):
        loren_tables(apart)


@pytest.mark.parametrize("scheme", ["cowen", "thorup_zwick"])
@pytest.mark.parametrize("room", [None, 30, 63])
def test_landmarks_deliver_within_three_times_the_shortest(scheme, room):
    neighbours = _regular(64, 4, 3)
    tables = fitting(neighbours, scheme, room, np.random.default_rng(1))
    assert room is None or tables.entries.max() <= room
    channels = channel_list(neighbours)
    hops = hop_counts(check_next_hops(tables.next_hop, channels), channels)
    near = distances(neighbours)
    assert (hops <= 3 * near.astype(int)).all()
    assert (hops[tables.known] == near[tables.known]).all()
    # a cluster holds exactly the destinations that are nearer than their landmark is to them
    own = near[tables.landmark_of, np.arange(64)]
    expected = (near < own) & ~np.eye(64, dtype=bool)
    expected[:, tables.landmarks] = ~np.eye(64, dtype=bool)[:, tables.landmarks]
    assert (tables.known == expected).all()


@pytest.mark.parametrize("scheme", ["cowen", "thorup_zwick"])
def test_landmarks_name_the_least_table(scheme):
    neighbours = _regular(64, 4, 3)
    least = int(fitting(neighbours, scheme, None, np.random.default_rng(1)).entries.max())
    with pytest.raises(UserError, match=f"tables.t_max: must be at least {least} for {scheme}"):
        fitting(neighbours, scheme, 2, np.random.default_rng(1))


@pytest.mark.parametrize("ties", ["lowest", "random", "balanced"])
def test_shortest_paths(ties):
    neighbours = _regular(40, 3, 7)
    next_hop = shortest_next_hops(neighbours, ties, np.random.default_rng(0))
    channels = channel_list(neighbours)
    hops = hop_counts(check_next_hops(next_hop, channels), channels)
    assert (hops == distances(neighbours)).all()


def test_balanced_shortest_paths_spread_the_load():
    neighbours = _regular(64, 4, 1)
    channels = channel_list(neighbours)

    def deviation(ties):
        table = check_next_hops(shortest_next_hops(neighbours, ties), channels)
        load = np.zeros(len(channels.source))
        for s in range(64):
            for d in range(64):
                u = s
                while u != d:
                    load[table[u, d]] += 1
                    u = channels.target[table[u, d]]
        return load.std()

    assert deviation("balanced") < deviation("lowest")


def _path(next_hop, s, d):
    way = [s]
    while way[-1] != d:
        way.append(int(next_hop[way[-1], d]))
    return list(itertools.pairwise(way))


@pytest.mark.parametrize(("nodes", "degree", "seed"), [(16, 3, 0), (24, 4, 1)])
def test_lash_against_networkx(nodes, degree, seed):
    neighbours = _regular(nodes, degree, seed)
    next_hop = shortest_next_hops(neighbours)
    channels = channel_list(neighbours)
    layer_of, count = lash_layers(check_next_hops(next_hop, channels), channels)
    graphs: list[nx.DiGraph] = []
    for s in range(nodes):
        for d in range(nodes):
            if s == d:
                continue
            way = _path(next_hop, s, d)
            for layer in range(len(graphs) + 1):
                if layer == len(graphs):
                    graphs.append(nx.DiGraph())
                tried = graphs[layer].copy()
                tried.add_edges_from(itertools.pairwise(way))
                if nx.is_directed_acyclic_graph(tried):
                    graphs[layer] = tried
                    break
            assert layer_of[s, d] == layer
    assert count == len(graphs)


@pytest.mark.parametrize("method", [method for method in LAYERS if method != "single"])
@pytest.mark.parametrize(("nodes", "degree", "seed"), [(30, 3, 0), (36, 5, 1)])
def test_layers_are_free_of_cycles(method, nodes, degree, seed):
    neighbours = _regular(nodes, degree, seed)
    next_hop = shortest_next_hops(neighbours)
    channels = channel_list(neighbours)
    layers = assign_layers(method, check_next_hops(next_hop, channels), neighbours, channels)
    graph = nx.DiGraph()
    for s in range(nodes):
        for d in range(nodes):
            if s != d:
                way, of_hops = _path(next_hop, s, d), layers.of_path(s, d)
                assert len(way) == len(of_hops)
                assert all(0 <= layer < layers.count for layer in of_hops)
                used = list(zip(way, of_hops, strict=True))
                graph.add_edges_from(itertools.pairwise(used))
    assert nx.is_directed_acyclic_graph(graph)


def test_dfsssp_takes_the_layers_that_there_are():
    neighbours = _regular(64, 5, 1)
    next_hop = shortest_next_hops(neighbours)
    channels = channel_list(neighbours)
    table = check_next_hops(next_hop, channels)
    free = assign_layers("dfsssp", table, neighbours, channels)
    tried = (_at_most(most, table, neighbours, channels) for most in range(1, free.count + 1))
    packed = next(layers for layers in tried if layers is not None)
    assert 1 < packed.count < free.count  # paths move back where there are too few layers
    more = assign_layers("dfsssp", table, neighbours, channels, most=free.count + 4)
    assert more.count == free.count + 4
    first = [layers.layer[np.unique(layers.starts)[:-1]] for layers in (free, more)]
    before, after = (np.bincount(layer[layer >= 0]) for layer in first)
    assert after.sum() == before.sum() and after.max() < before.max()
    assert after.max() <= 1.5 * before.sum() / free.count
    for low in range(free.count):  # only whole layers are split
        assert len(set(first[0][first[1] == low].tolist())) == 1
    message = f"tables.max_layers: dfsssp needs {packed.count} layers for this table, not {packed.count - 1}"
    with pytest.raises(UserError, match=message):
        assign_layers("dfsssp", table, neighbours, channels, most=packed.count - 1)


def _at_most(most, table, neighbours, channels):
    """Layers, or None if they are too few."""
    try:
        return assign_layers("dfsssp", table, neighbours, channels, most=most)
    except UserError:
        return None


def test_longest_distance():
    far = distances(neighbour_array([[k for k in (n - 1, n + 1) if 0 <= k < 255] for n in range(255)]))
    assert far[0].tolist() == list(range(255))
    with pytest.raises(UserError, match="the diameter must be at most 254 hops"):
        distances(neighbour_array([[k for k in (n - 1, n + 1) if 0 <= k < 256] for n in range(256)]))


def test_acro_on_paths_of_more_than_255_hops():
    # all packets go round clockwise: the only dependencies are c → c + 1, and two layers are enough for a ring
    nodes = 270
    neighbours = neighbour_array([[(n - 1) % nodes, (n + 1) % nodes] for n in range(nodes)])
    next_hop = np.where(np.eye(nodes, dtype=bool), -1, (np.arange(nodes, dtype=np.int32)[:, None] + 1) % nodes)
    channels = channel_list(neighbours)
    table = check_next_hops(next_hop.astype(np.int32), channels)
    assert hop_counts(table, channels).max() == nodes - 1
    layers = assign_layers("acro", table, neighbours, channels)
    assert layers.count == 2


def test_acro_switch_rule():
    neighbours = _regular(36, 4, 2)
    next_hop = shortest_next_hops(neighbours)
    channels = channel_list(neighbours)
    table = check_next_hops(next_hop, channels)
    layers = assign_layers("acro", table, neighbours, channels)
    assert layers.orders is not None
    for s in range(36):
        for d in range(36):
            if s == d:
                continue
            hops = layers.of_path(s, d)
            assert hops[0] == layers.count - 1
            u, before = s, -1
            for k, layer in enumerate(hops):
                c = int(table[u, d])
                if k > 0:
                    order = layers.orders.order[hops[k - 1]]
                    assert layer == hops[k - 1] - int(order[before] <= order[c])
                before, u = c, int(channels.target[c])


def test_one_layer_on_a_ring_is_refused_with_its_cycle():
    neighbours = neighbour_array([[1, 3], [0, 2], [1, 3], [0, 2]])
    next_hop = np.array([[-1, 1, 1, 1], [2, -1, 2, 2], [3, 3, -1, 3], [0, 0, 0, -1]], np.int32)
    channels = channel_list(neighbours)
    table = check_next_hops(next_hop, channels)
    layers = assign_layers("lash", table, neighbours, channels)
    assert layers.count == 2
    flat = dataclasses.replace(layers, layer=np.zeros_like(layers.layer))
    with pytest.raises(LayerError, match=r"can deadlock; waiting channels: .*0→1 layer 0, 1→2 layer 0") as caught:
        check_layers(flat, table, channels)
    assert str(caught.value).count("→") == 5  # four channels, the first one again
    ends = re.search(
        r"waiting channels: (\d)→(\d) layer 0, \d→(\d) .* from router (\d) to router (\d)$", str(caught.value)
    )
    assert ends is not None
    first, second, third, s, d = map(int, ends.groups())
    way = [node for hop in _path(next_hop, s, d) for node in hop]
    assert {(first, second), (second, third)} <= set(itertools.pairwise(way))
    assert caught.value.pair == 4 * s + d
    with pytest.raises(LayerError, match="can deadlock"):
        assign_layers("single", table, neighbours, channels)
    far = dataclasses.replace(layers, layer=layers.layer + 5)
    with pytest.raises(UserError, match="from router 0 to router 1: the layers"):
        check_layers(far, table, channels)


def test_broken_tables_are_refused():
    neighbours = neighbour_array([[1, 3], [0, 2], [1, 3], [0, 2]])
    channels = channel_list(neighbours)
    good = shortest_next_hops(neighbours)
    check_next_hops(good, channels)
    loop = good.copy()
    loop[0, 2], loop[1, 2] = 1, 0
    with pytest.raises(UserError, match="from router 0 to router 2 packets go in a circle: 0 → 1 → 0"):
        check_next_hops(loop, channels)
    missing = good.copy()
    missing[3, 1] = -1
    with pytest.raises(UserError, match=r"the entry of router 3 for destination 1 is missing \(path 3 → \?\)"):
        check_next_hops(missing, channels)
    wrong = good.copy()
    wrong[0, 2] = 2
    with pytest.raises(
        UserError, match=r"router 0 for destination 2 names router 2, which is no neighbour \(path 0 → 2\)"
    ):
        check_next_hops(wrong, channels)
    with pytest.raises(UserError, match="must have 4×4 entries, not 3×4"):
        check_next_hops(good[:3], channels)


def test_unknown_method_lists_the_known():
    neighbours = _regular(8, 3, 0)
    channels = channel_list(neighbours)
    table = check_next_hops(shortest_next_hops(neighbours), channels)
    with pytest.raises(UserError, match="unknown method of virtual layers 'lush'; known: acro, lash, lash_tor"):
        assign_layers("lush", table, neighbours, channels)

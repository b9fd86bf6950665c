"""Up*/down* tables: against the definition, in one layer, as escape in the simulator; choice of the root."""

import itertools

import networkx as nx
import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.irregular.channels import channel_list, check_next_hops, hop_counts
from hopforge.model.irregular.layers import LayerError, assign_layers, check_layers, escape_layers
from hopforge.model.irregular.neighbours import neighbour_array
from hopforge.model.irregular.shortest import shortest_next_hops
from hopforge.model.irregular.tables import build_tables, next_ports
from hopforge.model.irregular.up_down import root_node, up_down_next_hops
from hopforge.model.topology import build
from hopforge.sim.run.simulation import Simulation


def _random(nodes, links, seed):
    graph = nx.gnm_random_graph(nodes, links, seed=seed)
    graph.add_edges_from(itertools.pairwise(nx.utils.create_random_state(seed).permutation(nodes).tolist()))
    return graph, neighbour_array([list(graph[u]) for u in range(nodes)])


def _goes_up(graph, root):
    level = nx.single_source_shortest_path_length(graph, root)
    return lambda u, w: (level[w], w) < (level[u], u)


@pytest.mark.parametrize(("nodes", "links", "seed"), [(2, 1, 0), (12, 6, 1), (30, 40, 2), (40, 120, 3)])
def test_paths_go_up_then_down_and_are_as_short_as_such_tables_allow(nodes, links, seed):
    graph, neighbours = _random(nodes, links, seed)
    for root in (0, root_node(neighbours, "centre"), nodes - 1):
        up = _goes_up(graph, root)
        next_hop = up_down_next_hops(neighbours, root)
        channels = channel_list(neighbours)
        table = check_next_hops(next_hop, channels)
        hops = hop_counts(table, channels)
        # shortest ways in a graph of (router, may go up no more): down as soon as there is a way down
        down = nx.DiGraph((u, w) for u, w in itertools.permutations(graph, 2) if graph.has_edge(u, w) and not up(u, w))
        down.add_nodes_from(graph)
        only_down = dict(nx.all_pairs_shortest_path_length(down))
        climbs = nx.DiGraph((u, w) for u, w in itertools.permutations(graph, 2) if graph.has_edge(u, w) and up(u, w))
        for s, d in itertools.permutations(range(nodes), 2):
            way = [s]
            while way[-1] != d:
                way.append(int(next_hop[way[-1], d]))
            ups = [up(u, w) for u, w in itertools.pairwise(way)]
            assert ups == sorted(ups, reverse=True)
            if d in only_down[s]:
                assert hops[s, d] == only_down[s][d]
            else:
                assert hops[s, d] == 1 + min(hops[w, d] for w in climbs[s])
        assert assign_layers("single", table, neighbours, channels).count == 1


def test_root():
    graph, neighbours = _random(40, 60, 5)
    centre = root_node(neighbours, "centre")
    far = nx.eccentricity(graph)
    assert far[centre] == nx.radius(graph)
    total = {u: sum(nx.single_source_shortest_path_length(graph, u).values()) for u in nx.center(graph)}
    assert centre == min(total, key=lambda u: (total[u], u))
    assert graph.degree[root_node(neighbours, "highest_degree")] == max(dict(graph.degree).values())
    assert root_node(neighbours, 7) == 7
    with pytest.raises(UserError, match=r"tables.root: must be a router from 0 to 39, not 40"):
        root_node(neighbours, 40)


def test_an_escape_with_cycles_is_refused():
    neighbours = neighbour_array([[1, 3], [0, 2], [1, 3], [0, 2]])
    channels = channel_list(neighbours)
    ring = np.array([[-1, 1, 1, 1], [2, -1, 2, 2], [3, 3, -1, 3], [0, 0, 0, -1]], np.int32)
    cyclic = check_next_hops(ring, channels)
    good = check_next_hops(up_down_next_hops(neighbours, 0), channels)
    layers = escape_layers(cyclic, good, channels)
    assert layers.count == 2
    with pytest.raises(LayerError, match="can deadlock"):
        escape_layers(good, cyclic, channels)
    with pytest.raises(LayerError, match="can deadlock"):
        check_layers(layers, cyclic, channels)


def _config(tables, vcs):
    text = f"""
name: updown
topology: {{kind: layout_random, n: 5, degree: 4, length: 3, seed: 2}}
tables: {tables}
router: {{vcs: {vcs}, buffer_flits: 2, vc_release: credits}}
routing: {{algorithm: tables}}
traffic: {{packet_flits: 3}}
"""
    return parse_config(text, "test.yml")


@pytest.mark.parametrize(
    ("tables", "vcs"),
    [("{scheme: up_down, root: 7, layers: single}", 1), ("{scheme: shortest, layers: escape}", 2)],
)
def test_overloaded_network_goes_on(tables, vcs):
    run = Simulation(_config(tables, vcs), 1.0, 3)  # proves the plan free of deadlock
    run.advance(3000)
    run.check_conservation()
    before = run.state["host"]["flits_received"].copy()
    run.advance(1000)
    assert (run.state["host"]["flits_received"] > before).all()
    assert int(run.state["packets_dropped"]) == 0


def test_one_layer_of_shortest_paths_is_refused():
    with pytest.raises(UserError, match=r"^tables.layers: single: the virtual layers can deadlock; waiting channels"):
        Simulation(_config("{layers: single}", 2), 0.1, 1)
    with pytest.raises(UserError, match=r"router.vcs must be at least 2 for escape"):
        Simulation(_config("{layers: escape}", 1), 0.1, 1)
    with pytest.raises(UserError, match="root: is for scheme=up_down and layers=escape only"):
        _config("{root: 3}", 1)


def test_next_ports_lead_to_the_next_router():
    config = _config("{}", 4)
    tables = build_tables(config.tables, build(config.topology, config.address), config.seed)
    ports = next_ports(tables.topology, tables.channels, tables.next_channel)
    off = ~np.eye(25, dtype=bool)
    rows = np.arange(25)[:, None].repeat(25, axis=1)
    assert (tables.topology.peer_router[rows, ports] == tables.next_hop)[off].all()
    assert (ports[~off] == -1).all()
    assert (tables.next_hop == shortest_next_hops(tables.neighbours)).all()

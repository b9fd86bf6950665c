"""Tables with several paths for each destination, beside a plain search, and who chooses among them."""

import itertools
import re
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.model.config import Config, ConfigError, load_config, parse_config
from hopforge.model.errors import UserError
from hopforge.model.irregular.failure import linked_tables, plain_tables
from hopforge.model.irregular.k_shortest import k_shortest_next_hops
from hopforge.model.irregular.neighbours import distances, neighbour_array
from hopforge.model.irregular.table_routes import configured_routes
from hopforge.model.irregular.tables import RoutingTables
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.model.routing.proof.deadlock import is_acyclic
from hopforge.model.topology import build
from hopforge.model.topology.failed import without_failed
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.start.preparation import prepare

GRAPHS = {
    "petersen": nx.petersen_graph(), "ring": nx.cycle_graph(7), "grid": nx.convert_node_labels_to_integers(
        nx.grid_2d_graph(3, 4)), "star": nx.star_graph(4), "random": nx.random_regular_graph(4, 12, seed=2),
}  # fmt: skip
RANDOM = "{kind: random_regular, routers: 16, degree: 4, seed: 3}"
TABLES = "{scheme: k_shortest, lmc: 2, slack: 2, layers: fewest}"


def config_of(topology: str = RANDOM, routing: str = "algorithm: tables, spread: flow", more: str = "",
              tables: str = TABLES, vcs: int = 8) -> Config:  # fmt: skip
    return parse_config(
        f"name: x\ntopology: {topology}\nrouting: {{{routing}}}\ntables: {tables}\n"
        f"router: {{vcs: {vcs}, buffer_flits: 4}}\n{more}"
    )


def tables_of(config: Config) -> RoutingTables:
    return plain_tables(config.tables, build(config.topology, config.address), config.seed)


def grown(graph: nx.Graph, paths: int, slack: int) -> Any:
    """Next hops by the words of the definition, without heaps: [path][node, destination]."""
    far = dict(nx.all_pairs_shortest_path_length(graph))
    nodes = len(graph)
    table = np.full((paths, nodes, nodes), -1)
    entries = dict.fromkeys(itertools.product(range(nodes), range(nodes)), 0)
    for d in range(nodes):
        used = dict.fromkeys(entries, 0)
        for path in range(paths):
            length = {d: 0}
            while len(length) < nodes:
                open_ways = [
                    (u, w) for u in range(nodes) if u not in length for w in sorted(graph[u])
                    if w in length and length[w] + 1 <= far[u][d] + slack
                ]  # fmt: skip
                new = [(length[w] + 1, u) for u, w in open_ways if used[u, w] == 0]
                had = {u: sum(used[u, w] > 0 for w in graph[u]) for u in range(nodes)}
                shift = path * -(-nodes // paths)
                hope = {
                    u: any(not used[u, v] and far[v][d] < far[u][d] + slack for v in graph[u]) for u in range(nodes)
                }
                late = [(hope[u], -had[u], -far[u][d], (u + shift) % nodes, u) for u, _ in open_ways]
                u = min(new)[1] if new else min(late)[4]
                w = min((used[u, w], length[w], entries[u, w], w) for v, w in open_ways if v == u)[3]
                table[path, u, d] = w
                length[u] = length[w] + 1
                used[u, w] += 1
                entries[u, w] += 1
    return table


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("slack", [0, 1, 3])
def test_trees_are_those_of_the_definition(name: str, slack: int) -> None:
    graph = GRAPHS[name]
    neighbours = neighbour_array([list(graph[u]) for u in range(len(graph))])
    found = k_shortest_next_hops(neighbours, distances(neighbours), 4, slack)
    assert np.array_equal(found, grown(graph, 4, slack))
    far = distances(neighbours).astype(int)
    for path, source, goal in itertools.product(range(4), range(len(graph)), range(len(graph))):
        at, hops = source, 0
        while at != goal:
            at, hops = int(found[path, at, goal]), hops + 1
            assert hops <= far[goal, source] + (slack if path else 0)


def test_a_ring_goes_both_ways_in_turn() -> None:
    """To 2 in a ring of five: of the far nodes 0 and 4 one goes round in path 1 and the other in path 2."""
    ring = neighbour_array([[1, 4], [0, 2], [1, 3], [2, 4], [0, 3]])
    found = k_shortest_next_hops(ring, distances(ring), 3, 1)
    assert found[:, :, 2].tolist() == [[1, 2, -1, 2, 3], [4, 2, -1, 2, 3], [1, 2, -1, 2, 0]]
    square = neighbour_array([[1, 3], [0, 2], [1, 3], [0, 2]])
    both = k_shortest_next_hops(square, distances(square), 2, 0)
    assert sorted(both[:, 0, 2].tolist()) == [1, 3]


@pytest.mark.parametrize("layers", ["fewest", "lash", "hop_indexed"])
def test_layers_of_all_paths_together_are_free_of_cycles(layers: str) -> None:
    """Every hop of every path is followed once more, with nothing of the program's."""
    tables = tables_of(config_of(tables=TABLES.replace("fewest", layers)))
    assert len(tables.all_paths) == 4
    nodes, source, target = len(tables.hops), [], []
    number: dict[tuple[int, int, int], int] = {}
    for one in tables.all_paths:
        assert one.layers.count == tables.layers.count
        for s, d in itertools.permutations(range(nodes), 2):
            at, before = s, -1
            for layer in one.layers.of_path(s, d):
                step = int(one.next_hop[at, d])
                here = number.setdefault((at, step, layer), len(number))
                assert 0 <= layer < tables.layers.count
                if before >= 0:
                    source.append(before)
                    target.append(here)
                at, before = step, here
            assert at == d
    assert is_acyclic(np.array(source), np.array(target), len(number))


def test_fewest_takes_fewest() -> None:
    counts = {name: tables_of(config_of(tables=TABLES.replace("fewest", name))).layers.count
              for name in ("fewest", "lash", "hop_indexed")}  # fmt: skip
    assert counts["fewest"] <= min(counts["lash"], counts["hop_indexed"])
    line = "{kind: mesh, radices: [5]}"
    assert tables_of(config_of(line)).layers.count == 1
    with pytest.raises(UserError, match=r"tables\.layers: single: the virtual layers can deadlock"):
        tables_of(config_of(tables=TABLES.replace("fewest", "single")))


def hashed(s: int, d: int, r: int) -> int:
    """g of several-paths.md."""
    w = ((s + 1) * 2654435761) % 2**32
    w = ((w ^ (w >> 15) ^ d) * 2246822507) % 2**32
    w = ((w ^ (w >> 13) ^ r) * 3266489909) % 2**32
    return w ^ (w >> 16)


def way(tables: RoutingTables, path: int, source: int, goal: int) -> list[tuple[int, int]]:
    at, found = source, []
    while at != goal:
        step = int(tables.all_paths[path].next_hop[at, goal])
        found.append((at, step))
        at = step
    return found


@pytest.mark.parametrize(("spread", "per", "paths"), [
    ("flow", "", lambda h, k: {h % 4}),
    ("entropy", "{per: packet, values: 4}", lambda h, k: {(h + n) % 4 for n in range(k)}),
    ("entropy", "{per: flow}", lambda h, k: {h % 4}),
    ("packet", "", lambda h, k: set(range(4))),
])  # fmt: skip
def test_packets_take_the_paths_that_their_source_chooses(spread: str, per: str, paths: Any) -> None:
    """One host sends, to one: the channels that carry flits are those of the paths by hand."""
    goals = [9, *([0] * 15)]
    entropy = f", entropy: {per}" if per else ""
    more = f"traffic: {{pattern: destinations, destinations: {goals}{entropy}}}"
    config = config_of(routing=f"algorithm: tables, spread: {spread}", more=more)
    run = Simulation(config, 0.2, 3)
    run.advance(3000)
    run.check_conservation()
    assert int(run.state["packets_dropped"]) == 0
    tables = tables_of(config)
    sent = run.state["output_port"]["flits"].reshape(run.topology.routers, -1)
    home = run.topology.host_router
    wanted = {step for path in paths(hashed(0, 9, 16), 100) for step in way(tables, path, int(home[0]), int(home[9]))}
    for source in range(1, 16):  # the others send to host 0
        for path in paths(hashed(source, 0, 16), 100):
            wanted |= set(way(tables, path, int(home[source]), int(home[0])))
    linked = np.argwhere((sent > 0) & (run.topology.peer_router >= 0))
    assert {(r, int(run.topology.peer_router[r, p])) for r, p in linked.tolist()} == wanted


def test_round_robin_gives_every_path_its_share() -> None:
    """By turns: each channel carries a quarter of the packets of a flow for each of its paths on it, but for a turn."""
    order = np.roll(np.arange(16), 5)
    more = f"traffic: {{pattern: destinations, destinations: {order.tolist()}, entropy: {{per: packet, values: 8}}}}"
    config = config_of(routing="algorithm: tables, spread: entropy", more=more)
    run = Simulation(config, 0.1, 3)
    run.advance(6000)
    tables, topology = tables_of(config), run.topology
    load, turns = np.zeros(topology.peer_router.shape), np.zeros(topology.peer_router.shape)
    for source, goal in enumerate(order.tolist()):
        sent = int(run.state["host"]["flits_sent"][source])
        for path in range(4):
            for a, b in way(tables, path, int(topology.host_router[source]), int(topology.host_router[goal])):
                port = int(np.flatnonzero(topology.peer_router[a] == b)[0])
                load[a, port] += sent / 4
                turns[a, port] += 1
    sent = run.state["output_port"]["flits"].reshape(topology.routers, -1)[:, : topology.max_ports]
    linked = topology.peer_router >= 0
    under_way = int(run.state.flits_in_flight)
    assert load[linked].sum() > 5000
    assert (np.abs(sent - load)[linked] <= turns[linked] + under_way).all()
    assert under_way < 40


def test_flow_engine_takes_the_ways_of_the_simulator() -> None:
    config = config_of()
    topology = build(config.topology, config.address)
    routes, tables = configured_routes(config, topology), tables_of(config)
    pairs = np.array(list(itertools.product(range(topology.hosts), repeat=2)))
    paths = routes.paths(pairs[:, 0], pairs[:, 1])
    for index, (s, d) in enumerate(pairs.tolist()):
        a, b = int(topology.host_router[s]), int(topology.host_router[d])
        routers = paths.router[paths.first[index] : paths.first[index + 1]].tolist()
        assert routers == [a, *(step for _, step in way(tables, hashed(s, d, 16) % 4, a, b))]
        last = paths.first[index + 1] - 1
        assert topology.host_at[paths.router[last], paths.output[last]] == d


def test_failed_switches_keep_their_numbers() -> None:
    config = config_of(more="failed: {switches: [5]}")
    topology = without_failed(build(config.topology, config.address), config.failed)
    tables = linked_tables(config.tables, topology, 1)
    for one in tables.all_paths:
        assert (one.next_hop[5] == -1).all() and (one.next_hop[:, 5] == -1).all()
        for s, d in itertools.permutations([k for k in range(16) if k != 5], 2):
            assert s != one.next_hop[s, d] != 5
    run = Simulation(config, 0.1, 1)
    run.advance(1000)
    run.check_conservation()


def test_hosts_on_parallel_links_are_proved_and_delivered() -> None:
    config = config_of("{kind: torus, radices: [2, 3], hosts_per_router: 2}", tables=TABLES.replace("lmc: 2", "lmc: 1"))
    run = Simulation(config, 0.2, 1)
    run.advance(2000)
    run.check_conservation()
    assert int(run.state["packets_dropped"]) == 0


@pytest.mark.parametrize(("routing", "tables", "said"), [
    ("algorithm: tables", TABLES, r"routing\.spread: missing; tables\.scheme=k_shortest needs it"),
    ("algorithm: tables, spread: flow", "{scheme: shortest}", r"routing\.spread: needs tables\.scheme=k_shortest"),
    ("algorithm: tables, spread: flow", "{scheme: k_shortest, layers: lash}", r"tables\.lmc: must be at least 1"),
    ("algorithm: tables, spread: flow", "{scheme: k_shortest, lmc: 1}", r"tables\.layers: must be fewest, lash, hop"),
    ("algorithm: dor", "{layers: fewest}", r"tables\.layers: fewest is for scheme=k_shortest only"),
    ("algorithm: dor", "{slack: 3}", r"tables\.slack: is for scheme=k_shortest only"),
    ("algorithm: tables, spread: flow, links: hash", TABLES, r"routing\.links: hash is not for tables\.scheme=k_short"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(routing: str, tables: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        config_of(routing=routing, tables=tables)


@pytest.mark.parametrize("routing", [
    "routing: {algorithm: tables, spread: flow}\ntables: {scheme: k_shortest, lmc: 1, layers: fewest}\n",
    "routing: {algorithm: minimal, spread: flow}\n",
])  # fmt: skip
def test_what_is_said_of_addresses_that_are_no_numbers_of_hosts_helps(
    routing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A torus with two hosts at a router: the line names a way, and that way is good for hardware."""
    monkeypatch.chdir(tmp_path)
    text = "name: x\ntopology: {kind: torus, radices: [3, 3], hosts_per_router: 2}\n" + routing
    text += "router: {vcs: 8, route_computation: lookup}\nlookup: {reduction: false, tcam: {kind: external}}\n"
    if "minimal" in routing:
        text = text.replace("lookup: {", "lookup: {cache: {output_kind: port_set}, ")
    with pytest.raises(UserError, match="needs addresses that are the numbers of hosts") as refused:
        prepare("gen network", parse_config(text))
    command, keys = re.search(r"`hopforge (.*)` writes .*; (topology: .*) reads it", str(refused.value)).groups()  # type: ignore[union-attr]
    Path("FILE").write_text(text)
    assert CliRunner().invoke(app, command.split()).exit_code == 0
    Path("graph.yml").write_text(re.sub(r"topology: .*", keys, text))
    graph = load_config(Path("graph.yml"))
    prepare("gen network", graph)
    own, other = (build(each.topology, each.address) for each in (parse_config(text), graph))
    assert (other.host_router == own.host_router).all()


def test_too_few_channels_and_other_readers_are_refused() -> None:
    config = config_of()
    topology, need = build(config.topology, config.address), tables_of(config).layers.count
    assert need > 1
    with pytest.raises(UserError, match=rf"router\.vcs must be at least {need} for "):
        routing_plan(config_of(vcs=need - 1), topology)
    with pytest.raises(UserError, match=r"routing\.ways tables needs one path for each pair"):
        routing_plan(config_of(routing="algorithm: minimal, ways: tables"), topology)
    with pytest.raises(UserError, match=r"must have one path for each pair for hopforge gen tables"):
        prepare("gen tables", config_of())

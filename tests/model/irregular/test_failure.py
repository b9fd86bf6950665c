"""Tables after failures: paths followed one by one on the smaller network, and what the report counts."""

import itertools
import json
import re
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.gen.packages.tables import table_files
from hopforge.model.config import parse_config
from hopforge.model.config.simulation import FailedConfig, parse_failed
from hopforge.model.errors import UserError
from hopforge.model.irregular.failure import (
    changed_paths,
    compare_tables,
    entry_matrix,
    linked_tables,
    surviving_tables,
    tables_after_failure,
    with_options,
)
from hopforge.model.irregular.switch_tables import switch_tables
from hopforge.model.irregular.table_routes import chosen_entries
from hopforge.model.irregular.tables import RoutingTables, build_tables
from hopforge.model.lookup.tcam import NO_MATCH, Tcam, TcamRow
from hopforge.model.routing.graphs.tables import prepare_tables
from hopforge.model.topology import Topology, build
from hopforge.model.topology.failed import FailureError, failed_ports, survivors, without_failed
from hopforge.sim.hits.hit_rates import run_hits
from hopforge.sim.pages.route_write import layer_lines
from hopforge.sim.start.summary import summarize

TEXT = "name: t\ntopology: {kind: random_regular, routers: 20, degree: 4, hosts_per_router: 2, seed: 3}\ntables: "


def network(tables: str = "{}") -> tuple[Topology, object]:
    config = parse_config(TEXT + tables)
    return build(config.topology, config.address), config.tables


def path_of(next_hop: np.ndarray, source: int, destination: int) -> list[int]:
    path = [source]
    while path[-1] != destination:
        path.append(int(next_hop[path[-1], destination]))
        assert len(path) <= len(next_hop)
    return path


def some_failed(topology: Topology) -> FailedConfig:
    a = 4
    b = int(topology.peer_router[a].max())
    return FailedConfig(links=((a, b),), ports=((9, 3),), switches=(13,))


@pytest.mark.parametrize(
    "scheme", ["{}", "{scheme: cowen, t_max: 14, layers: lash_tor}", "{scheme: up_down, root: 15}"]
)
def test_tables_avoid_what_has_failed(scheme: str) -> None:
    topology, section = network(scheme)
    failed = some_failed(topology)
    found = surviving_tables(section, topology, failed, 1, lambda _: None)
    named = found.named
    graph = nx.Graph((int(r), int(topology.peer_router[r, p])) for r, p in np.argwhere(topology.peer_router >= 0))
    graph.remove_node(13)
    graph.remove_edges_from([failed.links[0], (9, int(topology.peer_router[9, 3]))])
    for s in graph:
        for d in set(graph) - {s}:
            path = path_of(named.next_hop, s, d)
            assert nx.is_path(graph, path) and named.hops[s, d] == len(path) - 1
            if scheme == "{}":
                assert len(path) - 1 == nx.shortest_path_length(graph, s, d) == named.shortest[s, d]
    assert (named.next_hop[13] == -1).all() and (named.next_hop[:, 13] == -1).all() and named.entries[13] == 0


def test_the_simulator_sees_the_same_tables() -> None:
    topology, section = network("{layers: lash}")
    failed = some_failed(topology)
    left = without_failed(topology, failed)
    named = surviving_tables(section, topology, failed, 1, lambda _: None).named
    again = linked_tables(section, left, 1)
    assert np.array_equal(named.next_hop, again.next_hop) and np.array_equal(named.layers.layer, again.layers.layer)
    plan = prepare_tables(left, 4, {"tables": section, "seed": 1})
    R, ports = topology.routers, plan.table[plan.table[6] :][: topology.routers**2].reshape(topology.routers, -1)
    down = failed_ports(topology, failed)
    for r in range(R):
        for d in range(R):
            if named.next_hop[r, d] < 0:
                assert ports[r, d] == -1
            else:
                assert topology.peer_router[r, ports[r, d]] == named.next_hop[r, d] and not down[r, ports[r, d]]


def test_loren_goes_round_a_failed_switch() -> None:
    text = "name: t\ntopology: {kind: layout_random, n: 6, degree: 4, length: 3, seed: 2}\ntables: {scheme: loren}"
    config = parse_config(text)
    topology = build(config.topology, config.address)
    found = surviving_tables(config.tables, topology, FailedConfig(switches=(14, 15, 35)), 1, lambda _: None)
    named = found.named
    alive = [r for r in range(36) if r not in (14, 15, 35)]
    for s in alive:
        for d in set(alive) - {s}:
            path = path_of(named.next_hop, s, d)
            assert len(path) - 1 == named.hops[s, d] and not {14, 15, 35} & set(path)
    entries, chosen = entry_matrix(named), chosen_entries(named)
    listed = list(switch_tables(named, config.address.width_bits))
    for s in range(36):
        known = set(np.flatnonzero(entries[s] >= 0).tolist())
        assert len(known) == named.entries[s] and (s in alive or not known) and known <= set(alive)
        assert listed[s].entries is not None and set(listed[s].entries[:, 0].tolist()) == known
        for d in set(alive) - {s}:
            if s in alive:
                assert chosen[s, d] in known and entries[s, chosen[s, d]] == named.next_hop[s, d]


def test_survivors_keep_their_order_and_hosts() -> None:
    topology, _ = network()
    left = without_failed(topology, FailedConfig(switches=(0, 13)))
    gone = np.isin(np.arange(topology.routers), (0, 13))
    smaller, numbers = survivors(left, gone)
    assert numbers.tolist() == [n for n in range(20) if n not in (0, 13)] and smaller.hosts == 36
    for new, old in enumerate(numbers.tolist()):
        peers = left.peer_router[old]
        assert numbers[smaller.peer_router[new][peers >= 0]].tolist() == peers[peers >= 0].tolist()
        hosts = smaller.host_at[new][smaller.host_at[new] >= 0]
        assert smaller.host_address[hosts].tolist() == [2 * old, 2 * old + 1]


def test_the_report_counts_what_differs() -> None:
    topology, section = network()
    before = build_tables(section, topology, 1)
    failed = some_failed(topology)
    after, report = tables_after_failure(section, topology, failed, 1)
    assert isinstance(after, RoutingTables) and after.topology.routers == 19
    change = compare_tables(before, report.named)
    old, new = before.next_hop, report.named.next_hop
    alive = [r for r in range(20) if r != 13]
    for r in range(20):
        row = change.routers.iloc[r]
        written = sum(new[r, d] >= 0 and new[r, d] != old[r, d] for d in range(20))
        removed = sum(old[r, d] >= 0 and new[r, d] < 0 for d in range(20))
        assert (row["written"], row["removed"]) == (written, removed)
    pairs = [(s, d) for s in alive for d in alive if s != d]
    different = [pair for pair in pairs if path_of(old, *pair) != path_of(new, *pair)]
    assert change.pairs == len(pairs) and change.changed_pairs == len(different) > 0
    assert change.longest == (before.hops.max(), after.hops.max())
    found = changed_paths(old, new)
    assert all(found[pair] for pair in different)


@pytest.mark.parametrize(
    ("tables", "problem"),
    [
        ("{layers: single}", "tables.layers: single: the virtual layers can deadlock"),
        ("{layers: dfsssp, max_layers: 1}", "tables.max_layers: dfsssp needs 2 layers for this table, not 1"),
    ],
)
def test_the_whole_network_needs_no_tables(tables: str, problem: str) -> None:
    """A ring without one of its links is a chain, in which one layer is enough."""
    config = parse_config(f"name: t\ntopology: {{kind: torus, radices: [6]}}\ntables: {tables}")
    ring = build(config.topology, config.address)
    with pytest.raises(UserError, match=problem):
        build_tables(config.tables, ring, 1)
    left, report = tables_after_failure(config.tables, ring, FailedConfig(links=((2, 3),)), 1)
    assert left.hops.max() == 5 and left.layers.count == 1
    words = dict(report.rows)
    assert words["compared with"].startswith(f"nothing, for the whole network has no such tables: {problem}")
    assert report.routers["entries"].tolist() == [5] * 6


@pytest.mark.parametrize(
    ("failed", "message"),
    [
        (FailedConfig(switches=(20,)), "router 20 does not exist; the random regular graph .* has routers 0 to 19"),
        (FailedConfig(ports=((0, 0),)), "port 0 of router 0 .* leads to a host"),
        (FailedConfig(ports=((0, 6),)), "port 6 of router 0 .* has no link"),
        (FailedConfig(switches=tuple(range(20))), "all 20 routers"),
    ],
)
def test_impossible_failures_are_refused(failed: FailedConfig, message: str) -> None:
    topology, section = network()
    with pytest.raises(FailureError, match=message):
        tables_after_failure(section, topology, failed, 1)


def test_a_network_that_falls_apart_is_refused() -> None:
    topology, section = network()
    around = tuple((7, int(peer)) for peer in topology.peer_router[7] if peer >= 0)
    with pytest.raises(FailureError, match=r"no path from router 0 to router 7 \(2 parts of 19, 1 routers\)"):
        tables_after_failure(section, topology, FailedConfig(links=around), 1)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("{scheme: up_down, root: 13}", "tables.root: router 13 has failed"),
        ("{scheme: up_down, root: 25}", "root"),
    ],
)
def test_a_failed_root_is_refused(section: str, message: str) -> None:
    topology, tables = network(section)
    with pytest.raises(UserError, match=message):
        tables_after_failure(tables, topology, FailedConfig(switches=(13,)), 1)


@pytest.mark.parametrize(
    ("links", "switches", "message"),
    [
        (["0-99"], [], r"^--fail 0-99: router 99 does not exist; the random regular graph .* has routers 0 to 19$"),
        (["0.0"], [], r"^--fail 0\.0: port 0 of router 0 .* leads to a host$"),
        ([], ["3, 20"], "^--fail-switch 20: router 20 does not exist"),
        (["0-0"], [], "^--fail 0-0: there is no link between routers 0 and 0"),
        ([], ["0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19"], "^--fail-switch 0, .*: all 20 routers"),
    ],
)
def test_errors_name_the_option_and_its_value(links: list[str], switches: list[str], message: str) -> None:
    topology, _ = network()
    with pytest.raises(FailureError, match=message):
        with_options(topology, FailedConfig(switches=(13,)), links, switches)


def test_the_options_that_split_the_network_are_named() -> None:
    topology, _ = network()
    words = [f"7-{peer}" for peer in topology.peer_router[7] if peer >= 0]
    alone = re.escape(", ".join(f"--fail {word}" for word in words))
    with pytest.raises(FailureError, match=rf"^{alone}: the network falls apart: no path from router 0 to router 7 "):
        with_options(topology, FailedConfig(), [",".join(words[:2]), *words[2:]], [])
    with pytest.raises(FailureError, match=r"^failed: router 20 does not exist"):
        with_options(topology, FailedConfig(switches=(20,)), words, [])
    assert with_options(topology, FailedConfig(switches=(2,)), words[:1], ["4"]).switches == (2, 4)


def own_files(folder: Path, avoided: int) -> str:
    """Tables and layers that avoid a switch, as files; the section that reads them."""
    topology, section = network("{layers: lash_tor}")
    whole = build_tables(section, topology, 1).next_hop  # what concerns the switch itself is as it was
    found = surviving_tables(section, topology, FailedConfig(switches=(avoided,)), 1, lambda _: None).named
    rows = np.where(found.next_hop >= 0, found.next_hop, whole)
    np.savetxt(folder / "hops.csv", rows, fmt="%d", delimiter=",")
    (folder / "layers.csv").write_text("".join(layer_lines(found)) + f"{avoided},0,5\n0,{avoided},1,2,3,4,5\n")
    return f"{{scheme: file, file: {folder}/hops.csv, layers: file, layers_file: {folder}/layers.csv, patterns: 5}}"


def test_a_users_files_that_avoid_the_switch_are_taken_and_no_others(tmp_path: Path) -> None:
    topology, section = network(own_files(tmp_path, 13))
    failed = FailedConfig(switches=(13,))
    tables, report = tables_after_failure(section, topology, failed, 1)
    rows = dict(report.rows)
    assert rows["files"].startswith("fit what is left") and "paths changed" not in rows
    assert tables.topology.routers == 19 and (report.named.next_hop != 13).all() and report.named.entries[13] == 0
    again = np.loadtxt(tmp_path / "hops.csv", delimiter=",", dtype=int)
    for s, d in itertools.permutations([r for r in range(20) if r != 13], 2):
        path = path_of(again, s, d)
        assert path == path_of(report.named.next_hop, s, d) and len(report.named.layers.of_path(s, d)) == len(path) - 1
    with pytest.raises(
        UserError, match=r"hops.csv:\d+: the entry of router \d+ for .* names router 4, which has failed"
    ):
        tables_after_failure(section, topology, FailedConfig(switches=(4,)), 1)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ((19, 0, -1), r"hops.csv:20: the entry of router 19 for destination 0 is missing \(path 19 → \?\)"),
        ((19, 0, 13), "hops.csv:20: the entry of router 19 for destination 0 names router 13, which has failed"),
        ((19, 0, 19), "hops.csv:20: the entry of router 19 for destination 0 names router 19, which is no neighbour"),
    ],
)
def test_a_users_table_is_checked_with_the_numbers_of_the_whole_network(
    broken: tuple[int, int, int], message: str, tmp_path: Path
) -> None:
    topology, section = network(own_files(tmp_path, 13))
    rows = np.loadtxt(tmp_path / "hops.csv", delimiter=",", dtype=int)
    rows[broken[:2]] = broken[2]
    np.savetxt(tmp_path / "hops.csv", rows, fmt="%d", delimiter=",")
    with pytest.raises(UserError, match=message):
        tables_after_failure(section, topology, FailedConfig(switches=(13,)), 1)


def test_circles_and_waiting_channels_have_the_numbers_of_the_whole_network(tmp_path: Path) -> None:
    ring = "-1,1,1,1,1\n2,-1,2,2,2\n3,3,-1,3,3\n4,4,4,-1,4\n0,0,0,0,-1\n"  # one way round; 0 has no part in it
    text = "name: t\ntopology: {kind: complete, routers: 5}\ntables: {scheme: file, file: hops.csv, layers: single}\n"
    text = text.replace("kind: complete, routers: 5", "kind: edge_list, file: all.txt")
    (tmp_path / "all.txt").write_text("".join(f"{a} {b}\n" for a in range(5) for b in range(a)))
    (tmp_path / "hops.csv").write_text(ring.replace("0,0,0,0,-1", "0,1,1,1,-1"))
    config = parse_config(text, "t.yml", folder=tmp_path)
    topology = build(config.topology, config.address)
    with pytest.raises(
        UserError, match=r"can deadlock; waiting channels: (?=.*4→1 layer 0)(?=.*1→2)(?=.*2→3)(?=.*3→4)"
    ):
        tables_after_failure(config.tables, topology, FailedConfig(switches=(0,)), 1)
    (tmp_path / "hops.csv").write_text(ring.replace("0,0,0,0,-1", "0,3,1,1,-1"))
    with pytest.raises(UserError, match=r"hops.csv:5: from router 2 to router 1 packets go in a circle: 2 → 3 → 4 → 3"):
        tables_after_failure(config.tables, topology, FailedConfig(switches=(0,)), 1)


def test_a_users_table_is_simulated_without_the_switch_and_checked(tmp_path: Path) -> None:
    text = TEXT + own_files(tmp_path, 13) + "\nfailed: {switches: [13]}\n"
    config = parse_config(text)
    rows = dict(summarize(config))
    assert rows["tables"].startswith("file, 18 entries at most; checked")
    assert "(file), checked: no cycle" in rows["virtual layers"]
    left = without_failed(build(config.topology, config.address), config.failed)
    named = linked_tables(config.tables, left, 1)
    assert (named.next_hop[13] == -1).all() and named.layers.count > 1
    with pytest.raises(FailureError, match="router 99 does not exist"):
        summarize(config.model_copy(update={"failed": FailedConfig(switches=(99,))}))


@pytest.mark.parametrize("words", ["3", "3-", "a-b", "3-7;4-5", "-1-2"])
def test_words_of_another_form(words: str) -> None:
    with pytest.raises(UserError, match=r"--fail: must be routers as 3-7 or router and port as 3.2, not"):
        parse_failed([words], [])


def test_the_command_writes_the_change(tmp_path: Path) -> None:
    file = tmp_path / "t.yml"
    file.write_text(TEXT + "{patterns: 5, scheme: cowen}\nfailed: {switches: [2]}\n")
    topology, _ = network()
    other = int(topology.peer_router[0][topology.peer_router[0] > 2][0])
    out = tmp_path / "out"
    result = CliRunner().invoke(app, ["route", str(file), "--fail", f"0-{other}", "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert f"link 0–{other}, switch 2" in result.output and "paths changed" in result.output
    next_hop = np.loadtxt(out / "next_hops.csv", delimiter=",", dtype=int)
    assert next_hop.shape == (20, 20) and (next_hop[2] == -1).all() and (next_hop[0] != other).all()
    dump = (out / "lft.txt").read_text()
    assert dump.count(" lids dumped") == 19 and "of switch Lid 3 " not in dump
    assert "\n0x0003 " not in dump and dump.count("'host 3'") == 19
    assert "'host 4'" not in dump and "'host 5'" not in dump  # those of switch 2
    layers = [tuple(map(int, line.split(",")[:2])) for line in (out / "layers.csv").read_text().splitlines()]
    assert sorted(layers) == sorted(itertools.permutations([r for r in range(20) if r != 2], 2))
    entries = json.loads((out / "tables.json").read_text())["entries"]
    assert len(entries) == 20 and entries[2] == [] and all(d != 2 for row in entries for d, _ in row)
    assert "written" in (out / "routers.csv").read_text().splitlines()[0]
    assert json.loads((out / "metadata.json").read_text())["config"]["failed"]["links"] == [[0, other]]


def test_caches_are_asked_on_what_is_left(tmp_path: Path) -> None:
    text = TEXT + "{cache_key: entry, scheme: loren}\nrouting: {algorithm: tables}\nworkload: {kind: all_to_all}\n"
    text = text.replace("random_regular, routers: 20", "layout_random, n: 5, length: 3") + "failed: {switches: [7]}\n"
    found = run_hits(parse_config(text))
    used = found.ports[found.ports["lookups"] > 0]
    assert found.totals["packets"] == found.totals["delivered"] == 48 * 47
    assert found.totals["not_sent"] == 50 * 49 - 48 * 47 and 7 not in set(used["router"])
    alone = failed_ports(found.topology, FailedConfig(switches=(7,)))
    assert not alone.any()  # its links are gone
    whole = found.config.model_copy(update={"failed": FailedConfig()})
    assert run_hits(whole).totals["not_sent"] == 0


def test_memory_images_are_those_of_what_is_left() -> None:
    text = TEXT.replace("random_regular, routers: 20", "layout_random, n: 5, length: 3") + "{scheme: loren}\n"
    config = parse_config(text + "failed: {switches: [7]}\n")
    files = table_files(config)
    switches = json.loads(files["t_switches.json"])
    topology = build(config.topology, config.address)
    gone = {int(a) for a in topology.host_address[topology.host_router == 7]}
    for switch in switches:
        tcam = Tcam.of_rows([TcamRow(int(v, 16), int(m, 16), o) for v, m, o in switch["tcam"]])
        found = tcam.lookup_many(topology.host_address)
        for address, port in zip(topology.host_address.tolist(), found.tolist(), strict=True):
            if address in gone or switch["router"] == 7:
                assert port == NO_MATCH or (switch["router"] == 7 and address in gone)
            else:
                assert port != NO_MATCH and topology.peer_router[switch["router"], port] != 7


@pytest.mark.parametrize("command", [["hits"], ["app"], ["net"]])
def test_failed_parts_are_refused_where_they_would_have_no_effect(command: list[str], tmp_path: Path) -> None:
    text = "name: t\ntopology: {kind: torus, radices: [3, 3]}\nfailed: {switches: [3]}\n"
    text += "workload: {kind: collective, operation: allreduce, bytes: 8}\n"
    path = tmp_path / "t.yml"
    path.write_text(text + ("router: {model: packet}\nrouting: {algorithm: ofr}\n" if command == ["net"] else ""))
    result = CliRunner().invoke(app, [*command, str(path), "-o", str(tmp_path / "out")])
    assert isinstance(result.exception, FailureError) and "failed: switch 3: " in str(result.exception)
    assert not (tmp_path / "out").exists()

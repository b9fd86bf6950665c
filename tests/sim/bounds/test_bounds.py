"""`hopforge bounds` against lists made elsewhere (shared/networks/golden), brute force and closed forms."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.topology import Topology, build
from hopforge.sim.bounds.bounds import find_bounds
from hopforge.sim.bounds.ideal import ideal_factor, ideal_variables
from hopforge.sim.bounds.permutation import worst_permutation
from hopforge.sim.bounds.prepared import MAX_ROUTERS, MOST_VARIABLES, prepare_bounds
from hopforge.sim.bounds.shares import PER_HOP, PER_PATH, SINGLE, MinimalWays
from hopforge.sim.start.preparation import for_command
from hopforge.sim.traffic.demand import mean_demand

_PLACES = [folder / "shared" / "networks" for folder in Path(__file__).parents]
SHARED = next((place for place in _PLACES if place.exists()), _PLACES[0])
RULES = {"ecmp_per_hop": PER_HOP, "ecmp_per_path": PER_PATH, "single_lowest_next_hop": SINGLE}
NETWORKS = {
    "polarfly_q3": "{kind: polarfly, q: 3}",
    "slimfly_q4": "{kind: slim_fly, q: 4}",
    "hyperx_4x4": "{kind: hyperx, sizes: [4, 4], hosts_per_router: 4}",
    "dfplus_l2s2h2": "{kind: dragonfly_plus, hosts_per_router: 2, leaves: 2, spines: 2, h: 2}",
    "leafspine_6x2": "{kind: clos, hosts_per_router: 4, leaves: 6, middles: 2}",
    "fattree3_4p4e2a4c": "{kind: clos, hosts_per_router: 4, pods: 4, leaves: 4, middles: 2, roots: 4}",
    "slimfly_q5": "{kind: slim_fly, q: 5}",
    "slimfly_q8": "{kind: slim_fly, q: 8}",
    "slimfly_q11": "{kind: slim_fly, q: 11}",
    "polarfly_q5": "{kind: polarfly, q: 5}",
    "polarfly_q8": "{kind: polarfly, q: 8}",
    "polarfly_q11": "{kind: polarfly, q: 11}",
    "hyperx_4x4x4": "{kind: hyperx, sizes: [4, 4, 4], hosts_per_router: 4}",
    "hyperx_16": "{kind: hyperx, sizes: [16], hosts_per_router: 16}",
    "dfplus_l4s4h2": "{kind: dragonfly_plus, hosts_per_router: 4, leaves: 4, spines: 4, h: 2}",
    "dfplus_l8s4h2": "{kind: dragonfly_plus, hosts_per_router: 4, leaves: 8, spines: 4, h: 2}",
    "leafspine_8x4": "{kind: clos, hosts_per_router: 8, leaves: 8, middles: 4}",
    "fattree3_4p2e2a4c": "{kind: clos, hosts_per_router: 2, pods: 4, leaves: 2, middles: 2, roots: 4}",
}
RANDOM = ("rrg_32_4", "rrg_50_7", "rrg_128_6")
beside = pytest.mark.skipif(not SHARED.exists(), reason="no golden networks beside this checkout")


def quiet(done: int, total: int) -> None:
    """Nobody looks."""


def network(section: str) -> Topology:
    config = parse_config(f"name: x\ntopology: {section}\n")
    return build(config.topology, config.address)


def golden(file: str, name: str) -> dict[str, Any]:
    return next(one for one in json.loads((SHARED / "golden" / file).read_text()) if one["name"] == name)


def from_edges(name: str, folder: Path) -> Topology:
    """A golden network of which there is no kind, from its list of edges."""
    found = golden("networks.json", name)
    (folder / "edges.txt").write_text("".join(f"{a} {b}\n" for a, b in found["edges"]))
    text = f"{{kind: edge_list, file: {folder / 'edges.txt'}, hosts_per_router: {found['terminals_per_host_router']}}}"
    return network(text)


def rates_of(topology: Topology, goals: Any) -> Any:
    rate = np.zeros((topology.routers, topology.routers))
    np.add.at(rate, (topology.host_router, topology.host_router[np.asarray(goals)]), 1.0)
    return rate


def uniform(topology: Topology) -> Any:
    return mean_demand(topology, "uniform", {}, np.random.default_rng(0)).rate


def check_loads(name: str, topology: Topology) -> None:
    wanted = golden("networks.json", name)["channel_load"]
    ways, rate, used = MinimalWays(topology), uniform(topology), topology.peer_router >= 0
    assert 2 * ways.loads(PER_HOP, rate).max() == pytest.approx(
        wanted["valiant_any_traffic"]["max_channel_load_bound"], abs=1e-5
    )
    compared = 0
    for key, rule in RULES.items():
        load = ways.loads(rule, rate)
        assert load.max() == pytest.approx(wanted[key]["uniform_max_channel_load"], abs=1e-5), key
        assert load[used].mean() == pytest.approx(wanted[key]["uniform_mean_channel_load"], abs=1e-5), key
        if "worst_permutation_max_channel_load" not in wanted[key]:
            continue
        compared += 1
        found = worst_permutation(topology, ways, rule, quiet)
        assert found.load == pytest.approx(wanted[key]["worst_permutation_max_channel_load"], abs=1e-5), key
        assert sorted(found.goals.tolist()) == list(range(topology.hosts))
        load = ways.loads(rule, rates_of(topology, found.goals))
        assert load[found.router, found.port] == pytest.approx(found.load) == load.max()
    assert compared or topology.routers > 100


def check_ideal(name: str, topology: Topology) -> None:
    wanted = golden("optimal.json", name)
    listed = golden("networks.json", name)["channel_load"]["ecmp_per_hop"]["a_worst_host_router_permutation"]
    rate = np.zeros((topology.routers, topology.routers))
    homes, hosts = np.unique(topology.host_router, return_counts=True)
    rate[homes, np.asarray(listed)] = hosts
    assert ideal_factor(topology, uniform(topology)) == pytest.approx(
        wanted["uniform_optimal_routing_factor"], abs=1e-5
    )
    assert ideal_factor(topology, rate) == pytest.approx(
        wanted["worst_minimal_permutation_optimal_routing_factor"], abs=1e-5
    )


@beside
def test_all_golden_networks_are_here() -> None:
    names = [one["name"] for one in json.loads((SHARED / "golden" / "networks.json").read_text())]
    assert len(names) == 21
    assert set(names) == {*NETWORKS, *RANDOM}


@beside
@pytest.mark.parametrize("name", NETWORKS)
def test_golden_loads(name: str) -> None:
    check_loads(name, network(NETWORKS[name]))


@beside
@pytest.mark.parametrize("name", RANDOM)
def test_golden_loads_of_random_graphs(name: str, tmp_path: Path) -> None:
    check_loads(name, from_edges(name, tmp_path))


@beside
@pytest.mark.parametrize("name", [
    "polarfly_q3", "slimfly_q4", "hyperx_4x4", "dfplus_l2s2h2", "leafspine_6x2", "fattree3_4p4e2a4c", "rrg_32_4",
    "polarfly_q5", pytest.param("slimfly_q5", marks=pytest.mark.study), "hyperx_16", "leafspine_8x4",
    "fattree3_4p2e2a4c",
])  # fmt: skip
def test_golden_ideal_routing(name: str, tmp_path: Path) -> None:
    check_ideal(name, from_edges(name, tmp_path) if name in RANDOM else network(NETWORKS[name]))


@beside
@pytest.mark.parametrize(("name", "network_name", "factor"), [
    ("pf5", "polarfly_q5", 0.66784), pytest.param("sf5", "slimfly_q5", 0.609062, marks=pytest.mark.study),
])  # fmt: skip
def test_the_adversarial_permutations(name: str, network_name: str, factor: float) -> None:
    perms = json.loads((SHARED / "diameter2" / "perms.json").read_text())
    key = next(one for one in perms if one.startswith(name) and "adv" in one)
    topology = network(NETWORKS[network_name])
    assert ideal_factor(topology, rates_of(topology, perms[key])) == pytest.approx(factor, abs=1e-5)


@pytest.mark.parametrize("rule", RULES.values())
@pytest.mark.parametrize("section", [
    "{kind: mesh, radices: [3, 2]}", "{kind: torus, radices: [6]}",
    "{kind: clos, hosts_per_router: 1, leaves: 6, middles: 2}",
])  # fmt: skip
def test_no_permutation_is_worse(section: str, rule: int) -> None:
    """All 720 permutations of six hosts."""
    topology = network(section)
    ways = MinimalWays(topology)
    most = max(ways.loads(rule, rates_of(topology, one)).max() for one in itertools.permutations(range(6)))
    assert worst_permutation(topology, ways, rule, quiet).load == pytest.approx(most)


def test_hosts_that_are_not_alike(tmp_path: Path) -> None:
    """Three hosts at one end of a line, one and two at the others: at most three flows over the first channel."""
    (tmp_path / "g.anynet").write_text(
        "router 0 node 0 node 1 node 2 router 1\nrouter 1 node 3 router 2\nrouter 2 node 4 node 5\n"
    )
    topology = network(f"{{kind: edge_list, file: {tmp_path / 'g.anynet'}}}")
    ways = MinimalWays(topology)
    found = worst_permutation(topology, ways, PER_HOP, quiet)
    most = max(ways.loads(PER_HOP, rates_of(topology, one)).max() for one in itertools.permutations(range(6)))
    assert found.load == most == 3
    assert ways.loads(PER_HOP, rates_of(topology, found.goals)).max() == 3


def test_rules_share_differently() -> None:
    """From one corner of a mesh to another: 6 ways, of which 3 begin with each link; per hop the last turn differs."""
    ways = MinimalWays(network("{kind: mesh, radices: [3, 3]}"))
    rate = np.zeros((9, 9))
    rate[0, 8] = 1.0
    per_hop, per_path, single = (ways.loads(rule, rate) for rule in (PER_HOP, PER_PATH, SINGLE))
    assert per_hop[1].tolist() == pytest.approx([0, 0.25, 0, 0.25, 0])
    assert per_path[1].tolist() == pytest.approx([0, 1 / 6, 0, 1 / 3, 0]) or per_path[1].sum() == pytest.approx(0.5)
    assert sorted(per_path[1][per_path[1] > 0].tolist()) == pytest.approx([1 / 6, 1 / 3])
    assert np.count_nonzero(single) == 4
    assert single.max() == 1.0


def test_ideal_of_a_ring() -> None:
    """Neighbours of a ring of 4 send to each other: both ways round share it, 1 + 1/3 where the long way is free."""
    topology = network("{kind: torus, radices: [4]}")
    assert ideal_factor(topology, rates_of(topology, [1, 0, 2, 3])) == pytest.approx(2.0)
    assert ideal_factor(topology, rates_of(topology, [2, 3, 0, 1])) == pytest.approx(1.0)
    assert ideal_factor(topology, rates_of(topology, [0, 1, 2, 3])) == np.inf
    assert ideal_variables(topology, rates_of(topology, [1, 0, 2, 3])) == 2 * 8 + 1


def test_command_and_its_files(tmp_path: Path) -> None:
    file = tmp_path / "x.yml"
    file.write_text("name: x\ntopology: {kind: hyperx, sizes: [4], hosts_per_router: 2}\n"
                    "traffic: {pattern: hotspot, share: 1.0}\nrouter: {vcs: 2}\n")  # fmt: skip
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["bounds", str(file), "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "hopforge bounds does not use router" in done.output
    table = pd.read_csv(tmp_path / "out" / "bounds.csv").set_index("routing")
    assert table.loc["ideal", "traffic_throughput"] == pytest.approx(1 / 8)  # 8 hosts send to one
    assert table.loc["minimal_per_hop", "traffic_load"] == pytest.approx(2.0)
    assert table.loc["minimal_per_hop", "worst_load"] == pytest.approx(2.0)
    assert table.loc["valiant", "worst_load"] == pytest.approx(1.0)  # twice 2 · 2 / 8
    channels = pd.read_csv(tmp_path / "out" / "channels.csv")
    assert len(channels) == 12
    assert channels["traffic_minimal_per_hop"].sum() == pytest.approx(6.0)
    assert sorted(pd.read_csv(tmp_path / "out" / "worst_permutation.csv")["minimal_single"]) == list(range(8))


@pytest.mark.parametrize(("topology", "failed"), [
    ("{kind: torus, radices: [3, 3]}", [[0, 1], [4, 7]]),
    ("{kind: hyperx, sizes: [3, 3], hosts_per_router: 2}", [[0, 1]]),
    ("{kind: slim_fly, q: 3, hosts_per_router: 1}", []),
])  # fmt: skip
def test_failed_links_are_left_out(tmp_path: Path, topology: str, failed: list[list[int]]) -> None:
    """The bounds are those of a list of the links that are left."""
    text = "name: x\nrouting: {algorithm: shortest}\ntraffic: {pattern: permutation}\n"
    damaged = parse_config(f"{text}topology: {topology}\nfailed: {{links: {failed}}}\n")
    whole = build(damaged.topology, damaged.address)
    router, port = np.nonzero(whole.peer_router >= 0)
    links = zip(router.tolist(), whole.peer_router[router, port].tolist(), strict=True)
    left = sorted((a, b) for a, b in links if a < b and [a, b] not in failed)
    (tmp_path / "x.txt").write_text("".join(f"{a} {b}\n" for a, b in left))
    each = whole.hosts // whole.routers
    listed = parse_config(
        f"{text}topology: {{kind: edge_list, file: {tmp_path / 'x.txt'}, hosts_per_router: {each}}}\n"
    )
    found, expected = (
        find_bounds(one, prepare_bounds(one), quiet).table
        for one in (for_command("bounds", damaged), for_command("bounds", listed))
    )
    assert len(found["routing"]) == 6
    assert found["routing"].tolist() == expected["routing"].tolist()
    columns = [column for column in expected if column.endswith(("load", "throughput"))]
    assert len(columns) == 7
    for column in columns:
        assert found[column] == pytest.approx(expected[column], nan_ok=True), column


@pytest.mark.parametrize(("text", "said"), [
    ("topology: {kind: mesh, radices: [2, 2]}\ntraffic: {reply: {}}\n", "traffic.reply: bounds are of patterns"),
    ("topology: {kind: mesh, radices: [2, 2]}\ntraffic: {source: program}\nworkload: {kind: collective, operation: "
     "barrier}\n", "traffic.source: program: bounds are of patterns"),
    ("topology: {kind: mesh, radices: [2]}\ntraffic: {pattern: shift}\n", "traffic.pattern must be one of adversarial"),
    ("topology: {kind: mesh, radices: [2, 2]}\nfailed: {switches: [1]}\n",
     "hopforge bounds, but for failed links, takes whole networks only"),
    ("address: {chunk_bits: 8}\ntopology: {kind: torus, radices: [128, 128]}\n",
     f"16384 routers; hopforge bounds takes at most {MAX_ROUTERS}"),
])  # fmt: skip
def test_what_it_does_not_take(text: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        prepare_bounds(for_command("bounds", parse_config(f"name: x\n{text}")))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_pattern_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("def prepare(topology, options, generator):\n    raise ValueError\n")
    text = f"name: x\ntopology: {{kind: mesh, radices: [2]}}\ntraffic: {{pattern: file, file: {tmp_path / 'p.py'}}}\n"
    with pytest.raises(UserError, match=r"traffic\.pattern: file draws destinations as it likes"):
        prepare_bounds(for_command("bounds", parse_config(text)))


def test_what_is_too_large_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hopforge.sim.bounds.prepared.MOST_VARIABLES", 10)
    monkeypatch.setattr("hopforge.sim.bounds.prepared.MOST_STEPS", 10.0)
    config = for_command("bounds", parse_config("name: x\ntopology: {kind: mesh, radices: [3, 3]}\n"))
    setup = prepare_bounds(config)
    assert setup.left_out["ideal"] == "no ideal throughput: 217 variables, more than 10"
    assert setup.left_out["worst permutation"].startswith("no worst permutation: about ")
    found = find_bounds(config, setup, quiet)
    assert not found.worst
    assert np.isnan(found.table["uniform_load"][-1])
    assert np.isfinite(found.table["uniform_load"][:-1].astype(float)).all()
    assert MOST_VARIABLES > 10

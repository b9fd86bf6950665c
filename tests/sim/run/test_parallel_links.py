"""Every engine over parallel links: which of them carry load, and that all engines say the same."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hopforge.gen.design.configured import network_design
from hopforge.model.config import Config, load_config, parse_config
from hopforge.model.errors import UserError
from hopforge.model.irregular.table_routes import configured_routes
from hopforge.model.topology import Topology
from hopforge.model.topology.parallel_links import parallel_ports
from hopforge.sim.hits.channel_loads import minimal_loads, uniform_rates
from hopforge.sim.hits.hit_rates import run_hits
from hopforge.sim.run.simulation import Simulation

HOSTS = 4
FOUR = [(0, 1)] * 4
QUEUED = "model: input_output_queued, "


def graph(tmp_path: Path, edges: list[tuple[int, int]], routing: str, router: str = "", more: str = "") -> Config:
    (tmp_path / "net.txt").write_text("".join(f"{a} {b}\n" for a, b in edges))
    if "escape" in routing + more and not router:
        router = "vc_release: credits, "  # what the proof of an escape needs
    file = tmp_path / "config.yml"
    file.write_text(
        f"name: test\ntopology: {{kind: edge_list, file: net.txt, hosts_per_router: {HOSTS}}}\n"
        f"routing: {{{routing}}}\nrouter: {{{router}vcs: 4}}\n{more}"
    )
    return load_config(file)


def fly(routing: str, vcs: int = 2, shape: str = "p: 4, a: 4, h: 4, g: 3", more: str = "") -> Config:
    return parse_config(
        f"name: test\ntopology: {{kind: dragonfly, {shape}}}\nrouting: {{{routing}}}\nrouter: {{vcs: {vcs}}}\n{more}"
    )


def all_pairs(topology: Topology) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    source, target = np.divmod(np.arange(topology.hosts**2), topology.hosts)
    return source[source != target], target[source != target]


def simulated(config: Config) -> tuple[Simulation, NDArray[np.int64]]:
    """Flits at every output port when every host sends one flit to every other host, as fast as it can."""
    probe = Simulation(config, 0.1, 1, check=False)
    source, target = all_pairs(probe.topology)
    order = np.argsort((target - source) % probe.topology.hosts, kind="stable")
    script = (source[order], np.zeros(len(order), np.int64), target[order], np.ones(len(order), np.int64))
    run = Simulation(config, 0.1, 1, script=script)
    for _ in range(200):
        run.advance(500)
        if run.state.flits_in_flight == 0 and int(run.state["flits_ejected"]) == len(order):
            break
    assert int(run.state["flits_ejected"]) == len(order)
    return run, np.array(run.state["output_port"]["flits"]).reshape(run.topology.routers, -1)


def of_routes(config: Config, topology: Topology) -> NDArray[np.int64]:
    """Return the same by the routes of the flow engine and of `hopforge hits`."""
    paths = configured_routes(config, topology).paths(*all_pairs(topology))
    load = np.zeros(topology.peer_router.shape, np.int64)
    np.add.at(load, (paths.router, paths.output), 1)
    return load


def between(topology: Topology, load: NDArray[Any]) -> list[NDArray[Any]]:
    """Loads of the links of each pair: of routers, in a dragonfly of groups."""
    a = int(topology.params["a"]) if topology.kind == "dragonfly" else 1
    router, port = np.nonzero(topology.peer_router >= 0)
    peer = topology.peer_router[router, port]
    found: dict[tuple[int, int], list[Any]] = {}
    for here, there, value in zip(router // a, peer // a, load[router, port], strict=True):
        if here != there:
            found.setdefault((int(here), int(there)), []).append(value)
    return [np.array(values) for values in found.values()]


def unevenness(topology: Topology, load: NDArray[Any]) -> float:
    return max(float(values.max() / values.mean()) for values in between(topology, load))


SECTIONS = ["{}", "{layers: single}", "{layers: dfsssp}", "{layers: hop_indexed}", "{layers: escape}"]
GRAPH_CASES = [("tables", section) for section in SECTIONS]
GRAPH_CASES += [(name, "{}") for name in ("shortest", "up_down", "shortest_escape")]
RULES = ("own_first", "destination", "hash", "adaptive")
#: all rules with the first algorithm, then one each in turn
FOUR_CASES = [
    (algorithm, section, rule)
    for number, (algorithm, section) in enumerate(GRAPH_CASES)
    for rule in (RULES if number == 0 else (RULES[number % 4],))
]


@pytest.mark.parametrize(("algorithm", "section", "rule"), FOUR_CASES)
def test_four_links_between_two_routers(tmp_path: Path, algorithm: str, section: str, rule: str) -> None:
    config = graph(tmp_path, FOUR, f"algorithm: {algorithm}, links: {rule}", more=f"tables: {section}\n")
    run, load = simulated(config)
    assert (np.concatenate(between(run.topology, load)) > 0).all()
    if rule == "adaptive":
        with pytest.raises(UserError, match=r"routing.links: must be own_first, destination or hash for routes"):
            configured_routes(config, run.topology)
        return
    assert unevenness(run.topology, load) == 1
    want = of_routes(config, run.topology)
    if "escape" in algorithm + section:  # some packets took the escape, whose link is that of the destination
        assert load.sum() == want.sum()
    else:
        assert load.tolist() == want.tolist()


@pytest.mark.parametrize("rule", ["destination", "hash", "adaptive"])
def test_input_output_queued_routers(tmp_path: Path, rule: str) -> None:
    config = graph(tmp_path, FOUR, f"algorithm: tables, links: {rule}", QUEUED)
    if rule == "adaptive":  # queues decide: with little traffic the first link will do
        run = Simulation(config, 0.9, 1)
        run.advance(3000)
        load = np.array(run.state["output_port"]["flits"]).reshape(2, -1)
        assert ((load[:, HOSTS:] > 0).sum(axis=1) >= 2).all()
        return
    run, load = simulated(config)
    assert unevenness(run.topology, load) == 1


def multigraph(seed: int) -> list[tuple[int, int]]:
    """Return a ring with chords of 4 to 6 routers, and 1 to 4 links between neighbours."""
    rng = np.random.default_rng(seed)
    routers = int(rng.integers(4, 7))
    ends = {(k, k + 1) for k in range(routers - 1)} | {(0, routers - 1)}
    ends |= {(a, b) for a in range(routers) for b in range(a + 2, routers) if rng.random() < 0.2}
    return [end for end in sorted(ends) for _ in range(int(rng.integers(1, 5)))]


def check_net(tmp_path: Path, seed: int) -> None:
    """Every parallel link that leads to where packets go carries some, and the engines agree where routes are known."""
    edges = multigraph(seed)
    rng = np.random.default_rng(seed)
    for algorithm, chosen in GRAPH_CASES[:4] if seed % 2 else GRAPH_CASES[4:]:
        # shortest paths in one layer can wait for each other around a ring
        section = chosen.replace("single", "single, scheme: up_down")
        rule = str(rng.choice(["own_first", "hash", "adaptive"]))
        router = QUEUED if rng.random() < 0.3 and "escape" not in algorithm + section else ""
        config = graph(tmp_path, edges, f"algorithm: {algorithm}, links: {rule}", router, f"tables: {section}\n")
        run, load = simulated(config)
        links = parallel_ports(run.topology)
        goals = np.zeros(load.shape, np.int64)  # flits to the neighbour over any link
        for router_number, port in np.argwhere(links.links > 1).tolist():
            goals[router_number, port] = load[router_number, links.ports[router_number, port]].sum()
        used = (links.links > 1) & (goals >= 8 * HOSTS * links.links)
        assert (load[used] > 0).all(), (edges, algorithm, section, rule)
        if algorithm == "tables" and rule != "adaptive" and section != "{layers: escape}":
            assert load.tolist() == of_routes(config, run.topology).tolist(), (edges, section, rule)


@pytest.mark.parametrize("seed", range(2))
def test_random_graphs_with_parallel_links(tmp_path: Path, seed: int) -> None:
    check_net(tmp_path, seed)


@pytest.mark.study
@pytest.mark.parametrize("seed", range(2, 60))
def test_many_random_graphs_with_parallel_links(tmp_path: Path, seed: int) -> None:
    check_net(tmp_path, seed)


@pytest.mark.parametrize("shape", ["p: 4, a: 4, h: 4, g: 3", "p: 2, a: 3, h: 2, g: 4", "p: 4, a: 1, h: 4, g: 3"])
@pytest.mark.parametrize("rule", ["own_first", "destination", "hash"])
def test_engines_agree_on_dragonflies(rule: str, shape: str) -> None:
    config = fly(f"algorithm: dragonfly_min, links: {rule}", shape=shape)
    run, load = simulated(config)
    assert load.tolist() == of_routes(config, run.topology).tolist()
    assert (np.concatenate(between(run.topology, load)) > 0).all()
    if "g: 3" in shape:  # hosts of a group are a multiple of the links
        assert unevenness(run.topology, load) <= 1.15
    if rule == "own_first":
        inside = run.topology.host_at < 0
        exact = minimal_loads(run.topology, uniform_rates(run.topology)) * run.topology.hosts
        assert np.allclose(exact[inside], load[inside])


UNIFORM = [
    *[("dragonfly_min", 2, rule) for rule in RULES],
    ("ugal_group", 3, "own_first"),
    ("par", 5, "hash"),
    ("valiant_node", 4, "destination"),
    ("q_adaptive", 5, "own_first"),
]


@pytest.mark.parametrize(("algorithm", "vcs", "rule"), UNIFORM)
def test_uniform_traffic_is_even_among_the_links_of_a_pair(algorithm: str, vcs: int, rule: str) -> None:
    run = Simulation(fly(f"algorithm: {algorithm}, links: {rule}", vcs), 0.3, 1)
    run.advance(12000)
    load = np.array(run.state["output_port"]["flits"]).reshape(run.topology.routers, -1)
    assert unevenness(run.topology, load) <= 1.15


@pytest.mark.parametrize("load", [0.05, 0.2, 0.5])
def test_adaptive_is_even_where_queues_are_alike(tmp_path: Path, load: float) -> None:
    """With short queues credits say nothing: the first candidate wins, which was the same for all packets."""
    by_hops = "shortest" if load < 0.5 else "up_down"
    for config in (fly("algorithm: dragonfly_min, links: adaptive", 2),
                   graph(tmp_path, FOUR, f"algorithm: {by_hops}, links: adaptive")):  # fmt: skip
        run = Simulation(config, load, 1)
        run.advance(int(3000 / load))
        flits = np.array(run.state["output_port"]["flits"]).reshape(run.topology.routers, -1)
        assert unevenness(run.topology, flits) <= 1.15


def test_accepted_load_is_near_its_bound() -> None:
    """With one of eight links in use it was 0.144."""
    run = Simulation(fly("algorithm: dragonfly_min", 4), 0.7, 1)
    run.advance(3000)
    before = int(run.state["flits_ejected"])
    run.advance(3000)
    assert (int(run.state["flits_ejected"]) - before) / (3000 * run.topology.hosts) > 0.6


def test_keys_carry_the_link() -> None:
    """A key of another group leads over all links of the pair: there are as many keys as links in use."""
    more = "workload: {kind: all_to_all}\nlookup: {cache: {entries: 1024}}\n"
    misses = {}
    for rule in ("own_first", "destination", "hash"):
        found = run_hits(fly(f"algorithm: dragonfly_min, links: {rule}", more=more))
        misses[rule] = found.totals["misses"]
        routes = configured_routes(found.config, found.topology)
        source, target = all_pairs(found.topology)
        paths = routes.paths(source, target)
        repeated = np.repeat(target, paths.lengths)
        link = routes.link_keys(paths.router, np.repeat(source, paths.lengths), repeated)
        key = np.stack([paths.router, paths.port, _group_keys(found.topology, paths.router, repeated), link])
        # of one key all packets leave by one port: a cached answer is right for them
        full = np.unique(np.concatenate([key, paths.output[None]]), axis=1)
        assert np.unique(key, axis=1).shape[1] == full.shape[1] == misses[rule]
    assert misses["destination"] >= misses["own_first"]


def _group_keys(topology: Topology, router: NDArray[Any], host: NDArray[Any]) -> NDArray[Any]:
    """Return the dragonfly's keys by their definition: group, else router, else terminal."""
    there = topology.host_router[host]
    a, p = int(topology.params["a"]), int(topology.params["p"])
    return np.where(there // a != router // a, 2000 + there // a, np.where(there != router, 1000 + there % a, host % p))


def test_what_tables_cannot_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"routing.algorithm up_down cannot be a table .* \(routing.links: hash, "):
        network_design(graph(tmp_path, FOUR, "algorithm: up_down, links: hash"))
    looked_up = "route_computation: lookup, "
    with pytest.raises(UserError, match=r"must be table for routing.algorithm up_down, not lookup: it chooses a link"):
        Simulation(graph(tmp_path, FOUR, "algorithm: up_down, links: hash", looked_up), 0.1, 1)
    whole = graph(tmp_path, FOUR, "algorithm: up_down", looked_up, "lookup: {reduction: false}\n")
    run, load = simulated(whole)
    assert unevenness(run.topology, load) == 1


def test_links_that_fail_leave_the_others(tmp_path: Path) -> None:
    """Two of four links fail during the run: those left carry what comes after."""
    failure = "{cycle: 1000, detection_cycles: 10, reprogram_cycles: 10, ports: [[0, 4], [0, 6]]}"
    config = graph(tmp_path, FOUR, "algorithm: up_down", more=f"simulation: {{failures: [{failure}]}}\n")
    run = Simulation(config, 0.2, 1)
    run.advance(1500)
    before = np.array(run.state["output_port"]["flits"]).reshape(2, -1)[:, HOSTS:]
    run.advance(1500)
    after = np.array(run.state["output_port"]["flits"]).reshape(2, -1)[:, HOSTS:]
    assert (before > 0).all()
    assert ((after - before) > 0).tolist() == [[False, True, False, True]] * 2

"""Complete, HyperX, Slim Fly and random graphs against their definitions, networkx and the golden instances."""

import itertools
import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from hopforge.model.config import (
    AddressConfig,
    EdgeListConfig,
    FullyConnectedConfig,
    HyperXConfig,
    LayoutRandomConfig,
    RandomRegularConfig,
    SlimFlyConfig,
    TopologyConfig,
    parse_config,
)
from hopforge.model.config.load import ConfigError
from hopforge.model.numbers.galois_field import GaloisField, prime_power
from hopforge.model.topology import Topology, build
from hopforge.model.topology.random_graph import layout_random_edges, random_regular_edges
from hopforge.model.topology.routing_table import hop_statistics
from hopforge.sim.run.simulation import Simulation

GOLDEN = Path(__file__).parents[4] / "shared" / "golden"


def graph(topology: Topology) -> nx.Graph:
    """The routers' graph; every link must be there in both directions, and once."""
    net = nx.MultiDiGraph()
    net.add_nodes_from(range(topology.routers))
    channels = topology.channels()
    net.add_edges_from(zip(channels.src_router.tolist(), channels.dst_router.tolist(), strict=True))
    simple = nx.Graph(net)
    assert net.number_of_edges() == 2 * simple.number_of_edges()
    assert nx.number_of_selfloops(simple) == 0
    return simple


def made(section: TopologyConfig) -> tuple[Topology, nx.Graph]:
    topology = build(section, AddressConfig())
    for host in range(topology.hosts):
        assert topology.host_at[topology.host_router[host], topology.host_port[host]] == host
        assert topology.host_address[host] == host
    return topology, graph(topology)


def test_fully_connected() -> None:
    topology, found = made(FullyConnectedConfig(kind="fully_connected", routers=6, hosts_per_router=3))
    assert nx.is_isomorphic(found, nx.complete_graph(6))
    for router, other in itertools.permutations(range(6), 2):
        assert topology.peer_router[router, 3 + other - (other > router)] == other
    assert topology.host_router.tolist() == [host // 3 for host in range(18)]


@pytest.mark.parametrize(("sizes", "terminals"), [((4,), 1), ((3, 4), 2), ((2, 3, 4), 1), ((5, 2), 3)])
def test_hyperx_is_the_product_of_complete_graphs(sizes: tuple[int, ...], terminals: int) -> None:
    topology, found = made(HyperXConfig(kind="hyperx", sizes=sizes, hosts_per_router=terminals))

    def place(number: int) -> tuple[int, ...]:
        return tuple(number // int(np.prod(sizes[:i])) % size for i, size in enumerate(sizes))

    want = {
        (a, b)
        for a, b in itertools.combinations(range(topology.routers), 2)
        if sum(x != y for x, y in zip(place(a), place(b), strict=True)) == 1
    }
    assert {tuple(sorted(edge)) for edge in found.edges()} == want
    for router in range(topology.routers):
        port = terminals
        for i, size in enumerate(sizes):
            for x in range(size):
                if x != place(router)[i]:
                    there = place(int(topology.peer_router[router, port]))
                    assert there == (*place(router)[:i], x, *place(router)[i + 1 :])
                    port += 1
    assert nx.diameter(found) == len(sizes)


PRIME_POWERS = [3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 25, 27]


@pytest.mark.parametrize("q", PRIME_POWERS)
def test_slim_fly_has_the_order_degree_and_diameter_of_the_paper(q: int) -> None:
    """Besta and Hoefler 2014: 2q² routers of degree (3q − δ)/2 with q = 4w + δ, diameter 2, hosts: half, rounded up."""
    topology, found = made(SlimFlyConfig(kind="slim_fly", q=q))
    delta = {0: 0, 1: 1, 3: -1}[q % 4]
    assert topology.routers == 2 * q * q
    assert {degree for _, degree in found.degree()} == {(3 * q - delta) // 2}
    statistics = hop_statistics(topology)
    assert statistics.diameter == 2
    assert topology.hosts == topology.routers * -(-((3 * q - delta) // 2) // 2)


def test_the_slim_fly_of_q_5_is_the_hoffman_singleton_graph() -> None:
    _, found = made(SlimFlyConfig(kind="slim_fly", q=5))
    assert nx.is_isomorphic(found, nx.hoffman_singleton_graph())
    # a Moore graph: 1 + 7 + 7 * 6 = 50 routers, girth 5
    assert nx.girth(found) == 5


def test_the_slim_fly_of_q_19_is_the_network_of_the_paper() -> None:
    """Besta and Hoefler 2014, section VI: 10 830 hosts, 722 routers, k' = 29, p = 15."""
    topology = build(SlimFlyConfig(kind="slim_fly", q=19), AddressConfig())
    assert (topology.routers, topology.hosts, topology.max_ports) == (722, 10830, 29 + 15)


@pytest.mark.parametrize("q", [2, 3, 4, 5, 8, 9, 16, 25, 27, 49])
def test_galois_fields_are_fields(q: int) -> None:
    field = GaloisField(q)
    element = np.arange(q)
    a, b, c = (axis.ravel() for axis in np.meshgrid(element, element, element[: min(q, 16)], indexing="ij"))
    plus, times = field.plus, field.times
    assert np.array_equal(plus(a, b), plus(b, a))
    assert np.array_equal(times(a, b), times(b, a))
    assert np.array_equal(plus(plus(a, b), c), plus(a, plus(b, c)))
    assert np.array_equal(times(times(a, b), c), times(a, times(b, c)))
    assert np.array_equal(times(a, plus(b, c)), plus(times(a, b), times(a, c)))
    assert np.array_equal(plus(field.minus(a, b), b), a)
    assert np.array_equal(times(a, np.ones_like(a)), a)
    assert (times(a, b) == 0).tolist() == ((a == 0) | (b == 0)).tolist()
    assert sorted(field.powers.tolist()) == list(range(1, q))  # a primitive element reaches everything


def test_prime_powers() -> None:
    def slow(q: int) -> list[tuple[int, int]]:
        primes = [p for p in range(2, q + 1) if all(p % d for d in range(2, p))]
        return [(p, m) for p in primes for m in range(1, 9) if p**m == q]

    for q in range(130):
        assert [prime_power(q)] == (slow(q) or [None])
    with pytest.raises(ValueError, match="q must be a power of a prime, not 6"):
        GaloisField(6)


@pytest.mark.parametrize(("routers", "degree"), [(2, 1), (10, 3), (9, 4), (64, 3), (64, 16), (8, 7), (7, 2)])
def test_random_regular(routers: int, degree: int) -> None:
    section = RandomRegularConfig(kind="random_regular", routers=routers, degree=degree, seed=4)
    topology, found = made(section)
    assert {d for _, d in found.degree()} == {degree}
    assert nx.is_connected(found)
    assert np.array_equal(build(section, AddressConfig()).peer_router, topology.peer_router)


def test_random_regular_graphs_are_equally_likely() -> None:
    """2-regular graphs of 6 nodes: 60 hexagons and 10 pairs of triangles. Pairing is nearly uniform, not exactly."""
    generator = np.random.default_rng(5)
    seen = [tuple(map(tuple, random_regular_edges(6, 2, generator).tolist())) for _ in range(1000)]
    connected = {edges for edges in seen if nx.is_connected(nx.Graph(edges))}
    assert len(connected) == 60
    assert len(set(seen)) == 70
    # all hexagons are one class under renumbering: some 14 of each in the mean
    share = np.array([seen.count(edges) for edges in connected]) / sum(edges in connected for edges in seen)
    assert share.min() > 0.25 / 60
    assert share.max() < 2.5 / 60


@pytest.mark.parametrize(
    ("n", "degree", "length"), [(4, 4, 2), (8, 4, 2), (8, 4, 4), (5, 4, 2), (3, 8, 4), (2, 2, 1), (12, 6, 3)]
)
def test_layout_random(n: int, degree: int, length: int) -> None:
    section = LayoutRandomConfig(kind="layout_random", n=n, degree=degree, length=length, seed=2)
    topology, found = made(section)
    assert {d for _, d in found.degree()} == {degree}
    assert len(found) == n * n
    assert nx.is_connected(found)
    for a, b in found.edges():
        assert abs(a % n - b % n) + abs(a // n - b // n) <= length
    assert topology.position.tolist() == [[i % n, i // n] for i in range(n * n)]
    assert np.array_equal(build(section, AddressConfig()).peer_router, topology.peer_router)
    if degree < n * n - 1 and n > 2:
        other = LayoutRandomConfig(kind="layout_random", n=n, degree=degree, length=length, seed=3)
        assert not np.array_equal(build(other, AddressConfig()).peer_router, topology.peer_router)


@pytest.mark.parametrize("length", [7, 10**9, 10**18])
def test_a_length_beyond_the_floor_plan_limits_nothing(length: int) -> None:
    """And takes no memory: the longest link of 4 x 4 places has six."""
    whole, longer = (layout_random_edges(4, 3, one, np.random.default_rng(5)) for one in (6, length))
    assert whole.tolist() == longer.tolist()


def test_layout_random_has_the_mean_distance_of_the_paper() -> None:
    """spec compact-routing.md: 64 nodes, d = 4, r = 2: shortest paths of 4.022 hops in the mean over graphs."""
    means = []
    for seed in range(20):
        net = nx.Graph(layout_random_edges(8, 4, 2, np.random.default_rng(seed)).tolist())
        means.append(nx.average_shortest_path_length(net))
    error = np.std(means, ddof=1) / np.sqrt(len(means))
    assert abs(np.mean(means) - 4.022) < 0.02 + 3 * error


@pytest.mark.skipif(not GOLDEN.is_dir(), reason="no golden instances beside this checkout")
def test_golden_instances_are_read_exactly(tmp_path: Path) -> None:
    instances = json.loads((GOLDEN / "loren_instances.json").read_text())
    instances += json.loads((GOLDEN / "acro_instances.json").read_text())["instances"]
    assert len(instances) > 2
    for instance in instances:
        edges = [(u, v) for u, peers in enumerate(instance["adj"]) for v in peers if u < v]
        (tmp_path / "golden.txt").write_text("".join(f"{u} {v}\n" for u, v in edges))
        topology, _ = made(EdgeListConfig(kind="edge_list", file=tmp_path / "golden.txt"))
        assert [[int(v) for v in row if v >= 0] for row in topology.peer_router] == instance["adj"]
        if "shortest_avg" in instance:
            assert hop_statistics(topology).mean_hops == pytest.approx(instance["shortest_avg"])
            n, r = instance["n"], instance["r"]
            assert all(abs(u % n - v % n) + abs(u // n - v // n) <= r for u, v in edges)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("{kind: slim_fly, q: 6}", "topology.q: must be a power of a prime, such as 5 or 7, not 6"),
        ("{kind: polarfly, q: 10}", "topology.q: must be a power of a prime, such as 9 or 11, not 10"),
        ("{kind: polarfly, q: 1}", "topology.q: must be at least 2, not 1"),
        ("{kind: slim_fly, q: 2}", "topology.q: must be at least 3, not 2"),
        ("{kind: random_regular, routers: 4, degree: 4}", "topology.degree: must be less than routers=4, not 4"),
        ("{kind: random_regular, routers: 5, degree: 3}", "must be even for an odd number of routers=5, not 3"),
        ("{kind: random_regular, routers: 4, degree: 1}", "at least 2 for a connected graph of routers=4, not 1"),
        ("{kind: layout_random, n: 4, degree: 4, length: 1}",
         "topology.degree: must be at most 2, the routers within length=1 of a corner, not 4"),
        ("{kind: layout_random, n: 3, degree: 3, length: 2}", "topology.degree: must be even for an odd n=3, not 3"),
        ("{kind: fully_connected, routers: 1}", "topology.routers: must be at least 2, not 1"),
        ("{kind: hyperx, sizes: [4, 1]}", "topology.sizes[1]: must be at least 2, not 1"),
        ("{kind: hyperx, sizes: [9, 9], hosts_per_router: 60}\naddress: {width_bits: 12}\nlookup: {reduction: false}",
         "topology.sizes: 4860 hosts are more than the 4096 addresses of address.width_bits=12"),
    ],
)  # fmt: skip
def test_graphs_that_do_not_exist_are_one_line(section: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(f"name: x\ntopology: {section}\n")
    assert message in str(caught.value)
    assert str(caught.value).count("\n") == 0


GRAPHS = [
    "{kind: fully_connected, routers: 7, hosts_per_router: 2}",
    "{kind: hyperx, sizes: [3, 2, 2], hosts_per_router: 2}",
    "{kind: slim_fly, q: 4, hosts_per_router: 1}",
    "{kind: random_regular, routers: 14, degree: 3}",
    "{kind: layout_random, n: 4, degree: 4, length: 2}",
]


ALGORITHMS = ["shortest", "up_down", "shortest_escape"]


@pytest.mark.parametrize(
    ("section", "algorithm"), [*itertools.product(GRAPHS, ALGORITHMS), (GRAPHS[0], "dor"), (GRAPHS[1], "dor")]
)
def test_routing_is_proved_safe_and_delivers_under_overload(section: str, algorithm: str) -> None:
    vcs = 1 if algorithm in ("dor", "up_down") else 6
    release = "credits" if algorithm == "shortest_escape" else "tail"
    router = f"router: {{vcs: {vcs}, vc_release: {release}}}\n"
    text = f"name: x\ntopology: {section}\nrouting: {{algorithm: {algorithm}}}\n{router}"
    run = Simulation(parse_config(text + "traffic: {packet_flits: 4}"), 1.0, 3)
    run.advance(2500)
    run.check_conservation()
    assert (run.state["host"]["flits_received"] > 0).all()
    assert int(run.state["packets_dropped"]) == 0


def test_dimension_order_on_a_hyperx_is_minimal() -> None:
    text = "name: x\ntopology: {kind: hyperx, sizes: [3, 4], hosts_per_router: 2}\nrouter: {vcs: 1}\n"
    run = Simulation(parse_config(text), 0.2, 1)
    run.advance(20000)
    # uniform over all hosts, the sender included: a coordinate differs with probability 1 − 1/S
    assert run.state["hops_sum"] / run.state["measured"] == pytest.approx(1 + 2 / 3 + 3 / 4, rel=0.01)

"""Wiring against the definitions, tuple by tuple, and what a bad network is told."""

import itertools
from collections import Counter
from typing import get_args

import networkx as nx
import numpy as np
import pytest

from hopforge.model.config import (
    AddressConfig,
    DragonflyConfig,
    EdgeListConfig,
    FatTreeConfig,
    MeshConfig,
    TopologyConfig,
    TorusConfig,
)
from hopforge.model.topology import TOPOLOGIES, Topology, TopologyError, build, read_edges
from hopforge.model.topology.routing_table import distances, hop_statistics, shortest_path_ports
from hopforge.sim.pages.export import anynet_text, edge_list_text, graphml_text, inet_text, parallel_links, sst_text

ADDRESS = AddressConfig()
SECTIONS = get_args(get_args(TopologyConfig)[0])
WIDE = AddressConfig(chunk_bits=8)


def digits(number, radices):
    found = []
    for radix in radices:
        number, digit = divmod(number, radix)
        found.append(digit)
    return tuple(found)


def graph(topology):
    net = nx.MultiDiGraph()
    net.add_nodes_from(range(topology.routers))
    channels = topology.channels()
    net.add_edges_from(zip(channels.src_router.tolist(), channels.dst_router.tolist(), strict=True))
    return net


def check_consistent(topology: Topology):
    """Every link has two ends, every port at most one use, hosts know where they are."""
    for router, port in itertools.product(range(topology.routers), range(topology.max_ports)):
        peer, host = topology.peer_router[router, port], topology.host_at[router, port]
        if port >= topology.ports[router]:
            assert peer == -1
            assert host == -1
        if peer >= 0:
            back = topology.peer_port[router, port]
            assert topology.peer_router[peer, back] == router
            assert topology.peer_port[peer, back] == port
            assert host == -1
        if host >= 0:
            assert (topology.host_router[host], topology.host_port[host]) == (router, port)
    assert np.count_nonzero(topology.host_at >= 0) == topology.hosts
    assert len(set(topology.host_address.tolist())) == topology.hosts


@pytest.mark.parametrize("kind", ["mesh", "torus"])
@pytest.mark.parametrize(
    ("radices", "terminals"), [((3, 3), 1), ((2, 2, 2, 4), 1), ((5,), 2), ((1, 3), 1), ((2, 3), 3), ((7, 5), 1)]
)
def test_grid_is_the_cartesian_product(kind, radices, terminals):
    section = {"mesh": MeshConfig, "torus": TorusConfig}[kind]
    topology = build(section(kind=kind, radices=radices, hosts_per_router=terminals), ADDRESS)
    check_consistent(topology)
    assert topology.max_ports == terminals + 2 * len(radices)
    for router in range(topology.routers):
        here = digits(router, radices)
        for dim, step in itertools.product(range(len(radices)), (1, -1)):
            there = list(here)
            there[dim] += step
            port = terminals + 2 * dim + (step < 0)
            inside = 0 <= there[dim] < radices[dim]
            if radices[dim] == 1 or (kind == "mesh" and not inside):
                assert topology.peer_router[router, port] == -1
                continue
            there[dim] %= radices[dim]
            peer = topology.peer_router[router, port]
            assert digits(peer, radices) == tuple(there)
            assert topology.peer_port[router, port] == terminals + 2 * dim + (step > 0)
    for host in range(topology.hosts):
        router, terminal = divmod(host, terminals)
        want = [*digits(router, radices)] + ([terminal] if terminals > 1 else [])
        assert topology.host_address[host] == sum(digit << (4 * i) for i, digit in enumerate(want))


@pytest.mark.parametrize(("k", "n"), [(2, 0), (2, 1), (2, 2), (2, 3), (3, 2), (4, 1), (4, 2)])
def test_fat_tree_wiring(k, n):
    topology = build(FatTreeConfig(kind="fat_tree", k=k, n=n), ADDRESS)
    check_consistent(topology)
    per_level = k**n
    assert (topology.routers, topology.hosts) == ((n + 1) * per_level, k ** (n + 1))
    for level, c in itertools.product(range(n), range(per_level)):
        here = digits(c, [k] * n)
        for j in range(k):
            peer = topology.peer_router[level * per_level + c, k + j]
            upper, there = divmod(int(peer), per_level)
            assert upper == level + 1
            want = list(here)
            want[level] = j
            assert digits(there, [k] * n) == tuple(want)
            # and back: down_j of level + 1 sets digit `level` to j
            assert topology.peer_router[peer, here[level]] == level * per_level + c
    for host in range(topology.hosts):
        d = digits(host, [k] * (n + 1))
        leaf = int(topology.host_router[host])
        assert leaf < per_level
        assert digits(leaf, [k] * n) == d[1:]
        assert topology.host_port[host] == d[0]
        assert topology.host_address[host] == sum(digit << (4 * i) for i, digit in enumerate(d))
    assert (topology.ports[n * per_level :] == k).all()
    assert nx.is_strongly_connected(graph(topology))


FLIES = [  # a, p, h, g
    (2, 1, 1, 3),
    (4, 2, 2, 9),
    (8, 4, 4, 33),
    (2, 1, 1, 2),
    (4, 2, 2, 5),
    (4, 2, 2, 4),
    (4, 1, 2, 1),
    (1, 2, 3, 4),
    (5, 3, 2, 7),
]


@pytest.mark.parametrize("arrangement", ["absolute", "relative", "palmtree"])
@pytest.mark.parametrize(("a", "p", "h", "g"), FLIES)
def test_dragonfly_wiring(a, p, h, g, arrangement):
    topology = build(DragonflyConfig(kind="dragonfly", p=p, a=a, h=h, g=g, arrangement=arrangement), ADDRESS)
    check_consistent(topology)
    assert (topology.routers, topology.hosts, topology.max_ports) == (a * g, a * g * p, p + a - 1 + h)
    between = Counter()
    for router in range(topology.routers):
        group, local = divmod(router, a)
        for other in range(a):
            if other != local:
                port = p + other - (other > local)
                assert topology.peer_router[router, port] == group * a + other
        for j in range(h):
            peer = topology.peer_router[router, p + a - 1 + j]
            if peer < 0:
                continue
            between[group, int(peer) // a] += 1
            if g == a * h + 1:
                index = local * h + j
                want = {
                    "absolute": index if index < group else index + 1,
                    "relative": (group + index + 1) % g,
                    "palmtree": (group - index - 1) % g,
                }[arrangement]
                assert int(peer) // a == want
    pairs = [(x, y) for x in range(g) for y in range(g) if x != y]
    assert dict(between) == (dict.fromkeys(pairs, a * h // (g - 1)) if g > 1 else {})
    for host in range(topology.hosts):
        router, terminal = divmod(host, p)
        group, local = divmod(router, a)
        assert topology.host_address[host] == terminal | local << 4 | group << 8
    assert nx.is_strongly_connected(graph(topology))
    if a > 1 or g > 1:
        assert hop_statistics(topology).diameter <= 3


def test_edge_list(tmp_path):
    path = tmp_path / "net.txt"
    path.write_text("# a square with a tail\n0 1\n2 1  # any order\n\n3 2\n0 3\n3 4\n")
    assert read_edges(path) == ((0, 1), (1, 2), (2, 3), (0, 3), (3, 4))
    topology = build(EdgeListConfig(kind="edge_list", file=path, hosts_per_router=2), ADDRESS)
    check_consistent(topology)
    assert topology.hosts == 10
    assert topology.ports.tolist() == [4, 4, 4, 5, 3]
    assert topology.peer_router[3].tolist() == [-1, -1, 0, 2, 4]  # neighbours in increasing number
    assert topology.host_address.tolist() == list(range(10))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 1\n1 x\n", r"net.txt:2: expected two router numbers, not '1 x'"),
        ("0 1 2\n", r"net.txt:1: expected two router numbers, not '0 1 2'"),
        ("0 -1\n", r"net.txt:1: expected two router numbers"),
        ("0 1\n1 1\n", r"net.txt:2: router 1 is linked to itself"),
        ("0 1\n1 2\n1 0\n", r"net.txt:3: link 0 1 is already on line 1; write parallel links the same way round"),
        ("# nothing\n", r"net.txt: holds no link"),
        ("0 1\n2 3\n", r"net.txt: the graph is disconnected: no path from router 0 to router 2"),
        ("0 2\n", r"net.txt: the graph is disconnected: no path from router 0 to router 1"),
        ("0 99999999\n", r"net.txt:1: router number 99999999 is beyond the largest, 1048575"),
    ],
)
def test_bad_edge_lists(tmp_path, text, message):
    path = tmp_path / "net.txt"
    path.write_text(text)
    with pytest.raises(TopologyError, match=f"^topology.file: .*{message}"):
        build(EdgeListConfig(kind="edge_list", file=path), ADDRESS)


def test_unreadable_edge_lists(tmp_path):
    with pytest.raises(TopologyError, match=r"topology.file: cannot read .*none.txt: No such file"):
        build(EdgeListConfig(kind="edge_list", file=tmp_path / "none.txt"), ADDRESS)
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TopologyError, match=r"cannot read .*bytes.txt: not UTF-8 text"):
        build(EdgeListConfig(kind="edge_list", file=tmp_path / "bytes.txt"), ADDRESS)
    (tmp_path / "many.txt").write_text("".join(f"{i} {i + 1}\n" for i in range(100)))
    with pytest.raises(
        TopologyError, match=r"topology.file: 12928 hosts are more than the 4096 addresses of address.width_bits=12"
    ):
        build(
            EdgeListConfig(kind="edge_list", file=tmp_path / "many.txt", hosts_per_router=128),
            AddressConfig(width_bits=12),
        )


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            TorusConfig(kind="torus", radices=(4, 20)),
            r"topology.radices\[1\]: 20 .*16 values of a chunk of address.chunk_bits=4",
        ),
        (
            MeshConfig(kind="mesh", radices=(2,) * 7),
            r"topology.radices: 7 digits .* need 28 bits, more than address.width_bits=24",
        ),
        (MeshConfig(kind="mesh", radices=(2,) * 6, hosts_per_router=2), r"topology.radices: 7 digits"),
        (
            MeshConfig(kind="mesh", radices=(2,), hosts_per_router=17),
            r"topology.hosts_per_router: 17 is more than the 16",
        ),
        (FatTreeConfig(kind="fat_tree", k=17, n=1), r"topology.k: 17 is more than the 16"),
        (FatTreeConfig(kind="fat_tree", k=2, n=6), r"topology.n: 7 digits"),
        (DragonflyConfig(kind="dragonfly", p=17, a=2, h=1), r"topology.p: 17"),
        (DragonflyConfig(kind="dragonfly", p=1, a=17, h=1), r"topology.a: 17"),
        (
            DragonflyConfig(kind="dragonfly", p=1, a=2, h=1, g=4),
            r"topology.g: 4 groups are more than the a\*h \+ 1 = 3",
        ),
    ],
)
def test_networks_beyond_the_address(section, message):
    with pytest.raises(TopologyError, match=message):
        build(section, ADDRESS)


def test_too_large_a_network_is_refused_before_memory_runs_out():
    with pytest.raises(TopologyError, match=r"topology.radices: 16777216 routers are more than the 1048576"):
        build(TorusConfig(kind="torus", radices=(256, 256, 256)), WIDE)


def test_registry_knows_every_kind():
    assert {section.model_fields["kind"].annotation.__args__[0] for section in SECTIONS} == set(TOPOLOGIES)


def test_arrays_are_read_only():
    topology = build(MeshConfig(kind="mesh", radices=(2, 2)), ADDRESS)
    with pytest.raises(ValueError, match="read-only"):
        topology.peer_router[0, 0] = 1


@pytest.fixture(params=["mesh", "torus", "fat_tree", "dragonfly", "edge_list"])
def network(request, tmp_path):
    if request.param == "edge_list":
        rng = np.random.default_rng(7)
        tree = {tuple(sorted((i, int(rng.integers(0, i))))) for i in range(1, 60)}
        more = {tuple(sorted(map(int, rng.choice(60, 2, replace=False)))) for _ in range(60)}
        (tmp_path / "random.txt").write_text("".join(f"{a} {b}\n" for a, b in sorted(tree | more)))
        return build(EdgeListConfig(kind="edge_list", file=tmp_path / "random.txt"), ADDRESS)
    return build(
        {
            "mesh": MeshConfig(kind="mesh", radices=(4, 3, 2)),
            "torus": TorusConfig(kind="torus", radices=(5, 4, 2), hosts_per_router=2),
            "fat_tree": FatTreeConfig(kind="fat_tree", k=3, n=2),
            "dragonfly": DragonflyConfig(kind="dragonfly", p=2, a=4, h=2),
        }[request.param],
        ADDRESS,
    )


def test_distances_and_tables_against_networkx(network):
    oracle = dict(nx.all_pairs_shortest_path_length(graph(network)))
    hops = distances(network)
    table = shortest_path_ports(network)
    for source, target in itertools.product(range(network.routers), repeat=2):
        assert hops[target, source] == oracle[source][target]
        if source == target:
            assert table[source, target] == -1
            continue
        port = table[source, target]
        good = [
            candidate
            for candidate in range(network.max_ports)
            if network.peer_router[source, candidate] >= 0
            and oracle[int(network.peer_router[source, candidate])][target] == oracle[source][target] - 1
        ]
        assert port == good[0]  # minimal, the lowest
    pairs = [
        oracle[int(a)][int(b)]
        for (i, a), (j, b) in itertools.product(enumerate(network.host_router), repeat=2)
        if i != j
    ]
    statistics = hop_statistics(network)
    assert statistics.diameter == max(pairs)
    assert statistics.mean_hops == pytest.approx(sum(pairs) / len(pairs))


def _check_sst(network, path, simple):
    """Read as `topoAny.import_graph` does: vertices in their order, endpoints numbered through, ports by edges."""
    if parallel_links(network):
        with pytest.raises(TopologyError, match=f"sst cannot have the network's {parallel_links(network)} parallel"):
            sst_text(network)
        return
    path.write_text(sst_text(network))
    read = nx.read_graphml(path)
    assert not read.is_directed()
    assert not read.is_multigraph()
    assert list(read.nodes()) == [str(router) for router in range(network.routers)]
    router_of, named = [], []
    for vertex, (_, data) in enumerate(read.nodes(data=True)):
        router_of += [vertex] * data["endpoints"]
        named += [int(host) for host in data["hosts"].split()]
    assert sorted(named) == list(range(network.hosts))
    assert [int(network.host_router[host]) for host in named] == router_of
    assert {tuple(sorted((int(a), int(b)))) for a, b in read.edges()} == simple


def _check_inet(network, oracle):
    """Read as ns-3's `InetTopologyReader` does: first line, as many lines to skip as nodes, links of three words."""
    lines = inet_text(network).splitlines()
    nodes, count = map(int, lines[0].split())
    assert nodes == network.routers + network.hosts
    assert [int(line.split()[0]) for line in lines[1 : 1 + nodes]] == list(range(nodes))
    rows = [tuple(map(int, line.split())) for line in lines[1 + nodes :]]
    assert len(rows) == count
    between = Counter(tuple(sorted(row[:2])) for row in rows if max(row[:2]) < network.routers)
    assert between == Counter((a, b) for a, b in oracle.edges() if a < b)
    hosts = {target - network.routers: source for source, target, _ in rows if target >= network.routers}
    assert [hosts[host] for host in range(network.hosts)] == network.host_router.tolist()
    for source, target, weight in rows:
        if network.link_cycles is None or target >= network.routers:
            assert weight == 1
        else:
            ports = np.flatnonzero(network.peer_router[source] == target)
            assert weight in np.maximum(network.link_cycles[source, ports], 1)


def test_exports(network, tmp_path):
    """What is written is the network again when read (parallel links once where the format knows no more)."""
    oracle = graph(network)
    simple = {(a, b) for a, b in oracle.edges() if a < b}
    assert parallel_links(network) == oracle.number_of_edges() // 2 - len(simple)

    (tmp_path / "edges.txt").write_text(edge_list_text(network))
    assert set(read_edges(tmp_path / "edges.txt")) == simple

    (tmp_path / "net.graphml").write_text(graphml_text(network))
    read = nx.read_graphml(tmp_path / "net.graphml", force_multigraph=True)
    assert read.number_of_nodes() == network.routers + network.hosts
    assert read.number_of_edges() == oracle.number_of_edges() // 2 + network.hosts
    assert [read.nodes[f"h{h}"]["address"] for h in range(network.hosts)] == network.host_address.tolist()
    for a, b, ports in read.edges(data=True):
        if a[0] == b[0] == "r":
            ends = {(int(a[1:]), ports["source_port"]), (int(b[1:]), ports["target_port"])}
            swapped = {(int(a[1:]), ports["target_port"]), (int(b[1:]), ports["source_port"])}
            good = [
                pair
                for pair in (ends, swapped)
                for (r, p), (s, q) in [sorted(pair)]
                if network.peer_router[r, p] == s and network.peer_port[r, p] == q
            ]
            assert good

    _check_sst(network, tmp_path / "sst.graphml", simple)
    _check_inet(network, oracle)

    found, nodes = set(), {}
    for line in anynet_text(network).splitlines():
        words = line.split()
        assert words[0] == "router"
        for kind, number in zip(words[2::2], words[3::2], strict=True):
            if kind == "node":
                nodes[int(number)] = int(words[1])
            else:
                found.add((int(words[1]), int(number)))
    assert found == {(a, b) for a, b in oracle.edges()}
    assert [nodes[h] for h in range(network.hosts)] == network.host_router.tolist()

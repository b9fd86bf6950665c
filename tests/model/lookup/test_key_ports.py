"""Delivery: following keys hop by hop on the actual network delivers every pair on a shortest path.

Networks and distances here come from the definitions alone (dictionaries of neighbours, breadth-first search over sets
of nodes as bits), not from `model.topology`, whose arrays are checked on the way.
"""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import (
    DragonflyConfig,
    EdgeListConfig,
    FatTreeConfig,
    MeshConfig,
    TopologyConfig,
    TorusConfig,
)
from hopforge.model.lookup.key_kernel import reduce_keys
from hopforge.model.lookup.key_ports import NO_PORT, KeyPorts, group_ports
from hopforge.model.lookup.node_reduction import NodeReduction
from hopforge.model.numbers.address import AddressFormat
from hopforge.model.topology import Topology, build

Numbers = NDArray[np.int64]


# --- networks from their definitions: neighbour of each port, -1 without one


def grid_peers(radices: tuple[int, ...], hosts: int, *, wrap: bool) -> Numbers:
    places = [place[::-1] for place in product(*(range(radix) for radix in radices[::-1]))]
    number = {place: index for index, place in enumerate(places)}
    peers = np.full((len(places), hosts + 2 * len(radices)), -1)
    for place, router in number.items():
        for i, radix in enumerate(radices):
            for port, step in ((hosts + 2 * i, 1), (hosts + 2 * i + 1, -1)):
                digit = place[i] + step
                if wrap and radix > 1:
                    digit %= radix
                other = (*place[:i], digit, *place[i + 1:])
                peers[router, port] = number.get(other, -1)
    return peers


def tree_peers(k: int, n: int) -> Numbers:
    switches = [(level, c[::-1]) for level in range(n + 1) for c in product(range(k), repeat=n)]
    number = {switch: index for index, switch in enumerate(switches)}
    peers = np.full((len(switches), 2 * k if n else k), -1)
    for (level, c), switch in number.items():
        for j in range(k):
            if level < n:
                peers[switch, k + j] = number[level + 1, (*c[:level], j, *c[level + 1:])]
            if level > 0:
                peers[switch, j] = number[level - 1, (*c[: level - 1], j, *c[level:])]
    return peers


def dragonfly_peers(p: int, a: int, h: int, g: int, arrangement: str) -> Numbers:
    """Only with g = a·h + 1: one link for each pair of groups."""
    def target(group: int, i: int) -> int:
        return {
            "absolute": i if i < group else i + 1, "relative": (group + i + 1) % g, "palmtree": (group - i - 1) % g,
        }[arrangement]  # fmt: skip

    owner = {(group, target(group, i)): i for group in range(g) for i in range(a * h)}
    assert len(owner) == g * (g - 1)
    peers = np.full((a * g, p + a - 1 + h), -1)
    for group, router in product(range(g), range(a)):
        for other in range(a):
            if other != router:
                peers[group * a + router, p + other - (other > router)] = group * a + other
        for j in range(h):
            there = target(group, router * h + j)
            peers[group * a + router, p + a - 1 + j] = there * a + owner[there, group] // h
    return peers


def distances(peers: Numbers, reached: NDArray[np.bool_]) -> NDArray[np.int16]:
    """Steps from each node to each target (-1: never); ``reached[node, target]``: where a target is reached at once."""
    bits = np.packbits(reached, axis=1)
    steps = np.zeros(reached.shape, dtype=np.int16)
    steps += ~reached
    inside = np.where(peers < 0, np.arange(len(peers))[:, None], peers)
    while True:
        grown = bits.copy()
        for port in range(peers.shape[1]):
            grown |= bits[inside[:, port]]
        if np.array_equal(grown, bits):
            steps[np.unpackbits(bits, axis=1, count=reached.shape[1]) == 0] = -1
            return steps
        bits = grown
        steps += 1 - np.unpackbits(bits, axis=1, count=reached.shape[1])


def check_shortest(ports: KeyPorts, peers: Numbers, home: Numbers, host_port: Numbers) -> None:
    """Check at every switch and for every host: the key leads to the host, or to a switch that is one step nearer."""
    topology, reduction = ports.topology, ports.reduction
    assert np.array_equal(np.where(peers < 0, -1, peers), topology.peer_router)
    homes = np.unique(home)
    nearer = distances(peers, np.arange(len(peers))[:, None] == homes[None, :])
    assert nearer.min() == 0
    column = np.searchsorted(homes, home)
    own, level = reduction.switches(np.arange(topology.routers))
    keys = np.empty(topology.hosts, dtype=np.int64)
    for router in range(topology.routers):
        reduce_keys(reduction.tables, own[router:router + 1], level[router:router + 1], topology.host_address, keys)
        port = ports.ports(router, keys)
        steps = nearer[router, column]
        arrived = steps == 0
        assert np.array_equal(port[arrived], host_port[arrived])
        following = peers[router, port[~arrived]]
        assert (following >= 0).all()
        assert np.array_equal(nearer[following, column[~arrived]], steps[~arrived] - 1)


def make(config: TopologyConfig, chunk_bits: int, **rest: Any) -> KeyPorts:
    topology = build(config, AddressConfig(chunk_bits=chunk_bits))  # type: ignore[arg-type]
    return KeyPorts(NodeReduction.of_topology(topology, AddressFormat(24, chunk_bits), **rest), topology)


#: of thousands of routers: the same as the others, only larger
LARGE_GRIDS = [((4,) * 6, 1, 2), ((16,) * 3, 1, 4)]
GRIDS = [
    ((5, 5), 1, 3), ((5, 5, 5), 1, 3), ((7, 7), 1, 3), ((7, 7, 7), 1, 3),
    ((2, 2, 2, 4), 1, 2), ((4, 4, 4), 1, 4), ((3, 4, 5, 6), 1, 3), ((2, 3, 1, 6), 4, 4), ((9, 8), 5, 4), ((256,), 1, 8),
    ((1,), 3, 2), ((2,), 1, 2),
]  # fmt: skip


@pytest.mark.parametrize(
    ("radices", "hosts", "chunk_bits"),
    [*GRIDS, *(pytest.param(*grid, marks=pytest.mark.study) for grid in LARGE_GRIDS)],
)
@pytest.mark.parametrize("kind", ["mesh", "torus"])
def test_grids(kind: str, radices: tuple[int, ...], hosts: int, chunk_bits: int) -> None:
    config = {"mesh": MeshConfig, "torus": TorusConfig}[kind](kind=kind, radices=radices, hosts_per_router=hosts)
    host = np.arange(math.prod(radices) * hosts)
    peers = grid_peers(radices, hosts, wrap=kind == "torus")
    check_shortest(make(config, chunk_bits), peers, host // hosts, host % hosts)


LARGE_TREES = [(2, 9), (2, 10), (2, 11), (4, 5)]
TREES = [*((2, n) for n in range(12)), (3, 1), (3, 4), *((4, n) for n in range(1, 6)), (5, 3), (16, 2), (64, 1)]


@pytest.mark.parametrize(
    ("k", "n"), [pytest.param(k, n, marks=pytest.mark.study) if (k, n) in LARGE_TREES else (k, n) for k, n in TREES]
)
@pytest.mark.parametrize("up_choice", ["d_mod_k", "highest_mismatch"])
def test_trees(k: int, n: int, up_choice: str) -> None:
    host = np.arange(k ** (n + 1))
    chunk_bits = next(bits for bits in (2, 3, 4, 6) if k <= 1 << bits)
    ports = make(FatTreeConfig(kind="fat_tree", k=k, n=n), chunk_bits, up_choice=up_choice)
    check_shortest(ports, tree_peers(k, n), host // k, host % k)


FLIES = [(1, 1, 1, 2), (1, 2, 1, 3), (2, 4, 2, 9), (3, 6, 3, 19), (4, 8, 4, 33), (1, 3, 2, 7), (5, 2, 3, 7)]


def follow(ports: KeyPorts, peers: Numbers, home: Numbers) -> tuple[Numbers, Numbers]:
    """Follow keys from every switch to every host; return hops and the port at which each walk ends."""
    topology = ports.topology
    routers = np.arange(topology.routers)[:, None]
    table = ports.ports(routers, ports.reduction.keys(routers, topology.host_address))
    at = np.broadcast_to(routers, table.shape).copy()
    hops = np.zeros(table.shape, dtype=np.int64)
    hosts = np.broadcast_to(np.arange(topology.hosts), table.shape)
    while (going := at != home).any():
        at[going] = peers[at[going], table[at[going], hosts[going]]]
        hops[going] += 1
        assert hops.max() <= topology.routers
    return hops, table[at, hosts]


@pytest.mark.parametrize(("p", "a", "h", "g"), FLIES)
@pytest.mark.parametrize("arrangement", ["absolute", "relative", "palmtree"])
def test_dragonflies(p: int, a: int, h: int, g: int, arrangement: str) -> None:
    ports = make(DragonflyConfig(kind="dragonfly", p=p, a=a, h=h, g=g, arrangement=arrangement), 4)  # type: ignore[arg-type]
    peers = dragonfly_peers(p, a, h, g, arrangement)
    assert np.array_equal(peers, ports.topology.peer_router)
    routers = a * g
    host = np.arange(routers * p)
    hops, last = follow(ports, peers, host // p)
    # a minimal path of a dragonfly has at most one global hop: a node is a router and whether that is used up
    local = np.where(np.arange(peers.shape[1]) < p + a - 1, peers, -1)
    glob = np.where(np.arange(peers.shape[1]) >= p + a - 1, peers + routers, -1)
    before = np.where(local >= 0, local, np.where(peers < 0, -1, glob))
    after = np.where(local >= 0, local + routers, -1)
    nodes = np.arange(2 * routers) % routers
    steps = distances(np.concatenate([before, after]), nodes[:, None] == np.arange(routers)[None, :])
    assert np.array_equal(hops, steps[:routers, host // p])
    assert np.array_equal(last, np.broadcast_to(host % p, last.shape))


@pytest.mark.parametrize(("p", "a", "h", "g"), [(2, 4, 2, 5), (2, 4, 2, 3), (2, 4, 2, 1), (1, 1, 4, 3)])
def test_dragonflies_with_several_links_between_groups(p: int, a: int, h: int, g: int) -> None:
    """All pairs are delivered over one local, one global, one local hop; a second link may be nearer for some hosts."""
    ports = make(DragonflyConfig(kind="dragonfly", p=p, a=a, h=h, g=g), 4)
    hops, last = follow(ports, ports.topology.peer_router.astype(np.int64), np.arange(a * g * p) // p)
    assert hops.max() <= 3
    assert np.array_equal(last, np.broadcast_to(np.arange(a * g * p) % p, last.shape))


@pytest.mark.parametrize(
    ("config", "chunk_bits"),
    [
        (TorusConfig(kind="torus", radices=(5, 3)), 3),
        (MeshConfig(kind="mesh", radices=(3, 3), hosts_per_router=2), 2),
        (FatTreeConfig(kind="fat_tree", k=2, n=2), 2),
        (DragonflyConfig(kind="dragonfly", p=1, a=2, h=1), 2),
    ],
)
def test_one_packet_at_a_time(config: TopologyConfig, chunk_bits: int) -> None:
    ports = make(config, chunk_bits, members=3)
    topology = ports.topology
    assert topology.hosts > 5
    for source, target in product(range(topology.hosts), repeat=2):
        router = int(topology.host_router[source])
        address = int(topology.host_address[target])
        for _ in range(topology.routers):
            port = ports.port(router, ports.reduction.key(router, address))
            if topology.host_at[router, port] >= 0:
                break
            router = int(topology.peer_router[router, port])
        assert topology.host_at[router, port] == target


def test_arbitrary_keys_take_the_routes_of_the_network() -> None:
    torus = make(TorusConfig(kind="torus", radices=(5, 5)), 3)
    plain = KeyPorts(NodeReduction.arbitrary(address=AddressFormat(24, 3)), torus.topology)
    routers, address = np.arange(25)[:, None], torus.topology.host_address
    expected = torus.ports(routers, torus.reduction.keys(routers, address))
    assert np.array_equal(plain.ports(routers, address), expected)


def test_edge_lists(tmp_path: Any) -> None:
    (tmp_path / "petersen").write_text(
        "".join(f"{i} {(i + 1) % 5}\n{i} {i + 5}\n{i + 5} {(i + 2) % 5 + 5}\n" for i in range(5))
    )
    topology = build(EdgeListConfig(kind="edge_list", file=tmp_path / "petersen", hosts_per_router=2), AddressConfig())
    ports = KeyPorts(NodeReduction.of_topology(topology, AddressFormat()), topology)
    hops, last = follow(ports, topology.peer_router.astype(np.int64), np.arange(20) // 2)
    assert hops.max() == 2  # its diameter
    assert hops.sum() == 10 * 2 * (3 * 1 + 6 * 2)
    assert np.array_equal(last, np.broadcast_to(np.arange(20) % 2, last.shape))
    with pytest.raises(ValueError, match="address must be less than 20 hosts, not 0x14"):
        ports.ports(0, 20)


def fly(**values: int) -> Topology:
    return build(DragonflyConfig(kind="dragonfly", **values), AddressConfig())  # type: ignore[arg-type]


def test_group_ports() -> None:
    table = group_ports(fly(p=1, a=2, h=1, g=3))
    # router 0 of group 0 has the link to group 1, router 1 that to group 2
    assert table[:2].tolist() == [[NO_PORT, 2, 1], [NO_PORT, 1, 2]]
    # several links: the lowest port of the router itself, else the lowest router
    assert group_ports(fly(p=1, a=1, h=4, g=3)).tolist() == [[NO_PORT, 1, 2], [1, NO_PORT, 2], [1, 2, NO_PORT]]
    topology = fly(p=1, a=4, h=1, g=3)
    own = topology.peer_router[:, 4] // 4
    for router, row in enumerate(group_ports(topology)):
        for group in set(range(3)) - {router // 4}:
            owners = [local for local in range(4) if own[router // 4 * 4 + local] == group]
            first = min(owners)
            local = router % 4
            assert row[group] == (4 if local in owners else 1 + first - (first > local))


def test_keys_that_lead_nowhere() -> None:
    mesh = make(MeshConfig(kind="mesh", radices=(3, 3)), 2)
    for router, key in ((0, ("X", 0, "-")), (8, ("X", 1, "+")), (4, ("X", 2, "+"))):
        encoded = mesh.reduction.encode(key)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=f"key {encoded:#x} leads nowhere at router {router} of the 3x3 mesh"):
            mesh.port(router, encoded)
    fly_ports = make(DragonflyConfig(kind="dragonfly", p=1, a=2, h=1), 2)
    tree = make(FatTreeConfig(kind="fat_tree", k=2, n=1), 2)
    for ports, keys in (
        (fly_ports, (("R", 0), ("R", 2), ("G", 0), ("G", 3), ("T", 1))),
        (tree, (("D", 2), ("U", 2))),
        (mesh, (("L", 1),)),
    ):
        for key in keys:
            with pytest.raises(ValueError, match="leads nowhere at router 0"):
                ports.port(0, ports.reduction.encode(key))


def test_reduction_of_another_network() -> None:
    topology = build(TorusConfig(kind="torus", radices=(5, 5)), AddressConfig())
    with pytest.raises(ValueError, match=r"reduction must be for the 5x5 torus, not torus \(4, 4\)"):
        KeyPorts(NodeReduction.torus((4, 4)), topology)


def test_a_failed_link_is_not_repaired_by_rewriting_entries() -> None:
    """5-ary ring without the link 0-1: one new entry at each of its ends, or any two, bring at most 16 of 20 pairs."""
    ports = make(TorusConfig(kind="torus", radices=(5,)), 3)
    reduction, address = ports.reduction, ports.topology.host_address
    peers = grid_peers((5,), 1, wrap=True)
    peers[0, 1] = peers[1, 2] = -1
    keys = [("L",), ("X", 0, "+"), ("X", 0, "-")]
    table = {(router, key): port for router in range(5) for port, key in enumerate(keys)}

    def delivered(entries: dict[Any, int]) -> int:
        pairs = 0
        for source, target in product(range(5), repeat=2):
            at = source
            for _ in range(10):
                port = entries[at, reduction.human(at, int(address[target]))]
                if port == 0:
                    pairs += at == target != source
                    break
                at = int(peers[at, port])
                if at < 0:
                    break
        return pairs

    changes = [((router, key), port) for router, key in table for port in (1, 2)]
    assert delivered(table) == 14
    assert delivered({**table, (0, keys[1]): 2, (1, keys[2]): 1}) == 16
    assert max(delivered({**table, **dict(pair)}) for pair in product(changes, repeat=2)) == 16

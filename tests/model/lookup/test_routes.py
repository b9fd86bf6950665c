"""Following keys hop by hop delivers every pair, minimally where the network's rule is minimal."""

import itertools

import numpy as np
import pytest

from hopforge.model.config import (
    AddressConfig,
    DragonflyConfig,
    EdgeListConfig,
    FatTreeConfig,
    MeshConfig,
    TorusConfig,
)
from hopforge.model.lookup.routes import Routes
from hopforge.model.topology import build
from hopforge.model.topology.routing_table import distances


def grid(kind, *radices, terminals=1):
    section = {"mesh": MeshConfig, "torus": TorusConfig}[kind]
    return section(kind=kind, radices=radices, hosts_per_router=terminals)


def fly(a, p, h, g, arrangement="absolute"):
    return DragonflyConfig(kind="dragonfly", p=p, a=a, h=h, g=g, arrangement=arrangement)


def every_pair(topology, **choices):
    routes = Routes(topology, ADDRESS, **choices)
    source, destination = (array.reshape(-1) for array in np.indices((topology.hosts, topology.hosts)))
    return source, destination, routes.paths(source, destination)


ADDRESS = AddressConfig()
MINIMAL = [
    grid("mesh", 3, 3), grid("mesh", 4, 1, 3, terminals=2), grid("torus", 5, 5), grid("torus", 7, 7),
    grid("torus", 2, 2, 2, 4), grid("torus", 4, 4, 4), grid("torus", 3, 6, terminals=3),
    FatTreeConfig(kind="fat_tree", k=2, n=0),
    FatTreeConfig(kind="fat_tree", k=2, n=3), FatTreeConfig(kind="fat_tree", k=4, n=2),
]  # fmt: skip


@pytest.mark.parametrize("section", MINIMAL, ids=str)
def test_every_pair_is_delivered_by_a_shortest_path(section):
    topology = build(section, ADDRESS)
    choices = ["d_mod_k", "highest_mismatch"] if section.kind == "fat_tree" else ["d_mod_k"]
    for choice in choices:
        source, destination, paths = every_pair(topology, up_choice=choice)
        hops = distances(topology)[topology.host_router[destination], topology.host_router[source]]
        assert np.array_equal(paths.lengths, hops + 1)


@pytest.mark.parametrize(("width", "chunk"), [(12, 8), (13, 8)])
@pytest.mark.parametrize("section", [grid("mesh", 5), grid("torus", 6), FatTreeConfig(kind="fat_tree", k=4, n=0)])
def test_ways_do_not_need_addresses_that_hold_keys(section, width, chunk):
    address = AddressConfig(width_bits=width, chunk_bits=chunk)  # keys take 6 bits beside a digit
    topology, roomy = build(section, address), build(section, ADDRESS)
    source, destination, expected = every_pair(roomy)
    found = Routes(topology, address).paths(source, destination)
    for name in ("first", "router", "port", "output"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize("arrangement", ["absolute", "relative", "palmtree"])
@pytest.mark.parametrize(
    ("a", "p", "h", "g"), [(2, 1, 1, 3), (4, 2, 2, 9), (4, 2, 2, 5), (4, 2, 2, 4), (3, 1, 2, 2), (4, 1, 2, 1)]
)
def test_dragonfly_takes_at_most_one_global_and_two_local_links(a, p, h, g, arrangement):
    topology = build(fly(a, p, h, g, arrangement), ADDRESS)
    _, _, paths = every_pair(topology)
    for index in range(len(paths.lengths)):
        part = slice(paths.first[index], paths.first[index + 1])
        routers = paths.router[part].tolist()
        groups = [router // a for router in routers]
        crossing = sum(x != y for x, y in itertools.pairwise(groups))
        assert crossing == (groups[0] != groups[-1])
        assert len(routers) <= 2 + 2 * crossing
        if crossing:  # the source goes over its own link if it has one
            own = {int(peer) // a for peer in topology.peer_router[routers[0], p + a - 1 :] if peer >= 0}
            assert (groups[1] == groups[-1]) == (groups[-1] in own)


def test_paths_are_chains_of_links(tmp_path):
    rng = np.random.default_rng(5)
    (tmp_path / "net.txt").write_text("".join(f"{i} {int(rng.integers(0, i))}\n" for i in range(1, 40)) + "0 39\n")
    graph = EdgeListConfig(kind="edge_list", file=tmp_path / "net.txt", hosts_per_router=2)
    for section in (graph, fly(4, 2, 2, 9), grid("torus", 3, 4, terminals=2), FatTreeConfig(kind="fat_tree", k=3, n=1)):
        topology = build(section, ADDRESS)
        source, destination, paths = every_pair(topology)
        for index in range(0, len(source), 7):
            part = slice(paths.first[index], paths.first[index + 1])
            router, port, output = paths.router[part], paths.port[part], paths.output[part]
            assert (router[0], port[0]) == (topology.host_router[source[index]], topology.host_port[source[index]])
            assert (router[-1], output[-1]) == (
                topology.host_router[destination[index]],
                topology.host_port[destination[index]],
            )
            assert np.array_equal(topology.peer_router[router[:-1], output[:-1]], router[1:])
            assert np.array_equal(topology.peer_port[router[:-1], output[:-1]], port[1:])
        if section is graph:
            hops = distances(topology)[topology.host_router[destination], topology.host_router[source]]
            assert np.array_equal(paths.lengths, hops + 1)


def test_output_ports_are_those_of_the_paths():
    topology = build(fly(4, 2, 2, 9), ADDRESS)
    routes = Routes(topology, ADDRESS)
    _, destination, paths = every_pair(topology)
    target = np.repeat(destination, paths.lengths)
    assert np.array_equal(routes.output_ports(paths.router, target), paths.output)


def test_numbers_that_the_network_has_not_are_refused():
    """Kernels read arrays at them, and would read beyond."""
    routes = Routes(build(grid("torus", 4, 4, terminals=2), ADDRESS), ADDRESS)
    wrong = [
        (lambda: routes.output_ports(16, 0), r"routers must be from 0 to 15 in the .*, not 16"),
        (lambda: routes.output_ports([0, -1], 0), r"routers must be from 0 to 15 in the .*, not -1"),
        (lambda: routes.output_ports(0, [[31, 32]]), r"hosts must be from 0 to 31 in the .*, not 32"),
        (lambda: routes.output_ports(0, 0, 32), r"sources must be from 0 to 31 in the .*, not 32"),
        (lambda: routes.paths([0, -3], [1, 2]), r"sources must be from 0 to 31 in the .*, not -3"),
        (lambda: routes.paths([0], [99]), r"destinations must be from 0 to 31 in the .*, not 99"),
        (lambda: routes.paths([0, 1], [2]), r"sources must be as many as destinations=\(1,\), not \(2,\)"),
    ]
    for call, said in wrong:
        with pytest.raises(ValueError, match=said):
            call()

"""Slim Fly, PolarFly and HyperX against graphs that were made elsewhere (shared/networks/golden)."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.topology import Topology, build
from hopforge.model.topology.routing_table import distances

_PLACES = [folder / "shared" / "networks" / "golden" / "networks.json" for folder in Path(__file__).parents]
GOLDEN = next((place for place in _PLACES if place.exists()), _PLACES[0])

#: of the golden file: section, routers, links, triangles, largest and smallest eigenvalue
INVARIANTS = [
    ("slimfly_q4", "{kind: slim_fly, q: 4}", 32, 96, 0, 6.0, -3.236068),
    ("slimfly_q5", "{kind: slim_fly, q: 5}", 50, 175, 0, 7.0, -3.0),
    ("slimfly_q8", "{kind: slim_fly, q: 8}", 128, 768, 128, 12.0, -4.0),
    ("slimfly_q11", "{kind: slim_fly, q: 11}", 242, 2057, 726, 17.0, -5.0),
    ("polarfly_q3", "{kind: polarfly, q: 3}", 13, 24, 4, 3.746568, -2.201472),
    ("polarfly_q5", "{kind: polarfly, q: 5}", 31, 90, 20, 5.832647, -2.72214),
    ("polarfly_q8", "{kind: polarfly, q: 8}", 73, 324, 84, 8.88875, -3.32493),
    ("polarfly_q11", "{kind: polarfly, q: 11}", 133, 792, 220, 11.916622, -3.817926),
    ("hyperx_4x4", "{kind: hyperx, sizes: [4, 4], hosts_per_router: 4}", 16, 48, 32, 6.0, -2.0),
    ("hyperx_4x4x4", "{kind: hyperx, sizes: [4, 4, 4], hosts_per_router: 4}", 64, 288, 192, 9.0, -3.0),
    ("hyperx_16", "{kind: hyperx, sizes: [16], hosts_per_router: 16}", 16, 120, 560, 15.0, -1.0),
    ("dfplus_l2s2h2", "{kind: dragonfly_plus, hosts_per_router: 2, leaves: 2, spines: 2, h: 2}",
     20, 30, 0, 3.236068, -2.712097),
    ("dfplus_l4s4h2", "{kind: dragonfly_plus, hosts_per_router: 4, leaves: 4, spines: 4, h: 2}",
     72, 180, 0, 5.123106, -4.518554),
    ("dfplus_l8s4h2", "{kind: dragonfly_plus, hosts_per_router: 4, leaves: 8, spines: 4, h: 2}",
     108, 324, 0, 6.744563, -6.070416),
    ("leafspine_8x4", "{kind: clos, hosts_per_router: 8, leaves: 8, middles: 4}", 12, 32, 0, 5.656854, -5.656854),
    ("leafspine_6x2", "{kind: clos, hosts_per_router: 4, leaves: 6, middles: 2}", 8, 12, 0, 3.464102, -3.464102),
    ("fattree3_4p2e2a4c", "{kind: clos, hosts_per_router: 2, pods: 4, leaves: 2, middles: 2, roots: 4}",
     20, 32, 0, 3.464102, -3.464102),
    ("fattree3_4p4e2a4c", "{kind: clos, hosts_per_router: 4, pods: 4, leaves: 4, middles: 2, roots: 4}",
     28, 48, 0, 4.0, -4.0),
]  # fmt: skip


def network(section: str) -> Topology:
    config = parse_config(f"name: x\ntopology: {section}\n")
    return build(config.topology, config.address)


def adjacency(topology: Topology) -> Any:
    channels = topology.channels()
    matrix = np.zeros((topology.routers, topology.routers), np.int64)
    np.add.at(matrix, (channels.src_router, channels.dst_router), 1)
    return matrix


@pytest.mark.parametrize(("name", "section", "routers", "links", "triangles", "largest", "smallest"), INVARIANTS)
def test_invariants(
    name: str, section: str, routers: int, links: int, triangles: int, largest: float, smallest: float
) -> None:
    topology = network(section)
    matrix = adjacency(topology)
    assert (topology.routers, int(matrix.sum()) // 2) == (routers, links), name
    assert int(np.trace(np.linalg.matrix_power(matrix, 3))) // 6 == triangles
    values = np.linalg.eigvalsh(matrix)
    assert values[-1] == pytest.approx(largest, abs=1e-5)
    assert values[0] == pytest.approx(smallest, abs=1e-5)


@pytest.mark.parametrize("q", [2, 3, 5, 7, 13])
def test_polarfly_of_a_prime_is_its_definition(q: int) -> None:
    """Integers modulo q, every pair of points; exactly one common neighbour where no quadric is near."""
    points = [(1, y, z) for y in range(q) for z in range(q)] + [(0, 1, z) for z in range(q)] + [(0, 0, 1)]
    products = np.array(points) @ np.array(points).T % q
    want = (products == 0) & ~np.eye(len(points), dtype=bool)
    matrix = adjacency(network(f"{{kind: polarfly, q: {q}, hosts_per_router: 1}}"))
    assert np.array_equal(matrix, want)
    quadric = np.diagonal(products) == 0
    assert quadric.sum() == q + 1
    assert sorted(Counter(matrix.sum(axis=1).tolist()).items()) == [(q, q + 1), (q + 1, q * q)]
    common = matrix @ matrix
    apart = (matrix == 0) & ~np.eye(len(points), dtype=bool)
    assert (common[apart] == 1).all()
    assert (common[(matrix == 1) & ~quadric & ~quadric[:, None]] == 1).all()


@pytest.mark.parametrize("q", [2, 4, 8, 9, 16, 25, 27])
def test_polarfly_of_every_prime_power(q: int) -> None:
    topology = network(f"{{kind: polarfly, q: {q}}}")
    assert topology.routers == q * q + q + 1
    assert topology.hosts == topology.routers * ((q + 2) // 2)
    assert distances(topology).max() == 2
    degree = (topology.peer_router >= 0).sum(axis=1)
    assert sorted(Counter(degree.tolist()).items()) == [(q, q + 1), (q + 1, q * q)]


def test_the_largest_degree_of_64() -> None:
    """The last prime power with degree at most 64 is 61."""
    topology = network("{kind: polarfly, q: 61, hosts_per_router: 2}")
    assert (topology.routers, topology.max_ports) == (3783, 64)


@pytest.mark.skipif(not GOLDEN.exists(), reason="no golden networks beside this checkout")
@pytest.mark.parametrize(("name", "section"), [one[:2] for one in INVARIANTS])
def test_links_hosts_distances_and_spectrum_are_the_golden_ones(name: str, section: str) -> None:
    golden = next(one for one in json.loads(GOLDEN.read_text()) if one["name"] == name)
    topology = network(section)
    matrix = adjacency(topology)
    assert topology.hosts == golden["terminals"]
    assert Counter(map(str, matrix.sum(axis=1).tolist())) == Counter(golden["degree_histogram"])
    assert int(np.trace(np.linalg.matrix_power(matrix, 3))) // 6 == golden["triangles"]
    hops = Counter(map(str, distances(topology).reshape(-1).tolist()))
    assert {n: count for n, count in hops.items() if n != "0"} == golden["distance_histogram_ordered_router_pairs"]
    if "edges" in golden:
        assert {(a, b) for a, b in np.argwhere(np.triu(matrix)).tolist()} == set(map(tuple, golden["edges"]))
    if "spectrum" in golden:
        wanted = [value for value, count in golden["spectrum"] for _ in range(count)]
        assert np.sort(np.linalg.eigvalsh(matrix)) == pytest.approx(sorted(wanted), abs=1e-5)

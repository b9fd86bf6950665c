"""Floor plans: where routers stand and how long cables are, and the pictures of them."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hopforge.model.config import AddressConfig, TopologyConfig, parse_config
from hopforge.model.topology import Topology, build
from hopforge.model.topology.floor_map import draw_network
from hopforge.model.topology.floor_plan import cabling, link_ends, positions
from hopforge.model.topology.routing_table import hop_statistics
from hopforge.sim.pages.export import describe
from hopforge.sim.run.channel_plot import plot_channels
from hopforge.sim.run.measurement import channel_columns
from hopforge.sim.run.simulation import Simulation


def section(text: str) -> TopologyConfig:
    return parse_config(f"name: x\ntopology: {text}\n").topology


def made(text: str) -> Topology:
    return build(section(text), AddressConfig())


EVERY = [
    "{kind: mesh, radices: [4, 3]}",
    "{kind: mesh, radices: [3, 2, 4, 2]}",
    "{kind: torus, radices: [5, 4]}",
    "{kind: torus, radices: [2, 3, 4]}",
    "{kind: hyperx, sizes: [3, 4, 2]}",
    "{kind: fully_connected, routers: 7}",
    "{kind: fat_tree, k: 3, n: 2}",
    "{kind: dragonfly, p: 1, a: 5, h: 1}",
    "{kind: slim_fly, q: 7}",
    "{kind: polarfly, q: 4}",
    "{kind: dragonfly_plus, hosts_per_router: 1, leaves: 3, spines: 2, h: 2}",
    "{kind: cascade, hosts_per_router: 1, sizes: [3, 2], links: [1, 2], h: 1}",
    "{kind: clos, hosts_per_router: 2, pods: 3, leaves: 2, middles: 2, roots: 4}",
    "{kind: random_regular, routers: 12, degree: 3}",
    "{kind: layout_random, n: 4, degree: 4, length: 2}",
]


@pytest.mark.parametrize("text", EVERY)
def test_no_two_routers_stand_at_one_place(text: str) -> None:
    topology = made(text)
    place = positions(topology)
    assert place.shape == (topology.routers, 2)
    assert len(np.unique(place, axis=0)) == topology.routers
    assert place.min() == 0


@pytest.mark.parametrize("text", EVERY)
def test_cables_are_measured_link_by_link(text: str) -> None:
    topology = made(text)
    place = positions(topology).tolist()
    lengths = []
    for router, port in itertools.product(range(topology.routers), range(topology.max_ports)):
        peer = int(topology.peer_router[router, port])
        if peer >= 0 and (router, port) < (peer, int(topology.peer_port[router, port])):
            lengths.append(sum(abs(a - b) for a, b in zip(place[router], place[peer], strict=True)))
    found = cabling(topology)
    assert found.cables == len(lengths) == len(link_ends(topology))
    assert (found.total, found.longest) == (sum(lengths), max(lengths))
    assert found.mean == pytest.approx(sum(lengths) / len(lengths))


def test_rings_are_folded_and_limited_links_stay_short() -> None:
    assert cabling(made("{kind: torus, radices: [9, 8]}")).longest == 2
    # a folded ring of k > 2 has two cables of length 1 and k - 2 of length 2
    assert cabling(made("{kind: torus, radices: [7]}")).total == 2 + 2 * 5
    assert cabling(made("{kind: mesh, radices: [9, 8]}")).longest == 1
    assert cabling(made("{kind: layout_random, n: 8, degree: 4, length: 3}")).longest == 3


def test_distances_from_a_sample_of_routers() -> None:
    topology = made("{kind: random_regular, routers: 60, degree: 3}")
    whole, part = hop_statistics(topology), hop_statistics(topology, max_sources=30)
    assert (whole.sources, part.sources) == (60, 30)
    assert part.diameter <= whole.diameter
    assert part.mean_path_length == pytest.approx(whole.mean_path_length, rel=0.05)
    # of a graph in which all routers are alike a sample says everything
    ring = made("{kind: torus, radices: [11]}")
    assert hop_statistics(ring, max_sources=2)[:3] == hop_statistics(ring)[:3]


def test_mean_path_is_that_of_the_routers_and_mean_distance_that_of_the_hosts() -> None:
    found = hop_statistics(made("{kind: fully_connected, routers: 4, hosts_per_router: 3}"))
    assert found.mean_path_length == 1
    assert found.mean_hops == pytest.approx(9 / 11)  # 2 of the 11 other hosts are at the same router


def test_what_is_told() -> None:
    rows = dict(describe(parse_config("name: x\ntopology: {kind: torus, radices: [4, 4]}\n")))
    assert rows["diameter"] == "4 links between routers with hosts"
    assert rows["floor plan"] == "4 x 4 places"
    # 8 folded rings of 4: lengths 1, 1, 2, 2
    assert rows["cables"] == "48 places in all, mean 1.500, longest 2"


def test_pictures_show_routers_and_links(tmp_path: Path) -> None:
    topology = made("{kind: slim_fly, q: 4, hosts_per_router: 1}")
    draw_network(topology, tmp_path / "plan.png")
    with Image.open(tmp_path / "plan.png") as image:
        colors = image.convert("RGB").getcolors(1 << 24)
    assert min(image.size) > 300
    assert len(colors) > 50
    text = "name: x\ntopology: {kind: slim_fly, q: 4, hosts_per_router: 1}\nrouting: {algorithm: up_down}"
    config = parse_config(text)
    run = Simulation(config, 0.3, 1)
    run.advance(500)
    plot_channels(run.topology, channel_columns(run, 500), tmp_path / "channels.png")
    assert (tmp_path / "channels.png").stat().st_size > 20_000

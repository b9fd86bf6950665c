"""Networks are drawn as what they are, and no router lies on another."""

from dataclasses import replace

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.config.load import suited
from hopforge.model.topology import Topology
from hopforge.model.topology.configured import configured_network
from hopforge.model.topology.drawing import MOST_SPRINGS, draw_places


def made(text: str) -> Topology:
    config = parse_config(f"name: x\ntopology: {text}\n", keys=False)
    return configured_network(suited(config, hardware=False, keys=False))


NETWORKS = [
    "{kind: mesh, radices: [4, 3]}", "{kind: mesh, radices: [3, 3, 3, 2, 2]}", "{kind: torus, radices: [4, 4]}",
    "{kind: torus, radices: [5]}", "{kind: torus, radices: [4, 4, 4]}", "{kind: torus, radices: [1]}",
    "{kind: fat_tree, k: 4, n: 2}", "{kind: fat_tree, k: 2, n: 0}", "{kind: dragonfly, p: 1, a: 4, h: 2}",
    "{kind: dragonfly, p: 1, a: 1, h: 1}", "{kind: slim_fly, q: 5, hosts_per_router: 1}",
    "{kind: clos, hosts_per_router: 1, pods: 2, leaves: 2, middles: 2, roots: 2}",
    "{kind: dragonfly_plus, hosts_per_router: 1, leaves: 2, spines: 2, h: 1}", "{kind: polarfly, q: 3}",
    "{kind: butterfly, k: 2, n: 4}", "{kind: butterfly, k: 4, n: 2}", "{kind: butterfly, k: 3, n: 1}",
    "{kind: cascade, hosts_per_router: 1, sizes: [3, 2], h: 1}",
    "{kind: hyperx, sizes: [4, 3], hosts_per_router: 1}", "{kind: fully_connected, routers: 7, hosts_per_router: 1}",
    "{kind: random_regular, routers: 12, degree: 3, hosts_per_router: 1}",
    f"{{kind: random_regular, routers: {2 * (MOST_SPRINGS // 2) + 2}, degree: 3, hosts_per_router: 1}}",
]  # fmt: skip


@pytest.mark.parametrize("text", NETWORKS)
def test_no_router_lies_on_another(text: str) -> None:
    topology = made(text)
    drawing = draw_places(topology)
    assert drawing.places.shape == (topology.routers, 2)
    assert np.isfinite(drawing.places).all()
    assert len(np.unique(drawing.places.round(6), axis=0)) == topology.routers
    assert np.array_equal(drawing.places, draw_places(topology).places)  # the same picture every time


def lengths(text: str) -> np.ndarray:
    topology = made(text)
    places, ends = draw_places(topology).places, topology.channels()
    return np.linalg.norm(places[ends.src_router] - places[ends.dst_router], axis=1)


def test_grids_are_grids_and_folded_rings_have_short_links() -> None:
    assert set(lengths("{kind: mesh, radices: [4, 3]}")) == {1.0}
    assert set(lengths("{kind: torus, radices: [8, 8]}")) == {1.0, 2.0}
    cube = draw_places(made("{kind: mesh, radices: [2, 2, 2]}")).places  # the third dimension inside a cell
    assert cube[4].tolist() == [1.0, 0.5]
    assert cube[1].tolist() == [3.0, 0.0]


def test_trees_have_a_row_for_each_level_with_roots_on_top() -> None:
    topology = made("{kind: fat_tree, k: 4, n: 2}")
    y = draw_places(topology).places[:, 1].reshape(3, 16)
    assert (y == y[:, :1]).all()
    assert (np.diff(y[:, 0]) > 0).all()
    assert topology.host_router.max() < 16  # hosts at the lowest row


@pytest.mark.parametrize("text", [
    "{kind: clos, hosts_per_router: 2, pods: 4, leaves: 4, middles: 2, roots: 4}",
    "{kind: clos, hosts_per_router: 2, pods: 1, leaves: 9, middles: 3, roots: 0}",
    "{kind: director, hosts_per_router: 1, uplinks: 4, directors: 2, lines: 4, fabrics: 2, racks: 16}",
])  # fmt: skip
def test_levels_of_different_sizes_are_even_rows_one_above_the_other(text: str) -> None:
    topology = made(text)
    places = draw_places(topology).places
    rows = [np.sort(places[places[:, 1] == y, 0]) for y in np.unique(places[:, 1])]
    assert len({len(row) for row in rows}) > 1
    assert [row.mean() for row in rows] == pytest.approx([rows[0].mean()] * len(rows))
    for row in rows:  # as far from each other as they are far from the ends of the widest row
        assert np.diff(row) == pytest.approx(max(map(len, rows)) / len(row))
    height = np.ptp(places[:, 1])
    assert np.ptp(places[:, 0]) < 3 * height
    assert set(topology.host_router) <= set(np.flatnonzero(places[:, 1] == 0))


def test_stages_of_a_butterfly_are_rows() -> None:
    topology = made("{kind: butterfly, k: 2, n: 4}")
    y = draw_places(topology).places[:, 1].reshape(3, 8)
    assert (y == y[:, :1]).all()
    assert (np.diff(y[:, 0]) > 0).all()
    ends = topology.channels()
    stage = ends.src_router // 8, ends.dst_router // 8
    assert set(zip(*(s.tolist() for s in stage), strict=True)) == {(0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2)}


def test_groups_of_a_dragonfly_stand_apart() -> None:
    drawing = draw_places(made("{kind: dragonfly, p: 1, a: 4, h: 2}"))
    away = np.linalg.norm(drawing.places[:, None] - drawing.places[None], axis=2)
    same = drawing.group[:, None] == drawing.group[None]
    assert len(set(drawing.group.tolist())) == 9
    assert away[~same].min() > 0.8
    assert away[same].max() < 2.0


def test_places_of_a_file_are_kept() -> None:
    topology = made("{kind: torus, radices: [3, 3]}")
    moved = replace(topology, kind="edge_list", position=np.arange(18.0).reshape(9, 2))
    assert draw_places(moved).places.tolist() == np.arange(18.0).reshape(9, 2).tolist()

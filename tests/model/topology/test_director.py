"""Racks under director switches: links by hand, and routing without deadlock."""

import numpy as np
import pytest

from hopforge.model.config import ConfigError, parse_config
from hopforge.model.topology import build
from hopforge.model.topology.drawing import draw_places
from hopforge.model.topology.floor_plan import positions


def network(keys: str):
    config = parse_config(f"name: x\ntopology: {{kind: director, {keys}}}\n")
    return build(config.topology, config.address)


def neighbours(topology, router: int) -> list[int]:
    return sorted(int(peer) for peer in topology.peer_router[router] if peer >= 0)


def test_two_directors_by_hand() -> None:
    # racks 0 … 3; director 0: line cards 4, 5, fabric cards 6, 7, 8; director 1: 9, 10 and 11, 12, 13
    found = network("hosts_per_router: 3, racks: 4, uplinks: 2, directors: 2, lines: 2, fabrics: 3")
    assert (found.routers, found.hosts) == (14, 12)
    assert [neighbours(found, rack) for rack in range(4)] == [[4, 9], [5, 10], [4, 9], [5, 10]]
    assert neighbours(found, 4) == [0, 2, 6, 7, 8]
    assert neighbours(found, 10) == [1, 3, 11, 12, 13]
    assert neighbours(found, 7) == [4, 5]
    assert found.host_router.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_links_of_a_rack_are_dealt_to_the_line_cards_in_turn() -> None:
    # 3 racks with 2 links each to one director of 4 line cards (routers 3 … 6): links 0 … 5 to cards 0, 1, 2, 3, 0, 1
    found = network("hosts_per_router: 4, racks: 3, uplinks: 2, lines: 4, fabrics: 1")
    assert [neighbours(found, rack) for rack in range(3)] == [[3, 4], [5, 6], [3, 4]]


def test_picture_and_floor_plan_have_three_rows() -> None:
    found = network("hosts_per_router: 1, racks: 4, uplinks: 2, directors: 2, lines: 2, fabrics: 3")
    place = positions(found)
    assert place[:, 1].tolist() == [0] * 4 + [1] * 2 + [2] * 3 + [1] * 2 + [2] * 3
    assert place[:, 0].tolist() == [0, 1, 2, 3, 0, 1, 0, 1, 2, 2, 3, 3, 4, 5]
    assert len(np.unique(place, axis=0)) == found.routers
    drawn = draw_places(found).places  # each row even, and in the middle of the others
    rows = [drawn[place[:, 1] == row] for row in range(3)]
    assert all(len(np.unique(row[:, 1])) == 1 and row[:, 0].mean() == pytest.approx(2.5) for row in rows)
    assert rows[0][0, 1] < rows[1][0, 1] < rows[2][0, 1]
    for k, row in enumerate(rows):
        assert np.array_equal(np.argsort(row[:, 0]), np.argsort(place[place[:, 1] == k, 0]))
        assert np.allclose(np.diff(np.sort(row[:, 0]), n=2), 0)


@pytest.mark.parametrize(("keys", "message"), [
    ("racks: 4, uplinks: 3, directors: 2, lines: 2", "uplinks: must be a multiple of directors=2, not 3"),
    ("racks: 4, uplinks: 6, directors: 2, lines: 2",
     "uplinks: must be at most directors·lines=4, for the links of a rack go to different line cards, not 6"),
    ("racks: 3, uplinks: 1, lines: 4",
     "lines: must be at most racks·uplinks/directors=3, the links to a director, not 4"),
    ("racks: 0, uplinks: 1, lines: 1", "racks: must be at least 1, not 0"),
])  # fmt: skip
def test_bad_keys(keys: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        network(f"hosts_per_router: 1, fabrics: 1, {keys}")

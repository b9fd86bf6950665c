"""Cascade networks: links by hand and by a plain count, the dragonfly as a special case, bad keys."""

from collections import Counter

import numpy as np
import pytest

from hopforge.model.config import ConfigError, parse_config
from hopforge.model.topology import Topology, build
from hopforge.model.topology.drawing import draw_places
from hopforge.model.topology.floor_plan import positions
from hopforge.model.topology.port_class import port_classes


def network(keys: str, kind: str = "cascade") -> Topology:
    config = parse_config(f"name: x\ntopology: {{kind: {kind}, {keys}}}\n")
    return build(config.topology, config.address)


def neighbours(topology: Topology, router: int) -> list[int]:
    return [int(peer) for peer in topology.peer_router[router] if peer >= 0]


def test_two_groups_by_hand() -> None:
    """Rows 0 1 2 and 3 4 5, one link each; columns with two; links 0 … 5 of a group lead to the other one."""
    found = network("hosts_per_router: 1, sizes: [3, 2], links: [1, 2], h: 1, g: 2")
    assert (found.routers, found.hosts, found.max_ports) == (12, 12, 6)
    assert neighbours(found, 0) == [1, 2, 3, 3, 6]
    assert neighbours(found, 4) == [1, 1, 3, 5, 10]
    assert neighbours(found, 6) == [0, 7, 8, 9, 9]
    assert found.params["links_per_group_pair"] == 6


@pytest.mark.parametrize("arrangement", ["absolute", "relative", "palmtree"])
@pytest.mark.parametrize("g", [9, 4])
def test_one_row_is_a_dragonfly(arrangement: str, g: int) -> None:
    more = f"h: 2, g: {g}, arrangement: {arrangement}"
    found = network(f"hosts_per_router: 2, sizes: [4, 1], {more}")
    dragonfly = network(f"p: 2, a: 4, {more}", "dragonfly")
    assert found.routers == dragonfly.routers
    for router in range(found.routers):
        assert Counter(neighbours(found, router)) == Counter(neighbours(dragonfly, router))


@pytest.mark.parametrize(
    ("sizes", "links", "h", "g"), [((2, 3), (2, 1), 1, None), ((3, 2), (1, 3), 2, 5), ((1, 4), (1, 2), 1, 4)]
)
def test_links_are_those_of_the_definition(
    sizes: tuple[int, int], links: tuple[int, int], h: int, g: int | None
) -> None:
    text = f"hosts_per_router: 1, sizes: {list(sizes)}, links: {list(links)}, h: {h}"
    found = network(text if g is None else f"{text}, g: {g}")
    size = sizes[0] * sizes[1]
    groups = size * h + 1 if g is None else g
    assert found.routers == groups * size
    between: Counter[tuple[int, int]] = Counter()
    for router in range(found.routers):
        count = Counter(neighbours(found, router))
        for other in range(found.routers):
            same = router // size == other // size and router != other
            x, y = (abs(router % size % sizes[0] - other % size % sizes[0]),
                    abs(router % size // sizes[0] - other % size // sizes[0]))  # fmt: skip
            if same:
                assert count[other] == (links[0] if y == 0 else links[1] if x == 0 else 0)
            elif router // size != other // size:
                between[router // size, other // size] += count[other]
        assert sum(count[y] for y in count if y // size != router // size) <= h
    wanted = size * h // (groups - 1)
    assert between == {(a, b): wanted for a in range(groups) for b in range(groups) if a != b}


def test_a_group_of_cray_xc() -> None:
    """96 routers of 15 + 15 + 10 links and 4 hosts; diameter of a group 2."""
    found = network("hosts_per_router: 4, sizes: [16, 6], links: [1, 3], h: 10, g: 3")
    assert (found.routers, found.hosts, found.max_ports) == (288, 1152, 44)
    assert Counter(neighbours(found, 100)).most_common(1)[0][1] >= 3
    inside = [y for y in neighbours(found, 5) if y < 96]
    assert (len(inside), len(set(inside))) == (30, 20)
    assert len(neighbours(found, 5)) == 40


def test_pictures_show_groups_and_ports_their_class() -> None:
    found = network("hosts_per_router: 1, sizes: [3, 2], links: [1, 2], h: 1")
    drawing = draw_places(found)
    assert drawing.group.tolist() == [r // 6 for r in range(found.routers)]
    assert len(np.unique(drawing.places.round(6), axis=0)) == found.routers
    place = positions(found)
    assert place[:7].tolist() == [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1], [4, 0]]
    assert len(np.unique(place, axis=0)) == found.routers
    assert port_classes(found)[0] == ["host", "local", "local", "local", "local", "global"]


@pytest.mark.parametrize(("keys", "message"), [
    ("sizes: [3, 2], h: 1, g: 8", r"g: must be at most routers of a group·h \+ 1 = 7, not 8"),
    ("sizes: [1, 1], h: 1, g: 1", "g: must be at least 2 for groups of one router, not 1"),
    ("sizes: [3], h: 1", "sizes"),
    ("sizes: [3, 0], h: 1", r"sizes\[1\]: must be at least 1, not 0"),
    ("sizes: [3, 2], h: 1, links: [1, 65]", r"links\[1\]: must be at most 64, not 65"),
    ("sizes: [256, 256], h: 256", "topology.sizes: .* are more than"),
])  # fmt: skip
def test_bad_keys(keys: str, message: str) -> None:
    with pytest.raises((ConfigError, ValueError), match=message):
        network(f"hosts_per_router: 1, {keys}")

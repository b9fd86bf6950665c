"""Trees of groups: hand-drawn ones, the rule of the root, links that have failed, bad groups."""

from pathlib import Path

import pytest

from hopforge.model.config import ConfigError, parse_config
from hopforge.model.errors import UserError
from hopforge.model.router.collective_plane import PlaneDesign, configured_plane

MESH = "{kind: mesh, radices: [3, 3]}"


def plane(rest: str = "", topology: str = MESH) -> PlaneDesign:
    return configured_plane(parse_config(f"name: x\ntopology: {topology}\n{rest}"))


def ends(design: PlaneDesign) -> list[dict[int, tuple[set[object], object]]]:
    """Per group: router → (children, parent), ports replaced by what is behind them."""
    behind: dict[tuple[int, int], object] = {tuple(link.source): link.target.router for link in design.links}
    behind |= {tuple(end): f"host {host}" for host, end in enumerate(design.hosts)}

    def names(router: int, ports: int) -> set[object]:
        return {behind[router, port] for port in range(design.ports[router]) if ports >> port & 1}

    return [
        {w.router: (names(w.router, w.children), next(iter(names(w.router, w.parent)), None)) for w in tree.writes}
        for tree in design.trees
    ]


def test_all_hosts_of_a_mesh() -> None:
    # 0 1 2    the middle is the root; 0 and 2 are as near to it by 1 as by 3 or 5: the lower number is the parent
    # 3 4 5
    # 6 7 8
    (tree,) = ends(plane())
    assert tree == {
        0: ({"host 0"}, 1), 1: ({"host 1", 0, 2}, 4), 2: ({"host 2"}, 1),
        3: ({"host 3", 6}, 4), 4: ({"host 4", 1, 3, 5, 7}, None), 5: ({"host 5", 8}, 4),
        6: ({"host 6"}, 3), 7: ({"host 7"}, 4), 8: ({"host 8"}, 5),
    }  # fmt: skip


def test_members_root_and_routers_without_members() -> None:
    found = plane("collective_plane: {groups: [{hosts: [8, 2]}, {hosts: [4]}, {hosts: [0], root: 2}], max_groups: 3}\n")
    assert [(tree.root, tree.hosts, tree.depth) for tree in found.trees] == [(5, (2, 8), 1), (4, (4,), 0), (2, (0,), 2)]
    assert ends(found) == [
        {2: ({"host 2"}, 5), 5: ({2, 8}, None), 8: ({"host 8"}, 5)},
        {4: ({"host 4"}, None)},
        {0: ({"host 0"}, 1), 1: ({0}, 2), 2: ({1}, None)},
    ]


def test_failed_links_are_not_used() -> None:
    found = plane("failed: {links: [[2, 5]]}\ncollective_plane: {groups: [{hosts: [8, 2], root: 5}]}\n")
    assert ends(found) == [{1: ({2}, 4), 2: ({"host 2"}, 1), 4: ({1}, 5), 5: ({4, 8}, None), 8: ({"host 8"}, 5)}]


def test_parallel_links_take_the_lowest_port(tmp_path: Path) -> None:
    file = tmp_path / "edges.txt"
    file.write_text("0 1\n0 1\n")
    found = plane(topology=f"{{kind: edge_list, file: {file}}}")
    (tree,) = found.trees
    assert [(w.router, w.children, w.parent) for w in tree.writes] == [(0, 0b011, 0), (1, 0b001, 0b010)]


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("collective_plane: {groups: [{}, {hosts: [1, 9]}]}",
         r"^collective_plane.groups\[1\].hosts: host 9 does not exist; the 3x3 mesh has hosts 0 to 8$"),
        ("collective_plane: {groups: [{root: 9}]}",
         r"^collective_plane.groups\[0\].root: router 9 does not exist; the 3x3 mesh has routers 0 to 8$"),
        ("failed: {links: [[0, 1], [0, 3]]}", "the network falls apart: no path from router 0 to router 1"),
        ("failed: {switches: [4]}\ncollective_plane: {groups: [{root: 0}]}",
         r"groups\[0\]: there is no way from root router 0 to host 4$"),
    ],
)  # fmt: skip
def test_groups_that_do_not_fit(rest: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        plane(rest + "\n")


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("groups: [{hosts: [1, 2, 1]}]", "hosts: host 1 is in the group twice"),
        ("groups: [{hosts: []}]", "hosts: must name at least 1 host, not none"),
        ("groups: [{}, {}, {}]", "groups: must be at most max_groups=2 groups, not 3"),
        ("groups: []", "groups: must be at least 1 group, not none"), ("words: []", "words: must be at least 1 number"),
        ("width_bits: 12", "width_bits: must be a multiple of 8, not 12"),
        ("max_groups: 17", "max_groups"), ("words: [0]", "words"),
        ("groups: [{hosts: [-1]}]", "hosts"), ("groups: [{members: all}]", "members"),
    ],
)  # fmt: skip
def test_bad_sections(section: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        parse_config(f"name: x\ntopology: {MESH}\ncollective_plane: {{{section}}}\n")
    assert "\n" not in str(caught.value)

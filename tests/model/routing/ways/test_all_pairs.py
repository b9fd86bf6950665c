"""Ways between all pairs of routers, of any number of ports, beside a search that knows no masks."""

from collections import deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.routing.contract.plan import RoutingError
from hopforge.model.routing.ways.all_pairs import find_ways, mask_words
from hopforge.model.routing.ways.survey import ports_of_masks
from hopforge.model.topology import Topology
from hopforge.model.topology.configured import network_topology

#: kind, ports of a router
WIDE = {
    "{kind: hyperx, sizes: [66, 3], hosts_per_router: 2}": 69,
    "{kind: fat_tree, k: 70, n: 1}": 140,
    "{kind: mesh, radices: [3, 3], hosts_per_router: 130}": 134,
}


def network(text: str) -> Topology:
    return network_topology(parse_config(f"name: x\naddress: {{chunk_bits: 8, width_bits: 32}}\ntopology: {text}\n"))


def links_to(peer: list[list[int]], goal: int) -> list[int]:
    """Links from every router to the goal."""
    found, front = {goal: 0}, deque([goal])
    while front:
        router = front.popleft()
        for there in peer[router]:
            if there >= 0 and there not in found:
                found[there] = found[router] + 1
                front.append(there)
    return [found[router] for router in range(len(peer))]


@pytest.mark.parametrize("text", list(WIDE))
def test_ways_are_those_of_a_search(text: str) -> None:
    topology = network(text)
    assert topology.max_ports == WIDE[text]
    peer, R = topology.peer_router.tolist(), topology.routers
    every, one = find_ways(topology, "all", "x", {}), find_ways(topology, "one", "x", {})
    assert every.ports.shape == (R, R, mask_words(topology)) == (R, R, (WIDE[text] + 63) // 64)
    used, most = set(), 0
    for goal in {0, 1, R // 2, R - 1}:
        far = links_to(peer, goal)
        assert every.length[:, goal].tolist() == far
        row, port = ports_of_masks(every.ports[:, goal])
        wanted = [(r, p) for r in range(R) for p, t in enumerate(peer[r]) if t >= 0 and far[t] == far[r] - 1]
        assert list(zip(row.tolist(), port.tolist(), strict=True)) == wanted
        row, port = ports_of_masks(one.ports[:, goal])
        assert row.tolist() == [r for r in range(R) if r != goal]
        assert set(zip(row.tolist(), port.tolist(), strict=True)) <= set(wanted)
        used |= {p for _, p in wanted}
        most = max(most, *np.bincount([r for r, _ in wanted]).tolist())
    assert max(used) >> 6 > 0 or "mesh" in text
    assert every.most_ports >= most
    assert one.most_ports == 1


@pytest.mark.parametrize(("routers", "ports", "said"), [
    (16385, 64, "at most 16384 routers, not 16385"),
    (10883, 512, "at most 10882 routers of 512 ports, not 10883"),
])  # fmt: skip
def test_too_many_routers_are_one_line(routers: int, ports: int, said: str) -> None:
    large: Any = SimpleNamespace(routers=routers, max_ports=ports, name="large one")
    with pytest.raises(RoutingError, match=f"^routing.algorithm ugal keeps the ways of all pairs of {said}$"):
        find_ways(large, "all", "ugal", {})


def test_memory_that_does_not_suffice_is_said_before(monkeypatch: pytest.MonkeyPatch) -> None:
    said = r"^the ways of all pairs of the large one need 3\.75 GiB of memory; there are 1$"
    monkeypatch.setattr("hopforge.model.free_memory.free_memory", lambda: 1 << 30)
    large: Any = SimpleNamespace(routers=8192, max_ports=70, name="large one")
    with pytest.raises(UserError, match=said):
        find_ways(large, "all", "ugal", {})

"""Next ports on graphs beside a search that follows the definitions word by word."""

from collections import deque
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from hopforge.model import free_memory
from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.routing.contract.plan import RoutingError
from hopforge.model.routing.graphs import graph
from hopforge.model.routing.graphs.next_ports import shortest_ports, up_down_ports
from hopforge.model.topology import Topology, build
from hopforge.model.topology.routing_table import distances

NETWORKS = [
    "{kind: random_regular, routers: 30, degree: 3, hosts_per_router: 1, seed: 5}",
    "{kind: random_regular, routers: 24, degree: 7, hosts_per_router: 2, seed: 1}",
    "{kind: torus, radices: [4, 5]}",
    "{kind: mesh, radices: [1, 2]}",
    "{kind: torus, radices: [2, 3]}",  # two links beside each other
    "{kind: dragonfly, p: 2, a: 4, h: 2}",
    "{kind: fat_tree, k: 2, n: 3}",
]


def network(text: str) -> Topology:
    config = parse_config(f"name: test\ntopology: {text}")
    return build(config.topology, config.address)


def channels(topology: Topology) -> Iterator[tuple[int, int, int]]:
    """Channels in order: router, port, next router."""
    for here in range(topology.routers):
        for port, there in enumerate(topology.peer_router[here]):
            if there >= 0:
                yield here, port, int(there)


def levels(topology: Topology, root: int) -> list[int]:
    level = [-1] * topology.routers
    level[root] = 0
    queue = deque([root])
    while queue:
        here = queue.popleft()
        for source, _, there in channels(topology):
            if source == here and level[there] < 0:
                level[there] = level[here] + 1
                queue.append(there)
    return level


@pytest.mark.parametrize("text", NETWORKS)
def test_shortest_ports_take_turns_by_destination(text: str) -> None:
    topology = network(text)
    found = shortest_ports(topology, distances(topology))
    far = [levels(topology, goal) for goal in range(topology.routers)]
    for here in range(topology.routers):
        for goal in range(topology.routers):
            nearer = [port for source, port, there in channels(topology) if source == here
                      and far[goal][there] == far[goal][here] - 1]  # fmt: skip
            assert found[here, goal] == (nearer[goal % len(nearer)] if nearer else -1)


@pytest.mark.parametrize("text", NETWORKS)
@pytest.mark.parametrize("root", [0, 1])
def test_up_down_ways_are_shortest_among_the_legal_ones(text: str, root: int) -> None:
    topology = network(text)
    ports, goes_down = up_down_ports(topology, root)
    level = levels(topology, root)
    links = list(channels(topology))
    for here, port, there in links:
        assert goes_down[here, port] == ((level[there], there) > (level[here], here))
    assert goes_down.sum() == len(links) // 2
    for goal in range(topology.routers):
        length = legal_lengths(topology, links, goes_down, goal)
        for state in (0, 1):
            for here in range(topology.routers):
                port = int(ports[state, here, goal])
                if here == goal or (state, here) not in length:
                    assert port == -1
                    continue
                after = int(goes_down[here, port])
                assert after >= state
                following = (after, int(topology.peer_router[here, port]))
                assert length[following] == length[state, here] - 1
        assert all((0, here) in length for here in range(topology.routers))


def legal_lengths(
    topology: Topology, links: list[tuple[int, int, int]], goes_down: NDArray[np.int32], goal: int
) -> dict[tuple[int, int], int]:
    """Links of the shortest legal way to `goal`, by whether one has gone down and the router."""
    length = {(0, goal): 0, (1, goal): 0}
    for steps in range(1, 2 * topology.routers):
        for here, port, there in links:
            after = int(goes_down[here, port])
            if length.get((after, there)) == steps - 1:
                for before in range(after + 1):
                    length.setdefault((before, here), steps)
    return length


def test_tables_that_do_not_fit_are_refused_with_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = network(NETWORKS[0])
    monkeypatch.setattr(graph, "_MAX_START", 30**2 + 67)
    with pytest.raises(RoutingError, match="at most 29 routers, not 30"):
        graph.prepare_up_down(topology, 1, {})
    monkeypatch.setattr(graph, "_MAX_START", 30**2 + 68)
    assert graph.prepare_up_down(topology, 1, {}).table[6] == 30**2 + 68  # where the last part starts
    monkeypatch.setattr(free_memory, "free_memory", lambda: 1000)
    with pytest.raises(UserError, match=r"the next ports of all pairs of the random regular graph.* need .* of memory"):
        graph.prepare_up_down(topology, 1, {})

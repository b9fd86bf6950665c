"""Ways of packets in a network that is not whole: shortest ways by the links that are there, and up/down as escape."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.routing.proof.deadlock import DeadlockError, find_cycle
from hopforge.model.topology import Topology

#: of a pair of nodes: what is kept, and what is needed while it is searched for
WAY_BYTES, SEARCH_BYTES = 5, 40
#: there is no way so long
_NO_WAY = 0xFFFF


@dataclass(frozen=True, eq=False)
class Around:
    """Ways between all nodes.

    Attributes
    ----------
    way : int32[node, node]
        Distance << 16 | mask of the ports that begin a shortest way; without ports: no way.
    following : uint8[node, node]
        Port of the escape from the first node towards the second.
    """

    way: NDArray[np.int32]
    following: NDArray[np.uint8]


def ways_around(topology: Topology) -> Around:
    """Find the ways by the links of a network whose failed links are −1, and prove that the escape cannot deadlock.

    The root of its order is the first router with a link. Router ports are counted without that of the host, which is
    the first one.

    Raises
    ------
    DeadlockError
        Links of the escape that wait for each other in a cycle (our own mistake).
    """
    peers = topology.peer_router[:, 1:]
    way = _shortest(peers)
    following = _up_and_down(peers, way)
    _check_escape(peers, following, way)
    return Around(way, following)


def _shortest(peers: NDArray[np.int32]) -> NDArray[np.int32]:
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)
    from scipy.sparse.csgraph import shortest_path  # noqa: PLC0415

    nodes = len(peers)
    here, port = np.nonzero(peers >= 0)
    graph = csr_array((np.ones(len(here), np.int8), (here, peers[here, port])), shape=(nodes, nodes))
    hops = shortest_path(graph, unweighted=True)
    distance = np.where(np.isfinite(hops), hops, _NO_WAY).astype(np.int32)
    mask = np.zeros((nodes, nodes), np.int32)
    for number in range(peers.shape[1]):
        there = peers[:, number] >= 0
        nearer = (distance[peers[there, number]] + 1 == distance[there]) & (distance[there] < _NO_WAY)
        mask[there] |= nearer.astype(np.int32) << number
    return np.where(mask > 0, distance << 16 | mask, 0).astype(np.int32)


def _up_and_down(peers: NDArray[np.int32], way: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Ports of the escape: down all the way where that leads to the goal, else up.

    Nodes are in the order of their distance from the root, equals in that of their numbers; up is against it. Of
    several ports the first of those with the shortest way by this rule.
    """
    nodes = len(peers)
    following = np.zeros((nodes, nodes), np.uint8)
    linked = np.flatnonzero((peers >= 0).any(axis=1))
    if len(linked) == 0:
        return following
    level = way[:, linked[0]] >> 16
    order = linked[np.lexsort((linked, level[linked]))]
    rank = np.full(nodes, -1)
    rank[order] = np.arange(len(order))
    down = np.full((nodes, nodes), _NO_WAY, np.int32)
    for node in order[::-1].tolist():
        down[node, node] = 0
        _take_shorter(peers[node], rank > rank[node], down, down[node], following[node])
    hops = down.copy()
    for node in order.tolist():
        open_goals = down[node] == _NO_WAY
        found, ports = np.full(nodes, _NO_WAY, np.int32), np.zeros(nodes, np.uint8)
        _take_shorter(peers[node], (rank < rank[node]) & (rank >= 0), hops, found, ports)
        hops[node][open_goals], following[node][open_goals] = found[open_goals], ports[open_goals]
    return following


def _take_shorter(
    peers: NDArray[np.int32],
    allowed: NDArray[np.bool_],
    hops: NDArray[np.int32],
    best: NDArray[np.int32],
    ports: NDArray[np.uint8],
) -> None:
    """Put ways over allowed neighbours into `best` and their ports into `ports`, where they are shorter."""
    for port, peer in enumerate(peers.tolist()):
        if peer >= 0 and allowed[peer]:
            shorter = hops[peer] + 1 < best
            best[shorter], ports[shorter] = hops[peer][shorter] + 1, port


def _check_escape(peers: NDArray[np.int32], following: NDArray[np.uint8], way: NDArray[np.int32]) -> None:
    """Walk one link from everywhere to everywhere: which links wait for which."""
    nodes, ports = peers.shape
    found = [np.zeros(0, np.int64)]
    for here in range(nodes):
        goal = np.flatnonzero(way[here])
        first = following[here, goal].astype(np.int64)
        next_node = peers[here, first].astype(np.int64)
        if (next_node < 0).any():
            raise AssertionError("the escape uses a link that has failed")
        goal, first, next_node = (one[next_node != goal] for one in (goal, first, next_node))
        first_link, second_link = here * ports + first, next_node * ports + following[next_node, goal]
        found.append(np.unique(first_link * (nodes * ports) + second_link))
    source, target = np.divmod(np.concatenate(found), nodes * ports)
    if len(source) and find_cycle(source, target, nodes * ports):
        raise DeadlockError("simulation.failures: the escape can deadlock")

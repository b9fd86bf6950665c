"""Next ports on any graph, for every pair of routers: of shortest ways, and of shortest up*/down* ways."""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import WITHOUT_COUNTS, kernel
from hopforge.model.topology import Topology
from hopforge.model.topology.routing_table import distances


@kernel(**WITHOUT_COUNTS)
def _take_turns(peer_router, distance, left, ports):  # type: ignore[no-untyped-def]
    routers, width = peer_router.shape
    for here in range(routers):
        left[:] = 0
        for port in range(width):
            other = peer_router[here, port]
            if other >= 0:
                for there in range(routers):
                    left[there] += np.int32(distance[other, there] == distance[here, there] - 1)
        for there in range(routers):
            if left[there] > 0:
                left[there] = there % left[there]
        for port in range(width):
            other = peer_router[here, port]
            if other >= 0:
                for there in range(routers):
                    if distance[other, there] == distance[here, there] - 1:
                        if left[there] == 0:
                            ports[here, there] = port
                        left[there] -= 1


def shortest_ports(topology: Topology, distance: NDArray[np.int32]) -> NDArray[np.int32]:
    """Port of a shortest way: int32[router, destination router]; equal ones take turns by destination number.

    −1: there is none. `distance` is int32[router, router].
    """
    ports = np.full((topology.routers, topology.routers), -1, np.int32)
    _take_turns(topology.peer_router, distance, np.empty(topology.routers, np.int32), ports)
    return ports


#: destinations whose ports are a line of the processor's cache together
_LINE = 16


@kernel(**WITHOUT_COUNTS)
def _search_back(starts, sources, links, found, queue, some, ports):  # type: ignore[no-untyped-def]
    """From every destination against the channels.

    `queue` holds 2 · router + state (1: has gone down). Channels to a router that go up begin at
    ``starts[2 · router]``, those that go down at the next.
    """
    routers = ports.shape[1]
    for first in range(0, routers, _LINE):
        some[:] = -1
        for goal in range(first, min(first + _LINE, routers)):
            found[:] = 0
            queue[0], queue[1] = 2 * goal, 2 * goal + 1
            found[2 * goal] = found[2 * goal + 1] = 1
            head, tail = 0, 2
            while head < tail:
                # behind a down channel a packet is in state 1, where it takes no up channel
                down = queue[head] & 1
                for k in range(starts[queue[head]], starts[queue[head] + 1]):
                    source = sources[k]
                    for before in range(1 + down):
                        if found[2 * source + before] == 0:
                            found[2 * source + before] = 1
                            some[goal - first, before, source] = links[k]
                            queue[tail] = 2 * source + before
                            tail += 1
                head += 1
        for before in range(2):
            for source in range(routers):
                for goal in range(first, min(first + _LINE, routers)):
                    ports[before, source, goal] = some[goal - first, before, source]


def up_down_ports(topology: Topology, root: int = 0) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Next ports of shortest up*/down* ways.

    A channel goes *up* if it ends nearer to the root of a breadth-first tree (ties: at the lower number). Legal ways
    never go up after down.

    Returns
    -------
    ports : ndarray, int32[2, router, destination router]
        First index: 0 the packet has only gone up, 1 it has gone down; −1: no legal way.
    goes_down : ndarray, int32[router, port]
        1 where the channel goes down.
    """
    routers, peer = topology.routers, topology.peer_router
    level = distances(topology, np.array([root]))[0]
    order = level.astype(np.int64) * routers + np.arange(routers)
    goes_down = np.where(peer >= 0, order[np.maximum(peer, 0)] > order[:, None], False).astype(np.int32)
    sources, links = np.nonzero(peer >= 0)  # channels, by their router and port
    ends = 2 * peer[sources, links] + goes_down[sources, links]
    by_end = np.argsort(ends, kind="stable")
    starts = np.concatenate([[0], np.bincount(ends, minlength=2 * routers).cumsum()]).astype(np.int64)
    sources, links = sources[by_end].astype(np.int32), links[by_end].astype(np.int32)
    ports = np.empty((2, routers, routers), np.int32)
    found, queue = np.empty(2 * routers, np.uint8), np.empty(2 * routers, np.int64)
    some = np.empty((_LINE, 2, routers), np.int32)
    _search_back(starts, sources, links, found, queue, some, ports)
    return ports, goes_down

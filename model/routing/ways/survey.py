"""What packets on given ways can meet: how often they turn, and which channels follow each other."""

from typing import NamedTuple

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.compile import inner, kernel
from hopforge.model.routing.ways.all_pairs import Ways, mask_words
from hopforge.model.topology import Topology


class Survey(NamedTuple):
    """What packets between hosts meet on the ways of a network.

    Attributes
    ----------
    turns : ndarray, int16[goal, router, down]
        Most turns from down to up on the way from a router, whose packet came by a channel that goes up (or from a
        host) or down.
    turned, passed : ndarray, int16[router, down]
        Most turns, and most links, of a packet that a host has sent somewhere, when it comes by here; −1: none does.
    after : ndarray, uint64[router, port, word]
        Mask of output ports that a packet can take that came in by a port, 64 in a word, −1 as 0.
    starts : ndarray, uint64[router, word]
        Mask of output ports at which ways of the hosts of a router begin.
    """

    turns: NDArray[np.int16]
    turned: NDArray[np.int16]
    passed: NDArray[np.int16]
    after: NDArray[np.uint64]
    starts: NDArray[np.uint64]


@inner
def _add_mask(masks, more):  # type: ignore[no-untyped-def]
    for word in range(len(masks)):
        masks[word] |= more[word]


@kernel
def _survey(peer_router, peer_port, up, ports, length, hosts, turns, turned, passed, after, starts):  # type: ignore[no-untyped-def]
    routers, words = peer_router.shape[0], ports.shape[2]
    order = np.empty(routers, np.int64)
    count = np.zeros(routers + 1, np.int64)
    so_far = np.empty((routers, 2), np.int16)
    links = np.empty((routers, 2), np.int16)
    for goal in range(routers):
        count[:] = 0
        for router in range(routers):
            if length[router, goal] >= 0:
                count[length[router, goal] + 1] += 1
        for n in range(routers):
            count[n + 1] += count[n]
        reached = count[routers]  # the others have no way: one of the two has failed
        for router in range(routers):
            place = length[router, goal]
            if place >= 0:
                order[count[place]] = router
                count[place] += 1
        for k in range(1, reached):  # nearest first: turns that are left
            router = order[k]
            for came in range(2):
                most = 0
                for word in range(words):
                    mask = ports[router, goal, word]
                    while mask != uint64(0):
                        port = (word << 6) + trailing_zeros(mask)
                        mask &= mask - uint64(1)
                        there, rises = peer_router[router, port], int64(up[router, port])
                        most = max(most, came * rises + turns[goal, there, 1 - rises])
                turns[goal, router, came] = most
        if not hosts[goal]:
            continue
        so_far[:] = -1
        for k in range(reached - 1, -1, -1):  # farthest first: turns and links behind a packet
            router = order[k]
            if not hosts[router] and so_far[router, 0] < 0 and so_far[router, 1] < 0:
                continue
            if hosts[router]:
                _add_mask(starts[router], ports[router, goal])
            for word in range(words):
                mask = ports[router, goal, word]
                while mask != uint64(0):
                    port = (word << 6) + trailing_zeros(mask)
                    mask &= mask - uint64(1)
                    there, rises = peer_router[router, port], int64(up[router, port])
                    way, hops = -1, -1
                    if hosts[router]:
                        way, hops = 0, 0
                    for came in range(2):
                        if so_far[router, came] >= 0:
                            way = max(way, so_far[router, came] + came * rises)
                            hops = max(hops, links[router, came])
                    direction = 1 - rises
                    if so_far[there, direction] < 0:
                        links[there, direction] = -1
                    so_far[there, direction] = max(so_far[there, direction], way)
                    links[there, direction] = max(links[there, direction], hops + 1)
                    _add_mask(after[there, peer_port[router, port]], ports[there, goal])
        for router in range(routers):
            for came in range(2):
                if so_far[router, came] >= 0:
                    turned[router, came] = max(turned[router, came], so_far[router, came])
                    passed[router, came] = max(passed[router, came], links[router, came])
            if hosts[router]:
                turned[router, 0] = max(turned[router, 0], 0)
                passed[router, 0] = max(passed[router, 0], 0)


def survey(topology: Topology, ways: Ways, up: NDArray[np.bool_]) -> Survey:
    """Follow all ways between routers with hosts.

    Parameters
    ----------
    topology, ways
        The network and its ways.
    up : ndarray, bool[router, port]
        Whether the channel of an output port goes up.
    """
    R = topology.routers
    hosts = np.zeros(R, np.bool_)
    hosts[topology.host_router] = True
    found = Survey(
        np.zeros((R, R, 2), np.int16), np.full((R, 2), -1, np.int16), np.full((R, 2), -1, np.int16),
        np.zeros((*topology.peer_router.shape, mask_words(topology)), np.uint64),
        np.zeros((R, mask_words(topology)), np.uint64),
    )  # fmt: skip
    _survey(
        topology.peer_router, topology.peer_port, up, ways.ports, ways.length, hosts, found.turns, found.turned,
        found.passed, found.after, found.starts,
    )  # fmt: skip
    return found


def ports_of_masks(masks: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return row and port of every bit of masks, uint64[row, word]: rows that rise, then ports."""
    little = np.ascontiguousarray(masks).astype("<u8", copy=False).view(np.uint8)
    row, port = np.nonzero(np.unpackbits(little, axis=1, bitorder="little"))
    return row, port


def rising_channels(topology: Topology, root: int | None) -> NDArray[np.bool_]:
    """Return which channels go up: bool[router, port].

    Towards `root` of a breadth-first tree, or, without one, away from routers with hosts; between equals to the lower
    number.
    """
    R = topology.routers
    level = np.full(R, -1, np.int64)
    front = np.unique(topology.host_router) if root is None else np.array([root])
    level[front] = 0
    step = 0
    while len(front):
        step += 1
        near = np.unique(topology.peer_router[front])
        front = near[(near >= 0)]
        front = front[level[front] < 0]
        level[front] = step
    order = (level if root is not None else -level) * R + np.arange(R)
    peer = topology.peer_router
    return np.where(peer >= 0, order[np.maximum(peer, 0)] < order[:, None], False)

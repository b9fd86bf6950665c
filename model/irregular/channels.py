"""Directed channels between nodes, numbered by source and then by target; and the paths of a next-hop table on them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.kernel.compile import WITHOUT_COUNTS, kernel

__all__ = [
    "ChannelList", "TableError", "WorkingSwitches", "channel_list", "check_next_hops", "hop_counts", "next_channels",
    "whole_number",
]  # fmt: skip


class TableError(UserError):
    """A table that does not deliver a pair; `router` is the one whose entries are at fault (`whole_number`)."""

    def __init__(self, message: str, router: int) -> None:
        super().__init__(message)
        self.router = router


class WorkingSwitches(NamedTuple):
    """What the numbers of the switches that work stand for, where others have failed.

    Attributes
    ----------
    routers : int
        Routers of the whole network.
    numbers : ndarray, int32[router]
        Number of each working one in it; increasing.
    """

    routers: int
    numbers: NDArray[np.int32]

    def places(self) -> NDArray[np.int32]:
        """Place among the working ones, by the number in the whole network: int32[router + 1]; -1: failed, or none."""
        place = np.full(self.routers + 1, -1, np.int32)
        place[self.numbers] = np.arange(len(self.numbers), dtype=np.int32)
        return place


def whole_number(router: int, working: WorkingSwitches | None) -> int:
    """Return the number of a switch in the whole network, by which the user knows it."""
    return int(router if working is None else working.numbers[router])


class ChannelList(NamedTuple):
    """Channels of a network.

    Attributes
    ----------
    source, target : ndarray, int32[channel]
        Ends; in the order of (source, target).
    first : ndarray, int32[node + 1]
        Channels from node u are ``first[u]`` to ``first[u + 1] - 1``.
    """

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    first: NDArray[np.int32]


def channel_list(neighbours: NDArray[np.int32]) -> ChannelList:
    """Give numbers to the channels of an undirected network (two per link).

    Examples
    --------
    >>> channel_list(np.array([[1, -1], [0, 2], [1, -1]], np.int32)).target.tolist()
    [1, 0, 2, 1]
    """
    present = neighbours >= 0
    source, _ = np.nonzero(present)
    first = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    return ChannelList(source.astype(np.int32), neighbours[present], first.astype(np.int32))


@kernel
def _fill_next_channels(next_hop, target, first, table):  # type: ignore[no-untyped-def]
    nodes = next_hop.shape[0]
    for u in range(nodes):
        for d in range(nodes):
            table[u, d] = -1
            if u != d:
                for c in range(first[u], first[u + 1]):
                    if target[c] == next_hop[u, d]:
                        table[u, d] = c
                        break
                if table[u, d] < 0:
                    return u * nodes + d
    return -1


def next_channels(
    next_hop: NDArray[np.int32], channels: ChannelList, working: WorkingSwitches | None = None
) -> NDArray[np.int32]:
    """Next channel for every pair.

    Parameters
    ----------
    next_hop : ndarray, int32[node, destination]
        Next node.
    channels : ChannelList
        Channels of the network.
    working : WorkingSwitches, optional
        What nodes are called in errors.

    Returns
    -------
    ndarray, int32[node, destination]
        -1 on the diagonal.

    Raises
    ------
    TableError
        If an entry is missing or names a node that is no neighbour.
    """
    nodes = len(channels.first) - 1
    if next_hop.shape != (nodes, nodes):
        raise UserError(f"the table must have {nodes}×{nodes} entries, not {'×'.join(map(str, next_hop.shape))}")
    table = np.empty((nodes, nodes), np.int32)
    bad = int(_fill_next_channels(next_hop, channels.target, channels.first, table))
    if bad >= 0:
        u, d = divmod(bad, nodes)
        w = int(next_hop[u, d])
        u, d, w = (k if k < 0 else whole_number(k, working) for k in (u, d, w))
        what = f"is missing (path {u} → ?)" if w < 0 else f"names router {w}, which is no neighbour (path {u} → {w})"
        raise TableError(f"the entry of router {u} for destination {d} {what}", u)
    return table


@kernel(**WITHOUT_COUNTS)
def _first_loop(next_hop, state):  # type: ignore[no-untyped-def]
    """Pair (source·nodes + destination) that never arrives, or -1."""
    nodes = next_hop.shape[0]
    for d in range(nodes):
        for s in range(nodes):
            state[s] = -1
        state[d] = nodes
        for s in range(nodes):
            u = s
            while state[u] < 0:
                state[u] = s
                u = next_hop[u, d]
            if state[u] == s:
                return s * nodes + d
            u = s
            while state[u] == s:
                state[u] = nodes
                u = next_hop[u, d]
    return -1


def check_next_hops(
    next_hop: NDArray[np.int32], channels: ChannelList, working: WorkingSwitches | None = None
) -> NDArray[np.int32]:
    """Check that every pair is delivered; parameters and result are those of `next_channels`.

    Raises
    ------
    TableError
        Missing entry, wrong neighbour, or a loop: with the pair and the path.
    """
    table = next_channels(next_hop, channels, working)
    bad = int(_first_loop(next_hop, np.empty(len(next_hop), np.int32)))
    if bad >= 0:
        s, d = divmod(bad, next_hop.shape[0])
        path = [s]
        while path.count(path[-1]) < 2:
            path.append(int(next_hop[path[-1], d]))
        path, (s, d) = ([whole_number(k, working) for k in nodes] for nodes in (path, (s, d)))
        way = " → ".join(map(str, path))
        raise TableError(f"from router {s} to router {d} packets go in a circle: {way}", path[-2])
    return table


#: destinations whose entries at a router are a line of the processor's cache together
_LINE = 16


@kernel(**WITHOUT_COUNTS)
def _fill_hops(next_channel, target, stack, some, ways, hops):  # type: ignore[no-untyped-def]
    """`stack`, `some` and `ways` are room for the routers of a path, and for hops and channels of 16 destinations."""
    nodes = next_channel.shape[0]
    for begin in range(0, nodes, _LINE):
        end = min(begin + _LINE, nodes)
        for s in range(nodes):
            for d in range(begin, end):
                ways[d - begin, s] = next_channel[s, d]
        for d in range(begin, end):
            far_from, way = some[d - begin], ways[d - begin]
            far_from[:] = -1
            far_from[d] = 0
            for s in range(nodes):
                depth, u = 0, s
                while far_from[u] < 0:
                    stack[depth] = u
                    depth += 1
                    u = target[way[u]]
                far = far_from[u]
                while depth > 0:
                    depth -= 1
                    far += 1
                    far_from[stack[depth]] = far
        for s in range(nodes):
            for d in range(begin, end):
                hops[s, d] = some[d - begin, s]


def hop_counts(next_channel: NDArray[np.int32], channels: ChannelList) -> NDArray[np.int32]:
    """Hops of the path of every pair, int32[source, destination], for a checked table."""
    hops, room = np.empty(next_channel.shape, np.int32), np.empty((2 * _LINE + 1, len(next_channel)), np.int32)
    _fill_hops(next_channel, channels.target, room[0], room[1 : _LINE + 1], room[_LINE + 1 :], hops)
    return hops

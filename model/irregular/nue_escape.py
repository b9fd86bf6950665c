"""What Nue does before it routes: parts of the destinations, a central node of each, and a spanning tree from it."""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.irregular.channels import ChannelList
from hopforge.model.kernel.compile import kernel
from hopforge.model.kernel.heap import pop_entry, push_entry

__all__ = ["central_node", "destination_parts", "spanning_tree"]


@kernel
def _grow(distance, sizes, target, first, part):  # type: ignore[no-untyped-def]
    nodes = len(part)
    apart = np.zeros(nodes, np.int64)  # from all that have no part yet
    links, near = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)  # to the part that grows
    for u in range(nodes):
        part[u] = -1
        for x in range(nodes):
            apart[u] += distance[u, x]
    for layer in range(len(sizes)):
        links[:] = 0
        near[:] = 0
        for size in range(sizes[layer]):
            best = -1
            for u in range(nodes):
                if part[u] >= 0:
                    continue
                if best < 0:
                    best = u
                elif size == 0:
                    if apart[u] > apart[best]:
                        best = u
                elif links[u] > links[best] or (links[u] == links[best] and near[u] < near[best]):
                    best = u
            part[best] = layer
            for c in range(first[best], first[best + 1]):
                links[target[c]] += 1
            for u in range(nodes):
                apart[u] -= distance[best, u]
                near[u] += distance[best, u]


def destination_parts(distance: NDArray[np.uint8], layers: int, channels: ChannelList) -> NDArray[np.int16]:
    """Layer of every destination, int16[node]: parts that grow node by node and differ in size by one at most.

    A part begins with the node that is farthest from all that have none yet. Then comes, again and again, the node
    with most links to the part, of these the one with the least sum of distances to it, of these the lowest.

    Parameters
    ----------
    distance : ndarray, uint8[node, node]
        Hops between nodes.
    layers : int
        From 1 to the number of nodes.
    channels : ChannelList
        Channels of the network.

    Examples
    --------
    >>> from hopforge.model.irregular.channels import channel_list
    >>> from hopforge.model.irregular.neighbours import distances, neighbour_array
    >>> path = neighbour_array([[1], [0, 2], [1, 3], [2, 4], [3]])
    >>> destination_parts(distances(path), 2, channel_list(path)).tolist()
    [0, 0, 0, 1, 1]
    """
    nodes = len(distance)
    part = np.empty(nodes, np.int16)
    sizes = (nodes + np.arange(layers)[::-1]) // layers
    _grow(distance, sizes, channels.target, channels.first, part)
    return part


@kernel
def _betweenness(destinations, wanted, target, first):  # type: ignore[no-untyped-def]
    nodes = len(wanted)
    central = np.zeros(nodes, np.float64)
    ways = np.empty(nodes, np.float64)
    share = np.empty(nodes, np.float64)
    far = np.empty(nodes, np.int32)
    queue = np.empty(nodes, np.int32)
    for s in destinations:
        far[:] = -1
        ways[:] = 0
        share[:] = 0
        far[s], ways[s], queue[0] = 0, 1, s
        head, tail = 0, 1
        while head < tail:
            u = queue[head]
            head += 1
            for c in range(first[u], first[u + 1]):
                x = target[c]
                if far[x] < 0:
                    far[x] = far[u] + 1
                    queue[tail] = x
                    tail += 1
                if far[x] == far[u] + 1:
                    ways[x] += ways[u]
        for q in range(tail - 1, 0, -1):
            x = queue[q]
            share[x] += wanted[x]
            central[x] += share[x]
            for c in range(first[x], first[x + 1]):
                u = target[c]
                if far[u] + 1 == far[x]:
                    share[u] += ways[u] / ways[x] * share[x]
        central[s] += share[s]
    return central


def central_node(destinations: NDArray[np.int64], channels: ChannelList) -> int:
    """Node that most shortest paths between `destinations` meet, their ends included (Brandes 2001); ties: the lowest.

    Parameters
    ----------
    destinations : ndarray, int64[destination]
        Nodes.
    channels : ChannelList
        Channels of a connected network.

    Examples
    --------
    >>> from hopforge.model.irregular.channels import channel_list
    >>> from hopforge.model.irregular.neighbours import neighbour_array
    >>> path = channel_list(neighbour_array([[1], [0, 2], [1, 3], [2, 4], [3]]))
    >>> central_node(np.arange(5), path), central_node(np.array([0, 1, 2]), path)
    (2, 1)
    """
    wanted = np.zeros(len(channels.first) - 1, np.int64)
    wanted[destinations] = 1
    found = _betweenness(destinations, wanted, channels.target, channels.first)
    # of equals the sums differ by rounding
    return int(np.flatnonzero(found >= found.max() * (1 - 1e-9))[0])


@kernel
def spanning_tree(root, weight, target, first):  # type: ignore[no-untyped-def]
    """Channel by which the tree of least weights reaches each node from `root`, int32[node]; -1 at the root.

    Parameters
    ----------
    root : int
        A node of a connected network.
    weight : ndarray, int64[channel]
        At least 1.
    target, first : ndarray
        As in `ChannelList`.
    """
    nodes = len(first) - 1
    tree = np.full(nodes, -1, np.int32)
    far = np.full(nodes, np.iinfo(np.int64).max, np.int64)
    heap = np.empty(len(target) + 1, np.int64)
    far[root] = 0
    heap[0], count = root, 1
    while count > 0:
        entry = pop_entry(heap, count)
        count -= 1
        u = entry % nodes
        if entry // nodes != far[u]:
            continue
        for c in range(first[u], first[u + 1]):
            x = target[c]
            if far[u] + weight[c] < far[x]:
                far[x], tree[x] = far[u] + weight[c], c
                push_entry(heap, count, far[x] * nodes + x)
                count += 1
    return tree

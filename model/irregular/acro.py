"""ACRO: virtual layers from one order of all channels per layer, found in reverse (destination first).

Source: Kawano's thesis (seed 002), algorithm 2, as spec compact-routing.md reads it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.irregular.channels import ChannelList
from hopforge.model.kernel.compile import kernel

__all__ = ["AcroLayers", "acro_layers"]


@dataclass(frozen=True)
class AcroLayers:
    """Orders of the channels.

    Attributes
    ----------
    order : ndarray, int32[layer, channel]
        Place of a channel in the order of a layer. Packets start in the highest layer. From channel a to channel b a
        packet stays in its layer if ``order[layer, a] > order[layer, b]``, else it goes one layer lower.
    sequence : ndarray, int32[layer, channel]
        Channels from place 0 on.
    """

    order: NDArray[np.int32]
    sequence: NDArray[np.int32]

    @property
    def layers(self) -> int:
        """Number of layers."""
        return len(self.order)


@kernel
def _heights(next_channel, target):  # type: ignore[no-untyped-def]
    """Height and number of deepest leaves below the channel that node u takes towards d, and the longest route.

    uint16[destination, node] and int32[destination, node].
    """
    nodes = next_channel.shape[0]
    height = np.zeros((nodes, nodes), np.uint16)
    deepest = np.zeros((nodes, nodes), np.int32)
    degree = np.empty(nodes, np.int32)
    queue = np.empty(nodes, np.int32)
    longest = 0
    for d in range(nodes):
        degree[:] = 0
        for u in range(nodes):
            if u != d:
                degree[target[next_channel[u, d]]] += 1
        count = 0
        for u in range(nodes):
            if u != d and degree[u] == 0:
                deepest[d, u] = 1
                queue[count] = u
                count += 1
        done = 0
        while done < count:
            u = queue[done]
            done += 1
            w = target[next_channel[u, d]]
            h = int(height[d, u]) + 1
            longest = max(longest, h)
            if w == d:
                continue
            if h > height[d, w]:
                height[d, w] = h
                deepest[d, w] = deepest[d, u]
            elif h == height[d, w]:
                deepest[d, w] += deepest[d, u]
            degree[w] -= 1
            if degree[w] == 0:
                queue[count] = w
                count += 1
    return height, deepest, longest


@kernel
def _less(f, weight, a, b):  # type: ignore[no-untyped-def]
    """Whether channel a is chosen before b (-1: none)."""
    if b < 0:
        return a >= 0
    if a < 0:
        return False
    if f[a] != f[b]:
        return f[a] < f[b]
    if weight[a, f[a]] != weight[b, f[b]]:
        return weight[a, f[a]] < weight[b, f[b]]
    return a < b


@kernel
def _replay(tree, size, c, f, weight):  # type: ignore[no-untyped-def]
    """Tournament of the channels: play the matches of channel c again, up to the root."""
    node = (size + c) >> 1
    while node > 0:
        a, b = tree[2 * node], tree[2 * node + 1]
        tree[node] = a if _less(f, weight, a, b) else b
        node >>= 1


@kernel
def _assign(next_channel, neighbours, source, target, users, first_user):  # type: ignore[no-untyped-def]
    """Sequences of the channels, int32[layer, channel]; `users` lists the destinations of each channel."""
    nodes, channels = next_channel.shape[0], len(source)
    height, deepest, longest = _heights(next_channel, target)
    weight = np.zeros((channels, max(longest, 1)), np.int64)
    f = np.zeros(channels, np.int32)
    # has_parent[d, u]: the channel of u towards d still depends on the next one
    has_parent = np.zeros((nodes, nodes), np.bool_)
    open_pairs = 0
    for d in range(nodes):
        for u in range(nodes):
            if u != d:
                c = next_channel[u, d]
                open_pairs += 1
                if target[c] != d:
                    has_parent[d, u] = True
                    weight[c, height[d, u]] += deepest[d, u]
                    f[c] = max(f[c], height[d, u])
    size = 1
    while size < channels:
        size *= 2
    tree = np.empty(2 * size, np.int32)
    reached = np.zeros((nodes, nodes), np.bool_)
    sequences = np.empty((8, channels), np.int32)
    layers = 0
    while open_pairs > 0:
        if layers == len(sequences):
            sequences = np.concatenate((sequences, np.empty_like(sequences)))
        tree[:] = -1
        for c in range(channels):
            tree[size + c] = c
        for node in range(size - 1, 0, -1):
            a, b = tree[2 * node], tree[2 * node + 1]
            tree[node] = a if _less(f, weight, a, b) else b
        for place in range(channels):
            c = tree[1]
            sequences[layers, place] = c
            tree[size + c] = -1
            _replay(tree, size, c, f, weight)
            u = source[c]
            for k in range(first_user[c], first_user[c + 1]):
                d = users[k]
                if reached[d, u] or has_parent[d, u]:
                    continue
                reached[d, u] = True
                open_pairs -= 1
                for q in range(neighbours.shape[1]):
                    x = neighbours[u, q]
                    if x < 0:
                        break
                    if x == d:
                        continue
                    child = next_channel[x, d]
                    if target[child] != u:
                        continue
                    has_parent[d, x] = False
                    weight[child, height[d, x]] -= deepest[d, x]
                    while f[child] > 0 and weight[child, f[child]] == 0:
                        f[child] -= 1
                    if tree[size + child] >= 0:
                        _replay(tree, size, child, f, weight)
        layers += 1
    return sequences[:layers]


@kernel
def _destinations(next_channel, channels):  # type: ignore[no-untyped-def]
    """Destinations that each channel is used for, in increasing order: list and start of each channel's part."""
    nodes = next_channel.shape[0]
    first = np.zeros(channels + 1, np.int64)
    for u in range(nodes):
        for d in range(nodes):
            if u != d:
                first[next_channel[u, d] + 1] += 1
    first = np.cumsum(first)
    users = np.empty(first[-1], np.int32)
    place = first[:-1].copy()
    for u in range(nodes):
        for d in range(nodes):
            if u != d:
                c = next_channel[u, d]
                users[place[c]] = d
                place[c] += 1
    return users, first


def acro_layers(next_channel: NDArray[np.int32], neighbours: NDArray[np.int32], channels: ChannelList) -> AcroLayers:
    """Assign virtual layers.

    Ties are broken by the weight of the fitness, then by the number of the channel.

    Parameters
    ----------
    next_channel : ndarray, int32[node, destination]
        A checked table (`check_next_hops`).
    neighbours : ndarray, int32[node, degree]
        As `neighbour_array` gives them.
    channels : ChannelList
        Channels of the network.
    """
    users, first_user = _destinations(next_channel, len(channels.source))
    sequence = _assign(next_channel, neighbours, channels.source, channels.target, users, first_user)
    order = np.empty_like(sequence)
    rows = np.arange(len(sequence))[:, None]
    order[rows, sequence] = np.arange(sequence.shape[1])[None, :]
    return AcroLayers(order, sequence)

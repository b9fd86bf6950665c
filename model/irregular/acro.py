"""ACRO: virtual layers from one order of all channels per layer, found in reverse (destination first).

Source: Kawano's thesis (seed 002), algorithm 2, as spec compact-routing.md reads it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.irregular.channels import ChannelList
from hopforge.model.kernel.compile import WITHOUT_COUNTS, inner, kernel

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


_jit: Any = kernel(**WITHOUT_COUNTS)


@_jit
def _heights(next_channel, target, height, deepest, degree, queue):  # type: ignore[no-untyped-def]
    """Find height and number of deepest leaves below the channel that node u takes towards d; return the longest route.

    uint16[destination, node] and int32[destination, node], zeros; room for a number of each node in the others.
    """
    nodes = next_channel.shape[0]
    longest = 0
    for d in range(nodes):
        for u in range(nodes):
            degree[u] = 0
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
    return longest


@inner
def _first_of(f, weight, a, b):  # type: ignore[no-untyped-def]
    """Return the channel that is chosen before the other one; -1: none."""
    if b < 0:
        return a
    if a < 0:
        return b
    if f[a] != f[b]:
        return a if f[a] < f[b] else b
    if weight[a, f[a]] != weight[b, f[b]]:
        return a if weight[a, f[a]] < weight[b, f[b]] else b
    return min(a, b)


@inner
def _replay(tree, size, c, f, weight):  # type: ignore[no-untyped-def]
    """Tournament of the channels: play the matches of channel c again, up to the root."""
    node = (size + c) >> 1
    while node > 0:
        tree[node] = _first_of(f, weight, tree[2 * node], tree[2 * node + 1])
        node >>= 1


@_jit
def _assign(  # type: ignore[no-untyped-def]
    next_channel, neighbours, source, target, users, first_user, height, deepest, weight, f, has_parent, reached, tree,
    sequences,
):
    """Fill in the sequences of the channels and return how many layers they are.

    `users` lists the destinations of each channel; in `tree`, twice the next power of two of them, channels play for
    the next place; `weight`, `f`, ``has_parent[d, u]`` (the channel of u towards d still depends on the next one) and
    ``reached[d, u]`` are zeros.
    """
    nodes, channels = next_channel.shape[0], len(source)
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
    size = len(tree) >> 1
    layers = 0
    while open_pairs > 0:
        for c in range(size):
            tree[size + c] = c if c < channels else -1
        for node in range(size - 1, 0, -1):
            tree[node] = _first_of(f, weight, tree[2 * node], tree[2 * node + 1])
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
    return layers


@_jit
def _destinations(next_channel, users, first, place):  # type: ignore[no-untyped-def]
    """List the destinations that each channel is used for, in increasing order, and the start of each one's part.

    `first` and `place` are zeros, one of each channel and one more.
    """
    nodes = next_channel.shape[0]
    for u in range(nodes):
        for d in range(nodes):
            if u != d:
                first[next_channel[u, d] + 1] += 1
    for c in range(1, len(first)):
        first[c] += first[c - 1]
        place[c] = first[c]
    for u in range(nodes):
        for d in range(nodes):
            if u != d:
                c = next_channel[u, d]
                users[place[c]] = d
                place[c] += 1


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
    source, target = channels.source, channels.target
    nodes, number = len(next_channel), len(source)
    users, first_user = np.empty(nodes * (nodes - 1), np.int32), np.zeros(number + 1, np.int64)
    _destinations(next_channel, users, first_user, np.zeros_like(first_user))
    height, deepest = np.zeros((nodes, nodes), np.uint16), np.zeros((nodes, nodes), np.int32)
    longest = _heights(next_channel, target, height, deepest, np.empty(nodes, np.int32), np.empty(nodes, np.int32))
    sequences = np.empty((longest, number), np.int32)  # in every layer each route gets on by a channel at least
    layers = _assign(
        next_channel, neighbours, source, target, users, first_user, height, deepest,
        np.zeros((number, max(longest, 1)), np.int64), np.zeros(number, np.int32), np.zeros((nodes, nodes), np.bool_),
        np.zeros((nodes, nodes), np.bool_), np.empty(2 << max(number - 1, 0).bit_length(), np.int32), sequences,
    )  # fmt: skip
    sequence = sequences[:layers].copy()
    order = np.empty_like(sequence)
    rows = np.arange(len(sequence))[:, None]
    order[rows, sequence] = np.arange(sequence.shape[1])[None, :]
    return AcroLayers(order, sequence)

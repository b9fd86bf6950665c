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


#: destinations whose entries at a node are a line of the processor's cache together
_LINE = 16


@_jit
def _heights(next_channel, target, height, deepest, degree, queue, ways, highs, counts):  # type: ignore[no-untyped-def]
    """Find height and number of deepest leaves below the channel that node u takes towards d; return the longest route.

    uint16[node, destination] and int32[node, destination]. Room for a number of each node in the others, in the last
    three for channel, height and leaves of 16 destinations.
    """
    nodes = next_channel.shape[0]
    longest = 0
    for begin in range(0, nodes, _LINE):
        end = min(begin + _LINE, nodes)
        for u in range(nodes):
            for d in range(begin, end):
                ways[d - begin, u] = next_channel[u, d]
        for d in range(begin, end):
            way, high, leaves = ways[d - begin], highs[d - begin], counts[d - begin]
            degree[:] = 0
            high[:] = 0
            leaves[:] = 0
            for u in range(nodes):
                if u != d:
                    degree[target[way[u]]] += 1
            count = 0
            for u in range(nodes):
                if u != d and degree[u] == 0:
                    leaves[u] = 1
                    queue[count] = u
                    count += 1
            done = 0
            while done < count:
                u = queue[done]
                done += 1
                w = target[way[u]]
                h = high[u] + 1
                longest = max(longest, h)
                if w == d:
                    continue
                if h > high[w]:
                    high[w] = h
                    leaves[w] = leaves[u]
                elif h == high[w]:
                    leaves[w] += leaves[u]
                degree[w] -= 1
                if degree[w] == 0:
                    queue[count] = w
                    count += 1
        for u in range(nodes):
            for d in range(begin, end):
                height[u, d] = highs[d - begin, u]
                deepest[u, d] = counts[d - begin, u]
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
    next_channel, source, target, first, back, users, first_user, open_users, height, deepest, weight, f, has_parent,
    tree, done, sequences,
):
    """Fill in the sequences of the channels and return how many layers they are.

    `first` and `back` give the channels from a node, and the channel against each one. `users` lists the destinations
    of each channel, of which the first `open_users` are still without a layer; in `tree`, twice the next power of two
    of the channels, these play for the next place; `weight`, `f` and ``has_parent[u, d]`` (the channel of u towards d
    still depends on the next one) are zeros; `done` has room for a number of each node.
    """
    nodes, channels = next_channel.shape[0], len(source)
    open_pairs = 0
    for u in range(nodes):
        for d in range(nodes):
            if u != d:
                c = next_channel[u, d]
                open_pairs += 1
                if target[c] != d:
                    has_parent[u, d] = True
                    weight[c, height[u, d]] += deepest[u, d]
                    f[c] = max(f[c], height[u, d])
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
            u, begin, kept, count = source[c], first_user[c], 0, 0
            for k in range(begin, begin + open_users[c]):
                d = users[k]
                if has_parent[u, d]:
                    users[begin + kept] = d
                    kept += 1
                else:
                    done[count] = d
                    count += 1
            open_users[c] = kept
            open_pairs -= count
            if count == 0:
                continue
            for away in range(first[u], first[u + 1]):
                x, child, some = target[away], back[away], False
                for k in range(count):
                    d = done[k]
                    if next_channel[x, d] == child:
                        some = True
                        has_parent[x, d] = False
                        weight[child, height[x, d]] -= deepest[x, d]
                if some:
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


def acro_layers(next_channel: NDArray[np.int32], channels: ChannelList) -> AcroLayers:
    """Assign virtual layers.

    Ties are broken by the weight of the fitness, then by the number of the channel.

    Parameters
    ----------
    next_channel : ndarray, int32[node, destination]
        A checked table (`check_next_hops`).
    channels : ChannelList
        Channels of the network.
    """
    source, target = channels.source, channels.target
    nodes, number = len(next_channel), len(source)
    users, first_user = np.empty(nodes * (nodes - 1), np.int32), np.zeros(number + 1, np.int64)
    _destinations(next_channel, users, first_user, np.zeros_like(first_user))
    height, deepest = np.empty((nodes, nodes), np.uint16), np.empty((nodes, nodes), np.int32)
    room = np.empty((3, _LINE, nodes), np.int32)
    longest = _heights(next_channel, target, height, deepest, *np.empty((2, nodes), np.int32), *room)
    sequences = np.empty((longest, number), np.int32)  # in every layer each route gets on by a channel at least
    back = np.lexsort((source, target)).astype(np.int32)  # channels are in the order of (source, target)
    layers = _assign(
        next_channel, source, target, channels.first, back, users, first_user, np.diff(first_user), height, deepest,
        np.zeros((number, max(longest, 1)), np.int64), np.zeros(number, np.int32), np.zeros((nodes, nodes), np.bool_),
        np.empty(2 << max(number - 1, 0).bit_length(), np.int32), np.empty(nodes, np.int32), sequences,
    )  # fmt: skip
    sequence = sequences[:layers].copy()
    order = np.empty_like(sequence)
    rows = np.arange(len(sequence))[:, None]
    order[rows, sequence] = np.arange(sequence.shape[1])[None, :]
    return AcroLayers(order, sequence)

"""Virtual layers of DFSSSP: all paths begin in one layer, and cycles are broken by moving paths to the next one.

Source: Domke, Hoefler and Nagel, Deadlock-free oblivious routing for arbitrary topologies, IPDPS 2011, section IV: of
a cycle the dependency with the fewest paths is removed. Where there are more layers than that takes, the fullest are
split, as there. Where there are fewer, the original gives up; here paths move back first (`_packed`).
"""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.irregular.channels import ChannelList
from hopforge.model.irregular.dependencies import MAX_LAYERS, too_many_layers
from hopforge.model.irregular.lash import lash_layers
from hopforge.model.kernel.compile import kernel

__all__ = ["dfsssp_layers"]


@kernel
def _count_layer(layer, next_channel, target, first, layer_of, count):  # type: ignore[no-untyped-def]
    """Paths of a layer on every dependency, int64[channel, port]."""
    nodes = next_channel.shape[0]
    count[:] = 0
    paths = 0
    for s in range(nodes):
        for d in range(nodes):
            if s == d or layer_of[s, d] != layer:
                continue
            paths += 1
            c = next_channel[s, d]
            while target[c] != d:
                n = next_channel[target[c], d]
                count[c, n - first[target[c]]] += 1
                c = n
    return paths


@kernel
def _move(a, b, layer, next_channel, source, target, first, layer_of, count, stack):  # type: ignore[no-untyped-def]
    """Move all paths of a layer that depend on b after a one layer up."""
    nodes = next_channel.shape[0]
    u, w = source[a], target[a]
    for d in range(nodes):
        if d in (u, w) or next_channel[u, d] != a or next_channel[w, d] != b:
            continue
        stack[0], waiting = u, 1
        while waiting > 0:
            waiting -= 1
            s = stack[waiting]
            if layer_of[s, d] == layer:
                layer_of[s, d] = layer + 1
                c = next_channel[s, d]
                while target[c] != d:
                    n = next_channel[target[c], d]
                    count[c, n - first[target[c]]] -= 1
                    c = n
            for out in range(first[s], first[s + 1]):
                x = target[out]
                if x != d and target[next_channel[x, d]] == s:
                    stack[waiting] = x
                    waiting += 1


@kernel
def _break_cycles(layer, next_channel, source, target, first, layer_of, count):  # type: ignore[no-untyped-def]
    """Remove cycles until the layer has none."""
    channels = len(source)
    colour = np.zeros(channels, np.int8)  # 1: on the way, 2: no cycle behind it
    way = np.empty(channels, np.int32)
    port = np.empty(channels, np.int32)
    stack = np.empty(next_channel.shape[0], np.int32)
    for root in range(channels):
        while colour[root] == 0:
            way[0], port[0], depth = root, 0, 1
            colour[root] = 1
            again = False
            while depth > 0 and not again:
                c = way[depth - 1]
                begin = first[target[c]]
                k = port[depth - 1]
                if begin + k == first[target[c] + 1]:
                    colour[c] = 2
                    depth -= 1
                    continue
                port[depth - 1] += 1
                n = begin + k
                if count[c, k] == 0 or colour[n] == 2:
                    continue
                if colour[n] == 0:
                    colour[n] = 1
                    way[depth], port[depth] = n, 0
                    depth += 1
                    continue
                # the way from n to c closes a cycle: its weakest dependency goes
                best, best_next, fewest = c, n, count[c, k]
                for q in range(depth - 2, -1, -1):
                    if way[q + 1] == n:
                        break
                    paths = count[way[q], port[q] - 1]
                    if paths <= fewest:
                        best, best_next, fewest = way[q], way[q + 1], paths
                _move(best, best_next, layer, next_channel, source, target, first, layer_of, count, stack)
                for q in range(depth):
                    colour[way[q]] = 0
                again = True


def dfsssp_layers(
    next_channel: NDArray[np.int32], channels: ChannelList, most: int | None = None
) -> tuple[NDArray[np.int16], int]:
    """Layers by breaking cycles.

    Parameters
    ----------
    next_channel : ndarray, int32[node, destination]
        A checked table (`check_next_hops`).
    channels : ChannelList
        Channels of the network.
    most : int, optional
        Layers that there are; by default as many as breaking cycles takes.

    Returns
    -------
    ndarray, int16[source, destination]
        Layer of the path; -1 on the diagonal.
    int
        Number of layers.

    Raises
    ------
    UserError
        If 64 layers, or `most`, don't do.
    """
    layer_of, layers = _acyclic(next_channel, channels)
    if most is None:
        return layer_of, layers
    if layers > most:
        layer_of, layers = _packed(layer_of, next_channel, channels)
    if layers > most:
        raise UserError(f"tables.max_layers: dfsssp needs {layers} layers for this table, not {most}")
    return _balanced(layer_of, layers, most)


def _packed(
    layer_of: NDArray[np.int16], next_channel: NDArray[np.int32], channels: ChannelList
) -> tuple[NDArray[np.int16], int]:
    """Let every path, those of low layers first, move back to the first layer in which it closes no cycle."""
    order = np.argsort(layer_of, axis=None, kind="stable")[len(layer_of) :]  # the diagonal comes first
    return lash_layers(next_channel, channels, order)


def _balanced(layer_of: NDArray[np.int16], layers: int, most: int) -> tuple[NDArray[np.int16], int]:
    """Split the layers with most paths until there are `most`; a part of a layer has no cycle either."""
    paths = np.bincount(layer_of[layer_of >= 0], minlength=layers)
    parts = np.ones(layers, np.int64)
    for _ in range(min(most, int(paths.sum())) - layers):
        parts[np.argmax(paths / parts)] += 1
    found = layer_of.copy()
    for layer, first in enumerate(np.cumsum(parts) - parts):
        of_layer = layer_of == layer
        found[of_layer] = first + np.arange(paths[layer]) % parts[layer]
    return found, int(parts.sum())


def _acyclic(next_channel: NDArray[np.int32], channels: ChannelList) -> tuple[NDArray[np.int16], int]:
    """Break cycles until there is none."""
    layer_of = np.zeros(next_channel.shape, np.int16)
    np.fill_diagonal(layer_of, -1)
    degree = int(np.diff(channels.first).max(initial=1))
    count = np.empty((len(channels.source), degree), np.int64)
    source, target, first = channels
    for layer in range(MAX_LAYERS):
        if _count_layer(layer, next_channel, target, first, layer_of, count) == 0:
            return layer_of, layer
        _break_cycles(layer, next_channel, source, target, first, layer_of, count)
    raise too_many_layers("dfsssp")

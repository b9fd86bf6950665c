"""LASH and LASH-TOR: paths go into virtual layers one by one, as long as the dependencies of no layer close a cycle.

Source: spec compact-routing.md "Virtual layers"; Kawano's thesis (seed 002), section 5.5.1.1. Pairs in lexicographic
order of (source, destination), first fit.
"""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.irregular.channels import ChannelList, hop_counts
from hopforge.model.irregular.dependencies import (
    FREE,
    MAX_LAYERS,
    REFUSED,
    USED,
    add_dependency,
    more_layers,
    new_layers,
    opposite_channels,
    too_many_layers,
)
from hopforge.model.kernel.compile import kernel
from hopforge.model.progress import tell

__all__ = ["lash_layers", "lash_several", "lash_tor_layers", "path_starts"]

#: paths that are put into layers without a look at Ctrl-C
_AT_ONCE = 1 << 14


@kernel
def _lash(  # type: ignore[no-untyped-def]
    order, next_channel, source, target, first, opposite, layer_of, most, layers, used, place
):
    """Go on with the paths of `order`; returns how many layers there are, or -1, and their arrays."""
    nodes, channels = next_channel.shape[1], len(source)
    mark = np.zeros(channels, np.bool_)
    scratch = np.empty((3, channels), np.int64)
    path = np.empty(nodes, np.int32)
    new = np.empty(nodes, np.int32)
    for place_of_path in order:
        number, pair = place_of_path // (nodes * nodes), place_of_path % (nodes * nodes)
        s, d = pair // nodes, pair % nodes
        hops, u = 0, s
        while u != d:
            path[hops] = next_channel[number, u, d]
            u = target[path[hops]]
            hops += 1
        layer = 0
        while True:
            if layer == layers:
                if layers == most:
                    return -1, used, place
                layers += 1
                if layers > len(used):
                    used, place = more_layers(used, place)
            added, fits = 0, True
            for k in range(hops - 1):
                port = path[k + 1] - first[target[path[k]]]
                if used[layer, path[k], port] == USED:
                    continue
                if not add_dependency(
                    path[k], path[k + 1], used[layer], place[layer], source, target, first, opposite, mark, scratch
                ):
                    if added == 0:  # it closes a cycle without the rest of this path, too
                        used[layer, path[k], port] = REFUSED
                    fits = False
                    break
                new[added] = k
                added += 1
            if fits:
                break
            for q in range(added):
                k = new[q]
                used[layer, path[k], path[k + 1] - first[target[path[k]]]] = FREE
            layer += 1
        layer_of[number, s, d] = layer
    return layers, used, place


@kernel
def _lash_tor(  # type: ignore[no-untyped-def]
    sources, next_channel, source, target, first, opposite, layer_of, path_first, most, layers, used, place
):
    """Go on with the paths from `sources`; returns what `_lash` does."""
    nodes, channels = next_channel.shape[0], len(source)
    mark = np.zeros(channels, np.bool_)
    scratch = np.empty((3, channels), np.int64)
    for s in sources:
        for d in range(nodes):
            if s == d:
                continue
            at = path_first[s * nodes + d]
            layer = 0
            c = next_channel[s, d]
            layer_of[at] = 0
            while target[c] != d:
                at += 1
                n = next_channel[target[c], d]
                if not add_dependency(c, n, used[layer], place[layer], source, target, first, opposite, mark, scratch):
                    used[layer, c, n - first[target[c]]] = REFUSED
                    layer += 1
                    if layer == layers:
                        if layers == most:
                            return -1, used, place
                        layers += 1
                        if layers > len(used):
                            used, place = more_layers(used, place)
                layer_of[at] = layer
                c = n
    return layers, used, place


def lash_layers(
    next_channel: NDArray[np.int32], channels: ChannelList, order: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int16], int]:
    """LASH: one layer per path.

    Parameters
    ----------
    next_channel : ndarray, int32[node, destination]
        A checked table (`check_next_hops`).
    channels : ChannelList
        Channels of the network.
    order : ndarray, int64[pair], optional
        The pairs, source · nodes + destination, in their order; by default ascending.

    Returns
    -------
    ndarray, int16[source, destination]
        Layer of the path; -1 on the diagonal.
    int
        Number of layers.

    Raises
    ------
    UserError
        If 64 layers don't do.
    """
    layer_of, layers = lash_several(next_channel[None], channels, order)
    return layer_of[0], layers


def lash_several(
    next_channel: NDArray[np.int32], channels: ChannelList, order: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int16], int]:
    """LASH of several tables that share the layers: one layer per path.

    Parameters
    ----------
    next_channel : ndarray, int32[table, node, destination]
        Checked tables.
    channels : ChannelList
        Channels of the network.
    order : ndarray, int64[path], optional
        The paths, (table · nodes + source) · nodes + destination, in their order; by default ascending.

    Returns
    -------
    ndarray, int16[table, source, destination]
        Layer of the path; -1 on the diagonal.
    int
        Number of layers.

    Raises
    ------
    UserError
        If 64 layers don't do.
    """
    layer_of = np.full(next_channel.shape, -1, np.int16)
    if order is None:
        order = np.flatnonzero(next_channel.reshape(-1) >= 0)
    layers, opposite = 0, opposite_channels(channels)
    used, place = new_layers(1, len(channels.source), int(np.diff(channels.first).max()))
    for begin in range(0, len(order), _AT_ONCE):
        if begin:
            tell(f"virtual layers: {begin:,} of {len(order):,} paths")
        paths = order[begin : begin + _AT_ONCE]
        found = layer_of, MAX_LAYERS, layers, used, place
        layers, used, place = _lash(paths, next_channel, *channels, opposite, *found)
        if layers < 0:
            raise too_many_layers("lash")
    return layer_of, int(layers)


def path_starts(next_channel: NDArray[np.int32], channels: ChannelList) -> NDArray[np.int64]:
    """Where the hops of each path stand in one long array: int64[nodes² + 1], by source·nodes + destination."""
    return np.concatenate([[0], np.cumsum(hop_counts(next_channel, channels).reshape(-1), dtype=np.int64)])


def lash_tor_layers(
    next_channel: NDArray[np.int32], channels: ChannelList
) -> tuple[NDArray[np.int16], NDArray[np.int64], int]:
    """LASH-TOR without up*/down* in its last layer: a path takes the longest part that each layer accepts.

    Returns
    -------
    ndarray, int16[hop]
        Layer of every hop of every path.
    ndarray, int64[nodes² + 1]
        Where the hops of a path begin, by source·nodes + destination.
    int
        Number of layers.

    Raises
    ------
    UserError
        If 64 layers don't do.
    """
    starts = path_starts(next_channel, channels)
    layer_of = np.empty(starts[-1], np.int16)
    layers, opposite, nodes = 1, opposite_channels(channels), len(next_channel)
    used, place = new_layers(1, len(channels.source), int(np.diff(channels.first).max()))
    step = max(1, _AT_ONCE // nodes)
    for begin in range(0, nodes, step):
        if begin:
            tell(f"virtual layers: paths of {begin:,} of {nodes:,} switches")
        found = layer_of, starts, MAX_LAYERS, layers, used, place
        sources = np.arange(begin, min(begin + step, nodes))
        layers, used, place = _lash_tor(sources, next_channel, *channels, opposite, *found)
        if layers < 0:
            raise too_many_layers("lash_tor")
    return layer_of, starts, int(layers)

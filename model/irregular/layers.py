"""Virtual layers of the paths of a next-hop table, by several methods, and the check that they cannot deadlock."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.irregular.acro import AcroLayers, acro_layers
from hopforge.model.irregular.channels import ChannelList, WorkingSwitches, whole_number
from hopforge.model.irregular.dfsssp import dfsssp_layers
from hopforge.model.irregular.lash import lash_layers, lash_tor_layers, path_starts
from hopforge.model.irregular.nue import NueTables
from hopforge.model.kernel.compile import WITHOUT_COUNTS, kernel

__all__ = [
    "LAYERS", "LayerError", "Layers", "assign_layers", "check_layers", "check_together", "escape_layers", "nue_layers",
]  # fmt: skip


class LayerError(UserError):
    """Layers that do not fit a path or can deadlock; `pair` is a path at fault, source·nodes + destination."""

    def __init__(self, message: str, pair: int) -> None:
        super().__init__(message)
        self.pair = pair


@dataclass(frozen=True)
class Layers:
    """Layer of every hop of every path.

    Attributes
    ----------
    method : str
        Key of `LAYERS`.
    count : int
        Number of layers.
    layer : ndarray, int16[hop]
        Paths in the order of source·nodes + destination, each with its hops in order.
    starts : ndarray, int64[nodes² + 1]
        Where the hops of a path begin.
    orders : AcroLayers, optional
        ACRO's orders, from which switches find the layer.
    escape : ndarray, int32[router, destination], optional
        Next channels of a second table whose paths are in layer 0. A packet waits for it as well as for its own next
        channel, in each hop; once in layer 0 it stays there. The paths of `layer` then need not be free of cycles.
    note : str
        What else is to be said of them, for people.
    """

    method: str
    count: int
    layer: NDArray[np.int16]
    starts: NDArray[np.int64]
    orders: AcroLayers | None = None
    escape: NDArray[np.int32] | None = None
    note: str = ""

    @property
    def why(self) -> str:
        """What virtual channels are needed for."""
        return "one for each virtual layer" if self.escape is None else "one is the escape, the others are for paths"

    def of_path(self, source: int, destination: int) -> list[int]:
        """Layers of the hops of one path."""
        pair = source * int(np.sqrt(len(self.starts) - 1) + 0.5) + destination
        return [int(layer) for layer in self.layer[self.starts[pair] : self.starts[pair + 1]]]


#: destinations that are followed together: their entries at a router are one line of the processor's cache
_TOGETHER = 16


@kernel
def _acro_hops(next_channel, target, order, starts, ahead, stays, layer):  # type: ignore[no-untyped-def]
    """Follow the rule of the switches; returns a pair for which the layers do not suffice, or -1.

    `order` is int32[channel, layer]. Room for each node and 16 destinations: the node that follows, and the lowest 64
    layers in which a packet stays there, as bits.
    """
    nodes, count = next_channel.shape[0], order.shape[1]
    for begin in range(0, nodes, _TOGETHER):
        end = min(begin + _TOGETHER, nodes)
        for u in range(nodes):
            for d in range(begin, end):
                c, stay = next_channel[u, d], np.uint64(0)
                if c >= 0:
                    ahead[u, d - begin] = target[c]
                    n = next_channel[target[c], d]
                    for k in range(min(count, 64) if n >= 0 else 0):
                        stay |= np.uint64(order[c, k] > order[n, k]) << np.uint64(k)
                stays[u, d - begin] = stay
        for s in range(nodes):
            for d in range(begin, end):
                if s == d:
                    continue
                at, now, u, w = starts[s * nodes + d], count - 1, s, ahead[s, d - begin]
                layer[at] = now
                while w != d:
                    if now < 64:
                        stay = (stays[u, d - begin] >> np.uint64(now)) & np.uint64(1)
                    else:
                        stay = np.uint64(order[next_channel[u, d], now] > order[next_channel[w, d], now])
                    if stay == 0:
                        now -= 1
                        if now < 0:
                            return s * nodes + d
                    at += 1
                    layer[at] = now
                    u, w = w, ahead[w, d - begin]
    return -1


def _acro(next_channel: NDArray[np.int32], neighbours: NDArray[np.int32], channels: ChannelList) -> Layers:
    found = acro_layers(next_channel, channels)
    starts = path_starts(next_channel, channels)
    layer = np.empty(starts[-1], np.int16)
    nodes = len(next_channel)
    bad = int(_acro_hops(
        next_channel, channels.target, np.ascontiguousarray(found.order.T), starts,
        np.empty((nodes, _TOGETHER), np.int32), np.empty((nodes, _TOGETHER), np.uint64), layer,
    ))  # fmt: skip
    assert bad < 0, f"ACRO's layers do not carry pair {bad}"
    return Layers("acro", found.layers, layer, starts, found)


def _per_pair(
    method: str, layer_of: NDArray[np.int16], count: int, next_channel: NDArray[np.int32], channels: ChannelList
) -> Layers:
    starts = path_starts(next_channel, channels)
    return Layers(method, count, np.repeat(layer_of.reshape(-1), np.diff(starts)), starts)


def _lash(next_channel: NDArray[np.int32], _: NDArray[np.int32], channels: ChannelList) -> Layers:
    layer_of, count = lash_layers(next_channel, channels)
    return _per_pair("lash", layer_of, count, next_channel, channels)


def _dfsssp(
    next_channel: NDArray[np.int32], _: NDArray[np.int32], channels: ChannelList, most: int | None = None
) -> Layers:
    layer_of, count = dfsssp_layers(next_channel, channels, most)
    return _per_pair("dfsssp", layer_of, count, next_channel, channels)


def _lash_tor(next_channel: NDArray[np.int32], _: NDArray[np.int32], channels: ChannelList) -> Layers:
    layer, starts, count = lash_tor_layers(next_channel, channels)
    return Layers("lash_tor", count, layer, starts)


def _hop_indexed(next_channel: NDArray[np.int32], _: NDArray[np.int32], channels: ChannelList) -> Layers:
    starts = path_starts(next_channel, channels)
    hops = np.diff(starts)
    layer = np.arange(starts[-1], dtype=np.int64) - np.repeat(starts[:-1], hops)
    return Layers("hop_indexed", int(hops.max()), layer.astype(np.int16), starts)


def _one_layer(next_channel: NDArray[np.int32], channels: ChannelList) -> Layers:
    starts = path_starts(next_channel, channels)
    return Layers("single", 1, np.zeros(starts[-1], np.int16), starts)


def _single(next_channel: NDArray[np.int32], _: NDArray[np.int32], channels: ChannelList) -> Layers:
    return _one_layer(next_channel, channels)


LAYERS = {
    "acro": _acro, "lash": _lash, "lash_tor": _lash_tor, "dfsssp": _dfsssp, "hop_indexed": _hop_indexed,
    "single": _single,
}  # fmt: skip
"""Methods by name."""


def assign_layers(
    method: str,
    next_channel: NDArray[np.int32],
    neighbours: NDArray[np.int32],
    channels: ChannelList,
    working: WorkingSwitches | None = None,
    most: int | None = None,
) -> Layers:
    """Assign virtual layers and check them (`check_layers`).

    Parameters
    ----------
    method : str
        Key of `LAYERS`.
    next_channel : ndarray, int32[node, destination]
        A checked table (`channels.check_next_hops`).
    neighbours : ndarray, int32[node, degree]
        As `neighbours.neighbour_array` gives them.
    channels : ChannelList
        Channels of the network.
    working : WorkingSwitches, optional
        What nodes are called in errors.
    most : int, optional
        ``dfsssp``: layers that there are (`hopforge.model.irregular.dfsssp`).

    Raises
    ------
    UserError
        Unknown method, too many layers, or a cycle (``single``).
    """
    if method not in LAYERS:
        raise UserError(f"unknown method of virtual layers {method!r}; known: {', '.join(LAYERS)}")
    method_of = LAYERS[method] if most is None else partial(_dfsssp, most=most)
    layers = method_of(next_channel, neighbours, channels)
    check_layers(layers, next_channel, channels, working)
    return layers


def escape_layers(next_channel: NDArray[np.int32], escape: NDArray[np.int32], channels: ChannelList) -> Layers:
    """All paths in layer 1, free to wait for each other; layer 0 is an escape by a table of its own, and is checked.

    Parameters
    ----------
    next_channel, escape : ndarray, int32[node, destination]
        Two checked tables (`check_next_hops`).
    channels : ChannelList
        Channels of the network.

    Raises
    ------
    LayerError
        A cycle of the escape's dependencies.
    """
    check_layers(_one_layer(escape, channels), escape, channels)
    starts = path_starts(next_channel, channels)
    return Layers("escape", 2, np.ones(starts[-1], np.int16), starts, escape=escape)


def nue_layers(
    found: NueTables, next_channel: NDArray[np.int32], channels: ChannelList, working: WorkingSwitches | None = None
) -> Layers:
    """Layers of Nue's paths, a layer for each destination, checked (`check_layers`).

    Parameters
    ----------
    found : NueTables
        Next hops and layers.
    next_channel : ndarray, int32[node, destination]
        The next hops as a checked table.
    channels : ChannelList
        Channels of the network.
    working : WorkingSwitches, optional
        What nodes are called in errors.
    """
    nodes = len(found.layer)
    layer_of = np.broadcast_to(found.layer, (nodes, nodes))
    layers = _per_pair("nue", layer_of, len(found.roots), next_channel, channels)
    helped = int((found.escapes > 0).sum())
    note = f"the spanning trees had to help on the way to {helped} of {nodes} routers"
    layers = replace(layers, note=note)
    check_layers(layers, next_channel, channels, working)
    return layers


@kernel
def _dependencies(next_channel, target, first, starts, layer, count, follows):  # type: ignore[no-untyped-def]
    """Note what each (layer, channel) waits for: bool[layer·channels + channel, port, layer]; first bad pair or -1."""
    nodes, channels = next_channel.shape[0], len(target)
    bad = nodes * nodes
    for begin in range(0, nodes, _TOGETHER):
        for s in range(nodes):
            for d in range(begin, min(begin + _TOGETHER, nodes)):
                if s == d:
                    continue
                at, end = starts[s * nodes + d], starts[s * nodes + d + 1]
                c = next_channel[s, d]
                fits = at < end and 0 <= layer[at] < count
                while fits and target[c] != d:
                    n = next_channel[target[c], d]
                    at += 1
                    fits = at < end and 0 <= layer[at] < count
                    if fits:
                        follows[layer[at - 1] * channels + c, n - first[target[c]], layer[at]] = True
                        c = n
                if not fits or at + 1 != end:
                    bad = min(bad, s * nodes + d)
    return bad if bad < nodes * nodes else -1


@kernel(error_model="numpy", **WITHOUT_COUNTS)
def _take_away(target, first, follows, waited, queue):  # type: ignore[no-untyped-def]
    """Take away (layer, channel) that nobody waits for until none is left; what cannot be is `waited` for (zeros)."""
    size, degree, count = follows.shape
    channels = len(target)
    for v in range(size):
        for k in range(degree):
            for t in range(count):
                if follows[v, k, t]:
                    waited[t * channels + first[target[v % channels]] + k] += 1
    tail = 0
    for v in range(size):
        if waited[v] == 0:
            queue[tail] = v
            tail += 1
    head = 0
    while head < tail:
        v = queue[head]
        head += 1
        for k in range(degree):
            for t in range(count):
                if follows[v, k, t]:
                    w = t * channels + first[target[v % channels]] + k
                    waited[w] -= 1
                    if waited[w] == 0:
                        queue[tail] = w
                        tail += 1


def check_layers(
    layers: Layers,
    next_channel: NDArray[np.int32],
    channels: ChannelList,
    working: WorkingSwitches | None = None,
) -> None:
    """Check that no packets in these layers can wait for each other in a circle.

    The dependencies of all hops of all paths on (layer, channel) are collected afresh, independent of the method, and
    must have no cycle.

    Raises
    ------
    LayerError
        Layers that do not fit the paths, or a cycle: with its channels and layers, and a path of its first step.
    """
    check_together([layers], [next_channel], channels, working)


def check_together(
    several: Sequence[Layers],
    next_channels: Sequence[NDArray[np.int32]],
    channels: ChannelList,
    working: WorkingSwitches | None = None,
) -> None:
    """Check the same of several tables whose packets share the layers; all have the same `count`.

    Raises
    ------
    LayerError
        As `check_layers`.
    """
    source, target, first = channels
    degree = int(np.diff(first).max(initial=1))
    number, count = len(target), several[0].count
    follows = np.zeros((count * number, degree, count), np.bool_)
    for layers, next_channel in zip(several, next_channels, strict=True):
        pair = int(_dependencies(next_channel, target, first, layers.starts, layers.layer, count, follows))
        if pair >= 0:
            s, d = divmod(pair, next_channel.shape[0])
            found = layers.of_path(s, d)
            s, d = whole_number(s, working), whole_number(d, working)
            raise LayerError(f"from router {s} to router {d}: the layers {found} do not fit the path", pair)
    waited = np.zeros(len(follows), np.int64)
    _take_away(target, first, follows, waited, np.empty_like(waited))
    left = waited > 0
    if not left.any():
        return
    # what is left leads backwards into a cycle: go back along it until something repeats
    backward: dict[int, int] = {}
    for v in np.nonzero(left)[0]:
        for k, t in zip(*np.nonzero(follows[v]), strict=True):
            backward[int(t) * number + int(first[target[v % number]]) + int(k)] = int(v)
    way = [int(np.nonzero(left)[0][0])]
    while way.count(way[-1]) < 2:
        way.append(backward[way[-1]])
    cycle = way[way.index(way[-1]) :][::-1]
    ends = [[whole_number(node[v % number], working) for node in (source, target)] for v in cycle]
    names = (f"{a}→{b} layer {v // number}" for (a, b), v in zip(ends, cycle, strict=True))
    pairs = (_pair_with(cycle[0], cycle[1], *one, channels) for one in zip(several, next_channels, strict=True))
    pair = next(pair for pair in pairs if pair is not None)
    s, d = (whole_number(router, working) for router in divmod(pair, next_channels[0].shape[0]))
    raise LayerError(
        f"the virtual layers can deadlock; waiting channels: {', '.join(names)}; the first waits for the second on the "
        f"path from router {s} to router {d}",
        pair,
    )


def _pair_with(a: int, b: int, layers: Layers, next_channel: NDArray[np.int32], channels: ChannelList) -> int | None:
    """Pair (source · nodes + destination) of a path on which (layer, channel) `b` follows `a`; None: there is none."""
    number, nodes = len(channels.target), next_channel.shape[0]
    u, w = channels.source[a % number], channels.source[b % number]
    for d in np.nonzero((next_channel[u] == a % number) & (next_channel[w] == b % number))[0]:
        for s in range(nodes):
            node, hop = s, layers.starts[s * nodes + d]
            while node not in (d, u):
                node, hop = channels.target[next_channel[node, d]], hop + 1
            if node == u and d != w and (layers.layer[hop], layers.layer[hop + 1]) == (a // number, b // number):
                return s * nodes + int(d)
    return None

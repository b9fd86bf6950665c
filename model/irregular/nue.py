"""Nue: next hops and virtual layers found together, for any number of layers (also one), without a cycle by design.

Source: Domke, Hoefler and Matsuoka, Routing on the dependency graph, HPDC 2016; Domke's dissertation (Dresden 2017),
chapter 6; OpenSM's implementation (osm_ucast_nue.c), which counts where the papers leave something open. What is
other here: docs/definitions/routing-tables.md "Nue".
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.irregular.channels import ChannelList
from hopforge.model.irregular.dependencies import FREE, USED, opposite_channels
from hopforge.model.irregular.nue_escape import central_node, destination_parts, spanning_tree
from hopforge.model.irregular.nue_graph import NueGraph, NueSearch, cut, depend, forget, reach, take
from hopforge.model.kernel.compile import inner, kernel
from hopforge.model.kernel.heap import pop_entry, push_entry
from hopforge.model.progress import tell

__all__ = ["NueTables", "nue_tables"]

#: destinations of a call
_PART = 64


@dataclass(frozen=True, eq=False)
class NueTables:
    """Next hops of Nue, and the layer of every destination.

    Attributes
    ----------
    next_hop : ndarray, int32[node, destination]
        -1 on the diagonal.
    layer : ndarray, int16[destination]
        Layer of all paths to a destination.
    roots : list of int
        Root of the spanning tree of each layer.
    escapes : ndarray, int64[destination]
        How often a node could be reached by the spanning tree only.
    """

    next_hop: NDArray[np.int32]
    layer: NDArray[np.int16]
    roots: list[int]
    escapes: NDArray[np.int64]


@inner
def _around(d, graph, weight, search):  # type: ignore[no-untyped-def]
    """Find a way out of an impasse: reach a neighbour v of a node x by another channel, and x from there; x or -1."""
    into, far, heap = search.into, search.far, search.ways
    first, target, opposite = graph.first, graph.target, graph.opposite
    degree = graph.used.shape[1]
    for x in range(len(into)):
        if x == d or into[x] >= 0:
            continue
        count = 0
        for out in range(first[x], first[x + 1]):
            v = target[out]
            if v == d or into[v] < 0 or search.locked[v] == d:
                continue
            for p in range(first[v], first[v + 1]):
                w, way = target[p], opposite[p]
                if w != x and (w == d or into[w] >= 0) and into[v] != way:
                    cost = far[w] + weight[way]
                    push_entry(heap, count, (cost * degree + out - first[x]) * degree + p - first[v])
                    count += 1
        while count > 0:
            entry = pop_entry(heap, count)
            count -= 1
            out = first[x] + entry // degree % degree
            v = target[out]
            way, last = opposite[first[v] + entry % degree], opposite[out]
            fresh = depend(way, last, d, graph)
            if fresh == 0:
                continue
            if not reach(into[graph.source[way]], way, d, graph, into, search.fresh):
                if fresh == 2:
                    forget(way, last, d, graph)
                continue
            far[v] = entry // (degree * degree)
            into[x], far[x] = last, far[v] + weight[last]
            return x
    return -1


@inner
def _escape(x, d, graph, weight, search):  # type: ignore[no-untyped-def]
    """Reach x by the spanning tree; what can't follow is left. Returns how many more nodes are reached."""
    into, far, out = search.into, search.far, search.tree
    source, target, first = graph.source, graph.target, graph.first
    stack, more = search.way, 0
    depth = 0
    while x != d:
        stack[depth] = out[x]
        depth += 1
        x = source[out[x]]
    while depth > 0:
        depth -= 1
        c = stack[depth]
        u, v = source[c], target[c]
        if into[v] == c:
            search.locked[v] = d
            continue
        for n in range(first[v], first[v + 1]):
            if into[target[n]] == n and depend(c, n, d, graph) == 0:
                more -= cut(target[n], d, graph, search)
        more += into[v] < 0
        take(into[u], c, d, graph, into)
        far[v], search.locked[v] = far[u] + weight[c], d
    return more


@inner
def _turned(d, tree, graph, search):  # type: ignore[no-untyped-def]
    """Channels of the spanning tree as they lead away from d, instead of its root, into `search.tree`."""
    out = search.tree
    for x in range(len(tree)):
        out[x] = tree[x]
    u, c = d, tree[d]
    out[d] = -1
    while c >= 0:
        u = graph.source[c]
        out[u] = graph.opposite[c]
        c = tree[u]


@inner
def _purge(heap, count, target, into, far):  # type: ignore[no-untyped-def]
    """Leave in a heap of `count` entries only those that still hold; returns their number."""
    kept = 0
    for k in range(count):
        c = heap[k] % len(target)
        if into[target[c]] == c and far[target[c]] == heap[k] // len(target):
            push_entry(heap, kept, heap[k])
            kept += 1
    return kept


@inner
def _paths(d, graph, weight, search, heap):  # type: ignore[no-untyped-def]
    """Find paths to d, by least weights as far as no cycle is closed; returns how often the tree had to help."""
    into, far = search.into, search.far
    source, target, first, used = graph.source, graph.target, graph.first, graph.used
    nodes, channels = len(into), len(target)
    into[:] = -1
    far[:] = np.iinfo(np.int64).max
    far[d] = 0
    count, reached, escapes = 0, 1, 0
    for b in range(first[d], first[d + 1]):
        x = target[b]
        into[x], far[x] = b, weight[b]
        push_entry(heap, count, far[x] * channels + b)
        count += 1
        reached += 1
    while reached < nodes or count > 0:
        if count == 0:
            x = _around(d, graph, weight, search)
            if x >= 0:
                reached += 1
                for c in (into[x], into[source[into[x]]]):
                    push_entry(heap, count, far[target[c]] * channels + c)
                    count += 1
                continue
            x = 0
            while x == d or into[x] >= 0:
                x += 1
            reached += _escape(x, d, graph, weight, search)
            escapes += 1
            for x in range(nodes):
                if into[x] >= 0:
                    push_entry(heap, count, far[x] * channels + into[x])
                    count += 1
                elif x != d:
                    far[x] = np.iinfo(np.int64).max
            continue
        entry = pop_entry(heap, count)
        count -= 1
        c = entry % channels
        u = target[c]
        if into[u] != c or far[u] != entry // channels:
            continue
        for wanted in (USED, FREE):  # what follows already first
            for b in range(first[u], first[u + 1]):
                x = target[b]
                total = far[u] + weight[b]
                if used[c, b - first[u]] != wanted or total >= far[x] or search.locked[x] == d:
                    continue
                was = into[x]
                if was != b and not reach(c, b, d, graph, into, search.fresh):
                    continue
                reached += was < 0
                far[x] = total
                if count == len(heap):
                    count = _purge(heap, count, target, into, far)
                push_entry(heap, count, total * channels + b)
                count += 1
    return escapes


@inner
def _keep(d, graph, into):  # type: ignore[no-untyped-def]
    """Leave only the dependencies of the paths that were chosen."""
    source, target, first, used = graph.source, graph.target, graph.first, graph.used
    for k in range(graph.number[0]):
        a, port = graph.added[k] // used.shape[1], graph.added[k] % used.shape[1]
        b = first[target[a]] + port
        if into[target[b]] != b or into[source[b]] != a:
            used[a, port] = FREE
    graph.number[0] = 0


@kernel
def _mark_tree(destinations, tree, graph, below):  # type: ignore[no-untyped-def]
    """Let follow each other what the paths of the spanning tree to all destinations need."""
    source, target, first, opposite = graph.source, graph.target, graph.first, graph.opposite
    below[:] = 0
    for d in destinations:
        below[d] += 1
        u = d
        while tree[u] >= 0:
            u = source[tree[u]]
            below[u] += 1
    for x in range(len(tree)):
        if tree[x] < 0:
            continue
        for turn in range(2):  # away from the root, and to it: if a destination lies behind
            a = tree[x] if turn == 0 else opposite[tree[x]]
            if (len(destinations) - below[x] if turn == 0 else below[x]) == 0:
                continue
            v = target[a]
            for b in range(first[v], first[v + 1]):
                if b != opposite[a] and (tree[target[b]] == b or tree[v] == opposite[b]):
                    depend(a, b, -1, graph)
    graph.number[0] = 0


@kernel
def _layer(destinations, tree, graph, weight, search, heap, table, escapes):  # type: ignore[no-untyped-def]
    """Route some of a layer: columns of `table`, int32[node, destination], and `escapes`, int64[destination]."""
    source, into = graph.source, search.into
    nodes = len(tree)
    for d in destinations:
        _turned(d, tree, graph, search)
        escapes[d] = _paths(d, graph, weight, search, heap)
        _keep(d, graph, into)
        table[d, d] = -1
        for s in range(nodes):
            if s == d:
                continue
            table[s, d] = source[into[s]]
            u = s
            while u != d:
                weight[into[u]] += 1
                u = source[into[u]]


def nue_tables(distance: NDArray[np.uint8], channels: ChannelList, layers: int) -> NueTables:
    """Route by Nue.

    Parameters
    ----------
    distance : ndarray, uint8[node, node]
        Hops between nodes.
    channels : ChannelList
        Channels of a connected network.
    layers : int
        Layers that there are, at least 1; of fewer nodes each has its own.
    """
    source, target, first = channels
    nodes, number = len(first) - 1, len(source)
    degree = int(np.diff(first).max())
    part = destination_parts(distance, min(layers, nodes), channels)
    weight = np.full(number, nodes * nodes, np.int64)
    table = np.empty((nodes, nodes), np.int32)
    escapes = np.zeros(nodes, np.int64)
    into, tree, locked, stack, way = (np.full(nodes, -1, np.int32) for _ in range(5))
    search = NueSearch(
        into, np.empty(nodes, np.int64), tree, locked, stack, way, np.empty(degree, np.int8),
        np.empty(degree * degree, np.int64),
    )  # fmt: skip
    graph = NueGraph(
        source, target, first, opposite_channels(channels), np.empty((number, degree), np.int8),
        np.empty(number, np.int32), np.zeros(number, np.bool_), np.empty((3, number), np.int64),
        np.empty((number, degree), np.int32), np.empty(number * degree, np.int64), np.zeros(1, np.int64),
    )  # fmt: skip
    roots, done = [], 0
    for layer in range(int(part.max()) + 1):
        destinations = np.flatnonzero(part == layer)
        roots.append(central_node(destinations, channels))
        graph.used[:], graph.place[:], graph.since[:] = FREE, np.arange(number), -1
        from_root = spanning_tree(roots[-1], weight, target, first)
        _mark_tree(destinations, from_root, graph, search.far)
        heap = np.empty(2 * number, np.int64)
        for begin in range(0, len(destinations), _PART):  # between two calls Ctrl-C is heard
            if done:
                tell(f"tables of nue: {done:,} of {nodes:,} destinations")
            some = destinations[begin : begin + _PART]
            _layer(some, from_root, graph, weight, search, heap, table, escapes)
            done += len(some)
    return NueTables(table, part, roots, escapes)

"""Nue's complete channel dependency graph of a layer, and the paths to one destination that grow in it.

Everything looks outwards, from a destination to the nodes that send to it: channel a, then channel b. Packets take the
opposite channels in the opposite order, and a cycle of the ones is a cycle of the others.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.irregular.dependencies import FREE, REFUSED, USED, add_dependency
from hopforge.model.kernel.compile import inner

__all__ = ["NueGraph", "NueSearch", "cut", "depend", "forget", "reach", "take"]


class NueGraph(NamedTuple):
    """The network and the complete dependency graph of a layer.

    Attributes
    ----------
    source, target, first, opposite : ndarray
        As in `ChannelList`, and `opposite_channels`.
    used, place, mark, scratch : ndarray
        As for `add_dependency`.
    since : ndarray, int32[channel, port]
        Destination for which a dependency was used first; -1: for the spanning tree.
    added, number : ndarray, int64[dependency], int64[1]
        Those of this destination, channel·ports + port, and their number.
    """

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    first: NDArray[np.int32]
    opposite: NDArray[np.int32]
    used: NDArray[np.int8]
    place: NDArray[np.int32]
    mark: NDArray[np.bool_]
    scratch: NDArray[np.int64]
    since: NDArray[np.int32]
    added: NDArray[np.int64]
    number: NDArray[np.int64]


class NueSearch(NamedTuple):
    """Paths to one destination.

    Attributes
    ----------
    into : ndarray, int32[node]
        Channel by which a node is reached; -1: not yet.
    far : ndarray, int64[node]
        Sum of the weights up to it.
    tree : ndarray, int32[node]
        Channel by which the spanning tree reaches it.
    locked : ndarray, int32[node]
        Last destination for which it had to be reached by the tree.
    stack, way, fresh, ways : ndarray, int32[node], int32[node], int8[port], int64[port²]
        Working space.
    """

    into: NDArray[np.int32]
    far: NDArray[np.int64]
    tree: NDArray[np.int32]
    locked: NDArray[np.int32]
    stack: NDArray[np.int32]
    way: NDArray[np.int32]
    fresh: NDArray[np.int8]
    ways: NDArray[np.int64]


@inner
def depend(a, b, d, graph):  # type: ignore[no-untyped-def]
    """Let b follow a (-1: the destination d itself): 0 this closes a cycle; 1 it did before; 2 from now on."""
    if a < 0:
        return 1
    if b == graph.opposite[a]:
        return 0
    port = b - graph.first[graph.target[a]]
    state = graph.used[a, port]
    if state != FREE:
        return 1 if state == USED else 0
    fits = add_dependency(
        a, b, graph.used, graph.place, graph.source, graph.target, graph.first, graph.opposite, graph.mark,
        graph.scratch,
    )  # fmt: skip
    if not fits:
        graph.used[a, port] = REFUSED
        return 0
    if graph.since[a, port] != d:
        graph.since[a, port] = d
        graph.added[graph.number[0]] = a * graph.used.shape[1] + port
        graph.number[0] += 1
    return 2


@inner
def forget(a, b, d, graph):  # type: ignore[no-untyped-def]
    """Give up that b follows a, unless paths to other destinations need it."""
    if a >= 0:
        port = b - graph.first[graph.target[a]]
        if graph.since[a, port] == d and graph.used[a, port] == USED:
            graph.used[a, port] = FREE


@inner
def take(a, b, d, graph, into):  # type: ignore[no-untyped-def]
    """Make b, after a, the channel into its target, which may have another one."""
    x = graph.target[b]
    old = into[x]
    if old >= 0 and old != b:
        forget(into[graph.source[old]], old, d, graph)
        for n in range(graph.first[x], graph.first[x + 1]):
            if into[graph.target[n]] == n:
                forget(old, n, d, graph)
    into[x] = b


@inner
def reach(a, b, d, graph, into, fresh):  # type: ignore[no-untyped-def]
    """`take`, if all that hangs on the target of b can follow b, and b can follow a; else nothing, and False."""
    x = graph.target[b]
    last = depend(a, b, d, graph)
    if last == 0:
        return False
    begin = graph.first[x]
    for n in range(begin, graph.first[x + 1]):
        fresh[n - begin] = 1
        if into[graph.target[n]] == n:
            fresh[n - begin] = depend(b, n, d, graph)
        if fresh[n - begin] == 0:
            for m in range(begin, n):
                if fresh[m - begin] == 2:
                    forget(b, m, d, graph)
            if last == 2:
                forget(a, b, d, graph)
            return False
    take(a, b, d, graph, into)
    return True


@inner
def cut(x, d, graph, search):  # type: ignore[no-untyped-def]
    """Take the paths through x away from x and all that hangs on it; returns how many nodes lost their path."""
    into, stack = search.into, search.stack
    stack[0], waiting, lost = x, 1, 0
    while waiting > 0:
        waiting -= 1
        u = stack[waiting]
        for n in range(graph.first[u], graph.first[u + 1]):
            if into[graph.target[n]] == n:
                forget(into[u], n, d, graph)
                stack[waiting] = graph.target[n]
                waiting += 1
        lost += 1
        if u != x:
            into[u] = -1
    forget(into[graph.source[into[x]]], into[x], d, graph)
    into[x] = -1
    return lost

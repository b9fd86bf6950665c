"""Shortest paths as next-hop tables, with three ways to choose among equally short ones."""

from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hopforge.model.irregular.neighbours import distances
from hopforge.model.kernel.compile import WITHOUT_COUNTS, kernel

__all__ = ["Ties", "shortest_next_hops"]

Ties = Literal["lowest", "random", "balanced"]


@kernel
def _lowest(neighbours, distance, table):  # type: ignore[no-untyped-def]
    nodes, degree = neighbours.shape
    for d in range(nodes):
        for u in range(nodes):
            table[u, d] = -1
            if u == d:
                continue
            for k in range(degree):
                w = neighbours[u, k]
                if w < 0:
                    break
                if distance[d, w] + 1 == distance[d, u]:
                    table[u, d] = w
                    break


@kernel
def _random(neighbours, distance, draws, d, table):  # type: ignore[no-untyped-def]
    """Column d; float64[node] in `draws`."""
    nodes, degree = neighbours.shape
    for u in range(nodes):
        table[u, d] = -1
        if u == d:
            continue
        count = 0
        for k in range(degree):
            w = neighbours[u, k]
            count += w >= 0 and distance[d, w] + 1 == distance[d, u]
        wanted = int(draws[u] * count)
        for k in range(degree):
            w = neighbours[u, k]
            if w >= 0 and distance[d, w] + 1 == distance[d, u]:
                if wanted == 0:
                    table[u, d] = w
                    break
                wanted -= 1


@kernel(**WITHOUT_COUNTS)
def _balanced(neighbours, distance, order, load, cost, through, chosen, d, table):  # type: ignore[no-untyped-def]
    """Column d over the channels that fewest paths use so far; `order`: nodes from the nearest to d on.

    `load` counts paths on the channel to neighbour k, int64[node, k]; the others have room for a number of each node.
    """
    nodes, degree = neighbours.shape
    cost[d] = 0
    table[d, d] = -1
    for p in range(1, nodes):
        u = order[p]
        best = -1
        for k in range(degree):
            w = neighbours[u, k]
            if w < 0:
                break
            if distance[w] + 1 == distance[u]:
                total = cost[w] + load[u, k]
                if best < 0 or total < cost[u]:
                    best, cost[u] = k, total
        chosen[u] = best
        table[u, d] = neighbours[u, best]
    for u in range(nodes):
        through[u] = 1
    for p in range(nodes - 1, 0, -1):
        u = order[p]
        load[u, chosen[u]] += through[u]
        through[table[u, d]] += through[u]


def shortest_next_hops(
    neighbours: NDArray[np.int32], ties: Ties = "lowest", generator: Generator | None = None
) -> NDArray[np.int32]:
    """Next node on a shortest path for every pair; all paths to a destination form a tree.

    Parameters
    ----------
    neighbours : ndarray, int32[node, degree]
        A connected network, as `neighbour_array` gives it.
    ties : str
        Among equally near neighbours: ``lowest`` number; ``random``; ``balanced``: the path whose channels are used by
        the fewest paths so far, destinations in increasing order (Domke, Hoefler and Nagel 2011, restricted to
        shortest paths; ties of that: lowest number).
    generator : numpy.random.Generator, optional
        Needed by ``random``.

    Returns
    -------
    ndarray, int32[node, destination]
        -1 on the diagonal.

    Raises
    ------
    ValueError
        Unknown `ties`, or ``random`` without a generator.
    """
    if ties not in ("lowest", "random", "balanced"):
        raise ValueError(f"ties must be lowest, random or balanced, not {ties!r}")
    if ties == "random" and generator is None:
        raise ValueError("generator must be given with ties='random'")
    distance = distances(neighbours)
    nodes = neighbours.shape[0]
    table = np.empty((nodes, nodes), np.int32)
    if ties == "lowest":
        _lowest(neighbours, distance, table)
    elif ties == "balanced":
        load = np.zeros(neighbours.shape, np.int64)
        cost, through, chosen = np.empty(nodes, np.int64), np.empty(nodes, np.int64), np.empty(nodes, np.int32)
        for d in range(nodes):
            order = np.argsort(distance[d], kind="stable")
            _balanced(neighbours, distance[d], order, load, cost, through, chosen, d, table)
    elif generator is not None:
        for d in range(nodes):
            _random(neighbours, distance, generator.random(nodes), d, table)
    return table

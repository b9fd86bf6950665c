"""Breadth-first search of a Kronecker graph in the manner of Graph500, vertices divided evenly among the ranks."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hopforge.model.apps.calls import LONG, AppError, Calls, written_program
from hopforge.model.workload.trace import Trace

#: probabilities of the quadrants of the adjacency matrix (Graph500 specification, Kronecker generator)
A, B, C = 0.57, 0.19, 0.19
#: operations for an edge: its ends are compared and marked
OPERATIONS_PER_EDGE = 2


def kronecker_edges(scale: int, edge_factor: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return int64[2, edge]: edge_factor · 2^scale edges, vertices permuted, loops and repetitions included."""
    edges = np.zeros((2, edge_factor << scale), np.int64)
    for bit in range(scale):
        low = generator.random(edges.shape[1]) > A + B
        share = np.where(low, C / (1 - A - B), A / (A + B))
        edges[0] |= low.astype(np.int64) << bit
        edges[1] |= (generator.random(edges.shape[1]) > share).astype(np.int64) << bit
    return generator.permutation(1 << scale)[edges]


@lru_cache(maxsize=4)
def frontier_messages(scale: int, edge_factor: int, ranks: int, seed: int) -> NDArray[np.int64]:
    """Return int64[level, source, destination]: edges that leave the frontier of a level, by owners of their ends.

    Vertex v belongs to rank v·ranks // 2^scale. The search starts at the vertex of the first edge that is no loop.
    """
    generator = np.random.default_rng([seed, 3])
    edges = kronecker_edges(scale, edge_factor, generator)
    edges = edges[:, edges[0] != edges[1]]
    tail, head = np.concatenate([edges[0], edges[1]]), np.concatenate([edges[1], edges[0]])
    owner = np.arange(1 << scale) * ranks >> scale
    seen = np.zeros(1 << scale, np.bool_)
    frontier = np.zeros(1 << scale, np.bool_)
    frontier[edges[0, 0]] = seen[edges[0, 0]] = True
    levels = []
    while frontier.any():
        live = frontier[tail]
        source, target = tail[live], head[live]
        count = np.bincount(owner[source] * ranks + owner[target], minlength=ranks * ranks)
        levels.append(count.reshape(ranks, ranks))
        frontier = np.zeros(1 << scale, np.bool_)
        frontier[target[~seen[target]]] = True
        seen |= frontier
    return np.array(levels)


def graph_search_trace(scale: int, edge_factor: int, ranks: int, seed: int) -> Trace:
    """Return the calls of one search: at each level (vertex, parent) pairs go to the owners, and a sum tells the end.

    Parameters
    ----------
    scale : int
        log₂ of the number of vertices.
    edge_factor : int
        Edges per vertex (Graph500: 16).
    ranks : int
        Any number up to the vertices.
    seed : int
        Seed of the graph.

    Raises
    ------
    AppError
        More ranks than vertices.
    """
    if ranks > 1 << scale:
        raise AppError(f"workload.ranks: {ranks} ranks are more than the {1 << scale} vertices of scale {scale}")
    levels = frontier_messages(scale, edge_factor, ranks, seed)

    def write(calls: Calls) -> None:
        me = calls.rank
        for count in levels:
            calls.compute(float(OPERATIONS_PER_EDGE * int(count[me].sum())))
            sent, received = 2 * count[me], 2 * count[:, me]
            calls.alltoall(1, LONG)  # how much comes
            calls.alltoallv(tuple(sent.tolist()), tuple(received.tolist()), LONG)
            calls.compute(float(OPERATIONS_PER_EDGE * int(count[:, me].sum())))
            calls.allreduce(1, LONG)

    return written_program(f"bfs.{scale}.{ranks}", ranks, write)

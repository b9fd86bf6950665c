"""Several next-hop tables for every destination, one for each path number: k-shortest paths (LMC of InfiniBand).

Definition: docs/definitions/several-paths.md.
"""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import kernel
from hopforge.model.kernel.heap import pop_entry, push_entry

__all__ = ["k_shortest_next_hops"]


def k_shortest_next_hops(
    neighbours: NDArray[np.int32], distance: NDArray[np.uint8], paths: int, slack: int
) -> NDArray[np.int32]:
    """Next hops of several trees to every destination, the shortest first.

    Parameters
    ----------
    neighbours : ndarray, int32[node, degree]
        A connected network, as `neighbour_array` gives it.
    distance : ndarray, uint8[node, node]
        As `neighbours.distances` gives it.
    paths : int
        Trees for each destination.
    slack : int
        Hops by which a path may be longer than the shortest.

    Returns
    -------
    ndarray, int32[path, node, destination]
        -1 on the diagonal. Path 0 is a shortest one.
    """
    nodes = len(neighbours)
    table = np.full((paths, nodes, nodes), -1, np.int32)
    _grow_trees(neighbours, distance, slack, table)
    return table


@kernel
def _grow_trees(neighbours, distance, slack, table):  # type: ignore[no-untyped-def]
    """Join nodes to a tree: over a neighbour that is new to them, the shortest way first; if there is none, one must.

    Of those that must over a neighbour that they have had: who has no new one within its slack, then who has had most
    neighbours, then the farthest, then by a number that begins elsewhere for each path.
    """
    nodes, degree = neighbours.shape
    entries = np.zeros((nodes, degree), np.int64)  # that name a neighbour, of all trees so far
    used = np.empty((nodes, degree), np.int32)  # by the trees to this destination
    had = np.empty(nodes, np.int64)  # neighbours that are used
    length = np.empty(nodes, np.int64)
    ready = np.empty(nodes * degree + 1, np.int64)  # heap of length · nodes + node: over a new neighbour
    must = np.empty(nodes + 1, np.int64)  # heap, every node once
    asked = np.empty(nodes, np.bool_)
    for d in range(nodes):
        used[:] = 0
        had[:] = 0
        for path in range(table.shape[0]):
            length[:] = -1
            asked[:] = False
            readies, musts, joined = 0, 0, 1
            shift = path * -(-nodes // table.shape[0])
            length[d], w = 0, d
            while True:
                for k in range(degree):  # what joined tells its neighbours
                    u = neighbours[w, k]
                    if u < 0:
                        break
                    if length[u] >= 0 or length[w] + 1 > distance[d, u] + slack:
                        continue
                    for back in range(degree):
                        if neighbours[u, back] == w:
                            if used[u, back] == 0:
                                push_entry(ready, readies, (length[w] + 1) * nodes + u)
                                readies += 1
                            break
                    if not asked[u]:
                        asked[u] = True
                        hope = 0
                        for back in range(degree):
                            v = neighbours[u, back]
                            if v >= 0 and used[u, back] == 0 and distance[d, v] + 1 <= distance[d, u] + slack:
                                hope = 1
                        rank = (hope * (degree + 1) + degree - had[u]) * nodes + nodes - 1 - distance[d, u]
                        push_entry(must, musts, rank * nodes + (u + shift) % nodes)
                        musts += 1
                if joined == nodes:
                    break
                u = d
                while length[u] >= 0:
                    if readies > 0:
                        u = pop_entry(ready, readies) % nodes
                        readies -= 1
                    else:
                        u = (pop_entry(must, musts) - shift) % nodes
                        musts -= 1
                best = -1
                for k in range(degree):
                    w = neighbours[u, k]
                    if w < 0:
                        break
                    if length[w] < 0 or length[w] + 1 > distance[d, u] + slack:
                        continue
                    if best >= 0:
                        b = length[neighbours[u, best]]
                        if used[u, k] != used[u, best]:
                            better = used[u, k] < used[u, best]
                        elif length[w] != b:
                            better = length[w] < b
                        else:
                            better = entries[u, k] < entries[u, best]
                        if not better:
                            continue
                    best = k
                table[path, u, d] = neighbours[u, best]
                length[u] = length[neighbours[u, best]] + 1
                had[u] += used[u, best] == 0
                used[u, best] += 1
                entries[u, best] += 1
                joined += 1
                w = u

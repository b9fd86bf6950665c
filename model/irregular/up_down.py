"""Up*/down* routing by tables of one next hop per destination: no packet goes up after it went down.

Source: Schroeder et al., Autonet, IEEE JSAC 9(8), 1991. A table that knows only the destination cannot see whether a
packet already came down; so a switch that can reach the destination by going down only does so, on a shortest such way,
and every other switch goes up. All paths then go up first and down after, and one layer is free of cycles.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.irregular.neighbours import distances
from hopforge.model.kernel.compile import WITHOUT_COUNTS, kernel

__all__ = ["RootChoice", "root_node", "up_down_next_hops"]

RootChoice = Literal["centre", "highest_degree"]


def root_node(neighbours: NDArray[np.int32], choice: RootChoice | int) -> int:
    """Root of the tree.

    Parameters
    ----------
    neighbours : ndarray, int32[node, degree]
        A connected network, as `neighbour_array` gives it.
    choice : str or int
        ``centre``: the node whose farthest node is nearest, of those the one with the least sum of distances;
        ``highest_degree``; or a node. Ties: lowest number.

    Raises
    ------
    UserError
        No such node.

    Examples
    --------
    >>> from hopforge.model.irregular.neighbours import neighbour_array
    >>> path = neighbour_array([[1], [0, 2], [1, 3], [2, 4], [3]])
    >>> root_node(path, "centre"), root_node(path, "highest_degree"), root_node(path, 4)
    (2, 1, 4)
    """
    nodes = neighbours.shape[0]
    if choice == "highest_degree":
        return int((neighbours >= 0).sum(axis=1).argmax())
    if choice == "centre":
        far = distances(neighbours)
        return int(np.lexsort((far.sum(axis=1, dtype=np.int64), far.max(axis=1)))[0])
    if not 0 <= choice < nodes:
        raise UserError(f"tables.root: must be a router from 0 to {nodes - 1}, not {choice}")
    return choice


@kernel(**WITHOUT_COUNTS)
def _fill(neighbours, rank, order, cost, queue, table):  # type: ignore[no-untyped-def]
    """Fill columns; `rank` is the place of a node in the order of (level, number), up is towards smaller ranks."""
    nodes, degree = neighbours.shape
    for d in range(nodes):
        for u in range(nodes):
            cost[u] = -1
        cost[d], table[d, d], queue[0] = 0, -1, d
        head, tail = 0, 1
        while head < tail:  # ways down, backwards from d
            u = queue[head]
            head += 1
            for k in range(degree):
                x = neighbours[u, k]
                if x < 0:
                    break
                if rank[x] < rank[u] and cost[x] < 0:
                    cost[x] = cost[u] + 1
                    queue[tail] = x
                    tail += 1
        for q in range(1, tail):
            u = queue[q]
            for k in range(degree):
                w = neighbours[u, k]
                if w >= 0 and rank[w] > rank[u] and cost[w] >= 0 and cost[w] + 1 == cost[u]:
                    table[u, d] = w
                    break
        for q in range(nodes):  # all others go up; what is above them has its cost
            u = order[q]
            if cost[u] >= 0:
                continue
            best = -1
            for k in range(degree):
                w = neighbours[u, k]
                if w >= 0 and rank[w] < rank[u] and (best < 0 or cost[w] < cost[best]):
                    best = w
            table[u, d], cost[u] = best, cost[best] + 1


def up_down_next_hops(neighbours: NDArray[np.int32], root: int) -> NDArray[np.int32]:
    """Next node for every pair; ties go to the lowest number.

    Paths are the shortest that such tables allow: down as soon as that is possible, else up by the shortest way.

    Parameters
    ----------
    neighbours : ndarray, int32[node, degree]
        A connected network, as `neighbour_array` gives it.
    root : int
        A channel goes up if it ends nearer to this node (ties: at the lower number).

    Returns
    -------
    ndarray, int32[node, destination]
        -1 on the diagonal.
    """
    nodes = neighbours.shape[0]
    level = distances(neighbours, [root])[0].astype(np.int64)
    order = np.lexsort((np.arange(nodes), level)).astype(np.int32)
    rank = np.empty(nodes, np.int32)
    rank[order] = np.arange(nodes, dtype=np.int32)
    table = np.empty((nodes, nodes), np.int32)
    _fill(neighbours, rank, order, np.empty(nodes, np.int64), np.empty(nodes, np.int32), table)
    return table

"""Neighbours and distances of any graph of routers as arrays, for the routing schemes of irregular networks."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.errors import UserError
from hopforge.model.kernel.compile import WITHOUT_COUNTS, kernel
from hopforge.model.topology import Topology

__all__ = ["distances", "neighbour_array", "neighbours_of"]

MAX_HOPS = 254
"""Longest distance that `distances` can tell, in hops (uint8; 255 = unreachable)."""


def neighbour_array(adjacency: list[list[int]]) -> NDArray[np.int32]:
    """Neighbours as an array.

    Parameters
    ----------
    adjacency : list of list of int
        Neighbours of each node; parallel links count once.

    Returns
    -------
    ndarray, int32[node, degree]
        Increasing, filled up with -1.

    Examples
    --------
    >>> neighbour_array([[2, 1], [0], [0]]).tolist()
    [[1, 2], [0, -1], [0, -1]]
    """
    rows = [sorted(set(row)) for row in adjacency]
    array = np.full((len(rows), max((len(row) for row in rows), default=0)), -1, np.int32)
    for node, row in enumerate(rows):
        array[node, : len(row)] = row
    return array


def neighbours_of(topology: Topology) -> NDArray[np.int32]:
    """Neighbours of every router of a network, as `neighbour_array`."""
    peers = topology.peer_router
    if peers.size == 0:
        return np.zeros((topology.routers, 0), np.int32)
    last = np.iinfo(np.int32).max
    rows = np.sort(np.where(peers < 0, last, peers), axis=1)
    repeated = np.zeros(rows.shape, bool)
    repeated[:, 1:] = rows[:, 1:] == rows[:, :-1]
    rows = np.sort(np.where(repeated, last, rows), axis=1)
    width = int((rows < last).sum(axis=1).max())
    return np.where(rows == last, -1, rows)[:, :width].astype(np.int32)


@kernel(**WITHOUT_COUNTS)
def _fill_distances(neighbours, roots, queue, table):  # type: ignore[no-untyped-def]
    for row in range(len(roots)):
        table[row, roots[row]] = 0
        queue[0] = roots[row]
        head, tail = 0, 1
        while head < tail:
            node = queue[head]
            head += 1
            step = int(table[row, node]) + 1
            for k in range(neighbours.shape[1]):
                other = neighbours[node, k]
                if other < 0:
                    break
                if table[row, other] == 255:
                    if step > 254:
                        return False
                    table[row, other] = step
                    queue[tail] = other
                    tail += 1
    return True


def distances(neighbours: NDArray[np.int32], roots: ArrayLike | None = None) -> NDArray[np.uint8]:
    """Hops between nodes.

    Parameters
    ----------
    neighbours : ndarray, int32[node, degree]
        As `neighbour_array` gives them; the graph is undirected.
    roots : array_like of int, optional
        The nodes that distances are wanted to; default all.

    Returns
    -------
    ndarray, uint8[root, node]
        255: unreachable.

    Raises
    ------
    UserError
        If a distance is above 254 hops.

    Examples
    --------
    >>> distances(neighbour_array([[1], [0, 2], [1]]))[0].tolist()
    [0, 1, 2]
    """
    nodes = neighbours.shape[0]
    wanted = np.arange(nodes) if roots is None else np.asarray(roots)
    table = np.full((len(wanted), nodes), 255, np.uint8)
    if not _fill_distances(neighbours, wanted.astype(np.int32), np.empty(nodes, np.int32), table):
        raise UserError(f"topology: the diameter must be at most {MAX_HOPS} hops for routing tables, and is more")
    return table

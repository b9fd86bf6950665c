"""Compact routing with landmarks: the schemes of Cowen and of Thorup and Zwick.

A node knows the way to every landmark and to its *cluster*, the destinations that are nearer to it than to their own
landmark. Other packets go towards the landmark of their destination; the landmark reads the next hop in the header.
Paths are at most three times as long as the shortest.

Source: Cowen 2001, Thorup and Zwick 2001, as spec compact-routing.md and Kawano's thesis (seed 002, section 3.1) use
them: clusters by the strict condition (whole balls would loop), shortest paths with ties to the lowest number.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.irregular.neighbours import distances
from hopforge.model.irregular.shortest import shortest_next_hops
from hopforge.model.kernel.compile import WITHOUT_COUNTS, kernel

__all__ = ["LandmarkTables", "cowen", "fitting", "landmark_tables", "thorup_zwick"]


@dataclass(frozen=True)
class LandmarkTables:
    """Tables of all nodes.

    Attributes
    ----------
    landmarks : ndarray, int32[landmark]
        Increasing.
    landmark_of : ndarray, int32[node]
        Nearest landmark of each node; ties: lowest number.
    known : ndarray, bool[node, destination]
        Whether a table has an entry for the destination.
    next_hop : ndarray, int32[node, destination]
        Next node that a packet takes; -1 on the diagonal.
    """

    landmarks: NDArray[np.int32]
    landmark_of: NDArray[np.int32]
    known: NDArray[np.bool_]
    next_hop: NDArray[np.int32]

    @property
    def entries(self) -> NDArray[np.int64]:
        """Entries of each node's table."""
        return np.asarray(self.known.sum(axis=1))


def landmark_tables(
    landmarks: NDArray[np.int32], distance: NDArray[np.uint8], shortest: NDArray[np.int32]
) -> LandmarkTables:
    """Tables for given landmarks.

    Parameters
    ----------
    landmarks : ndarray, int32[landmark]
        At least one.
    distance : ndarray, uint8[node, node]
        Hops between nodes.
    shortest : ndarray, int32[node, destination]
        Shortest paths (`shortest_next_hops`).
    """
    landmarks = np.sort(landmarks)
    nodes = len(distance)
    nearest = distance[landmarks].argmin(axis=0)
    landmark_of = landmarks[nearest]
    own = distance[landmark_of, np.arange(nodes)]
    known = distance < own[None, :]
    known[:, landmarks] = True
    np.fill_diagonal(known, False)
    everyone = np.arange(nodes)
    next_hop = np.where(known, shortest, shortest[everyone[:, None], landmark_of[None, :]])
    next_hop[landmark_of, everyone] = shortest[landmark_of, everyone]
    np.fill_diagonal(next_hop, -1)
    return LandmarkTables(landmarks, landmark_of, known, np.ascontiguousarray(next_hop))


@kernel(**WITHOUT_COUNTS)
def _hit_balls(order, size, crowded, hits, first, place, balls, done, chosen):  # type: ignore[no-untyped-def]
    """Mark what `_cover` chooses; all that comes after `crowded` are zeros or room."""
    nodes = order.shape[0]
    for v in range(nodes):
        for k in range(size):
            hits[order[v, k]] += 1
    for w in range(nodes):
        first[w + 1] = first[w] + hits[w]
        place[w] = first[w]
        chosen[w] = hits[w] > crowded
    for v in range(nodes):
        for k in range(size):
            w = order[v, k]
            balls[place[w]] = v
            place[w] += 1
    left = nodes
    while left > 0:
        best = 0
        for w in range(1, nodes):
            best = w if hits[w] > hits[best] else best
        chosen[best] = True
        for p in range(first[best], first[best + 1]):
            v = balls[p]
            if not done[v]:
                done[v] = True
                left -= 1
                for k in range(size):
                    hits[order[v, k]] -= 1


def _cover(order: NDArray[np.int32], size: int, crowded: int) -> NDArray[np.int32]:
    """Greedy hitting set of the balls ``order[v, :size]``, and the nodes that are in more than `crowded` of them."""
    nodes = len(order)
    hits, first, place = (np.zeros(nodes + more, np.int64) for more in (0, 1, 0))
    done, chosen = np.zeros(nodes, np.bool_), np.zeros(nodes, np.bool_)
    _hit_balls(order, size, crowded, hits, first, place, np.empty(nodes * size, np.int32), done, chosen)
    return np.nonzero(chosen)[0].astype(np.int32)


def cowen(distance: NDArray[np.uint8]) -> Callable[[int], NDArray[np.int32]]:
    """Landmarks of Cowen as a function of the size of a ball, n^α nodes.

    The balls (the nearest nodes, ties: lowest number) are hit by a greedy choice of landmarks; a node that is in more
    than n^((1+α)/2) balls is a landmark, too.
    """
    order = np.argsort(distance, axis=1, kind="stable").astype(np.int32)
    nodes = len(distance)
    return lambda size: _cover(order, size, int(np.sqrt(nodes * size)))


def thorup_zwick(distance: NDArray[np.uint8], generator: Generator) -> Callable[[int], NDArray[np.int32]]:
    """Landmarks of Thorup and Zwick as a function of the expected number s of a draw.

    Nodes are drawn until no cluster has more than 4n/s nodes: each time among those that have one so large.
    """
    nodes = len(distance)

    def draw(size: int) -> NDArray[np.int32]:
        chosen = np.zeros(nodes, bool)
        large = np.arange(nodes)
        while len(large):
            chosen[large[generator.random(len(large)) < size / len(large)]] = True
            if not chosen.any():
                continue
            own = distance[chosen].min(axis=0)
            large = np.nonzero((distance < own[None, :]).sum(axis=1) > 4 * nodes / size)[0]
        return np.nonzero(chosen)[0].astype(np.int32)

    return draw


def _sizes(nodes: int) -> Iterator[int]:
    """Up to 32 every size, then 24 per factor of two, up to all nodes."""
    size = 1
    while size < nodes:
        yield size
        size = max(size + 1, round(size * 2 ** (1 / 24)))
    yield nodes


def _entries(landmarks: NDArray[np.int32], distance: NDArray[np.uint8]) -> int:
    """Entries of the largest table."""
    known = distance < distance[landmarks].min(axis=0)[None, :]
    known[:, landmarks] = True
    np.fill_diagonal(known, False)
    return int(known.sum(axis=1).max())


def _choices(
    distance: NDArray[np.uint8], scheme: str, generator: Generator | None
) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """Yield sets of landmarks for all parameters, with the entries that each needs."""
    if scheme == "cowen":
        choose = cowen(distance)
    elif scheme == "thorup_zwick" and generator is not None:
        choose = thorup_zwick(distance, generator)
    else:
        raise ValueError(f"scheme must be cowen, or thorup_zwick with a generator, not {scheme!r}")
    for size in _sizes(len(distance)):
        landmarks = choose(size)
        yield _entries(landmarks, distance), landmarks


def fitting(
    neighbours: NDArray[np.int32], scheme: str, t_max: int | None, generator: Generator | None = None
) -> LandmarkTables:
    """Tables of the parameter with most landmarks whose largest table has no more than `t_max` entries.

    More landmarks mean shorter paths and less load on each of them; of equal numbers the smaller tables.

    Parameters
    ----------
    neighbours : ndarray, int32[node, degree]
        A connected network.
    scheme : str
        ``cowen`` or ``thorup_zwick``.
    t_max : int, optional
        Most entries of a table; None: the parameter that needs fewest.
    generator : numpy.random.Generator, optional
        Needed by ``thorup_zwick``.

    Raises
    ------
    UserError
        If every parameter needs more; the message names the least.
    """
    distance = distances(neighbours)
    choices = list(_choices(distance, scheme, generator))
    if t_max is None:
        _, best = min(choices, key=lambda choice: choice[0])
    else:
        fits = [choice for choice in choices if choice[0] <= t_max]
        if not fits:
            least = min(choice[0] for choice in choices)
            raise UserError(f"tables.t_max: must be at least {least} for {scheme} on this network, not {t_max}")
        _, best = max(fits, key=lambda choice: (len(choice[1]), -choice[0]))
    return landmark_tables(best, distance, shortest_next_hops(neighbours))

"""Where a job is placed on a machine: linear, contiguous, in a box, at random.

Definition: docs/definitions/jobs.md. Nodes are numbered with dimension 0 fastest: node = x0 + k0 (x1 + k1 x2).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["PLACEMENTS", "Place", "Placement", "boxes"]

Free = NDArray[np.bool_]
Nodes = NDArray[np.int64]


class Place(NamedTuple):
    """Nodes of a job.

    Attributes
    ----------
    used : ndarray
        int64[rank], the node of each rank.
    taken : ndarray
        int64[node], what other jobs cannot have: `used`, or more.
    """

    used: Nodes
    taken: Nodes


class Placement(Protocol):
    """Finds nodes for a job among free ones; whether it finds some is the same whenever it is asked."""

    def fits(self, free: Free, count: int) -> bool:
        """Tell whether a job of `count` nodes can be placed; ``bool[node]`` tells which nodes are free."""
        ...

    def place(self, free: Free, count: int) -> Place | None:
        """Return its nodes; None: it cannot be placed."""
        ...


class Linear:
    """The free nodes of the lowest numbers."""

    def __init__(self, dims: Sequence[int], generator: np.random.Generator) -> None:
        self._generator = generator

    def fits(self, free: Free, count: int) -> bool:
        """As `Placement.fits`."""
        return int(np.count_nonzero(free)) >= count

    def place(self, free: Free, count: int) -> Place | None:
        """As `Placement.place`."""
        found = np.flatnonzero(free)
        if len(found) < count:
            return None
        used = self._chosen(found, count)
        return Place(used, used)

    def _chosen(self, found: Nodes, count: int) -> Nodes:
        return found[:count]


class Random(Linear):
    """The first nodes of a shuffle of all free ones."""

    def _chosen(self, found: Nodes, count: int) -> Nodes:
        return self._generator.permutation(found)[:count]


class Contiguous:
    """The first run of consecutive numbers that are free."""

    def __init__(self, dims: Sequence[int], generator: np.random.Generator) -> None:
        pass

    def fits(self, free: Free, count: int) -> bool:
        """As `Placement.fits`."""
        return self._start(free, count) is not None

    def place(self, free: Free, count: int) -> Place | None:
        """As `Placement.place`."""
        start = self._start(free, count)
        if start is None:
            return None
        used = np.arange(start, start + count, dtype=np.int64)
        return Place(used, used)

    @staticmethod
    def _start(free: Free, count: int) -> int | None:
        edges = np.diff(np.concatenate([[False], free, [False]]).astype(np.int8))
        starts = np.flatnonzero(edges == 1)
        long = np.flatnonzero(np.flatnonzero(edges == -1) - starts >= count)
        return int(starts[long[0]]) if len(long) else None


class Block:
    """The smallest free box of ``count`` to ``2 count - 1`` nodes; boxes do not wrap.

    Of boxes of one volume that of the least sum of sides comes first, then by its sides; of one box the first origin in
    the order of nodes. The whole box is taken; the job uses its first nodes.
    """

    def __init__(self, dims: Sequence[int], generator: np.random.Generator) -> None:
        self._dims = tuple(dims)
        self._state = b""
        self._counts: NDArray[np.int32]
        self._found: dict[tuple[int, ...], int | None] = {}

    def fits(self, free: Free, count: int) -> bool:
        """As `Placement.fits`."""
        return self._box(free, count) is not None

    def place(self, free: Free, count: int) -> Place | None:
        """As `Placement.place`."""
        box = self._box(free, count)
        if box is None:
            return None
        origin, sides = box
        steps = np.zeros(1, np.int64)
        stride = 1
        for side, length in zip(sides, self._dims, strict=True):
            steps = (steps + stride * np.arange(side)[:, None]).reshape(-1)
            stride *= length
        taken = origin + steps
        return Place(taken[:count], taken)

    def _box(self, free: Free, count: int) -> tuple[int, tuple[int, ...]] | None:
        available = int(np.count_nonzero(free))
        if available < count:
            return None
        self._look_at(free)
        for volume, sides in boxes(self._dims, count):
            if volume > available:
                return None
            if sides not in self._found:
                self._found[sides] = self._origin(sides)
            origin = self._found[sides]
            if origin is not None:
                return origin, sides
        return None

    def _look_at(self, free: Free) -> None:
        """Count the free nodes below and left of every corner, unless `free` is what was looked at before."""
        state = np.packbits(free).tobytes()
        if state == self._state:
            return
        self._state, self._found = state, {}
        counts = free.reshape(self._dims[::-1]).astype(np.int32)  # the last axis is dimension 0
        for axis in range(counts.ndim):
            counts = np.cumsum(counts, axis=axis, dtype=np.int32)
        self._counts = np.pad(counts, [(1, 0)] * counts.ndim)

    def _origin(self, sides: tuple[int, ...]) -> int | None:
        counts = self._counts
        for axis, side in enumerate(sides[::-1]):
            lead = (slice(None),) * axis
            counts = counts[(*lead, slice(side, None))] - counts[(*lead, slice(None, -side))]
        full = np.flatnonzero(counts == math.prod(sides))
        if not len(full):
            return None
        place = np.unravel_index(int(full[0]), counts.shape)
        return int(np.ravel_multi_index(place, self._dims[::-1]))


def boxes(dims: tuple[int, ...], count: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Give (volume, sides) of the boxes of a job of `count` nodes, in the order in which they are tried.

    Examples
    --------
    >>> [*boxes((4, 4), 3)]
    [(3, (1, 3)), (3, (3, 1)), (4, (2, 2)), (4, (1, 4)), (4, (4, 1))]
    """
    known, volumes = _sides(dims)
    low, high = np.searchsorted(volumes, [count, 2 * count]).tolist()
    for index in range(low, high):
        yield known[index][0], known[index][2]


@lru_cache(maxsize=16)
def _sides(dims: tuple[int, ...]) -> tuple[list[tuple[int, int, tuple[int, ...]]], NDArray[np.int64]]:
    found = product(*(range(1, length + 1) for length in dims))
    known = sorted((math.prod(sides), sum(sides), sides) for sides in found)
    return known, np.array([volume for volume, _, _ in known])


PLACEMENTS: dict[str, Callable[[Sequence[int], np.random.Generator], Placement]] = {
    "linear": Linear,
    "contiguous": Contiguous,
    "block": Block,
    "random": Random,
}
"""Name → what places jobs on a machine of some dimensions."""

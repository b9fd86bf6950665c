"""Where a job is placed on a machine: linear, contiguous, in a box, at random, by group or subtree.

Definition: docs/definitions/jobs.md. Nodes are numbered with dimension 0 fastest: node = x0 + k0 (x1 + k1 x2).
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["GROUPED", "PLACEMENTS", "Place", "Placement", "group_problem", "lines_of"]

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

    def __init__(self, dims: Sequence[int], generator: np.random.Generator, groups: Sequence[int] = ()) -> None:
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

    def __init__(self, dims: Sequence[int], generator: np.random.Generator, groups: Sequence[int] = ()) -> None:
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

    def __init__(self, dims: Sequence[int], generator: np.random.Generator, groups: Sequence[int] = ()) -> None:
        self._dims = tuple(dims)
        self._known: dict[bytes, _Holes] = {}

    def fits(self, free: Free, count: int) -> bool:
        """As `Placement.fits`."""
        return self._holes(free).first(count) is not None

    def place(self, free: Free, count: int) -> Place | None:
        """As `Placement.place`."""
        found = self._holes(free).first(count)
        if found is None:
            return None
        taken = found[0] + _nodes_of_box(self._dims, found[1])
        return Place(taken[:count], taken)

    def _holes(self, free: Free) -> "_Holes":
        """Return what is known of a state; the last two are kept."""
        state = np.packbits(free).tobytes()
        if state not in self._known:
            self._known = {key: self._known[key] for key in [*self._known][-1:]}
            self._known[state] = _Holes(self._dims, free)
        return self._known[state]


class _Holes:
    """Free boxes of one state of a machine; a box that holds one which is nowhere free is not looked for."""

    def __init__(self, dims: tuple[int, ...], free: Free) -> None:
        self._dims, self._available = dims, int(np.count_nonzero(free))
        counts = free.reshape(dims[::-1]).astype(np.int32)  # the last axis is dimension 0
        for axis in range(counts.ndim):
            counts = np.cumsum(counts, axis=axis, dtype=np.int32)
        #: free nodes of the box from node 0 up to every corner
        self._counts = np.pad(counts, [(1, 0)] * counts.ndim)
        self._nowhere = np.zeros(dims, bool)  # by sides, less 1
        self._found: dict[tuple[int, ...], int] = {}

    def first(self, count: int) -> tuple[int, tuple[int, ...]] | None:
        """Return origin and sides of the box for a job of `count` nodes."""
        boxes = _boxes(self._dims)
        low, high = np.searchsorted(boxes.volume, [count, min(2 * count, self._available + 1)]).tolist()
        while low < high:
            hopeful = np.flatnonzero(~self._nowhere.reshape(-1)[boxes.shape[low:high]])
            if not len(hopeful):
                return None
            low += int(hopeful[0])
            sides = tuple(int(one) + 1 for one in np.unravel_index(int(boxes.shape[low]), self._dims))
            origin = self._origin(sides)
            if origin is not None:
                return origin, sides
            self._nowhere[tuple(slice(side - 1, None) for side in sides)] = True
        return None

    def _origin(self, sides: tuple[int, ...]) -> int | None:
        if sides in self._found:
            return self._found[sides]
        counts = self._counts
        for axis, side in enumerate(sides[::-1]):
            lead = (slice(None),) * axis
            counts = counts[(*lead, slice(side, None))] - counts[(*lead, slice(None, -side))]
        full = np.flatnonzero(counts == math.prod(sides))
        if not len(full):
            return None
        place = np.unravel_index(int(full[0]), counts.shape)
        self._found[sides] = int(np.ravel_multi_index(place, self._dims[::-1]))
        return self._found[sides]


def _nodes_of_box(dims: tuple[int, ...], sides: tuple[int, ...]) -> Nodes:
    """Return the nodes of a box at the origin, ascending."""
    found = np.zeros(1, np.int64)
    stride = 1
    for side, length in zip(sides, dims, strict=True):
        found = (found + stride * np.arange(side)[:, None]).reshape(-1)
        stride *= length
    return found


class _Boxes(NamedTuple):
    """All boxes of a machine in the order in which they are tried.

    Attributes
    ----------
    volume : ndarray
        int64[box].
    shape : ndarray
        int64[box], number of (sides - 1) in an array of the machine's dimensions.
    """

    volume: Nodes
    shape: Nodes


@lru_cache(maxsize=4)
def _boxes(dims: tuple[int, ...]) -> _Boxes:
    sides = np.indices(dims).reshape(len(dims), -1) + 1
    volume = np.prod(sides, axis=0, dtype=np.int64)
    order = np.lexsort((*sides[::-1], sides.sum(axis=0), volume))
    return _Boxes(volume[order], order)


class Group(Linear):
    """The group in which the job fits and which has the fewest free nodes; else the fewest groups.

    Groups are nested; the smallest ones that hold the job are looked at first. What fits into none takes groups one
    level below, those with the most free nodes first, and for the rest again the one in which it fits best.
    """

    def __init__(self, dims: Sequence[int], generator: np.random.Generator, groups: Sequence[int] = ()) -> None:
        super().__init__(dims, generator)
        self._sizes = (*groups, math.prod(dims))

    def place(self, free: Free, count: int) -> Place | None:
        """As `Placement.place`."""
        if not self.fits(free, count):
            return None
        for level, size in enumerate(self._sizes):
            counts = free.reshape(-1, size).sum(axis=1)
            enough = np.flatnonzero(counts >= count)
            if len(enough):
                group = int(enough[np.argmin(counts[enough])])
                inside = free[group * size : (group + 1) * size]
                used = group * size + self._inside(inside, count, level)
                return Place(used, used)
        raise AssertionError("the whole machine holds what fits")

    def _inside(self, free: Free, count: int, level: int) -> Nodes:
        """Return nodes of a group of this level in which the job fits, though it fits into no group below."""
        if level == 0:
            return np.flatnonzero(free)[:count]
        size = self._sizes[level - 1]
        counts = free.reshape(-1, size).sum(axis=1)
        parts: list[Nodes] = []
        while count:
            enough = np.flatnonzero(counts >= count)
            group = int(enough[np.argmin(counts[enough])]) if len(enough) else int(np.argmax(counts))
            here = min(count, int(counts[group]))
            parts.append(group * size + self._inside(free[group * size : (group + 1) * size], here, level - 1))
            counts[group] = 0
            count -= here
        return np.concatenate(parts)


class Subtree:
    """The first free group of the smallest size that holds the job; it takes the whole group."""

    def __init__(self, dims: Sequence[int], generator: np.random.Generator, groups: Sequence[int] = ()) -> None:
        self._sizes = (*groups, math.prod(dims))

    def fits(self, free: Free, count: int) -> bool:
        """As `Placement.fits`."""
        return self._group(free, count) is not None

    def place(self, free: Free, count: int) -> Place | None:
        """As `Placement.place`."""
        taken = self._group(free, count)
        return None if taken is None else Place(taken[:count], taken)

    def _group(self, free: Free, count: int) -> Nodes | None:
        size = next(each for each in self._sizes if each >= count)
        whole = np.flatnonzero(free.reshape(-1, size).all(axis=1))
        return None if not len(whole) else np.arange(whole[0] * size, (whole[0] + 1) * size, dtype=np.int64)


class PlacementClass(Protocol):
    """Makes what places jobs on a machine of some dimensions, with nested groups of so many nodes each."""

    def __call__(self, dims: Sequence[int], generator: np.random.Generator, groups: Sequence[int] = ()) -> Placement:
        """Make it."""
        ...


PLACEMENTS: dict[str, PlacementClass] = {
    "linear": Linear,
    "contiguous": Contiguous,
    "block": Block,
    "random": Random,
    "group": Group,
    "subtree": Subtree,
}
"""Name → what makes it."""

GROUPED = ("group", "subtree")
"""Placements that need groups."""


def lines_of(dims: Sequence[int]) -> tuple[int, ...]:
    """Return the nested groups of a machine that names none: lines of dimension 0, planes, and so on."""
    sizes = np.cumprod(dims)[:-1].tolist()
    return tuple(dict.fromkeys(size for size in sizes if 1 < size < math.prod(dims)))


def group_problem(groups: Sequence[int], nodes: int) -> str | None:
    """Say what is wrong with nested groups of a machine; None if nothing is.

    >>> group_problem([4, 6], 24)
    'groups must divide each other and the machine of 24 nodes, not 4, 6'
    """
    sizes = [*groups, nodes]
    shown = ", ".join(map(str, groups))
    if any(small < 1 or large % small for small, large in pairwise(sizes)):
        return f"groups must divide each other and the machine of {nodes} nodes, not {shown}"
    if any(small == large for small, large in pairwise(sizes)):
        return f"groups must differ, and be smaller than the machine of {nodes} nodes, not {shown}"
    return None

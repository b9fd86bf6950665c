"""The shape of a group of routers: which are linked, and the ways from one place to another inside."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.topology.base import Topology

__all__ = ["GroupShape", "group_shape"]


@dataclass(frozen=True, eq=False)
class GroupShape:
    """Ways inside a group, the same in every group of a network.

    Attributes
    ----------
    apart : ndarray, int64[place, place]
        Links from one router of a group to another.
    following : ndarray, int64[place, place, 1 + entry]
        How many places may be next on the way, and which ones in increasing order.
    """

    apart: NDArray[np.int64]
    following: NDArray[np.int64]

    @property
    def size(self) -> int:
        """Routers of a group."""
        return len(self.apart)


def _leaves_and_spines(leaves: int, spines: int) -> GroupShape:
    """Return the shape of a complete bipartite graph; between two of a side any of the other may be next."""
    size = leaves + spines
    following = np.zeros((size, size, 1 + max(leaves, spines)), np.int64)
    is_spine = np.arange(size) >= leaves
    across = is_spine[:, None] != is_spine[None, :]
    following[:, :, 0] = np.where(across, 1, np.where(is_spine, leaves, spines)[:, None])
    following[:, :, 1] = np.where(across, np.arange(size)[None, :], 0)
    following[:leaves, :leaves, 1 : 1 + spines] = leaves + np.arange(spines)
    following[leaves:, leaves:, 1 : 1 + leaves] = np.arange(leaves)
    apart = np.where(across, 1, 2)
    np.fill_diagonal(apart, 0)
    return GroupShape(apart, following)


def _grid(width: int, height: int) -> GroupShape:
    """Return the shape of a grid of fully connected lines; ways go along the row first, then along the column."""
    y, x = np.divmod(np.arange(width * height), width)
    row, column = x[:, None] != x[None, :], y[:, None] != y[None, :]
    following = np.zeros((width * height, width * height, 2), np.int64)
    following[:, :, 0] = row | column
    following[:, :, 1] = np.where(row, y[:, None], y[None, :]) * width + x[None, :]
    following[:, :, 1] *= following[:, :, 0]
    return GroupShape(row.astype(np.int64) + column, following)


def group_shape(topology: Topology) -> GroupShape:
    """Return the shape of a group as the network was built, whatever has failed since."""
    params = topology.params
    if topology.kind == "cascade":
        return _grid(*params["sizes"])
    assert topology.kind == "dragonfly_plus", "asked for a kind whose groups have no shape"
    return _leaves_and_spines(int(params["leaves"]), int(params["spines"]))

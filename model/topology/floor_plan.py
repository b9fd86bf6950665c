"""Where routers stand, and how long cables are."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.topology.base import Topology


def positions(topology: Topology) -> NDArray[np.float64]:
    """Place of every router on the floor plan: float64[router, 2], x and y in places.

    Meshes and HyperX: dimensions 0, 2, 4, … run along x, the others along y, each block of a lower dimension beside
    the next. Tori: the same, every ring folded (0, 2, 4, … there, … 5, 3, 1 back), so that no cable spans a row.
    Fat tree: levels as rows. Dragonfly, Dragonfly+, Cascade, Slim Fly: groups as blocks in a near-square
    arrangement; a group of a Slim Fly is the routers (0, x, ·) and (1, x, ·). Others: rows of a near-square, by
    number, unless the kind or the file says it.
    """
    if topology.position is not None:
        return topology.position
    params = topology.params
    number = np.arange(topology.routers)
    if topology.kind in ("mesh", "torus", "hyperx"):
        return _grid(number, params["sizes" if topology.kind == "hyperx" else "radices"], topology.kind == "torus")
    if topology.kind == "fat_tree":
        per_level = params["k"] ** params["n"]
        return np.stack([number % per_level, number // per_level], axis=1).astype(np.float64)
    if topology.kind == "dragonfly":
        return _blocks(number // params["a"], number % params["a"], params["g"], params["a"])
    if topology.kind == "slim_fly":
        q = params["q"]
        return _blocks(number // q % q, number // (q * q) * q + number % q, q, 2 * q)
    if topology.kind == "dragonfly_plus":
        size = params["leaves"] + params["spines"]
        return _blocks(number // size, number % size, params["g"], size)
    if topology.kind == "cascade":
        width, height = params["sizes"]
        group, across = number // (width * height), math.isqrt(params["g"] - 1) + 1
        x, y = number % width, number // width % height
        places = [group % across * (width + 1) + x, group // across * (height + 1) + y]
        return np.stack(places, axis=1).astype(np.float64)
    if topology.kind in ("clos", "director"):
        level, place = clos_levels(topology)
        return np.stack([place, level], axis=1).astype(np.float64)
    side = math.isqrt(topology.routers - 1) + 1
    return np.stack([number % side, number // side], axis=1).astype(np.float64)


def clos_levels(topology: Topology) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return level and place in the level of every router of a folded Clos network, or of racks and directors."""
    params, number = topology.params, np.arange(topology.routers, dtype=np.int64)
    if topology.kind == "director":
        racks, lines, fabrics = (int(params[key]) for key in ("racks", "lines", "fabrics"))
        director, card = np.divmod(number - racks, lines + fabrics)
        level = np.where(number < racks, 0, np.where(card < lines, 1, 2))
        card = np.where(level == 1, director * lines + card, director * fabrics + card - lines)
        return level, np.where(level == 0, number, card)
    first = np.cumsum([0, params["pods"] * params["leaves"], params["pods"] * params["middles"]])
    level = np.searchsorted(first, number, side="right") - 1
    return level, number - first[level]


def _grid(number: NDArray[np.int64], radices: tuple[int, ...], folded: bool) -> NDArray[np.float64]:
    place = np.zeros((len(number), 2))
    span, stride = [1, 1], 1
    for i, k in enumerate(radices):
        c = number // stride % k
        if folded:
            c = np.where(2 * c < k, 2 * c, 2 * (k - c) - 1)
        place[:, i % 2] += c * span[i % 2]
        span[i % 2] *= k
        stride *= k
    return place


def _blocks(group: NDArray[np.int64], member: NDArray[np.int64], groups: int, members: int) -> NDArray[np.float64]:
    across, width = math.isqrt(groups - 1) + 1, math.isqrt(members - 1) + 1
    height = -(-members // width)
    x = group % across * (width + 1) + member % width
    y = group // across * (height + 1) + member // width
    return np.stack([x, y], axis=1).astype(np.float64)


@dataclass(frozen=True)
class Cabling:
    """Cables between routers, in places; a cable runs along x, then along y.

    Attributes
    ----------
    width, height : float
        Of the floor plan.
    cables : int
        Number of links.
    total, mean, longest : float
        Manhattan lengths.
    """

    width: float
    height: float
    cables: int
    total: float
    mean: float
    longest: float


def link_ends(topology: Topology) -> NDArray[np.int64]:
    """Router, port, router, port of every link once, the smaller (router, port) first: int64[link, 4]."""
    channels = topology.channels()
    first = (channels.src_router < channels.dst_router) | (
        (channels.src_router == channels.dst_router) & (channels.src_port < channels.dst_port)
    )
    return np.stack([array[first].astype(np.int64) for array in channels], axis=1)


def cabling(topology: Topology) -> Cabling:
    """Measure the floor plan and the cables on it."""
    place = positions(topology)
    ends = link_ends(topology)
    length = np.abs(place[ends[:, 0]] - place[ends[:, 2]]).sum(axis=1)
    width, height = place.max(axis=0) - place.min(axis=0) + 1
    return Cabling(
        float(width), float(height), len(ends), float(length.sum()),
        float(length.mean()) if len(ends) else 0.0, float(length.max(initial=0.0)),
    )  # fmt: skip

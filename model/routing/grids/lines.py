"""Networks whose routers stand on lines: meshes, HyperX, and graphs from a file that are one of these.

Router r has the coordinates d0 = r mod k0, d1 = …, dimension 0 first. A line is a row of routers that differ in one
coordinate. What dimension order needs of it is one table: the port towards each coordinate.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.routing.contract.plan import RoutingError
from hopforge.model.topology import Topology

COMPLETE, MESH, EXPRESS = "complete", "mesh", "express"
"""All routers of a line are linked; neighbours are; neighbours are, and border routers half a line apart, too."""


@dataclass(frozen=True)
class Lines:
    """Where routers stand, and how they reach the others of their lines.

    Attributes
    ----------
    kind : str
        COMPLETE, MESH or EXPRESS.
    sizes : tuple of int
        Routers of a line, dimension 0 first.
    coords : ndarray, int64[router, dimension]
        Where a router stands.
    port : ndarray, int64[router, dimension, coordinate]
        Port of the next hop in that dimension; -1: the router is there.
    """

    kind: str
    sizes: tuple[int, ...]
    coords: NDArray[np.int64]
    port: NDArray[np.int64]


def lines_of(topology: Topology, name: str) -> Lines:
    """Find the lines of a mesh, a HyperX, or a graph that is one (a square of equal sizes, routers in that order).

    Raises
    ------
    RoutingError
        Another network.
    """
    if topology.kind == "mesh":
        return _lines(topology, MESH, tuple(topology.params["radices"]), name)
    if topology.kind in ("hyperx", "fully_connected"):
        return _lines(topology, COMPLETE, tuple(topology.params.get("sizes", (topology.routers,))), name)
    if topology.kind == "edge_list":
        degrees = {int(n) for n in (topology.peer_router >= 0).sum(axis=1)}
        for sizes in _equal_sizes(topology.routers):
            for kind in (COMPLETE, MESH, EXPRESS):
                if degrees == _degrees(kind, sizes) and _fits(topology, kind, sizes):
                    return _lines(topology, kind, sizes, name)
    raise RoutingError(
        f"routing.algorithm {name} needs a mesh, a hyperx, or a graph of one in which all lines are of the same length "
        f"and routers are numbered along dimension 0 first, not {topology.name}"
    )


def _equal_sizes(routers: int) -> list[tuple[int, ...]]:
    """Return (k, …, k) of every k and n with kⁿ routers, n from 1."""
    found = []
    for n in range(1, routers.bit_length()):
        k = round(routers ** (1 / n))
        if k >= 2 and k**n == routers:
            found.append((k,) * n)
    return found


def _degrees(kind: str, sizes: tuple[int, ...]) -> set[int]:
    """Return the numbers of links that routers of such a network have."""
    k, n = sizes[0], len(sizes)
    if kind == COMPLETE:
        return {n * (k - 1)}
    if kind == MESH:
        return set(range(n, 2 * n + 1)) if k > 2 else {n}
    return {4} if n == 2 and k >= 4 and k % 2 == 0 else set()


def _coordinates(sizes: tuple[int, ...]) -> NDArray[np.int64]:
    number = np.arange(int(np.prod(sizes)))
    columns = []
    for k in sizes:
        columns.append(number % k)
        number = number // k
    return np.stack(columns, axis=1).astype(np.int64)


def _step(kind: str, sizes: tuple[int, ...], here: list[int], d: int, goal: int) -> int:
    """Coordinate after the next hop in dimension `d`."""
    if kind == COMPLETE:
        return goal
    way = 1 if goal > here[d] else -1
    k, beside = sizes[d], here[1 - d] if kind == EXPRESS else -1
    if kind == EXPRESS and beside in (0, k - 1) and abs(goal - here[d]) > k // 2 - 1:
        return here[d] + way * (k // 2)
    return here[d] + way


def _next_routers(kind: str, sizes: tuple[int, ...], router: int, here: list[int]) -> list[tuple[int, int, int]]:
    """Return (dimension, coordinate, next router) of a router for every other coordinate."""
    found, weight = [], 1
    for d, k in enumerate(sizes):
        for goal in range(k):
            if goal != here[d]:
                found.append((d, goal, router + (_step(kind, sizes, here, d, goal) - here[d]) * weight))
        weight *= k
    return found


def _fits(topology: Topology, kind: str, sizes: tuple[int, ...]) -> bool:
    """Tell whether the links of a graph are exactly those of such a network."""
    for router, here in enumerate(_coordinates(sizes).tolist()):
        peers = topology.peer_router[router]
        links = sorted(peers[peers >= 0].tolist())
        wanted = {there for _, _, there in _next_routers(kind, sizes, router, here)}
        if kind == EXPRESS:
            wanted |= _express_ends(sizes[0], router, here)
        if links != sorted(wanted):
            return False
    return True


def _express_ends(k: int, router: int, here: list[int]) -> set[int]:
    """Return the routers at the other ends of a border router's express links."""
    x, y = here
    found = set()
    if x in (0, k - 1):
        found.add(router + (k // 2 if y < k // 2 else -(k // 2)) * k)
    if y in (0, k - 1):
        found.add(router + (k // 2 if x < k // 2 else -(k // 2)))
    return found


def _lines(topology: Topology, kind: str, sizes: tuple[int, ...], name: str) -> Lines:
    coords = _coordinates(sizes)
    port = np.full((topology.routers, len(sizes), max(sizes)), -1, np.int64)
    for router, here in enumerate(coords.tolist()):
        peers = topology.peer_router[router]
        port_to = {int(peers[p]): p for p in np.flatnonzero(peers >= 0).tolist()}
        for d, goal, there in _next_routers(kind, sizes, router, here):
            if there not in port_to:
                raise RoutingError(f"routing.algorithm {name} needs all links; {router}-{there} is missing")
            port[router, d, goal] = port_to[there]
    return Lines(kind, sizes, coords, port)

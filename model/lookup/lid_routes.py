"""Ways by tables with several paths for each destination, of which the source chooses one (several-paths.md)."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.kernel.compile import kernel
from hopforge.model.lookup.routes import Paths, Routes
from hopforge.model.lookup.spread_routes import SpreadRoutes
from hopforge.model.topology import Topology
from hopforge.model.topology.spread import flow_place

__all__ = ["KnownRoutes", "LidRoutes"]


class LidRoutes:
    """Offers `paths` and `lids` as `SpreadRoutes` does.

    Parameters
    ----------
    topology : Topology
        The network.
    routes : sequence of Routes
        Those of the packets to each address (LID) of a host.
    """

    def __init__(self, topology: Topology, routes: Sequence[Routes]) -> None:
        self.topology, self.routes = topology, tuple(routes)

    def lids(self, sources: ArrayLike, destinations: ArrayLike, entropy: ArrayLike = 0) -> NDArray[np.int64]:
        """Return which of the addresses of its destination a packet carries, from 0 on."""
        source, goal, turn = np.broadcast_arrays(
            np.asarray(sources, np.int64), np.asarray(destinations, np.int64), np.asarray(entropy, np.int64)
        )
        first = _places(source.reshape(-1), goal.reshape(-1), self.topology.routers, len(self.routes))
        return (first.reshape(source.shape) + turn) % len(self.routes)

    def paths(self, sources: ArrayLike, destinations: ArrayLike, entropy: ArrayLike = 0) -> Paths:
        """Paths from source hosts to destination hosts; a host's path to itself enters and leaves its own switch."""
        source, goal = np.asarray(sources, np.int64), np.asarray(destinations, np.int64)
        lid = self.lids(source, goal, entropy)
        found = [(lid == number, routes) for number, routes in enumerate(self.routes)]
        parts = [(chosen, routes.paths(source[chosen], goal[chosen])) for chosen, routes in found if chosen.any()]
        lengths = np.zeros(len(source), np.int64)
        for chosen, part in parts:
            lengths[chosen] = part.lengths
        first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        arrays = tuple(np.empty(first[-1], np.int32) for _ in range(3))
        for chosen, part in parts:
            begin = np.repeat(first[:-1][chosen] - part.first[:-1], part.lengths)
            for array, of_part in zip(arrays, (part.router, part.port, part.output), strict=True):
                array[begin + np.arange(len(begin))] = of_part
        return Paths(first, *arrays)


KnownRoutes: TypeAlias = Routes | SpreadRoutes | LidRoutes
"""Ways between hosts, whoever chooses them."""


@kernel
def _places(source, goal, routers, lids):  # type: ignore[no-untyped-def]
    result = np.empty(len(source), np.int64)
    for index in range(len(source)):
        result[index] = flow_place(source[index], goal[index], routers, lids)
    return result

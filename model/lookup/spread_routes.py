"""Ways of packets that every router spreads by a hash of source and destination (`routing.spread: flow`)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.kernel.compile import kernel
from hopforge.model.lookup.routes import Paths
from hopforge.model.topology import Topology, TopologyError
from hopforge.model.topology.routing_table import MAX_TABLE_ROUTERS, distances
from hopforge.model.topology.spread import port_place

__all__ = ["SpreadRoutes"]


class SpreadRoutes:
    """Shortest ways, one for each pair of hosts and entropy, as `port_place` chooses it.

    Offers `paths` as `Routes` does; those of entropy 0 are the ways of ``spread: flow``.

    Raises
    ------
    TopologyError
        Too large a network, or a pair of routers without a way.
    """

    def __init__(self, topology: Topology) -> None:
        if topology.routers > MAX_TABLE_ROUTERS:
            raise TopologyError(
                "topology", f"{topology.routers} routers are more than the {MAX_TABLE_ROUTERS} of routing.spread: flow"
            )
        self.topology = topology
        self._distance = distances(topology)
        if (self._distance < 0).any():
            goal, router = np.argwhere(self._distance < 0)[0].tolist()
            raise TopologyError("topology", f"no path from router {router} to router {goal}")

    def paths(self, sources: ArrayLike, destinations: ArrayLike, entropy: ArrayLike = 0) -> Paths:
        """Paths from source hosts to destination hosts; a host's path to itself enters and leaves its own switch."""
        source, goal = np.asarray(sources, np.int64), np.asarray(destinations, np.int64)
        entropies = np.ascontiguousarray(np.broadcast_to(np.asarray(entropy, np.int64), source.shape))
        topology = self.topology
        first = np.zeros(len(source) + 1, np.int64)
        homes = topology.host_router
        first[1:] = np.cumsum(self._distance[homes[goal], homes[source]] + 1)
        router, port, output = (np.empty(first[-1], np.int32) for _ in range(3))
        network = (topology.peer_router, topology.peer_port, homes, topology.host_port)
        _walk(network, self._distance, source, goal, entropies, first, router, port, output)
        return Paths(first, router, port, output)

    def lids(self, sources: ArrayLike, destinations: ArrayLike, entropy: ArrayLike = 0) -> NDArray[np.int64]:
        """Return which of the addresses of its destination a packet carries: the only one, 0."""
        return np.zeros(np.broadcast_arrays(sources, destinations, entropy)[0].shape, np.int64)


@kernel
def _walk(network, distance, source, goal, entropy, first, router, port, output):  # type: ignore[no-untyped-def]
    peer_router, peer_port, homes, host_port = network
    for index in range(len(source)):
        here, there = homes[source[index]], homes[goal[index]]
        entry = host_port[source[index]]
        for at in range(first[index], first[index + 1]):
            leave = host_port[goal[index]]
            if here != there:
                ways = 0
                for p in range(peer_router.shape[1]):
                    other = peer_router[here, p]
                    ways += other >= 0 and distance[there, other] == distance[there, here] - 1
                left = port_place(source[index], goal[index], entropy[index], here, ways)
                for p in range(peer_router.shape[1]):
                    other = peer_router[here, p]
                    if other >= 0 and distance[there, other] == distance[there, here] - 1:
                        if left == 0:
                            leave = p
                            break
                        left -= 1
            router[at], port[at], output[at] = here, entry, leave
            if here != there:
                entry = peer_port[here, leave]
                here = peer_router[here, leave]

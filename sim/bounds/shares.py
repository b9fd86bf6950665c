"""What share of the packets for a router takes a port: three rules of minimal routing, and the loads that they give.

==============  ==========================================================================================
`PER_HOP`       every router spreads packets evenly over the ports of its shortest ways
`PER_PATH`      every shortest way of a pair carries the same
`SINGLE`        one way: over the port to the lowest-numbered router, of parallel links the lowest port
==============  ==========================================================================================
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import inner, kernel
from hopforge.model.topology import Topology, TopologyError
from hopforge.model.topology.routing_table import distances

PER_HOP, PER_PATH, SINGLE = range(3)


class MinimalWays:
    """Shortest ways of a network.

    Attributes
    ----------
    peer : ndarray, int32[router, port]
        The router behind a port, -1: none.
    distance : ndarray, int32[goal, router]
        Links.
    order : ndarray, int32[goal, router]
        Routers, the nearest to the goal first.
    paths : ndarray, float64[goal, router]
        Number of shortest ways; parallel links count.

    Raises
    ------
    TopologyError
        A pair of routers without a way.
    """

    def __init__(self, topology: Topology) -> None:
        self.peer = np.ascontiguousarray(topology.peer_router, np.int32)
        self.distance = distances(topology)
        if (self.distance < 0).any():
            goal, router = np.argwhere(self.distance < 0)[0].tolist()
            raise TopologyError("topology", f"no way from router {router} to router {goal}")
        self.order = np.argsort(self.distance, axis=1, kind="stable").astype(np.int32)
        self.paths = np.zeros(self.distance.shape)
        _count_paths(self.peer, self.distance, self.order, self.paths)

    def loads(self, rule: int, rate: NDArray[np.float64]) -> NDArray[np.float64]:
        """Load of every channel, float64[router, port], of rates float64[router, router]."""
        load = np.zeros(self.peer.shape)
        _loads(rule, self.peer, self.distance, self.order, self.paths, rate, np.zeros(len(self.peer)), load)
        return load

    def shares(self, rule: int, router: int, port: int) -> NDArray[np.float64]:
        """Share of the packets at a router that takes a port, by their goal: float64[goal]."""
        found = np.zeros(len(self.peer))
        _shares(rule, self.peer, self.distance, self.paths, router, port, found)
        return found

    def visits(self, rule: int, router: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Pairs whose packets come through a router: sources, goals, and the share of the packets."""
        n = len(self.peer)
        beyond = self.distance == self.distance[router][None, :] + self.distance[:, router][:, None]
        goals, sources = np.nonzero(beyond)
        share = np.zeros((n, n))
        _visits(rule, self.peer, self.distance, self.order, self.paths, router, beyond, share)
        found = share[goals, sources]
        kept = (found > 0) & (goals != router)
        return sources[kept], goals[kept], found[kept]


@inner
def _share(rule: int, peer: Any, distance: Any, paths: Any, router: int, port: int, goal: int) -> float:
    other = peer[router, port]
    if other < 0 or distance[goal, other] != distance[goal, router] - 1:
        return 0.0
    if rule == PER_PATH:
        return paths[goal, other] / paths[goal, router]
    count, lowest = 0, port
    for p in range(peer.shape[1]):
        near = peer[router, p]
        if near >= 0 and distance[goal, near] == distance[goal, router] - 1:
            count += 1
            if near < peer[router, lowest] or (near == peer[router, lowest] and p < lowest):
                lowest = p
    if rule == SINGLE:
        return 1.0 if lowest == port else 0.0
    return 1.0 / count


@kernel
def _shares(rule, peer, distance, paths, router, port, found):  # type: ignore[no-untyped-def]
    for goal in range(len(found)):
        if goal != router:
            found[goal] = _share(rule, peer, distance, paths, router, port, goal)


@kernel
def _count_paths(peer, distance, order, paths):  # type: ignore[no-untyped-def]
    for goal in range(len(peer)):
        paths[goal, goal] = 1.0
        for router in order[goal, 1:]:
            for port in range(peer.shape[1]):
                other = peer[router, port]
                if other >= 0 and distance[goal, other] == distance[goal, router] - 1:
                    paths[goal, router] += paths[goal, other]


@kernel
def _loads(rule, peer, distance, order, paths, rate, flow, load):  # type: ignore[no-untyped-def]
    for goal in range(len(peer)):
        for router in range(len(peer)):  # an assignment of the column takes seconds to compile
            flow[router] = rate[router, goal]
        for i in range(len(peer) - 1, 0, -1):
            router = order[goal, i]
            if flow[router] == 0.0:
                continue
            for port in range(peer.shape[1]):
                part = flow[router] * _share(rule, peer, distance, paths, router, port, goal)
                if part > 0.0:
                    load[router, port] += part
                    flow[peer[router, port]] += part


@kernel
def _visits(rule, peer, distance, order, paths, via, beyond, share):  # type: ignore[no-untyped-def]
    for goal in range(len(peer)):
        share[goal, via] = 1.0
        for router in order[goal]:
            if router == via or not beyond[goal, router]:
                continue
            for port in range(peer.shape[1]):
                other = peer[router, port]
                if other >= 0 and share[goal, other] > 0.0:
                    part = _share(rule, peer, distance, paths, router, port, goal)
                    share[goal, router] += part * share[goal, other]

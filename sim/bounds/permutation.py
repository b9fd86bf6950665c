"""The permutation of hosts that loads a channel most under minimal routing: an assignment problem for each channel."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.topology import Topology
from hopforge.sim.bounds.shares import MinimalWays

__all__ = ["WorstPermutation", "assignment_steps", "worst_permutation"]

#: loads that differ by less are equal
_EQUAL = 1e-9


class WorstPermutation(NamedTuple):
    """The permutation that loads one channel most.

    Attributes
    ----------
    load : float
        Flits per cycle on that channel where every host sends one.
    router, port : int
        The channel.
    goals : ndarray, int64[host]
        Destination of every host.
    """

    load: float
    router: int
    port: int
    goals: NDArray[np.int64]


def assignment_steps(ways: MinimalWays) -> float:
    """Estimate the steps of `worst_permutation`: of an assignment of n sources they grow with n³."""
    channels = int((ways.peer >= 0).sum())
    pairs = float(ways.distance.sum()) / max(channels, 1)
    return channels * pairs**1.5 + float(len(ways.peer)) ** 2 * (len(ways.peer) + float(ways.peer.shape[1]))


def worst_permutation(
    topology: Topology, ways: MinimalWays, rule: int, progress: Callable[[int, int], None]
) -> WorstPermutation:
    """Find the largest load of any channel under any permutation of the hosts, and a permutation that causes it.

    The load of one channel is linear in the permutation, so the largest one is the solution of an assignment problem
    (scipy's `linear_sum_assignment`); hosts of one router are alike. Channels that a bound excludes are left out.

    Parameters
    ----------
    topology : Topology
        The network.
    ways : MinimalWays
        Its shortest ways.
    rule : int
        How packets are spread over them.
    progress : callable
        Called with (routers done, routers in all).
    """
    hosts = np.bincount(topology.host_router, minlength=topology.routers)
    alike = len(np.unique(hosts[hosts > 0])) == 1
    places = np.where(hosts > 0, 1, 0) if alike else hosts
    scale = int(hosts.max()) if alike else 1
    best, found, pairs = 0.0, (-1, -1), (np.empty(0, np.int64), np.empty(0, np.int64))
    for router in range(topology.routers):
        sources, goals, share = ways.visits(rule, router)
        used = (hosts[sources] > 0) & (hosts[goals] > 0)
        sources, goals, share = sources[used], goals[used], share[used]
        for port in np.flatnonzero(topology.peer_router[router] >= 0).tolist():
            part = share * ways.shares(rule, router, port)[goals]
            load, chosen = _assign(sources, goals, part, places, best / scale)
            if load * scale > best + _EQUAL:
                best, found, pairs = load * scale, (router, port), chosen
        progress(router + 1, topology.routers)
    return WorstPermutation(best, *found, _completed(topology, pairs, hosts if alike else None))


def _assign(
    sources: NDArray[np.int64], goals: NDArray[np.int64], share: NDArray[np.float64], places: NDArray[Any], least: float
) -> tuple[float, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the largest sum of shares and the routers that are paired; 0 where it cannot exceed `least`."""
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - slow to import

    kept = share > 0
    rows, row = np.unique(sources[kept], return_inverse=True)
    columns, column = np.unique(goals[kept], return_inverse=True)
    weight = np.zeros((len(rows), len(columns)))
    weight[row, column] = share[kept]
    highest = 0.0
    if len(rows):
        highest = min(float(weight.max(axis=1) @ places[rows]), float(weight.max(axis=0) @ places[columns]))
    if highest <= least + _EQUAL:
        return 0.0, (rows, columns)
    rows, columns = np.repeat(rows, places[rows]), np.repeat(columns, places[columns])
    weight = weight[np.ix_(np.searchsorted(np.unique(rows), rows), np.searchsorted(np.unique(columns), columns))]
    first, second = linear_sum_assignment(weight, maximize=True)
    return float(weight[first, second].sum()), (rows[first], columns[second])


def _completed(
    topology: Topology, pairs: tuple[NDArray[np.int64], NDArray[np.int64]], alike: NDArray[Any] | None
) -> NDArray[np.int64]:
    """Return a destination for every host: as the routers are paired, else its own, else the lowest that is left."""
    order = np.argsort(topology.host_router, kind="stable")
    begin = np.searchsorted(topology.host_router[order], np.arange(topology.routers + 1))
    goals = np.full(topology.hosts, -1, np.int64)
    sent, taken = np.zeros(topology.routers, np.int64), np.zeros(topology.routers, np.int64)
    for a, b in zip(*(one.tolist() for one in pairs), strict=True):
        for _ in range(1 if alike is None else int(alike[a])):
            goals[order[begin[a] + sent[a]]] = order[begin[b] + taken[b]]
            sent[a] += 1
            taken[b] += 1
    free = np.ones(topology.hosts, bool)
    free[goals[goals >= 0]] = False
    own = (goals < 0) & free
    goals[own] = np.flatnonzero(own)
    free[own] = False
    goals[goals < 0] = np.flatnonzero(free)
    return goals

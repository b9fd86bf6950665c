"""Mean rates between routers that a pattern asks for: what bounds of throughput are computed of."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.topology import Topology
from hopforge.sim.traffic.patterns import PATTERNS, TrafficError, TrafficPlan

__all__ = ["Demand", "mean_demand"]

#: patterns that draw from a list, or take it in turn; of these, what is not of the list is uniform
_LISTS = ("butterfly_stages", "adversarial", "stencil", "many_to_many", "random_neighbours", "all_to_all")
_MIXED = ("hotspot", "local")


class Demand(NamedTuple):
    """Mean rates where every host that sends offers one flit per cycle.

    Attributes
    ----------
    rate : ndarray, float64[router, router]
        Flits per cycle from the hosts of a router to those of another one; the diagonal stays inside.
    received : ndarray, float64[host]
        Flits per cycle for every host.
    """

    rate: NDArray[np.float64]
    received: NDArray[np.float64]


def mean_demand(
    topology: Topology, pattern: str, options: dict[str, Any], generator: np.random.Generator
) -> Demand:
    """Return the mean rates of one of our patterns.

    Parameters
    ----------
    topology : Topology
        The network.
    pattern : str
        A name of `PATTERNS`.
    options : dict
        Keys of section `traffic`.
    generator : Generator
        That draws permutations and partners, as a run does.

    Raises
    ------
    TrafficError
        A pattern of a user's file, whose rates nobody knows, or one that does not fit the network.
    """
    if pattern not in PATTERNS:
        raise TrafficError("traffic.pattern: file draws destinations as it likes; rates are known of ours only")
    plan = PATTERNS[pattern](topology, options, generator)
    H = topology.hosts
    sends = np.ones(H) if plan.silent is None else np.where(plan.silent, 0.0, 1.0)
    if pattern == "uniform":
        return _uniform(topology, sends, with_self=bool(options.get("include_self", True)) or H == 1)
    if pattern == "random_neighbours" and options.get("partners") == "each_round":
        return _uniform(topology, sends, with_self=False)
    if pattern in _MIXED:
        share = int(plan.table[1]) / (1 << 30)
        near, rest = _listed(topology, plan, sends, 2), _uniform(topology, sends, with_self=True)
        return Demand(*(share * one + (1 - share) * two for one, two in zip(near, rest, strict=True)))
    if pattern in _LISTS:
        return _listed(topology, plan, sends, 0)
    return _pairs(topology, np.arange(H), plan.table[:H], sends)


def _pairs(topology: Topology, source: NDArray[Any], goal: NDArray[Any], rate: NDArray[np.float64]) -> Demand:
    R, home = topology.routers, topology.host_router.astype(np.int64)
    sums: Any = np.bincount(home[source] * R + home[goal], weights=rate, minlength=R * R)
    received: Any = np.bincount(goal, weights=rate, minlength=topology.hosts)
    return Demand(sums.reshape(R, R), received)


def _listed(topology: Topology, plan: TrafficPlan, sends: NDArray[np.float64], offset: int) -> Demand:
    """All of a host's list alike; the lists begin at entries from `offset` on."""
    first = plan.table[offset : offset + topology.hosts + 1].astype(np.int64)
    length = np.diff(first)
    source = np.repeat(np.arange(topology.hosts), length)
    return _pairs(topology, source, plan.table[first[0] : first[-1]], (sends / np.maximum(length, 1))[source])


def _uniform(topology: Topology, sends: NDArray[np.float64], *, with_self: bool) -> Demand:
    R, H = topology.routers, topology.hosts
    out = np.bincount(topology.host_router, weights=sends, minlength=R)
    hosts = np.bincount(topology.host_router, minlength=R).astype(float)
    goals = H if with_self else H - 1
    rate = np.outer(out, hosts) / goals
    received = np.full(H, sends.sum() / goals)
    if not with_self:
        rate[np.diag_indices(R)] -= out / goals
        received -= sends / goals
    return Demand(rate, received)

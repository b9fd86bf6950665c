"""Mean rates between routers that a pattern asks for: what bounds of throughput are computed of."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.topology import Topology
from hopforge.sim.traffic.dimension_patterns import BISECTION
from hopforge.sim.traffic.drawn_patterns import DRAWN_LISTS, TAPERED
from hopforge.sim.traffic.find import prepare_traffic
from hopforge.sim.traffic.patterns import TrafficError, TrafficPlan

__all__ = ["Demand", "mean_demand"]

#: patterns that draw from a list, or take it in turn; of these, what is not of the list is uniform
_LISTS = (
    "butterfly_stages", "adversarial", "stencil", "many_to_many", "random_neighbours", "all_to_all", *DRAWN_LISTS,
)  # fmt: skip
_MIXED = ("hotspot", "local", TAPERED)


class Demand(NamedTuple):
    """Mean rates where every host that sends offers one flit per cycle.

    Attributes
    ----------
    rate : ndarray, float64[router, router] or float64[router, host]
        Flits per cycle from the hosts of a router to those of another one, or to a host; those of the same router stay
        inside.
    received : ndarray, float64[host]
        Flits per cycle for every host.
    """

    rate: NDArray[np.float64]
    received: NDArray[np.float64]


def mean_demand(
    topology: Topology,
    pattern: str,
    options: dict[str, Any],
    generator: np.random.Generator,
    *,
    to_hosts: bool = False,
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
    to_hosts : bool
        Columns of `Demand.rate` are hosts in place of routers.

    Raises
    ------
    TrafficError
        A pattern of a user's file, whose rates nobody knows, one that there is not, or that does not fit the network.
    """
    if pattern == "file":
        raise TrafficError("traffic.pattern: file draws destinations as it likes; rates are known of ours only")
    plan = prepare_traffic(topology, pattern, options, generator)
    H = topology.hosts
    ends = _Ends(topology, to_hosts=to_hosts)
    sends = np.ones(H) if plan.silent is None else np.where(plan.silent, 0.0, 1.0)
    if pattern == "uniform":
        return _uniform(ends, sends, with_self=bool(options.get("include_self", True)))
    if pattern == "random_neighbours" and options.get("partners") == "each_round":
        return _uniform(ends, sends, with_self=False)
    if pattern in _MIXED:
        share = int(plan.table[1]) / (1 << 30)
        near, rest = _listed(ends, plan, sends, 2), _uniform(ends, sends, with_self=True)
        return Demand(*(share * one + (1 - share) * two for one, two in zip(near, rest, strict=True)))
    if pattern in _LISTS:
        return _listed(ends, plan, sends, 0)
    if pattern == BISECTION:
        return _bisection(ends, plan, sends)
    return _pairs(ends, np.arange(H), plan.table[:H], sends)


class _Ends:
    """Rows and columns of rates: routers of sources, routers or hosts of destinations."""

    def __init__(self, topology: Topology, *, to_hosts: bool) -> None:
        self.rows, self.hosts, self.to_hosts = topology.routers, topology.hosts, to_hosts
        self.row: NDArray[np.int64] = topology.host_router.astype(np.int64)
        self.column = np.arange(self.hosts) if to_hosts else self.row
        self.columns = self.hosts if to_hosts else self.rows

    def sums(self, source: NDArray[Any], goal: NDArray[Any], rate: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up the rates between hosts: float64[row, column]."""
        places = self.row[source] * self.columns + self.column[goal]
        found: Any = np.bincount(places, weights=rate, minlength=self.rows * self.columns)
        return np.asarray(found.reshape(self.rows, self.columns))


def _pairs(ends: _Ends, source: NDArray[Any], goal: NDArray[Any], rate: NDArray[np.float64]) -> Demand:
    received: Any = np.bincount(goal, weights=rate, minlength=ends.hosts)
    return Demand(ends.sums(source, goal, rate), received)


def _listed(ends: _Ends, plan: TrafficPlan, sends: NDArray[np.float64], offset: int) -> Demand:
    """All of a host's list alike; their index begins at entry `offset`."""
    first, last = plan.table[offset : offset + 2 * ends.hosts].astype(np.int64).reshape(-1, 2).T
    length = last - first
    source = np.repeat(np.arange(ends.hosts), length)
    place = np.arange(len(source)) + (first - np.cumsum(length) + length)[source]
    return _pairs(ends, source, plan.table[place], (sends / np.maximum(length, 1))[source])


def _bisection(ends: _Ends, plan: TrafficPlan, sends: NDArray[np.float64]) -> Demand:
    """To every router whose coordinate in one dimension is the complement, to the host of the opposite number."""
    below, size, terminals, places = plan.table.tolist()
    x = np.arange(ends.rows) // below % size
    opposite = x[:, None] + x == size - 1
    part = sends.reshape(ends.rows, terminals)[:, ::-1] / places  # what comes to each number of a host there
    received = (opposite.T.astype(float) @ part).reshape(-1)
    if not ends.to_hosts:
        return Demand(opposite * part.sum(axis=1)[:, None], received)
    return Demand(np.repeat(opposite, terminals, axis=1) * np.tile(part, ends.rows), received)


def _uniform(ends: _Ends, sends: NDArray[np.float64], *, with_self: bool) -> Demand:
    H = ends.hosts
    out = np.bincount(ends.row, weights=sends, minlength=ends.rows)
    hosts = np.bincount(ends.column, minlength=ends.columns).astype(float)
    goals = H if with_self else H - 1
    rate = np.outer(out, hosts) / goals
    received = np.full(H, sends.sum() / goals)
    if not with_self:
        host = np.arange(H)
        rate -= ends.sums(host, host, sends) / goals
        received -= sends / goals
    return Demand(rate, received)

"""A network some links of which are slower than they should be (section `degraded`)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hopforge.model.config.simulation import DegradedConfig, FailedConfig
from hopforge.model.errors import UserError
from hopforge.model.topology.base import Topology
from hopforge.model.topology.failed import failed_ports

__all__ = ["CYCLES", "MICROSECONDS", "DegradedError", "mean_rates", "with_degraded"]

MICROSECONDS, CYCLES = ("from_us", "until_us"), ("from_cycle", "until_cycle")
"""Keys with times."""


class DegradedError(UserError, ValueError):
    """Slow links that the network has not."""


def with_degraded(
    topology: Topology, degraded: DegradedConfig, seed: int, *, times: Sequence[str] = ()
) -> Topology:
    """Return the network whose links have what is left of their rates, both ways.

    Parameters
    ----------
    topology : Topology
        The network, with the parallel links that it has.
    degraded : DegradedConfig
        Section `degraded`. Random links are drawn among all between routers; more of them are the same and others.
    seed : int
        Of the draw.
    times : sequence of str
        Keys with times that the caller reads; others are refused.

    Raises
    ------
    DegradedError, FailureError
        Links or routers that do not exist, or more links than there are.
    """
    if degraded.none:
        return topology
    if degraded.timed and degraded.timed not in times:
        others = "from_us and until_us are for hopforge app (engines flow, by hopforge itself, and packet)"
        raise DegradedError(
            f"degraded.{degraded.timed}: is not read here; {others}, from_cycle and until_cycle for net, series, sweep "
            "and trace"
        )
    named = FailedConfig(links=degraded.links, ports=degraded.ports)
    slow = failed_ports(topology, named, "degraded")
    peer = topology.peer_router
    router, port = np.nonzero(peer >= 0)
    other, of_other = peer[router, port], topology.peer_port[router, port]
    one_end = (router < other) | ((router == other) & (port < of_other))
    router, port = router[one_end], port[one_end]
    if degraded.random_links > len(router):
        raise DegradedError(
            f"degraded.random_links: must be at most the {len(router)} links of the {topology.name}, not "
            f"{degraded.random_links}"
        )
    drawn = np.random.default_rng((seed, 13)).permutation(len(router))[: degraded.random_links]
    a, of_a = router[drawn], port[drawn]
    slow[a, of_a] = True
    slow[peer[a, of_a], topology.peer_port[a, of_a]] = True
    return replace(topology, rate_share=np.where(slow, degraded.factor, 1.0))


def mean_rates(topology: Topology, degraded: DegradedConfig, makespan_s: float) -> Topology:
    """Return the network with the mean rates of its links during a run of `hopforge app`; `topology` has slow links."""
    if not degraded.timed or topology.rate_share is None or makespan_s <= 0:
        return topology
    until = makespan_s if degraded.until_us is None else min(makespan_s, degraded.until_us * 1e-6)
    slow = max(0.0, until - degraded.from_us * 1e-6) / makespan_s
    return replace(topology, rate_share=1 - (1 - topology.rate_share) * slow)

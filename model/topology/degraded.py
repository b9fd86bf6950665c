"""A network some links of which are slower than they should be (section `degraded`)."""

from dataclasses import replace

import numpy as np

from hopforge.model.config.simulation import DegradedConfig, FailedConfig
from hopforge.model.errors import UserError
from hopforge.model.topology.base import Topology
from hopforge.model.topology.failed import failed_ports

__all__ = ["DegradedError", "with_degraded"]


class DegradedError(UserError, ValueError):
    """Slow links that the network has not."""


def with_degraded(topology: Topology, degraded: DegradedConfig, seed: int) -> Topology:
    """Return the network whose links have what is left of their rates, both ways.

    Parameters
    ----------
    topology : Topology
        The network, with the parallel links that it has.
    degraded : DegradedConfig
        Section `degraded`. Random links are drawn among all between routers; more of them are the same and others.
    seed : int
        Of the draw.

    Raises
    ------
    DegradedError, FailureError
        Links or routers that do not exist, or more links than there are.
    """
    if degraded.none:
        return topology
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

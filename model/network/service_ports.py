"""Service ports: the last port of every router, where it sends and takes acknowledges.

docs/definitions/acknowledges.md.

To everything but the simulator a service port is a port without a link. In the simulator a *service host* is there: N
hosts and R routers have service hosts N … N + R − 1, which no pattern and no routing algorithm knows.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.network.core.state import NetworkError
from hopforge.model.network.settings import RouterParameters, Tables
from hopforge.model.topology import Topology
from hopforge.model.topology.limits import MAX_PORTS


def _wider(array: NDArray[Any]) -> NDArray[Any]:
    return np.pad(array, ((0, 0), (0, 1)), constant_values=-1)


def with_service_ports(topology: Topology) -> Topology:
    """Return a network whose routers have one more port, without a link.

    Raises
    ------
    NetworkError
        Routers that have as many ports as can be.
    """
    if topology.max_ports >= MAX_PORTS:
        raise NetworkError(
            f"traffic.acknowledge: needs a service port at every router, and routers of the {topology.name} have "
            f"{topology.max_ports} of at most {MAX_PORTS} ports already"
        )
    cycles, groups, shares = topology.link_cycles, topology.aggregation, topology.rate_share
    return replace(
        topology,
        peer_router=_wider(topology.peer_router),
        peer_port=_wider(topology.peer_port),
        host_at=_wider(topology.host_at),
        link_cycles=None if cycles is None else np.pad(cycles, ((0, 0), (0, 1))),
        rate_share=None if shares is None else np.pad(shares, ((0, 0), (0, 1)), constant_values=1.0),
        aggregation=None if groups is None else replace(groups, group=_wider(groups.group)),
    )


def with_service_hosts(topology: Topology) -> Topology:
    """Put a host behind the last port of every router, which has no link; its number is hosts + router."""
    routers, service = np.arange(topology.routers, dtype=np.int32), topology.max_ports - 1
    at = topology.host_at.copy()
    at[:, service] = topology.hosts + routers
    return replace(
        topology,
        hosts=topology.hosts + topology.routers,
        host_at=at,
        host_router=np.concatenate([topology.host_router, routers]),
        host_port=np.concatenate([topology.host_port, np.full_like(routers, service)]),
    )


def for_service_hosts(topology: Topology, router: RouterParameters, tables: Tables) -> tuple[RouterParameters, Tables]:
    """Give service ports a latency, and service hosts masks, where there are values for each.

    Parameters
    ----------
    topology : Topology
        Without service hosts.
    router, tables
        As for `model.network.build.build_net`.
    """
    latency = np.asarray(router.link_latency_cycles)
    if latency.ndim == 2 and latency.shape[1] < topology.max_ports:
        router = replace(router, link_latency_cycles=np.pad(latency, ((0, 0), (0, 1)), constant_values=1))
    mask = tables.inject_mask
    if mask is not None and np.ndim(mask):
        tables = replace(tables, inject_mask=np.pad(np.asarray(mask), (0, topology.routers)))
    return router, tables

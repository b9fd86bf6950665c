"""A network some parts of which have failed: the same routers, ports and hosts, and fewer links."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.simulation import FailedConfig, describe_failed
from hopforge.model.errors import UserError
from hopforge.model.shared import once
from hopforge.model.topology.aggregation import without_links
from hopforge.model.topology.base import Topology
from hopforge.model.topology.floor_plan import positions
from hopforge.model.topology.graph import components

__all__ = [
    "FailureError",
    "failed_hosts",
    "failed_ports",
    "failed_switches",
    "refuse_failed",
    "survivors",
    "without_failed",
]


class FailureError(UserError, ValueError):
    """Failed parts that the network has not, or without which it falls apart."""


def refuse_failed(failed: FailedConfig, who: str) -> None:
    """Refuse section `failed` where it would have no effect.

    Raises
    ------
    FailureError
        Something has failed; names `who`.
    """
    if not failed.none:
        raise FailureError(
            f"failed: {describe_failed(failed)}: {who} takes whole networks only (hopforge route, gen tables, gen "
            "network, cosim --part network, net, sweep, series and trace, app with engine: packet, and, with "
            "routing.algorithm=tables, hits and app with engine: flow, go without what has failed)"
        )


def _router(topology: Topology, router: int, key: str) -> int:
    if router >= topology.routers:
        raise FailureError(
            f"{key}: router {router} does not exist; the {topology.name} has routers 0 to {topology.routers - 1}"
        )
    return router


def failed_switches(topology: Topology, failed: FailedConfig, key: str = "failed") -> NDArray[np.bool_]:
    """Switches that have failed: bool[router]; `key` is what errors begin with.

    Raises
    ------
    FailureError
        A router that does not exist.
    """
    found = np.zeros(topology.routers, bool)
    for router in failed.switches:
        found[_router(topology, router, key)] = True
    return found


def failed_hosts(topology: Topology, failed: FailedConfig) -> NDArray[np.bool_]:
    """Hosts at switches that have failed: bool[host]."""
    return failed_switches(topology, failed)[topology.host_router]


def failed_ports(topology: Topology, failed: FailedConfig, key: str = "failed") -> NDArray[np.bool_]:
    """Output ports whose link to another router is down: bool[router, port]; both ends of every link.

    `key` is what errors begin with.

    Raises
    ------
    FailureError
        Naming a router, link or port that does not exist.
    """
    peer = topology.peer_router
    down = np.zeros(peer.shape, bool)
    for a, b in failed.links:
        here = peer[_router(topology, a, key)] == _router(topology, b, key)
        if not here.any():
            raise FailureError(f"{key}: there is no link between routers {a} and {b} of the {topology.name}")
        down[a] |= here
    for router, port in failed.ports:
        ports = int(topology.ports[_router(topology, router, key)])
        if port >= ports or peer[router, port] < 0:
            what = "leads to a host" if port < ports and topology.host_at[router, port] >= 0 else "has no link"
            raise FailureError(f"{key}: port {port} of router {router} of the {topology.name} {what}")
        down[router, port] = True
    down[failed_switches(topology, failed, key)] = True
    down &= peer >= 0
    here = np.nonzero(down)
    down[peer[here], topology.peer_port[here]] = True
    return down


def without_failed(topology: Topology, failed: FailedConfig, key: str = "failed") -> Topology:
    """Return the network without the links that are down; routers, ports and hosts keep their numbers.

    A switch that has failed stays, with its hosts and without links. `key` is what errors begin with.

    Raises
    ------
    FailureError
        Parts that do not exist, or what is left falls apart: names two routers without a path.
    """
    return topology if failed.none else once(("left", topology, failed), lambda: _left(topology, failed, key))


def _left(topology: Topology, failed: FailedConfig, key: str) -> Topology:
    down, gone = failed_ports(topology, failed, key), failed_switches(topology, failed)
    peer_router = np.where(down, -1, topology.peer_router).astype(np.int32)
    left = np.flatnonzero(~gone)
    if len(left) == 0:
        raise FailureError(f"{key}: all {topology.routers} routers of the {topology.name}")
    router, port = np.nonzero(peer_router >= 0)
    part = components(np.stack([router, peer_router[router, port]], axis=1), topology.routers)[1]
    apart = left[part[left] != part[left[0]]]
    if len(apart):
        sizes = sorted((n for n in np.bincount(part[left]).tolist() if n), reverse=True)
        raise FailureError(
            f"{key}: the network falls apart: no path from router {left[0]} to router {apart[0]} "
            f"({len(sizes)} parts of {', '.join(map(str, sizes[:8]))}{', …' if len(sizes) > 8 else ''} routers)"
        )
    return replace(
        topology,
        peer_router=peer_router,
        peer_port=np.where(down, -1, topology.peer_port).astype(np.int32),
        aggregation=None if topology.aggregation is None else without_links(topology.aggregation, peer_router),
        damaged=True,
    )


def survivors(topology: Topology, gone: NDArray[np.bool_]) -> tuple[Topology, NDArray[np.int32]]:
    """Return the network without some routers, renumbered in their order, and the old numbers: int32[router].

    Parameters
    ----------
    topology : Topology
        In which the routers `gone` have no links (`without_failed`).
    gone : ndarray, bool[router]
        Routers to leave out, with their hosts.
    """
    numbers = np.flatnonzero(~gone).astype(np.int32)
    new = np.full(topology.routers + 1, -1, np.int32)  # the last one stands for -1
    new[numbers] = np.arange(len(numbers), dtype=np.int32)
    hosts = np.flatnonzero(~gone[topology.host_router])
    new_host = np.full(topology.hosts + 1, -1, np.int32)
    new_host[hosts] = np.arange(len(hosts), dtype=np.int32)
    return (
        replace(
            topology,
            routers=len(numbers),
            hosts=len(hosts),
            peer_router=new[topology.peer_router[numbers]],
            peer_port=topology.peer_port[numbers],
            host_at=new_host[topology.host_at[numbers]],
            host_router=new[topology.host_router[hosts]],
            host_port=topology.host_port[hosts],
            host_address=topology.host_address[hosts],
            ports=topology.ports[numbers],
            position=positions(topology)[numbers],
            link_cycles=None if topology.link_cycles is None else topology.link_cycles[numbers],
            rate_share=None if topology.rate_share is None else topology.rate_share[numbers],
        ),
        numbers,
    )

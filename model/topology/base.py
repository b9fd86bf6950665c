"""The frozen description of a network that everything else reads: arrays of ports, peers and hosts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError

MAX_ROUTERS = 1 << 20
MAX_PORT_SLOTS = 1 << 26


class TopologyError(UserError, ValueError):
    """A network that cannot be built: the message names key, limit and value."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


class Channels(NamedTuple):
    """All directed channels between routers, in the order of (source router, source port).

    Attributes
    ----------
    src_router, src_port, dst_router, dst_port : ndarray, int32[channel]
        The two ends. ``dst_port`` is the input port at which the destination router sees the packet.
    """

    src_router: NDArray[np.int32]
    src_port: NDArray[np.int32]
    dst_router: NDArray[np.int32]
    dst_port: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Aggregation:
    """Parallel links of a network in groups, each of which is one link to the routing.

    Attributes
    ----------
    logical : Topology
        The same network with one port in place of a group.
    members : int
        Links in a group, on successive ports; a link to a host is alone.
    ports : ndarray, int32[router, logical port, member]
        The port of each member, -1: there is none.
    group : ndarray, int32[router, port]
        The logical port that a port belongs to, -1: none.
    """

    logical: "Topology"
    members: int
    ports: NDArray[np.int32]
    group: NDArray[np.int32]

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Give every port the value of its group: of the shape [router, port], from [router, logical port]."""
        return np.take_along_axis(values, np.maximum(self.group, 0), axis=1)


@dataclass(frozen=True, eq=False)
class Topology:
    """A network of routers and hosts as arrays (numbering: docs/architecture.md).

    Attributes
    ----------
    name : str
        One line for people, for example ``4x4x4 torus``.
    kind : str
        Key of `TOPOLOGIES`.
    routers, hosts : int
        How many of each.
    peer_router, peer_port : ndarray, int32[router, port]
        The router and its input port at the other end of a port; -1: no link, or a host.
    host_at : ndarray, int32[router, port]
        The host at a port; -1: not a host port.
    host_router, host_port : ndarray, int32[host]
        Where a host is attached.
    host_address : ndarray, int64[host]
        The destination address of a host.
    ports : ndarray, int32[router]
        Number of ports of a router, linked or not; columns beyond it hold -1.
    params : Mapping
        What it was built from (for reports): radices, k, n, p, a, h, g, ...
    position : ndarray, float64[router, 2], optional
        x and y of every router on the floor plan, in places, if the kind or the file says where routers stand
        (`floor_plan.positions` has an answer for every network).
    link_cycles : ndarray, int32[router, port], optional
        Latency of the link at an output port as its file says, 0 where it does not; None: none says so.
    aggregation : Aggregation, optional
        Parallel links that act as one (`topology.aggregation`).
    damaged : bool
        Links of it have failed (`topology.failed`).
    rate_share : ndarray, float64[router, port], optional
        Part of its rate that the link at each port has left (`topology.degraded`); None: all of it everywhere.
    """

    name: str
    kind: str
    routers: int
    hosts: int
    peer_router: NDArray[np.int32]
    peer_port: NDArray[np.int32]
    host_at: NDArray[np.int32]
    host_router: NDArray[np.int32]
    host_port: NDArray[np.int32]
    host_address: NDArray[np.int64]
    ports: NDArray[np.int32]
    params: Mapping[str, Any] = field(default_factory=dict)
    position: NDArray[np.float64] | None = None
    link_cycles: NDArray[np.int32] | None = None
    aggregation: Aggregation | None = None
    damaged: bool = False
    rate_share: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", MappingProxyType(dict(self.params)))
        for array in (self.peer_router, self.peer_port, self.host_at, self.host_router, self.host_port,
                      self.host_address, self.ports, self.position, self.link_cycles):
            if array is not None:
                array.setflags(write=False)

    @property
    def max_ports(self) -> int:
        """Columns of the port arrays: the largest number of ports of a router."""
        return int(self.peer_router.shape[1])

    @property
    def host_links(self) -> int:
        """Links of a host that has several: so many hosts one behind the other are the links of one machine."""
        return int(self.params.get("host_links", 1))

    def channels(self) -> Channels:
        """All directed channels between routers."""
        router, port = np.nonzero(self.peer_router >= 0)
        return Channels(
            router.astype(np.int32), port.astype(np.int32), self.peer_router[router, port], self.peer_port[router, port]
        )


def check_size(key: str, routers: int, ports: int) -> None:
    """Refuse a network that does not fit in memory before any array is made.

    Raises
    ------
    TopologyError
        More than `MAX_ROUTERS` routers or `MAX_PORT_SLOTS` ports.
    """
    if routers > MAX_ROUTERS:
        raise TopologyError(key, f"{routers} routers are more than the {MAX_ROUTERS} that hopforge handles")
    if routers * ports > MAX_PORT_SLOTS:
        raise TopologyError(key, f"{routers * ports} ports are more than the {MAX_PORT_SLOTS} that hopforge handles")


def assemble(
    *,
    name: str,
    kind: str,
    peer_router: NDArray[np.integer[Any]],
    peer_port: NDArray[np.integer[Any]],
    host_router: NDArray[np.integer[Any]],
    host_port: NDArray[np.integer[Any]],
    host_address: NDArray[np.integer[Any]],
    ports: NDArray[np.integer[Any]],
    params: Mapping[str, Any],
    position: NDArray[np.float64] | None = None,
    link_cycles: NDArray[np.int32] | None = None,
) -> Topology:
    """Make a `Topology` and check our own work: links have two ends, addresses are distinct."""
    routers, width = peer_router.shape
    host_at = np.full((routers, width), -1, dtype=np.int32)
    host_at[host_router, host_port] = np.arange(len(host_router), dtype=np.int32)
    router, port = np.nonzero(peer_router >= 0)
    far_router, far_port = peer_router[router, port], peer_port[router, port]
    assert np.array_equal(peer_router[far_router, far_port], router), "a link does not lead back to its router"
    assert np.array_equal(peer_port[far_router, far_port], port), "a link does not lead back to its port"
    assert not np.any((host_at >= 0) & (peer_router >= 0)), "a port has a host and a link"
    assert len(np.unique(host_address)) == len(host_address), "two hosts share an address"
    return Topology(
        name=name, kind=kind, routers=routers, hosts=len(host_router),
        peer_router=np.ascontiguousarray(peer_router, dtype=np.int32),
        peer_port=np.ascontiguousarray(peer_port, dtype=np.int32),
        host_at=host_at,
        host_router=np.ascontiguousarray(host_router, dtype=np.int32),
        host_port=np.ascontiguousarray(host_port, dtype=np.int32),
        host_address=np.ascontiguousarray(host_address, dtype=np.int64),
        ports=np.ascontiguousarray(ports, dtype=np.int32),
        params=params, position=position, link_cycles=link_cycles,
    )

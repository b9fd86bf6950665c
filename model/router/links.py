"""Links between ports of routers."""

from typing import NamedTuple

from hopforge.model.topology import Topology

__all__ = ["End", "Link", "topology_hosts", "topology_links"]


class End(NamedTuple):
    """A port of a router."""

    router: int
    port: int


class Link(NamedTuple):
    """A channel in one direction; credits come back the same way."""

    source: End
    target: End
    latency_cycles: int = 1


def topology_links(topology: Topology, latency_cycles: int = 1) -> tuple[Link, ...]:
    """Return the links between the routers of a topology, all of the same latency."""
    channels = topology.channels()
    return tuple(
        Link(End(int(a), int(p)), End(int(b), int(q)), latency_cycles)
        for a, p, b, q in zip(
            channels.src_router, channels.src_port, channels.dst_router, channels.dst_port, strict=True
        )
    )


def topology_hosts(topology: Topology) -> tuple[End, ...]:
    """Return the port of each host."""
    return tuple(End(int(r), int(p)) for r, p in zip(topology.host_router, topology.host_port, strict=True))

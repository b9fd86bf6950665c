"""What placements need to know of a network: its hosts as a machine, and which of them are close to each other."""

from collections.abc import Sequence

from hopforge.model.config.topology import DragonflyConfig, FatTreeConfig, MeshConfig, TopologyConfig, TorusConfig
from hopforge.sim.jobs.placement import lines_of

__all__ = ["nested_groups", "network_dims"]


def nested_groups(topology: TopologyConfig, dims: Sequence[int]) -> tuple[int, ...]:
    """Return hosts of the nested groups of a network, the smallest first.

    Of a dragonfly those of a router and of a group, of a fat tree those of each subtree; else lines and planes.
    """
    if isinstance(topology, DragonflyConfig):
        sizes = (topology.p, topology.p * topology.a)
    elif isinstance(topology, FatTreeConfig):
        sizes = tuple(topology.k**level for level in range(1, topology.n + 1))
    else:
        return lines_of(dims)
    return tuple(dict.fromkeys(size for size in sizes if size > 1))


def network_dims(topology: TopologyConfig, hosts: int) -> tuple[int, ...]:
    """Return the hosts of a network in each dimension: of a mesh or torus its own, behind the hosts of a router."""
    if isinstance(topology, MeshConfig | TorusConfig):
        return tuple(size for size in (topology.hosts_per_router, *topology.radices) if size > 1) or (1,)
    return (hosts,)

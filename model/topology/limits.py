"""Does every host address of a topology fit the address section? Asked before anything is built."""

import math

from hopforge.model.config.limits import address_problems, graph_shape, group_problems
from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import DragonflyConfig, FatTreeConfig, MeshConfig, TopologyConfig, TorusConfig
from hopforge.model.topology.base import TopologyError

#: ports of a router that is simulated
MAX_PORTS = 512
#: ports up to which a mask of them is one word: all allocators, lookup engines, agents and hardware
ONE_WORD_PORTS = 64


def check_addresses(topology: TopologyConfig, address: AddressConfig) -> None:
    """Check that every digit fits its chunk and all digits fit the address width.

    `model.config` has checked this for a whole file; a builder called with sections made in Python checks it here. An
    edge list is checked when its file is read (`check_host_numbers`).

    Raises
    ------
    TopologyError
        Naming the key, the limit and the value.
    """
    for problem in (*group_problems(topology), *address_problems(topology, address)):
        raise TopologyError(problem.key, problem.reason)


def check_host_numbers(key: str, hosts: int, address: AddressConfig) -> None:
    """Check that host numbers (addresses of an arbitrary graph) fit the address width.

    Raises
    ------
    TopologyError
        More hosts than addresses.
    """
    if hosts > 1 << address.width_bits:
        raise TopologyError(
            key, f"{hosts} hosts are more than the {1 << address.width_bits} addresses of"
            f" address.width_bits={address.width_bits}",
        )


def router_count(topology: TopologyConfig) -> int | None:
    """Return the number of routers, None for an edge list."""
    if isinstance(topology, MeshConfig | TorusConfig):
        return math.prod(topology.radices)
    if isinstance(topology, FatTreeConfig):
        return int((topology.n + 1) * topology.k**topology.n)
    if isinstance(topology, DragonflyConfig):
        return topology.a * topology.groups
    shape = graph_shape(topology)
    return None if shape is None else shape[1]

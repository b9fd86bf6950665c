"""Does every host address of a topology fit the address section? Checked before anything is built."""

import math

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import DragonflyConfig, FatTreeConfig, MeshConfig, TopologyConfig, TorusConfig
from hopforge.model.topology.base import TopologyError


def check_addresses(topology: TopologyConfig, address: AddressConfig) -> None:
    """Check that every digit fits its chunk and all digits fit the address width.

    An edge list is checked when its file is read (`check_host_numbers`).

    Raises
    ------
    TopologyError
        Naming the key, the limit and the value.
    """
    if isinstance(topology, MeshConfig | TorusConfig):
        for index, radix in enumerate(topology.radices):
            _check_digit(f"topology.radices[{index}]", radix, address)
        terminal = int(topology.hosts_per_router > 1)
        if terminal:
            _check_digit("topology.hosts_per_router", topology.hosts_per_router, address)
        _check_digits("topology.radices", len(topology.radices) + terminal, address)
    elif isinstance(topology, FatTreeConfig):
        _check_digit("topology.k", topology.k, address)
        _check_digits("topology.n", topology.n + 1, address)
    elif isinstance(topology, DragonflyConfig):
        _check_digit("topology.p", topology.p, address)
        _check_digit("topology.a", topology.a, address)
        groups, most = dragonfly_groups(topology), topology.a * topology.h + 1
        if groups > most:
            raise TopologyError("topology.g", f"{groups} groups are more than the a*h + 1 = {most} that can be linked")
        group_bits = address.width_bits - 2 * address.chunk_bits
        if groups > 1 << group_bits:
            raise TopologyError(
                "topology.g",
                f"{groups} groups are more than the {1 << group_bits} values of the {group_bits} group bits"
                f" (address.width_bits={address.width_bits}, address.chunk_bits={address.chunk_bits})",
            )


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


def dragonfly_groups(config: DragonflyConfig) -> int:
    """Return the number of groups, a·h + 1 unless given."""
    return config.a * config.h + 1 if config.g is None else config.g


def grid_name(kind: str, radices: tuple[int, ...]) -> str:
    """Return a name like ``4x4x4 torus``."""
    return f"{'x'.join(map(str, radices))} {kind}"


def router_count(topology: TopologyConfig) -> int | None:
    """Return the number of routers of a regular topology, None for an edge list."""
    if isinstance(topology, MeshConfig | TorusConfig):
        return math.prod(topology.radices)
    if isinstance(topology, FatTreeConfig):
        return int((topology.n + 1) * topology.k**topology.n)
    if isinstance(topology, DragonflyConfig):
        return topology.a * dragonfly_groups(topology)
    return None


def _check_digit(key: str, values: int, address: AddressConfig) -> None:
    if values > 1 << address.chunk_bits:
        raise TopologyError(
            key, f"{values} is more than the {1 << address.chunk_bits} values of a chunk of"
            f" address.chunk_bits={address.chunk_bits}",
        )


def _check_digits(key: str, digits: int, address: AddressConfig) -> None:
    need = digits * address.chunk_bits
    if need > address.width_bits:
        raise TopologyError(
            key, f"{digits} digits of address.chunk_bits={address.chunk_bits} need {need} bits,"
            f" more than address.width_bits={address.width_bits}"
        )

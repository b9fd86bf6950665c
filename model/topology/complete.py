"""Fully connected networks, and HyperX: grids whose lines are fully connected."""

import math
from collections.abc import Mapping

import numpy as np

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import FullyConnectedConfig, HyperXConfig
from hopforge.model.topology.base import Topology, assemble, check_size
from hopforge.model.topology.graph import equal_hosts
from hopforge.model.topology.limits import check_addresses


def build_fully_connected(config: FullyConnectedConfig, address: AddressConfig) -> Topology:
    """Build a complete graph: a HyperX of one dimension.

    Raises
    ------
    TopologyError
        Too many routers, ports or hosts.
    """
    check_addresses(config, address)
    params = {"routers": config.routers, "hosts_per_router": config.hosts_per_router}
    return _build(
        (config.routers,),
        config.hosts_per_router,
        f"{config.routers} routers fully connected",
        "fully_connected",
        "topology.routers",
        params,
    )


def build_hyperx(config: HyperXConfig, address: AddressConfig) -> Topology:
    """Build a HyperX (Ahn et al. 2009) with one link between any two routers of a line.

    Router = Σ coordinate_i · Π_{j<i} S_j. Ports: hosts ``[0, c)``, then dimension by dimension the other routers of the
    line in increasing coordinate: coordinate x' of dimension i is at ``c + Σ_{j<i} (S_j − 1) + x' − (x' > x)``.

    Raises
    ------
    TopologyError
        Too many routers, ports or hosts.
    """
    check_addresses(config, address)
    params = {"sizes": config.sizes, "hosts_per_router": config.hosts_per_router}
    return _build(
        config.sizes,
        config.hosts_per_router,
        f"{'x'.join(map(str, config.sizes))} HyperX",
        "hyperx",
        "topology.sizes",
        params,
    )


def _build(
    sizes: tuple[int, ...], terminals: int, name: str, kind: str, key: str, params: Mapping[str, object]
) -> Topology:
    routers, width = math.prod(sizes), terminals + sum(size - 1 for size in sizes)
    check_size(key, routers, width)
    number = np.arange(routers, dtype=np.int64)
    peer_router = np.full((routers, width), -1, dtype=np.int32)
    peer_port = np.full((routers, width), -1, dtype=np.int32)
    stride, first = 1, terminals
    for size in sizes:
        coordinate = number // stride % size
        for other in range(size):
            here = coordinate != other
            port = first + other - (other > coordinate[here])
            peer_router[number[here], port] = number[here] + (other - coordinate[here]) * stride
            peer_port[number[here], port] = first + coordinate[here] - (coordinate[here] > other)
        stride *= size
        first += size - 1
    host_router = equal_hosts(routers, terminals)
    host = np.arange(routers * terminals, dtype=np.int64)
    return assemble(
        name=name,
        kind=kind,
        peer_router=peer_router,
        peer_port=peer_port,
        host_router=host_router,
        host_port=host % terminals,
        host_address=host,
        ports=np.full(routers, width),
        params=params,
    )

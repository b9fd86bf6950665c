"""k-ary n-meshes and n-tori with a radix per dimension."""

import math

import numpy as np

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import MeshConfig, TorusConfig
from hopforge.model.topology.base import Topology, assemble, check_size
from hopforge.model.topology.limits import check_addresses


def build_grid(config: MeshConfig | TorusConfig, address: AddressConfig) -> Topology:
    """Build a mesh or torus.

    Ports: hosts ``[0, c)``, (dimension i, +) = ``c + 2i``, (dimension i, -) = ``c + 2i + 1``. In a ring of 2 both ports
    exist and lead to the same neighbour; a dimension of radix 1 has ports without a link.

    Parameters
    ----------
    config : MeshConfig or TorusConfig
        Section `topology`.
    address : AddressConfig
        Section `address`: digit i of a host address is coordinate i, the terminal number follows if c > 1.

    Returns
    -------
    Topology

    Raises
    ------
    TopologyError
        A radix beyond its chunk, more digits than the address holds, or too many routers.
    """
    check_addresses(config, address)
    radices, terminals = config.radices, config.hosts_per_router
    dims, routers = len(radices), math.prod(radices)
    width = terminals + 2 * dims
    check_size("topology.radices", routers, width)
    number = np.arange(routers, dtype=np.int64)
    peer_router = np.full((routers, width), -1, dtype=np.int32)
    peer_port = np.full((routers, width), -1, dtype=np.int32)
    router_address = np.zeros(routers, dtype=np.int64)
    stride = 1
    for dim, radix in enumerate(radices):
        coordinate = number // stride % radix
        router_address |= coordinate << (dim * address.chunk_bits)
        if radix > 1:
            plus, minus = terminals + 2 * dim, terminals + 2 * dim + 1
            for port, far_port, step in ((plus, minus, 1), (minus, plus, -1)):
                target = coordinate + step
                linked = np.ones(routers, bool) if config.kind == "torus" else (target >= 0) & (target < radix)
                neighbour = number + (target % radix - coordinate) * stride
                peer_router[linked, port] = neighbour[linked]
                peer_port[linked, port] = far_port
        stride *= radix
    host = np.arange(routers * terminals, dtype=np.int64)
    return assemble(
        name=f"{'x'.join(map(str, radices))} {config.kind}", kind=config.kind,
        peer_router=peer_router, peer_port=peer_port,
        host_router=host // terminals, host_port=host % terminals,
        host_address=router_address[host // terminals] | (host % terminals) << (dims * address.chunk_bits),
        ports=np.full(routers, width),
        params={"radices": radices, "hosts_per_router": terminals},
    )

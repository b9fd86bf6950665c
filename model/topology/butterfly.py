"""k-ary n-flies (butterflies): hosts send into the first stage, and receive from the last."""

import numpy as np

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import ButterflyConfig
from hopforge.model.topology.base import Topology, assemble, check_size
from hopforge.model.topology.limits import check_addresses


def build_butterfly(config: ButterflyConfig, address: AddressConfig) -> Topology:
    """Build n stages of k^(n-1) routers with k inputs and k outputs each (docs/definitions/topologies.md).

    Router b of the first and of the last stage serve the same k hosts: both are router b here, whose halves have no
    input or output in common. Router b of stage s between them is s·k^(n-1) + b.

    Ports: of routers with hosts k hosts, then k links to the next stage, then k from the stage before; of the others
    k links from the stage before, then k to the next. Output o of router b of stage s leads to the router of stage
    s + 1 whose number is b with the digit of weight k^(n-s-2) replaced by o, at its input of the replaced digit. The
    way back over a link exists and is never used. With two stages a router has a link to itself.

    Raises
    ------
    TopologyError
        Too many routers or hosts.
    """
    check_addresses(config, address)
    k, n = config.k, config.n
    stage = k ** (n - 1)
    routers, width = config.routers, config.most_ports
    check_size("topology.n", routers, width)
    peer_router = np.full((routers, width), -1, np.int32)
    peer_port = np.full((routers, width), -1, np.int32)
    place = np.arange(stage, dtype=np.int64)
    for s in range(n - 1):
        weight = k ** (n - s - 2)
        digit = place // weight % k
        last = s + 1 == n - 1
        for output in range(k):
            here = s * stage + place
            there = (0 if last else (s + 1) * stage) + place + (output - digit) * weight
            there_port = (2 * k if last else 0) + digit
            peer_router[here, k + output], peer_port[here, k + output] = there, there_port
            peer_router[there, there_port], peer_port[there, there_port] = here, k + output
    ports = np.full(routers, 2 * k)
    ports[:stage] = width
    host = np.arange(stage * k, dtype=np.int64)
    return assemble(
        name=f"{k}-ary {n}-fly", kind="butterfly", peer_router=peer_router, peer_port=peer_port,
        host_router=host // k, host_port=host % k, host_address=host, ports=ports,
        params={"k": k, "n": n, "hosts_per_router": k},
    )  # fmt: skip

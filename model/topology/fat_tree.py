"""k-ary trees with n + 1 switch levels (k-ary fat trees)."""

import numpy as np

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import FatTreeConfig
from hopforge.model.topology.base import Topology, assemble, check_size
from hopforge.model.topology.limits import check_addresses, router_count


def build_fat_tree(config: FatTreeConfig, address: AddressConfig) -> Topology:
    """Build a k-ary tree: switch = level·kⁿ + Σ c_i·kⁱ (level 0 = leaf), host = Σ d_i·kⁱ.

    (l; c)-(l+1; c') are linked iff c and c' are equal except digit l: up_j (port ``k + j``) of level l sets c_l = j,
    down_j (port ``j``) of level l+1 sets c_l = j; leaf down_j holds the host with d_0 = j, d_{i+1} = c_i. The root
    level has no up ports (spec/lookup.md).

    Raises
    ------
    TopologyError
        k beyond a chunk, more digits than the address holds, or too many switches.
    """
    check_addresses(config, address)
    k, n = config.k, config.n
    per_level = k**n
    routers = router_count(config)
    assert routers is not None
    width = 2 * k if n else k
    check_size("topology.n", routers, width)
    peer_router = np.full((routers, width), -1, dtype=np.int32)
    peer_port = np.full((routers, width), -1, dtype=np.int32)
    switch = np.arange(per_level, dtype=np.int64)
    for level in range(n):
        digit = switch // k**level % k
        for up in range(k):
            lower = level * per_level + switch
            upper = (level + 1) * per_level + switch + (up - digit) * k**level
            peer_router[lower, k + up] = upper
            peer_port[lower, k + up] = digit
            peer_router[upper, digit] = lower
            peer_port[upper, digit] = k + up
    ports = np.full(routers, width)
    ports[n * per_level:] = k
    hosts = per_level * k
    host = np.arange(hosts, dtype=np.int64)
    host_address = np.zeros(hosts, dtype=np.int64)
    for i in range(n + 1):
        host_address |= (host // k**i % k) << (i * address.chunk_bits)
    return assemble(
        name=f"{k}-ary tree of {n + 1} levels", kind="fat_tree", peer_router=peer_router, peer_port=peer_port,
        host_router=host // k, host_port=host % k, host_address=host_address, ports=ports, params={"k": k, "n": n},
    )

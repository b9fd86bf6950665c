"""Dragonflies: fully connected groups, one or more global links between each pair of groups."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import DragonflyConfig
from hopforge.model.topology.base import Topology, assemble, check_size
from hopforge.model.topology.limits import check_addresses

Numbers = NDArray[np.int64]
Arrangement = Callable[[Numbers, Numbers, int], Numbers]


def _absolute(group: Numbers, index: Numbers, groups: int) -> Numbers:
    return np.where(index < group, index, index + 1)


def _relative(group: Numbers, index: Numbers, groups: int) -> Numbers:
    return (group + index + 1) % groups


def _palmtree(group: Numbers, index: Numbers, groups: int) -> Numbers:
    return (group - index - 1) % groups


def _absolute_back(group: Numbers, index: Numbers, groups: int) -> Numbers:
    return np.where(group < _absolute(group, index, groups), group, group - 1)


def _cyclic_back(group: Numbers, index: Numbers, groups: int) -> Numbers:
    return groups - 2 - index


# name: (destination group of a global link, index of the same link seen from there)
ARRANGEMENTS: dict[str, tuple[Arrangement, Arrangement]] = {
    "absolute": (_absolute, _absolute_back),
    "relative": (_relative, _cyclic_back),
    "palmtree": (_palmtree, _cyclic_back),
}


def build_dragonfly(config: DragonflyConfig, address: AddressConfig) -> Topology:
    """Build a dragonfly: router = G·a + R, host = router·p + n (spec/dragonfly.md).

    Global link i = R·h + j of a group (router R, global port j). With fewer than a·h + 1 groups the links come in
    ⌊a·h / (g−1)⌋ whole rounds: link i belongs to round i div (g−1) and leads where the arrangement sends i mod (g−1);
    it meets the link of the same round at the other side. The a·h mod (g−1) links left over stay unconnected, so
    every pair of groups has the same number of links.

    Raises
    ------
    TopologyError
        p, a or g beyond their address bits, g > a·h + 1, or too many routers.
    """
    check_addresses(config, address)
    p, a, h, g = config.p, config.a, config.h, config.groups
    routers, width = a * g, p + a - 1 + h
    check_size("topology.g", routers, width)
    number = np.arange(routers, dtype=np.int64)
    group, local = number // a, number % a
    peer_router = np.full((routers, width), -1, dtype=np.int32)
    peer_port = np.full((routers, width), -1, dtype=np.int32)
    for other in range(a):
        here = local != other
        port = p + other - (other > local[here])
        peer_router[number[here], port] = group[here] * a + other
        peer_port[number[here], port] = p + local[here] - (local[here] > other)
    rounds = a * h // (g - 1) if g > 1 else 0
    if rounds:
        forward, back = ARRANGEMENTS[config.arrangement]
        for j in range(h):
            link = local * h + j
            used = link < rounds * (g - 1)
            g_used, turn, index = group[used], link[used] // (g - 1), link[used] % (g - 1)
            far_link = turn * (g - 1) + back(g_used, index, g)
            peer_router[number[used], p + a - 1 + j] = forward(g_used, index, g) * a + far_link // h
            peer_port[number[used], p + a - 1 + j] = p + a - 1 + far_link % h
    host = np.arange(routers * p, dtype=np.int64)
    router = host // p
    return assemble(
        name=f"dragonfly p={p} a={a} h={h} g={g} ({config.arrangement})", kind="dragonfly",
        peer_router=peer_router, peer_port=peer_port, host_router=router, host_port=host % p,
        host_address=host % p | (router % a) << address.chunk_bits | (router // a) << (2 * address.chunk_bits),
        ports=np.full(routers, width),
        params={"p": p, "a": a, "h": h, "g": g, "arrangement": config.arrangement, "links_per_group_pair": rounds},
    )

"""Cascade networks (Cray XC): groups in two dimensions, linked as those of a dragonfly (definitions/topologies.md)."""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import CascadeConfig
from hopforge.model.topology.base import Topology, check_size
from hopforge.model.topology.dragonfly import ARRANGEMENTS
from hopforge.model.topology.graph import assemble_graph, equal_hosts
from hopforge.model.topology.limits import check_addresses


def build_cascade(config: CascadeConfig, address: AddressConfig) -> Topology:
    """Build a Cascade: router = G·size + y·width + x, host = router·p + n.

    Global link i = R·h + j of router R of a group, j below h, leads as that of a dragonfly of such groups does.

    Raises
    ------
    TopologyError
        Too many routers, ports or hosts.
    """
    check_addresses(config, address)
    size, groups = config.size, config.groups
    routers = groups * size
    check_size("topology.sizes", routers, config.hosts_per_router + config.links_per_router)
    inside = _lines(config)
    inside = inside[None] + size * np.arange(groups, dtype=np.int64)[:, None, None]
    width, height = config.sizes
    return assemble_graph(
        np.concatenate([inside.reshape(-1, 2), _between(config)]),
        name=f"Cascade of {groups} groups of {width}x{height} routers ({config.arrangement})",
        kind="cascade",
        host_router=equal_hosts(routers, config.hosts_per_router),
        params={
            "sizes": config.sizes, "links": config.links, "h": config.h, "g": groups,
            "hosts_per_router": config.hosts_per_router, "arrangement": config.arrangement,
            "links_per_group_pair": config.links_per_group_pair,
        },
        key="topology.sizes",
        routers=routers,
    )  # fmt: skip


def _lines(config: CascadeConfig) -> NDArray[np.int64]:
    """Links of the first group: int64[link, 2], parallel ones one behind the other."""
    width, height = config.sizes
    found = []
    for router in range(config.size):
        x, y = router % width, router // width
        found += [(router, y * width + other) for other in range(x + 1, width)] * config.links[0]
        found += [(router, other * width + x) for other in range(y + 1, height)] * config.links[1]
    return np.array(found, np.int64).reshape(-1, 2)


def _between(config: CascadeConfig) -> NDArray[np.int64]:
    """Links between groups, once each: int64[link, 2]."""
    groups, rounds = config.groups, config.links_per_group_pair
    if not rounds:
        return np.zeros((0, 2), np.int64)
    forward, back = ARRANGEMENTS[config.arrangement]
    group, link = (
        axis.ravel() for axis in np.meshgrid(np.arange(groups), np.arange(rounds * (groups - 1)), indexing="ij")
    )
    turn, index = link // (groups - 1), link % (groups - 1)
    goal = forward(group, index, groups)
    far = turn * (groups - 1) + back(group, index, groups)
    ends = np.stack([group * config.size + link // config.h, goal * config.size + far // config.h], axis=1)
    return ends[group < goal].astype(np.int64)

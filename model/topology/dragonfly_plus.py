"""Dragonfly+ networks, also called Megafly: groups of leaves and spines (docs/definitions/topologies.md)."""

import numpy as np

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import DragonflyPlusConfig
from hopforge.model.topology.base import Topology, check_size
from hopforge.model.topology.graph import assemble_graph
from hopforge.model.topology.limits import check_addresses


def build_dragonfly_plus(config: DragonflyPlusConfig, address: AddressConfig) -> Topology:
    """Build a Dragonfly+: group after group, in each the leaves before the spines.

    Global link n = i·h + j of spine i goes to the group 1 + n mod (g − 1) further on, round n div (g − 1) of the links
    of that pair.

    Raises
    ------
    TopologyError
        Too many routers, ports or hosts.
    """
    check_addresses(config, address)
    leaves, spines, h, groups = config.leaves, config.spines, config.h, config.groups
    size = leaves + spines
    routers = groups * size
    check_size("topology.spines", routers, max(config.hosts_per_router + spines, leaves + h))
    first = size * np.arange(groups, dtype=np.int64)
    leaf, spine = (axis.ravel() for axis in np.meshgrid(np.arange(leaves), leaves + np.arange(spines), indexing="ij"))
    inside = first[:, np.newaxis, np.newaxis] + np.stack([leaf, spine], axis=1)
    number = np.arange(spines * h, dtype=np.int64)
    step, turn = number % (groups - 1) + 1, number // (groups - 1)
    # from the other side the step is g − step, in the same round
    back = turn * (groups - 1) + groups - step - 1
    group = np.arange(groups, dtype=np.int64)[:, np.newaxis]
    here = group * size + leaves + number // h
    there = (group + step) % groups * size + leaves + back // h
    once = (group < (group + step) % groups) & np.ones_like(here, dtype=bool)
    across = np.stack([here[once], there[once]], axis=1)
    hosts = np.arange(config.hosts, dtype=np.int64) // config.hosts_per_router
    return assemble_graph(
        np.concatenate([inside.reshape(-1, 2), across]),
        name=f"Dragonfly+ of {groups} groups of {leaves} leaves and {spines} spines",
        kind="dragonfly_plus",
        host_router=hosts // leaves * size + hosts % leaves,
        params={
            "leaves": leaves, "spines": spines, "h": h, "g": groups, "hosts_per_router": config.hosts_per_router,
        },
        key="topology.spines",
        routers=routers,
    )  # fmt: skip

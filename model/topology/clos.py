"""Folded Clos networks of two or three levels, oversubscribed or not (docs/definitions/topologies.md)."""

import numpy as np

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import ClosConfig
from hopforge.model.topology.base import Topology, check_size
from hopforge.model.topology.graph import assemble_graph, linked_hosts
from hopforge.model.topology.limits import check_addresses


def build_clos(config: ClosConfig, address: AddressConfig) -> Topology:
    """Build a folded Clos network: leaves of all pods, then middles of all pods, then roots.

    Middle m of a pod is linked to the roots m·s … m·s + s − 1, s of them, or to all.

    Raises
    ------
    TopologyError
        Too many routers, ports or hosts.
    """
    check_addresses(config, address)
    pods, leaves, middles, roots = config.pods, config.leaves, config.middles, config.roots
    below, above = pods * leaves, pods * middles
    routers = below + above + roots
    check_size("topology.leaves", routers, config.hosts_per_router + middles + roots)
    pod, leaf, middle = (
        axis.ravel() for axis in np.meshgrid(np.arange(pods), np.arange(leaves), np.arange(middles), indexing="ij")
    )
    edges = [np.stack([pod * leaves + leaf, below + pod * middles + middle], axis=1)]
    up = config.roots_of_middle
    if roots:
        pod, middle, link = (
            axis.ravel() for axis in np.meshgrid(np.arange(pods), np.arange(middles), np.arange(up), indexing="ij")
        )
        root = link if config.uplinks == "all" else middle * up + link
        edges.append(np.stack([below + pod * middles + middle, below + above + root], axis=1))
    levels = 3 if roots else 2
    return assemble_graph(
        np.concatenate(edges).astype(np.int64),
        name=f"folded Clos of {levels} levels and {below} leaves",
        kind="clos",
        host_router=linked_hosts(below, config.hosts_per_router, config.host_links),
        params={
            "pods": pods, "leaves": leaves, "middles": middles, "roots": roots, "uplinks": config.uplinks,
            "hosts_per_router": config.hosts_per_router,
            **({"host_links": config.host_links} if config.host_links > 1 else {}),
        },
        key="topology.leaves",
        routers=routers,
    )  # fmt: skip

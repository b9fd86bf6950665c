"""Switches at the top of racks under director switches, which are folded Clos networks inside.

docs/definitions/topologies.md is the definition.
"""

import numpy as np

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import DirectorConfig
from hopforge.model.topology.base import Topology, check_size
from hopforge.model.topology.graph import assemble_graph, linked_hosts
from hopforge.model.topology.limits import check_addresses


def build_director(config: DirectorConfig, address: AddressConfig) -> Topology:
    """Build racks and directors: the switches of all racks, then each director's line cards and fabric cards.

    The links of the racks to a director, numbered rack by rack, are dealt to its line cards in turn. Every line card is
    linked to every fabric card of its director.

    Raises
    ------
    TopologyError
        Too many routers, ports or hosts.
    """
    check_addresses(config, address)
    racks, directors, lines, fabrics = config.racks, config.directors, config.lines, config.fabrics
    check_size("topology.racks", config.routers, config.most_ports)
    each = config.uplinks // directors
    first = racks + np.arange(directors) * (lines + fabrics)  # its first line card
    rack, director, link = (
        axis.ravel() for axis in np.meshgrid(np.arange(racks), np.arange(directors), np.arange(each), indexing="ij")
    )
    down = np.stack([rack, first[director] + (rack * each + link) % lines], axis=1)
    director, line, fabric = (
        axis.ravel() for axis in np.meshgrid(np.arange(directors), np.arange(lines), np.arange(fabrics), indexing="ij")
    )
    inside = np.stack([first[director] + line, first[director] + lines + fabric], axis=1)
    return assemble_graph(
        np.concatenate([down, inside]).astype(np.int64),
        name=f"{racks} racks under {directors} director{'s' if directors > 1 else ''} of {lines} line cards",
        kind="director",
        host_router=linked_hosts(racks, config.hosts_per_router, config.host_links),
        params={
            "racks": racks, "directors": directors, "lines": lines, "fabrics": fabrics, "uplinks": config.uplinks,
            "hosts_per_router": config.hosts_per_router, "host_links": config.host_links,
        },
        key="topology.racks",
        routers=config.routers,
    )  # fmt: skip

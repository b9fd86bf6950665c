"""Networks as arrays: one builder per kind, found by name in `TOPOLOGIES`.

May import: model.config, model.output, model.workload, model.numbers. Read first: `base.py`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import TopologyConfig
from hopforge.model.shared import once
from hopforge.model.topology.base import Channels, Topology, TopologyError
from hopforge.model.topology.butterfly import build_butterfly
from hopforge.model.topology.cascade import build_cascade
from hopforge.model.topology.clos import build_clos
from hopforge.model.topology.complete import build_fully_connected, build_hyperx
from hopforge.model.topology.director import build_director
from hopforge.model.topology.dragonfly import build_dragonfly
from hopforge.model.topology.dragonfly_plus import build_dragonfly_plus
from hopforge.model.topology.edge_list import build_edge_list
from hopforge.model.topology.fat_tree import build_fat_tree
from hopforge.model.topology.graph_file import read_edges
from hopforge.model.topology.grid import build_grid
from hopforge.model.topology.limits import check_addresses
from hopforge.model.topology.polarfly import build_polarfly
from hopforge.model.topology.random_graph import build_layout_random, build_random_regular
from hopforge.model.topology.slim_fly import build_slim_fly
from hopforge.model.topology.tiers import build_tiers

__all__ = ["TOPOLOGIES", "Channels", "Topology", "TopologyError", "build", "check_addresses", "read_edges"]

#: kind of a `topology` section → builder(section, address section)
TOPOLOGIES: dict[str, Callable[..., Topology]] = {
    "mesh": build_grid,
    "torus": build_grid,
    "fat_tree": build_fat_tree,
    "butterfly": build_butterfly,
    "dragonfly": build_dragonfly,
    "fully_connected": build_fully_connected,
    "hyperx": build_hyperx,
    "slim_fly": build_slim_fly,
    "polarfly": build_polarfly,
    "dragonfly_plus": build_dragonfly_plus,
    "cascade": build_cascade,
    "clos": build_clos,
    "director": build_director,
    "tiers": build_tiers,
    "random_regular": build_random_regular,
    "layout_random": build_layout_random,
    "edge_list": build_edge_list,
}


def build(topology: TopologyConfig, address: AddressConfig, folder: Path = Path()) -> Topology:
    """Build the network of a `topology` section.

    Parameters
    ----------
    topology : TopologyConfig
        The section.
    address : AddressConfig
        Section `address`, which fixes `Topology.host_address`.
    folder : Path
        Where a relative file name of the section starts (an edge list's).

    Raises
    ------
    TopologyError
        Naming the key (or file and line), the limit and the value.
    """
    more: dict[str, Any] = {"folder": folder} if topology.kind == "edge_list" else {}
    return once(("network", topology, address, folder), lambda: TOPOLOGIES[topology.kind](topology, address, **more))

"""A routing algorithm of one's own: west-first on a 2-D mesh (Glass and Ni 1992; docs/guides/routing-of-your-own.md).

A packet that has to go west does so first; after that it takes any minimal way east, north or south. No turn leads back
west, hence no cycle, with any number of virtual channels.
"""

from typing import Any

import numpy as np

from hopforge.model.routing import RoutingError, RoutingPlan, Topology, candidate, relation

EAST, WEST, NORTH, SOUTH = 1, 2, 3, 4  # ports of a mesh with one host a router: 0 is the host, then +x, −x, +y, −y


def west_first(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    """Write the candidates of `packet` at `router` to `out` and return their number."""
    width, vcs = table[0], table[1]
    dx = packet.dst % width - router % width
    dy = packet.dst // width - router // width
    if dx == 0 and dy == 0:
        out[0] = candidate(0, vcs)
        return 1
    if dx < 0:
        out[0] = candidate(WEST, vcs)
        return 1
    count = 0
    if dx > 0:
        out[count] = candidate(EAST, vcs)
        count += 1
    if dy != 0:
        out[count] = candidate(NORTH if dy > 0 else SOUTH, vcs)
        count += 1
    return count


def prepare(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Fill the table that `west_first` reads; called once per run."""
    if topology.kind != "mesh" or len(topology.params["radices"]) != 2 or topology.hosts != topology.routers:
        raise RoutingError(f"west_first.py needs a 2-D mesh with one host a router, not {topology.name}")
    table = np.array([topology.params["radices"][0], (1 << vcs) - 1], np.int32)
    return RoutingPlan(relation(west_first), table, max_candidates=2)

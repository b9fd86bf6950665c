"""Dimension order on a HyperX: one hop for every dimension in which the coordinates differ."""

from typing import Any

import numpy as np

from hopforge.model.network.core.candidates import candidate
from hopforge.model.routing.contract.plan import RoutingPlan, all_vcs, regular, relation
from hopforge.model.topology import Topology

# table: 0 dimensions, 1 host ports, 2 all VCs, 3 … sizes
_N, _HOSTS, _ALL, _SIZES = range(4)


def _dor_hyperx(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    hosts = table[_HOSTS]
    goal = packet.dst // hosts
    if goal == router:
        out[0] = candidate(packet.dst - goal * hosts, table[_ALL])
        return 1
    here, first = router, hosts
    for i in range(table[_N]):
        size = table[_SIZES + i]
        x, y = here % size, goal % size
        if x != y:
            out[0] = candidate(first + y - (1 if y > x else 0), table[_ALL])
            return 1
        first += size - 1
        here //= size
        goal //= size
    return 0


def dimension_order(topology: Topology, vcs: int) -> RoutingPlan:
    """Prepare dimension order on a HyperX or a fully connected network; any number of VCs will do."""
    sizes = topology.params.get("sizes", (topology.routers,))
    header = [len(sizes), int(topology.params["hosts_per_router"]), all_vcs(vcs)]
    plan = RoutingPlan(relation(_dor_hyperx), np.array([*header, *sizes], np.int32))
    return regular(plan, lambda smaller: dimension_order(smaller, vcs))

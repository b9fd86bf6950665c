"""BookSim's minimal routing on any graph: one next hop by its Dijkstra, any virtual channel (booksim-routing.md)."""

from typing import Any

import numpy as np

from hopforge.model.network.core.candidates import candidate
from hopforge.model.routing.contract.plan import RoutingError, RoutingPlan, all_vcs, register, relation
from hopforge.model.topology import Topology
from hopforge.model.topology.routing_table import refuse_one_way

# table: 0 routers, 1 all VCs, 2 start of the hosts' routers, 3 of the hosts' ports, 4 of next ports [router, router]
_R, _ALL, _HOME, _PORT, _NEXT, _FIRST = range(6)
#: routers of a network whose table is made
_MOST_ROUTERS = 4096


def _booksim_min(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    there = table[table[_HOME] + packet.dst]
    if there == router:
        out[0] = candidate(table[table[_PORT] + packet.dst], table[_ALL])
        return 1
    port = table[table[_NEXT] + router * table[_R] + there]
    if port < 0:  # its switch has failed
        return 0
    out[0] = candidate(port, table[_ALL])
    return 1


def first_ports(topology: Topology, start: int) -> list[int]:
    """Port of the way from `start` to every router, -1: none (or `start` itself).

    Lengths are the latencies of links (1 where the file says none). Of routers equally far the one of the lowest number
    is taken first; a later way replaces an earlier one only if it is shorter.
    """
    far = 1 << 60
    distance, first = [far] * topology.routers, [-1] * topology.routers
    distance[start] = 0
    left = set(range(topology.routers))
    while left:
        here = min(left, key=lambda router: (distance[router], router))
        left.remove(here)
        if distance[here] == far:
            break
        peers = topology.peer_router[here]
        for port in sorted(np.flatnonzero(peers >= 0).tolist(), key=lambda port: (int(peers[port]), port)):
            there = int(peers[port])
            cycles = 1 if topology.link_cycles is None else max(int(topology.link_cycles[here, port]), 1)
            if distance[here] + cycles < distance[there]:
                distance[there] = distance[here] + cycles
                first[there] = port if here == start else first[here]
    return first


@register("booksim_min")
def prepare_booksim_min(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Prepare one way for every pair; deadlocks on graphs with cycles."""
    R, H = topology.routers, topology.hosts
    refuse_one_way(topology)
    if R > _MOST_ROUTERS:
        raise RoutingError(f"routing.algorithm booksim_min takes at most {_MOST_ROUTERS} routers, not {R}")
    header = [R, all_vcs(vcs), _FIRST, _FIRST + H, _FIRST + 2 * H]
    ports = [first_ports(topology, router) for router in range(R)]
    table = np.concatenate([np.array(header), topology.host_router, topology.host_port, np.array(ports).reshape(-1)])
    return RoutingPlan(relation(_booksim_min), table.astype(np.int32))

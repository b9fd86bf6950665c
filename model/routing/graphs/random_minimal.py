"""At every router one of the ports on shortest ways, drawn at random; any virtual channel (booksim-routing.md)."""

from typing import Any

import numpy as np

from hopforge.model.network.core.candidates import candidate
from hopforge.model.network.core.draws import draw_below
from hopforge.model.routing.contract.plan import RoutingError, RoutingPlan, all_vcs, register, relation
from hopforge.model.topology import Topology
from hopforge.model.topology.routing_table import distances

# table: 0 routers, 1 all VCs, 2 start of the hosts' routers, 3 of the hosts' ports, 4 of the lists [router, router]
# (their starts, one entry more), then the lists of ports
_R, _ALL, _HOME, _PORT, _LISTS, _FIRST = range(6)


def _random_minimal(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    there = table[table[_HOME] + packet.dst]
    if there == router:
        out[0] = candidate(table[table[_PORT] + packet.dst], table[_ALL])
        return 1
    place = table[_LISTS] + router * table[_R] + there
    first, last = table[place], table[place + 1]
    if first == last:  # its switch has failed
        return 0
    chosen = draw_below(net, router, last - first) if last - first > 1 else 0
    out[0] = candidate(table[first + chosen], table[_ALL])
    return 1


def _all_minimal(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    there = table[table[_HOME] + packet.dst]
    if there == router:
        out[0] = candidate(table[table[_PORT] + packet.dst], table[_ALL])
        return 1
    place = table[_LISTS] + router * table[_R] + there
    first, last = table[place], table[place + 1]
    for i in range(last - first):
        out[i] = candidate(table[first + i], table[_ALL])
    return last - first


@register("booksim_nca")
def prepare_booksim_nca(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Draw one of all ports on shortest ways at every router, with any VC: free from deadlock on trees only."""
    R, H = topology.routers, topology.hosts
    distance = distances(topology)
    lists: list[int] = []
    starts = [0]
    for here in range(R):
        links = np.flatnonzero(topology.peer_router[here] >= 0)
        closer = distance[topology.peer_router[here][links]] == distance[here][None, :] - 1
        for there in range(R):
            lists += links[closer[:, there]].tolist() if here != there and distance[here, there] > 0 else []
            starts.append(len(lists))
    home = _FIRST
    place = home + 2 * H
    first = place + R * R + 1
    if first + len(lists) > np.iinfo(np.int32).max:
        raise RoutingError(f"routing.algorithm booksim_nca: its table of {first + len(lists)} entries is too large")
    header = np.array([R, all_vcs(vcs), home, home + H, place])
    table = np.concatenate(
        [header, topology.host_router, topology.host_port, np.array(starts) + first, np.array(lists, np.int64)]
    ).astype(np.int32)
    most = int(np.diff(starts).max(initial=1))
    return RoutingPlan(
        relation(_random_minimal), table, max_candidates=max(most, 1), random=most > 1,
        every=relation(_all_minimal) if most > 1 else None,
    )  # fmt: skip

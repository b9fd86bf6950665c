"""Routing by tables over parallel links: the algorithm names a neighbour by one port, this chooses among its links."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numba import int64

from hopforge.model.kernel.compile import around, both
from hopforge.model.kernel.memory import int32s
from hopforge.model.network.core.candidates import candidate_level, candidate_port, with_port
from hopforge.model.network.core.net_record import ROUTE_SIGNATURE
from hopforge.model.routing.contract.plan import RoutingPlan
from hopforge.model.topology import Topology
from hopforge.model.topology.parallel_links import LinkRule, link_number, parallel_ports

# table: 0 ports, 1 most parallel links, 2 start of the numbers of links [router, port], 3 of their ports
# [router, port, number], 4 of the table of the algorithm itself
_P, _MOST, _COUNT, _PORTS, _OWN, _FIRST = range(6)


def over_parallel_links(plan: RoutingPlan, topology: Topology, rule: LinkRule) -> RoutingPlan:
    """Spread what a relation sends to a neighbour over all links to it.

    Every link is a channel of its own to the proof. With `hash` the proof takes all links of a neighbour in place of
    the chosen one. An escape (a candidate of a higher level) stays on the link of the destination's number.

    Parameters
    ----------
    plan : RoutingPlan
        Its relation gives one of the ports to a neighbour, whichever link a packet came by.
    topology : Topology
        The network.
    rule : str
        ``routing.links``; between two routers `own_first` is `destination`.
    """
    found = parallel_ports(topology)
    if not found.some:
        return plan
    parts = [found.links, found.ports, plan.table]
    starts = np.cumsum([_FIRST, *(part.size for part in parts[:-1])])
    header = np.array([topology.max_ports, found.ports.shape[2], *starts])
    table = np.concatenate([header, *(part.reshape(-1) for part in parts)]).astype(np.int32)
    most = plan.max_candidates * found.ports.shape[2]
    if rule == "adaptive":
        return replace(plan, route=_over_all(plan.route), table=table, max_candidates=most, rows=())
    if rule == "hash":
        return replace(
            plan, route=_over_chosen(plan.route, True), table=table, every=_over_all(plan.route), max_candidates=most,
            by_source=True, rows=(),
        )  # fmt: skip
    return replace(plan, route=_over_chosen(plan.route, False), table=table, rows=())


@both()
def _link(table: Any, router: int, packed: int, number: int) -> int:
    """Return the candidate with the port of the link that has the number."""
    place = router * table[_P] + candidate_port(packed)
    chosen = number % table[table[_COUNT] + place]
    return int(with_port(packed, table[table[_PORTS] + place * table[_MOST] + chosen]))


@cache
def _over_chosen(route: Any, hashed: bool) -> Any:
    """Compile the relation around another one that takes the link of a packet's number."""

    def by_destination(
        router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
    ) -> int:
        own = int32s(net.table + 4 * int64(table[_OWN]))  # `table` is at net.table
        count = route(router, in_port, in_vc, packet, net, own, memory, out)
        for k in range(count):
            out[k] = _link(table, router, out[k], packet.dst)
        return count

    def by_hash(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
        own = int32s(net.table + 4 * int64(table[_OWN]))
        count = route(router, in_port, in_vc, packet, net, own, memory, out)
        for k in range(count):
            escape = candidate_level(out[k]) > 0
            number = packet.dst if escape else link_number(packet.src, packet.dst, True)
            out[k] = _link(table, router, out[k], number)
        return count

    return around(ROUTE_SIGNATURE, by_hash if hashed else by_destination)


@cache
def _over_all(route: Any) -> Any:
    """Compile the relation around another one that offers all links; the escape is that of the destination."""

    def over_all(
        router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
    ) -> int:
        own = int32s(net.table + 4 * int64(table[_OWN]))
        count = route(router, in_port, in_vc, packet, net, own, memory, out)
        total = 0
        for k in range(count):
            place = router * table[_P] + candidate_port(out[k])
            total += table[table[_COUNT] + place] if candidate_level(out[k]) == 0 else 1
        end = total
        for back in range(count):  # from the last one on, since links need more room
            packed = out[count - 1 - back]
            if candidate_level(packed) > 0:
                end -= 1
                out[end] = _link(table, router, packed, packet.dst)
                continue
            place = router * table[_P] + candidate_port(packed)
            links = table[table[_COUNT] + place]
            for j in range(links):
                end -= 1
                # the first one, which is taken where all queues are alike, is that of the destination's number
                link = (packet.dst + links - 1 - j) % links
                out[end] = with_port(packed, table[table[_PORTS] + place * table[_MOST] + link])
        return total

    return around(ROUTE_SIGNATURE, over_all)

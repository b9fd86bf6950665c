"""Valiant and UGAL of the BookSim of PolarFly's authors, on any graph by a table of next hops (booksim-routing.md).

All is decided at the first router: ``packet.via``, and in ``phase`` the part (0 nothing decided, 1 to the intermediate
router, 2 to the destination). The VC is any, or the number of links already travelled.
"""

from typing import Any

import numpy as np

from hopforge.model.kernel.compile import both
from hopforge.model.network.core.candidates import candidate
from hopforge.model.network.core.draws import draw_below
from hopforge.model.network.core.records import output_vc
from hopforge.model.routing.contract.detour_rules import is_congested
from hopforge.model.routing.contract.occupancy import used_credits
from hopforge.model.routing.contract.plan import RoutingError, RoutingPlan, all_vcs, need_vcs, register, relation
from hopforge.model.topology import Topology
from hopforge.model.topology.routing_table import distances

# table: 0 routers, 1 all VCs, 2 rule, 3 by hop, 4 longest shortest way, 5 hosts, 6 start of the hosts' routers, 7 of
# the hosts' ports, 8 of next ports [router, router], 9 of the kinds of a leg [router, router], 10 of links
# [router, port], 11 ports of a router, 12 start of the routers of the hosts in increasing order, 13 of the place where
# each router begins among them (one entry more), 14 of the neighbours in increasing order [router, port], then -1
(_R, _ALL, _RULE, _BY_HOP, _DIAMETER, _HOSTS, _HOME, _PORT, _NEXT, _LEG, _LINK, _PORTS, _BY_ROUTER, _BEGIN,
 _AROUND, _FIRST) = range(16)  # fmt: skip
_VALIANT, _UGAL, _TWO_THIRDS = range(3)
_UNDECIDED, _TO_VIA, _FINAL = range(3)
#: a leg counts one link, two, or (adjacent routers with a common neighbour) one or two by a coin
_ONE, _TWO, _EITHER = range(3)
_CANDIDATES = 4


@both()
def _next_port(table: Any, router: int, goal: int) -> int:
    return table[table[_NEXT] + router * table[_R] + goal]


@both()
def _leg(net: Any, table: Any, router: int, a: int, b: int) -> int:
    kind = table[table[_LEG] + a * table[_R] + b]
    if kind == _EITHER:
        return 1 + draw_below(net, router, 2)
    return 2 if kind == _TWO else 1


@both()
def _draw_other(net: Any, table: Any, router: int, there: int) -> int:
    """Router of a random host that is at neither of the two routers."""
    low, high = min(router, there), max(router, there)
    first, second = table[_BEGIN] + low, table[_BEGIN] + high
    left = table[first + 1] - table[first]
    right = table[second + 1] - table[second] if low != high else 0
    drawn = draw_below(net, router, table[_HOSTS] - left - right)
    if drawn >= table[first]:
        drawn += left
    if low != high and drawn >= table[second]:
        drawn += right
    return table[table[_BY_ROUTER] + drawn]


@both()
def _neighbour(table: Any, router: int, place: int) -> int:
    return table[table[_AROUND] + router * table[_PORTS] + place] if place < table[_PORTS] else -1


@both()
def _draw_behind(net: Any, table: Any, router: int, there: int, first: int) -> int:
    """Neighbour of a neighbour, at neither end; none: the router itself."""
    count, place = 0, 0
    while _neighbour(table, first, place) >= 0:
        other = _neighbour(table, first, place)
        count += other != router and other != there  # noqa: PLR1714 (numba: no tuple of two types)
        place += 1
    if count == 0:
        return router
    drawn, place = draw_below(net, router, count), 0
    while True:
        other = _neighbour(table, first, place)
        if other != router and other != there:  # noqa: PLR1714
            if drawn == 0:
                return other
            drawn -= 1
        place += 1


@both()
def _two_thirds_via(net: Any, table: Any, router: int, there: int) -> int:
    """Minimal below two thirds of a buffer; else over the neighbour behind the least used port, the first of equals."""
    direct = _next_port(table, router, there)
    buffer = output_vc(net, (router * net.ports + direct) * net.vcs).depth
    if not is_congested(used_credits(net, router, direct), buffer):
        return router
    best, least, place = -1, 0, 0
    while _neighbour(table, router, place) >= 0:
        other = _neighbour(table, router, place)
        used = used_credits(net, router, _next_port(table, router, other))
        if best < 0 or used < least:
            best, least = other, used
        place += 1
    if _next_port(table, router, best) == direct:
        return router
    if table[table[_LEG] + router * table[_R] + there] != _TWO:
        return _draw_behind(net, table, router, there, best)
    return best


@both()
def _draw_via(net: Any, table: Any, router: int, there: int) -> int:
    """Intermediate router; the packet's own: none."""
    if table[_RULE] == _VALIANT:
        return _draw_other(net, table, router, there)
    if table[_RULE] == _TWO_THIRDS:
        return _two_thirds_via(net, table, router, there)
    best, cost = router, 0
    for i in range(_CANDIDATES):
        via = _draw_other(net, table, router, there)
        links = _leg(net, table, router, router, via) + _leg(net, table, router, via, there)
        one = links * used_credits(net, router, _next_port(table, router, via))
        if i == 0 or one < cost:
            best, cost = via, one
    direct = _leg(net, table, router, router, there) * used_credits(net, router, _next_port(table, router, there))
    return router if direct <= cost else best


@both()
def _links_before(table: Any, router: int, in_port: int, in_vc: int) -> int:
    return in_vc + 1 if table[table[_LINK] + router * table[_PORTS] + in_port] == 1 else 0


@both()
def _vcs(table: Any, links: int) -> int:
    return 1 << links if table[_BY_HOP] == 1 else table[_ALL]


@both()
def _least_used_vc(net: Any, router: int, port: int) -> int:
    """Mask of the virtual channel with the fewest used credits, the lowest of equals."""
    first = (router * net.ports + port) * net.vcs
    best, least = 0, output_vc(net, first).depth - output_vc(net, first).credits
    for v in range(1, net.vcs):
        used = output_vc(net, first + v).depth - output_vc(net, first + v).credits
        if used < least:
            best, least = v, used
    return 1 << best


def _detour(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    there = table[table[_HOME] + packet.dst]
    first = table[table[_LINK] + router * table[_PORTS] + in_port] == 0
    chosen = first and table[_RULE] == _TWO_THIRDS and table[_BY_HOP] == 0
    if packet.phase == _UNDECIDED and (there != router or table[_RULE] == _VALIANT):
        packet.via = _draw_via(net, table, router, there)
        packet.phase = _FINAL if packet.via == router else _TO_VIA
    elif packet.phase == _TO_VIA and packet.via == router:
        packet.phase = _FINAL
    if there == router and packet.phase != _TO_VIA:
        port = table[table[_PORT] + packet.dst]
        out[0] = candidate(port, _least_used_vc(net, router, port) if chosen else table[_ALL])
        return 1
    port = _next_port(table, router, packet.via if packet.phase == _TO_VIA else there)
    vcs = _vcs(table, _links_before(table, router, in_port, in_vc))
    out[0] = candidate(port, _least_used_vc(net, router, port) if chosen else vcs)
    return 1


def _every_detour(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    there = table[table[_HOME] + packet.dst]
    before = _links_before(table, router, in_port, in_vc)
    count = 0
    if table[_BY_HOP] == 0 or before < table[_DIAMETER]:  # it may still be on its way to the intermediate router
        for port in range(table[_PORTS]):
            if table[table[_LINK] + router * table[_PORTS] + port] == 1:
                out[count] = candidate(port, _vcs(table, before))
                count += 1
    if there == router:
        out[count] = candidate(table[table[_PORT] + packet.dst], table[_ALL])
    else:
        out[count] = candidate(_next_port(table, router, there), _vcs(table, before))
    return count + 1


def _prepare(topology: Topology, vcs: int, name: str, rule: int, by_hop: bool) -> RoutingPlan:
    distance = distances(topology)
    diameter, R = int(distance.max()), topology.routers
    homes = len(np.unique(topology.host_router))
    if (distance < 0).any() or homes < 3:
        raise RoutingError(
            f"routing.algorithm {name} needs a connected network with hosts at 3 routers or more, not {topology.name}"
        )
    if by_hop:
        why = "one for each link of the longest way over another router"
        need_vcs(f"{name} on {topology.name} (diameter {diameter})", vcs, 2 * diameter, why)
    ports = np.full((R, R), -1, np.int64)
    adjacent = np.zeros((R, R), np.int64)
    for here in range(R):
        for port in np.flatnonzero(topology.peer_router[here] >= 0)[::-1]:
            peer = topology.peer_router[here, port]
            adjacent[here, peer] = 1
            ports[here, distance[peer] == distance[here] - 1] = port  # the lowest one stays
    triangle = adjacent @ adjacent > 0
    leg = np.where(adjacent == 0, _TWO, np.where(triangle, _EITHER, _ONE))
    linked = topology.peer_router >= 0
    by_router = np.sort(topology.host_router)
    begin = np.searchsorted(by_router, np.arange(R + 1))
    around = np.where(linked, topology.peer_router, R).astype(np.int64)
    around.sort(axis=1)
    around[around == R] = -1
    arrays = (topology.host_router, topology.host_port, ports, leg, linked, by_router, begin, around)
    flat = [np.asarray(one, np.int64).reshape(-1) for one in arrays]
    starts = [_FIRST + sum(len(one) for one in flat[:i]) for i in range(len(flat))]
    header = [R, all_vcs(vcs), rule, int(by_hop), diameter, topology.hosts]
    header += [*starts[:5], topology.max_ports, *starts[5:]]
    table = np.concatenate([np.array(header), *flat]).astype(np.int32)
    return RoutingPlan(
        relation(_detour), table, max_candidates=topology.max_ports + 1, phases=3, uses_via=True, random=True,
        every=relation(_every_detour), compares_vcs=rule == _TWO_THIRDS and not by_hop,
    )  # fmt: skip


def _register(name: str, meaning: str, rule: int, *, by_hop: bool) -> None:
    def prepare(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
        return _prepare(topology, vcs, name, rule, by_hop)

    prepare.__doc__ = meaning
    register(name)(prepare)


_register("booksim_val", "Over the router of a random other host; any VC.", _VALIANT, by_hop=False)
_register("booksim_val_by_hop", "The same; VC = links travelled.", _VALIANT, by_hop=True)
_register("booksim_ugal_four", "Minimal, or over the cheapest of four drawn routers; any VC.", _UGAL, by_hop=False)
_register("booksim_ugal_four_by_hop", "The same; VC = links travelled.", _UGAL, by_hop=True)
_register("booksim_ugal_pf", "Minimal below 2/3 of a buffer, or over a neighbour; any VC.", _TWO_THIRDS, by_hop=False)
_register("booksim_ugal_pf_by_hop", "The same; VC = links travelled.", _TWO_THIRDS, by_hop=True)

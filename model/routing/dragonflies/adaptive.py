"""Non-minimal and adaptive routing on dragonflies: Valiant, UGAL, PAR (dragonfly-routing.md, spec/dragonfly.md).

A packet keeps in ``phase`` what has been decided, and in ``via`` the intermediate group or router. Its virtual channel
follows from the part of the way: four roles, and a class of its own for the minimal way in the source group.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from hopforge.model.kernel.compile import both
from hopforge.model.network.core.candidates import candidate
from hopforge.model.network.core.draws import draw_below
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import output_vc
from hopforge.model.routing.contract.plan import RoutingPlan, register, regular, relation
from hopforge.model.routing.dragonflies.ways import (
    FREE0,
    GROUPS,
    PORTS,
    VCS,
    WHOLE,
    A,
    P,
    add_global,
    add_local,
    add_minimal,
    group_of,
    joined,
    need_dragonfly,
    next_between,
    number_of_packet,
    port_to_group,
    port_to_host,
    port_to_router,
    router_of,
    ways_table,
)
from hopforge.model.topology import Topology

#: what has been decided about a packet: nothing yet; the minimal way; a detour; a detour whose middle is behind it
UNDECIDED, MINIMAL, DETOUR, RETURN = range(4)


@both()
def queued(net: Net, table: Any, router: int, port: int) -> int:
    """Packets in the output queues of a port and used credits behind it, over all its VCs."""
    first = (router * table[PORTS] + port) * net.vcs
    total = 0
    for v in range(net.vcs):
        output = output_vc(net, first + v)
        total += output.depth - output.credits
    return total


@both()
def queued_vc(net: Net, table: Any, router: int, port: int, vc: int) -> int:
    """Count the same of one VC."""
    output = output_vc(net, (router * table[PORTS] + port) * net.vcs + vc)
    return output.depth - output.credits


@both()
def prefer_detour(
    net: Net, table: Any, memory: Any, router: int, direct: int, direct_vc: int, around: int, around_vc: int
) -> bool:
    """UGAL's test: twice the queue of the detour's first hop, and the bias, are less than that of the minimal way."""
    if direct == around:
        q_min = queued_vc(net, table, router, direct, direct_vc)
        q_non = queued_vc(net, table, router, around, around_vc)
    else:
        q_min, q_non = queued(net, table, router, direct), queued(net, table, router, around)
    return q_min > 2 * q_non + memory[0]


@both()
def draw_group(net: Net, table: Any, router: int, source: int, goal: int) -> int:
    """Random group that is neither of the two (different) groups; the next one with links to both, -1: none."""
    low, high = min(source, goal), max(source, goal)
    group = draw_below(net, router, table[GROUPS] - 2)
    group += 1 if group >= low else 0
    group += 1 if group >= high else 0
    return group if table[WHOLE] == 1 else next_between(table, group, source, goal)


@both()
def draw_router(net: Net, table: Any, router: int, source: int, goal: int) -> int:
    """Random router outside two (different) groups, in one that has links with both; -1: none."""
    a = table[A]
    chosen = draw_below(net, router, (table[GROUPS] - 2) * a)
    group = chosen // a
    low, high = min(source, goal), max(source, goal)
    group += 1 if group >= low else 0
    group += 1 if group >= high else 0
    if table[WHOLE] == 0:
        group = next_between(table, group, source, goal)
    return group * a + chosen % a if group >= 0 else -1


# --- by group: VC 0 to the middle, 1 in it (and the minimal way in the source group), 2 in the destination group


@both()
def _by_group(router: int, packet: Any, net: Any, table: Any, memory: Any, out: Any, adaptive: bool) -> int:
    dst, number = packet.dst, number_of_packet(table, packet)
    here, goal = group_of(table, router), group_of(table, router_of(table, dst))
    if here == goal:
        out[0] = candidate(port_to_host(table, router, dst, number), 1 << (table[VCS] - 1))
        return 1
    if packet.phase == UNDECIDED:
        packet.phase = MINIMAL
        if table[GROUPS] > 2:
            via = draw_group(net, table, router, here, goal)
            direct = port_to_host(table, router, dst, number)
            around = port_to_group(table, router, max(via, 0), number)
            if via >= 0 and (
                not adaptive
                or not joined(table, here, goal)
                or prefer_detour(net, table, memory, router, direct, 1, around, 0)
            ):
                packet.phase, packet.via, packet.user1 = DETOUR, via, 1
    if packet.phase == DETOUR and here != packet.via:
        out[0] = candidate(port_to_group(table, router, packet.via, number), 1)
        return 1
    out[0] = candidate(port_to_host(table, router, dst, number), 2)
    return 1


def _valiant_group(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    return _by_group(router, packet, net, table, memory, out, False)


def _ugal_group(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    return _by_group(router, packet, net, table, memory, out, True)


def _every_by_group(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    p, a, dst = table[P], table[A], packet.dst
    here, goal = group_of(table, router), group_of(table, router_of(table, dst))
    if here == goal:
        return add_minimal(table, out, router, dst, 1 << (table[VCS] - 1), False)
    local = p <= in_port < p + a - 1
    count = add_minimal(table, out, router, dst, 2, local) if joined(table, here, goal) else 0
    if in_port < p:
        count = add_local(table, out, count, router, goal, 0)
    if in_port < p or (local and in_vc == 0):
        count = add_global(table, out, count, router, goal, 0)
    return count


# --- by router: VC 0 to the middle group, 1 to the router, 2 away from it (and the minimal way), 3 in the destination
# group; progressive: the minimal way begins on 0, everything else is one higher


@both()
def _continue_by_router(router: int, packet: Any, table: Any, out: Any, first: int) -> int:
    """Next hop of a packet outside its destination group; `first`: VC of the way to the middle group."""
    via, number = packet.via, number_of_packet(table, packet)
    if packet.phase == DETOUR:
        if router == via:
            packet.phase = RETURN
        else:
            same = group_of(table, router) == group_of(table, via)
            out[0] = candidate(port_to_router(table, router, via, number), 1 << (first + 1 if same else first))
            return 1
    out[0] = candidate(port_to_host(table, router, packet.dst, number), 1 << (first + 2))
    return 1


@both()
def _by_router(router: int, packet: Any, net: Any, table: Any, memory: Any, out: Any, adaptive: bool) -> int:
    dst, number = packet.dst, number_of_packet(table, packet)
    here, goal = group_of(table, router), group_of(table, router_of(table, dst))
    if here == goal:
        out[0] = candidate(port_to_host(table, router, dst, number), 1 << (table[VCS] - 1))
        return 1
    if packet.phase == UNDECIDED:
        packet.phase = MINIMAL
        if table[GROUPS] > 2:
            via = draw_router(net, table, router, here, goal)
            direct = port_to_host(table, router, dst, number)
            around = port_to_group(table, router, group_of(table, max(via, 0)), number)
            if via >= 0 and (
                not adaptive
                or not joined(table, here, goal)
                or prefer_detour(net, table, memory, router, direct, 2, around, 0)
            ):
                packet.phase, packet.via, packet.user1 = DETOUR, via, 1
    return _continue_by_router(router, packet, table, out, 0)


def _valiant_node(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    return _by_router(router, packet, net, table, memory, out, False)


def _ugal_node(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    return _by_router(router, packet, net, table, memory, out, True)


def _par(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    p, dst, number = table[P], packet.dst, number_of_packet(table, packet)
    here, goal = group_of(table, router), group_of(table, router_of(table, dst))
    if here == goal:
        out[0] = candidate(port_to_host(table, router, dst, number), 1 << (table[VCS] - 1))
        return 1
    again = packet.phase == UNDECIDED and in_port >= p
    if packet.phase == UNDECIDED:
        direct = port_to_host(table, router, dst, number)
        own = 3 if again else 0
        if table[GROUPS] > 2:
            via = draw_router(net, table, router, here, goal)
            around = port_to_group(table, router, group_of(table, max(via, 0)), number)
            if via >= 0 and (
                not joined(table, here, goal) or prefer_detour(net, table, memory, router, direct, own, around, 1)
            ):
                packet.phase, packet.via, packet.user1 = DETOUR, via, 1
                return _continue_by_router(router, packet, table, out, 1)
        if again:
            packet.phase = MINIMAL
        out[0] = candidate(direct, 1 << own)
        return 1
    return _continue_by_router(router, packet, table, out, 1)


def _every_by_router(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    p, a, dst, first = table[P], table[A], packet.dst, table[FREE0]
    here, goal = group_of(table, router), group_of(table, router_of(table, dst))
    if here == goal:
        return add_minimal(table, out, router, dst, 1 << (table[VCS] - 1), False)
    local = p <= in_port < p + a - 1
    again = first == 1 and local and in_vc == 0  # PAR decides once more
    count = 0
    if joined(table, here, goal):
        mask = 1 if first == 1 and in_port < p else 1 << (first + 2)
        count = add_minimal(table, out, router, dst, mask, again or (local and in_vc == first + 2))
    if in_port < p or again:
        count = add_local(table, out, count, router, goal, first)
    if in_port < p or again or (local and in_vc == first):
        count = add_global(table, out, count, router, goal, first)
    if in_port >= p + a - 1:
        count = add_local(table, out, count, router, goal, first + 1)
    return count


def _plan(
    name: str, why: str, vcs_needed: int, route: Callable[..., int], every: Callable[..., int], first: int = 0
) -> Callable[..., RoutingPlan]:
    def prepare(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
        need_dragonfly(topology, name, vcs, vcs_needed, why)
        table = ways_table(topology, vcs_needed, options.get("links", "own_first"))
        table[FREE0] = first
        memory = np.array([float(options.get("bias", 0.0))])
        plan = RoutingPlan(
            relation(route), table, max_candidates=3 * topology.max_ports, random=True, inject_mask=1,
            every=relation(every), memory=memory,
        )  # fmt: skip
        return regular(plan)

    return prepare


_BY_GROUP = "one each to the group of the detour, from there on, and in the last group"
_BY_ROUTER = "one each to the group of the detour, to its router, from there on, and in the last group"
_DECIDED_TWICE = f"one for the first link; then {_BY_ROUTER}"
register("valiant_group")(_plan("valiant_group", _BY_GROUP, 3, _valiant_group, _every_by_group))
register("ugal_group")(_plan("ugal_group", _BY_GROUP, 3, _ugal_group, _every_by_group))
register("valiant_node")(_plan("valiant_node", _BY_ROUTER, 4, _valiant_node, _every_by_router))
register("ugal_node")(_plan("ugal_node", _BY_ROUTER, 4, _ugal_node, _every_by_router))
register("par")(_plan("par", _DECIDED_TWICE, 5, _par, _every_by_router, first=1))

"""Minimal adaptive routing, Valiant and UGAL on any network (docs/definitions/any-routing.md).

``phase`` says what has been decided about a packet, ``via`` is the router of its detour.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numba import int64, uint64

from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.compile import both
from hopforge.model.network.core.draws import draw_below
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import output_vc
from hopforge.model.routing.contract.detour_rules import (
    RULES,
    cost_of,
    is_congested,
    takes_detour,
    takes_detour_by_sums,
)
from hopforge.model.routing.contract.occupancy import used_credits
from hopforge.model.routing.contract.plan import Regular, RoutingError, RoutingPlan, need_kind, register, relation
from hopforge.model.routing.ways.all_pairs import find_ways, groups_of
from hopforge.model.routing.ways.channel_classes import TURNS, find_classes
from hopforge.model.routing.ways.rising_channels import rising_channels_of
from hopforge.model.routing.ways.table import (
    DRAWS,
    EVERY,
    GROUP,
    GROUPS,
    HOME,
    HOMES,
    HOW,
    LIST,
    NEIGHBOURS,
    PEER,
    PLACE,
    PORTS,
    ROUTERS,
    RULE,
    WORDS,
    add_arrival,
    add_one_way,
    add_way,
    count_ways,
    is_at,
    links_between,
    way_ports,
    way_rows,
    ways_table,
)
from hopforge.model.topology import Topology
from hopforge.model.topology.spread import entropy_place, port_place

#: what has been decided: nothing, a detour, the way to the destination
_UNDECIDED, _DETOUR, _HOMEWARD = range(3)
#: how it is decided; −1: no detours
_MINIMAL, _VALIANT, _UGAL, _UGAL_GLOBAL, _VALIANT_COMPACT, _UGAL_COMPACT = range(-1, 5)


def _minimal(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    home = table[table[HOME] + packet.dst]
    if home == router:
        return add_arrival(table, out, packet.dst)
    return add_way(table, out, 0, router, in_port, in_vc, home, packet.dst, True)


def _minimal_in_order(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    home = table[table[HOME] + packet.dst]
    if home == router:
        return add_arrival(table, out, packet.dst)
    return add_way(table, out, 0, router, in_port, in_vc, home, 0, True)


def _minimal_by_packet(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    home = table[table[HOME] + packet.dst]
    if home == router:
        return add_arrival(table, out, packet.dst)
    return _add_drawn(net, table, out, router, in_port, in_vc, home, True)


def _minimal_by_flow(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    home = table[table[HOME] + packet.dst]
    if home == router:
        return add_arrival(table, out, packet.dst)
    ports = max(count_ways(table, router, home), 1)
    place = port_place(int64(packet.src), int64(packet.dst), 0, router, ports)
    return add_one_way(table, out, router, in_port, in_vc, home, place, True)


def _minimal_by_entropy(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    home = table[table[HOME] + packet.dst]
    if home == router:
        return add_arrival(table, out, packet.dst)
    return _add_hashed(packet, table, out, router, in_port, in_vc, home, True)


@both()
def _add_hashed(
    packet: Any, table: Any, out: Any, router: int, in_port: int, in_vc: int, goal: int, homeward: bool
) -> int:
    """Add the port towards a goal that source, destination and entropy of the packet name."""
    ports = max(count_ways(table, router, goal), 1)
    place = port_place(int64(packet.src), int64(packet.dst), int64(packet.part), router, ports)
    return add_one_way(table, out, router, in_port, in_vc, goal, place, homeward)


@both()
def _add_drawn(
    net: Net, table: Any, out: Any, router: int, in_port: int, in_vc: int, goal: int, homeward: bool
) -> int:
    """Add a random one of the ports towards a goal."""
    ports = count_ways(table, router, goal)
    place = draw_below(net, router, ports) if ports > 1 else 0
    return add_one_way(table, out, router, in_port, in_vc, goal, place, homeward)


# --- the decision in the source router


@both()
def _draw_group(net: Net, table: Any, router: int, home: int) -> int:
    """Random group that is neither of source nor destination, as a goal; −1: there is none."""
    here, there = table[table[GROUP] + router], table[table[GROUP] + home]
    others = table[GROUPS] - (1 if here == there else 2)
    if others < 1:
        return -1
    chosen = draw_below(net, router, others)
    chosen += 1 if chosen >= min(here, there) else 0
    if here != there:
        chosen += 1 if chosen >= max(here, there) else 0
    return table[ROUTERS] + chosen


@both()
def _draw_other(net: Net, table: Any, router: int, home: int) -> int:
    """Random router with hosts, neither this one nor the destination's, or such a group; −1: there is none."""
    if table[GROUPS] > 0:
        return _draw_group(net, table, router, home)
    if table[GROUPS] == NEIGHBOURS:
        return _draw_neighbour(net, table, router, router, home)
    homes = table[HOMES]
    return -1 if homes < 3 else _other_at(table, router, home, draw_below(net, router, homes - 2))


@both()
def _other_at(table: Any, router: int, home: int, place: int) -> int:
    """Router with hosts at a place among those that are neither this one nor the destination's."""
    here, there = table[table[PLACE] + router], table[table[PLACE] + home]
    place += 1 if place >= min(here, there) else 0
    place += 1 if place >= max(here, there) else 0
    return table[table[LIST] + place]


@both()
def _least_port(net: Net, table: Any, router: int, goal: int) -> int:
    """Port of least use towards a router, of equals the first."""
    best, least = -1, 0
    for word in range(table[WORDS]):
        mask = way_ports(table, router, goal, word)
        while mask != uint64(0):
            port = (word << 6) + trailing_zeros(mask)
            mask &= mask - uint64(1)
            used = used_credits(net, router, port)
            if best < 0 or used < least:
                best, least = port, used
    return best


@both()
def _sum_towards(net: Net, table: Any, router: int, goal: int, home: int) -> int:
    """Queues along the way to a goal and from there to the destination, at each router the port of least use."""
    total = 0
    while True:
        if is_at(table, router, goal):
            goal = home
        if router == home:
            return total
        port = _least_port(net, table, router, goal)
        total += used_credits(net, router, port)
        router = table[table[PEER] + router * table[PORTS] + port]


@both()
def _detour_links(table: Any, router: int, via: int, home: int) -> int:
    """Links of a detour; over a group those to it, from both ends."""
    if via < table[ROUTERS]:
        return links_between(table, router, via) + links_between(table, via, home)
    return links_between(table, router, via) + links_between(table, home, via)


@both()
def _choose_local(net: Net, table: Any, memory: Any, router: int, home: int) -> int:
    """UGAL-L: the intermediate router of the detour that is taken, −1: none."""
    rule, best, cost, queue = table[RULE], -1, 0, 0
    for _ in range(table[DRAWS]):
        via = _draw_other(net, table, router, home)
        if via < 0:
            return -1
        used = used_credits(net, router, _least_port(net, table, router, via))
        now = cost_of(rule, _detour_links(table, router, via, home), used)
        if best < 0 or now < cost:
            best, cost, queue = via, now, used
    links = _detour_links(table, router, best, home)
    queue_min = used_credits(net, router, _least_port(net, table, router, home))
    if takes_detour(rule, links_between(table, router, home), queue_min, links, queue, memory[0]):
        return best
    return -1


@both()
def _choose_global(net: Net, table: Any, memory: Any, router: int, home: int) -> int:
    """UGAL-G: the same by the queues along the whole way."""
    best, cost = -1, 0
    for _ in range(table[DRAWS]):
        via = _draw_other(net, table, router, home)
        if via < 0:
            return -1
        now = _sum_towards(net, table, router, via, home)
        if best < 0 or now < cost:
            best, cost = via, now
    if takes_detour_by_sums(_sum_towards(net, table, router, home, home), cost, memory[0]):
        return best
    return -1


@both()
def _draw_neighbour(net: Net, table: Any, router: int, of: int, other: int) -> int:
    """Random neighbour of router `of` that is neither `router` nor `other`; −1: there is none."""
    first, degree, found = table[PEER] + of * table[PORTS], 0, -1
    for again in range(2):
        chosen = draw_below(net, router, degree) if again else -1
        for p in range(table[PORTS]):
            there = int64(table[first + p])
            if there < 0 or there in (int64(router), int64(other)):
                continue
            if again == 0:
                degree += 1
            elif chosen == 0:
                found = there
            chosen -= 1
        if degree == 0:
            return -1
    return found


@both()
def _compact_way(net: Net, table: Any, router: int, home: int, neighbour: int) -> int:
    """Compact Valiant: over a neighbour, or, if the destination is near, over a neighbour of that one."""
    if neighbour < 0 or links_between(table, router, home) > 1:
        return neighbour
    return _draw_neighbour(net, table, router, neighbour, home)


@both()
def _choose_compact(net: Net, table: Any, router: int, home: int) -> int:
    """UGAL_PF: minimal below two thirds of a buffer, else over the neighbour whose port is least used."""
    direct = _least_port(net, table, router, home)
    buffer = output_vc(net, (router * net.ports + direct) * net.vcs).depth
    if not is_congested(used_credits(net, router, direct), buffer):
        return -1
    best, least = -1, 0
    for p in range(table[PORTS]):
        if table[table[PEER] + router * table[PORTS] + p] >= 0:
            used = used_credits(net, router, p)
            if best < 0 or used < least:
                best, least = p, used
    if best == direct:
        return -1
    return _compact_way(net, table, router, home, table[table[PEER] + router * table[PORTS] + best])


@both()
def _choose(net: Net, table: Any, memory: Any, router: int, home: int) -> int:
    """Intermediate goal of a packet from this router, −1: it goes minimal."""
    how = table[HOW]
    if how == _VALIANT:
        return _draw_other(net, table, router, home)
    if how == _UGAL:
        return _choose_local(net, table, memory, router, home)
    if how == _UGAL_GLOBAL:
        return _choose_global(net, table, memory, router, home)
    if how == _UGAL_COMPACT:
        return _choose_compact(net, table, router, home)
    return _compact_way(net, table, router, home, _draw_neighbour(net, table, router, router, home))


def _detour(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    home = table[table[HOME] + packet.dst]
    if home == router:
        return add_arrival(table, out, packet.dst)
    goal = _next_goal(net, table, memory, router, packet, home)
    return add_way(table, out, 0, router, in_port, in_vc, goal, packet.dst, packet.phase == _HOMEWARD)


def _detour_by_packet(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    home = table[table[HOME] + packet.dst]
    if home == router:
        return add_arrival(table, out, packet.dst)
    goal = _next_goal(net, table, memory, router, packet, home)
    return _add_drawn(net, table, out, router, in_port, in_vc, goal, packet.phase == _HOMEWARD)


@both()
def _next_goal(net: Net, table: Any, memory: Any, router: int, packet: Any, home: int) -> int:
    """Where a packet goes from this router, after what has to be decided here."""
    if packet.phase == _UNDECIDED:
        via = _choose(net, table, memory, router, home)
        packet.phase = _HOMEWARD
        if via >= 0:
            packet.phase, packet.via, packet.user1 = _DETOUR, via, 1
    if packet.phase == _DETOUR and is_at(table, router, packet.via):
        packet.phase = _HOMEWARD
    return home if packet.phase == _HOMEWARD else packet.via


def _detour_by_entropy(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    """Valiant over the router that the entropy names."""
    home = table[table[HOME] + packet.dst]
    if home == router:
        return add_arrival(table, out, packet.dst)
    if packet.phase == _UNDECIDED:
        packet.phase = _HOMEWARD
        others = table[HOMES] - 2
        if others > 0:
            routers = table[ROUTERS]
            place = entropy_place(int64(packet.src), int64(packet.dst), int64(packet.part), routers, others)
            packet.phase, packet.via, packet.user1 = _DETOUR, _other_at(table, router, home, place), 1
    if packet.phase == _DETOUR and packet.via == router:
        packet.phase = _HOMEWARD
    goal = home if packet.phase == _HOMEWARD else packet.via
    return _add_hashed(packet, table, out, router, in_port, in_vc, goal, packet.phase == _HOMEWARD)


#: with detours, value of `routing.spread` → relation
_RELATIONS = {
    (False, None): _minimal, (False, "packet"): _minimal_by_packet, (False, "flow"): _minimal_by_flow,
    (False, "entropy"): _minimal_by_entropy,
    (True, None): _detour, (True, "packet"): _detour_by_packet, (True, "entropy"): _detour_by_entropy,
}  # fmt: skip


def _at_inputs(options: dict[str, Any]) -> bool:
    """Whether packets wait at inputs for a virtual channel: most for one of class 0, on which they enter and go on."""
    return "router" not in options or options["router"].model == "input_queued"


def _plan(topology: Topology, vcs: int, options: dict[str, Any], name: str, how: int) -> RoutingPlan:
    """Make one of these algorithms ready: ways, classes, table."""
    detours = how != _MINIMAL
    if options.get("links", "own_first") != "own_first":
        raise RoutingError(f"routing.links: {options['links']} is not for routing.algorithm {name}")
    rule = options.get("ways") or "all"
    ways = find_ways(topology, rule, name, options)
    over = options.get("over") if detours else None
    groups = groups_of(topology, name) if over == "groups" else None
    if groups is not None and rule != "all":
        raise RoutingError(f"routing.over: groups needs routing.ways: all, not {rule}")
    bare = np.flatnonzero(~(topology.host_at >= 0).any(axis=1))
    if over == "neighbours" and len(bare):
        raise RoutingError(f"routing.over: neighbours needs hosts at every router; router {int(bare[0])} has none")
    classes = find_classes(
        topology, ways, vcs, detours=detours, groups=groups is not None, wanted=options.get("classes"),
        root=int(options.get("root", 0)), name=name, lowest=_at_inputs(options),
    )  # fmt: skip
    table = ways_table(
        topology, vcs, ways, classes, draws=int(options.get("candidates", 4)),
        rule=RULES.index(options.get("rule", "product")), groups=groups, how=how,
        neighbours=over == "neighbours",
    )  # fmt: skip
    spread = options.get("spread") if how in (_MINIMAL, _VALIANT) else None
    plan = RoutingPlan(
        relation(_RELATIONS[detours, spread]),
        table,
        max_candidates=ways.most_ports if spread is None else 1,
        memory=np.array([float(options.get("bias", 0.0))]),
        one_per_router=True,
        rows=way_rows(table),
        # with all of them hosts would outnumber packets under way, which ask for class 0 with its channels only
        inject_mask=classes.masks[0] if classes.scheme == TURNS and _at_inputs(options) else None,
        words=classes.words,
        # measured in docs/definitions/any-routing.md: what compares queues carries about as much either way
        advice=classes.advice if how in (_MINIMAL, _VALIANT, _VALIANT_COMPACT) else "",
    )
    if not detours and spread is not None:  # whatever is drawn, it is one of all shortest ways
        among = replace(plan, route=relation(_minimal_in_order), max_candidates=ways.most_ports)
        return _ordered(replace(
            plan, random=spread == "packet", by_source=spread != "packet", every=relation(_minimal),
            every_candidates=ways.most_ports, among=None if spread == "packet" else among,
        ))  # fmt: skip
    if not detours:
        return _ordered(plan)
    every = relation(EVERY[classes.scheme])
    return _ordered(replace(
        plan, phases=3, uses_via=True, random=True, by_source=spread == "entropy", every=every,
        every_candidates=2 * topology.max_ports,
    ))  # fmt: skip


def _ordered(plan: RoutingPlan) -> RoutingPlan:
    """Return a plan that promises the short proof to take its channels from its table alone."""
    return replace(plan, regular=Regular(plan.route, plan.every, plan.table, order=rising_channels_of))


@register("minimal")
def prepare_minimal(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Any shortest way, as virtual channels and credits allow."""
    return _plan(topology, vcs, options, "minimal", _MINIMAL)


def prepare_valiant(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Over a random router with hosts, neither the source's nor the destination's."""
    return _plan(topology, vcs, options, "valiant", _VALIANT)


@register("ugal")
def prepare_ugal(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """UGAL-L: Valiant's way or the minimal one, by the queues of their first links."""
    return _plan(topology, vcs, options, "ugal", _UGAL)


@register("ugal_global")
def prepare_ugal_global(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """UGAL-G: the same by the queues along both ways, which no router could know."""
    router = options.get("router")
    if router is not None and router.model != "input_queued":
        raise RoutingError(f"routing.algorithm ugal_global needs router.model: input_queued, not {router.model}")
    return replace(_plan(topology, vcs, options, "ugal_global", _UGAL_GLOBAL), sees_others=True)


@register("valiant_compact")
def prepare_valiant_compact(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Compact Valiant of PolarFly: over a random neighbour, or a neighbour of it if the destination is near."""
    need_kind(topology, "valiant_compact", "polarfly")
    return _plan(topology, vcs, options, "valiant_compact", _VALIANT_COMPACT)


@register("ugal_compact")
def prepare_ugal_compact(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """UGAL_PF of PolarFly: Compact Valiant over the least used port where the minimal one is congested."""
    need_kind(topology, "ugal_compact", "polarfly")
    return _plan(topology, vcs, options, "ugal_compact", _UGAL_COMPACT)

"""Choice of a packet's way in the packet network, jitted: links left, intermediate destinations, profit."""

from typing import Any

from numba import int64

from hopforge.model.kernel.compile import inlined, inner
from hopforge.model.kernel.memory import int8s, int32s, int64s
from hopforge.sim.packet.events import NEVER
from hopforge.sim.packet.records import (
    ABR,
    ADAPTIVE,
    ESCAPE,
    ESCAPE_VIA,
    OFR,
    OUTFLANK,
    VC_STRIDE,
    WRAPAROUND,
    Net,
    coordinate,
    link_of,
    routes_at,
    step_between,
    via_at,
)

#: ends a list of turns
_NO_TURN = 2


@inlined
def way(net: Net, a: int, b: int) -> Any:
    """Distance of two nodes and the mask of the minimal links at `a`; without links if there is no way."""
    distance, mask = 0, 0
    if net.around:
        entry = int64(int32s(net.around_way)[a * net.nodes + b])
        return entry >> 16, entry & 0xFFFF
    for i in range(net.dimensions):
        step = step_between(net, i, coordinate(net, a, i), coordinate(net, b, i))
        distance += step >> 2
        mask |= (step & 3) << (2 * i)
    return distance, mask


@inlined
def ways_left(net: Net, node: int, goal: int, directions: int) -> int:
    """Mask of the links of `node` that a packet for `goal` may use: the minimal ones, or those of its orthant."""
    _, mask = way(net, node, goal)
    if directions == 0:
        return int64(mask)
    left = 0
    for i in range(net.dimensions):
        if (mask >> (2 * i)) & 3:
            left |= directions & (3 << (2 * i))
    return left


@inlined
def goal_around(net: Net, node: int, goal: int, t: int) -> int:
    """Return where a packet goes first in a network that is not whole: `goal`, `t`, or −1: nowhere."""
    if node == t:
        return t
    _, mask = way(net, node, t)
    if mask == 0:
        return -1
    _, mask = way(net, node, goal)
    return goal if mask != 0 else t


@inlined
def escape_port(mask: int) -> int:
    """Link of the lowest dimension in which the nodes differ, + where both ways are minimal: the lowest bit."""
    port = 0
    while (mask >> port) & 1 == 0:
        port += 1
    return port


@inlined
def _note_via(net: Net, s: int, count: int, place: int, hops: int, links: int, kind: int) -> None:
    """Write intermediate destination number `count` of node `s`."""
    via = via_at(net, s, count)
    via.place, via.hops, via.links, via.kind = place, hops, links, kind


@inner
def _add_via(net: Net, s: int, t: int, kind: int, count: int) -> int:
    """Note the intermediate destination at the coordinates `net.place`, if there is one; returns the new number."""
    q, weight = 0, 1
    for i in range(net.dimensions):
        x, radix = int64s(net.place)[i], int64s(net.radix)[i]
        if net.torus:
            x = x % radix
        elif x < 0 or x >= radix:
            return count
        q += x * weight
        weight *= radix
    if q in (s, t):
        return count
    first, mask = way(net, s, q)
    if mask == 0:  # it has failed
        return count
    second, _ = way(net, q, t)
    _note_via(net, s, count, q, first + second, mask, kind)
    return count + 1


@inner
def _outflank_place(net: Net, s: int, t: int, i: int, turn: int, delta: int) -> int:
    """Coordinate i of the outflank destination with λ = `turn`."""
    a, b = int64(coordinate(net, s, i)), int64(coordinate(net, t, i))
    if a == b:
        return a + turn * delta
    step = int64(step_between(net, i, a, b))
    d = step >> 2
    sign = 1 if step & 1 else -1
    if turn == 0:
        return a + sign * (d // 2)
    return (a - sign * delta) if turn < 0 else (b + sign * delta)


@inner
def _list_outflank(net: Net, s: int, t: int, count: int) -> int:
    """List the outflank destinations; returns the new number."""
    n = net.dimensions
    equal = 0
    for i in range(n):
        if coordinate(net, s, i) == coordinate(net, t, i):
            equal += 1
    delta = int64(net.distance)
    if net.share:
        delta = max(1, (2 * net.share * routes_at(net, s).hops + net.share_parts) // (2 * net.share_parts))
    first_row = equal * net.turn_rows
    for row in range(first_row, first_row + net.turn_rows):
        if int64s(net.turn)[row * n] == _NO_TURN:
            break
        # the table has the equal coordinates first
        at_equal, at_other = row * n, row * n + equal
        for i in range(n):
            if coordinate(net, s, i) == coordinate(net, t, i):
                turn = int64s(net.turn)[at_equal]
                at_equal += 1
            else:
                turn = int64s(net.turn)[at_other]
                at_other += 1
            int64s(net.place)[i] = _outflank_place(net, s, t, i, turn, delta)
        count = _add_via(net, s, t, OUTFLANK, count)
    return count


@inner
def _list_orthants(net: Net, s: int, t: int, count: int) -> int:
    """List the orthants that go the long way in some dimensions: their place is `t`; returns the new number."""
    n = net.dimensions
    for turned in range(1, 1 << n):
        distance, mask, useful = 0, 0, True
        for i in range(n):
            step = step_between(net, i, coordinate(net, s, i), coordinate(net, t, i))
            bit = (turned >> i) & 1
            if step == 0:
                useful = useful and bit == 0
                continue
            distance += int64s(net.radix)[i] - (step >> 2) if bit else step >> 2
            mask |= (2 if (step & 1) == bit else 1) << (2 * i)
        if useful:
            _note_via(net, s, count, t, distance, mask, WRAPAROUND)
            count += 1
    return count


@inner
def _list_middles(net: Net, s: int, t: int, count: int) -> int:
    """List the middles of all orthants but the minimal one; returns the new number."""
    n = net.dimensions
    for beta in range(1 << n):
        useful, minimal = True, True
        for i in range(n):
            a, b, radix = int64(coordinate(net, s, i)), int64(coordinate(net, t, i)), int64s(net.radix)[i]
            bit = (beta >> i) & 1
            if a == b:
                useful = useful and bit == 0
            minimal = minimal and bit == (1 if 2 * abs(a - b) > radix else 0)
            int64s(net.place)[i] = (a + b + bit * radix) // 2
        if useful and not minimal:
            count = _add_via(net, s, t, WRAPAROUND, count)
    return count


@inner
def list_routes(net: Net, s: int, t: int) -> None:
    """Note the minimal route from `s` to `t` and all intermediate destinations, outflank first."""
    routes = routes_at(net, s)
    routes.hops, routes.minimal = way(net, s, t)
    count = 0
    if net.algorithm != ABR and s != t:
        if net.algorithm == OFR:
            count = _list_outflank(net, s, t, count)
        if net.torus and net.keeps_directions and not net.around:
            count = _list_orthants(net, s, t, count)
        elif net.torus:
            count = _list_middles(net, s, t, count)
    routes.count = count


@inlined
def _used(net: Net, link: int, counts: int) -> int:
    """Slots of a link that count as used; `counts`: address of the used slots of all queues."""
    q = link * VC_STRIDE
    if net.adaptive_only:
        return int64(int8s(counts)[q + ADAPTIVE])
    return int64(int8s(counts)[q]) + int8s(counts)[q + 1] + int8s(counts)[q + 2] + int8s(counts)[q + 3]


@inlined
def _full(net: Net, link: int, counts: int) -> bool:
    """Whether the queues of a link are full that count and that packets may enter by the present ways."""
    q, slots = link * VC_STRIDE, net.queue_packets
    full = int8s(counts)[q + ADAPTIVE] == slots
    if net.adaptive_only:
        return full
    if net.around:
        return full and int8s(counts)[q + net.escape_vc] == slots
    return full and int8s(counts)[q + ESCAPE_VIA] == slots and int8s(counts)[q + ESCAPE] == slots


@inlined
def _profit(net: Net, least: int, mask: int, full: int, distance: int, through: int) -> Any:
    """π = u*/u + η·d/d̃ as a fraction (numerator, denominator); `full`: ports without any room that count as such."""
    total, links = 0, 0
    for port in range(2 * net.dimensions):
        if (mask >> port) & 1:
            total += int64s(net.used)[port]
            links += 1
    if full and mask & ~full == 0:
        return 0, 1
    if total == 0 or (net.idle_counts_one and least == 0):
        return net.eta_parts * through + net.eta * distance, through
    return least * links * net.eta_parts * through + net.eta * distance * total, total * through


@inner
def choose(net: Net, node: int, counts: int) -> int:
    """Return the number of the most profitable intermediate destination of `node`, −1 for the minimal route.

    `counts` is the address of the used slots of all queues.
    """
    routes = routes_at(net, node)
    least, full = NEVER, 0
    for port in range(2 * net.dimensions):
        used = _used(net, link_of(net, node, port), counts)
        int64s(net.used)[port] = used
        if net.full_is_worthless and _full(net, link_of(net, node, port), counts):
            full |= 1 << port
        if (routes.links >> port) & 1:
            least = min(least, used)
    best = -1
    hops = int64(routes.hops)
    up, down = _profit(net, least, routes.minimal, full, hops, hops)
    for k in range(routes.count):
        via = via_at(net, node, k)
        over, under = _profit(net, least, via.links, full, hops, int64(via.hops))
        if over * down > up * under:
            best, up, down = k, over, under
    return best

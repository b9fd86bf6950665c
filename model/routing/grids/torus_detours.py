"""POR and OutFlank on routers of flits: an intermediate destination by profit, adaptive minimal ways, escapes by order.

What the two choose is that of docs/definitions/torus-router.md. Bubbles need whole packets, so the escapes are those of
`grid`'s star-channel instead: dimension order, on a torus with a dateline, once to the intermediate destination and
once from there (docs/definitions/torus-flits.md).
"""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from hopforge.model.kernel.compile import both
from hopforge.model.network.core.candidates import candidate
from hopforge.model.network.core.draws import draw_below
from hopforge.model.routing.contract.occupancy import used_credits
from hopforge.model.routing.contract.plan import (
    RoutingError,
    RoutingPlan,
    all_vcs,
    need_kind,
    need_vcs,
    register,
    relation,
    vc_range,
)
from hopforge.model.routing.grids.grid import (
    ADAPTIVE,
    COORDS,
    HOSTS,
    ORDER,
    eject,
    grid_table,
    home_router,
    plan_table,
)
from hopforge.model.routing.grids.intermediate import Detour, Grid, Place, detours
from hopforge.model.topology import Topology

# of the table of `grid`: 0 dimensions, 2 is torus, 9 start of what follows, 11 … 14 escape VCs by 2 · part + class, 18
# sizes. There: numerator and denominator of η, most ports, then by the differences of the coordinates the start of a
# list: count, and for each the steps to the intermediate destination in every dimension, and the hops through it
_N, _TORUS, _START, _ESCAPES, _SIZES = 0, 2, 9, 11, 18
_ETA, _ETA_PARTS, _PLACES = range(3)
_UNDECIDED, _TO_VIA, _FINAL = range(3)
#: weight of the path's length
_ETA_OF = {"por": 1.0, "ofr": 2.0}
MOST_DIMENSIONS = 4


@both()
def _directions(table: Any, i: int, here: int, goal: int) -> int:
    """Minimal directions from one coordinate to another: 1 for +, 2 for −, 3 for both."""
    if here == goal:
        return 0
    up, down = goal > here, goal < here
    if table[_TORUS] == 1:
        k = table[_SIZES + i]
        ahead = goal - here if goal > here else goal - here + k
        up, down = 2 * ahead <= k, 2 * ahead >= k
    return (1 if up else 0) + (2 if down else 0)


@both()
def _add_minimal(table: Any, out: Any, router: int, goal: int, part: int) -> int:
    """Candidates of a packet for router `goal`: adaptive ones, then its escape; returns their number."""
    n, first = table[_N], table[HOSTS]
    count, escape = 0, -1
    for i in range(n):
        here, there = table[table[COORDS] + router * n + i], table[table[COORDS] + goal * n + i]
        ways = _directions(table, i, here, there)
        if ways == 0:
            continue
        up = ways & 1
        if escape < 0:
            # class 0 while the packet still has to cross the dateline of this dimension, class 1 from then on
            wraps = (there < here) if up == 1 else (there > here)
            klass = 0 if table[_TORUS] == 0 or wraps else 1
            escape = candidate(first + 2 * i + (0 if up == 1 else 1), table[_ESCAPES + 2 * part + klass], 1)
        if up == 1:
            out[count] = candidate(first + 2 * i, table[ADAPTIVE])
            count += 1
        if ways & 2:
            out[count] = candidate(first + 2 * i + 1, table[ADAPTIVE])
            count += 1
    out[count] = escape
    return count + 1


@both()
def _list_of(table: Any, router: int, there: int) -> int:
    """Place in the table of the intermediate destinations of a pair of routers."""
    n, key = table[_N], 0
    for i in range(n):
        k = table[_SIZES + i]
        key = key * 2 * k + table[table[COORDS] + there * n + i] - table[table[COORDS] + router * n + i] + k
    start = table[_START]
    return table[start + _PLACES + key]


@both()
def _place(table: Any, router: int, entry: int) -> int:
    """Router of an intermediate destination; −1: outside of the mesh."""
    n, via, weight = table[_N], 0, 1
    for i in range(n):
        k = table[_SIZES + i]
        x = table[table[COORDS] + router * n + i] + table[entry + i]
        if table[_TORUS] == 1:
            x = x % k
        elif x < 0 or x >= k:
            return -1
        via += x * weight
        weight *= k
    return via


@both()
def _used(table: Any, net: Any, router: int, goal: int) -> Any:
    """Sum of the used slots of the links that are minimal towards a router, and their number."""
    n, first, total, links = table[_N], table[HOSTS], 0, 0
    for i in range(n):
        ways = _directions(
            table, i, table[table[COORDS] + router * n + i], table[table[COORDS] + goal * n + i]
        )  # fmt: skip
        for side in range(2):
            if ways >> side & 1:
                total += used_credits(net, router, first + 2 * i + side)
                links += 1
    return total, links


@both()
def _least_used(table: Any, net: Any, router: int) -> int:
    """Return the used slots of the link of a router that has fewest."""
    n, first, least = table[_N], table[HOSTS], 1 << 60
    for i in range(n):
        here, k = table[table[COORDS] + router * n + i], table[_SIZES + i]
        for side in range(2):
            if k > 1 and (table[_TORUS] == 1 or (here < k - 1 if side == 0 else here > 0)):
                least = min(least, used_credits(net, router, first + 2 * i + side))
    return least


@both()
def _profit(table: Any, least: int, total: int, links: int, hops: int, through: int) -> Any:
    """π = u*/u + η·d/d̃ as a fraction; 0/0 = 1."""
    eta, parts = table[table[_START] + _ETA], table[table[_START] + _ETA_PARTS]
    if total == 0:
        return parts * through + eta * hops, through
    return least * links * parts * through + eta * hops * total, total * through


@both()
def _choose(table: Any, net: Any, router: int, there: int) -> int:
    """Most profitable intermediate destination; −1: the minimal way."""
    entry = _list_of(table, router, there)
    n, count, hops = table[_N], table[entry], table[entry + 1]
    least = _least_used(table, net, router)
    total, links = _used(table, net, router, there)
    up, down = _profit(table, least, total, links, hops, hops)
    best = -1
    for j in range(count):
        at = entry + 2 + j * (n + 1)
        via = _place(table, router, at)
        if via < 0:
            continue
        total, links = _used(table, net, router, via)
        over, under = _profit(table, least, total, links, hops, table[at + n])
        if over * down > up * under:
            best, up, down = via, over, under
    return best


@both()
def _go_on(router: int, packet: Any, table: Any, there: int, out: Any) -> int:
    """Candidates of a packet that has chosen."""
    if packet.phase == _TO_VIA and packet.via == router:
        packet.phase, packet.via = _FINAL, -1
    if packet.phase == _TO_VIA:
        return _add_minimal(table, out, router, packet.via, 0)
    if there == router:
        return eject(table, packet.dst, out)
    return _add_minimal(table, out, router, there, 1)


def _detour(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    there = home_router(table, packet.dst)
    if packet.phase == _UNDECIDED:
        via = -1 if there == router else _choose(table, net, router, there)
        packet.via, packet.phase = via, _FINAL if via < 0 else _TO_VIA
    return _go_on(router, packet, table, there, out)


def _every(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    """As `_detour`, with any of the intermediate destinations in turn."""
    there = home_router(table, packet.dst)
    if packet.phase == _UNDECIDED:
        via = -1
        if there != router:
            entry = _list_of(table, router, there)
            drawn = draw_below(net, router, table[entry] + 1)
            if drawn < table[entry]:
                via = _place(table, router, entry + 2 + drawn * (table[_N] + 1))
        packet.via, packet.phase = via, _FINAL if via < 0 else _TO_VIA
    return _go_on(router, packet, table, there, out)


def _lists(radices: Place, torus: bool, outflank: bool, delta: int) -> list[int]:
    """By the differences of coordinates + sizes: where each list begins, and the lists behind."""
    room = [0 if torus else 2 * k + 4 * delta for k in radices]
    grid = Grid(radices if torus else tuple(3 * k + 2 * r for k, r in zip(radices, room, strict=True)), torus, True)
    places: list[int] = []
    lists: list[int] = []
    for key in product(*(range(2 * k) for k in radices)):
        difference = [x - k for x, k in zip(key, radices, strict=True)]
        # a difference of −k does not come about
        s = tuple(max(-d, 0) + r for d, r in zip(difference, room, strict=True))
        t = tuple(x + d for x, d in zip(s, difference, strict=True))
        places.append(len(lists))
        valid = not torus or all(x < k and y < k for x, y, k in zip(s, t, radices, strict=True))
        found: list[Detour] = detours(grid, s, t, outflank=outflank, delta=delta) if valid else []
        lists += [len(found), grid.distance(s, t) if valid else 0]
        for one in found:
            lists += [q - x for q, x in zip(one.place, s, strict=True)] + [one.hops]
    return [len(places) + place for place in places] + lists


def _prepare(topology: Topology, vcs: int, options: dict[str, Any], name: str) -> RoutingPlan:
    need_kind(topology, name, *(("torus",) if name == "por" else ("mesh", "torus")))
    radices = tuple(int(k) for k in topology.params["radices"])
    if not 2 <= len(radices) <= MOST_DIMENSIONS:
        raise RoutingError(
            f"topology.radices must have 2 to {MOST_DIMENSIONS} dimensions for routing.algorithm {name}, not "
            f"{len(radices)}"
        )
    torus = topology.kind == "torus"
    classes = 2 if torus else 1
    why = f"one adaptive, and for each part of a way {ORDER[topology.kind]}"
    need_vcs(f"{name} on a {topology.kind}", vcs, 2 * classes + 1, why)
    table = grid_table(topology, vcs)
    for part in range(2):
        for klass in range(2):
            table[_ESCAPES + 2 * part + klass] = 1 << classes * part + min(klass, classes - 1)
    table[ADAPTIVE] = vc_range(2 * classes, vcs - 1)
    given = options.get("eta")
    eta = Fraction(str(_ETA_OF[name] if given is None else given)).limit_denominator(1000)
    delta = int(options.get("outflank_distance") or 2) if name == "ofr" else 0
    lists = _lists(radices, torus, name == "ofr", delta)
    start = table[_START] = len(table)
    keys = int(np.prod([2 * k for k in radices]))
    moved = [start + _PLACES + place for place in lists[:keys]] + lists[keys:]
    return RoutingPlan(
        relation(_detour), plan_table([*table, eta.numerator, eta.denominator, *moved]), phases=3, uses_via=True,
        max_candidates=2 * len(radices) + 1, obligation="escape", escape_mask=all_vcs(2 * classes),
        every=relation(_every), one_per_router=True,
    )  # fmt: skip


@register("por")
def prepare_por(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Minimal or through the middle of another orthant, whichever is more profitable; 5 VCs on a torus."""
    return _prepare(topology, vcs, options, "por")


@register("ofr")
def prepare_ofr(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """As `por`, and beside the minimal orthant (Versaci 2013); 5 VCs on a torus, 3 on a mesh."""
    return _prepare(topology, vcs, options, "ofr")

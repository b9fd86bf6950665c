"""Dimension order on lines as BookSim 2 has it: either order, over an intermediate router, UGAL (booksim-routing.md).

A packet keeps in ``phase`` its order (bit 0: 1 descending) and its part (0 nothing decided, 1 to the intermediate
router, 2 to the destination), in ``via`` that router. All is decided at the first router, once.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import both
from hopforge.model.network.core.candidates import candidate
from hopforge.model.network.core.draws import draw_below
from hopforge.model.routing.contract.occupancy import used_credits
from hopforge.model.routing.contract.plan import (
    RoutingError,
    RoutingPlan,
    TooFewVcsError,
    all_vcs,
    register,
    relation,
    vc_range,
)
from hopforge.model.routing.grids.lines import COMPLETE, Lines, lines_of
from hopforge.model.topology import Topology

# table: 0 dimensions, 1 longest line, 2 all VCs, 3 order rule, 4 detour rule, 5 hosts, 6 start of the hosts' routers,
# 7 of the hosts' ports, 8 of coordinates [router, dimension], 9 of ports [router, dimension, coordinate], 10 of the
# ports' dimensions [router, port] (-1: a host's), 11 of the ports' directions (complete lines: -1), 12 ports of a
# router, 13 start of the peers [router, port], 14 VCs of a share by destination (0: no shares), 15 start of the hosts'
# numbers in their routers, 16 … 19 VCs [order, part - 1], then the sizes of the dimensions
(
    _N, _K, _ALL, _ORDER, _DETOUR, _HOSTS, _HOME, _PORT, _COORDS, _NEXT, _DIM, _WAY, _PORTS, _PEER, _SHARE, _LOCAL,
    _MASKS,
) = range(17)  # fmt: skip
_FIRST = _MASKS + 4
_ASCENDING, _COIN, _ADAPTIVE = range(3)
_NONE, _VALIANT, _ROMM, _UGAL = range(4)
_UNDECIDED, _TO_VIA, _FINAL = range(3)
#: a non-minimal way must be better by so many flits times hops
_THRESHOLD = 2


@both()
def _coordinate(table: Any, router: int, d: int) -> int:
    return table[table[_COORDS] + router * table[_N] + d]


@both()
def _next_port(table: Any, router: int, goal: int, order: int) -> int:
    """Port towards another router: in the lowest dimension that differs, or (`order` 1) the highest."""
    n = table[_N]
    for i in range(n):
        d = n - 1 - i if order == 1 else i
        there = _coordinate(table, goal, d)
        if there != _coordinate(table, router, d):
            return table[table[_NEXT] + (router * n + d) * table[_K] + there]
    return -1


@both()
def _vcs(table: Any, router: int, port: int, host: int, state: int) -> int:
    """VCs of a part and an order (`state`): with shares, that of where the packet turns to after this dimension."""
    mask = table[_MASKS + state]
    if table[_SHARE] == 0:
        return mask
    d = table[table[_DIM] + router * table[_PORTS] + port] + 1
    turn = table[table[_LOCAL] + host]
    if d < table[_N]:
        turn = _coordinate(table, table[table[_HOME] + host], d)
    share = ((1 << table[_SHARE]) - 1) << (turn * table[_SHARE])
    return share * (mask & -mask)


@both()
def _dimensions_apart(table: Any, a: int, b: int) -> int:
    count = 0
    for d in range(table[_N]):
        if _coordinate(table, a, d) != _coordinate(table, b, d):
            count += 1
    return count


@both()
def _draw_between(net: Any, table: Any, router: int, there: int, whole: int) -> int:
    """Random router: of a dimension that differs any coordinate (`whole`) or one between the two; else the same."""
    found, weight = 0, 1
    for d in range(table[_N]):
        a, b = _coordinate(table, router, d), _coordinate(table, there, d)
        size = table[_FIRST + d]
        if a == b:
            found += a * weight
        elif whole == 1:
            found += draw_below(net, router, size) * weight
        else:
            found += (min(a, b) + draw_below(net, router, abs(a - b) + 1)) * weight
        weight *= size
    return found


@both()
def _draw_order(net: Any, table: Any, router: int, there: int) -> int:
    """Order of a packet: ascending; by a fair coin; or the one whose first port is less used, a coin if equal."""
    if table[_ORDER] == _ASCENDING:
        return 0
    if table[_ORDER] == _ADAPTIVE:
        up = used_credits(net, router, _next_port(table, router, there, 0))
        down = used_credits(net, router, _next_port(table, router, there, 1))
        if up < down:
            return 0
        if down < up:
            return 1
    return draw_below(net, router, 2)


@both()
def _prefer_via(net: Any, table: Any, router: int, there: int, via: int, order: int) -> bool:
    """UGAL: hops times used credits of the first port of the whole way, of either way."""
    direct = used_credits(net, router, _next_port(table, router, there, order))
    around = used_credits(net, router, _next_port(table, router, via, order))
    hops = _dimensions_apart(table, router, there)
    more = _dimensions_apart(table, router, via) + _dimensions_apart(table, via, there)
    return hops * direct > more * around + _THRESHOLD


@both()
def _draw_via(net: Any, table: Any, router: int, there: int, order: int) -> int:
    """Intermediate router of a packet, its own router if there is none."""
    if table[_DETOUR] == _VALIANT:
        return table[table[_HOME] + draw_below(net, router, table[_HOSTS])]
    if table[_DETOUR] == _ROMM:
        return _draw_between(net, table, router, there, 0)
    via = _draw_between(net, table, router, there, 1)
    if via != router and _prefer_via(net, table, router, there, via, order):
        return via
    return router


@both()
def _eject(table: Any, host: int, out: Any) -> int:
    out[0] = candidate(table[table[_PORT] + host], table[_ALL])
    return 1


def _line_order(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    there = table[table[_HOME] + packet.dst]
    part, order = packet.phase >> 1, packet.phase & 1
    if part == _UNDECIDED:
        if there == router:
            return _eject(table, packet.dst, out)
        order = _draw_order(net, table, router, there)
        part = _FINAL
        if table[_DETOUR] != _NONE:
            packet.via = _draw_via(net, table, router, there, order)
            if packet.via != router:
                part = _TO_VIA
    elif part == _TO_VIA and (packet.via == router or (there == router and table[_DETOUR] == _VALIANT)):
        part = _FINAL
    packet.phase = 2 * part + order
    if part == _FINAL and there == router:
        return _eject(table, packet.dst, out)
    goal = there if part == _FINAL else packet.via
    port = _next_port(table, router, goal, order)
    out[0] = candidate(port, _vcs(table, router, port, packet.dst, 2 * order + part - 1))
    return 1


@both()
def _may_follow(table: Any, router: int, port: int, dimension: int, way: int, order: int) -> bool:
    """Tell whether a packet that came along a dimension may go on by a port: a later one, or straight on in a mesh."""
    place = router * table[_PORTS] + port
    d = table[table[_DIM] + place]
    if d < 0:
        return False
    if dimension < 0:
        return True
    if d == dimension:
        return way >= 0 and table[table[_WAY] + place] == way
    return d < dimension if order == 1 else d > dimension


@both()
def _add_state(router: int, in_port: int, dst: int, state: int, table: Any, out: Any, count: int) -> int:
    """Add what a packet of an order and a part (`state`: place of its VCs) may be given, wherever it is to turn."""
    order, there = state >> 1, table[table[_HOME] + dst]
    if state & 1 == 0:  # on its way to the intermediate router
        place = router * table[_PORTS] + in_port
        dimension, way = table[table[_DIM] + place], table[table[_WAY] + place]
        for port in range(table[_PORTS]):
            # a port faces the way that a packet which comes in by it has come from
            if _may_follow(table, router, port, dimension, 1 - way if way >= 0 else -1, order):
                out[count] = candidate(port, _vcs(table, router, port, dst, 2 * order))
                count += 1
    if there == router:
        out[count] = candidate(table[table[_PORT] + dst], table[_ALL])
    else:
        port = _next_port(table, router, there, order)
        out[count] = candidate(port, _vcs(table, router, port, dst, 2 * order + 1))
    return count + 1


def _every_line_order(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    """Give all that `_line_order` may give to a packet that came in there, whatever was drawn and queued."""
    count = 0
    at_host = table[table[_DIM] + router * table[_PORTS] + in_port] < 0
    for order in range(2 if table[_ORDER] != _ASCENDING else 1):
        for part in range(_TO_VIA if table[_DETOUR] != _NONE else _FINAL, _FINAL + 1):
            state = 2 * order + part - 1
            if at_host or (table[_MASKS + state] >> in_vc) & 1:
                count = _add_state(router, in_port, packet.dst, state, table, out, count)
    return count


def _port_lines(topology: Topology, lines: Lines) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Dimension of every port, and its direction in a mesh (1: to lower coordinates); -1: none. int64[router, port]."""
    dimension = np.full(topology.peer_router.shape, -1, np.int64)
    way = np.full(topology.peer_router.shape, -1, np.int64)
    for router, port in np.argwhere(topology.peer_router >= 0).tolist():
        here, there = lines.coords[router], lines.coords[topology.peer_router[router, port]]
        d = int(np.flatnonzero(here != there)[0])
        dimension[router, port] = d
        if lines.kind != COMPLETE:
            way[router, port] = int(there[d] < here[d])
    return dimension, way


def _masks(name: str, vcs: int, *, orders: bool, parts: bool) -> list[int]:
    """VCs [order, part - 1]: halves for the orders, halves (of these) for the parts."""
    shares = (2 if orders else 1) * (2 if parts else 1)
    if vcs % shares:
        raise RoutingError(f"router.vcs must be a multiple of {shares} for routing.algorithm {name}, not {vcs}")
    size = vcs // shares
    found = []
    for order in range(2):
        for part in range(2):
            share = (order if orders else 0) * (2 if parts else 1) + (part if parts else 0)
            found.append(vc_range(share * size, share * size + size - 1))
    return found


def _local_numbers(topology: Topology) -> NDArray[np.int64]:
    """Return the number of each host among those of its router."""
    order = np.argsort(topology.host_router, kind="stable")
    routers = topology.host_router[order]
    found = np.empty(topology.hosts, np.int64)
    found[order] = np.arange(topology.hosts) - np.searchsorted(routers, routers)
    return found


def _shares(topology: Topology, lines: Lines, vcs: int, name: str) -> int:
    """Return the VCs of a destination's share in each part: one of k, the routers of a line and hosts of a router."""
    k = max(lines.sizes)
    hosts = np.bincount(topology.host_router, minlength=topology.routers)
    if min(lines.sizes) != k or (hosts != k).any():
        sizes = ", ".join(str(size) for size in lines.sizes)
        raise RoutingError(
            f"routing.algorithm {name} needs as many hosts at every router as routers in every line, "
            f"not {int(hosts.min())} to {int(hosts.max())} hosts and lines of {sizes}"
        )
    if vcs < 2 * k:
        why = f"{k} shares of destinations in each of the two parts of a way"
        raise TooFewVcsError(2 * k, f"for routing.algorithm {name}", vcs, why)
    return vcs // 2 // k


def _prepare(
    topology: Topology, vcs: int, name: str, order: int, detour: int, *, by_destination: bool = False
) -> RoutingPlan:
    lines = lines_of(topology, name)
    if detour in (_VALIANT, _UGAL) and lines.kind != COMPLETE:
        raise RoutingError(f"routing.algorithm {name} needs lines whose routers are all linked, not {topology.name}")
    if detour == _ROMM and topology.kind != "mesh":
        raise RoutingError(f"routing.algorithm {name} needs a topology of kind mesh, not {topology.kind}")
    dimension, way = _port_lines(topology, lines)
    values = [
        topology.host_router, topology.host_port, lines.coords, lines.port, dimension, way, topology.peer_router,
        _local_numbers(topology),
    ]  # fmt: skip
    flat = [np.asarray(one, np.int64).reshape(-1) for one in values]
    start = _FIRST + len(lines.sizes)
    starts = [start + sum(len(one) for one in flat[:i]) for i in range(len(flat))]
    home, port, coords, following, dim, direction, peer, local = starts
    masks = _masks(name, vcs, orders=order != _ASCENDING, parts=detour != _NONE)
    share = _shares(topology, lines, vcs, name) if by_destination else 0
    inject = None
    if by_destination:
        size = vcs // lines.sizes[0]
        inject = ((1 << size) - 1) << (lines.coords[topology.host_router, 0] * size)
    header = [
        len(lines.sizes), max(lines.sizes), all_vcs(vcs), order, detour, topology.hosts, home, port, coords, following,
        dim, direction, topology.max_ports, peer, share, local, *masks,
    ]  # fmt: skip
    table = np.concatenate([np.array([*header, *lines.sizes]), *flat]).astype(np.int32)
    simple = order == _ASCENDING and detour == _NONE
    return RoutingPlan(
        relation(_line_order),
        table,
        max_candidates=1 if simple else 2 * topology.max_ports + 4,
        phases=6,
        uses_via=detour != _NONE,
        random=not simple,
        every=None if simple else relation(_every_line_order),
        inject_by_destination=inject,
    )


def _register(name: str, meaning: str, order: int, detour: int, *, by_destination: bool = False) -> None:
    def prepare(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
        return _prepare(topology, vcs, name, order, detour, by_destination=by_destination)

    prepare.__doc__ = meaning
    register(name)(prepare)


_register("booksim_dor", "Dimension order, dimension 0 first; any VC.", _ASCENDING, _NONE)
_register("booksim_xy_yx", "Ascending or descending dimension order by a fair coin.", _COIN, _NONE)
_register("booksim_adaptive_xy_yx", "The order whose first port is less used.", _ADAPTIVE, _NONE)
_register("booksim_romm", "Over a random router between source and destination.", _ASCENDING, _ROMM)
_register("booksim_valiant", "Over the router of a random host.", _ASCENDING, _VALIANT)
_register("booksim_ugal", "Minimal, or over a random router, by hops times queues.", _ASCENDING, _UGAL)
_register("booksim_ugal_xy_yx", "The same in either dimension order, by a fair coin.", _COIN, _UGAL)
_register(
    "booksim_ugal_pni", "As booksim_ugal, on VCs of the destination's coordinates.", _ASCENDING, _UGAL,
    by_destination=True,
)  # fmt: skip

"""The table of ways that relations read, and what packets on them do next (docs/definitions/any-routing.md).

The class of a packet's virtual channel follows from where it came in, so no router has to be told.
"""

from typing import Any

import numpy as np
from numba import uint32, uint64
from numpy.typing import NDArray

from hopforge.model.kernel.bits import bit_of, trailing_zeros
from hopforge.model.kernel.compile import both
from hopforge.model.network.core.candidates import candidate
from hopforge.model.routing.contract.plan import RoutingError, all_vcs
from hopforge.model.routing.ways.all_pairs import Ways, ways_to_groups
from hopforge.model.routing.ways.channel_classes import HOPS, PHASES, TURNS, Classes
from hopforge.model.topology import Topology

# table: 0 goals (routers, and groups behind them), 1 ports, 2 all VCs, 3 classes, 4 scheme, 5 intermediates of a
# decision, 6 rule, 7 routers with hosts, 8 routers, 9 groups (0: detours go over routers); then where these begin:
# 10 routers of hosts, 11 their ports, 12 neighbours [router, port], 13 kind of the channel [router, port], 14 ways
# [router, goal, word, 2 halves], 15 length and rises left [router, goal], 16 VCs of a class, 17 class of a VC,
# 18 routers with hosts, 19 their places among them [router], 20 ports after a port [router, port, word, 2 halves],
# 21 group of a router; 22 how detours are decided, 23 words of a mask of ports
(
    GOALS, PORTS, ALL, CLASSES, SCHEME, DRAWS, RULE, HOMES, ROUTERS, GROUPS, HOME, HOST_PORT, PEER, KIND, WAYS, LEFT,
    MASK, CLASS, LIST, PLACE, AFTER, GROUP, HOW, WORDS, FIRST,
) = range(25)  # fmt: skip
#: value of `GROUPS`: detours go over neighbours of the source
NEIGHBOURS = -1
#: kinds of an output port: its channel goes down, up, or to a host
DOWN, UP, TO_HOST = range(3)
#: bits of the length of a way, and of the rises that are left
BITS, LOW = 8, 255


@both()
def halves(table: Any, place: int) -> Any:
    """Mask of ports that stands in two entries of the table."""
    return uint64(uint32(table[place])) | (uint64(uint32(table[place + 1])) << uint64(32))


@both()
def way_ports(table: Any, router: int, goal: int, word: int) -> Any:
    """Mask of the ports 64 · `word` … towards a goal."""
    return halves(table, table[WAYS] + 2 * ((router * table[GOALS] + goal) * table[WORDS] + word))


@both()
def links_between(table: Any, router: int, goal: int) -> int:
    """Links of the way to a goal."""
    return table[table[LEFT] + router * table[GOALS] + goal] & LOW


@both()
def is_at(table: Any, router: int, goal: int) -> bool:
    """Whether a router is a goal, or in it."""
    routers = table[ROUTERS]
    return router == goal if goal < routers else table[table[GROUP] + router] == goal - routers


@both()
def rises_left(table: Any, router: int, goal: int, down: int) -> int:
    """By how much the class rises at most on the way to a router."""
    return (table[table[LEFT] + router * table[GOALS] + goal] >> (BITS + BITS * down)) & LOW


@both()
def class_after(table: Any, router: int, in_port: int, in_vc: int, port: int, homeward: bool) -> int:
    """Class of the channel of an output port for a packet that came in by (port, VC)."""
    if table[SCHEME] == PHASES:
        return table[CLASSES] - 1 if homeward else 0
    came_by = table[table[KIND] + router * table[PORTS] + in_port]
    if came_by == TO_HOST:
        return 0
    klass = table[table[CLASS] + in_vc]
    if table[SCHEME] == HOPS:
        return klass + 1
    # the channel by which it came goes down if the one back goes up
    turns = came_by == UP and table[table[KIND] + router * table[PORTS] + port] == UP
    return klass + 1 if turns else klass


@both()
def add_way(
    table: Any, out: Any, count: int, router: int, in_port: int, in_vc: int, goal: int, first: int, homeward: bool
) -> int:
    """Add the ports towards a router; the packet's number `first` says which of them stands in front."""
    ports = count_ways(table, router, goal)
    place = first % ports if ports > 1 else 0
    for word in range(table[WORDS]):
        mask = way_ports(table, router, goal, word)
        while mask != uint64(0):
            port = (word << 6) + trailing_zeros(mask)
            mask &= mask - uint64(1)
            klass = class_after(table, router, in_port, in_vc, port, homeward)
            out[count + place] = candidate(port, table[table[MASK] + klass])
            place = place + 1 if place + 1 < ports else 0
    return count + ports


@both()
def count_ways(table: Any, router: int, goal: int) -> int:
    """Count the ports towards a goal."""
    ports = 0
    for word in range(table[WORDS]):
        mask = way_ports(table, router, goal, word)
        while mask != uint64(0):
            mask &= mask - uint64(1)
            ports += 1
    return ports


@both()
def add_one_way(
    table: Any, out: Any, router: int, in_port: int, in_vc: int, goal: int, place: int, homeward: bool
) -> int:
    """Add one of the ports towards a goal: that of this place among them, the lowest first; none if there is no way."""
    for word in range(table[WORDS]):
        mask = way_ports(table, router, goal, word)
        while mask != uint64(0):
            if place == 0:
                port = (word << 6) + trailing_zeros(mask)
                klass = class_after(table, router, in_port, in_vc, port, homeward)
                out[0] = candidate(port, table[table[MASK] + klass])
                return 1
            mask &= mask - uint64(1)
            place -= 1
    return 0


@both()
def add_arrival(table: Any, out: Any, host: int) -> int:
    """Let a packet go to its host, on any virtual channel."""
    out[0] = candidate(table[table[HOST_PORT] + host], table[ALL])
    return 1


# --- everything that a packet on a detour can ever do, for the proof


@both()
def _fits(table: Any, router: int, port: int, home: int, klass: int, down: int) -> bool:
    """Whether a packet that takes this class of a port can still go to its destination from there."""
    there = table[table[PEER] + router * table[PORTS] + port]
    return klass + rises_left(table, there, home, down) < table[CLASSES]


def every_by_phases(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    """Give the ways that begin here, or follow the one by which a packet came; at a router with hosts the way home."""
    home = table[table[HOME] + packet.dst]
    if home == router:
        return add_arrival(table, out, packet.dst)
    from_host = table[table[KIND] + router * table[PORTS] + in_port] == TO_HOST
    outward = from_host or table[table[CLASS] + in_vc] == 0
    count = 0
    if not outward or table[table[LIST] + table[table[PLACE] + router]] == router:
        count = add_way(table, out, 0, router, in_port, in_vc, home, 0, True)
    if outward:
        masks = table[AFTER] + 2 * table[WORDS] * (router * table[PORTS] + in_port)
        for port in range(table[PORTS]):
            if halves(table, masks + 2 * (port >> 6)) & bit_of(port) != uint64(0):
                out[count] = candidate(port, table[table[MASK]])
                count += 1
    return count


def every_by_turns(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    """Give every neighbour from which the destination is in reach."""
    home = table[table[HOME] + packet.dst]
    if home == router:
        return add_arrival(table, out, packet.dst)
    count = 0
    for port in range(table[PORTS]):
        kind = table[table[KIND] + router * table[PORTS] + port]
        if table[table[PEER] + router * table[PORTS] + port] >= 0:
            klass = class_after(table, router, in_port, in_vc, port, False)
            if _fits(table, router, port, home, klass, 0 if kind == UP else 1):
                out[count] = candidate(port, table[table[MASK] + klass])
                count += 1
    return count


def every_by_hops(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    """Give the same; by how many links a packet came is all that counts."""
    home = table[table[HOME] + packet.dst]
    if home == router:
        return add_arrival(table, out, packet.dst)
    klass = table[table[CLASS] + in_vc] + 1 if packet.hops > 0 else 0
    count = 0
    for port in range(table[PORTS]):
        if table[table[PEER] + router * table[PORTS] + port] >= 0 and _fits(table, router, port, home, klass, 0):
            out[count] = candidate(port, table[table[MASK] + klass])
            count += 1
    return count


EVERY = {PHASES: every_by_phases, TURNS: every_by_turns, HOPS: every_by_hops}


def ways_table(
    topology: Topology,
    vcs: int,
    ways: Ways,
    classes: Classes,
    *,
    draws: int = 0,
    rule: int = 0,
    groups: NDArray[np.int64] | None = None,
    how: int = 0,
    neighbours: bool = False,
) -> NDArray[np.int32]:
    """Return the table of a network; `groups` of the routers are goals, too, if detours go over them."""
    R, P = topology.routers, topology.max_ports
    homes = np.unique(topology.host_router)
    place = np.zeros(R, np.int32)
    place[homes] = np.arange(len(homes))
    kind = np.where(topology.host_at >= 0, TO_HOST, np.where(classes.up, UP, DOWN))
    far = None if groups is None else ways_to_groups(ways, groups, homes)
    count, halves_of_mask = 0 if far is None else far.length.shape[1], 2 * ways.ports.shape[2]
    goals = R + count
    parts = {
        HOME: topology.host_router, HOST_PORT: topology.host_port, PEER: topology.peer_router, KIND: kind,
        WAYS: None, LEFT: None, MASK: np.array(classes.masks), CLASS: np.array(classes.of_vc), LIST: homes,
        PLACE: place, AFTER: _two_halves(classes.after), GROUP: np.zeros(R, np.int64) if groups is None else groups,
    }  # fmt: skip
    large = {WAYS: R * goals * halves_of_mask, LEFT: R * goals}  # made in place: they are most of all
    sizes = [large[at] if part is None else part.size for at, part in parts.items()]
    starts = dict(zip(parts, np.cumsum([FIRST, *sizes]).tolist(), strict=False))
    if FIRST + sum(sizes) > np.iinfo(np.int32).max:
        raise RoutingError(
            f"the ways of {R} routers of {P} ports need a table of {FIRST + sum(sizes)} entries, more than "
            f"{np.iinfo(np.int32).max}"
        )
    table = np.empty(FIRST + sum(sizes), np.int32)
    over = NEIGHBOURS if neighbours else count
    header = [goals, P, all_vcs(vcs), classes.count, classes.scheme, draws, rule, len(homes), R, over]
    table[:FIRST] = [*header, *starts.values(), how, ways.ports.shape[2]]
    for at, part in parts.items():
        if part is not None:
            table[starts[at] : starts[at] + part.size] = part.reshape(-1)
    masks = table[starts[WAYS] :][: large[WAYS]].reshape(R, goals, halves_of_mask)
    left = table[starts[LEFT] :][: large[LEFT]].reshape(R, goals)
    masks[:, :R] = _two_halves(ways.ports)
    for router in range(R):
        rises = classes.left[:, router].astype(np.int32)
        left[router, :R] = ways.length[router] | rises[:, 0] << BITS | rises[:, 1] << 2 * BITS
    if far is not None:
        masks[:, R:], left[:, R:] = _two_halves(far.ports), far.length
    return table


def way_rows(table: NDArray[np.int32]) -> tuple[tuple[int, int], ...]:
    """Where the ways and the lengths from router 0 begin in the table, and how many entries those of a router take."""
    goals, words = int(table[GOALS]), int(table[WORDS])
    return (int(table[WAYS]), 2 * goals * words), (int(table[LEFT]), goals)


def _two_halves(masks: NDArray[np.uint64]) -> NDArray[np.int32]:
    """See the lower and upper halves of masks side by side."""
    return np.ascontiguousarray(masks).astype("<u8", copy=False).view("<i4")

"""The short proof of ways on any network: numbers of channels that rise with every link of every way.

Definition: docs/definitions/short-proof.md (Ways with classes). All that the argument needs is read from the table that
the relations of `model.routing.ways.table` read, not from what made it.
"""

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from hopforge.model.kernel.bits import any_bit, trailing_zeros
from hopforge.model.kernel.compile import inner, kernel
from hopforge.model.routing.contract.channel_order import places_in_order
from hopforge.model.routing.contract.plan import IrregularError, RoutingPlan
from hopforge.model.routing.ways.channel_classes import HOPS, PHASES
from hopforge.model.routing.ways.survey import ports_of_masks
from hopforge.model.routing.ways.table import (
    AFTER,
    BITS,
    CLASS,
    CLASSES,
    DOWN,
    GOALS,
    HOME,
    HOST_PORT,
    KIND,
    LEFT,
    LIST,
    LOW,
    MASK,
    PEER,
    PORTS,
    ROUTERS,
    SCHEME,
    TO_HOST,
    UP,
    WAYS,
    WORDS,
)
from hopforge.model.topology import Topology

__all__ = ["rising_channels_of"]

#: answers of `_first_fault`
_FINE, _NO_WAY, _LONG_WAY, _MORE_CLASSES, _FALLS = range(5)
_WORDS = {
    _NO_WAY: "there is no way from router {router} to router {goal}",
    _LONG_WAY: "a way from router {router} to router {goal} does not come nearer",
    _MORE_CLASSES: "a way from router {router} to router {goal} needs more classes than there are",
    _FALLS: "the channels of ways to router {goal} are in no order at router {router}",
}


def rising_channels_of(topology: Topology, plan: RoutingPlan, vcs: int) -> tuple[NDArray[np.int64], int, str]:
    """Give all channels numbers so that every link of every way has a higher number than the one before.

    Parameters
    ----------
    topology : Topology
        The network.
    plan : RoutingPlan
        Its table is one of `ways_table`.
    vcs : int
        Virtual channels.

    Returns
    -------
    ndarray, int64[channel]
        Number; -1: to a host, or none.
    int
        One more than the largest.
    str
        For people.

    Raises
    ------
    IrregularError
        There is no such numbering, or the table is none of this network.
    """
    t = np.asarray(plan.table, np.int32)
    R, P, C, scheme = topology.routers, topology.max_ports, int(t[CLASSES]), int(t[SCHEME])
    kind = _part(t, KIND, R * P).reshape(R, P)
    linked = topology.peer_router >= 0
    _match_network(topology, t, kind)
    of_vc = _classes_of_vcs(t, vcs)
    if scheme == PHASES and plan.uses_via and C < 2:
        raise IrregularError("the way home from an intermediate destination has no class of its own")
    goals = int(t[GOALS])
    ways = _masks(t, WAYS, R * goals).reshape(R, goals, -1)[:, :R]
    left = _part(t, LEFT, R * goals).reshape(R, goals)[:, :R]
    hosts = np.zeros(R, np.bool_)
    hosts[topology.host_router] = True
    rank, words = np.zeros((R, P), np.int64), "a higher class for every link"
    if scheme == PHASES:
        homes = np.flatnonzero(hosts)
        if not np.array_equal(_part(t, LIST, len(homes)), homes):
            raise IrregularError("the table names other routers with hosts")
        rank = _after_order(topology, _masks(t, AFTER, R * P))
        words = "channels in an order in each class"
    elif scheme != HOPS:
        rank, words = _up_order(topology, kind), "channels up, then down in each class, each in an order"
    code, router, goal = _first_fault(
        topology.peer_router, kind, ways, left, hosts, rank, C, scheme,
    )  # fmt: skip
    if code != _FINE:
        raise IrregularError(_WORDS[code].format(router=router, goal=goal))
    span = int(rank.max()) + 1
    number = of_vc[None, None, :] * span + rank[:, :, None]
    number = np.where(linked[:, :, None] & (of_vc >= 0), number, -1)
    return number.reshape(-1), C * span, f"{C} classes of virtual channels, {words}"


def _part(table: NDArray[np.int32], place: int, size: int) -> NDArray[np.int32]:
    """Return a part of the table whose start stands at a place of its head."""
    start = int(table[place])
    if start < 0 or start + size > len(table):
        raise IrregularError("the table is too short")
    return table[start : start + size]


def _masks(table: NDArray[np.int32], place: int, size: int) -> NDArray[np.uint64]:
    """Return masks of ports, uint64[mask, word], whose words stand in two entries each."""
    ports, words = int(table[PORTS]), int(table[WORDS])
    if words != (ports + 63) // 64:
        raise IrregularError(f"the table has masks of {words} words for {ports} ports")
    halves = np.ascontiguousarray(_part(table, place, 2 * words * size), "<i4")
    masks = np.require(halves.view("<u8"), np.uint64, "A").reshape(size, words)
    if ports & 63 and (masks[:, -1] >> np.uint64(ports & 63)).any():
        raise IrregularError("the table names ports that there are not")
    return masks


def _match_network(topology: Topology, t: NDArray[np.int32], kind: NDArray[np.int32]) -> None:
    """Refuse a table of another network, or one that says the same of both directions of a link."""
    R, P, H = topology.routers, topology.max_ports, topology.hosts
    same = (
        (int(t[ROUTERS]), int(t[PORTS])) == (R, P)
        and np.array_equal(_part(t, PEER, R * P), topology.peer_router.reshape(-1))
        and np.array_equal(_part(t, HOME, H), topology.host_router)
        and np.array_equal(_part(t, HOST_PORT, H), topology.host_port)
    )
    if not same or not np.array_equal(kind == TO_HOST, topology.host_at >= 0):
        raise IrregularError("the table is one of another network")
    router, port = np.nonzero(topology.peer_router >= 0)
    back = kind[topology.peer_router[router, port], topology.peer_port[router, port]]
    if not np.array_equal(kind[router, port] == UP, back == DOWN):
        raise IrregularError("both directions of a link go up, or both go down")


def _classes_of_vcs(t: NDArray[np.int32], vcs: int) -> NDArray[np.int64]:
    """Class of each virtual channel, int64[vc]; every one belongs to the class that its mask says."""
    count = int(t[CLASSES])
    of_vc, masks = _part(t, CLASS, vcs), _part(t, MASK, count)
    for k in range(count):
        own = sum(1 << v for v in range(vcs) if of_vc[v] == k)
        if own == 0 or int(masks[k]) & 0xFFFFFFFF != own:
            raise IrregularError(f"class {k} has other virtual channels than routers take for those of it")
    return of_vc.astype(np.int64)


def _up_order(topology: Topology, kind: NDArray[np.int32]) -> NDArray[np.int64]:
    """Rank of the channel of each output port inside a class: up ones rise, and down ones rise behind them."""
    router, port = np.nonzero((topology.peer_router >= 0) & (kind == UP))
    place = places_in_order(router, topology.peer_router[router, port].astype(np.int64), topology.routers)
    if place is None:
        raise IrregularError("the channels that go up are in no order")
    top = int(place.max()) + 1
    return np.where(kind == UP, place[:, None], 2 * top - 1 - place[:, None])


def _after_order(topology: Topology, after: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Rank of the channel of each output port: those of its mask, uint64[channel, word], have a higher one."""
    R, P = topology.routers, topology.max_ports
    linked = np.flatnonzero(topology.peer_router >= 0)
    edge, port = ports_of_masks(after[linked])
    router, in_port = linked[edge] // P, linked[edge] % P
    source = topology.peer_router[router, in_port].astype(np.int64) * P + topology.peer_port[router, in_port]
    place = places_in_order(source, router * P + port, R * P)
    if place is None:
        raise IrregularError("channels that follow one another are in no order")
    return place.reshape(R, P)


@inner
def _links_of(left):  # type: ignore[no-untyped-def]
    """Links that are left, of an entry of the table."""
    return int64(left & LOW)


@inner
def _rises_of(left, down):  # type: ignore[no-untyped-def]
    """Rises of the class that are left for a packet that came by a channel that goes up (`down` 0) or down."""
    return int64((left >> (BITS + BITS * down)) & LOW)


@inner
def _falls(mask, rank, least):  # type: ignore[no-untyped-def]
    """Whether one of the ports of a mask has no higher rank than `least`."""
    for word in range(len(mask)):
        rest = mask[word]
        while rest != uint64(0):
            port = (word << 6) + trailing_zeros(rest)
            rest &= rest - uint64(1)
            if rank[port] <= least:
                return True
    return False


@kernel
def _first_fault(peer, kind, ways, left, hosts, rank, classes, scheme):  # type: ignore[no-untyped-def]
    """Go through all ways to routers with hosts: what is wrong, and at which router and goal."""
    routers, words = peer.shape[0], ways.shape[2]
    order, count = np.empty(routers, np.int64), np.zeros(258, np.int64)
    reached = np.empty(routers, np.bool_)
    for goal in range(routers):
        if not hosts[goal]:
            continue
        count[:] = 0
        for router in range(routers):
            count[_links_of(left[router, goal]) + 1] += 1
        for n in range(256):
            count[n + 1] += count[n]
        for router in range(routers):
            order[count[_links_of(left[router, goal])]] = router
            count[_links_of(left[router, goal])] += 1
        reached[:] = hosts
        for k in range(routers - 1, -1, -1):  # farthest first
            router = order[k]
            if router == goal:
                continue
            if not reached[router] and scheme == PHASES:
                continue  # no packet to the goal comes by here
            if not any_bit(ways[router, goal], 0, words):
                return _NO_WAY, router, goal
            most = _links_of(left[router, goal]) - 1 if scheme == HOPS else _rises_of(left[router, goal], 0)
            if hosts[router] and scheme != PHASES and most >= classes:
                return _MORE_CLASSES, router, goal
            for word in range(words):
                mask = ways[router, goal, word]
                while mask != uint64(0):
                    port = (word << 6) + trailing_zeros(mask)
                    mask &= mask - uint64(1)
                    there = int64(peer[router, port])
                    if there < 0 or _links_of(left[there, goal]) != _links_of(left[router, goal]) - 1:
                        return _LONG_WAY, router, goal
                    reached[there] = True
                    if scheme == PHASES:
                        if there != goal and _falls(ways[there, goal], rank[there], rank[router, port]):
                            return _FALLS, there, goal
                        continue
                    left_up, left_down = _rises_of(left[router, goal], 0), _rises_of(left[router, goal], 1)
                    if scheme == HOPS:
                        links = _links_of(left[router, goal])
                        if left_up != links or left_down < links:
                            return _MORE_CLASSES, router, goal
                    else:
                        rises = int64(kind[router, port] == UP)
                        behind = _rises_of(left[there, goal], 1 - rises)
                        if left_up < behind or left_down < behind + rises:
                            return _MORE_CLASSES, router, goal
    return _FINE, -1, -1

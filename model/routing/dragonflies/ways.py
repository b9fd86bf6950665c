"""Ways through a dragonfly: which port leads to a group or to a router, as a table that relations read.

Header of the table: 0 p, 1 a, 2 groups, 3 ports of a router, 4 links of a pair of groups, 5 VCs, 6 and 7 free for the
algorithm, 8 … 10 where the router of each host, the group of each router and its number in the group begin (a look is
faster than a division), 11 whether every pair of groups has a link, 12 the rule of parallel links; then the global
links as `model.topology.parallel_links` lists and chooses them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import both
from hopforge.model.network.core.candidates import candidate, candidate_port
from hopforge.model.routing.contract.plan import RoutingError, need_kind, need_vcs
from hopforge.model.topology import Topology
from hopforge.model.topology.parallel_links import (
    PORT_BITS,
    PORT_MASK,
    LinkRule,
    chosen_link,
    group_links,
    link_number,
)

P, A, GROUPS, PORTS, LINKS, VCS, FREE0, FREE1, HOSTS_AT, GROUPS_AT, NUMBERS_AT, WHOLE, RULE, GLOBAL = range(14)
#: values of RULE; `adaptive` takes no number
_RULES: tuple[LinkRule, ...] = ("own_first", "destination", "hash", "adaptive")
_OWN_FIRST, _DESTINATION, _HASH, _ADAPTIVE = range(4)


@both()
def router_of(table: Any, host: int) -> int:
    """Router of a host."""
    return table[table[HOSTS_AT] + host]


@both()
def group_of(table: Any, router: int) -> int:
    """Group of a router."""
    return table[table[GROUPS_AT] + router]


@both()
def number_of(table: Any, router: int) -> int:
    """Place of a router in its group."""
    return table[table[NUMBERS_AT] + router]


@both()
def local_port(table: Any, mine: int, other: int) -> int:
    """Port of router number `mine` of a group to number `other` (≠ mine) of it."""
    return table[P] + other - (1 if other > mine else 0)


@both()
def first_link(table: Any, group: int, goal: int) -> int:
    """Place in the table of the first link between two groups; -1 behind the last one."""
    return GLOBAL + (group * table[GROUPS] + goal) * table[LINKS]


@both()
def joined(table: Any, group: int, goal: int) -> bool:
    """Whether two groups have a link."""
    return table[WHOLE] == 1 or table[first_link(table, group, goal)] >= 0


@both()
def next_between(table: Any, group: int, source: int, goal: int) -> int:
    """First group at or after `group`, going round, that has links with both others; -1: none."""
    for _ in range(table[GROUPS]):
        if group not in (source, goal) and joined(table, source, group) and joined(table, group, goal):
            return group
        group = group + 1 if group + 1 < table[GROUPS] else 0
    return -1


@both()
def number_of_packet(table: Any, packet: Any) -> int:
    """Return the number by which a packet chooses among parallel links."""
    return link_number(packet.src, packet.dst, table[RULE] == _HASH)


@both()
def port_to_group(table: Any, router: int, goal: int, number: int) -> int:
    """Port towards another group for a packet of this `number_of_packet`: a global link, or the way to its router.

    With one link for each pair of groups `number` does not matter; without one (see `joined`) the answer is no port.
    """
    links, mine = table[LINKS], number_of(table, router)
    first = first_link(table, group_of(table, router), goal)
    entry = table[first]
    if links > 1:
        entry = chosen_link(table, first, links, mine, number, table[RULE] == _OWN_FIRST)
    if entry >> PORT_BITS == mine:
        return entry & PORT_MASK
    return local_port(table, mine, entry >> PORT_BITS)


@both()
def port_to_router(table: Any, router: int, goal: int, number: int) -> int:
    """Port of a shortest way to another router (in the same group: direct)."""
    group = group_of(table, goal)
    if group_of(table, router) == group:
        return local_port(table, number_of(table, router), number_of(table, goal))
    return port_to_group(table, router, group, number)


@both()
def port_to_host(table: Any, router: int, dst: int, number: int) -> int:
    """Port of the minimal way to host `dst`."""
    goal = router_of(table, dst)
    if goal == router:
        return dst - goal * table[P]
    return port_to_router(table, router, goal, number)


@both()
def add_links(table: Any, out: Any, router: int, goal: int, before: int, after: int, committed: bool) -> int:
    """Make a candidate of every port by which a minimal way to another group may go on, in increasing order.

    Parameters
    ----------
    goal : int
        The group.
    before, after : int
        VCs towards other routers of this group, and on global links.
    committed : bool
        The packet has come to this router for its global links: no way to other routers.
    """
    links, mine = table[LINKS], number_of(table, router)
    first = first_link(table, group_of(table, router), goal)
    count, last = 0, -1
    for k in range(links):
        other = table[first + k] >> PORT_BITS
        if other >= 0 and other != mine and other != last and not committed:  # noqa: PLR1714 - not in kernels
            out[count] = candidate(local_port(table, mine, other), before)
            count += 1
        last = other
    for k in range(links):
        entry = table[first + k]
        if entry >= 0 and entry >> PORT_BITS == mine:
            out[count] = candidate(entry & PORT_MASK, after)
            count += 1
    return count


@both()
def begin_with_link(table: Any, out: Any, count: int, router: int, goal: int, number: int, committed: bool) -> None:
    """Turn the list of `add_links` until it begins with the link of a packet's number: with like queues it is taken."""
    links, mine = table[LINKS], number_of(table, router)
    first = first_link(table, group_of(table, router), goal)
    entry = chosen_link(table, first, links, mine, number, committed)
    owner = entry >> PORT_BITS
    port = entry & PORT_MASK if owner == mine else local_port(table, mine, owner)
    place = 0
    while place < count and candidate_port(out[place]) != port:
        place += 1
    for _ in range(place if place < count else 0):
        head = out[0]
        for k in range(count - 1):
            out[k] = out[k + 1]
        out[count - 1] = head


@both()
def add_minimal(table: Any, out: Any, router: int, dst: int, mask: int, committed: bool) -> int:
    """Make a candidate of the minimal way's port; where the source decides among parallel links, of all of them."""
    goal = group_of(table, router_of(table, dst))
    if table[RULE] == _HASH and table[LINKS] > 1 and goal != group_of(table, router):
        return add_links(table, out, router, goal, mask, mask, committed)
    out[0] = candidate(port_to_host(table, router, dst, dst), mask)
    return 1


@both()
def add_global(table: Any, out: Any, count: int, router: int, goal: int, vc: int) -> int:
    """Add a candidate for every global port with a link to a group that has a link to group `goal`, or to `goal`."""
    mine, group = number_of(table, router), group_of(table, router)
    for other in range(table[GROUPS]):
        if other != goal and not joined(table, other, goal):
            continue
        first = first_link(table, group, other)
        for k in range(table[LINKS]):
            entry = table[first + k]
            if entry >= 0 and entry >> PORT_BITS == mine:
                out[count] = candidate(entry & PORT_MASK, 1 << vc)
                count += 1
    return count


@both()
def leads_on(table: Any, router: int, goal: int) -> bool:
    """Whether a router has a global link to a group from which a link leads to group `goal`, or to `goal`."""
    mine, group = number_of(table, router), group_of(table, router)
    for other in range(table[GROUPS]):
        if other != group and (other == goal or joined(table, other, goal)):
            first = first_link(table, group, other)
            for k in range(table[LINKS]):
                if table[first + k] >= 0 and table[first + k] >> PORT_BITS == mine:
                    return True
    return False


@both()
def add_local(table: Any, out: Any, count: int, router: int, goal: int, vc: int) -> int:
    """Add a candidate for every local port; in a group without a link to `goal` to routers that lead on only."""
    group = group_of(table, router)
    direct = group == goal or joined(table, group, goal)
    for other in range(table[A]):
        if other != number_of(table, router) and (direct or leads_on(table, group * table[A] + other, goal)):
            out[count] = candidate(local_port(table, number_of(table, router), other), 1 << vc)
            count += 1
    return count


def ways_table(topology: Topology, vcs: int, rule: LinkRule = "own_first") -> NDArray[np.int32]:
    """Table of the module for a dragonfly."""
    p, a, g = (int(topology.params[name]) for name in ("p", "a", "g"))
    entries = group_links(topology)
    hosts_at = GLOBAL + entries.size
    groups_at = hosts_at + topology.hosts
    numbers_at = groups_at + topology.routers
    whole = (entries[~np.eye(g, dtype=bool), 0] >= 0).all()
    header = [p, a, g, topology.max_ports, entries.shape[2], vcs, 0, 0, hosts_at, groups_at, numbers_at, whole]
    group, number = np.divmod(np.arange(topology.routers), a)
    parts = [np.array([*header, _RULES.index(rule)]), entries.reshape(-1), topology.host_router, group, number]
    return np.concatenate(parts).astype(np.int32)


def need_links(topology: Topology, name: str, *, around: bool) -> None:
    """Refuse a dragonfly that has lost links which the algorithm `name` cannot do without.

    Parameters
    ----------
    around : bool
        Two groups without a link between them may reach each other through a third one.

    Raises
    ------
    RoutingError
        A link inside a group has failed, or a pair of groups has no way: names both ends.
    """
    a, g = int(topology.params["a"]), int(topology.params["g"])
    peer = topology.peer_router
    router = np.arange(topology.routers)
    local = np.zeros((topology.routers, a), bool)
    links = np.eye(g, dtype=bool)
    here, port = np.nonzero(peer >= 0)
    there = peer[here, port]
    same = here // a == there // a
    local[here[same], there[same] % a] = True
    links[here // a, there // a] = True
    local[router, router % a] = True
    if not local.all():
        first, second = np.argwhere(~local)[0].tolist()
        raise RoutingError(
            f"routing.algorithm {name}: only links between groups may fail, not that of routers {first} and "
            f"{first // a * a + second}, which are in one group"
        )
    ways = links.astype(np.int64)
    lost = ~links if not around else (ways @ ways) == 0
    if lost.any():
        first, second = np.argwhere(lost)[0].tolist()
        what = "no link" if not around else "no link, and no third group has links with both"
        raise RoutingError(f"routing.algorithm {name}: groups {first} and {second} have {what}")


def need_dragonfly(topology: Topology, name: str, vcs: int, least: int, why: str, *, around: bool = True) -> None:
    """Refuse other networks, too few VCs, and groups without a way between them (`need_links`).

    Raises
    ------
    RoutingError
        Another kind of network, too few VCs, groups without links, or links that have failed.
    """
    need_kind(topology, name, "dragonfly")
    need_vcs(name, vcs, least, why)
    if int(topology.params["g"]) > 1 and int(topology.params["links_per_group_pair"]) < 1:
        raise RoutingError(
            f"routing.algorithm {name} needs a link for each pair of groups, which {topology.name} lacks"
        )
    need_links(topology, name, around=around)

"""Ways through a dragonfly: which port leads to a group or to a router, as a table that relations read.

Header of the table: 0 p, 1 a, 2 groups, 3 ports of a router, 4 links of a pair of groups, 5 VCs, 6 and 7 free for the
algorithm, 8 … 10 where the router of each host, the group of each router and its number in the group begin (a look is
faster than a division); then the global links [group, group, link]: router in its group · 64 + port.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hopforge.model.network.candidates import candidate
from hopforge.model.routing.plan import RoutingError, need_kind, need_vcs
from hopforge.model.topology import Topology

P, A, GROUPS, PORTS, LINKS, VCS, FREE0, FREE1, HOSTS_AT, GROUPS_AT, NUMBERS_AT, GLOBAL = range(12)


@njit
def router_of(table: Any, host: int) -> int:
    """Router of a host."""
    return table[table[HOSTS_AT] + host]


@njit
def group_of(table: Any, router: int) -> int:
    """Group of a router."""
    return table[table[GROUPS_AT] + router]


@njit
def number_of(table: Any, router: int) -> int:
    """Place of a router in its group."""
    return table[table[NUMBERS_AT] + router]


@njit
def local_port(table: Any, mine: int, other: int) -> int:
    """Port of router number `mine` of a group to number `other` (≠ mine) of it."""
    return table[P] + other - (1 if other > mine else 0)


@njit
def port_to_group(table: Any, router: int, goal: int, choice: int) -> int:
    """Port towards another group: a global link of this router's own, else the way to link `choice` (mod their number).

    With one link for each pair of groups `choice` does not matter.
    """
    links, mine = table[LINKS], number_of(table, router)
    first = GLOBAL + (group_of(table, router) * table[GROUPS] + goal) * links
    for k in range(links):
        entry = table[first + k]
        if entry >> 6 == mine:
            return entry & 63
    return local_port(table, mine, table[first + (choice % links if links > 1 else 0)] >> 6)


@njit
def port_to_router(table: Any, router: int, goal: int, choice: int) -> int:
    """Port of a shortest way to another router (in the same group: direct)."""
    group = group_of(table, goal)
    if group_of(table, router) == group:
        return local_port(table, number_of(table, router), number_of(table, goal))
    return port_to_group(table, router, group, choice)


@njit
def port_to_host(table: Any, router: int, dst: int) -> int:
    """Port of the minimal way to host `dst`; where there are several links between groups, its number chooses."""
    goal = router_of(table, dst)
    if goal == router:
        return dst - goal * table[P]
    return port_to_router(table, router, goal, dst)


@njit
def add_local(table: Any, out: Any, count: int, vc: int) -> int:
    """Add a candidate for every local port; returns the new count."""
    for port in range(table[P], table[P] + table[A] - 1):
        out[count] = candidate(port, 1 << vc)
        count += 1
    return count


@njit
def add_global(table: Any, out: Any, count: int, router: int, vc: int) -> int:
    """Add a candidate for every global port that has a link; returns the new count."""
    mine, group = number_of(table, router), group_of(table, router)
    first = GLOBAL + group * table[GROUPS] * table[LINKS]
    for k in range(table[GROUPS] * table[LINKS]):
        entry = table[first + k]
        if entry >= 0 and entry >> 6 == mine:
            out[count] = candidate(entry & 63, 1 << vc)
            count += 1
    return count


def ways_table(topology: Topology, vcs: int) -> NDArray[np.int32]:
    """Table of the module for a dragonfly."""
    p, a, g = (int(topology.params[name]) for name in ("p", "a", "g"))
    links = max(int(topology.params["links_per_group_pair"]), 1)
    hosts_at = GLOBAL + g * g * links
    groups_at = hosts_at + topology.hosts
    numbers_at = groups_at + topology.routers
    table = np.full(numbers_at + topology.routers, -1, np.int32)
    table[:GLOBAL] = [p, a, g, topology.max_ports, links, vcs, 0, 0, hosts_at, groups_at, numbers_at]
    table[hosts_at:groups_at] = topology.host_router
    table[groups_at:numbers_at] = np.arange(topology.routers) // a
    table[numbers_at:] = np.arange(topology.routers) % a
    taken = np.zeros((g, g), np.int64)
    for router in range(topology.routers):
        for port in range(p + a - 1, int(topology.ports[router])):
            peer = int(topology.peer_router[router, port])
            if peer >= 0:
                group, goal = router // a, peer // a
                table[GLOBAL + (group * g + goal) * links + taken[group, goal]] = router % a * 64 + port
                taken[group, goal] += 1
    return table


def need_dragonfly(topology: Topology, name: str, vcs: int, least: int) -> None:
    """Refuse other networks and too few VCs.

    Raises
    ------
    RoutingError
        Another kind of network, too few VCs, or groups without links.
    """
    need_kind(topology, name, "dragonfly")
    need_vcs(name, vcs, least)
    if int(topology.params["g"]) > 1 and int(topology.params["links_per_group_pair"]) < 1:
        raise RoutingError(
            f"routing.algorithm {name} needs a link for each pair of groups, which {topology.name} lacks"
        )

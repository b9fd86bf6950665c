"""Which of several parallel links a packet takes: the one rule of ``routing.links``, for all engines.

Parallel links are those between the same two routers, and the global links between the same two groups of a dragonfly.
Every packet has a number (`link_number`), and takes link (number mod links), counted in the order of the routers' and
ports' numbers. Docs: docs/guides/topologies.md.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hopforge.model.kernel.compile import kernel
from hopforge.model.topology.base import Topology, TopologyError

LinkRule = Literal["own_first", "destination", "hash", "adaptive"]

#: Knuth's multiplier: 2^32 divided by the golden ratio
_MULTIPLIER = 2654435761

PORT_BITS = 16
"""Of an entry of `group_links`: the bits of the port, below those of the router."""

PORT_MASK = (1 << PORT_BITS) - 1


@njit
def link_number(src: int, dst: int, hashed: bool) -> int:
    """Return the number that decides among parallel links: the destination host's, and with `hashed` a hash of both.

    The hash adds the upper 16 bits of src · 2654435761 mod 2^32 to the destination, so that the packets of one source
    to successive hosts take the links in turn, and those of all sources to one host take all links.
    """
    return dst + (((src * _MULTIPLIER) & 0xFFFFFFFF) >> 16 if hashed else 0)


class ParallelPorts(NamedTuple):
    """Ports that lead to the same router as a port.

    Attributes
    ----------
    links : ndarray, int32[router, port]
        How many, the port itself among them; 1: no parallel link, a host or no link.
    ports : ndarray, int32[router, port, number]
        Their numbers, increasing; -1 behind the last one.
    """

    links: NDArray[np.int32]
    ports: NDArray[np.int32]

    @property
    def some(self) -> bool:
        """Whether there are parallel links at all."""
        return self.ports.shape[2] > 1

    def of_number(self, router: int, port: NDArray[np.int32], number: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the ports that packets of these numbers take at a router, for ports to their neighbours (-1: none)."""
        chosen = self.ports[router, port, number % self.links[router, port]]
        return np.where(port >= 0, chosen, -1).astype(np.int32)


def parallel_ports(topology: Topology) -> ParallelPorts:
    """Find the parallel links between routers of a network, of those that work."""
    peer = topology.peer_router
    routers, width = peer.shape
    # a host, or no link, is a neighbour of its own
    key = np.where(peer >= 0, peer, topology.routers + np.arange(width))
    order = np.argsort(key, axis=1, kind="stable")
    sorted_key = np.take_along_axis(key, order, axis=1)
    new = np.ones((routers, width), bool)
    new[:, 1:] = sorted_key[:, 1:] != sorted_key[:, :-1]
    start = np.maximum.accumulate(np.where(new, np.arange(width), 0), axis=1)
    most = int((np.arange(width) - start).max(initial=0)) + 1
    lists = np.full((routers, width, most), -1, np.int32)  # of the bundle that begins at a place of the sorted ports
    row = np.arange(routers)[:, None]
    lists[row, start, np.arange(width) - start] = order
    ports = np.empty_like(lists)
    ports[row, order] = lists[row, start]
    return ParallelPorts((ports >= 0).sum(axis=2).astype(np.int32), ports)


def group_links(topology: Topology) -> NDArray[np.int32]:
    """List the global links of a dragonfly.

    Returns
    -------
    ndarray, int32[group, group, link]
        Router in its group · 2^`PORT_BITS` + port, in increasing order; -1 behind the last one of a pair.
    """
    p, a, g = (int(topology.params[name]) for name in ("p", "a", "g"))
    links = max(int(topology.params["links_per_group_pair"]), 1)
    table = np.full((g, g, links), -1, np.int32)
    taken = np.zeros((g, g), np.int64)
    far = topology.peer_router[:, p + a - 1 :]
    for router, port in np.argwhere(far >= 0).tolist():
        group, goal = router // a, int(far[router, port]) // a
        table[group, goal, taken[group, goal]] = router % a << PORT_BITS | p + a - 1 + port
        taken[group, goal] += 1
    return table


@njit
def chosen_link(entries: Any, first: int, links: int, mine: int, number: int, own_first: bool) -> int:
    """Choose among the links of a pair of groups.

    Link (number mod links), of those that work. With `own_first` a router that has links of its own to the group takes
    of them the one with (number mod links mod own ones).

    Parameters
    ----------
    entries : array
        Holds the links of the pair from place `first` on (`group_links`).
    links : int
        Links of a pair without failures.
    mine : int
        Place of the router in its group.
    number : int
        As `link_number` gives it.
    own_first : bool
        The rule.

    Returns
    -------
    int
        Entry of `group_links`; -1: no link is left.
    """
    number %= links
    while links > 0 and entries[first + links - 1] < 0:
        links -= 1
    if links == 0:
        return -1
    number %= links
    if own_first:
        own, begin = 0, 0
        for k in range(links):
            if entries[first + k] >> PORT_BITS == mine:
                begin = k if own == 0 else begin
                own += 1
        if own > 0:
            return entries[first + begin + number % own]
    return entries[first + number]


@kernel
def _fill_group_ports(entries: Any, table: Any, p: int, a: int, own_first: bool) -> None:
    groups, links = table.shape[1], table.shape[2]
    for router in range(table.shape[0]):
        mine, group = router % a, router // a
        for goal in range(groups):
            for number in range(links):
                entry = -1
                if goal != group:
                    entry = chosen_link(entries, (group * groups + goal) * links, links, mine, number, own_first)
                other = entry >> PORT_BITS
                port = entry & PORT_MASK if other == mine else p + other - (1 if other > mine else 0)
                table[router, goal, number] = port if entry >= 0 else -1


def group_ports(topology: Topology, rule: LinkRule = "own_first") -> NDArray[np.int32]:
    """Return the port of each dragonfly router towards each other group, by the number of a packet.

    Returns
    -------
    ndarray, int32[router, group, number mod links of a pair]
        -1 for the own group, and where the groups are not linked.
    """
    entries = group_links(topology)
    table = np.empty((topology.routers, *entries.shape[1:]), np.int32)
    p, a = int(topology.params["p"]), int(topology.params["a"])
    _fill_group_ports(entries.reshape(-1), table, p, a, rule == "own_first")
    return table


def links_of_a_pair(topology: Topology) -> int:
    """Global links of a pair of groups of a dragonfly; 1 for other networks."""
    return max(int(topology.params.get("links_per_group_pair", 1)), 1) if topology.kind == "dragonfly" else 1


def refuse_adaptive(rule: LinkRule, what: str) -> None:
    """Refuse the rule that needs the state of a router.

    Raises
    ------
    TopologyError
        Naming what cannot have it.
    """
    if rule == "adaptive":
        raise TopologyError(
            "routing.links", f"must be own_first, destination or hash for {what}, which knows no queues, not adaptive"
        )

"""The short proof of the tables of `graph`: numbers of channels that rise with every link of every way.

Definition: docs/definitions/short-proof.md (Tables of next ports). What the argument needs is read from the table that
routers have, not from what made it.
"""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.routing.contract.channel_order import places_in_order
from hopforge.model.routing.contract.plan import IrregularError
from hopforge.model.topology import Topology
from hopforge.model.topology.routing_table import distances

__all__ = ["hop_order", "up_down_order"]


def up_down_order(topology: Topology, entries: NDArray[np.int32], vcs: int) -> tuple[NDArray[np.int64], int, str]:
    """Give all channels numbers: those up rise, and those down rise behind them.

    Parameters
    ----------
    topology : Topology
        The network.
    entries : ndarray, int32[came down, router, destination router]
        2 · port, + 1 if the channel goes down; −1: no way.
    vcs : int
        Virtual channels.

    Returns
    -------
    ndarray, int64[channel]
        Number; −1: no way takes it.
    int
        One more than the largest.
    str
        For people.

    Raises
    ------
    IrregularError
        A way goes up after down or does not go on, or channels are in no order.
    """
    R, goals = topology.routers, np.arange(topology.routers)
    homes = _routers_with_hosts(topology)
    taken = np.zeros((2, R, topology.max_ports), np.bool_)
    for router in range(R):
        there = (entries[:, router] >= 0) & (goals != router)
        if homes[router] and not there[0, homes & (goals != router)].all():
            raise IrregularError(f"router {router} knows no way to a host")
        before, goal = np.nonzero(there)
        port, down = np.divmod(entries[before, router, goal], 2)
        if (before > down).any():
            raise IrregularError(f"router {router} sends a packet up that has gone down")
        following = _following(topology, router, port)
        if ((entries[down, following, goal] < 0) & (following != goal)).any():
            raise IrregularError(f"a way over router {router} does not go on")
        taken[down, router, port] = True
    if taken.all(axis=0).any():
        raise IrregularError("a channel goes up and down")
    rank, count = np.full(taken.shape[1:], -1, np.int64), 0
    for channels in taken:
        source, link = np.nonzero(channels)
        place = places_in_order(source, topology.peer_router[source, link].astype(np.int64), R)
        if place is None:
            raise IrregularError("channels that go up, or those that go down, are in no order")
        rank[channels] = count + place[source]
        count += int(place.max()) + 1
    return np.repeat(rank.reshape(-1), vcs), count, "channels up, then down, each in an order"


def hop_order(topology: Topology, ports: NDArray[np.int32], vcs: int) -> tuple[NDArray[np.int64], int, str]:
    """Give all channels the number of their virtual channel, which is the hop that takes it.

    Parameters
    ----------
    topology, vcs
        As of `up_down_order`.
    ports : ndarray, int32[router, destination router]
        Next port; −1: no way.

    Returns
    -------
    ndarray, int64[channel]; int; str
        As of `up_down_order`.

    Raises
    ------
    IrregularError
        A way does not come nearer with every link, or has more links than there are virtual channels.
    """
    left = distances(topology)  # links, also from a router to another one: links have two directions
    homes = _routers_with_hosts(topology)
    for router in range(topology.routers):
        goal = np.flatnonzero(homes & (left[router] != 0))
        if homes[router] and ((left[router, goal] > vcs) | (ports[router, goal] < 0)).any():
            raise IrregularError(f"router {router} has no way of at most {vcs} links to a host")
        goal = goal[ports[router, goal] >= 0]
        following = _following(topology, router, ports[router, goal])
        if (left[following, goal] != left[router, goal] - 1).any():
            raise IrregularError(f"a way over router {router} does not come nearer")
        if ((ports[following, goal] < 0) & (following != goal)).any():
            raise IrregularError(f"a way over router {router} does not go on")
    number = np.where((topology.peer_router >= 0)[:, :, None], np.arange(vcs), -1)
    return number.reshape(-1), vcs, "a higher virtual channel for every link"


def _routers_with_hosts(topology: Topology) -> NDArray[np.bool_]:
    found = np.zeros(topology.routers, np.bool_)
    found[topology.host_router] = True
    return found


def _following(topology: Topology, router: int, port: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the routers behind ports of a router."""
    if (port >= topology.max_ports).any() or (topology.peer_router[router, port] < 0).any():
        raise IrregularError(f"router {router} has a way by a port without a link")
    return topology.peer_router[router, port]

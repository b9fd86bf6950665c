"""Link aggregation: several parallel links between two routers that act as one."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hopforge.model.topology.base import Aggregation, Topology, TopologyError

_KEY = "lookup.lag.members"


def aggregate(topology: Topology, members: int) -> Topology:
    """Return the network in which every link between routers is a group of parallel links on successive ports.

    A network that already has `members` links between any two neighbours (from a file) keeps them: they are the
    groups. Else each link becomes `members` of them, ports of host links stay single, and hosts and routers keep their
    numbers. The ports of a router come in the same order as before.

    Parameters
    ----------
    topology : Topology
        The network.
    members : int
        Links in a group, at least 1; 1: the network itself.

    Raises
    ------
    TopologyError
        A graph with other numbers of parallel links.
    """
    if members == 1:
        return topology
    # Only a file says that links are parallel: in a ring of two routers + and - are two directions.
    if topology.kind == "edge_list" and _has_groups(topology, members):
        return _grouped(topology, members)
    return _multiplied(topology, members)


def without_links(found: Aggregation, peer_router: NDArray[np.int32]) -> Aggregation:
    """Return the groups of a network some of whose links are down; a group works as long as one of its links does.

    Parameters
    ----------
    found : Aggregation
        Before.
    peer_router : ndarray, int32[router, port]
        Of the network without the links that are down.
    """
    logical = found.logical
    router = np.arange(logical.routers)[:, None, None]
    works = ((found.ports >= 0) & (peer_router[router, np.maximum(found.ports, 0)] >= 0)).any(axis=2)
    return replace(
        found,
        logical=replace(
            logical,
            peer_router=np.where(works, logical.peer_router, -1).astype(np.int32),
            peer_port=np.where(works, logical.peer_port, -1).astype(np.int32),
        ),
    )


def _has_groups(topology: Topology, members: int) -> bool:
    """Whether all neighbours have `members` links; False: all have one."""
    channels = topology.channels()
    pair = channels.src_router.astype(np.int64) * topology.routers + channels.dst_router
    pairs, links = np.unique(pair, return_counts=True)
    if (links == 1).all():
        return False
    wrong = np.flatnonzero(links != members)
    if len(wrong):
        a, b = divmod(int(pairs[wrong[0]]), topology.routers)
        raise TopologyError(
            _KEY,
            f"must be the number of links between any two neighbours of the {topology.name} (or all have one, which "
            f"becomes a group), not {members}: routers {a} and {b} have {links[wrong[0]]}",
        )
    return True


def _grouped(topology: Topology, members: int) -> Topology:
    """Take the parallel links of a graph, which lie on successive ports at both ends, as groups."""
    R, H = topology.routers, (topology.host_at >= 0).sum(axis=1)
    links = (topology.peer_router >= 0).sum(axis=1) // members
    width = int((H + links).max())
    ports = np.full((R, width, members), -1, np.int32)
    group = np.full(topology.peer_router.shape, -1, np.int32)
    for r in range(R):
        ports[r, : H[r], 0] = np.arange(H[r])
        ports[r, H[r] : H[r] + links[r]] = H[r] + np.arange(links[r] * members).reshape(-1, members)
        for p in range(int(H[r] + links[r])):
            group[r, ports[r, p][ports[r, p] >= 0]] = p
    first, router = ports[:, :, 0], np.arange(R)[:, None]
    there, here = np.maximum(first, 0), first >= 0

    def chosen(values: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.where(here, values[router, there], -1).astype(np.int32)

    peer, far = chosen(topology.peer_router), chosen(topology.peer_port)
    logical = replace(
        topology,
        peer_router=peer,
        peer_port=np.where(peer >= 0, group[np.maximum(peer, 0), np.maximum(far, 0)], -1).astype(np.int32),
        host_at=chosen(topology.host_at),
        ports=(H + links).astype(np.int32),
        link_cycles=None if topology.link_cycles is None else chosen(topology.link_cycles),
    )
    return replace(topology, aggregation=Aggregation(logical, members, ports, group))


def _multiplied(topology: Topology, members: int) -> Topology:
    """Put `members` links in the place of each."""
    R, G = topology.peer_router.shape
    there = np.arange(G) < topology.ports[:, None]
    size = np.where(there, np.where(topology.host_at >= 0, 1, members), 0)
    first = np.cumsum(size, axis=1) - size
    count = size.sum(axis=1)
    index = np.arange(members)
    ports = np.where(index < size[:, :, None], first[:, :, None] + index, -1).astype(np.int32)
    group = np.full((R, int(count.max())), -1, np.int32)
    peer_router, peer_port, host_at = group.copy(), group.copy(), group.copy()
    r, g, j = np.nonzero(ports >= 0)
    p = ports[r, g, j]
    group[r, p] = g
    host_at[r, p] = topology.host_at[r, g]
    peer = topology.peer_router[r, g]
    peer_router[r, p] = peer
    peer_port[r, p] = np.where(peer >= 0, first[np.maximum(peer, 0), np.maximum(topology.peer_port[r, g], 0)] + j, -1)
    aggregation = Aggregation(topology, members, ports, group)
    return replace(
        topology,
        name=f"{topology.name} with {members} links in a group",
        peer_router=peer_router,
        peer_port=peer_port,
        host_at=host_at,
        host_port=first[topology.host_router, topology.host_port].astype(np.int32),
        ports=count.astype(np.int32),
        link_cycles=None if topology.link_cycles is None else aggregation.spread(topology.link_cycles),
        aggregation=aggregation,
    )

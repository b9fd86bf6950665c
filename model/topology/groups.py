"""Networks that are groups of routers: which group a router is in, and what joins two groups."""

import math

import numpy as np
from numpy.typing import NDArray

from hopforge.model.topology.base import Topology
from hopforge.model.topology.parallel_links import PORT_BITS

__all__ = ["GROUPED_KINDS", "links_of_groups", "ports_between_groups", "router_groups"]

#: kinds whose groups are joined by links that may be longer than those inside
GROUPED_KINDS = ("dragonfly", "dragonfly_plus", "cascade")


def _size(topology: Topology) -> int:
    """Routers of a group of one of `GROUPED_KINDS`."""
    params = topology.params
    if topology.kind == "dragonfly_plus":
        return int(params["leaves"]) + int(params["spines"])
    if topology.kind == "cascade":
        return math.prod(params["sizes"])
    return int(params["a"])


def router_groups(topology: Topology) -> NDArray[np.int64] | None:
    """Return the group of every router, int64[router]; None for a kind without groups.

    A group of a Slim Fly is the routers (0, x, ·) and (1, x, ·).
    """
    number = np.arange(topology.routers, dtype=np.int64)
    if topology.kind in GROUPED_KINDS:
        return number // _size(topology)
    if topology.kind == "slim_fly":
        q = int(topology.params["q"])
        return number // q % q
    return None


def ports_between_groups(topology: Topology) -> NDArray[np.bool_]:
    """Whether the link of a port leads to another group: bool[router, port]; of one of `GROUPED_KINDS`."""
    group = router_groups(topology)
    assert group is not None, "asked for a kind without groups"
    peer = topology.peer_router
    return (peer >= 0) & (group[np.maximum(peer, 0)] != group[:, None])


def links_of_groups(topology: Topology) -> NDArray[np.int32]:
    """List the links that join two groups, of one of `GROUPED_KINDS`.

    Returns
    -------
    ndarray, int32[group, group, link]
        Place of the router in its group · 2^`PORT_BITS` + port, in increasing order; -1 behind the last one of a pair.
    """
    group = router_groups(topology)
    assert group is not None, "asked for a kind without groups"
    count = int(group[-1]) + 1
    router, port = np.nonzero(ports_between_groups(topology))
    pair = group[router] * count + group[topology.peer_router[router, port]]
    entry = router % _size(topology) << PORT_BITS | port
    order = np.lexsort((entry, pair))
    pair, entry = pair[order], entry[order]
    first = np.searchsorted(pair, pair)
    table = np.full((count * count, int(np.bincount(pair, minlength=1).max(initial=1))), -1, np.int32)
    table[pair, np.arange(len(pair)) - first] = entry
    return table.reshape(count, count, -1)

"""The tree of routers of each group of a collective plane (docs/definitions/network-collectives.md, Trees)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.topology import Topology
from hopforge.model.topology.routing_table import refuse_one_way

__all__ = ["Tree", "TreeWrite", "group_tree"]


class TreeWrite(NamedTuple):
    """What software writes into a unit of the tree.

    Attributes
    ----------
    router : int
        The unit.
    children, parent : int
        Ports as bits: those that words come up from, and the one that leads to the root; 0: it is the root.
    """

    router: int
    children: int
    parent: int


class Tree(NamedTuple):
    """The tree of a group.

    Attributes
    ----------
    root : int
        Its router.
    hosts : tuple of int
        Members, in the order of their numbers.
    depth : int
        Links from the root to the farthest router.
    writes : tuple of TreeWrite
        Every router of it, by number.
    """

    root: int
    hosts: tuple[int, ...]
    depth: int
    writes: tuple[TreeWrite, ...]


def group_tree(topology: Topology, hosts: Sequence[int], root: int | None = None, *, key: str = "group") -> Tree:
    """Return the tree of shortest ways from a root to the routers of the members.

    Of several neighbours that are nearer to the root the lowest number is the parent; of several links to it the one
    at the lowest port.

    Parameters
    ----------
    topology : Topology
        Routers, links and hosts.
    hosts : sequence of int
        Members, each once.
    root : int, optional
        Router; by default the one whose farthest member is nearest, of several the lowest number.
    key : str
        What errors begin with.

    Raises
    ------
    UserError
        A member that cannot be reached from the root, or links that lead one way (`butterfly`).
    """
    refuse_one_way(topology)
    used = np.unique(topology.host_router[np.asarray(hosts)])
    if root is None:
        farthest = _hops(topology, used).max(axis=0)
        root = int(np.argmin(farthest))
    hops = _hops(topology, np.array([root]))[0]
    lost = [host for host in hosts if not np.isfinite(hops[topology.host_router[host]])]
    if lost:
        raise UserError(f"{key}: there is no way from root router {root} to host {lost[0]}")
    children: dict[int, int] = {int(router): 0 for router in used}
    parents: dict[int, int] = {}
    for host in hosts:
        children[int(topology.host_router[host])] |= 1 << int(topology.host_port[host])
    waiting = sorted(children)
    while waiting:
        router = waiting.pop()
        if router == root:
            parents[router] = 0
            continue
        peers = topology.peer_router[router]
        nearer = [(int(peer), port) for port, peer in enumerate(peers) if peer >= 0 and hops[peer] == hops[router] - 1]
        peer, port = min(nearer)
        parents[router] = 1 << port
        if peer not in children:
            children[peer] = 0
            waiting.append(peer)
        children[peer] |= 1 << int(topology.peer_port[router, port])
    writes = tuple(TreeWrite(router, children[router], parents[router]) for router in sorted(children))
    return Tree(root, tuple(hosts), int(max(hops[router] for router in used)), writes)


def _hops(topology: Topology, sources: NDArray[np.integer]) -> NDArray[np.float64]:
    """Links from each of some routers to every router: float64[source, router], infinite without a way."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import
    from scipy.sparse.csgraph import shortest_path  # noqa: PLC0415

    channels = topology.channels()
    graph = csr_array(
        (np.ones(len(channels.src_router), np.int8), (channels.src_router, channels.dst_router)),
        shape=(topology.routers, topology.routers),
    )
    found: NDArray[np.float64] = shortest_path(graph, unweighted=True, indices=sources)
    return found

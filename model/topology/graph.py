"""Any graph as a network: ports in the order of the neighbours' numbers, a check that all routers are connected."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.topology.base import Topology, TopologyError, assemble, check_size

Numbers = NDArray[np.int64]


def assemble_graph(
    edges: Numbers,
    *,
    name: str,
    kind: str,
    host_router: Numbers,
    params: Mapping[str, Any],
    key: str,
    routers: int,
    position: NDArray[np.float64] | None = None,
    edge_cycles: Numbers | None = None,
) -> Topology:
    """Make the network of a graph.

    Ports of a router: its hosts in the order of their numbers, then the neighbours in increasing number (links between
    the same two routers in the order of `edges`). The address of a host is its number.

    Parameters
    ----------
    edges : ndarray, int64[link, 2]
        The routers at both ends.
    name, kind, params, routers
        As in `Topology`.
    host_router : ndarray, int64[host]
        The router of each host.
    key : str
        What errors name.
    position : ndarray, float64[router, 2], optional
        Floor plan.
    edge_cycles : ndarray, int64[link, 2], optional
        Latency from the first end to the second and back; 0: not known.

    Raises
    ------
    TopologyError
        Too large, or disconnected (naming two routers without a path).
    """
    links = len(edges)
    source = np.concatenate([edges[:, 0], edges[:, 1]])
    target = np.concatenate([edges[:, 1], edges[:, 0]])
    degree = np.bincount(source, minlength=routers)
    terminals = np.bincount(host_router, minlength=routers)
    check_size(key, routers, int((degree + terminals).max()))
    check_connected(edges, routers, key)
    # channels sorted by source, then target, then number of the link
    order = np.lexsort((np.arange(2 * links) % links, target, source))
    first = np.concatenate([[0], np.cumsum(degree)])
    port = np.empty(2 * links, np.int64)
    port[order] = np.arange(2 * links) - first[source[order]]
    port += terminals[source]
    width = int((degree + terminals).max())
    peer_router = np.full((routers, width), -1, dtype=np.int32)
    peer_port = np.full_like(peer_router, -1)
    peer_router[source, port] = target
    peer_port[source, port] = np.roll(port, links)  # the same link, seen from its other end
    link_cycles = None
    if edge_cycles is not None:
        link_cycles = np.zeros((routers, width), np.int32)
        link_cycles[source, port] = np.concatenate([edge_cycles[:, 0], edge_cycles[:, 1]])
    hosts = len(host_router)
    by_router = np.argsort(host_router, kind="stable")
    host_port = np.empty(hosts, np.int64)
    host_port[by_router] = np.arange(hosts) - np.concatenate([[0], np.cumsum(terminals)])[host_router[by_router]]
    return assemble(
        name=name,
        kind=kind,
        peer_router=peer_router,
        peer_port=peer_port,
        host_router=host_router,
        host_port=host_port,
        host_address=np.arange(hosts, dtype=np.int64),
        ports=terminals + degree,
        params=params,
        position=position,
        link_cycles=link_cycles,
    )


def equal_hosts(routers: int, terminals: int) -> Numbers:
    """Router of each host, with `terminals` hosts at every router: host = router · terminals + n."""
    return np.arange(routers * terminals, dtype=np.int64) // terminals


def linked_hosts(routers: int, terminals: int, links: int) -> Numbers:
    """Router of each link of each host: host link = host · `links` + l, `terminals` of them at every router.

    The `links` links of a host go to as many routers one behind the other, and `terminals` hosts have the same ones.
    """
    group = np.arange(routers // links, dtype=np.int64)[:, None, None] * links
    place = np.zeros((1, terminals, 1), np.int64) + np.arange(links)
    return (group + place).ravel()


def components(edges: Numbers, routers: int) -> tuple[int, NDArray[np.int32]]:
    """Count the connected parts of a graph, and say in which one each router is."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    graph = csr_array((np.ones(len(edges), np.int8), (edges[:, 0], edges[:, 1])), shape=(routers, routers))
    count, part = connected_components(graph, directed=False)
    return int(count), part


def check_connected(edges: Numbers, routers: int, key: str) -> None:
    """Refuse a graph of several parts.

    Raises
    ------
    TopologyError
        Naming two routers without a path.
    """
    count, part = components(edges, routers)
    if count > 1:
        lost = int(np.argmax(part != part[0]))
        raise TopologyError(key, f"the graph is disconnected: no path from router 0 to router {lost}")

"""Routes: which port leads one hop nearer, for any graph by shortest paths, for regular networks by the key rules."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import WITHOUT_COUNTS, inner, kernel
from hopforge.model.topology import Topology, TopologyError

MAX_TABLE_ROUTERS = 20_000
UNREACHABLE = -1


@inner
def _distances_to(target, peer_router, distance, queue):  # type: ignore[no-untyped-def]
    for router in range(len(distance)):
        distance[router] = -1
    distance[target] = 0
    queue[0] = target
    head, tail = 0, 1
    while head < tail:
        router = queue[head]
        head += 1
        for port in range(peer_router.shape[1]):
            other = peer_router[router, port]
            if other >= 0 and distance[other] < 0:
                distance[other] = distance[router] + 1
                queue[tail] = other
                tail += 1
    return tail


@kernel(**WITHOUT_COUNTS)
def _shortest_ports(peer_router, distance, queue, table):  # type: ignore[no-untyped-def]
    routers, ports = peer_router.shape
    for target in range(routers):
        if _distances_to(target, peer_router, distance, queue) < routers:
            return target
        for router in range(routers):
            if router == target:
                continue
            for port in range(ports):
                other = peer_router[router, port]
                if other >= 0 and distance[other] == distance[router] - 1:
                    table[router, target] = port
                    break
    return -1


@kernel(**WITHOUT_COUNTS)
def _all_distances(peer_router, targets, queue, table):  # type: ignore[no-untyped-def]
    for index in range(len(targets)):
        _distances_to(targets[index], peer_router, table[index], queue)


def refuse_one_way(topology: Topology) -> None:
    """Refuse what goes back over links that lead one way only."""
    if topology.kind == "butterfly":
        raise TopologyError(
            "topology.kind", "the links of a butterfly lead from its first stage to its last; there are no tables of "
            "shortest paths, only routing.algorithm dest_tag"
        )  # fmt: skip


def shortest_path_ports(topology: Topology) -> NDArray[np.int32]:
    """Next-hop table of shortest paths; of several ports the lowest wins, so that the table is the same on every run.

    All links must work in both directions, as those of a `Topology` do.

    Returns
    -------
    ndarray, int32[router, destination router]
        Output port; -1 on the diagonal.

    Raises
    ------
    TopologyError
        A pair without a path, more than `MAX_TABLE_ROUTERS` routers, or links that lead one way (`butterfly`).
    """
    refuse_one_way(topology)
    if topology.routers > MAX_TABLE_ROUTERS:
        raise TopologyError(
            "topology", f"{topology.routers} routers are more than the {MAX_TABLE_ROUTERS} of a shortest-path table"
        )
    table = np.full((topology.routers, topology.routers), UNREACHABLE, dtype=np.int32)
    distance, queue = np.empty(topology.routers, np.int32), np.empty(topology.routers, np.int32)
    lost = _shortest_ports(topology.peer_router, distance, queue, table)
    if lost >= 0:
        source = int(np.flatnonzero(distances(topology, np.array([lost]))[0] < 0)[0])
        raise TopologyError("topology", f"no path from router {source} to router {lost}")
    return table


def distances(topology: Topology, targets: NDArray[np.integer] | None = None) -> NDArray[np.int32]:
    """Hops between routers.

    Parameters
    ----------
    topology : Topology
        Its links work in both directions.
    targets : ndarray, int[target], optional
        Routers to measure from; all by default.

    Returns
    -------
    ndarray, int32[target, router]
        -1: no path.

    Raises
    ------
    TopologyError
        Links that lead one way (`butterfly`).
    """
    refuse_one_way(topology)
    chosen = np.arange(topology.routers) if targets is None else np.asarray(targets)
    table = np.empty((len(chosen), topology.routers), dtype=np.int32)
    _all_distances(topology.peer_router, chosen.astype(np.int64), np.empty(topology.routers, np.int32), table)
    return table


#: ports that are looked at before distances are estimated from some of the routers only, and the fewest of these
MAX_PORTS_SEEN, MIN_SOURCES = 2_000_000_000, 64


class HopStatistics(NamedTuple):
    """Distances between the routers of a network.

    Attributes
    ----------
    diameter : int
        Largest number of links between two routers that have hosts.
    mean_hops : float
        Mean number of links between the routers of two different hosts, over all ordered pairs of hosts.
    mean_path_length : float
        Mean number of links between two different routers that have hosts.
    sources : int
        Routers with hosts that distances were measured from; fewer than there are: the means are estimates, and the
        diameter is a lower bound.
    """

    diameter: int
    mean_hops: float
    mean_path_length: float
    sources: int


def hop_statistics(topology: Topology, max_sources: int | None = None) -> HopStatistics:
    """Diameter and mean distances, by breadth-first search from every router with hosts.

    Parameters
    ----------
    topology : Topology
        The network.
    max_sources : int, optional
        Of more routers with hosts, so many are drawn at random (always the same ones); by default as many as
        `MAX_PORTS_SEEN` allows.

    Notes
    -----
    Of a butterfly it is known without a search: from each host to each, itself too, lead n − 1 links.
    """
    if topology.kind == "butterfly":
        links = int(topology.params["n"]) - 1
        ends = len(np.unique(topology.host_router))
        return HopStatistics(links, float(links), float(links) if ends > 1 else 0.0, ends)
    if max_sources is None:
        max_sources = max(MIN_SOURCES, MAX_PORTS_SEEN // topology.peer_router.size)
    weights = np.bincount(topology.host_router, minlength=topology.routers).astype(np.float64)
    with_hosts = np.flatnonzero(weights)
    sources = with_hosts
    if len(with_hosts) > max_sources:
        sources = np.sort(np.random.default_rng(0).choice(with_hosts, max_sources, replace=False))
    diameter, total, plain = 0, 0.0, 0
    step = max(1, (1 << 24) // topology.routers)
    for start in range(0, len(sources), step):
        part = sources[start:start + step]
        hops = distances(topology, part)[:, with_hosts]
        diameter = max(diameter, int(hops.max()))
        total += float(weights[part] @ hops @ weights[with_hosts])
        plain += int(hops.sum(dtype=np.int64))
    host_pairs = float(weights[sources].sum()) * (topology.hosts - 1)
    router_pairs = len(sources) * (len(with_hosts) - 1)
    return HopStatistics(
        diameter, total / host_pairs if host_pairs else 0.0, plain / router_pairs if router_pairs else 0.0, len(sources)
    )

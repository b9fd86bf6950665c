"""Routing on any connected graph by tables: shortest paths with a VC per hop, up*/down*, or the second as escape."""

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.network.core.candidates import candidate
from hopforge.model.routing.combined.parallel_links import over_parallel_links
from hopforge.model.routing.contract.plan import (
    RoutingError,
    RoutingPlan,
    all_vcs,
    need_vcs,
    register,
    relation,
    vc_range,
)
from hopforge.model.topology import Topology
from hopforge.model.topology.routing_table import distances

# table: 0 routers, 1 all VCs, 2 adaptive VCs, 3 start of host routers, 4 start of host ports,
# 5 start of next hops [router, router], 6 start of up*/down* next hops [came down?, router, router], 7 VCs
_R, _ALL, _ADAPTIVE, _HOME, _PORT, _NEXT, _UPDOWN, _V, _FIRST = range(9)


def shortest_ports(topology: Topology, distance: NDArray[np.int32]) -> NDArray[np.int32]:
    """Port of a shortest path: int32[router, destination router]; equal ones take turns by destination number."""
    R = topology.routers
    ports = np.full((R, R), -1, np.int32)
    for here in range(R):
        links = np.flatnonzero(topology.peer_router[here] >= 0)
        closer = distance[topology.peer_router[here][links]] == distance[here][None, :] - 1
        rank = closer.cumsum(axis=0)
        total = rank[-1] if len(links) else np.zeros(R, np.int64)
        pick = np.arange(R) % np.maximum(total, 1) + 1
        chosen = (closer & (rank == pick[None, :])).argmax(axis=0) if len(links) else np.zeros(R, np.int64)
        ports[here] = np.where(total > 0, links[chosen] if len(links) else -1, -1)
    return ports


def up_down_ports(topology: Topology, root: int = 0) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Next ports of shortest up*/down* paths.

    A channel goes *up* if it ends nearer to the root of a breadth-first tree (ties: at the lower number). Legal paths
    never go up after down.

    Returns
    -------
    ports : ndarray, int32[2, router, destination router]
        First index: 0 the packet has only gone up, 1 it has gone down; −1: no legal path.
    goes_down : ndarray, int32[router, port]
        1 where the channel goes down.
    """
    R = topology.routers
    level = distances_from(topology, root)
    order = level.astype(np.int64) * R + np.arange(R)
    peer = topology.peer_router
    goes_down = np.where(peer >= 0, order[np.maximum(peer, 0)] > order[:, None], False)
    ports = np.full((2, R, R), -1, np.int32)
    incoming: list[list[tuple[int, int, bool]]] = [[] for _ in range(R)]
    for here in range(R):
        for link in np.flatnonzero(peer[here] >= 0):
            incoming[int(peer[here, link])].append((here, int(link), bool(goes_down[here, link])))
    for goal in range(R):
        best = np.full((2, R), -1, np.int64)
        best[:, goal] = 0
        queue = deque([(0, goal), (1, goal)])
        while queue:
            state, there = queue.popleft()
            for source, port, down in incoming[there]:
                # after a down channel the packet is in state 1; state 1 may not take an up channel
                if down != (state == 1):
                    continue
                for before in (0, 1) if down else (0,):
                    if best[before, source] < 0:
                        best[before, source] = best[state, there] + 1
                        ports[before, source, goal] = port
                        queue.append((before, source))
    return ports, goes_down.astype(np.int32)


def distances_from(topology: Topology, root: int) -> NDArray[np.int32]:
    """Hops from `root` to every router."""
    row = np.full(topology.routers, -1, np.int32)
    row[root] = 0
    queue = deque([root])
    while queue:
        here = queue.popleft()
        for there in topology.peer_router[here]:
            if there >= 0 and row[there] < 0:
                row[there] = row[here] + 1
                queue.append(int(there))
    return row


def _hop_indexed(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    there = table[table[_HOME] + packet.dst]
    if there == router:
        out[0] = candidate(table[table[_PORT] + packet.dst], table[_ALL])
        return 1
    port = table[table[_NEXT] + router * table[_R] + there]
    if port < 0:  # its switch has failed
        return 0
    out[0] = candidate(port, 1 << packet.phase)
    packet.phase += 1
    return 1


def _up_down(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    there = table[table[_HOME] + packet.dst]
    if there == router:
        out[0] = candidate(table[table[_PORT] + packet.dst], table[_ALL])
        return 1
    entry = table[table[_UPDOWN] + (packet.phase * table[_R] + router) * table[_R] + there]
    if entry < 0:  # its switch has failed
        return 0
    packet.phase = entry & 1
    out[0] = candidate(entry >> 1, table[_ALL])
    return 1


def _with_escape(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    there = table[table[_HOME] + packet.dst]
    if there == router:
        out[0] = candidate(table[table[_PORT] + packet.dst], table[_ALL])
        return 1
    # a packet that is on the escape VC stays there: then only up*/down* paths are legal
    on_escape = in_vc == 0 and packet.hops > 0
    if not on_escape:
        packet.phase = 0
    entry = table[table[_UPDOWN] + (packet.phase * table[_R] + router) * table[_R] + there]
    if entry < 0:  # its switch has failed
        return 0
    if on_escape:
        packet.phase = entry & 1
        out[0] = candidate(entry >> 1, 1, 1)
        return 1
    packet.phase = entry & 1
    out[0] = candidate(table[table[_NEXT] + router * table[_R] + there], table[_ADAPTIVE])
    out[1] = candidate(entry >> 1, 1, 1)
    return 2


def _graph_table(topology: Topology, vcs: int, *, up_down: bool, root: int) -> tuple[NDArray[np.int32], int]:
    """Make the table, and find the longest shortest path."""
    if not 0 <= root < topology.routers:
        raise RoutingError(f"routing.root must be a router from 0 to {topology.routers - 1}, not {root}")
    R, H = topology.routers, topology.hosts
    distance = distances(topology)
    linked = np.flatnonzero((topology.peer_router >= 0).any(axis=1))  # a switch without links has failed
    first = int(linked[0]) if len(linked) else 0
    if (distance[np.ix_(linked, linked)] < 0).any():
        raise RoutingError(
            f"routing needs a connected network; router {first} reaches {int((distance[first] >= 0).sum())} of "
            f"{R} routers"
        )
    if root not in linked and len(linked):
        root = first
    header = [
        R,
        all_vcs(vcs),
        vc_range(1, vcs - 1) if vcs > 1 else 0,
        _FIRST,
        _FIRST + H,
        _FIRST + 2 * H,
        _FIRST + 2 * H + R * R,
        vcs,
    ]
    parts = [np.array(header), topology.host_router, topology.host_port, shortest_ports(topology, distance).reshape(-1)]
    if up_down:
        ports, goes_down = up_down_ports(topology, root)
        down = np.where(ports >= 0, goes_down[np.arange(R)[None, :, None], np.maximum(ports, 0)], 0)
        parts.append(((ports << 1) | down).reshape(-1))
    return np.concatenate(parts).astype(np.int32), int(distance.max())


def _over_links(plan: RoutingPlan, topology: Topology, options: dict[str, Any]) -> RoutingPlan:
    return over_parallel_links(plan, topology, options.get("links", "own_first"))


@register("shortest")
def prepare_shortest(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Shortest paths by table; hop h uses VC h, so the network's diameter must not exceed the number of VCs."""
    table, diameter = _graph_table(topology, vcs, up_down=False, root=0)
    why = "one for each link of the longest way"
    need_vcs(f"shortest on {topology.name} (diameter {diameter})", vcs, max(diameter, 1), why)
    return _over_links(RoutingPlan(relation(_hop_indexed), table, phases=vcs + 1), topology, options)


@register("up_down")
def prepare_up_down(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Shortest up*/down* paths from a breadth-first tree; any number of VCs."""
    table, _ = _graph_table(topology, vcs, up_down=True, root=int(options.get("root", 0)))
    return _over_links(RoutingPlan(relation(_up_down), table, phases=2), topology, options)


@register("shortest_escape")
def prepare_shortest_escape(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Shortest paths on VCs 1 … V − 1; VC 0 is an up*/down* escape that a packet does not leave again."""
    table, _ = _graph_table(topology, vcs, up_down=True, root=int(options.get("root", 0)))
    need_vcs("shortest_escape", vcs, 2, "one is the up*/down* escape, the others are for shortest ways")
    plan = RoutingPlan(relation(_with_escape), table, max_candidates=2, phases=2, obligation="escape")
    return _over_links(plan, topology, options)

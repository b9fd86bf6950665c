"""Routing on any connected graph by tables: shortest paths with a VC per hop, up*/down*, or the second as escape."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.free_memory import refuse_beyond_memory
from hopforge.model.network.core.candidates import candidate
from hopforge.model.routing.combined.parallel_links import over_parallel_links
from hopforge.model.routing.contract.plan import (
    IrregularError,
    Regular,
    RoutingError,
    RoutingPlan,
    all_vcs,
    need_vcs,
    register,
    relation,
    vc_range,
)
from hopforge.model.routing.graphs.next_ports import shortest_ports, up_down_ports
from hopforge.model.routing.graphs.rising_tables import hop_order, up_down_order
from hopforge.model.topology import Topology
from hopforge.model.topology.routing_table import distances

# table: 0 routers, 1 all VCs, 2 adaptive VCs, 3 start of host routers, 4 start of host ports,
# 5 start of next hops [router, router], 6 start of up*/down* next hops [came down?, router, router], 7 VCs
_R, _ALL, _ADAPTIVE, _HOME, _PORT, _NEXT, _UPDOWN, _V, _FIRST = range(9)
#: of a part of a table, which holds the places where its parts start
_MAX_START = 2**31 - 1


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
    most = math.isqrt(_MAX_START - _FIRST - 2 * H)
    if most < R:
        raise RoutingError(f"tables of next ports of all pairs are for at most {most} routers, not {R}")
    refuse_beyond_memory((28 if up_down else 12) * R * R, f"the next ports of all pairs of the {topology.name}")
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
    homes = [topology.host_router, topology.host_port]
    parts: list[NDArray[Any]] = [np.array(header), *homes, shortest_ports(topology, distance).reshape(-1)]
    if up_down:
        ports, goes_down = up_down_ports(topology, root)
        for here in range(R):
            ports[:, here] = 2 * ports[:, here] + np.where(ports[:, here] >= 0, goes_down[here][ports[:, here]], 0)
        parts.append(ports.reshape(-1))
    return np.concatenate(parts, dtype=np.int32, casting="same_kind"), int(distance.max())


def _entries(topology: Topology, plan: RoutingPlan, start: int, ways: int) -> NDArray[np.int32]:
    """Return next ports, int32[way, router, destination router], of a table that has to be one of this network."""
    table, R = plan.table, topology.routers
    homes = np.concatenate([topology.host_router, topology.host_port])
    at = int(table[start])
    if (
        int(table[_R]) != R
        or not np.array_equal(table[table[_HOME] : table[_HOME] + len(homes)], homes)
        or int(table[_PORT]) != int(table[_HOME]) + topology.hosts
        or not 0 <= at <= len(table) - ways * R * R
    ):
        raise IrregularError("the table is one of another network")
    return table[at : at + ways * R * R].reshape(ways, R, R)


def _hop_order(topology: Topology, plan: RoutingPlan, vcs: int) -> tuple[NDArray[np.int64], int, str]:
    return hop_order(topology, _entries(topology, plan, _NEXT, 1)[0], vcs)


def _up_down_order(topology: Topology, plan: RoutingPlan, vcs: int) -> tuple[NDArray[np.int64], int, str]:
    return up_down_order(topology, _entries(topology, plan, _UPDOWN, 2), vcs)


def _over_links(plan: RoutingPlan, topology: Topology, options: dict[str, Any]) -> RoutingPlan:
    return over_parallel_links(plan, topology, options.get("links", "own_first"))


@register("shortest")
def prepare_shortest(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Shortest paths by table; hop h uses VC h, so the network's diameter must not exceed the number of VCs."""
    table, diameter = _graph_table(topology, vcs, up_down=False, root=0)
    why = "one for each link of the longest way"
    need_vcs(f"shortest on {topology.name} (diameter {diameter})", vcs, max(diameter, 1), why)
    plan = RoutingPlan(relation(_hop_indexed), table, phases=vcs + 1)
    plan = replace(plan, regular=Regular(plan.route, plan.every, table, order=_hop_order))
    return _over_links(plan, topology, options)


@register("up_down")
def prepare_up_down(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Shortest up*/down* paths from a breadth-first tree; any number of VCs."""
    table, _ = _graph_table(topology, vcs, up_down=True, root=int(options.get("root", 0)))
    plan = RoutingPlan(relation(_up_down), table, phases=2)
    plan = replace(plan, regular=Regular(plan.route, plan.every, table, order=_up_down_order))
    return _over_links(plan, topology, options)


@register("shortest_escape")
def prepare_shortest_escape(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Shortest paths on VCs 1 … V − 1; VC 0 is an up*/down* escape that a packet does not leave again."""
    table, _ = _graph_table(topology, vcs, up_down=True, root=int(options.get("root", 0)))
    need_vcs("shortest_escape", vcs, 2, "one is the up*/down* escape, the others are for shortest ways")
    plan = RoutingPlan(relation(_with_escape), table, max_candidates=2, phases=2, obligation="escape")
    return _over_links(plan, topology, options)

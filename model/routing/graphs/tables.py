"""Routing by the tables of section `tables`: one path per pair, its hops in virtual layers."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.irregular.failure import linked_tables
from hopforge.model.irregular.layers import Layers
from hopforge.model.irregular.switch_tables import channel_orders
from hopforge.model.irregular.tables import RoutingTables, next_ports
from hopforge.model.network.core.candidates import candidate
from hopforge.model.routing.combined.parallel_links import over_parallel_links
from hopforge.model.routing.contract.plan import (
    IrregularError,
    Regular,
    RoutingError,
    RoutingPlan,
    TooFewVcsError,
    all_vcs,
    register,
    relation,
    vc_range,
)
from hopforge.model.routing.graphs.rising_layers import layer_order
from hopforge.model.routing.graphs.several_paths import several_paths_plan
from hopforge.model.topology import Topology

# table: 0 routers, 1 ports, 2 layers, 3 all VCs, 4 start of host routers, 5 of host ports, 6 of next ports
# [router, router] (-1: its switch has failed), 7 of VC masks [layer], 8 of the data of the layers, 9 of the paths
# (layers by hop) [router, router]
_R, _P, _L, _ALL, _HOME, _PORT, _NEXT, _MASK, _DATA, _PATHS, _FIRST = range(11)
#: places in a table are numbers of 32 bits
_MOST_ENTRIES = 2**31 - 1


def _by_pair(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    there = table[table[_HOME] + packet.dst]
    if there == router:
        out[0] = candidate(table[table[_PORT] + packet.dst], table[_ALL])
        return 1
    port = table[table[_NEXT] + router * table[_R] + there]
    if port < 0:
        return 0
    if packet.hops == 0:
        packet.phase = table[table[_DATA] + router * table[_R] + there]
    out[0] = candidate(port, table[table[_MASK] + packet.phase])
    return 1


def _by_order(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    there = table[table[_HOME] + packet.dst]
    if there == router:
        out[0] = candidate(table[table[_PORT] + packet.dst], table[_ALL])
        return 1
    port = table[table[_NEXT] + router * table[_R] + there]
    if port < 0:
        return 0
    if packet.hops == 0:
        packet.phase = table[_L] - 1
    else:
        place = (packet.phase * table[_R] + router) * 2 * table[_P]
        # orders of the channel that the packet came by and of the one that it takes
        if table[table[_DATA] + place + in_port] <= table[table[_DATA] + place + table[_P] + port]:
            packet.phase -= 1
        if packet.phase < 0:
            return 0
    out[0] = candidate(port, table[table[_MASK] + packet.phase])
    return 1


def _by_hop(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    there = table[table[_HOME] + packet.dst]
    if there == router:
        out[0] = candidate(table[table[_PORT] + packet.dst], table[_ALL])
        return 1
    port = table[table[_NEXT] + router * table[_R] + there]
    if packet.hops > 0:
        packet.phase += 1
    if port < 0 or packet.phase >= table[_L]:
        return 0
    out[0] = candidate(port, table[table[_MASK] + packet.phase])
    return 1


def _by_path(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    there = table[table[_HOME] + packet.dst]
    if there == router:
        out[0] = candidate(table[table[_PORT] + packet.dst], table[_ALL])
        return 1
    port = table[table[_NEXT] + router * table[_R] + there]
    if port < 0:
        return 0
    origin = packet.src if packet.user0 == 0 else packet.user0 - 1  # a host on the way that sends it again
    start = table[table[_PATHS] + table[table[_HOME] + origin] * table[_R] + there]
    packet.phase = table[table[_DATA] + start + packet.hops]
    out[0] = candidate(port, table[table[_MASK] + packet.phase])
    return 1


def _with_escape(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    there = table[table[_HOME] + packet.dst]
    if there == router:
        out[0] = candidate(table[table[_PORT] + packet.dst], table[_ALL])
        return 1
    place = router * table[_R] + there
    if table[table[_NEXT] + place] < 0:
        return 0
    way_out = candidate(table[table[_DATA] + place], table[table[_MASK]], 1)
    if packet.hops > 0 and (table[table[_MASK]] >> in_vc) & 1:  # once on the escape, always on it
        out[0] = way_out
        return 1
    out[0] = candidate(table[table[_NEXT] + place], table[table[_MASK] + 1])
    out[1] = way_out
    return 2


_RELATIONS = {
    "acro": _by_order, "lash": _by_pair, "dfsssp": _by_pair, "nue": _by_pair, "single": _by_pair,
    "hop_indexed": _by_hop, "lash_tor": _by_path, "file": _by_path, "escape": _with_escape,
}  # fmt: skip

#: relations for which channels get an order, and by how much the layer of a packet changes from channel to channel
_RISING = {_by_pair: 0, _by_order: -1, _by_hop: 1}


def _pairs(tables: RoutingTables, layers: Layers) -> NDArray[np.int32]:
    """Layer of the first hop of every pair, int32[router, router]; 0 on the diagonal."""
    table = np.zeros(tables.topology.routers**2, np.int32)
    some = np.diff(layers.starts) > 0
    table[some] = layers.layer[layers.starts[:-1][some]]
    return table


def _layer_order(topology: Topology, plan: RoutingPlan, vcs: int) -> tuple[NDArray[np.int64], int, str]:
    """Put the channels of one of `_RISING` into an order; its table has to be one of this network."""
    table, R, P, L = plan.table, topology.routers, topology.max_ports, int(plan.table[_L])
    homes = np.concatenate([topology.host_router, topology.host_port])
    by = next(by for by in _RISING if relation(by) is plan.route)
    sizes = (len(homes) // 2, len(homes) // 2, R * R, L, L * R * 2 * P if by is _by_order else R * R)
    starts = np.cumsum([_FIRST, *sizes])
    if (
        (int(table[_R]), int(table[_P]), len(table)) != (R, P, starts[-1])
        or not np.array_equal(table[_HOME:_FIRST], starts)
        or not np.array_equal(table[_FIRST : starts[2]], homes)
    ):
        raise IrregularError("the table is one of another network")
    _, _, ports, masks, data = np.split(table[_FIRST:], starts[1:-1] - _FIRST)
    of_vc = np.full(vcs, -1)
    for layer, mask in enumerate(masks.tolist()):
        own = [vc for vc in range(vcs) if mask >> vc & 1]
        if not own or (of_vc[own] >= 0).any():
            raise IrregularError(f"layer {layer} has no virtual channels of its own")
        of_vc[own] = layer
    if (of_vc < 0).any():
        raise IrregularError("a virtual channel is of no layer")
    begins, orders = np.zeros((0, 0), np.int32), np.zeros((0, 0, 2, 0), np.int32)
    if by is _by_pair:
        begins = data.reshape(R, R)
    if by is _by_order:
        orders = data.reshape(L, R, 2, P)
    return layer_order(topology, ports.reshape(R, R), begins, orders, _RISING[by], of_vc)


@register("tables")
def prepare_tables(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Tables and virtual layers of section `tables`; layer l has the VCs l·V div L to (l+1)·V div L − 1.

    With ``layers: escape`` the escape has VC 0, and paths have the others.
    """
    if "tables" not in options:
        raise RoutingError("routing.algorithm tables needs section tables")
    tables = linked_tables(options["tables"], topology, int(options["seed"]))
    spread = options.get("spread")
    if tables.others:
        return several_paths_plan(tables, topology, vcs, spread, options.get("links", "own_first"))
    layers = tables.layers
    if vcs < layers.count:
        raise TooFewVcsError(layers.count, f"for {layers.method} with these tables", vcs, layers.why)
    by_hop = layers.method in ("lash_tor", "file")
    masks = [vc_range(k * vcs // layers.count, (k + 1) * vcs // layers.count - 1) for k in range(layers.count)]
    if layers.escape is not None:
        masks = [vc_range(0, 0), vc_range(1, vcs - 1)]
    if layers.method == "acro":
        data = channel_orders(tables)
    elif layers.escape is not None:
        data = next_ports(topology, tables.channels, layers.escape)
    elif by_hop:
        data = layers.layer.astype(np.int32)
    else:
        data = _pairs(tables, layers)
    R, H = topology.routers, topology.hosts
    starts = np.cumsum([_FIRST, H, H, R * R, len(masks), data.size])
    entries = int(starts[-1]) + (R * R if by_hop else 0)
    if entries > _MOST_ENTRIES:
        raise RoutingError(
            f"tables.layers: {layers.method} has a layer for each hop of each path, and with {R} routers {entries} "
            f"entries, more than {_MOST_ENTRIES}"
        )
    header = [R, topology.max_ports, layers.count, all_vcs(vcs), *starts]
    parts = [
        topology.host_router,
        topology.host_port,
        next_ports(topology, tables.channels, tables.next_channel),
        np.array(masks),
        data,
    ]
    if by_hop:
        parts.append(layers.starts[:-1])
    numbers = [np.array(header), *(np.asarray(part).reshape(-1) for part in parts)]
    table = np.concatenate(numbers, dtype=np.int32, casting="same_kind")
    plan = RoutingPlan(
        relation(_RELATIONS[layers.method]),
        table,
        max_candidates=1 if layers.escape is None else 2,
        phases=1 if layers.escape is not None else layers.count,
        # a layer by source and hop is nothing that the exploration of states knows; `check_layers` has proved all
        # (layer, channel) dependencies free of cycles
        obligation="escape" if layers.escape is not None else "checked" if by_hop else "acyclic",
    )
    if plan.obligation == "acyclic":
        plan = replace(plan, regular=Regular(plan.route, plan.every, table, order=_layer_order))
    return over_parallel_links(plan, topology, options.get("links", "own_first"))

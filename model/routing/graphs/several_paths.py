"""Routing by tables of several paths for each destination: the source chooses one (docs/definitions/several-paths.md).

``phase`` is path · layers + layer.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numba import int64

from hopforge.model.irregular.tables import RoutingTables, next_ports
from hopforge.model.kernel.compile import both
from hopforge.model.network.core.candidates import candidate
from hopforge.model.network.core.draws import draw_below
from hopforge.model.routing.combined.parallel_links import over_parallel_links
from hopforge.model.routing.contract.plan import RoutingError, RoutingPlan, TooFewVcsError, all_vcs, relation, vc_range
from hopforge.model.topology import Topology
from hopforge.model.topology.parallel_links import LinkRule
from hopforge.model.topology.spread import flow_place

# table: 0 routers, 1 paths, 2 layers, 3 all VCs, 4 what the layer rises by with every link, 5 the only path of these
# packets (-1: any), 6 start of host routers, 7 of host ports, 8 of VC masks [layer], 9 of next ports
# [path, router, router] (-1: its switch has failed), 10 of first layers [path, router, router]
_R, _PATHS, _LAYERS, _ALL, _RISE, _ONLY, _HOME, _PORT, _MASK, _NEXT, _LAYER, _FIRST = range(12)


@both()
def _follow(router: int, packet: Any, table: Any, out: Any, path: int) -> int:
    """Go on along the path of a packet; `path`: that of one which stands at its source, else -1."""
    there = table[table[_HOME] + packet.dst]
    pair = router * table[_R] + there
    pairs = table[_R] * table[_R]
    if path >= 0:  # one that stays at this router, too: lookup engines see its address
        packet.phase = path * table[_LAYERS] + table[table[_LAYER] + path * pairs + pair]
    if there == router:
        out[0] = candidate(table[table[_PORT] + packet.dst], table[_ALL])
        return 1
    if path < 0:
        path = packet.phase // table[_LAYERS]
        packet.phase += table[_RISE]
    port = table[table[_NEXT] + path * pairs + pair]
    if port < 0:
        return 0
    out[0] = candidate(port, table[table[_MASK] + packet.phase % table[_LAYERS]])
    return 1


def _by_flow(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    path = -1
    if packet.hops == 0:
        path = flow_place(int64(packet.src), int64(packet.dst), int64(table[_R]), int64(table[_PATHS]))
    return _follow(router, packet, table, out, path)


def _by_entropy(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    path = -1
    if packet.hops == 0:
        first = flow_place(int64(packet.src), int64(packet.dst), int64(table[_R]), int64(table[_PATHS]))
        path = (first + int64(packet.part)) % int64(table[_PATHS])
    return _follow(router, packet, table, out, path)


def _by_draw(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    path = -1
    if packet.hops == 0:
        path = draw_below(net, router, table[_PATHS])
    return _follow(router, packet, table, out, path)


def _by_only(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    return _follow(router, packet, table, out, int64(table[_ONLY]) if packet.hops == 0 else -1)


#: value of `routing.spread` → relation
_RELATIONS = {"flow": _by_flow, "entropy": _by_entropy, "packet": _by_draw}


def several_paths_plan(
    tables: RoutingTables, topology: Topology, vcs: int, spread: str | None, links: LinkRule
) -> RoutingPlan:
    """Make tables with several paths ready: layer l has the VCs l·V div L to (l+1)·V div L − 1.

    The proof lets every source choose every path for every packet.

    Raises
    ------
    RoutingError
        Too few virtual channels, nobody who chooses, or tables that are too large.
    """
    if spread is None:
        raise RoutingError("routing.spread: missing; tables.scheme=k_shortest needs it: it says who chooses a path")
    layers, paths = tables.layers, tables.all_paths
    if vcs < layers.count:
        raise TooFewVcsError(layers.count, f"for {layers.method} with these tables", vcs, layers.why)
    R, H, L = topology.routers, topology.hosts, layers.count
    masks = [vc_range(k * vcs // L, (k + 1) * vcs // L - 1) for k in range(L)]
    first_layer = np.zeros((len(paths), R * R), np.int32)
    for number, one in enumerate(paths):
        some = np.diff(one.layers.starts) > 0
        first_layer[number, some] = one.layers.layer[one.layers.starts[:-1][some]]
    ports = np.stack([next_ports(topology, one.channels, one.next_channel) for one in paths])
    starts = np.cumsum([_FIRST, H, H, L, ports.size])
    if int(starts[-1]) + first_layer.size > np.iinfo(np.int32).max:
        raise RoutingError(
            f"tables.lmc: {len(paths)} paths of {R} routers are a table of {int(starts[-1]) + first_layer.size} "
            f"entries, more than {np.iinfo(np.int32).max}"
        )
    rise = int(layers.method == "hop_indexed")
    header = np.array([R, len(paths), L, all_vcs(vcs), rise, -1, *starts])
    parts = [header, topology.host_router, topology.host_port, np.array(masks), ports, first_layer]
    table = np.concatenate([np.asarray(part, np.int64).reshape(-1) for part in parts]).astype(np.int32)
    own = RoutingPlan(
        relation(_RELATIONS[spread]), table, phases=len(paths) * L, random=spread == "packet", by_source=True,
        every=None if spread == "packet" else relation(_by_draw), one_per_router=True,
        words=f"{len(paths)} paths for each destination, {L} layers ({layers.method})",
    )  # fmt: skip
    plan = over_parallel_links(own, topology, links)
    if plan.table is not own.table:  # the number of the destination chooses among parallel links; for the proof, too
        plan = replace(plan, one_per_router=False)
        if plan.every is not None:
            drawn = replace(own, route=own.every, every=None)
            plan = replace(plan, every=over_parallel_links(drawn, topology, links).route)
    return replace(plan, of_paths=tuple(_only(own, topology, links, number) for number in range(len(paths))))


def _only(own: RoutingPlan, topology: Topology, links: LinkRule, number: int) -> RoutingPlan:
    """Return the plan of the packets of one path."""
    table = own.table.copy()
    table[_ONLY] = number
    alone = replace(own, route=relation(_by_only), table=table, random=False, by_source=False, every=None)
    return over_parallel_links(alone, topology, links)

"""Minimal routing on a dragonfly: local, global, local."""

from typing import Any

from hopforge.model.kernel.compile import both
from hopforge.model.network.core.candidates import candidate
from hopforge.model.routing.contract.plan import RoutingPlan, need_kind, need_vcs, register, regular, relation, vc_range
from hopforge.model.routing.dragonflies.ways import (
    FREE0,
    FREE1,
    VCS,
    A,
    P,
    add_links,
    begin_with_link,
    group_of,
    need_links,
    number_of_packet,
    port_to_host,
    router_of,
    ways_table,
)
from hopforge.model.topology import Topology
from hopforge.model.topology.parallel_links import links_of_a_pair

# table: that of `ways`; FREE0: VCs before the global link; FREE1: VCs on it and behind it, and `_KEEPS` if a
# packet has only those of its class on the channel to its host
_KEEPS = 1 << 16


@both()
def _mask(table: Any, crossed: bool) -> int:
    """VCs of a packet's class: before the global link, or on it and behind it."""
    return table[FREE1] & (_KEEPS - 1) if crossed else table[FREE0]


@both()
def _one_way(router: int, dst: int, number: int, crossed: bool, table: Any, out: Any) -> int:
    port = port_to_host(table, router, dst, number)
    crossed = crossed or port >= table[P] + table[A] - 1
    any_class = port < table[P] and table[FREE1] < _KEEPS
    out[0] = candidate(port, (1 << table[VCS]) - 1 if any_class else _mask(table, crossed))
    return 1


def _minimal(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    return _one_way(router, packet.dst, packet.dst, _crossed(in_port, in_vc, table), table, out)


def _minimal_by_hash(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    return _one_way(router, packet.dst, number_of_packet(table, packet), _crossed(in_port, in_vc, table), table, out)


@both()
def _crossed(in_port: int, in_vc: int, table: Any) -> bool:
    """Whether a packet has come by its global link, or is behind it: its input VC says so."""
    p = table[P]
    return in_port >= p and (in_port >= p + table[A] - 1 or (table[FREE0] >> in_vc) & 1 == 0)


def _over_all_links(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    dst, crossed = packet.dst, _crossed(in_port, in_vc, table)
    goal = group_of(table, router_of(table, dst))
    if goal == group_of(table, router):
        return _one_way(router, dst, 0, crossed, table, out)
    committed = in_port >= table[P]
    count = add_links(table, out, router, goal, _mask(table, False), _mask(table, True), committed)
    begin_with_link(table, out, count, router, goal, dst, committed)
    return count


@register("dragonfly_min")
def prepare_dragonfly_min(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Direct: the lower half of the VCs before the global link, the upper half on it and after it.

    ``class_vcs: one`` takes VC 0 before and VC 1 after it, as BookSim does. ``ejection: class`` keeps a packet to its
    class on the channel to the host, as BookSim does. ``links: adaptive`` leaves the choice among the global links of
    two groups to VC allocation.
    """
    need_kind(topology, "dragonfly_min", "dragonfly")
    need_vcs("dragonfly_min", vcs, 2, "one before the global link, one on it and behind it")
    need_links(topology, "dragonfly_min", around=False)
    rule = options.get("links", "own_first")
    table = ways_table(topology, vcs, rule)
    first, last = (0, 1) if options.get("class_vcs", "half") == "one" else (vcs // 2 - 1, vcs - 1)
    keeps = _KEEPS if options.get("ejection", "any") == "class" else 0
    table[FREE0], table[FREE1] = vc_range(0, first), vc_range(first + 1, last) | keeps
    if links_of_a_pair(topology) == 1 or rule in ("own_first", "destination"):
        return regular(RoutingPlan(relation(_minimal), table))
    every, most = relation(_over_all_links), topology.max_ports
    if rule == "adaptive":
        return RoutingPlan(every, table, max_candidates=most)
    return RoutingPlan(relation(_minimal_by_hash), table, max_candidates=most, every=every, by_source=True)

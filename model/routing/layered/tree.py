"""Routing on k-ary trees: up to a common ancestor, then down."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hopforge.model.kernel.compile import both
from hopforge.model.network.core.candidates import candidate
from hopforge.model.network.core.draws import draw_below
from hopforge.model.routing.contract.occupancy import used_credits
from hopforge.model.routing.contract.plan import RoutingPlan, all_vcs, need_kind, register, regular, relation
from hopforge.model.topology import Topology

# table: 0 k, 1 n, 2 all VCs, 3 switches a level, then powers k^0 … k^(n+1)
_KARY, _LEVELS, _ALL, _WIDTH, _POWERS = range(5)


@both()
def _down_or_minus(router: int, host: int, table: Any) -> int:
    """Down port towards `host` if the switch is an ancestor, else −1 (switch level·kⁿ + Σ c_i·kⁱ, host = Σ d_i·kⁱ)."""
    width = table[_WIDTH]
    level = router // width
    place = router - level * width
    # a switch of level l reaches the hosts whose digits above l equal its own digits from l on
    if host // table[_POWERS + level + 1] != place // table[_POWERS + level]:
        return -1
    return (host // table[_POWERS + level]) % table[_KARY]


def _d_mod_k(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    port = _down_or_minus(router, packet.dst, table)
    if port < 0:
        level = router // table[_WIDTH]
        port = table[_KARY] + (packet.dst // table[_POWERS + level]) % table[_KARY]
    out[0] = candidate(port, table[_ALL])
    return 1


def _adaptive_up(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    port = _down_or_minus(router, packet.dst, table)
    if port >= 0:
        out[0] = candidate(port, table[_ALL])
        return 1
    k = table[_KARY]
    for j in range(k):
        out[j] = candidate(k + j, table[_ALL])
    return k


def _random_up(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    port = _down_or_minus(router, packet.dst, table)
    if port < 0:
        port = table[_KARY] + draw_below(net, router, table[_KARY])
    out[0] = candidate(port, table[_ALL])
    return 1


@both()
def _better_of_two(router: int, net: Any, table: Any) -> int:
    """Of two up ports drawn at random the one with fewer used credits, the first of equals."""
    k = table[_KARY]
    port, other = k + draw_below(net, router, k), k + draw_below(net, router, k)
    return other if used_credits(net, router, port) > used_credits(net, router, other) else port


def _better_of_two_up(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    port = _down_or_minus(router, packet.dst, table)
    if port < 0:
        port = _better_of_two(router, net, table)
    out[0] = candidate(port, table[_ALL])
    return 1


def _better_of_two_ahead(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    """As `_better_of_two_up`; what was drawn for this router stays in ``packet.via``: router · 2k + port."""
    port = _down_or_minus(router, packet.dst, table)
    if port < 0:
        width = 2 * table[_KARY]
        if packet.via < 0 or packet.via // width != router:
            packet.via = router * width + _better_of_two(router, net, table)
        port = packet.via % width
    out[0] = candidate(port, table[_ALL])
    return 1


def _tree_table(topology: Topology, vcs: int) -> Any:
    k, n = int(topology.params["k"]), int(topology.params["n"])
    return np.array([k, n, all_vcs(vcs), k**n, *(k**i for i in range(n + 2))], np.int32)


@register("d_mod_k")
def prepare_d_mod_k(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Up port = digit of the destination at the switch's level, then down: every destination has one tree."""
    need_kind(topology, "d_mod_k", "fat_tree")
    return regular(RoutingPlan(relation(_d_mod_k), _tree_table(topology, vcs)))


@register("nca")
def prepare_nca(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Nearest common ancestor: VA chooses the up port by credits, then down. ``ties: random`` draws the up port."""
    need_kind(topology, "nca", "fat_tree")
    if options.get("ties", "plus") == "random":
        return _drawn(_random_up, topology, vcs)
    most = int(topology.params["k"])
    return regular(RoutingPlan(relation(_adaptive_up), _tree_table(topology, vcs), max_candidates=most))


@register("anca")
def prepare_anca(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Nearest common ancestor: of two up ports drawn at random the one with fewer used credits, then down."""
    need_kind(topology, "anca", "fat_tree")
    if options.get("decision") == "ahead":
        return _drawn(_better_of_two_ahead, topology, vcs)
    return _drawn(_better_of_two_up, topology, vcs)


def _drawn(function: Callable[..., int], topology: Topology, vcs: int) -> RoutingPlan:
    k = int(topology.params["k"])
    plan = RoutingPlan(
        relation(function), _tree_table(topology, vcs), max_candidates=k, random=True, every=relation(_adaptive_up)
    )
    return regular(plan)

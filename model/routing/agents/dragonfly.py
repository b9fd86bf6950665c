"""Routing by agents on dragonflies: DQN routing with the minimal way as its escape (docs/definitions/dqn.md#dragonfly).

Table: that of `model.routing.dragonflies.ways`; FREE0: whether a packet that took the escape may leave it at the next
router; FREE1: where the mask of each router's actions that have a link begins. Action k is port p + k.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import both
from hopforge.model.network.core.candidates import candidate
from hopforge.model.network.core.draws import draw_below
from hopforge.model.network.parts.agent_sight import ACTION_BITS, PDOR
from hopforge.model.network.parts.agent_state import ListedWays
from hopforge.model.routing.agents.around import plan_around, ways_around
from hopforge.model.routing.agents.parameters import AgentPlaces, agent_parameters
from hopforge.model.routing.contract.plan import RoutingError, RoutingPlan, need_vcs, relation
from hopforge.model.routing.dragonflies.ways import (
    FREE0,
    FREE1,
    VCS,
    P,
    group_of,
    need_dragonfly,
    port_to_host,
    router_of,
    ways_table,
)
from hopforge.model.topology import Topology
from hopforge.model.topology.parallel_links import LinkRule

__all__ = ["dragonfly_plan", "hierarchical_ways"]

#: on the way to the last group, and in it
_ESCAPES = 2
_WHY = "one for agents, and two of the minimal way as escape"
#: bits of a mask in the table
_MOST_ACTIONS = 30


@both()
def _adaptive(table: Any) -> int:
    """VCs that are not the escape."""
    return ((1 << table[VCS]) - 1) & ~((1 << _ESCAPES) - 1)


@both()
def _leaves(router: int, dst: int, table: Any, out: Any) -> bool:
    """Whether a packet is at its router: then its host is the only candidate."""
    if router_of(table, dst) != router:
        return False
    out[0] = candidate(port_to_host(table, router, dst, dst), (1 << table[VCS]) - 1)
    return True


@both()
def _escape(router: int, dst: int, table: Any) -> int:
    """Candidate of the minimal way: VC 0 until the packet is in its last group, VC 1 there."""
    last = group_of(table, router) == group_of(table, router_of(table, dst))
    return candidate(port_to_host(table, router, dst, dst), 2 if last else 1)


@both()
def _escape_only(table: Any, in_port: int, in_vc: int) -> bool:
    """Whether a packet comes from another router on an escape channel and stays on them for good."""
    return table[FREE0] == 0 and in_port >= table[P] and in_vc < _ESCAPES


def _dqn(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    if _leaves(router, packet.dst, table, out):
        return 1
    escape = _escape(router, packet.dst, table)
    if packet.user0 & PDOR != 0 or _escape_only(table, in_port, in_vc):
        out[0] = escape
        return 1
    out[0] = candidate(table[P] + (packet.user0 >> ACTION_BITS) - 1, _adaptive(table))
    out[1] = escape
    return 2


def _every_dqn(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    if _leaves(router, packet.dst, table, out):
        return 1
    escape = _escape(router, packet.dst, table)
    allowed = table[table[FREE1] + router]
    count = 0
    while (allowed >> count) != 0:
        count += 1
    action = draw_below(net, router, count + 1)  # the last one: rejected, or too many hops
    if (allowed >> action) & 1 == 0 or _escape_only(table, in_port, in_vc):
        out[0] = escape
        return 1
    out[0] = candidate(table[P] + action, _adaptive(table))
    out[1] = escape
    return 2


def hierarchical_ways(topology: Topology) -> ListedWays:
    """Return the hops of minimal ways, which cross one link between groups at most, and the actions that shorten them.

    Parameters
    ----------
    topology : Topology
        A dragonfly in which every pair of groups has a link.
    """
    p, a = int(topology.params["p"]), int(topology.params["a"])
    R, peer = topology.routers, topology.peer_router[:, p:].astype(np.int64)
    router, group = np.arange(R), np.arange(R) // a
    same = group[:, None] == group
    hops = np.where(same, (router[:, None] != router).astype(np.int64), R)
    here, action = np.nonzero(peer >= 0)
    there = peer[here, action]
    between = group[here] != group[there]
    for u, v in zip(here[between], there[between], strict=True):
        mine, theirs = np.flatnonzero(group == group[u]), np.flatnonzero(group == group[v])
        way = (mine != u)[:, None] + 1 + (theirs != v)[None, :]
        hops[np.ix_(mine, theirs)] = np.minimum(hops[np.ix_(mine, theirs)], way)
    nearer = np.zeros((R, R), np.int64)
    for u, k, v in zip(here, action, there, strict=True):
        nearer[u] |= (hops[v] < hops[u]).astype(np.int64) << k
    return ListedWays(hops, nearer)


def _places(topology: Topology, allowed: NDArray[np.int64], actions: int) -> AgentPlaces:
    p, a, h, g = (int(topology.params[name]) for name in ("p", "a", "h", "g"))
    group, number = np.divmod(np.arange(topology.routers, dtype=np.int64), a)
    around = topology.damaged
    listed = ways_around(topology, p, actions, swapped=False) if around else hierarchical_ways(topology)
    return AgentPlaces(
        f"dragonfly p{p} a{a} h{h} g{g}", np.array([a, g]), np.stack([number, group], axis=1), allowed, actions, p,
        diameter=int(listed.hops.max()), listed=listed,
    )  # fmt: skip


def dragonfly_plan(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Agents on the adaptive VCs, the minimal way on the two escape VCs; up*/down* if links have failed.

    Raises
    ------
    RoutingError
        Groups without a link between them, too few VCs, too many ports, a rule of parallel links for the source.
    """
    if topology.damaged:
        need_vcs("dqn", vcs, _ESCAPES + 1, _WHY)
    else:
        need_dragonfly(topology, "dqn", vcs, _ESCAPES + 1, _WHY, around=False)
    links: LinkRule = options.get("links") or "own_first"
    if links not in ("own_first", "destination"):
        raise RoutingError(f"routing.links must be own_first or destination for routing.algorithm dqn, not {links}")
    p, a, h = (int(topology.params[name]) for name in ("p", "a", "h"))
    actions = a - 1 + h
    linked = topology.peer_router[:, p : p + actions] >= 0
    if not linked.any(axis=1).all() and not topology.damaged:
        raise RoutingError("routing.algorithm dqn needs routers with a link: topology.a and topology.g are 1")
    if actions > _MOST_ACTIONS:
        raise RoutingError(
            f"topology.a + topology.h must be at most {_MOST_ACTIONS + 1} for routing.algorithm dqn, not {actions + 1}"
        )
    allowed = (linked.astype(np.int64) << np.arange(actions)).sum(axis=1)
    agents = agent_parameters(topology, _places(topology, allowed, actions), options, _ESCAPES, vcs)
    if topology.damaged:
        return plan_around(topology, agents, vcs)
    table = ways_table(topology, vcs, links)
    table[FREE0], table[FREE1] = agents.one_hop, len(table)
    return RoutingPlan(
        relation(_dqn), np.concatenate([table, allowed]).astype(np.int32), max_candidates=2, obligation="escape",
        random=True, every=relation(_every_dqn), agents=agents, escape_mask=(1 << _ESCAPES) - 1,
    )  # fmt: skip

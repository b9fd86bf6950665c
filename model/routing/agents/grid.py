"""Routing by agents on meshes and tori: DQN-Routing with dimension order as its escape (docs/definitions/dqn.md).

The agents decide when a head comes to a router (`model.network.parts.agent_headers`); the relation makes candidates of
what they have decided. A packet that comes in on an escape channel from another router stays on them for good.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.dqn.shape import MOST_DIMENSIONS
from hopforge.model.kernel.compile import both
from hopforge.model.network.core.candidates import candidate
from hopforge.model.network.core.draws import draw_below
from hopforge.model.network.parts.agent_sight import ACTION_BITS, PDOR
from hopforge.model.routing.agents.around import plan_around, ways_around
from hopforge.model.routing.agents.dragonfly import dragonfly_plan
from hopforge.model.routing.agents.parameters import AgentPlaces, agent_parameters, check_router
from hopforge.model.routing.contract.plan import (
    RoutingError,
    RoutingPlan,
    need_kind,
    need_vcs,
    register,
    relation,
    vc_range,
)
from hopforge.model.routing.grids.grid import (
    ADAPTIVE,
    CLASS0,
    CLASS1,
    COORDS,
    FREE0,
    HOSTS,
    ORDER,
    eject,
    escape_candidate,
    grid_table,
    home_router,
    plan_table,
    tie_rule,
)
from hopforge.model.topology import Topology

__all__ = ["prepare_dqn"]

#: entry of the table: a packet that took dimension order may leave it at the next router
_ONE_HOP = FREE0 + 1


@both()
def _port_of(code: int) -> int:
    """Port, counted from the first one without a host, of action ``code - 1``; those of a dimension change places."""
    return (code - 1) ^ 1


@both()
def _escape_only(table: Any, in_port: int, in_vc: int) -> bool:
    """Whether a packet comes from another router on an escape channel and takes dimension order for good."""
    return table[_ONE_HOP] == 0 and in_port >= table[HOSTS] and ((table[CLASS0] | table[CLASS1]) >> in_vc) & 1 != 0


def _dqn(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    there = home_router(table, packet.dst)
    if there == router:
        return eject(table, packet.dst, out)
    escape = escape_candidate(router, net, table, there)
    if packet.user0 & PDOR != 0 or _escape_only(table, in_port, in_vc):
        out[0] = escape
        return 1
    out[0] = candidate(table[HOSTS] + _port_of(packet.user0 >> ACTION_BITS), table[ADAPTIVE])
    out[1] = escape
    return 2


def _every_dqn(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    there = home_router(table, packet.dst)
    if there == router:
        return eject(table, packet.dst, out)
    escape = escape_candidate(router, net, table, there)
    allowed = table[table[FREE0] + router]
    count = 0
    while (allowed >> count) != 0:
        count += 1
    action = draw_below(net, router, count + 1)  # the last one: rejected, or too many hops
    if (allowed >> action) & 1 == 0 or _escape_only(table, in_port, in_vc):
        out[0] = escape
        return 1
    out[0] = candidate(table[HOSTS] + _port_of(action + 1), table[ADAPTIVE])
    out[1] = escape
    return 2


def _allowed(topology: Topology, first: int) -> NDArray[np.int64]:
    """Mask of the actions of each router that have a link."""
    actions = np.arange(2 * len(topology.params["radices"]))
    linked = topology.peer_router[:, first : first + len(actions)] >= 0
    return (linked[:, actions ^ 1].astype(np.int64) << actions).sum(axis=1)


def _places(topology: Topology, table: list[int], allowed: NDArray[np.int64]) -> AgentPlaces:
    radices = [int(k) for k in topology.params["radices"]]
    n, wraps, size = len(radices), topology.kind == "torus", "×".join(str(k) for k in radices)
    coordinates = np.array(table[table[COORDS] : table[COORDS] + topology.routers * n], np.int64)
    listed = ways_around(topology, table[HOSTS], 2 * n, swapped=True) if topology.damaged else None
    return AgentPlaces(
        f"{topology.kind} {size}", np.array(radices), coordinates.reshape(-1, n), allowed, 2 * n, table[HOSTS],
        diameter=sum(k // 2 if wraps else k - 1 for k in radices) if listed is None else int(listed.hops.max()),
        wraps=wraps, listed=listed, swapped=True,
    )  # fmt: skip


@register("dqn")
def prepare_dqn(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Agents on the adaptive VCs; on the escape VCs dimension order, on a dragonfly the minimal way."""
    need_kind(topology, "dqn", "mesh", "torus", "dragonfly")
    check_router(options.get("router"))
    return dragonfly_plan(topology, vcs, options) if topology.kind == "dragonfly" else _plan(topology, vcs, options)


def _plan(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Dimension order as escape: 1 VC on a mesh, 2 on a torus; up*/down* if links have failed."""
    dimensions = len(topology.params["radices"])
    if dimensions > MOST_DIMENSIONS:
        raise RoutingError(
            f"topology.radices must have at most {MOST_DIMENSIONS} numbers for routing.algorithm dqn, not {dimensions}"
        )
    escapes = 1 if topology.kind == "mesh" else 2
    need_vcs(f"dqn on a {topology.kind}", vcs, escapes + 1, f"one for agents, and {ORDER[topology.kind]}")
    table = grid_table(topology, vcs)
    table[CLASS0], table[CLASS1] = 1, 1 << (escapes - 1)
    table[ADAPTIVE] = vc_range(escapes, vcs - 1)
    tie_rule(table, options)
    allowed = _allowed(topology, table[HOSTS])
    if not allowed.all() and not topology.damaged:
        raise RoutingError("routing.algorithm dqn needs a router with a link: topology.radices has only ones")
    agents = agent_parameters(topology, _places(topology, table, allowed), options, escapes, vcs)
    if topology.damaged:
        return plan_around(topology, agents, vcs)
    table[FREE0], table[_ONE_HOP] = len(table), int(agents.one_hop)
    return RoutingPlan(
        relation(_dqn), plan_table([*table, *allowed.tolist()]), max_candidates=2, obligation="escape", random=True,
        every=relation(_every_dqn), agents=agents, escape_mask=vc_range(0, escapes - 1),
    )  # fmt: skip

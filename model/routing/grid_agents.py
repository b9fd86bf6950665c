"""Routing by agents on meshes and tori: DQN-Routing with dimension order as its escape (docs/definitions/dqn.md).

The agents decide when a head comes to a router (`model.network.parts.agent_headers`); the relation makes candidates of
what they have decided. A packet that comes in on an escape channel from another router stays on them for good.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hopforge.model.config.dqn import DqnConfig
from hopforge.model.dqn.rules import Rules
from hopforge.model.dqn.settings import AgentSettings
from hopforge.model.dqn.shape import MOST_DIMENSIONS, NetworkShape
from hopforge.model.network.core.candidates import candidate
from hopforge.model.network.core.draws import draw_below
from hopforge.model.network.parts.agent_sight import ACTION_BITS, PDOR, port_of
from hopforge.model.network.parts.agent_state import AgentParameters
from hopforge.model.routing.grid import (
    ADAPTIVE,
    CLASS0,
    CLASS1,
    COORDS,
    FREE0,
    HOSTS,
    eject,
    escape_candidate,
    grid_table,
    home_router,
    plan_table,
    tie_rule,
)
from hopforge.model.routing.plan import RoutingError, RoutingPlan, need_kind, need_vcs, register, relation, vc_range
from hopforge.model.topology import Topology

__all__ = ["prepare_dqn"]

#: entry of the table: a packet that took dimension order may leave it at the next router
_ONE_HOP = FREE0 + 1
#: payload flits that count as 1
PAYLOAD_FLITS = 256


@njit
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
    out[0] = candidate(table[HOSTS] + port_of(packet.user0 >> ACTION_BITS), table[ADAPTIVE])
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
    out[0] = candidate(table[HOSTS] + port_of(action + 1), table[ADAPTIVE])
    out[1] = escape
    return 2


def agents_of_routers(agents: str | int, radices: list[int]) -> NDArray[np.int64]:
    """Return the agent of each router: int64[router].

    Raises
    ------
    RoutingError
        A number of agents that does not divide the routers.

    Examples
    --------
    >>> agents_of_routers("row", [4, 2]), agents_of_routers(1, [2, 1])
    (array([0, 0, 0, 0, 1, 1, 1, 1]), array([0, 0]))
    """
    routers = int(np.prod(radices))
    count = {"router": routers, "row": routers // radices[0], "network": 1}.get(str(agents))
    if count is None:
        count = int(agents)
        if routers % count:
            raise RoutingError(f"routing.dqn.agents must divide the {routers} routers, not {count}")
    return np.arange(routers) // (routers // count)


def _allowed(topology: Topology, first: int) -> NDArray[np.int64]:
    """Mask of the actions of each router that have a link."""
    actions = np.arange(2 * len(topology.params["radices"]))
    linked = topology.peer_router[:, first : first + len(actions)] >= 0
    return (linked[:, actions ^ 1].astype(np.int64) << actions).sum(axis=1)


def _parameters(
    topology: Topology, table: list[int], options: dict[str, Any], escapes: int, vcs: int, allowed: NDArray[np.int64]
) -> AgentParameters:
    config = options.get("dqn") or DqnConfig()
    router = options.get("router")
    radices = [int(k) for k in topology.params["radices"]]
    n, given = len(radices), config.model_dump()
    wraps = topology.kind == "torus"
    diameter = sum(k // 2 if wraps else k - 1 for k in radices)
    rules = Rules(
        max_hops=2 * diameter if config.max_hops is None else config.max_hops,
        available=config.available, reward_rejected=config.reward_rejected,
        reward_unit_cycles=config.reward_unit_cycles, reward_offset=config.reward_offset, reward=config.reward,
    )  # fmt: skip
    settings = AgentSettings(
        **{name: given[name] for name in AgentSettings.__dataclass_fields__ if name != "bootstrap"},
        bootstrap=config.bootstrap == "next_router",
    )
    depth = float((vcs - escapes) * (router.buffer_flits if router is not None else 1))
    seen = [depth if config.occupancies in ("both", name) else np.inf for name in ("local", "remote")]
    scales = np.array([PAYLOAD_FLITS, *seen]) if config.observation == "scaled" else np.zeros(3)
    of_router = agents_of_routers(config.agents, radices)
    size = "×".join(str(k) for k in radices)
    coordinates = np.array(table[table[COORDS] : table[COORDS] + topology.routers * n], np.int64)
    return AgentParameters(
        shape=NetworkShape.of_grid(n, config.first, config.second, config.head), settings=settings, rules=rules,
        topology=f"{topology.kind} {size}, agents: {int(of_router.max()) + 1}", agents=of_router,
        radices=np.array(radices), coordinates=coordinates.reshape(-1, n), wraps=wraps,
        home=topology.host_router.astype(np.int64), allowed=allowed, first_port=table[HOSTS], escapes=escapes, vcs=vcs,
        scales=scales, max_episodes=config.max_episodes, minimal=config.ways == "minimal",
        one_hop=config.escape == "hop", decision_cycles=config.decision_cycles,
        decision_interval=config.decision_interval or max(config.decision_cycles, 1),
        decision_queue=config.decision_queue, int8=config.inference == "int8",
        activation_bits=config.activation_bits, seed=options.get("seed", 1),
        weights=config.weights, resume=config.resume, hints=config.hints, save_state=config.save == "state",
    )  # fmt: skip


@register("dqn")
def prepare_dqn(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Agents on the adaptive VCs, dimension order on the escape VCs: 1 on a mesh, 2 on a torus."""
    need_kind(topology, "dqn", "mesh", "torus")
    dimensions = len(topology.params["radices"])
    if dimensions > MOST_DIMENSIONS:
        raise RoutingError(
            f"topology.radices must have at most {MOST_DIMENSIONS} numbers for routing.algorithm dqn, not {dimensions}"
        )
    escapes = 1 if topology.kind == "mesh" else 2
    need_vcs(f"dqn on a {topology.kind}", vcs, escapes + 1)
    _check_router(options.get("router"))
    table = grid_table(topology, vcs)
    table[CLASS0], table[CLASS1] = 1, 1 << (escapes - 1)
    table[ADAPTIVE] = vc_range(escapes, vcs - 1)
    tie_rule(table, options)
    allowed = _allowed(topology, table[HOSTS])
    if not allowed.all():
        raise RoutingError("routing.algorithm dqn needs a router with a link: topology.radices has only ones")
    agents = _parameters(topology, table, options, escapes, vcs, allowed)
    table[FREE0], table[_ONE_HOP] = len(table), int(agents.one_hop)
    return RoutingPlan(
        relation(_dqn), plan_table([*table, *allowed.tolist()]), max_candidates=2, obligation="escape", random=True,
        every=relation(_every_dqn), agents=agents, escape_mask=vc_range(0, escapes - 1),
    )  # fmt: skip


def _check_router(router: Any) -> None:
    """Refuse routers that agents cannot serve."""
    if router is None:
        return
    if router.model != "input_queued":
        raise RoutingError(f"routing.algorithm dqn needs router.model: input_queued, not {router.model}")
    if router.switching == "wormhole":
        raise RoutingError("routing.algorithm dqn needs router.switching: vct or saf (room for a packet), not wormhole")
    if router.route_computation == "lookup":
        raise RoutingError("routing.algorithm dqn needs router.route_computation: table, not lookup")

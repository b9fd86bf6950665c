"""Agents of DQN routing as section `routing.dqn` wants them: what does not depend on the kind of network."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.routing import DqnConfig
from hopforge.model.dqn.rules import Rules
from hopforge.model.dqn.settings import AgentSettings
from hopforge.model.dqn.shape import NetworkShape
from hopforge.model.network.parts.agent_state import AgentParameters, ListedWays
from hopforge.model.routing.contract.plan import RoutingError
from hopforge.model.topology import Topology

__all__ = ["AgentPlaces", "agent_parameters", "agents_of_routers", "check_router"]

#: payload flits that count as 1
PAYLOAD_FLITS = 256


class AgentPlaces(NamedTuple):
    """What agents are told of a network, and what they can do.

    Attributes
    ----------
    name : str
        What an archive of weights has to be made for, without the number of agents.
    radices, coordinates : int64[n], int64[router, n]
        Place of each router. Routers that differ in the first coordinate only are a row.
    allowed : int64[router]
        Mask of the actions that have a link.
    actions : int
        Of an agent.
    first_port : int
        Of those without hosts.
    diameter : int
        Hops of the longest minimal way.
    wraps : bool
        Whether it is a torus.
    listed : ListedWays, optional
        Of a network that is no grid, or has lost links.
    swapped : bool
        The ports of actions 2i and 2i + 1 change places: it is a grid.
    """

    name: str
    radices: NDArray[np.int64]
    coordinates: NDArray[np.int64]
    allowed: NDArray[np.int64]
    actions: int
    first_port: int
    diameter: int
    wraps: bool = False
    listed: ListedWays | None = None
    swapped: bool = False


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


def agent_parameters(
    topology: Topology, places: AgentPlaces, options: dict[str, Any], escapes: int, vcs: int
) -> AgentParameters:
    """Return the agents of a network, of whose VCs the lowest `escapes` are the escape.

    Raises
    ------
    RoutingError
        A number of agents that does not divide the routers.
    """
    config = options.get("dqn") or DqnConfig()
    router, given = options.get("router"), config.model_dump()
    rules = Rules(
        max_hops=2 * places.diameter if config.max_hops is None else config.max_hops,
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
    of_router = agents_of_routers(config.agents, places.radices.tolist())
    inputs = 2 * len(places.radices) + 1 + 2 * places.actions
    return AgentParameters(
        shape=NetworkShape(inputs, config.first, config.second, config.head, places.actions), settings=settings,
        rules=rules, topology=f"{places.name}, agents: {int(of_router.max()) + 1}", agents=of_router,
        radices=places.radices, coordinates=places.coordinates, wraps=places.wraps, listed=places.listed,
        swapped=places.swapped,
        home=topology.host_router.astype(np.int64), allowed=places.allowed, first_port=places.first_port,
        escapes=escapes, vcs=vcs, scales=scales, max_episodes=config.max_episodes, minimal=config.ways == "minimal",
        one_hop=config.escape == "hop", decision_cycles=config.decision_cycles,
        decision_interval=config.decision_interval or max(config.decision_cycles, 1),
        decision_queue=config.decision_queue, int8=config.inference == "int8",
        activation_bits=config.activation_bits, seed=options.get("seed", 1), weights=config.weights,
        resume=config.resume, hints=config.hints, save_state=config.save == "state",
    )  # fmt: skip


def check_router(router: Any) -> None:
    """Refuse routers that agents cannot serve."""
    if router is None:
        return
    if router.model != "input_queued":
        raise RoutingError(f"routing.algorithm dqn needs router.model: input_queued, not {router.model}")
    if router.switching == "wormhole":
        raise RoutingError("routing.algorithm dqn needs router.switching: vct or saf (room for a packet), not wormhole")
    if router.route_computation == "lookup":
        raise RoutingError("routing.algorithm dqn needs router.route_computation: table, not lookup")

"""Put the agents of DQN routing into a network."""

from dataclasses import replace

from hopforge.model.network.core.state import NetState
from hopforge.model.network.parts.agent_headers import decide_headers
from hopforge.model.network.parts.agent_state import AgentParameters, AgentState
from hopforge.model.network.parts.trail_tables import Acknowledges

__all__ = ["put_agents", "with_agents"]


def with_agents(given: Acknowledges, parameters: AgentParameters) -> Acknowledges:
    """Return acknowledges whose tables serve agents, too."""
    rules = replace(parameters.rules, queue_depth=given.rules.queue_depth, own_depth=given.rules.own_depth)
    return replace(
        given, agents=parameters.agents, episodes=parameters.max_episodes, inputs=parameters.shape.inputs, rules=rules
    )


def put_agents(state: NetState, parameters: AgentParameters) -> None:
    """Let agents decide about the packets of a network that has acknowledges."""
    state.agents = AgentState(parameters, int(state["routers"]) * int(state["ports"]))
    state.record["agents"] = state.agents.record.ctypes.data
    state.put_function("agent", decide_headers)

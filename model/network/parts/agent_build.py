"""Put the agents of DQN routing into a network."""

from dataclasses import replace

from hopforge.model.network.core.state import NetState
from hopforge.model.network.parts.agent_headers import decide_headers
from hopforge.model.network.parts.agent_state import AgentParameters, AgentState
from hopforge.model.network.parts.trail_tables import Acknowledges

__all__ = ["put_agents", "with_agents"]


def with_agents(acknowledges: Acknowledges | None, parameters: AgentParameters) -> Acknowledges:
    """Return the tables of routers that have agents; without acknowledges no packet asks for one."""
    given = acknowledges or Acknowledges(ratio=1 if parameters.at_once else 0)
    rules = replace(parameters.rules, queue_depth=given.rules.queue_depth)
    return replace(
        given, agents=parameters.agents, episodes=parameters.max_episodes, inputs=parameters.shape.inputs, rules=rules
    )


def put_agents(state: NetState, parameters: AgentParameters) -> None:
    """Let agents decide about the packets of a network that has tables of routed packets."""
    state.agents = AgentState(parameters)
    state.record["agents"] = state.agents.record.ctypes.data
    state.put_function("agent", decide_headers)

"""Put the agents of DQN routing into a network."""

from hopforge.model.network.core.state import NetState
from hopforge.model.network.parts.agent_headers import decide_headers
from hopforge.model.network.parts.agent_state import AgentParameters, AgentState

__all__ = ["put_agents"]


def put_agents(state: NetState, parameters: AgentParameters) -> None:
    """Let agents decide about the packets of a network that has tables of routed packets."""
    state.agents = AgentState(parameters)
    state.record["agents"] = state.agents.record.ctypes.data
    state.put_function("agent", decide_headers)

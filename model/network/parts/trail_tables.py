"""Tables of routed packets in the routers of a network, and the rules of acknowledges (docs/definitions/dqn.md)."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import carray
from numpy.typing import NDArray

from hopforge.model.dqn.dense import part
from hopforge.model.dqn.rules import RoutingRules, Rules
from hopforge.model.dqn.tables import COUNTERS, Tables, new_tables
from hopforge.model.kernel.compile import inlined
from hopforge.model.kernel.memory import int64s, singles
from hopforge.model.network.core.records import Net
from hopforge.model.network.core.state import NetState

__all__ = ["Acknowledges", "packet_name", "put_trail", "rules_of", "tables_of", "trail_counts", "wants_acknowledge"]

#: bits of the number of a packet at its source, in its name
NUMBER_BITS = 40
_ARRAYS = [f"trail_{name}" for name in Tables._fields]


@dataclass(frozen=True)
class Acknowledges:
    """Tables and acknowledges of every router.

    Attributes
    ----------
    ratio : int
        Every so-many-th packet of a host asks for an acknowledge; 0: none does.
    table_depth : int
        Entries of a router.
    age_limit : int, optional
        Cycles that an entry lives; by default for ever.
    agents : int64[router], optional
        Agent of each router, by default one for all.
    episodes, inputs : int
        Active episodes of an agent, numbers of an observation.
    rules : Rules
        Of decisions and rewards, and depth of the queue of acknowledges.
    """

    ratio: int = 1
    table_depth: int = 1024
    age_limit: int | None = None
    agents: NDArray[np.int64] | None = None
    episodes: int = 1
    inputs: int = 1
    rules: Rules = field(default_factory=Rules)


def put_trail(state: NetState, acknowledges: Acknowledges) -> None:
    """Give the routers of a network empty tables of routed packets."""
    routers = int(state["routers"])
    tables = new_tables(
        np.zeros(routers, np.int64) if acknowledges.agents is None else acknowledges.agents,
        depth=acknowledges.table_depth, episodes=acknowledges.episodes, inputs=acknowledges.inputs,
        age_limit=acknowledges.age_limit,
    )  # fmt: skip
    for name, array in tables._asdict().items():
        state.put(f"trail_{name}", array)
    rules, s = acknowledges.rules.compiled, state.record
    s["trail_depth"], s["trail_groups"] = acknowledges.table_depth, len(tables.started)
    s["trail_episodes"], s["trail_inputs"] = acknowledges.episodes, acknowledges.inputs
    s["ack_ratio"] = acknowledges.ratio
    s["max_hops"], s["busy_too"], s["reward_rejected"] = rules.max_hops, rules.busy_too, rules.reward_rejected
    s["ack_queue"], s["reward_unit"], s["reward_offset"] = rules.queue_depth, rules.unit, rules.offset


def trail_counts(state: NetState) -> dict[str, int]:
    """Return the counters of decisions and acknowledges since the start."""
    return dict(zip(COUNTERS, state["trail_counts"].tolist(), strict=True))


@part
def tables_of(net: Net) -> Any:
    """Return the tables of a network (only if ``net.trail_depth`` is not 0)."""
    routers, groups, episodes = net.routers, net.trail_groups, net.trail_episodes
    return Tables(
        carray(int64s(net.trail_entries), (routers, net.trail_depth, 5)),
        carray(int64s(net.trail_fill), (routers,)),
        carray(int64s(net.trail_waiting), (routers,)),
        carray(int64s(net.trail_age_limit), (1,)),
        carray(int64s(net.trail_oldest), (1,)),
        carray(int64s(net.trail_skew), (routers,)),
        carray(int64s(net.trail_agents), (routers,)),
        carray(int64s(net.trail_episode_numbers), (groups, episodes)),
        carray(int64s(net.trail_episode_actions), (groups, episodes)),
        carray(singles(net.trail_episode_observations), (groups, episodes, net.trail_inputs)),
        carray(int64s(net.trail_started), (groups,)),
        carray(int64s(net.trail_active), (groups,)),
        carray(int64s(net.trail_counts), (18,)),
    )


@part
def rules_of(net: Net) -> Any:
    """Return the rules of decisions and acknowledges."""
    return RoutingRules(
        net.max_hops, net.busy_too != 0, net.reward_rejected != 0, net.ack_queue, net.reward_unit, net.reward_offset
    )


@inlined
def packet_name(packet: Any) -> int:
    """Name of a packet in the tables: its source and its number there."""
    return (int(packet.src) << NUMBER_BITS) | packet.number


@inlined
def wants_acknowledge(net: Net, packet: Any) -> bool:
    """Whether a packet asks for an acknowledge: every so-many-th of its host does."""
    return net.ack_ratio > 0 and (packet.number + 1) % net.ack_ratio == 0

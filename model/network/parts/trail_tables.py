"""Tables of routed packets of a simulated network, as `model.dqn` takes them; which packets ask for an acknowledge."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import carray, int64
from numpy.typing import NDArray

from hopforge.model.dqn.dense import part
from hopforge.model.dqn.rules import RoutingRules, Rules
from hopforge.model.dqn.tables import COUNTERS, FIELDS, NEVER, NONE, Tables, new_tables
from hopforge.model.free_memory import refuse_beyond_memory
from hopforge.model.kernel.memory import int64s, singles
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import input_vc
from hopforge.model.network.core.state import NetState

#: bits of a packet's number in its code
NUMBER_BITS = 40
_COUNTERS = len(COUNTERS)


@dataclass(frozen=True)
class Acknowledges:
    """Tables of routed packets, and acknowledges that go back over the routers of a packet.

    Attributes
    ----------
    flits : int
        Length of an acknowledge.
    ratio : int
        Every so many packets of a host ask for one, 0: none does.
    delay_cycles : int
        From taking a tail to the creation of what it causes, at least 1.
    table_depth : int
        Entries of a router.
    age_limit : int, optional
        Cycles that an entry lives; by default for ever.
    agents : ndarray, int64[router], optional
        Agent of each router, by default one for all.
    episodes, inputs : int
        Active episodes of an agent, numbers of an observation.
    rules : Rules
        Of decisions and rewards, and depth of the queue of acknowledges.
    skew : ndarray, int64[router], optional
        Of the routers' clocks.
    """

    flits: int = 3
    ratio: int = 1
    delay_cycles: int = 1
    table_depth: int = 1024
    age_limit: int | None = None
    agents: NDArray[np.int64] | None = None
    episodes: int = 1
    inputs: int = 1
    rules: Rules = field(default_factory=Rules)
    skew: NDArray[np.int64] | None = None


def put_trail(state: NetState, acknowledges: Acknowledges) -> None:
    """Give the routers of a network empty tables of routed packets."""
    routers = int(state["routers"])
    agents = 1 if acknowledges.agents is None else int(acknowledges.agents.max()) + 1
    need = routers * acknowledges.table_depth * FIELDS * 8
    need += agents * acknowledges.episodes * (16 + 4 * acknowledges.inputs)
    refuse_beyond_memory(
        need, f"traffic.acknowledge: tables of {acknowledges.table_depth:,} entries and "
        f"{acknowledges.episodes:,} episodes",
    )  # fmt: skip
    tables = new_tables(
        np.zeros(routers, np.int64) if acknowledges.agents is None else acknowledges.agents,
        depth=acknowledges.table_depth, episodes=acknowledges.episodes, inputs=acknowledges.inputs,
        age_limit=acknowledges.age_limit, skew=acknowledges.skew,
    )  # fmt: skip
    for name, array in tables._asdict().items():
        state.put(f"trail_{name}", array)
    rules, s = acknowledges.rules.compiled, state.record
    s["trail_depth"], s["trail_groups"] = acknowledges.table_depth, len(tables.started)
    s["trail_episodes"], s["trail_inputs"] = acknowledges.episodes, acknowledges.inputs
    s["ack_ratio"] = acknowledges.ratio
    s["max_hops"], s["busy_too"], s["reward_rejected"] = rules.max_hops, rules.busy_too, rules.reward_rejected
    s["ack_queue"], s["ack_own"] = rules.queue_depth, rules.own_depth
    s["reward_unit"], s["reward_offset"] = rules.unit, rules.offset
    s["reward_by_time"] = rules.by_time


def flush_tables(state: NetState) -> None:
    """Empty the tables of a network in which nothing is under way; episodes end without a sample."""
    counts = state["trail_counts"]
    counts[COUNTERS.index("flushed_entries")] += int(state["trail_fill"].sum())
    counts[COUNTERS.index("flushed_episodes")] += int(state["trail_active"].sum())
    state["trail_fill"][:], state["trail_active"][:] = 0, 0
    state["trail_episode_numbers"][:], state["trail_oldest"][:] = NONE, NEVER


def trail_counts(state: NetState) -> dict[str, int]:
    """Return the counters of decisions and acknowledges since the start."""
    return dict(zip(COUNTERS, state["trail_counts"].tolist(), strict=True))


@part
def tables_of(net: Net) -> Any:
    """Return the tables of all routers, as `model.dqn.tables.Tables`: the arrays of the network itself."""
    routers, groups, episodes = net.routers, net.trail_groups, net.trail_episodes
    return Tables(
        carray(int64s(net.trail_entries), (routers, net.trail_depth, FIELDS)),
        carray(int64s(net.trail_fill), (routers,)),
        carray(int64s(net.trail_waiting), (routers,)),
        carray(int64s(net.trail_own), (routers,)),
        carray(int64s(net.trail_age_limit), (1,)),
        carray(int64s(net.trail_oldest), (1,)),
        carray(int64s(net.trail_skew), (routers,)),
        carray(int64s(net.trail_agents), (routers,)),
        carray(int64s(net.trail_episode_numbers), (groups, episodes)),
        carray(int64s(net.trail_episode_actions), (groups, episodes)),
        carray(singles(net.trail_episode_observations), (groups, episodes, net.trail_inputs)),
        carray(int64s(net.trail_started), (groups,)),
        carray(int64s(net.trail_active), (groups,)),
        carray(int64s(net.trail_counts), (_COUNTERS,)),
    )


@part
def rules_of(net: Net) -> Any:
    """Return the rules of decisions and acknowledges."""
    return RoutingRules(
        net.max_hops, net.busy_too != 0, net.reward_rejected != 0, net.ack_queue, net.ack_own, net.reward_unit,
        net.reward_offset, net.reward_by_time != 0,
    )  # fmt: skip


@part
def wants_acknowledge(net: Net, packet: Any) -> bool:
    """Whether a packet asks for an acknowledge: of those of a host every so many."""
    return net.ack_ratio != 0 and (int64(packet.number) + 1) % net.ack_ratio == 0


@part
def packet_name(packet: Any) -> int:
    """Name of a packet in the tables: its source and its number there."""
    return (int64(packet.src) << NUMBER_BITS) | int64(packet.number)


@part
def entry_port(net: Net, n: int) -> int:
    """Port of input VC `n` as an entry says it: `NONE` if a host is there."""
    vc = input_vc(net, n)
    if vc.credit_to >= net.output_vcs:
        return NONE
    return int64(vc.port) - int64(vc.router) * net.ports

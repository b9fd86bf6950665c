"""Tables of routed packets in the routers, and the episodes of the agents: what acknowledges find again.

Kept in arrays; `routed.py` and `acknowledges.py` hold the rules.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.dqn.dense import compiled, part

__all__ = [
    "COUNTERS", "DISTANCE", "EPISODE", "FIELDS", "NEVER", "NONE", "PACKET", "PORT", "TIME", "Tables", "add_entry",
    "expire", "find_entry", "new_tables", "open_episode", "remove_entry",
]  # fmt: skip

#: columns of an entry; `EPISODE` is a place of the agent, or `NONE`
PACKET, TIME, DISTANCE, EPISODE, PORT = range(5)
FIELDS = 5
NONE = -1
NEVER = 1 << 62
#: names of `Tables.counts`, in order
COUNTERS = (
    "entries", "episodes", "decisions", "no_reqack", "overrun", "table_full", "rejected", "hop_limit",
    "escaped_waiting", "delivered", "acks_made", "acks_sent", "acks_no_entry", "acks_queue_full", "acks_home",
    "rewards", "expired_entries", "expired_episodes", "agent_queue_full", "decision_wait",
    "int8_agreed", "acks_own_full", "acks_lost", "flushed_entries", "flushed_episodes",
)  # fmt: skip
_NUMBER = {name: number for number, name in enumerate(COUNTERS)}
_ENTRIES, _EXPIRED, _EXPIRED_EPISODES = _NUMBER["entries"], _NUMBER["expired_entries"], _NUMBER["expired_episodes"]
_EPISODES = _NUMBER["episodes"]


class Tables(NamedTuple):
    """Arrays only, for the kernels.

    Attributes
    ----------
    entries : int64[router, place, field]
        Oldest first.
    fill : int64[router]
        Entries of a router.
    waiting : int64[router]
        Acknowledges on their way in a router's queue.
    own : int64[router]
        Acknowledges there of packets that have arrived at the router.
    age_limit : int64[1]
        Cycles; older entries vanish (`NEVER`: none).
    oldest : int64[1]
        No entry is older than this (network's clock).
    skew : int64[router]
        Clock of a router minus that of the network.
    agents : int64[router]
        Whose router it is.
    episode_numbers, episode_actions : int64[agent, place]
        Number of each active episode, from 0 for each agent (`NONE`: the place is free), and its action.
    episode_observations : float[agent, place, input]
        What the agent saw.
    started, active : int64[agent]
        Episodes, ever and now.
    counts : int64[counter]
        See `COUNTERS`.
    """

    entries: NDArray[np.int64]
    fill: NDArray[np.int64]
    waiting: NDArray[np.int64]
    own: NDArray[np.int64]
    age_limit: NDArray[np.int64]
    oldest: NDArray[np.int64]
    skew: NDArray[np.int64]
    agents: NDArray[np.int64]
    episode_numbers: NDArray[np.int64]
    episode_actions: NDArray[np.int64]
    episode_observations: NDArray[np.float32]
    started: NDArray[np.int64]
    active: NDArray[np.int64]
    counts: NDArray[np.int64]


def new_tables(
    agents: NDArray[np.int64],
    *,
    depth: int,
    episodes: int,
    inputs: int,
    age_limit: int | None = None,
    skew: NDArray[np.int64] | None = None,
) -> Tables:
    """Return empty tables.

    Parameters
    ----------
    agents : int64[router]
        Number of each router's agent, from 0.
    depth : int
        Entries of a router's table.
    episodes : int
        Active ones of an agent.
    inputs : int
        Numbers of an observation.
    age_limit : int, optional
        Cycles that an entry lives; by default for ever.
    skew : int64[router], optional
        Of the routers' clocks.
    """
    for name, value in (("table_depth", depth), ("max_episodes", episodes), ("age_limit", age_limit)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be 1 or more, not {value}")
    routers, count = len(agents), int(agents.max()) + 1
    return Tables(
        entries=np.zeros((routers, depth, FIELDS), np.int64),
        fill=np.zeros(routers, np.int64),
        waiting=np.zeros(routers, np.int64),
        own=np.zeros(routers, np.int64),
        age_limit=np.array([NEVER if age_limit is None else age_limit]),
        oldest=np.array([NEVER]),
        skew=np.zeros(routers, np.int64) if skew is None else skew,
        agents=np.asarray(agents, np.int64),
        episode_numbers=np.full((count, episodes), NONE, np.int64),
        episode_actions=np.zeros((count, episodes), np.int64),
        episode_observations=np.zeros((count, episodes, inputs), np.float32),
        started=np.zeros(count, np.int64),
        active=np.zeros(count, np.int64),
        counts=np.zeros(len(COUNTERS), np.int64),
    )


@part
def open_episode(tables: Tables, agent: int, action: int) -> int:
    """Start an episode of an agent that has a free place; return the place."""
    place = 0
    while tables.episode_numbers[agent, place] != NONE:
        place += 1
    tables.episode_numbers[agent, place] = tables.started[agent]
    tables.episode_actions[agent, place] = action
    tables.started[agent] += 1
    tables.active[agent] += 1
    tables.counts[_EPISODES] += 1
    return place


@part
def close_episode(tables: Tables, agent: int, place: int) -> None:
    """End an episode."""
    tables.episode_numbers[agent, place] = NONE
    tables.active[agent] -= 1


@part
def add_entry(tables: Tables, router: int, packet: int, now: int, hops: int, episode: int, port: int) -> None:
    """Add an entry to a table that has room; `now` is the network's time."""
    entry = tables.entries[router, tables.fill[router]]
    entry[PACKET], entry[TIME], entry[DISTANCE] = packet, now + tables.skew[router], hops
    entry[EPISODE], entry[PORT] = episode, port
    tables.fill[router] += 1
    tables.oldest[0] = min(tables.oldest[0], now)
    tables.counts[_ENTRIES] += 1


@part
def find_entry(tables: Tables, router: int, packet: int) -> int:
    """Return the place of the newest entry of a packet, or `NONE`."""
    for place in range(tables.fill[router] - 1, -1, -1):
        if tables.entries[router, place, PACKET] == packet:
            return place
    return NONE


@part
def remove_entry(tables: Tables, router: int, place: int) -> None:
    """Take an entry out; the newer ones move up."""
    tables.fill[router] -= 1
    for k in range(place, tables.fill[router]):
        for field in range(FIELDS):
            tables.entries[router, k, field] = tables.entries[router, k + 1, field]


@compiled
def expire(tables: Tables, now: int) -> None:
    """Remove what is older than the age limit at time `now`, in all routers; its episodes end without a sample."""
    if now - tables.oldest[0] <= tables.age_limit[0]:
        return
    oldest = NEVER
    for router in range(len(tables.fill)):
        gone, local = 0, now + tables.skew[router]
        while gone < tables.fill[router] and local - tables.entries[router, gone, TIME] > tables.age_limit[0]:
            episode = tables.entries[router, gone, EPISODE]
            if episode != NONE:
                close_episode(tables, tables.agents[router], episode)
                tables.counts[_EXPIRED_EPISODES] += 1
            gone += 1
        tables.counts[_EXPIRED] += gone
        tables.fill[router] -= gone
        for k in range(tables.fill[router] if gone > 0 else 0):
            for field in range(FIELDS):
                tables.entries[router, k, field] = tables.entries[router, k + gone, field]
        if tables.fill[router] > 0:
            oldest = min(oldest, tables.entries[router, 0, TIME] - tables.skew[router])
    tables.oldest[0] = oldest

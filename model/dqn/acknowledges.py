"""Algorithm 3: what an acknowledge does at a router (docs/definitions/dqn.md#acknowledges)."""

from typing import Any

from hopforge.model.dqn.dense import compiled, part
from hopforge.model.dqn.rules import RoutingRules
from hopforge.model.dqn.tables import (
    COUNTERS,
    DISTANCE,
    EPISODE,
    NONE,
    PORT,
    TIME,
    Tables,
    close_episode,
    find_entry,
    remove_entry,
)

__all__ = ["FORWARD", "HOME", "NO_ENTRY", "QUEUE_FULL", "acknowledge", "leave_own", "leave_queue", "take_own"]

#: what becomes of an acknowledge
QUEUE_FULL, NO_ENTRY, HOME, FORWARD = range(4)
_NUMBER = {name: number for number, name in enumerate(COUNTERS)}
_QUEUE_FULL, _NO_ENTRY = _NUMBER["acks_queue_full"], _NUMBER["acks_no_entry"]
_HOME, _SENT, _REWARDS = _NUMBER["acks_home"], _NUMBER["acks_sent"], _NUMBER["rewards"]
_MADE, _OWN_FULL = _NUMBER["acks_made"], _NUMBER["acks_own_full"]


@part
def reward_of(rules: RoutingRules, distance: int, cycles: int) -> float:
    """Reward of a packet that had so many hops to go and took so many cycles."""
    if rules.by_time:
        return rules.offset - cycles / rules.unit
    return distance * rules.unit / cycles + rules.offset


@compiled
def acknowledge(tables: Tables, rules: RoutingRules, router: int, packet: int, stamp: int) -> Any:
    """Let an acknowledge that has arrived whole find its entry.

    Parameters
    ----------
    tables, rules
        State and settings; `tables.expire` has been called for this time.
    router, packet, stamp : int
        Where; whose acknowledge; the destination's time when the packet arrived there.

    Returns
    -------
    result : int
        `QUEUE_FULL`, `NO_ENTRY`: dropped; `HOME`: the chain ends; `FORWARD`: it waits to leave through `port`.
    port : int
        The entry's.
    episode : int
        Place of the episode that has ended, whose observation and action stay there until the place is taken; or
        `NONE`.
    reward : float
        Of the episode.
    """
    if tables.waiting[router] >= rules.queue_depth:
        tables.counts[_QUEUE_FULL] += 1
        return QUEUE_FULL, NONE, NONE, 0.0
    place = find_entry(tables, router, packet)
    if place == NONE:
        tables.counts[_NO_ENTRY] += 1
        return NO_ENTRY, NONE, NONE, 0.0
    entry = tables.entries[router, place]
    port, episode, reward = entry[PORT], entry[EPISODE], 0.0
    if episode != NONE:
        reward = reward_of(rules, entry[DISTANCE], max(stamp - entry[TIME], 1))
        close_episode(tables, tables.agents[router], episode)
        tables.counts[_REWARDS] += 1
    remove_entry(tables, router, place)
    if port == NONE:
        tables.counts[_HOME] += 1
        return HOME, port, episode, reward
    tables.counts[_SENT] += 1
    tables.waiting[router] += 1
    return FORWARD, port, episode, reward


@compiled
def leave_queue(tables: Tables, router: int) -> None:
    """Free the place of an acknowledge that leaves for its next hop."""
    tables.waiting[router] -= 1


@compiled
def take_own(tables: Tables, rules: RoutingRules, router: int) -> bool:
    """Take a place for the acknowledge that `headers.deliver` has counted; False: none is free, and it is not made."""
    if tables.own[router] >= rules.own_depth:
        tables.counts[_MADE] -= 1
        tables.counts[_SENT] -= 1
        tables.counts[_OWN_FULL] += 1
        return False
    tables.own[router] += 1
    return True


@compiled
def leave_own(tables: Tables, router: int) -> None:
    """Free the place that `take_own` has taken."""
    tables.own[router] -= 1

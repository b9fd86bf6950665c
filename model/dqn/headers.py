"""Algorithm 2: what happens to the header of a regular packet at a router (docs/definitions/dqn.md#headers).

The caller asks in this order: `passes_by` (must the packet take DOR?), else `enter`; then observation,
`learning.decide` and `start_episode`; when the decision is over `accepts`. Times are the network's; entries hold the
router's own.
"""

from typing import Any

from hopforge.model.dqn.dense import compiled
from hopforge.model.dqn.rules import RoutingRules
from hopforge.model.dqn.tables import (
    COUNTERS,
    EPISODE,
    NONE,
    TIME,
    Tables,
    add_entry,
    close_episode,
    find_entry,
    open_episode,
)

__all__ = ["accepts", "deliver", "enter", "passes_by", "start_episode", "take_escape", "wants_acknowledge"]

_NUMBER = {name: number for number, name in enumerate(COUNTERS)}
_DECISIONS, _REJECTED, _ESCAPED = _NUMBER["decisions"], _NUMBER["rejected"], _NUMBER["escaped_waiting"]
_NO_REQACK, _TABLE_FULL, _OVERRUN = _NUMBER["no_reqack"], _NUMBER["table_full"], _NUMBER["overrun"]
_HOP_LIMIT, _DELIVERED, _MADE, _SENT = (_NUMBER[name] for name in ("hop_limit", "delivered", "acks_made", "acks_sent"))


@compiled
def wants_acknowledge(injected: Any, host: int, ratio: int) -> bool:
    """Count a packet of a host; return whether it asks for an acknowledge: every `ratio`-th does."""
    injected[host] += 1
    return injected[host] % ratio == 0


@compiled
def deliver(tables: Tables, req_ack: bool, port: int) -> bool:
    """Count a packet at its destination; return whether an acknowledge leaves through its input port."""
    tables.counts[_DELIVERED] += 1
    made = req_ack and port != NONE
    if made:
        tables.counts[_MADE] += 1
        tables.counts[_SENT] += 1
    return made


@compiled
def enter(
    tables: Tables, router: int, packet: int, now: int, way: int, req_ack: bool, port: int
) -> None:  # fmt: skip
    """Enter a packet with ReqAck, without an episode, if the table has room (arguments as for `passes_by`)."""
    if not req_ack:
        return
    if tables.fill[router] < tables.entries.shape[1]:
        add_entry(tables, router, packet, now, way, NONE, port)
    else:
        tables.counts[_TABLE_FULL] += 1


@compiled
def passes_by(
    tables: Tables, rules: RoutingRules, router: int, packet: int, now: int, way: int, hops: int, pdor: bool,
    req_ack: bool, port: int,
) -> bool:  # fmt: skip
    """Return whether a packet takes DOR without the agent: it is flagged, or has gone too far.

    Parameters
    ----------
    tables, rules
        State and settings.
    router, packet, now
        Where, which and when.
    way : int
        Least hops to the destination.
    hops : int
        Links travelled so far.
    pdor, req_ack : bool
        Flags of the packet.
    port : int
        Where it came in; `NONE`: from the host.
    """
    if not pdor and hops <= rules.max_hops:
        return False
    if not pdor:
        tables.counts[_HOP_LIMIT] += 1
    enter(tables, router, packet, now, way, req_ack, port)
    return True


@compiled
def start_episode(
    tables: Tables, router: int, packet: int, came: int, req_ack: bool, observation: Any, action: int
) -> int:  # fmt: skip
    """Start the episode of a decision about a packet that `enter` has been called for; return its place or `NONE`.

    Parameters
    ----------
    tables, router, packet, req_ack
        As for `passes_by`.
    came : int
        When its header came here.
    observation : float[input]
        What the agent saw.
    action : int
        What it proposes.
    """
    tables.counts[_DECISIONS] += 1
    agent = tables.agents[router]
    if not req_ack:
        tables.counts[_NO_REQACK] += 1
        return NONE
    entry = find_entry(tables, router, packet)
    if entry == NONE or tables.entries[router, entry, TIME] != came + tables.skew[router]:
        return NONE  # there was no room for it, or it is gone by age
    if tables.active[agent] >= tables.episode_numbers.shape[1]:
        tables.counts[_OVERRUN] += 1
        return NONE
    episode = open_episode(tables, agent, action)
    for j in range(len(observation)):
        tables.episode_observations[agent, episode, j] = observation[j]
    tables.entries[router, entry, EPISODE] = episode
    return int(episode)


@compiled
def accepts(
    tables: Tables, rules: RoutingRules, router: int, packet: int, episode: int, free: int, flits: int, busy: bool
) -> bool:  # fmt: skip
    """Return whether the proposal about a packet is accepted (else it takes DOR for good).

    Parameters
    ----------
    tables, rules, router, packet
        As for `passes_by`.
    episode : int
        Of the decision, or `NONE`.
    free, flits : int
        Free flits of the buffer behind the proposed channel, and flits of the packet, header and footer included.
    busy : bool
        Whether the channel is busy.
    """
    if free >= flits or (rules.busy_too and not busy):
        return True
    tables.counts[_REJECTED] += 1
    if episode != NONE and not rules.reward_rejected:
        entry = find_entry(tables, router, packet)
        if entry != NONE and tables.entries[router, entry, EPISODE] == episode:  # else it has ended by age
            close_episode(tables, tables.agents[router], episode)
            tables.entries[router, entry, EPISODE] = NONE
    return False


@compiled
def take_escape(tables: Tables) -> None:
    """Count an accepted packet that took DOR while it waited; the caller flags it."""
    tables.counts[_ESCAPED] += 1

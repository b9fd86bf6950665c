"""Algorithm 2: what happens to the header of a regular packet at a router (docs/definitions/dqn.md#headers).

The caller asks in this order: `passes_by` (must the packet take DOR?), else observation and `learning.decide`, then
`propose`. Times are the network's; entries hold the router's own.
"""

from typing import Any

from hopforge.model.dqn.dense import compiled
from hopforge.model.dqn.rules import RoutingRules
from hopforge.model.dqn.tables import COUNTERS, NONE, Tables, add_entry, close_episode, open_episode

__all__ = ["deliver", "passes_by", "propose", "take_escape", "wants_acknowledge"]

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
    if req_ack:
        if tables.fill[router] < tables.entries.shape[1]:
            add_entry(tables, router, packet, now, way, NONE, port)
        else:
            tables.counts[_TABLE_FULL] += 1
    return True


@compiled
def propose(
    tables: Tables, rules: RoutingRules, router: int, packet: int, now: int, way: int, req_ack: bool, port: int,
    observation: Any, action: int, free: int, flits: int, busy: bool,
) -> bool:  # fmt: skip
    """Enter the agent's proposal; return whether it is accepted (else the packet takes DOR for good).

    Parameters
    ----------
    tables, rules, router, packet, now, way, req_ack, port
        As `passes_by`.
    observation : float[input]
        What the agent saw.
    action : int
        What it proposed.
    free, flits : int
        Free flits of the buffer behind that channel, and flits of the packet, header and footer included.
    busy : bool
        Whether the channel is busy.
    """
    tables.counts[_DECISIONS] += 1
    agent, episode = tables.agents[router], NONE
    room = tables.fill[router] < tables.entries.shape[1]
    accepted = free >= flits or (rules.busy_too and not busy)
    if not req_ack:
        tables.counts[_NO_REQACK] += 1
    elif not room:
        tables.counts[_TABLE_FULL] += 1
    elif tables.active[agent] >= tables.episode_numbers.shape[1]:
        tables.counts[_OVERRUN] += 1
    else:
        episode = open_episode(tables, agent, action)
        for j in range(len(observation)):
            tables.episode_observations[agent, episode, j] = observation[j]
    if not accepted:
        tables.counts[_REJECTED] += 1
        if episode != NONE and not rules.reward_rejected:
            close_episode(tables, agent, episode)
            episode = NONE
    if req_ack and room:
        add_entry(tables, router, packet, now, way, episode, port)
    return accepted


@compiled
def take_escape(tables: Tables) -> None:
    """Count an accepted packet that took DOR while it waited; the caller flags it."""
    tables.counts[_ESCAPED] += 1

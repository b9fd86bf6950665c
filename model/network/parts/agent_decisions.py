"""Decisions of the agents of DQN routing: at once, or with a delay and a queue for each agent.

The definition is docs/definitions/dqn.md, Decisions and Decision delay. A decision that takes time begins and ends at
the end of a cycle (`pass_time`); until it ends its packet is `UNDECIDED`, and is not routed.
"""

from typing import Any

import numpy as np
from numba import carray, int32, int64

from hopforge.model.dqn.dense import part
from hopforge.model.dqn.forward import forward, greedy
from hopforge.model.dqn.headers import accepts, start_episode
from hopforge.model.dqn.int8_forward import int8_sums
from hopforge.model.dqn.learning import decide, end_decision, restart, store, take_action
from hopforge.model.dqn.tables import COUNTERS, EPISODE, NONE, TIME, close_episode, find_entry
from hopforge.model.kernel.compile import inlined
from hopforge.model.kernel.memory import floats, int32s, int64s, singles
from hopforge.model.network.core.kinds import IDLE, UNDECIDED
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import fifo_of, input_vc, packet_at
from hopforge.model.network.parts.agent_sight import (
    ACTION_BITS,
    PDOR,
    allowed_actions,
    is_busy,
    most_room,
    port_of,
    see,
)
from hopforge.model.network.parts.agent_state import (
    FILL,
    FIRST,
    FLIGHT_ACTION,
    FLIGHT_END,
    FLIGHT_EPISODE,
    FLIGHT_FIELDS,
    FLIGHT_PLACE,
    NEXT_BEGIN,
    QUEUE_FIELDS,
    agents_of,
    int8_of,
    record_of,
)
from hopforge.model.network.parts.number_order import LOW, sort
from hopforge.model.network.parts.trail_tables import packet_name, rules_of, tables_of, wants_acknowledge

__all__ = ["NOWHERE", "ask", "begin_decision", "finish_decision", "pass_time", "tell_last_router"]

#: no further decision about a packet
NOWHERE = -1
_NUMBER = {name: number for number, name in enumerate(COUNTERS)}
_QUEUE_FULL, _WAIT, _AGREED = _NUMBER["agent_queue_full"], _NUMBER["decision_wait"], _NUMBER["int8_agreed"]


@inlined
def router_before(net: Net, n: int) -> int:
    """Router from which packets come to input VC `n`; `NONE`: from a host."""
    output = int64(input_vc(net, n).credit_to)
    return output // net.vcs // net.ports if output < net.output_vcs else NONE


@part
def tell_last_router(
    net: Net, r: Any, agents: Any, tables: Any, n: int, packet: int, came: int, observation: Any, agent: int,
    allowed: int,
) -> None:  # fmt: skip
    """With bootstrap: the agent that sent a packet here, where its head came in cycle `came`, gets its sample.

    `agent`: of this router, or `NOWHERE`.
    """
    router = router_before(net, n)
    if r.later == 0 or router == NONE:
        return
    place = find_entry(tables, router, packet)
    if place == NONE or tables.entries[router, place, EPISODE] == NONE:
        return
    entry = tables.entries[router, place]
    episode, sender = entry[EPISODE], tables.agents[router]
    reward = -(came + tables.skew[router] - entry[TIME]) / r.unit
    action = tables.episode_actions[sender, episode]
    close_episode(tables, sender, episode)
    entry[EPISODE] = NONE
    store(agents, sender, tables.episode_observations[sender, episode], action, reward, observation, agent, allowed)


@part
def decide_in_whole_numbers(r: Any, agents: Any, tables: Any, agent: int, observation: Any, allowed: int) -> int:
    """Return the action of an agent whose network is int8; what the float network says is counted."""
    best = greedy(int8_sums(int8_of(r), agent, agents.widths, observation), allowed)
    q = forward(agents.weights[agent], agents.widths, observation.reshape((1, r.inputs)), agents.work)[0]
    as_float = greedy(q, allowed)
    tables.counts[_AGREED] += best == as_float
    floats(r.int8_lost)[0] += np.float64(q[as_float]) - np.float64(q[best])
    return take_action(agents, agent, q, best, allowed)


@part
def follow_hints(net: Net, r: Any, agents: Any) -> None:
    """Let all agents begin anew if the application has said so until now."""
    hint, hints = int64s(r.hint), int64s(r.hints)
    while net.cycle >= hints[hint[0]]:
        hint[0] += 1
        for agent in range(r.count):
            restart(agents, agent)


@part
def begin_decision(net: Net, r: Any, agents: Any, tables: Any, n: int, p: int, came: int) -> Any:
    """Let the agent decide about packet `p`, whose head came in cycle `came` to input VC `n`: action, episode."""
    packet, router = packet_at(net, p), int64(input_vc(net, n).router)
    observation, name = carray(singles(r.observation), (r.inputs,)), packet_name(packet)
    see(net, r, n, p, n if r.decision_cycles == 0 else -1, observation)
    allowed, agent = allowed_actions(net, r, router, p), tables.agents[router]
    follow_hints(net, r, agents)
    if r.int8 != 0:
        action = decide_in_whole_numbers(r, agents, tables, agent, observation, allowed)
    else:
        action = decide(agents, agent, observation.reshape((1, r.inputs)), allowed)
    tell_last_router(net, r, agents, tables, n, name, came, observation, agent, allowed)
    end_decision(agents, agent)
    return action, start_episode(tables, router, name, came, wants_acknowledge(net, packet), observation, action)


@part
def finish_decision(net: Net, r: Any, tables: Any, n: int, p: int, action: int, episode: int) -> None:
    """Give packet `p` in input VC `n` the port that was proposed, or dimension order."""
    packet, router = packet_at(net, p), int64(input_vc(net, n).router)
    out = router * net.ports + r.first_port + port_of(r, action)
    room, flits = most_room(net, r, out), int64(packet.length)
    accepted = accepts(
        tables, rules_of(net), router, packet_name(packet), episode, room, flits, is_busy(net, r, out)
    )  # fmt: skip
    packet.user0 = int32((action + 1) << ACTION_BITS) if accepted else int32(PDOR)


@part
def ask(net: Net, r: Any, n: int, p: int) -> None:
    """Note that packet `p`, whose head came to input VC `n` in this cycle, waits for a decision."""
    packet_at(net, p).user0 = int32(UNDECIDED)
    int64s(r.asked)[int64s(r.asked_count)[0]] = (n << 32) | p
    int64s(r.asked_count)[0] += 1
    net.undecided += 1


@part
def go_on(net: Net, n: int, p: int) -> None:
    """Packet `p` is decided: it is routed in the next cycle if it is the first in input VC `n`."""
    net.undecided -= 1
    vc = input_vc(net, n)
    if vc.state != IDLE or int64(fifo_of(net, n)[vc.head]) >> 2 != p:
        return
    for k in range(net.heads_count):
        if int32s(net.heads_next)[k] == n:  # the packet before it has left in this cycle
            return
    int32s(net.heads_next)[net.heads_count] = n
    net.heads_count += 1


@part
def take_off(net: Net, r: Any, agents: Any, tables: Any, agent: int, asked: int, came: int, now: int) -> None:
    """Begin a decision at the end of cycle `now`."""
    action, episode = begin_decision(net, r, agents, tables, asked >> 32, asked & LOW, came)
    tables.counts[_WAIT] += now - came
    int64s(r.waiting)[QUEUE_FIELDS * agent + NEXT_BEGIN] = now + r.decision_interval
    place = int64s(r.flight_ends)[0] + int64s(r.flight_ends)[1]
    place -= r.flights if place >= r.flights else 0
    int64s(r.flight_ends)[1] += 1
    flight = FLIGHT_FIELDS * place
    int64s(r.flight)[flight + FLIGHT_PLACE] = asked
    int64s(r.flight)[flight + FLIGHT_END] = now + r.decision_cycles - 1
    int64s(r.flight)[flight + FLIGHT_ACTION] = action
    int64s(r.flight)[flight + FLIGHT_EPISODE] = episode


@part
def land(net: Net, r: Any, tables: Any, now: int) -> None:
    """End the decisions that end with cycle `now`: all take as long, so those that began first."""
    ends = int64s(r.flight_ends)
    while ends[1] > 0 and int64s(r.flight)[FLIGHT_FIELDS * ends[0] + FLIGHT_END] <= now:
        flight = FLIGHT_FIELDS * ends[0]
        ends[0] = ends[0] + 1 if ends[0] + 1 < r.flights else 0
        ends[1] -= 1
        place = int64s(r.flight)[flight + FLIGHT_PLACE]
        n, p = place >> 32, place & LOW
        finish_decision(net, r, tables, n, p, int64s(r.flight)[flight + FLIGHT_ACTION],
                        int64s(r.flight)[flight + FLIGHT_EPISODE])  # fmt: skip
        go_on(net, n, p)


@part
def queue_up(net: Net, r: Any, agents: Any, tables: Any, asked: int, now: int) -> None:
    """Begin the decision that a packet asked for in this cycle, or let it wait, or send it by dimension order."""
    n, p = asked >> 32, asked & LOW
    agent = int64(tables.agents[input_vc(net, n).router])
    waiting = QUEUE_FIELDS * agent
    fill = int64s(r.waiting)[waiting + FILL]
    if fill == 0 and int64s(r.waiting)[waiting + NEXT_BEGIN] <= now:
        take_off(net, r, agents, tables, agent, asked, now, now)
        return
    if fill < r.decision_queue:
        place = int64s(r.waiting)[waiting + FIRST] + fill
        place -= r.decision_queue if place >= r.decision_queue else 0
        int64s(r.queue)[2 * (agent * r.decision_queue + place)] = asked
        int64s(r.queue)[2 * (agent * r.decision_queue + place) + 1] = now
        int64s(r.waiting)[waiting + FILL] = fill + 1
        return
    tables.counts[_QUEUE_FULL] += 1
    packet = packet_at(net, p)
    packet.user0 = int32(PDOR)
    observation = carray(singles(r.observation), (r.inputs,))
    tell_last_router(net, r, agents, tables, n, packet_name(packet), now, observation, int64(NOWHERE), int64(0))
    go_on(net, n, p)


@part
def pass_time(net: Net, now: int) -> None:
    """Begin and end decisions at the end of cycle `now`."""
    r, tables = record_of(net), tables_of(net)
    agents, waiting = agents_of(r), int64s(r.waiting)
    for agent in range(r.count):
        place = QUEUE_FIELDS * agent
        if waiting[place + FILL] == 0 or waiting[place + NEXT_BEGIN] > now:
            continue
        first = waiting[place + FIRST]
        waiting[place + FIRST] = first + 1 if first + 1 < r.decision_queue else 0
        waiting[place + FILL] -= 1
        asked = 2 * (agent * r.decision_queue + first)
        take_off(net, r, agents, tables, agent, int64s(r.queue)[asked], int64s(r.queue)[asked + 1], now)
    asked_now = int64s(r.asked)
    sort(asked_now, int64s(r.asked_count)[0])
    for k in range(int64s(r.asked_count)[0]):
        queue_up(net, r, agents, tables, asked_now[k], now)
    int64s(r.asked_count)[0] = 0
    land(net, r, tables, now)
    if net.undecided != 0:
        net.last_move = now  # a decision ends: this is no deadlock

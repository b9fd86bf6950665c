"""Hosts with ranks of a program in the packet networks, jitted: their queues of messages, and what ranks do.

Ranks, messages and their order are those of the networks of flits (`model.network.parts.programs`); a host offers
packets here, of which a router may send one back.
"""

from numba import int64

from hopforge.model.kernel.compile import inlined, inner
from hopforge.model.kernel.heap import pop_entry, push_entry
from hopforge.model.kernel.memory import int8s, int32s, int64s
from hopforge.model.network.core.kinds import ANSWER, DATA, RANK_BITS
from hopforge.model.network.core.records import host_at, message_at
from hopforge.model.network.parts.programs import message_came, resume, run_rank, take_timer
from hopforge.sim.packet.events import NEVER
from hopforge.sim.packet.records import Net


@inlined
def target_of(net: Net, m: int) -> int:
    """Node to which the packets of message `m` go: its target; of the answer to a request, its source."""
    message = message_at(net, m)
    return int64(message.source) if message.stage == ANSWER else int64(message.target)


@inner
def expect_message(net: Net, m: int, end: int) -> None:
    """Note that one more packet of message `m` will be at its sink at cycle `end`, later than all before it."""
    message = message_at(net, m)
    message.left -= 1
    if message.left == 0:
        push_entry(int64s(net.coming_message), net.coming, (end << net.message_bits) | m)
        net.coming += 1


@inlined
def next_step(net: Net) -> int:
    """Cycle in which the next message has arrived, or a rank has computed."""
    now = int64s(net.coming_message)[0] >> net.message_bits if net.coming > 0 else NEVER
    return min(now, int64s(net.timer)[0] >> RANK_BITS) if net.timers > 0 else now


@inlined
def wake_host(net: Net, h: int) -> None:
    """Note that a host may be able to send in this cycle."""
    if not int8s(net.due)[h]:
        int8s(net.due)[h] = 1
        int64s(net.due_host)[net.due_hosts] = h
        net.due_hosts += 1


@inner
def put_back(net: Net, h: int, m: int) -> None:
    """Let host `h` offer a packet of message `m` again, which its router has sent back; it was not the last in turn."""
    message = message_at(net, m)
    wake_host(net, h)
    if message.stage == DATA:
        message.to_send += 1
        if message.to_send > 1:
            return  # it is in the queue
    host = host_at(net, h)
    message.next = host.queue_first
    if host.queue_first < 0:
        host.queue_last = m
    host.queue_first = m
    net.messages_queued += 1


@inner
def packet_left(net: Net, m: int) -> None:
    """Note that a packet of message `m` has left its host for good in this cycle."""
    if message_at(net, m).stage != DATA:
        return
    int32s(net.untaken)[m] -= 1
    if int32s(net.untaken)[m] == 0:
        int64s(net.departure)[net.departures] = m
        net.departures += 1


@inner
def step_ranks(net: Net, now: int) -> None:
    """Let ranks react to the messages that have arrived by cycle `now`, and to those that have left their hosts."""
    queued = net.messages_queued
    heap = int64s(net.coming_message)
    while net.coming > 0 and heap[0] >> net.message_bits == now:
        entry = pop_entry(heap, net.coming)
        net.coming -= 1
        message_came(net, entry & ((int64(1) << net.message_bits) - 1), now)
    for k in range(net.departures):
        m = int64s(net.departure)[k]
        message = message_at(net, m)
        message.departed = 1
        resume(net, message.sender, m, now)
    while net.timers > 0 and int64s(net.timer)[0] >> RANK_BITS <= now:
        run_rank(net, take_timer(net), now)
    if net.messages_queued > queued:
        for h in range(net.nodes):
            if int64s(net.host_wake)[h] == now:
                wake_host(net, h)

"""Ranks of a program on the hosts: operations in order, messages that they wait for, timers of computing.

The semantics stand in docs/guides/programs.md. Ranks act in every cycle, after its flits have arrived
and before hosts send.
"""


from hopforge.model.kernel.compile import c_kernel, inner
from hopforge.model.kernel.heap import pop_entry, push_entry
from hopforge.model.kernel.memory import int8s, int32s, int64s
from hopforge.model.network.core.hooks import ARRIVED, CREATED, CYCLE, DEPARTED, HOOK_SIGNATURE
from hopforge.model.network.core.kinds import (
    ANSWER,
    DATA,
    FINISHED,
    MATCHED,
    RANK_BITS,
    RENDEZVOUS,
    REQUEST,
    REQUESTED,
    STUCK,
)
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import host_at, message_at, packet_at, rank_at
from hopforge.model.workload.operations import COMPUTE, JOIN, POST, RECEIVE, SEND, WAIT_SENT


@inner
def start_timer(net: Net, when: int, rank: int) -> None:
    """Let `rank` go on in cycle `when` (earliest first; ranks of one cycle in increasing number)."""
    push_entry(int64s(net.timer), net.timers, (when << RANK_BITS) | rank)
    net.timers += 1


@inner
def take_timer(net: Net) -> int:
    """Remove the earliest timer; returns its rank."""
    entry = pop_entry(int64s(net.timer), net.timers)
    net.timers -= 1
    return entry & ((1 << RANK_BITS) - 1)


@inner
def queue_message(net: Net, h: int, m: int, stage: int, now: int) -> None:
    """Append message `m` (its data, its request or its answer) to the source queue of host `h`."""
    host = host_at(net, h)
    message = message_at(net, m)
    message.stage = stage
    message.queued = now
    message.next = -1
    message.left = message.to_send if stage == DATA else 1
    if host.queue_last >= 0:
        message_at(net, host.queue_last).next = m
    else:
        host.queue_first = m
        host.next_time = now
        if host.packet < 0:
            int64s(net.host_wake)[h] = now
    host.queue_last = m
    net.messages_queued += 1


@inner
def next_packet(net: Net, p: int, h: int) -> None:
    """Fill in destination, length and creation of packet `p`, the next one of the first message in the queue of `h`."""
    host = host_at(net, h)
    packet = packet_at(net, p)
    m = host.queue_first
    message = message_at(net, m)
    int32s(net.packet_message)[p] = m
    packet.created = message.queued
    packet.dst = message.target
    packet.length = 1
    if message.stage == DATA:
        packet.length = net.full_flits if message.to_send > 1 else message.last_flits
    elif message.stage == ANSWER:
        packet.dst = message.source
    leave_queue(net, h, m)


@inner
def leave_queue(net: Net, h: int, m: int) -> None:
    """Take the next packet of message `m` out of the queue of host `h`, whose first one it is."""
    host = host_at(net, h)
    message = message_at(net, m)
    if message.stage == DATA:
        message.to_send -= 1
        if message.to_send > 0:
            if net.interleaved != 0 and message.next >= 0:
                host.queue_first = message.next
                message_at(net, host.queue_last).next = m
                message.next = -1
                host.queue_last = m
            return
    host.queue_first = message.next
    net.messages_queued -= 1
    if host.queue_first < 0:
        host.queue_last = -1


@inner
def packet_sent(net: Net, p: int) -> None:
    """Note that the tail of packet `p` leaves its host in this cycle; −1 − message: a host sends it again."""
    m = int32s(net.packet_message)[p]
    if m < 0:
        int32s(net.packet_message)[p] = -1 - m
        return
    message = message_at(net, m)
    if message.stage == DATA and message.to_send == 0:
        int32s(net.departed)[net.departed_count] = m
        net.departed_count += 1


@inner
def packet_came(net: Net, p: int) -> None:
    """Note that packet `p` has arrived in this cycle."""
    m = int32s(net.packet_message)[p]
    message = message_at(net, m)
    message.left -= 1
    if message.left == 0:
        int32s(net.arrived)[net.arrived_count] = m
        net.arrived_count += 1


@inner
def resume(net: Net, rank: int, m: int, now: int) -> None:
    """Let `rank` go on in this cycle if it waits for message `m`."""
    state = rank_at(net, rank)
    if state.waits == m:
        state.waits = -1
        start_timer(net, now, rank)


@inner
def hand_over(net: Net, m: int, now: int) -> None:
    """Send message `m`: at once to a rank of the same host, else through the host's queue."""
    message = message_at(net, m)
    message.started = now
    if message.source == message.target:
        message.departed = 1
        message.arrived = now
        resume(net, message.receiver, m, now)
    elif message.start == RENDEZVOUS:
        queue_message(net, message.source, m, REQUEST, now)
    elif message.start == MATCHED and message.posted == 0:
        message.stage = REQUESTED
    else:
        queue_message(net, message.source, m, DATA, now)


@inner
def message_came(net: Net, m: int, now: int) -> None:
    """Note that the last packet of message `m` (or its request, or its answer) has arrived."""
    message = message_at(net, m)
    if message.stage == REQUEST:
        message.stage = REQUESTED
        if message.posted != 0:
            queue_message(net, message.target, m, ANSWER, now)
    elif message.stage == ANSWER:
        queue_message(net, message.source, m, DATA, now)
    else:
        message.arrived = now
        net.messages_arrived += 1
        resume(net, message.receiver, m, now)


@inner
def join_units(net: Net, rank: int, part: int, now: int) -> bool:
    """Take part in a collective of units; returns whether its result is there (`program_arrays` lays records out)."""
    state, message = rank_at(net, rank), message_at(net, part)
    if message.arrived >= 0 and message.arrived <= now:
        return True
    state.since = now
    if message.arrived >= 0:
        start_timer(net, message.arrived, rank)
    message.started = now
    if message.arrived < 0 and message.posted != 0:
        call = message_at(net, message.next)
        call.left -= 1
        if call.left == 0:
            call.next = net.calls_ready
            net.calls_ready = message.next
    return False


@inner
def run_rank(net: Net, rank: int, now: int) -> None:
    """Execute operations of `rank` until it waits, computes or is at its end."""
    state = rank_at(net, rank)
    if state.since >= 0:
        state.waited += now - state.since
        state.since = -1
    while state.at < state.last:
        kind = int8s(net.program_kind)[state.at]
        operand = int64s(net.program_operand)[state.at]
        if kind == COMPUTE:
            state.at += 1
            if operand > 0:
                state.computed += operand
                start_timer(net, now + operand, rank)
                return
            continue
        if kind == JOIN:
            if not join_units(net, rank, operand, now):
                return
            state.at += 1
            continue
        message = message_at(net, operand)
        if kind == SEND:
            hand_over(net, operand, now)
        elif kind == POST:
            message.posted = 1
            if message.stage == REQUESTED and message.start == MATCHED:
                queue_message(net, message.source, operand, DATA, now)
            elif message.stage == REQUESTED:
                queue_message(net, message.target, operand, ANSWER, now)
        elif (kind == WAIT_SENT and message.departed == 0) or (kind == RECEIVE and message.arrived < 0):
            state.waits = operand
            state.since = now
            return
        state.at += 1
    state.finished = now
    net.ranks_running -= 1


@inner
def step_ranks(net: Net, now: int) -> int:
    """Let ranks react to what arrived by cycle `now`, and to messages that have left their hosts.

    Returns
    -------
    int
        `now`; a later cycle if nothing can happen before it; minus FINISHED: all ranks are at their end and nothing is
        under way; minus STUCK: ranks wait and nothing is under way.
    """
    for k in range(net.arrived_count):
        message_came(net, int32s(net.arrived)[k], now)
    net.arrived_count = 0
    for k in range(net.departed_count):
        m = int32s(net.departed)[k]
        message = message_at(net, m)
        message.departed = 1
        resume(net, message.sender, m, now)
    net.departed_count = 0
    heap = int64s(net.timer)
    while net.timers > 0 and heap[0] >> RANK_BITS <= now:
        run_rank(net, take_timer(net), now)
    if net.messages_queued > 0 or net.packets_created > net.packets_ejected + net.packets_dropped:
        return now
    if net.acks_alive > 0 or net.calls_ready > 0:
        return now
    if net.timers == 0:
        return -FINISHED if net.ranks_running == 0 else -STUCK
    # credits may be on their way for a turn of the wheel after the last flit
    return heap[0] >> RANK_BITS if now - net.last_move > net.wheel_mask else now


@c_kernel(HOOK_SIGNATURE)
def run_ranks(net: Net, event: int, a: int, b: int) -> int:
    """Run ranks: the hook `messages` of programs."""
    if event == CYCLE:
        return step_ranks(net, a)
    if event == CREATED:
        next_packet(net, a, b)
    elif event == DEPARTED:
        packet_sent(net, a)
    elif event == ARRIVED:
        packet_came(net, a)
    return 0  # a message that lost a packet never arrives

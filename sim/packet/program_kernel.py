"""The packet networks with hosts that run a program, from event to event: their routers, between steps of the ranks."""

from numba import int64

from hopforge.model.kernel.compile import entry, inner
from hopforge.model.kernel.memory import int8s, int64s
from hopforge.model.network.core.records import host_at
from hopforge.model.network.parts.programs import leave_queue
from hopforge.sim.packet import credit_kernel, kernel
from hopforge.sim.packet.events import NEVER, QUEUE_BITS, QUEUE_MASK, append, packet_and_queue, take, time_of
from hopforge.sim.packet.packets import new_packet, next_event, packet_at, stands_still
from hopforge.sim.packet.program_hosts import next_step, packet_left, step_ranks, target_of, wake_host
from hopforge.sim.packet.records import (
    DONE,
    EMPTY,
    HOST_CREDITS,
    HOST_FREES,
    LATE_ARRIVALS,
    NET_RECORD,
    OFFERS,
    SINKS,
    STUCK,
    VC_STRIDE,
    WAITING,
    Net,
    link_of,
    source_at,
)

_route, _route_with_credits = kernel.route, credit_kernel.route


@inner
def feed(net: Net, now: int) -> None:
    """Let the hosts offer a packet of their messages that may be able to."""
    for k in range(net.due_hosts):
        h = int64s(net.due_host)[k]
        int8s(net.due)[h] = 0
        m, source = int64(host_at(net, h).queue_first), source_at(net, h)
        if m < 0 or source.may_offer > now:
            continue
        leave_queue(net, h, m)
        free = now + net.host_send_cycles
        source.may_offer = NEVER if net.feed_waits else free
        append(net, OFFERS, now + net.offer_cycles, packet_and_queue(m, h))
        append(net, HOST_FREES, free, h)
    net.due_hosts = 0


@inner
def feed_with_credits(net: Net, now: int) -> None:
    """Let the hosts send a packet of their messages that may be able to, and whose queues have room."""
    for k in range(net.due_hosts):
        h = int64s(net.due_host)[k]
        int8s(net.due)[h] = 0
        m, source = int64(host_at(net, h).queue_first), source_at(net, h)
        q = link_of(net, h, net.host_port) * VC_STRIDE
        if m < 0 or source.may_offer > now or int8s(net.held)[q] >= net.queue_packets:
            continue
        t = target_of(net, m)
        leave_queue(net, h, m)
        int8s(net.held)[q] += 1
        p = new_packet(net, h, m, 0, t)
        packet_at(net, p).queue = q
        net.last_move = now
        source.may_offer = free = now + net.host_send_cycles
        append(net, OFFERS, now + net.offer_cycles, packet_and_queue(p, q))
        append(net, HOST_FREES, free, packet_and_queue(m, h))
    net.due_hosts = 0


@inner
def take_host_answers(net: Net, now: int) -> None:
    """Take what frees hosts: the end of a packet on their link, and answers for those that wait for them."""
    while time_of(net, HOST_FREES) == now:
        wake_host(net, take(net, HOST_FREES))
    while time_of(net, HOST_CREDITS) == now:
        h = take(net, HOST_CREDITS)
        source_at(net, h).may_offer = now
        wake_host(net, h)


@inner
def take_host_frees(net: Net, now: int) -> None:
    """Note which packets have left their hosts, with credits."""
    while time_of(net, HOST_FREES) == now:
        what = take(net, HOST_FREES)
        packet_left(net, what >> QUEUE_BITS)
        wake_host(net, what & QUEUE_MASK)


@inner
def _end_of(net: Net) -> int:
    """Why nothing will ever happen."""
    return WAITING if net.ranks_running > 0 else EMPTY


@entry(int64(int64, NET_RECORD))
def run(until: int, net: Net) -> int:
    """Go on until cycle `until` or until nothing is under way, with queues before the links.

    Parameters
    ----------
    until : int
        Cycle at which to come back.
    net : record
        State (`records.NET`), changed in place.

    Returns
    -------
    int
        DONE; EMPTY: all ranks are at their end; WAITING: some are not, and nothing is under way; STUCK: a standstill.
        If messages are watched, DONE also in the cycle after an arrival.
    """
    arrived = net.messages_arrived
    while True:
        now = min(next_event(net), time_of(net, HOST_FREES), time_of(net, HOST_CREDITS), next_step(net))
        if now == NEVER:
            return _end_of(net)
        net.now = min(now, until)
        if now >= until:
            return DONE
        if stands_still(net, now):
            return STUCK
        net.departures = 0
        _route(net, now)
        take_host_answers(net, now)
        step_ranks(net, now)
        feed(net, now)
        if net.watched != 0 and net.messages_arrived > arrived:
            net.now = now + 1
            return DONE


@entry(int64(int64, NET_RECORD))
def run_with_credits(until: int, net: Net) -> int:
    """As `run`, with queues at the end of the links."""
    arrived = net.messages_arrived
    credit_kernel.look_again(net)
    while True:
        now = min(next_event(net), time_of(net, HOST_FREES), time_of(net, HOST_CREDITS), next_step(net))
        now = min(now, time_of(net, SINKS), time_of(net, LATE_ARRIVALS))
        if now == NEVER:
            return _end_of(net)
        net.now = min(now, until)
        if now >= until:
            return DONE
        if stands_still(net, now):
            return STUCK
        net.departures = 0
        _route_with_credits(net, now)
        take_host_frees(net, now)
        step_ranks(net, now)
        feed_with_credits(net, now)
        if net.watched != 0 and net.messages_arrived > arrived:
            net.now = now + 1
            return DONE

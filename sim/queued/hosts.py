"""Hosts of input-output-queued routers: a calendar of those that look for a packet, and their NICs."""

from collections.abc import Callable
from typing import Any

from numba import int64, types

from hopforge.model.kernel.bits import bit_of
from hopforge.model.kernel.compile import entry, inlined
from hopforge.model.kernel.memory import int32s, int64s, words
from hopforge.model.kernel.rng import next_below
from hopforge.model.network.core.event_log import call_log
from hopforge.model.network.core.hooks import DEPARTED, call_hook
from hopforge.model.network.core.kinds import HEAD, PROGRAM, SENT, TAIL
from hopforge.model.network.core.net_record import NET_RECORD, PATTERN_SIGNATURE, Net
from hopforge.model.network.core.records import host_at, packet_at
from hopforge.model.network.core.sources import create_packet
from hopforge.sim.queued.delay_lines import put
from hopforge.sim.queued.records import (
    ELAPSED_BITS,
    INTERVAL,
    INTERVAL_BITS,
    QUEUES_RECORD,
    Part,
    Queues,
    line_at,
    nic_at,
)

#: a cycle after all others
NEVER = 1 << 62


@inlined
def wake_at(net: Net, queues: Queues, part: Part, h: int, when: int, now: int) -> None:
    """Let host `h` look for a packet in cycle `when`.

    In the calendar a slot comes round more often than a far time, which is then entered again; ranks of a program, who
    skip cycles and have no times to tell, use `host_wake`.
    """
    if net.source_kind == PROGRAM:
        int64s(net.host_wake)[h] = when
        return
    slot = min(when, now + queues.calendar_mask) & queues.calendar_mask
    nic_at(queues, h).next = int32s(part.calendar)[slot]
    int32s(part.calendar)[slot] = h


@inlined
def wake_hosts(net: Net, queues: Queues, part: Part, now: int) -> None:
    """Find the hosts that look for a packet in this cycle."""
    h: Any
    if net.source_kind == PROGRAM:
        for k in range(part.hosts):
            h = part.first_host + k
            if int64s(net.host_wake)[h] <= now:
                int64s(net.host_wake)[h] = NEVER
                words(part.due_hosts)[k >> 6] |= bit_of(k)
        return
    slot = now & queues.calendar_mask
    h = int64(int32s(part.calendar)[slot])
    if h < 0:
        return
    int32s(part.calendar)[slot] = -1
    while h >= 0:
        k = h - part.first_host
        words(part.due_hosts)[k >> 6] |= bit_of(k)
        h = int64(nic_at(queues, h).next)


@inlined
def next_creation(net: Net, queues: Queues, h: int) -> int:
    """When the next packet of host `h` comes into the queue of its NIC."""
    if net.source_kind != INTERVAL:
        return int64(host_at(net, h).next_time)
    if host_at(net, h).stopped != 0:
        return NEVER
    nic = nic_at(queues, h)
    return max(nic.due >> INTERVAL_BITS, int64s(queues.departures)[h * queues.nic_depth + nic.place])


@inlined
def take_up(net: Net, queues: Queues, pattern: Callable[..., int], h: int, created: int, now: int) -> int:
    """Take the packet of host `h` that came in cycle `created` out of the queue of its NIC in cycle `now`."""
    nic = nic_at(queues, h)
    host = host_at(net, h)
    if net.source_kind == INTERVAL:
        host.next_time = created
    create_packet(net, pattern, h)
    if net.source_kind == INTERVAL:
        int64s(queues.departures)[h * queues.nic_depth + nic.place] = now
        nic.place = nic.place + 1 if nic.place + 1 < queues.nic_depth else 0
        if nic.round_left == 0:
            nic.round_left = queues.round_low
            if queues.round_span > 1:
                nic.round_left = nic.round_left + next_below(words(net.host_rng), h, queues.round_span)
        nic.round_left = nic.round_left - 1
        nic.due = max(nic.due, created << INTERVAL_BITS) + (queues.interval if nic.round_left == 0 else 0)
    p = int64(host.packet)
    host.packet = -1
    return p


@entry(int64(types.FunctionType(PATTERN_SIGNATURE), NET_RECORD, QUEUES_RECORD, int64, int64))
def take_due(pattern: Callable[..., int], net: Net, queues: Queues, h: int, now: int) -> int:
    """Take up the next packet of host `h` between two cycles, if it came before cycle `now`; -1: it did not."""
    created = next_creation(net, queues, h)
    return -1 if created >= now else take_up(net, queues, pattern, h, created, now)


@inlined
def inject(net: Net, queues: Queues, part: Part, pattern: Callable[..., int], h: int, now: int) -> None:
    """Send a packet of host `h`, if there is one and it can be sent in this cycle."""
    nic = nic_at(queues, h)
    host = host_at(net, h)
    created = next_creation(net, queues, h)
    when = max(created, int64(nic.busy_until))
    if when > now:
        wake_at(net, queues, part, h, when, now)
        return
    if nic.credits == 0:
        nic.waiting = 1
        return
    p = take_up(net, queues, pattern, h, created, now)
    if net.messages != 0:
        call_hook(net.messages, net, DEPARTED, p, now)
    packet = packet_at(net, p)
    packet.sent = now
    packet.part = now << ELAPSED_BITS
    if net.log_event != 0:
        call_log(net.log_event, net, SENT, now, h, int64(nic.target - nic.output_vc), (p << 2) | HEAD | TAIL)
    nic.credits = nic.credits - 1
    nic.busy_until = now + queues.packet_cycles
    host.flits_sent += 1
    net.flits_injected += 1
    net.last_move = max(net.last_move, now)
    put(line_at(queues.packet_line, nic.packet_line), now, (int64(nic.target) << 32) | p)
    wake_at(net, queues, part, h, max(int64(nic.busy_until), next_creation(net, queues, h)), now)

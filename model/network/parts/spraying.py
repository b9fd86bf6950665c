"""Entropy of packets at their hosts, reorder buffers at their destinations (docs/definitions/spraying.md).

The hook `messages` of such networks: it numbers packets, holds those that come before their turn, and tells the hook
that follows messages (`parts.messages`, `parts.programs`) of each packet when it is delivered.
"""

from typing import Any

from numba import int64, types

from hopforge.model.kernel.compile import c_kernel, entry, inlined, inner
from hopforge.model.kernel.histogram import HISTOGRAM_BINS, histogram_bin
from hopforge.model.kernel.memory import int32s, int64s
from hopforge.model.network.core.hooks import ARRIVED, CREATED, DEPARTED, HOOK_SIGNATURE, LOST, call_hook
from hopforge.model.network.core.kinds import PROGRAM
from hopforge.model.network.core.net_record import NET_RECORD, Net
from hopforge.model.network.core.packet_ends import free_record
from hopforge.model.network.core.records import host_at, packet_at
from hopforge.model.network.core.spray_records import (
    DELAYS,
    EXTENTS,
    FLOW_BUFFERS,
    HOST_BUFFERS,
    IN_ORDER,
    NO_ENTROPY,
    NOT_WATCHED,
    PER_FLOWLET,
    PER_MESSAGE,
    PER_PACKET,
    flow_at,
    reorder_buffer_at,
    spray_of,
    sprayed_at,
)
from hopforge.model.network.parts.reorder_gaps import IN_TURN, front_of, take_number

#: `sprayed.next` of the last packet that waits
_NONE = -1


@inlined
def count_value(net: Net, row: int, value: int) -> None:
    """Count a value in a row of the histograms."""
    int64s(net.reorder_histogram)[row * HISTOGRAM_BINS + histogram_bin(value)] += 1


@inlined
def tell_inner(net: Net, event: int, a: int, b: int) -> int:
    """Call the hook that follows messages, and return its answer."""
    inner_hook = spray_of(net).inner
    return call_hook(inner_hook, net, event, a, b) if inner_hook != 0 else 0


@inner
def entropy_of(net: Net, h: int, p: int, flow: Any) -> int:
    """Entropy of packet `p`, which host `h` takes up in this cycle."""
    spray = spray_of(net)
    if spray.entropy == PER_PACKET:
        return flow.made % spray.values
    if spray.entropy == PER_MESSAGE:
        if net.source_kind == PROGRAM:
            return int32s(net.packet_message)[p] % spray.values
        return host_at(net, h).created // net.message_packets % spray.values
    if spray.entropy == PER_FLOWLET:
        if flow.departed >= 0 and net.cycle - flow.departed >= spray.gap_cycles:
            flow.flowlet += 1
        return flow.flowlet % spray.values
    return 0


@inner
def number_packet(net: Net, p: int, h: int) -> None:
    """Give packet `p` of host `h` its number in its flow, and its entropy."""
    packet = packet_at(net, p)
    flow = flow_at(net, h, int64(packet.dst))
    if spray_of(net).entropy != NO_ENTROPY:
        packet.part = entropy_of(net, h, p, flow)
    sprayed_at(net, p).sequence = flow.made
    flow.made += 1


@inner
def count_order(net: Net, flow: Any, number: int, arrival: int, opener: int) -> None:
    """Count by how much a packet that has just come is reordered (RFC 4737)."""
    spray = spray_of(net)
    spray.packets += 1
    if opener != IN_TURN:
        spray.reordered += 1
        extent = arrival - opener
        spray.extent_sum += extent
        spray.extent_max = max(spray.extent_max, extent)
        count_value(net, EXTENTS, extent)
    if flow.last > number:
        spray.after_one += 1
        if flow.second > number:
            spray.after_two += 1
            spray.after_three += int64(flow.third > number)
    flow.third, flow.second, flow.last = flow.second, flow.last, number


@inner
def count_buffers(net: Net, flow: Any, h: int) -> None:
    """Look at the buffers of a flow and of its host, after an arrival (RFC 5236)."""
    spray, at_host = spray_of(net), reorder_buffer_at(net, h)
    spray.flow_buffer_sum += flow.held
    spray.flow_buffer_max = max(spray.flow_buffer_max, int64(flow.held))
    count_value(net, FLOW_BUFFERS, int64(flow.held))
    spray.host_buffer_sum += at_host.packets
    spray.host_buffer_max = max(spray.host_buffer_max, int64(at_host.packets))
    count_value(net, HOST_BUFFERS, int64(at_host.packets))
    at_host.most_flits = max(at_host.most_flits, at_host.flits)


@inner
def hold(net: Net, flow: Any, p: int) -> None:
    """Let packet `p` wait, in its place by number."""
    number = sprayed_at(net, p).sequence
    if flow.first_held < 0:
        sprayed_at(net, p).next = _NONE
        flow.first_held = flow.last_held = p
    elif sprayed_at(net, flow.last_held).sequence < number:
        sprayed_at(net, p).next = _NONE
        sprayed_at(net, flow.last_held).next = p
        flow.last_held = p
    elif sprayed_at(net, flow.first_held).sequence > number:
        sprayed_at(net, p).next = flow.first_held
        flow.first_held = p
    else:
        k = flow.first_held
        while sprayed_at(net, sprayed_at(net, k).next).sequence < number:
            k = sprayed_at(net, k).next
        sprayed_at(net, p).next = sprayed_at(net, k).next
        sprayed_at(net, k).next = p
    at_host = reorder_buffer_at(net, int64(packet_at(net, p).dst))
    flow.held += 1
    at_host.packets += 1
    at_host.flits += packet_at(net, p).length


@inner
def deliver(net: Net, p: int, now: int) -> None:
    """Give packet `p` to its message, unless that has it already."""
    spray = spray_of(net)
    delay = now - sprayed_at(net, p).arrived
    spray.delivered += 1
    spray.delay_sum += delay
    spray.delay_max = max(spray.delay_max, delay)
    count_value(net, DELAYS, delay)
    if spray.deliver == IN_ORDER:
        tell_inner(net, ARRIVED, p, now)


@inner
def release_held(net: Net, flow: Any, now: int) -> None:
    """Deliver all packets of a flow that wait for nothing any more."""
    while flow.first_held >= 0 and sprayed_at(net, flow.first_held).sequence < flow.front:
        p = int64(flow.first_held)
        flow.first_held = sprayed_at(net, p).next
        at_host = reorder_buffer_at(net, int64(packet_at(net, p).dst))
        flow.held -= 1
        at_host.packets -= 1
        at_host.flits -= packet_at(net, p).length
        deliver(net, p, now)
        free_record(net, p)


@inner
def come(net: Net, p: int, now: int) -> int:
    """Take packet `p` at its destination; 1: it waits there, and keeps its record."""
    spray, packet = spray_of(net), packet_at(net, p)
    if spray.deliver != IN_ORDER:
        tell_inner(net, ARRIVED, p, now)
        if spray.deliver == NOT_WATCHED:
            return 0
    flow = flow_at(net, int64(packet.src), int64(packet.dst))
    mine = sprayed_at(net, p)
    mine.arrived = now
    number, arrival = int64(mine.sequence), int64(flow.arrivals)
    flow.arrivals += 1
    opener = take_number(net, flow, number, arrival)
    count_order(net, flow, number, arrival, opener)
    flow.front = front_of(net, flow)
    waits = int64(number >= flow.front)
    if waits != 0:
        hold(net, flow, p)
    else:
        deliver(net, p, now)
        release_held(net, flow, now)
    count_buffers(net, flow, int64(packet.dst))
    return waits


@inner
def lose(net: Net, p: int, now: int) -> None:
    """Wait no longer for packet `p`, which is lost."""
    tell_inner(net, LOST, p, now)
    if spray_of(net).deliver == NOT_WATCHED:
        return
    packet = packet_at(net, p)
    flow = flow_at(net, int64(packet.src), int64(packet.dst))
    take_number(net, flow, int64(sprayed_at(net, p).sequence), int64(-1))
    flow.front = front_of(net, flow)
    release_held(net, flow, now)


@c_kernel(HOOK_SIGNATURE)
def spray_packets(net: Net, event: int, a: int, b: int) -> int:
    """Follow packets from their number to their delivery: a hook `messages` around another one."""
    if event == ARRIVED:
        return come(net, a, b)
    if event == LOST:
        lose(net, a, b)
        return 0
    answer = tell_inner(net, event, a, b)
    if event == CREATED:
        number_packet(net, a, b)
    elif event == DEPARTED:
        packet = packet_at(net, a)
        flow_at(net, int64(packet.src), int64(packet.dst)).departed = b
    return answer


@c_kernel(HOOK_SIGNATURE)
def has_place(net: Net, event: int, a: int, b: int) -> int:
    """Whether packet `a` may leave host `b`: its flow's buffer surely has a place for it. A hook `may_send`."""
    packet, spray = packet_at(net, a), spray_of(net)
    flow = flow_at(net, int64(packet.src), int64(packet.dst))
    if sprayed_at(net, a).sequence <= flow.front + spray.places:
        return 1
    spray.held_back += 1
    return 0


@entry(types.void(NET_RECORD, int64, int64))
def tell_lost(net: Net, p: int, now: int) -> None:
    """Tell the hook of messages that packet `p` is lost, from between two cycles."""
    call_hook(net.messages, net, LOST, p, now)

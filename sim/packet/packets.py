"""What becomes of packets in both packet networks, jitted: their way, their place in a queue, their delivery."""

from typing import Any

from numba import int64, uint64

from hopforge.model.kernel.compile import inlined, inner
from hopforge.model.kernel.histogram import histogram_bin
from hopforge.model.kernel.memory import int8s, int32s, int64s, words
from hopforge.model.network.core.records import message_at
from hopforge.sim.packet.events import time_of
from hopforge.sim.packet.program_hosts import expect_message
from hopforge.sim.packet.records import (
    ABR,
    ANSWERS,
    ARRIVALS,
    BIN_CYCLES,
    FREES,
    MINIMAL,
    OFFERS,
    OUTFLANK,
    WRAPAROUND,
    Net,
    log_at,
    message_sum_at,
    packet_at,
    via_at,
)
from hopforge.sim.packet.way_kernel import choose


@inlined
def next_event(net: Net) -> int:
    """Cycle of the first event of the kinds that both networks have."""
    now = min(int64(net.next_feed), time_of(net, ARRIVALS))
    return min(now, time_of(net, ANSWERS), time_of(net, FREES), time_of(net, OFFERS))


@inlined
def stands_still(net: Net, now: int) -> bool:
    """Whether packets are inside and no router has taken one for long."""
    return bool(net.injected > net.delivered + net.vanished and now - net.last_move > net.standstill_cycles)


@inlined
def activate(net: Net, node: int) -> None:
    """Note that something happens at a node in this cycle."""
    if not int8s(net.active)[node]:
        int8s(net.active)[node] = 1
        int64s(net.active_node)[net.active_nodes] = node
        net.active_nodes += 1


@inlined
def choose_goal(net: Net, node: int, t: int, counts: int) -> Any:
    """Return where a packet of the source at `node` for `t` goes first, its kind and its directions."""
    if net.algorithm == ABR or t == node:
        return t, MINIMAL, 0
    chosen = choose(net, node, counts)
    if chosen < 0:
        return t, MINIMAL, 0
    via = via_at(net, node, chosen)
    return int64(via.place), int64(via.kind), int64(via.links) if via.place == t else 0


@inlined
def new_packet(net: Net, source: int, message: int, number: int, t: int) -> int:
    """Return the record of a new packet: the packet `number` of a message of `source` for `t`."""
    net.free_packets -= 1
    net.injected += 1
    p = int64(int32s(net.free_packet)[net.free_packets])
    packet = packet_at(net, p)
    packet.destination = packet.goal = t
    packet.number = message * net.message_packets + number
    packet.source, packet.kind, packet.hops, packet.directions = source, MINIMAL, 0, 0
    return p


@inlined
def free_packet(net: Net, p: int) -> None:
    """Put a packet's record onto the stack of free ones."""
    int32s(net.free_packet)[net.free_packets] = p
    net.free_packets += 1


@inner
def note_choice(net: Net, p: int, now: int) -> None:
    """Note when a packet was taken from its source, and which way it goes."""
    packet = packet_at(net, p)
    net.chosen += 1
    net.detours_outflank += packet.kind == OUTFLANK
    net.detours_wraparound += packet.kind == WRAPAROUND
    if net.logs:
        log = log_at(net, packet.source, packet.number)
        log.accepted, log.kind = now, packet.kind
        log.via = packet.goal if packet.goal != packet.destination else -1


@inlined
def enter(net: Net, p: int, q: int) -> None:
    """Put a packet to the end of a queue."""
    count = int8s(net.queue_count)[q]
    int32s(net.queue_packet)[q * net.queue_packets + count] = p
    int8s(net.queue_count)[q] = count + 1
    packet_at(net, p).queue = q


@inlined
def first_waiting(net: Net, q: int) -> int:
    """Place of the oldest packet of a queue that is not on its way; −1: none."""
    one = uint64(1)
    waiting = ((one << uint64(int8s(net.queue_count)[q])) - one) & ~words(net.queue_sent)[q]
    if waiting == uint64(0):
        return -1
    k = 0
    while (waiting >> uint64(k)) & one == uint64(0):
        k += 1
    return k


@inlined
def settle(net: Net, q: int, p: int, accepted: bool) -> None:
    """Take the answer to a packet that was sent: its slot becomes free, or it waits again."""
    one = uint64(1)
    first = q * net.queue_packets
    sent = words(net.queue_sent)[q]
    k = 0
    while int32s(net.queue_packet)[first + k] != p or (sent >> uint64(k)) & one == uint64(0):
        k += 1
    if not accepted:
        words(net.queue_sent)[q] = sent & ~(one << uint64(k))
        return
    last = int8s(net.queue_count)[q] - 1
    for j in range(first + k, first + last):
        int32s(net.queue_packet)[j] = int32s(net.queue_packet)[j + 1]
    int8s(net.queue_count)[q] = last
    low = (one << uint64(k)) - one
    words(net.queue_sent)[q] = (sent & low) | ((sent >> one) & ~low)


@inlined
def _count_lifetime(net: Net, packet: Any, born: int, end: int) -> int:
    """Count a packet that was born in cycle `born` and is at its sink at cycle `end`; returns its lifetime."""
    lifetime = end - born
    net.delivered += 1
    net.lifetime_sum += lifetime
    net.lifetime_max = max(net.lifetime_max, lifetime)
    net.hops_sum += packet.hops
    net.finish = max(net.finish, end)
    int64s(net.histogram)[histogram_bin(lifetime // BIN_CYCLES)] += 1
    packet.queue = -1
    return lifetime


@inner
def record_delivery(net: Net, p: int, end: int) -> None:
    """Note that a packet is at its sink at cycle `end`."""
    packet = packet_at(net, p)
    if net.programs:
        _count_lifetime(net, packet, message_at(net, packet.number).queued, end)
        expect_message(net, packet.number, end)
        return
    message = int64(packet.number) // net.message_packets
    lifetime = _count_lifetime(net, packet, int64s(net.birth)[packet.source * net.messages + message], end)
    sums = message_sum_at(net, message)
    sums.lifetime += lifetime
    sums.packets += 1
    if net.logs:
        log = log_at(net, packet.source, packet.number)
        log.delivered, log.hops = end, packet.hops

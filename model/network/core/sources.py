"""Hosts: when packets are created, how they enter the network (docs/definitions/router.md, Hosts)."""

from collections.abc import Callable
from typing import Any

from numba import int64, types, uint32, uint64

from hopforge.model.kernel.bits import first_at_or_after, trailing_zeros
from hopforge.model.kernel.compile import entry, inlined, inner
from hopforge.model.kernel.memory import floats, int8s, int32s, int64s, prefetch, words
from hopforge.model.kernel.rng import next_below, next_float, next_geometric
from hopforge.model.network.core.candidates import blank_candidates
from hopforge.model.network.core.event_log import call_log
from hopforge.model.network.core.events import put_flit
from hopforge.model.network.core.hooks import CREATED, DEPARTED, call_hook
from hopforge.model.network.core.kinds import (
    ANY_VC,
    BERNOULLI,
    BY_DESTINATION,
    FIXED_LENGTH,
    HEAD,
    HOST_VC_BITS,
    ON_OFF,
    PROGRAM,
    SCRIPT,
    SENT,
    TAIL,
    UNIFORM_LENGTH,
    WORMHOLE,
)
from hopforge.model.network.core.loads_ahead import HOST_BYTES
from hopforge.model.network.core.net_record import NET_RECORD, PATTERN_SIGNATURE, Net
from hopforge.model.network.core.records import host_at, input_port, input_vc, packet_at

NEVER = 1 << 62
#: hosts ahead of time whose records are prefetched
AHEAD = 4


@inlined
def draw_through_changes(net: Net, h: int, time: int) -> int:
    """Draw the creation time (>= `time`) of a packet of host `h` of a Bernoulli source whose rate changes.

    The rate is that of each cycle, whenever the packet is drawn: those of a source queue are drawn late.
    """
    k = 0
    while k < net.load_changes and int64s(net.change_time)[k] <= time:
        k += 1
    while True:
        time += next_geometric(words(net.host_rng), h, floats(net.change_log)[k])
        if k == net.load_changes or time < int64s(net.change_time)[k]:
            return time
        time = int64s(net.change_time)[k]
        k += 1


@inlined
def schedule_next(net: Net, h: int, after: int) -> None:
    """Draw the creation time (> `after`) of the next packet of host `h`."""
    host = host_at(net, h)
    if net.source_kind == BERNOULLI:
        if net.load_changes != 0:
            host.next_time = draw_through_changes(net, h, after + 1)
        else:
            host.next_time = after + 1 + next_geometric(words(net.host_rng), h, net.log_failure)
    elif net.source_kind == ON_OFF:
        time = after
        while True:
            if host.on == 0:
                time += 1 + next_geometric(words(net.host_rng), h, net.log_stay_off)
                if time >= NEVER:  # and a sum of two such pauses has no place in 64 bits
                    break
                host.on = 1
            else:
                time += 1 + next_geometric(words(net.host_rng), h, net.log_no_event)
                if next_float(words(net.host_rng), h) >= net.off_share:
                    break
                host.on = 0
                continue
            # the cycle in which a source goes on can create a packet
            if next_float(words(net.host_rng), h) < net.on_rate:
                break
        host.next_time = time
    elif net.source_kind == PROGRAM:
        if host.queue_first < 0:
            host.next_time = NEVER
    else:
        k = int64s(net.script_next)[h]
        host.next_time = int64s(net.script_time)[k] if k < int64s(net.script_first)[h + 1] else NEVER


@entry(types.void(NET_RECORD))
def schedule_first(net: Net) -> None:
    """Creation time of every host's first packet (called once, when a network is built)."""
    for h in range(net.hosts):
        schedule_next(net, h, int64(-1))


@entry(types.void(NET_RECORD))
def schedule_changed(net: Net) -> None:
    """Draw the packets anew that come after the first change of the rate; called before the first cycle."""
    first = int64s(net.change_time)[0]
    for h in range(net.hosts):
        host = host_at(net, h)
        if host.stopped == 0 and host.next_time >= first:
            host.next_time = draw_through_changes(net, h, first)


@inlined
def draw_length(net: Net, h: int) -> int:
    """Length of the next packet of host `h` in flits."""
    if net.length_kind == FIXED_LENGTH:
        return net.length_low
    if net.length_kind == UNIFORM_LENGTH:
        return net.length_low + next_below(words(net.host_rng), h, net.length_high - net.length_low + 1)
    u = next_float(words(net.host_rng), h)
    k = 0
    while floats(net.length_table)[k] <= u:
        k += 1
    return k + 1


@inner
def create_packet(net: Net, pattern: Callable[..., int], h: int) -> None:
    """Make the packet of host `h` that was due at ``next_time``, and schedule the one after it."""
    host = host_at(net, h)
    net.free_packets -= 1
    p = int64(int32s(net.free_packet)[net.free_packets])
    packet = packet_at(net, p)
    packet.created = host.next_time
    if net.source_kind == SCRIPT:
        k = int64s(net.script_next)[h]
        packet.dst = int32s(net.script_destination)[k]
        packet.length = int32s(net.script_length)[k]
        int64s(net.script_next)[h] = k + 1
    elif net.source_kind != PROGRAM:
        if host.message_left > 0:
            packet.dst = host.message_target
        else:
            packet.dst = pattern(h, int64(host.created) // net.message_packets, net, int32s(net.pattern_table))
        packet.length = draw_length(net, h)
    if net.messages != 0:
        call_hook(net.messages, net, CREATED, int64(p), int64(h))
    packet.src = h
    packet.hops = 0
    packet.via = -1
    packet.phase = 0
    packet.user0 = 0
    packet.user1 = 0
    packet.number = host.created
    host.created += 1
    host.packet = p
    host.sent = 0
    net.packets_created += 1
    net.flits_created += packet.length
    if host.message_left == 0:  # the packets of a message are created at the same time
        schedule_next(net, h, int64(host.next_time))


@entry(int64(types.FunctionType(PATTERN_SIGNATURE), NET_RECORD, int64, int64))
def take_due(pattern: Callable[..., int], net: Net, h: int, before: int) -> int:
    """Take up the next packet of host `h` out of its source queue, if it was due before a cycle; -1: it was not."""
    host = host_at(net, h)
    if host.next_time >= before:
        return -1
    create_packet(net, pattern, h)
    p = int64(host.packet)
    host.packet = -1
    return p


@inlined
def after_last(allowed: Any, last: int) -> Any:
    """VCs among which a host chooses: if the last packet took none of those allowed, only the first of them."""
    return allowed if (allowed >> uint32(last)) & uint32(1) != uint32(0) else allowed & (~allowed + uint32(1))


@inner
def choose_injection_vc(net: Net, h: int) -> int:
    """VC for the head of host `h`'s packet, -1: none is free with room, or it may not leave yet."""
    host = host_at(net, h)
    if net.may_send != 0 and call_hook(net.may_send, net, 0, int64(host.packet), int64(h)) == 0:
        return -1
    allowed = uint32(host.inject_mask)
    if net.injection != ANY_VC:
        if net.injection == BY_DESTINATION:
            allowed &= uint32(int32s(net.inject_by_destination)[packet_at(net, int64(host.packet)).dst])
        allowed = after_last(allowed, int64(host.vc))
    return free_host_vc(net, h, int64(host.packet), allowed, int64(host.pointer))


@inlined
def free_host_vc(net: Net, h: int, p: int, allowed: Any, pointer: int) -> int:
    """First VC of host `h` at or after `pointer` of those allowed that is free with room for packet `p`; -1: none."""
    host = host_at(net, h)
    need = packet_at(net, p).length if net.switching_mode != WORMHOLE else 1
    usable = uint64(host.free_mask & allowed)
    mask = uint64(0)
    while usable != uint64(0):
        v = trailing_zeros(usable)
        usable &= usable - uint64(1)
        if int32s(net.host_credits)[(h << HOST_VC_BITS) + v] >= need:
            mask |= uint64(1) << uint64(v)
    if mask == uint64(0):
        return -1
    return first_at_or_after(mask, pointer)


@inlined
def put_on_link(net: Net, h: int, v: int, p: int, kind: int, now: int) -> None:
    """Send a flit of packet `p` from host `h` on VC `v`, which becomes free with a tail."""
    host = host_at(net, h)
    int32s(net.host_credits)[(h << HOST_VC_BITS) + v] -= 1
    if kind & TAIL != 0:
        if net.release_credits != 0:
            int8s(net.host_tail_sent)[(h << HOST_VC_BITS) + v] = 1
        else:
            host.free_mask = host.free_mask | (uint32(1) << uint32(v))
    host.flits_sent += 1
    net.flits_injected += 1
    net.last_move = now
    put_flit(net, int64(host.input_vc) + v, (p << 2) | kind, now + host.flit_time)
    if net.log_event != 0:
        call_log(net.log_event, net, SENT, now, h, v, (p << 2) | kind)


@inner
def decide_at_host(net: Net, route: Callable[..., int], h: int, v: int, p: int) -> None:
    """Let packet `p`, which leaves host `h` on VC `v`, decide with the present queues; its candidates are not kept."""
    n = int64(host_at(net, h).input_vc) + v
    vc = input_vc(net, n)
    place = net.candidate + net.input_vcs * net.candidate_bytes
    blank_candidates(net, (net.input_vcs * net.candidate_bytes) >> 3)
    route(
        int64(vc.router),
        int64(input_port(net, int64(vc.port)).port),
        int64(v),
        packet_at(net, p),
        net,
        int32s(net.table),
        floats(net.memory),
        int64s(place),
    )


@inlined
def inject(net: Net, route: Callable[..., int], pattern: Callable[..., int], now: int, first: int, end: int) -> None:
    """Hosts number `first` up to, but without, `end` send at most one flit each in cycle `now`."""
    vcs = net.vcs
    awake = int32s(net.awake)
    count = 0
    for h in range(first, end):  # a list first: a branch for each host would be mispredicted for many
        awake[count] = h
        count += 1 if int64s(net.host_wake)[h] <= now else 0
    for k in range(count):
        if k + AHEAD < count:
            later = int64(awake[k + AHEAD])
            prefetch(net.host + later * HOST_BYTES)
            prefetch(net.host_credits + (later << HOST_VC_BITS) * 4)
        h = int64(awake[k])
        host = host_at(net, h)
        if host.packet < 0:
            if host.next_time > now:
                int64s(net.host_wake)[h] = host.next_time
                continue
            create_packet(net, pattern, h)
        int64s(net.host_wake)[h] = now + 1
        p = int64(host.packet)
        kind = 0
        if host.sent == 0:
            v = choose_injection_vc(net, h)
            if v < 0:
                continue
            kind = HEAD
            host.vc = v
            host.pointer = v + 1 if v + 1 < vcs else 0
            host.free_mask = host.free_mask & ~(uint32(1) << uint32(v))
            packet_at(net, p).sent = now
            if net.decides != 0:
                decide_at_host(net, route, h, int64(v), p)
        else:
            v = int64(host.vc)
            if int32s(net.host_credits)[(h << HOST_VC_BITS) + v] == 0:
                continue
        host.sent += 1
        if host.sent == packet_at(net, p).length:
            kind |= TAIL
            host.packet = -1
            if net.messages != 0:
                call_hook(net.messages, net, DEPARTED, p, now)
            if host.next_time > now:
                int64s(net.host_wake)[h] = host.next_time
        put_on_link(net, h, v, p, kind, now)

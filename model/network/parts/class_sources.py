"""Hosts with classes of traffic: a source for each, and which of them sends (docs/definitions/traffic-classes.md)."""

from typing import Any

from numba import int64, types, uint32, uint64

from hopforge.model.kernel.bits import bit_of, first_at_or_after, trailing_zeros
from hopforge.model.kernel.compile import c_kernel, entry, inlined, inner
from hopforge.model.kernel.memory import function_at, int32s, int64s, words
from hopforge.model.kernel.rng import next_geometric
from hopforge.model.network.core.hooks import ARRIVED, HOOK_SIGNATURE
from hopforge.model.network.core.kinds import HEAD, HOST_VC_BITS, SCRIPT, STRICT, TAIL, WEIGHTED, WORMHOLE
from hopforge.model.network.core.net_record import NET_RECORD, PATTERN_SIGNATURE, Net
from hopforge.model.network.core.records import class_source_at, host_at, packet_at, traffic_class_at
from hopforge.model.network.core.sources import NEVER, put_on_link
from hopforge.model.network.parts.class_counts import count_class
from hopforge.model.network.parts.class_rounds import charge

#: a packet's number holds its class in these bits, so that those of a host differ
CLASS_NUMBER_BITS = 34

_call_pattern = function_at(PATTERN_SIGNATURE)


@inlined
def schedule_class(net: Net, h: int, c: int, after: int) -> None:
    """Set the creation time (> `after`) of the next packet of class `c` at host `h`."""
    source = class_source_at(net, h, c)
    if net.source_kind == SCRIPT:
        place = h * net.traffic_classes + c
        k = int64s(net.script_next)[place]
        source.next_time = int64s(net.script_time)[k] if k < int64s(net.script_first)[place + 1] else NEVER
        return
    kind = traffic_class_at(net, c)
    source.next_time = after + 1 + next_geometric(words(int64(kind.streams)), h, kind.log_failure)


@entry(types.void(NET_RECORD))
def schedule_classes(net: Net) -> None:
    """Creation time of the first packet of every class at every host."""
    for h in range(net.hosts):
        for c in range(net.traffic_classes):
            schedule_class(net, h, c, int64(-1))


@inlined
def next_length(net: Net, h: int, c: int) -> int:
    """Flits of the next packet of class `c` at host `h`."""
    if net.source_kind == SCRIPT:
        return int64(int32s(net.script_length)[int64s(net.script_next)[h * net.traffic_classes + c]])
    return int64(traffic_class_at(net, c).flits)


@inner
def make_packet(net: Net, h: int, c: int) -> int:
    """Make the packet of class `c` that host `h` begins to send, and schedule the one after it."""
    source, kind = class_source_at(net, h, c), traffic_class_at(net, c)
    net.free_packets -= 1
    p = int64(int32s(net.free_packet)[net.free_packets])
    packet = packet_at(net, p)
    packet.created = source.next_time
    packet.length = next_length(net, h, c)
    if net.source_kind == SCRIPT:
        place = h * net.traffic_classes + c
        k = int64s(net.script_next)[place]
        packet.dst = int32s(net.script_destination)[k]
        int64s(net.script_next)[place] = k + 1
    else:
        # patterns draw from the stream of the host: every class has streams of its own
        words(net.host_rng)[h] = words(int64(kind.streams))[h]
        packet.dst = _call_pattern(int64(kind.pattern), h, int64(source.created), net, int32s(int64(kind.table)))
        words(int64(kind.streams))[h] = words(net.host_rng)[h]
    packet.src = h
    packet.hops = 0
    packet.via = -1
    packet.phase = 0
    packet.user0 = 0
    packet.user1 = 0
    packet.number = (c << CLASS_NUMBER_BITS) | int64(source.created)
    packet.part = c
    source.created += 1
    source.packet = p
    source.sent = 0
    net.packets_created += 1
    net.flits_created += packet.length
    kind.flits_created += packet.length
    schedule_class(net, h, c, int64(source.next_time))
    return p


@inlined
def sending_vc(net: Net, h: int, c: int) -> int:
    """VC on which the next flit of class `c` can leave host `h` in this cycle, -1: it cannot."""
    source = class_source_at(net, h, c)
    if source.packet >= 0:
        v = int64(source.vc)
        if int32s(net.host_credits)[(h << HOST_VC_BITS) + v] > 0:
            return v
        return -1
    need = int64(1) if net.switching_mode == WORMHOLE else next_length(net, h, c)
    usable = uint64(host_at(net, h).free_mask & source.mask)
    possible = uint64(0)
    while usable != uint64(0):
        v = trailing_zeros(usable)
        usable &= usable - uint64(1)
        if int32s(net.host_credits)[(h << HOST_VC_BITS) + v] >= need:
            possible |= bit_of(v)
    if possible == uint64(0):
        return -1
    return first_at_or_after(possible, int64(source.pointer))


@inner
def due_classes(net: Net, h: int, able: Any) -> Any:
    """Those of the classes `able` that go before the others at host `h`."""
    if net.qos == STRICT:
        best, due = int64(-1), uint64(0)
        for c in range(net.traffic_classes):
            if able & bit_of(c) == uint64(0):
                continue
            priority = int64(traffic_class_at(net, c).priority)
            if priority > best:
                best, due = priority, uint64(0)
            if priority == best:
                due |= bit_of(c)
        return due
    if net.qos == WEIGHTED:
        due = uint64(0)
        for c in range(net.traffic_classes):
            if able & bit_of(c) != uint64(0) and int32s(net.host_quota)[h * net.traffic_classes + c] > 0:
                due |= bit_of(c)
        return due if due != uint64(0) else able
    return able


@inner
def send_class(net: Net, h: int, c: int, now: int) -> None:
    """Send the next flit of class `c` from host `h`."""
    host, source = host_at(net, h), class_source_at(net, h, c)
    v, kind = sending_vc(net, h, c), 0
    if source.packet < 0:
        p = make_packet(net, h, c)
        kind = HEAD
        packet_at(net, p).sent = now
        source.vc = v
        source.pointer = v + 1 if v + 1 < net.vcs else 0
        host.free_mask = host.free_mask & ~(uint32(1) << uint32(v))
    p = int64(source.packet)
    source.sent += 1
    if source.sent == packet_at(net, p).length:
        kind |= TAIL
        source.packet = -1
    put_on_link(net, h, v, p, kind, now)
    host.pointer = c + 1 if c + 1 < net.traffic_classes else 0
    if net.qos == WEIGHTED:
        charge(net, int32s(net.host_quota), h * net.traffic_classes, c)


@c_kernel(HOOK_SIGNATURE)
def send_classes(net: Net, event: int, now: int, _: int) -> int:
    """Every host sends at most one flit in cycle `now`: the hook `sources`."""
    for h in range(net.hosts):
        if int64s(net.host_wake)[h] > now:
            continue
        able, wake = uint64(0), NEVER
        for c in range(net.traffic_classes):
            source = class_source_at(net, h, c)
            if source.packet < 0 and source.next_time > now:
                wake = min(wake, int64(source.next_time))
                continue
            wake = now + 1
            if sending_vc(net, h, c) >= 0:
                able |= bit_of(c)
        int64s(net.host_wake)[h] = wake
        if able != uint64(0):
            due = due_classes(net, h, able)
            send_class(net, h, first_at_or_after(due, int64(host_at(net, h).pointer)), now)
    return 0


@c_kernel(HOOK_SIGNATURE)
def count_classes(net: Net, event: int, a: int, b: int) -> int:
    """Count packets that arrive by their class: the hook `messages`."""
    if event == ARRIVED:
        packet = packet_at(net, a)
        count_class(net, int64(packet.part), b - packet.created, b - packet.sent)
        traffic_class_at(net, int64(packet.part)).flits_arrived += packet.length
    return 0

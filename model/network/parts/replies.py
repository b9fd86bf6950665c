"""Hosts that answer requests, and take them only while they have a place (docs/definitions/replies.md)."""

from numba import int64, uint32, uint64

from hopforge.model.kernel.bits import bit_of, first_at_or_after
from hopforge.model.kernel.compile import c_kernel, inlined, inner
from hopforge.model.kernel.memory import int32s, int64s
from hopforge.model.network.core.events import take_flit
from hopforge.model.network.core.hooks import ARRIVED, CREATED, HOOK_SIGNATURE, TAKE
from hopforge.model.network.core.records import (
    HEAD,
    HISTOGRAM_BINS,
    HOST_VC_BITS,
    REPLIES,
    REQUESTS,
    ROUND_TRIPS,
    TAIL,
    Net,
    class_count_at,
    host_at,
    packet_at,
    replier_at,
)
from hopforge.model.network.core.sources import free_host_vc, put_on_link

#: ``packet.part`` of a request; of a reply it is the creation of its request
NOT_ASKED = -1
#: bit of ``packet.number`` that tells replies of a host from its requests
REPLY_NUMBER = 1 << 38


@inner
def count_class(net: Net, k: int, latency: int, network_latency: int) -> None:
    """Count a packet of class `k`, or a round trip."""
    count = class_count_at(net, k)
    count.packets += 1
    count.sum += latency
    count.squares += float(latency) * float(latency)
    count.largest = max(count.largest, latency)
    count.network_sum += network_latency
    int64s(net.class_histogram)[k * HISTOGRAM_BINS + min(latency, HISTOGRAM_BINS - 1)] += 1


@inner
def make_reply(net: Net, p: int, now: int) -> None:
    """Turn the record of request `p`, which has arrived, into its reply, the last one in the queue of its host."""
    packet = packet_at(net, p)
    h = int64(packet.dst)
    replier = replier_at(net, h)
    packet.dst = packet.src
    packet.src = h
    packet.length = net.reply_flits
    packet.part = packet.created
    packet.created = now + net.reply_delay
    packet.via = -1  # the next one in the queue, until it leaves
    packet.number = REPLY_NUMBER | int64(replier.made)
    replier.made += 1
    if replier.last >= 0:
        packet_at(net, int64(replier.last)).via = p
    else:
        replier.first = p
    replier.last = p
    net.packets_created += 1
    net.flits_created += packet.length


@inner
def packet_came(net: Net, p: int, now: int) -> int:
    """Count packet `p`, which has arrived; 1 if its record is now that of a reply."""
    packet = packet_at(net, p)
    latency, in_network = now - packet.created, now - packet.sent
    if packet.part == NOT_ASKED:
        count_class(net, REQUESTS, latency, in_network)
        make_reply(net, p, now)
        return 1
    count_class(net, REPLIES, latency, in_network)
    count_class(net, ROUND_TRIPS, now - packet.part, in_network)
    return 0


@inner
def come(net: Net, target: int, flit: int) -> None:
    """Put a flit that has come to a host behind those that wait there on the same VC."""
    place = int64(int32s(net.outside_first)[target]) + int32s(net.outside_flits)[target]
    if place >= net.buffer:
        place -= net.buffer
    int32s(net.outside)[target * net.buffer + place] = flit
    int32s(net.outside_flits)[target] += 1
    replier_at(net, target >> HOST_VC_BITS).outside += 1


@inlined
def first_outside(net: Net, target: int) -> int:
    """First flit that waits at a host on a VC."""
    return int64(int32s(net.outside)[target * net.buffer + int32s(net.outside_first)[target]])


@inner
def take_one(net: Net, h: int, now: int) -> None:
    """Let host `h` take one of the flits that wait."""
    replier = replier_at(net, h)
    possible = uint64(0)
    for v in range(net.vcs):
        target = (h << HOST_VC_BITS) + v
        if int32s(net.outside_flits)[target] == 0:
            continue
        flit = first_outside(net, target)
        asks = flit & HEAD != 0 and packet_at(net, flit >> 2).part == NOT_ASKED
        if not asks or replier.places < net.reply_places:
            possible |= bit_of(v)
    if possible == uint64(0):
        return
    v = first_at_or_after(possible, int64(replier.turn))
    target = (h << HOST_VC_BITS) + v
    flit = first_outside(net, target)
    replier.turn = v + 1 if v + 1 < net.vcs else 0
    at = int32s(net.outside_first)[target] + 1
    int32s(net.outside_first)[target] = at if at < net.buffer else 0
    int32s(net.outside_flits)[target] -= 1
    replier.outside -= 1
    if flit & HEAD != 0 and packet_at(net, flit >> 2).part == NOT_ASKED:
        replier.places += 1
    take_flit(net, target, flit, now)


@inner
def begin_reply(net: Net, h: int, now: int) -> int:
    """Give the first reply in the queue of host `h` a VC; 0: it cannot leave yet."""
    host, replier = host_at(net, h), replier_at(net, h)
    p = int64(replier.first)
    packet = packet_at(net, p)
    if packet.created > now:
        net.last_move = now  # the host works on it: this is no deadlock
        return 0
    v = free_host_vc(net, h, p, host.reply_mask, int64(replier.pointer))
    if v < 0:
        return 0
    replier.first = packet.via
    if replier.first < 0:
        replier.last = -1
    packet.via, packet.phase, packet.user0, packet.user1, packet.hops = -1, 0, 0, 0, 0
    packet.sent = now
    replier.packet, replier.sent, replier.vc = p, 0, v
    replier.pointer = v + 1 if v + 1 < net.vcs else 0
    host.free_mask = host.free_mask & ~(uint32(1) << uint32(v))
    return 1


@inner
def send_reply(net: Net, h: int, now: int) -> None:
    """Let host `h` send a flit of a reply if it can; then it sends none of a request in this cycle."""
    replier = replier_at(net, h)
    if replier.packet < 0:
        if begin_reply(net, h, now) == 0:
            return
    elif int32s(net.host_credits)[(h << HOST_VC_BITS) + replier.vc] == 0:
        return
    p, v = int64(replier.packet), int64(replier.vc)
    kind = HEAD if replier.sent == 0 else 0
    replier.sent += 1
    if replier.sent == packet_at(net, p).length:
        kind |= TAIL
        replier.packet = -1
        replier.places -= 1 if net.reply_places != 0 else 0
    put_on_link(net, h, v, p, kind, now)
    int64s(net.host_wake)[h] = max(int64s(net.host_wake)[h], now + 1)


@c_kernel(HOOK_SIGNATURE)
def answer(net: Net, event: int, a: int, b: int) -> int:
    """Follow requests to their replies: the hook `messages`."""
    if event == CREATED:
        packet_at(net, a).part = NOT_ASKED
    elif event == ARRIVED:
        return packet_came(net, a, b)
    return 0


@c_kernel(HOOK_SIGNATURE)
def serve_hosts(net: Net, event: int, a: int, b: int) -> int:
    """Take what waits at hosts, and send replies: the hook `replies`."""
    if event == TAKE:
        come(net, a, b)
        return 0
    for h in range(net.hosts):
        replier = replier_at(net, h)
        if replier.outside > 0:
            take_one(net, h, a)
        if replier.packet >= 0 or replier.first >= 0:
            send_reply(net, h, a)
    return 0

"""Hosts that answer requests, and take them only while they have a place (docs/definitions/replies.md)."""

from numba import int64, uint64

from hopforge.model.kernel.bits import bit_of, first_at_or_after
from hopforge.model.kernel.compile import c_kernel, inlined, inner
from hopforge.model.kernel.memory import int32s, int64s
from hopforge.model.network.core.events import take_flit
from hopforge.model.network.core.hooks import ARRIVED, CREATED, HOOK_SIGNATURE, TAKE
from hopforge.model.network.core.kinds import AFTER_LAST, HEAD, HOST_VC_BITS
from hopforge.model.network.core.layouts import REPLIES, REQUESTS, ROUND_TRIPS
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import host_at, packet_at, replier_at
from hopforge.model.network.parts.class_counts import count_class
from hopforge.model.network.parts.second_sender import queue_packet, send_queued

#: ``packet.part`` of a request; of a reply it is the creation of its request
NOT_ASKED = -1
#: bit of ``packet.number`` that tells replies of a host from its requests
REPLY_NUMBER = 1 << 38


@inner
def make_reply(net: Net, p: int, now: int) -> None:
    """Turn the record of request `p`, which has arrived, into its reply, the last one in the queue of its host."""
    packet = packet_at(net, p)
    h = int64(packet.dst)
    replier = replier_at(net, h)
    packet.dst = packet.src
    packet.src = h
    packet.length = net.reply_flits if net.reply_flits != 0 else int32s(net.reply_length)[packet.length]
    packet.part = packet.created
    packet.created = now + net.reply_delay
    packet.number = REPLY_NUMBER | int64(replier.made)
    replier.made += 1
    queue_packet(net, h, p)
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
def take_turns(net: Net, h: int, now: int) -> None:
    """Let host `h`, which sends packet after packet, send of a reply unless a request is its packet."""
    if host_at(net, h).packet >= 0:
        return
    send_queued(net, h, now)
    replier = replier_at(net, h)
    waits = replier.first >= 0 and packet_at(net, int64(replier.first)).created + net.reply_early <= now
    if replier.packet >= 0 or waits:  # no request becomes its packet in this cycle
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
        if replier.packet < 0 and replier.first < 0:
            continue
        if net.injection == AFTER_LAST:
            take_turns(net, h, a)
        elif send_queued(net, h, a) >= 0:
            replier.places -= 1 if net.reply_places != 0 else 0
    return 0

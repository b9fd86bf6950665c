"""A sender beside a host's source queue: packets that wait for their turn, linked by ``packet.via``."""

from typing import Any

from numba import int64, uint32

from hopforge.model.kernel.compile import inner
from hopforge.model.kernel.memory import int32s, int64s
from hopforge.model.network.core.kinds import AFTER_LAST, HEAD, HOST_VC_BITS, TAIL
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import host_at, packet_at, replier_at
from hopforge.model.network.core.sources import after_last, free_host_vc, put_on_link


@inner
def queue_packet(net: Net, h: int, p: int) -> None:
    """Put packet `p` at the end of the queue of host `h`."""
    replier = replier_at(net, h)
    packet_at(net, p).via = -1  # the next one in the queue, until it leaves
    if replier.last >= 0:
        packet_at(net, int64(replier.last)).via = p
    else:
        replier.first = p
    replier.last = p


@inner
def begin_packet(net: Net, h: int, now: int) -> int:
    """Give the first packet in the queue of host `h` a VC; 0: it cannot leave yet."""
    host, replier = host_at(net, h), replier_at(net, h)
    p = int64(replier.first)
    packet = packet_at(net, p)
    if packet.created + net.reply_early > now:
        net.last_move = now  # the host works on it: this is no deadlock
        return 0
    allowed, pointer = uint32(host.reply_mask), int64(replier.pointer)
    if net.injection == AFTER_LAST:  # one sender for both
        allowed, pointer = after_last(allowed, int64(host.vc)), int64(host.pointer)
    v = free_host_vc(net, h, p, allowed, pointer)
    if v < 0:
        return 0
    if net.injection == AFTER_LAST:
        host.vc, host.pointer = v, v + 1 if v + 1 < net.vcs else 0
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
def send_queued(net: Net, h: int, now: int) -> int:
    """Let host `h` send a flit if it can; then it sends no other in this cycle. Packet whose tail that was, or -1."""
    replier = replier_at(net, h)
    if replier.packet < 0:
        if begin_packet(net, h, now) == 0:
            return -1
    elif int32s(net.host_credits)[(h << HOST_VC_BITS) + replier.vc] == 0:
        return -1
    p, v = int64(replier.packet), int64(replier.vc)
    kind = HEAD if replier.sent == 0 else 0
    replier.sent += 1
    done: Any = -1
    if replier.sent == packet_at(net, p).length:
        kind |= TAIL
        replier.packet = -1
        done = p
    put_on_link(net, h, v, p, kind, now)
    int64s(net.host_wake)[h] = max(int64s(net.host_wake)[h], now + 1)
    return done

"""The packet network with its queues at the receiving end of the links (``packet.queues: receiving``), jitted.

A router knows the free slots at the other end of a link from the answers (credits) to what it has sent, so nothing is
sent in vain. Otherwise as `kernel`: every kind of event has a ring in order of time.
"""

from typing import Any

from numba import int64, uint64

from hopforge.model.kernel.compile import kernel
from hopforge.sim.packet.kernel import append, record_delivery, settle, take, time_of
from hopforge.sim.packet.records import (
    ABR,
    ADAPTIVE,
    ALGORITHM,
    ANSWERS,
    ARRIVALS,
    DEADLOCK_CYCLES,
    DELIVERED,
    DETOURS_OUTFLANK,
    DETOURS_WRAPAROUND,
    DIMENSIONS,
    DONE,
    EMPTY,
    ENTER_SLOTS,
    ESCAPE,
    ESCAPE_VIA,
    FEED_CYCLES,
    FREE_COUNT,
    FREES,
    HOST_CREDITS,
    HOST_CYCLES,
    HOST_PORT,
    HOST_SEND_CYCLES,
    INJECT_SLOTS,
    INJECTED,
    LAST_MOVE,
    LINK_CYCLES,
    MESSAGE_PACKETS,
    MESSAGES,
    MINIMAL,
    NEXT_FEED,
    NODES,
    NOW,
    OFFERS,
    OUTFLANK,
    PORT_STRIDE,
    QUEUE,
    SEND_CYCLES,
    SENT,
    SINKS,
    STUCK,
    VC_STRIDE,
    VCS,
    WRAPAROUND,
)
from hopforge.sim.packet.way_kernel import OPTIONS, choose, escape_port, list_via, way, ways_left, without_counts


@without_counts
def _first_waiting(q: int, queue_count: Any, queue_sent: Any) -> int:
    """Place of the oldest packet of a queue that is not being sent; −1: none."""
    for k in range(int64(queue_count[q])):
        if (queue_sent[q] >> uint64(k)) & uint64(1) == 0:
            return k
    return -1


@without_counts
def _find_next(par: Any, mask: int, node: int, to_via: bool, q: int, now: int, held: Any, link_free: Any) -> int:
    """Queue at the other end of a free link to which the packet in queue `q` may be sent; −1: none at present."""
    links = 2 * par[DIMENSIONS]
    from_source = q // VC_STRIDE % PORT_STRIDE == HOST_PORT
    least = par[INJECT_SLOTS] if from_source else 1
    best, space, has_space = -1, 0, False
    for port in range(links):
        if (mask >> port) & 1:
            link = node * PORT_STRIDE + port
            free = par[QUEUE] - int64(held[link * VC_STRIDE + ADAPTIVE])
            has_space = has_space or free >= least
            if free >= least and free > space and link_free[link, 0] <= now:
                best, space = link * VC_STRIDE + ADAPTIVE, free
    if has_space:
        return best
    port = escape_port(mask)
    link = node * PORT_STRIDE + port
    vc = ESCAPE_VIA if to_via else ESCAPE
    need = par[ENTER_SLOTS]
    if from_source:
        need = max(need, par[INJECT_SLOTS])
    elif q % VC_STRIDE == vc and q // VC_STRIDE % PORT_STRIDE == port:
        need = 1
    if link_free[link, 0] > now or par[QUEUE] - int64(held[link * VC_STRIDE + vc]) < need:
        return -1
    return link * VC_STRIDE + vc


@kernel(**OPTIONS)
def run(
    until: int, par: Any, counters: Any, radices: Any, steps: Any, coords: Any, peer: Any, turns: Any,
    dest: Any, birth: Any,
    queue_packet: Any, queue_count: Any, queue_sent: Any, link_free: Any, sink_free: Any,
    pk: Any, free_list: Any, source: Any, via: Any, via_count: Any, direct: Any,
    arrivals: Any, answers: Any, frees: Any, offers: Any, ends: Any, log: Any, histogram: Any, message_sums: Any,
    arrived: Any, touched: Any, busy: Any, serve: Any, used: Any, place: Any,
    held: Any, into: Any, sinks: Any, host_credits: Any,
) -> int:  # fmt: skip
    """Go on until cycle `until` or until everything is delivered.

    Parameters
    ----------
    until, …, place
        As of `kernel.run`. Queues belong to the link at whose end they stand; that of the source's link is its VC 0 of
        port HOST_PORT. `source` is int64[node, 4]: present message, packets of it that were sent, unused, message whose
        intermediate destinations are listed. `arrived` and `serve` are not used.
    held : uint8[queue]
        Slots of a queue that are taken as far as the sender knows.
    into : int32[node, 8]
        Link by which packets come that were sent to port p; −1: none.
    sinks, host_credits : int64[capacity, 2]
        Rings: packets that have left for the sink, slots of the sources' queues that become free.
    """
    links = 2 * par[DIMENSIONS]
    whole = par[NODES] * par[MESSAGES] * par[MESSAGE_PACKETS]
    low = (1 << 31) - 1
    while True:
        if counters[DELIVERED] == whole:
            return EMPTY
        now = min(
            counters[NEXT_FEED],
            time_of(arrivals, ends, ARRIVALS),
            time_of(answers, ends, ANSWERS),
            time_of(frees, ends, FREES),
            time_of(offers, ends, OFFERS),
            time_of(sinks, ends, SINKS),
            time_of(host_credits, ends, HOST_CREDITS),
        )
        if now >= until:
            counters[NOW] = until
            return DONE
        counters[NOW] = now
        if counters[INJECTED] > counters[DELIVERED] and now - counters[LAST_MOVE] > par[DEADLOCK_CYCLES]:
            return STUCK
        count = 0
        while time_of(answers, ends, ANSWERS) == now:
            q = take(answers, ends, ANSWERS)
            held[q] -= 1
            count = _touch(q // VC_STRIDE // PORT_STRIDE, busy, touched, count)
        while time_of(host_credits, ends, HOST_CREDITS) == now:
            held[take(host_credits, ends, HOST_CREDITS)] -= 1
        while time_of(frees, ends, FREES) == now:
            what = take(frees, ends, FREES)
            q = what & low
            settle(q, what >> 31, True, queue_packet, queue_count, queue_sent)
            _give_back(par, q, now, answers, host_credits, ends)
            count = _touch(int64(peer[q // VC_STRIDE]), busy, touched, count)
        while time_of(sinks, ends, SINKS) == now:
            what = take(sinks, ends, SINKS)
            q = what & low
            settle(q, what >> 31, True, queue_packet, queue_count, queue_sent)
            _give_back(par, q, now, answers, host_credits, ends)
            free_list[counters[FREE_COUNT]] = what >> 31
            counters[FREE_COUNT] += 1
            count = _touch(int64(peer[q // VC_STRIDE]), busy, touched, count)
        while time_of(arrivals, ends, ARRIVALS) == now:
            what = take(arrivals, ends, ARRIVALS)
            count = _touch(_stand(what & low, what >> 31, peer, queue_packet, queue_count, pk), busy, touched, count)
        while time_of(offers, ends, OFFERS) == now:
            what = take(offers, ends, OFFERS)
            count = _touch(_stand(what & low, what >> 31, peer, queue_packet, queue_count, pk), busy, touched, count)
        for c in range(count):
            node = touched[c]
            busy[node] = 0
            for j in range(links + 1):
                port = (now + j) % (links + 1) - 1
                link = node * PORT_STRIDE + HOST_PORT if port < 0 else int64(into[node, port])
                if link < 0:
                    continue
                for vc in range(VCS - 1, -1, -1):
                    q = link * VC_STRIDE + vc
                    while True:
                        k = _first_waiting(q, queue_count, queue_sent)
                        if k < 0:
                            break
                        packet = int64(queue_packet[q, k])
                        t, goal = int64(pk[packet, 0]), int64(pk[packet, 1])
                        kind, directions = int64(pk[packet, 4]), int64(pk[packet, 7])
                        if node == goal:
                            goal = t
                        if port < 0:
                            goal, kind, directions = t, MINIMAL, 0
                            if par[ALGORITHM] != ABR and t != node:
                                message = pk[packet, 2] // par[MESSAGE_PACKETS]
                                if source[node, 3] != message:
                                    source[node, 3] = message
                                    direct[node, 0], direct[node, 1] = way(par, steps, coords, node, t)
                                    via_count[node] = list_via(par, radices, steps, coords, node, t, turns, place, via)
                                chosen = choose(par, node, held, used, via, via_count[node], direct)
                                if chosen >= 0:
                                    goal, kind = via[node, chosen, 0], via[node, chosen, 3]
                                    directions = via[node, chosen, 2] if goal == t else 0
                        if node == goal:
                            if sink_free[node] > now:
                                break
                            sink_free[node] = now + par[HOST_SEND_CYCLES]
                            append(sinks, ends, SINKS, now + par[HOST_SEND_CYCLES], packet * (1 << 31) + q)
                            record_delivery(par, counters, packet, sink_free[node] + par[HOST_CYCLES], pk, birth,
                                            histogram, message_sums, log)  # fmt: skip
                        else:
                            mask = ways_left(par, steps, coords, node, goal, directions)
                            to = _find_next(par, mask, node, goal != t, q, now, held, link_free)
                            if to < 0:
                                break
                            held[to] += 1
                            link_free[to // VC_STRIDE, 0] = now + par[SEND_CYCLES]
                            link_free[to // VC_STRIDE, 1] += 1
                            append(frees, ends, FREES, now + par[SEND_CYCLES], packet * (1 << 31) + q)
                            done = now + par[SEND_CYCLES] + par[LINK_CYCLES]
                            append(arrivals, ends, ARRIVALS, done, packet * (1 << 31) + to)
                            counters[SENT] += 1
                            pk[packet, 5] += 1
                        queue_sent[q] |= uint64(1) << uint64(k)
                        counters[LAST_MOVE] = now
                        pk[packet, 1], pk[packet, 4], pk[packet, 7] = goal, kind, directions
                        if port < 0:
                            counters[DETOURS_OUTFLANK] += kind == OUTFLANK
                            counters[DETOURS_WRAPAROUND] += kind == WRAPAROUND
                            if log.shape[0] > 0:
                                serial = node * par[MESSAGES] * par[MESSAGE_PACKETS] + pk[packet, 2]
                                log[serial, 0], log[serial, 3] = now, kind
                                log[serial, 4] = goal if goal != t else -1
        if now == counters[NEXT_FEED]:
            counters[NEXT_FEED] += par[FEED_CYCLES]
            for node in range(par[NODES]):
                message = source[node, 0]
                q = (node * PORT_STRIDE + HOST_PORT) * VC_STRIDE
                if message >= par[MESSAGES] or birth[node, message] > now or held[q] >= par[QUEUE]:
                    continue
                held[q] += 1
                counters[FREE_COUNT] -= 1
                packet = int64(free_list[counters[FREE_COUNT]])
                counters[INJECTED] += 1
                pk[packet, 0], pk[packet, 1] = dest[node, message], dest[node, message]
                pk[packet, 2] = message * par[MESSAGE_PACKETS] + source[node, 1]
                pk[packet, 3], pk[packet, 4], pk[packet, 5], pk[packet, 6] = node, MINIMAL, 0, q
                done = now + par[HOST_SEND_CYCLES] + par[HOST_CYCLES]
                append(offers, ends, OFFERS, done, packet * (1 << 31) + q)
                source[node, 1] += 1
                if source[node, 1] == par[MESSAGE_PACKETS]:
                    source[node, 0] += 1
                    source[node, 1] = 0


@without_counts
def _touch(node: int, busy: Any, touched: Any, count: int) -> int:
    """Note that something has changed at a router; returns the number of such routers."""
    if not busy[node]:
        busy[node] = 1
        touched[count] = node
        count += 1
    return count


@without_counts
def _give_back(par: Any, q: int, now: int, answers: Any, host_credits: Any, ends: Any) -> None:
    """Tell the sender that a slot of queue `q` is free."""
    if q // VC_STRIDE % PORT_STRIDE == HOST_PORT:
        append(host_credits, ends, HOST_CREDITS, now + par[HOST_CYCLES], q)
    else:
        append(answers, ends, ANSWERS, now + par[LINK_CYCLES], q)


@without_counts
def _stand(q: int, packet: int, peer: Any, queue_packet: Any, queue_count: Any, pk: Any) -> int:
    """Put a packet that has arrived into its queue; returns the router."""
    queue_packet[q, queue_count[q]] = packet
    queue_count[q] += 1
    pk[packet, 6] = q
    return int64(peer[q // VC_STRIDE])

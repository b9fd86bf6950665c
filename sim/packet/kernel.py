"""The packet network of docs/torus-adaptive.md as a jitted kernel, from event to event.

All delays are constants of the kind of event, so every kind has a queue in order of time (a ring buffer), and no heap
is needed. What happens in one router in one cycle does not depend on what happens in others in that cycle.
"""

from typing import Any

from numba import int64, uint64

from hopforge.model.kernel.compile import kernel
from hopforge.sim.packet.records import (
    ABR,
    ADAPTIVE,
    ALGORITHM,
    ANSWERS,
    ARRIVALS,
    BIN_CYCLES,
    BINS,
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
    FEED_WAITS,
    FINISH,
    FREE_COUNT,
    FREES,
    HOPS_SUM,
    HOST_CYCLES,
    HOST_SEND_CYCLES,
    INJECT_SLOTS,
    INJECTED,
    LAST_MOVE,
    LIFETIME_MAX,
    LIFETIME_SUM,
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
    REFUSED,
    SEND_CYCLES,
    SENT,
    STUCK,
    VC_STRIDE,
    VCS,
    WRAPAROUND,
)
from hopforge.sim.packet.way_kernel import NEVER, OPTIONS, choose, escape_port, list_via, way, ways_left, without_counts


@without_counts
def append(ring: Any, ends: Any, kind: int, time: int, what: int) -> None:
    """Add an event to the end of the ring of its kind; ends[kind] = first, count."""
    place = (ends[kind, 0] + ends[kind, 1]) & (ring.shape[0] - 1)
    ring[place, 0], ring[place, 1] = time, what
    ends[kind, 1] += 1


@without_counts
def time_of(ring: Any, ends: Any, kind: int) -> int:
    """Cycle of the first event of a ring."""
    return int64(ring[ends[kind, 0], 0]) if ends[kind, 1] > 0 else NEVER


@without_counts
def take(ring: Any, ends: Any, kind: int) -> int:
    """Take the first event out of a ring."""
    what = int64(ring[ends[kind, 0], 1])
    ends[kind, 0] = (ends[kind, 0] + 1) & (ring.shape[0] - 1)
    ends[kind, 1] -= 1
    return what


@without_counts
def _touch_answered(now: int, answers: Any, ends: Any, queue_packet: Any, queue_sent: Any) -> int:
    """Read the queues that this cycle's answers are for, one after the other, so that the cache fetches them at once.

    Most of the time goes into waiting for memory. Returns what it read, as else nothing would be read.
    """
    read, place = 0, ends[ANSWERS, 0]
    for _ in range(ends[ANSWERS, 1]):
        if answers[place, 0] != now:
            break
        q = (answers[place, 1] >> 1) & ((1 << 31) - 1)
        read += queue_packet[q, 0] + int64(queue_sent[q])
        place = (place + 1) & (answers.shape[0] - 1)
    return read


@without_counts
def _touch_arrived(now: int, arrivals: Any, ends: Any, pk: Any, peer: Any) -> Any:
    """Do the same for the packets that arrive."""
    read, place = 0, ends[ARRIVALS, 0]
    for _ in range(ends[ARRIVALS, 1]):
        if arrivals[place, 0] != now:
            break
        what = arrivals[place, 1]
        read += pk[what >> 31, 1] + peer[(what & ((1 << 31) - 1)) // VC_STRIDE]
        place = (place + 1) & (arrivals.shape[0] - 1)
    return read


@without_counts
def _find_queue(par: Any, mask: int, node: int, to_via: bool, comes_from: int, queue_count: Any) -> int:
    """Queue that a packet in `node` may enter whose links left are `mask`; −1: none.

    `comes_from` is −1 for a packet of the source, else the queue that it was in before.
    """
    links = 2 * par[DIMENSIONS]
    best, space = -1, 0
    for port in range(links):
        if (mask >> port) & 1:
            free = par[QUEUE] - queue_count[(node * PORT_STRIDE + port) * VC_STRIDE + ADAPTIVE]
            if free > space:
                best, space = (node * PORT_STRIDE + port) * VC_STRIDE + ADAPTIVE, free
    if best >= 0 and (comes_from >= 0 or space >= par[INJECT_SLOTS]):
        return best
    port = escape_port(mask)
    vc = ESCAPE_VIA if to_via else ESCAPE
    q = (node * PORT_STRIDE + port) * VC_STRIDE + vc
    need = par[ENTER_SLOTS]
    if comes_from < 0:
        need = max(need, par[INJECT_SLOTS])
    elif comes_from % VC_STRIDE == vc and comes_from // VC_STRIDE % PORT_STRIDE == port:
        need = 1
    return q if par[QUEUE] - queue_count[q] >= need else -1


@without_counts
def _serve(par: Any, link: int, now: int, link_free: Any, queue_packet: Any, queue_count: Any, queue_sent: Any,
           arrivals: Any, frees: Any, ends: Any, counters: Any) -> None:  # fmt: skip
    """Send the oldest waiting packet of the first queue in the order ESCAPE, ESCAPE_VIA, ADAPTIVE."""
    if link_free[link, 0] > now:
        return
    for vc in range(VCS - 1, -1, -1):
        q = link * VC_STRIDE + vc
        waiting = ((uint64(1) << uint64(queue_count[q])) - uint64(1)) & ~queue_sent[q]
        if waiting == 0:
            continue
        k = 0
        while (waiting >> uint64(k)) & uint64(1) == 0:
            k += 1
        queue_sent[q] |= uint64(1) << uint64(k)
        link_free[link, 0] = now + par[SEND_CYCLES]
        link_free[link, 1] += 1
        counters[SENT] += 1
        packet = int64(queue_packet[q, k])
        append(arrivals, ends, ARRIVALS, now + par[SEND_CYCLES] + par[LINK_CYCLES], packet * (1 << 31) + q)
        append(frees, ends, FREES, now + par[SEND_CYCLES], link)
        return


@without_counts
def settle(q: int, packet: int, accepted: bool, queue_packet: Any, queue_count: Any, queue_sent: Any) -> None:
    """Take the answer to a packet that was sent: its slot becomes free, or it waits again."""
    k = 0
    one = uint64(1)
    while queue_packet[q, k] != packet or (queue_sent[q] >> uint64(k)) & one == 0:
        k += 1
    if not accepted:
        queue_sent[q] &= ~(one << uint64(k))
        return
    for j in range(k, queue_count[q] - 1):
        queue_packet[q, j] = queue_packet[q, j + 1]
    queue_count[q] -= 1
    low = (one << uint64(k)) - one
    queue_sent[q] = (queue_sent[q] & low) | ((queue_sent[q] >> one) & ~low)


@without_counts
def record_delivery(
    par: Any, counters: Any, packet: int, end: int, pk: Any, birth: Any, histogram: Any, message_sums: Any, log: Any
) -> None:
    """Note that a packet is at its sink at cycle `end`."""
    origin, number = pk[packet, 3], pk[packet, 2]
    lifetime = end - birth[origin, number // par[MESSAGE_PACKETS]]
    counters[DELIVERED] += 1
    counters[LIFETIME_SUM] += lifetime
    counters[LIFETIME_MAX] = max(counters[LIFETIME_MAX], lifetime)
    counters[HOPS_SUM] += pk[packet, 5]
    counters[FINISH] = max(counters[FINISH], end)
    histogram[min(lifetime // BIN_CYCLES, BINS - 1)] += 1
    message_sums[number // par[MESSAGE_PACKETS], 0] += lifetime
    message_sums[number // par[MESSAGE_PACKETS], 1] += 1
    pk[packet, 6] = -1
    if log.shape[0] > 0:
        serial = origin * par[MESSAGES] * par[MESSAGE_PACKETS] + number
        log[serial, 1], log[serial, 2] = end, pk[packet, 5]


@kernel(**OPTIONS)
def run(
    until: int, par: Any, counters: Any, radices: Any, steps: Any, coords: Any, peer: Any, turns: Any,
    dest: Any, birth: Any,
    queue_packet: Any, queue_count: Any, queue_sent: Any, link_free: Any, sink_free: Any,
    pk: Any, free_list: Any, source: Any, via: Any, via_count: Any, direct: Any,
    arrivals: Any, answers: Any, frees: Any, offers: Any, ends: Any, log: Any, histogram: Any, message_sums: Any,
    arrived: Any, touched: Any, busy: Any, serve: Any, used: Any, place: Any,
) -> int:  # fmt: skip
    """Go on until cycle `until` or until everything is delivered.

    Parameters
    ----------
    until : int
        Cycle at which to come back.
    par, counters : int64 arrays
        See `records`.
    radices, steps, coords, peer
        int64[n]; int32[n, k, k] of coordinates a and b: 4 · distance + 1 if + is minimal + 2 if − is; int32[node, n];
        int32[link]: the neighbour at its other end.
    turns : int64[2, 4, 6, 3]
        λ of the outflank destinations by dimensions − 2, equal coordinates, number; 2 ends a list.
    dest, birth
        int64[node, message]: destination and cycle of creation of all messages.
    queue_packet, queue_count, queue_sent
        Packets in order of entry, their number, and a mask of those on their way.
    link_free, sink_free
        int64[link, 2]: cycle from which on a link can send, packets it has sent; int64[node]: cycle from which on the
        link to the sink can send.
    pk : int32[packet, 8]
        final destination, present goal, message · packets of a message + number in it, source, kind, hops, queue,
        directions of its orthant if it keeps them.
    free_list : int64[packet]
        Stack of unused packet records: the last one used is still in the processor's cache.
    source : int64[node, 4]
        Present message, packets of it that were offered, that were accepted, cycle from which on it may offer.
    via, via_count, direct
        Intermediate destinations of the present message of every node; distance, minimal links and links.
    arrivals, answers, frees, offers : int64[capacity, 2]
        Rings of events: packets that arrive, answers, links that become free, packets of sources.
    ends : int64[4, 2]
        First and number of the events in each ring.
    log : int64[number or 0, 5]
        Per packet: accepted, delivered (cycle), hops, kind, intermediate destination.
    histogram, message_sums
        Lifetimes in bins; int64[message, 2]: lifetimes and packets by number of the message.
    arrived, touched, busy, serve, used, place
        Room for what happens in one cycle: int64[node, 2n + 1] of −1, int64[node], uint8[node] of 0, int64[8 · links],
        int64[2n], int64[n].
    """
    links = 2 * par[DIMENSIONS]
    nodes = par[NODES]
    whole = nodes * par[MESSAGES] * par[MESSAGE_PACKETS]
    while True:
        if counters[DELIVERED] == whole:
            return EMPTY
        now = counters[NEXT_FEED]
        now = min(
            now,
            time_of(arrivals, ends, ARRIVALS),
            time_of(answers, ends, ANSWERS),
            time_of(frees, ends, FREES),
            time_of(offers, ends, OFFERS),
        )
        if now >= until:
            counters[NOW] = until
            return DONE
        counters[NOW] = now
        inside = counters[INJECTED] - counters[DELIVERED]
        if inside > 0 and now - counters[LAST_MOVE] > par[DEADLOCK_CYCLES]:
            return STUCK
        serving = 0
        read = _touch_answered(now, answers, ends, queue_packet, queue_sent)
        while time_of(answers, ends, ANSWERS) == now:
            what = take(answers, ends, ANSWERS)
            accepted, q, packet = what & 1, (what >> 1) & ((1 << 31) - 1), what >> 32
            settle(q, packet, accepted == 1, queue_packet, queue_count, queue_sent)
            serve[serving] = q // VC_STRIDE
            serving += 1
        count = 0
        read += _touch_arrived(now, arrivals, ends, pk, peer)
        while time_of(arrivals, ends, ARRIVALS) == now:
            what = take(arrivals, ends, ARRIVALS)
            q = what & ((1 << 31) - 1)
            link = q // VC_STRIDE
            node = peer[link]
            arrived[node, link % PORT_STRIDE + 1] = what
            if not busy[node]:
                busy[node] = 1
                touched[count] = node
                count += 1
        while time_of(offers, ends, OFFERS) == now:
            node = take(offers, ends, OFFERS)
            arrived[node, 0] = node
            if not busy[node]:
                busy[node] = 1
                touched[count] = node
                count += 1
        for c in range(count):
            node = touched[c]
            busy[node] = 0
            port = now % (links + 1) - 1
            for _ in range(links + 1):
                port = port + 1 if port < links else 0
                what = arrived[node, port]
                if what < 0:
                    continue
                arrived[node, port] = -1
                if port == 0:
                    # a packet of the source
                    message = source[node, 0]
                    t = dest[node, message]
                    goal, kind, directions = t, MINIMAL, 0
                    if par[ALGORITHM] != ABR and t != node:
                        chosen = choose(par, node, queue_count, used, via, via_count[node], direct)
                        if chosen >= 0:
                            goal, kind = via[node, chosen, 0], via[node, chosen, 3]
                            directions = via[node, chosen, 2] if goal == t else 0
                    q = -2
                    if t == node:
                        if sink_free[node] - now > (par[QUEUE] - 1) * par[HOST_SEND_CYCLES]:
                            q = -1
                    else:
                        mask = ways_left(par, steps, coords, node, goal, directions)
                        q = _find_queue(par, mask, node, goal != t, -1, queue_count)
                    source[node, 3] = now + par[HOST_CYCLES] if par[FEED_WAITS] else now
                    if q == -1:
                        source[node, 1] -= 1
                        counters[REFUSED] += 1
                        continue
                    counters[FREE_COUNT] -= 1
                    packet = free_list[counters[FREE_COUNT]]
                    counters[INJECTED] += 1
                    counters[LAST_MOVE] = now
                    counters[DETOURS_OUTFLANK] += kind == OUTFLANK
                    counters[DETOURS_WRAPAROUND] += kind == WRAPAROUND
                    pk[packet, 0], pk[packet, 1] = t, goal
                    pk[packet, 2] = message * par[MESSAGE_PACKETS] + source[node, 2]
                    pk[packet, 3], pk[packet, 4], pk[packet, 5], pk[packet, 7] = node, kind, 0, directions
                    if log.shape[0] > 0:
                        serial = (node * par[MESSAGES] + message) * par[MESSAGE_PACKETS] + source[node, 2]
                        log[serial, 0], log[serial, 3] = now, kind
                        log[serial, 4] = goal if goal != t else -1
                    source[node, 2] += 1
                    if source[node, 2] == par[MESSAGE_PACKETS]:
                        source[node, 0] += 1
                        source[node, 1], source[node, 2] = 0, 0
                else:
                    q_from, packet = what & ((1 << 31) - 1), what >> 31
                    goal = pk[packet, 1]
                    to_via = pk[packet, 0] != goal
                    if node == goal and to_via:
                        to_via = False
                        goal = pk[packet, 0]
                    if node == goal:
                        q = -2
                        if sink_free[node] - now > (par[QUEUE] - 1) * par[HOST_SEND_CYCLES]:
                            q = -1
                    else:
                        mask = ways_left(par, steps, coords, node, goal, pk[packet, 7])
                        q = _find_queue(par, mask, node, to_via, q_from, queue_count)
                    reply = (packet * (1 << 31) + q_from) * 2
                    if q == -1:
                        counters[REFUSED] += 1
                        append(answers, ends, ANSWERS, now + par[LINK_CYCLES], reply)
                        continue
                    append(answers, ends, ANSWERS, now + par[LINK_CYCLES], reply + 1)
                    pk[packet, 1] = goal
                    pk[packet, 5] += 1
                    counters[LAST_MOVE] = now
                if q >= 0:
                    queue_packet[q, queue_count[q]] = packet
                    queue_count[q] += 1
                    pk[packet, 6] = q
                    serve[serving] = q // VC_STRIDE
                    serving += 1
                    continue
                # to the sink
                sink_free[node] = max(sink_free[node], now) + par[HOST_SEND_CYCLES]
                record_delivery(par, counters, packet, sink_free[node] + par[HOST_CYCLES], pk, birth, histogram,
                                message_sums, log)  # fmt: skip
                free_list[counters[FREE_COUNT]] = packet
                counters[FREE_COUNT] += 1
        while time_of(frees, ends, FREES) == now:
            serve[serving] = take(frees, ends, FREES)
            serving += 1
        for k in range(serving):
            read += link_free[serve[k], 0] + int64(queue_sent[serve[k] * VC_STRIDE])
        place[0] = read
        for k in range(serving):
            _serve(par, serve[k], now, link_free, queue_packet, queue_count, queue_sent, arrivals, frees, ends,
                   counters)  # fmt: skip
        if now == counters[NEXT_FEED]:
            counters[NEXT_FEED] += par[FEED_CYCLES]
            for node in range(nodes):
                message = source[node, 0]
                if message >= par[MESSAGES] or birth[node, message] > now or source[node, 3] > now:
                    continue
                if source[node, 1] == par[MESSAGE_PACKETS]:
                    continue
                if source[node, 1] == 0 and source[node, 2] == 0:
                    t = dest[node, message]
                    d, mask = way(par, steps, coords, node, t)
                    direct[node, 0], direct[node, 1] = d, mask
                    if par[ALGORITHM] != ABR:
                        via_count[node] = list_via(par, radices, steps, coords, node, t, turns, place, via)
                source[node, 1] += 1
                source[node, 3] = NEVER if par[FEED_WAITS] else now
                append(offers, ends, OFFERS, now + par[HOST_SEND_CYCLES] + par[HOST_CYCLES], node)

"""The packet network of docs/definitions/torus-router.md as a jitted kernel, from event to event.

What happens in one router in one cycle does not depend on what happens in others in that cycle. Most of the time goes
into waiting for memory, so a cycle's events begin to load what they need before it is needed.
"""


from numba import int64, uint64

from hopforge.model.kernel.compile import entry, inlined, inner
from hopforge.model.kernel.memory import int8s, int32s, int64s, prefetch, words
from hopforge.sim.packet.events import (
    NEVER,
    QUEUE_BITS,
    QUEUE_MASK,
    append,
    packet_and_queue,
    take,
    time_of,
)
from hopforge.sim.packet.packets import (
    activate,
    choose_goal,
    enter,
    first_waiting,
    free_packet,
    new_packet,
    next_event,
    note_choice,
    record_delivery,
    settle,
    stands_still,
)
from hopforge.sim.packet.program_hosts import packet_left, put_back, target_of
from hopforge.sim.packet.records import (
    ADAPTIVE,
    ANSWERS,
    ARRIVALS,
    DONE,
    EMPTY,
    ESCAPE,
    ESCAPE_VIA,
    FREES,
    HOST_CREDITS,
    LINK,
    NET_RECORD,
    OFFERS,
    PACKET,
    STUCK,
    VC_STRIDE,
    Net,
    event_at,
    link_at,
    link_of,
    node_of,
    packet_at,
    port_of,
    ring_at,
    source_at,
)
from hopforge.sim.packet.way_kernel import escape_port, goal_around, list_routes, way, ways_left

#: instead of a queue: the sink, or no room anywhere
_SINK, _NO_ROOM = -2, -1
#: instead of the queue from which a packet comes: its source
_SOURCE = -1
_LINK_BYTES, _PACKET_BYTES = LINK.itemsize, PACKET.itemsize


@inlined
def _make_ready(net: Net, link: int) -> None:
    """Note that a link may be able to send in this cycle."""
    prefetch(net.link + link * _LINK_BYTES)
    prefetch(net.queue_sent + link * VC_STRIDE * 8)
    int64s(net.ready_link)[net.ready_links] = link
    net.ready_links += 1


@inlined
def _load_answered(net: Net, now: int) -> None:
    """Begin to load the queues that this cycle's answers are for."""
    ring = ring_at(net, ANSWERS)
    for k in range(ring.count):
        event = event_at(ring, ring.first + k)
        if event.time != now:
            break
        q = (event.what >> 1) & QUEUE_MASK
        prefetch(net.queue_packet + q * net.queue_packets * 4)
        prefetch(net.queue_sent + q * 8)


@inner
def take_answers(net: Net, now: int) -> None:
    """Take the answers to packets that were sent: their slots become free, or they wait again."""
    _load_answered(net, now)
    while time_of(net, ANSWERS) == now:
        what = take(net, ANSWERS)
        q = (what >> 1) & QUEUE_MASK
        settle(net, q, what >> (QUEUE_BITS + 1), what & 1 == 1)
        _make_ready(net, q // VC_STRIDE)


@inner
def gather_arrivals(net: Net, now: int) -> None:
    """Lay the packets that arrive in this cycle, from links and from sources, before the ports of their routers."""
    ports = 2 * net.dimensions + 1
    while time_of(net, ARRIVALS) == now:
        what = take(net, ARRIVALS)
        prefetch(net.packet + (what >> QUEUE_BITS) * _PACKET_BYTES)
        q = what & QUEUE_MASK
        node = int64(int32s(net.peer)[q // VC_STRIDE])
        # what a failed link gives back comes as if from the other end
        port = port_of(net, q) ^ (1 if node == node_of(net, q) else 0)
        int64s(net.arrived)[node * ports + port + 1] = what
        activate(net, node)
    while time_of(net, OFFERS) == now:
        what = take(net, OFFERS)  # the node, and behind it the message of a program
        node = what & QUEUE_MASK
        int64s(net.arrived)[node * ports] = what
        activate(net, node)


@inlined
def _find_queue(net: Net, mask: int, node: int, to_via: bool, comes_from: int) -> int:
    """Queue that a packet in `node` may enter whose links left are `mask`.

    `comes_from` is the queue that it was in before, or the source.
    """
    best, space = _NO_ROOM, 0
    for port in range(2 * net.dimensions):
        if (mask >> port) & 1:
            q = link_of(net, node, port) * VC_STRIDE + ADAPTIVE
            free = net.queue_packets - int8s(net.queue_count)[q]
            if free > space:
                best, space = q, free
    if best >= 0 and (comes_from != _SOURCE or space >= net.inject_slots):
        return best
    port = escape_port(mask)
    vc = ESCAPE_VIA if to_via else ESCAPE
    q = link_of(net, node, port) * VC_STRIDE + vc
    need = net.enter_slots
    if comes_from == _SOURCE:
        need = max(need, net.inject_slots)
    elif comes_from % VC_STRIDE == vc and port_of(net, comes_from) == port:
        need = 1
    return q if net.queue_packets - int8s(net.queue_count)[q] >= need else _NO_ROOM


@inlined
def _find_room(net: Net, node: int, goal: int, directions: int, to_via: bool, comes_from: int, now: int) -> int:
    """Queue of `node` that a packet for `goal` may enter, or its sink."""
    if node == goal:
        waits = int64s(net.sink_free)[node] - now > (net.queue_packets - 1) * net.host_send_cycles
        return _NO_ROOM if waits else _SINK
    return _find_queue(net, ways_left(net, node, goal, directions), node, to_via, comes_from)


@inlined
def _find_queue_around(net: Net, node: int, goal: int, t: int, comes_from: int) -> int:
    """Queue that a packet for `t` by way of `goal` may enter in a network that is not whole; its escape is for `t`.

    Who is on the escape stays there.
    """
    need = net.inject_slots if comes_from == _SOURCE else 1
    if comes_from == _SOURCE or comes_from % VC_STRIDE != net.escape_vc:
        _, mask = way(net, node, goal)
        best, space = _NO_ROOM, 0
        for port in range(2 * net.dimensions):
            if (mask >> port) & 1:
                q = link_of(net, node, port) * VC_STRIDE + ADAPTIVE
                free = net.queue_packets - int8s(net.queue_count)[q]
                if free > space:
                    best, space = q, free
        if best >= 0 and space >= need:
            return best
    port = int64(int8s(net.around_next)[node * net.nodes + t])
    q = link_of(net, node, port) * VC_STRIDE + net.escape_vc
    return q if net.queue_packets - int8s(net.queue_count)[q] >= need else _NO_ROOM


@inlined
def _room_around(net: Net, node: int, goal: int, t: int, comes_from: int, now: int) -> int:
    """As `_find_room`, in a network that is not whole."""
    if node == t and goal == t:
        return _find_room(net, node, t, 0, False, comes_from, now)
    return _find_queue_around(net, node, goal, t, comes_from)


@inner
def place_packet(net: Net, node: int, p: int, room: int, now: int) -> None:
    """Put a packet into the queue or the sink that has room for it."""
    net.last_move = now
    if room >= 0:
        enter(net, p, room)
        _make_ready(net, room // VC_STRIDE)
        return
    left = max(int64s(net.sink_free)[node], now) + net.host_send_cycles
    int64s(net.sink_free)[node] = left
    record_delivery(net, p, left + net.sink_wait_cycles + net.host_cycles)
    free_packet(net, p)


@inner
def take_offer(net: Net, node: int, now: int) -> None:
    """Take the packet that the source of a node offers, or refuse it."""
    source = source_at(net, node)
    message = int64(source.message)
    t = int64s(net.destination)[node * net.messages + message]
    source.may_offer = now + net.host_answer_cycles if net.feed_waits else now
    if not _inject(net, node, message, source.accepted, t, now):
        source.offered -= 1
        return
    source.accepted += 1
    if source.accepted == net.message_packets:
        source.message += 1
        source.offered = source.accepted = 0


@inner
def take_offer_of_message(net: Net, node: int, m: int, now: int) -> None:
    """Take the packet of message `m` that the host of a node offers, or send it back."""
    source, t = source_at(net, node), target_of(net, m)
    if source.listed != t:
        source.listed = t
        list_routes(net, node, t)
    if net.feed_waits:
        append(net, HOST_CREDITS, now + net.host_answer_cycles, node)
    if _inject(net, node, m, 0, t, now):
        packet_left(net, m)
    else:
        put_back(net, node, m)


@inlined
def _inject(net: Net, node: int, message: int, number: int, t: int, now: int) -> bool:
    """Take the packet `number` of a message for `t` that a node offers, if there is room for it."""
    goal, kind, directions = choose_goal(net, node, t, net.queue_count)
    if net.around:
        if goal_around(net, node, goal, t) < 0:
            net.injected += 1
            net.vanished += 1
            net.unroutable += 1
            return True
        room = _room_around(net, node, goal, t, _SOURCE, now)
    else:
        room = _find_room(net, node, goal, directions, goal != t, _SOURCE, now)
    if room == _NO_ROOM:
        net.refused += 1
        return False
    p = new_packet(net, node, message, number, t)
    packet = packet_at(net, p)
    packet.goal, packet.kind, packet.directions = goal, kind, directions
    note_choice(net, p, now)
    if room >= 0 and room % VC_STRIDE == net.escape_vc:
        packet.goal = t
    place_packet(net, node, p, room, now)
    return True


@inlined
def _drop(net: Net, p: int, now: int) -> None:
    """Drop a packet whose destination has failed."""
    net.last_move = now
    net.vanished += 1
    net.unroutable += 1
    packet_at(net, p).queue = -1
    free_packet(net, p)


@inner
def take_arrival(net: Net, node: int, p: int, comes_from: int, now: int) -> None:
    """Take a packet that has come from a queue of a neighbour, or send it back; answer the neighbour."""
    packet = packet_at(net, p)
    goal = int64(packet.destination if packet.goal == node else packet.goal)
    reply = packet_and_queue(p, comes_from) * 2
    if net.around:
        goal = goal_around(net, node, goal, int64(packet.destination))
        if goal < 0:
            _drop(net, p, now)
            append(net, ANSWERS, now + net.answer_cycles, reply + 1)
            return
        room = _room_around(net, node, goal, int64(packet.destination), comes_from, now)
    else:
        room = _find_room(net, node, goal, packet.directions, goal != packet.destination, comes_from, now)
    if room == _NO_ROOM:
        net.refused += 1
        append(net, ANSWERS, now + net.answer_cycles, reply)
        return
    append(net, ANSWERS, now + net.answer_cycles, reply + 1)
    if net.around:
        packet.directions = 0
    packet.goal = packet.destination if room >= 0 and room % VC_STRIDE == net.escape_vc else goal
    packet.hops += node != node_of(net, comes_from)
    place_packet(net, node, p, room, now)


@inner
def take_all(net: Net, node: int, now: int) -> None:
    """Take or refuse what has arrived at a node, in the order of ports from port (cycle mod ports) on."""
    ports = 2 * net.dimensions + 1
    port = now % ports
    for _ in range(ports):
        what = int64s(net.arrived)[node * ports + port]
        if what >= 0:
            int64s(net.arrived)[node * ports + port] = -1
            if port == 0 and net.programs:
                take_offer_of_message(net, node, what >> QUEUE_BITS, now)
            elif port == 0:
                take_offer(net, node, now)
            else:
                take_arrival(net, node, what >> QUEUE_BITS, what & QUEUE_MASK, now)
        port = port + 1 if port + 1 < ports else 0


@inner
def send(net: Net, number: int, now: int) -> None:
    """Send the oldest waiting packet of the first queue of a link in the order ESCAPE, ESCAPE_VIA, ADAPTIVE."""
    link = link_at(net, number)
    if link.free > now:
        return
    for vc in range(net.vcs - 1, -1, -1):
        q = number * VC_STRIDE + vc
        k = first_waiting(net, q)
        if k < 0:
            continue
        words(net.queue_sent)[q] |= uint64(1) << uint64(k)
        link.free = now + net.send_cycles
        link.sent += 1
        net.sent += 1
        p = int64(int32s(net.queue_packet)[q * net.queue_packets + k])
        append(net, ARRIVALS, now + net.hop_cycles, packet_and_queue(p, q))
        append(net, FREES, now + net.send_cycles, number)
        return


@inner
def feed(net: Net, now: int) -> None:
    """Let the sources offer a packet whose message is pending."""
    net.next_feed += net.feed_cycles
    for node in range(net.nodes):
        source = source_at(net, node)
        message = int64(source.message)
        if message >= net.messages or source.may_offer > now or source.offered == net.message_packets:
            continue
        if int64s(net.birth)[node * net.messages + message] > now:
            continue
        if source.offered == 0 and source.accepted == 0:
            list_routes(net, node, int64s(net.destination)[node * net.messages + message])
        source.offered += 1
        source.may_offer = NEVER if net.feed_waits else now
        append(net, OFFERS, now + net.offer_cycles, node)


@inlined
def route(net: Net, now: int) -> None:
    """Do what the routers do in a cycle."""
    net.active_nodes = net.ready_links = 0
    take_answers(net, now)
    gather_arrivals(net, now)
    for k in range(net.active_nodes):
        node = int64s(net.active_node)[k]
        int8s(net.active)[node] = 0
        take_all(net, node, now)
    while time_of(net, FREES) == now:
        _make_ready(net, take(net, FREES))
    for k in range(net.ready_links):
        send(net, int64s(net.ready_link)[k], now)


@entry(int64(int64, NET_RECORD))
def run(until: int, net: Net) -> int:
    """Go on until cycle `until` or until everything is delivered.

    Parameters
    ----------
    until : int
        Cycle at which to come back.
    net : record
        State (`records.NET`), changed in place.

    Returns
    -------
    int
        DONE, EMPTY (all is delivered) or STUCK (a standstill).
    """
    whole = net.nodes * net.messages * net.message_packets
    while net.delivered + net.vanished + net.abandoned != whole:
        now = next_event(net)
        net.now = min(now, until)
        if now >= until:
            return DONE
        if stands_still(net, now):
            return STUCK
        route(net, now)
        if now == net.next_feed:
            feed(net, now)
    return EMPTY

"""The packet network with its queues at the receiving end of the links (``packet.queues: receiving``), jitted.

A router knows the free slots at the other end of a link from the answers (credits) to what it has sent, so nothing is
sent in vain. Queues belong to the link at whose end they stand; that of the source's link is VC 0 of port `host_port`.
"""


from numba import int64, uint64

from hopforge.model.kernel.compile import entry, inlined, inner
from hopforge.model.kernel.memory import int8s, int32s, int64s, words
from hopforge.sim.packet.events import QUEUE_BITS, QUEUE_MASK, append, packet_and_queue, take, time_of
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
from hopforge.sim.packet.program_hosts import wake_host
from hopforge.sim.packet.records import (
    ABR,
    ADAPTIVE,
    ANSWERS,
    ARRIVALS,
    DONE,
    EMPTY,
    ESCAPE,
    ESCAPE_VIA,
    FREES,
    HOST_CREDITS,
    LATE_ARRIVALS,
    NET_RECORD,
    OFFERS,
    SINKS,
    STUCK,
    VC_STRIDE,
    Net,
    link_at,
    link_of,
    node_of,
    packet_at,
    port_of,
    source_at,
)
from hopforge.sim.packet.way_kernel import escape_port, goal_around, list_routes, way, ways_left


@inlined
def _end(net: Net, q: int) -> int:
    """Node in which a queue stands."""
    return int64(int32s(net.peer)[q // VC_STRIDE])


@inlined
def _from_source(net: Net, q: int) -> bool:
    """Whether a queue is that of a source's link."""
    return port_of(net, q) == net.host_port


@inner
def take_credits(net: Net, now: int) -> None:
    """Note which slots have become free, as the senders learn it."""
    while time_of(net, ANSWERS) == now:
        q = take(net, ANSWERS)
        int8s(net.held)[q] -= 1
        activate(net, node_of(net, q))
    while time_of(net, HOST_CREDITS) == now:
        q = take(net, HOST_CREDITS)
        int8s(net.held)[q] -= 1
        if net.programs:
            wake_host(net, node_of(net, q))


@inlined
def _leave(net: Net, what: int, now: int) -> None:
    """Take a packet out of a queue from which it has been sent on whole, and tell the sender."""
    q = what & QUEUE_MASK
    settle(net, q, what >> QUEUE_BITS, True)
    if _from_source(net, q):
        append(net, HOST_CREDITS, now + net.host_cycles, q)
    else:
        append(net, ANSWERS, now + net.link_cycles, q)
    activate(net, _end(net, q))


@inner
def take_departures(net: Net, now: int) -> None:
    """Take the packets out of their queues that have been sent on whole, to a link or to the sink."""
    while time_of(net, FREES) == now:
        _leave(net, take(net, FREES), now)
    while time_of(net, SINKS) == now:
        what = take(net, SINKS)
        _leave(net, what, now)
        free_packet(net, what >> QUEUE_BITS)


@inlined
def _land(net: Net, kind: int) -> None:
    """Put a packet that arrives into its queue."""
    what = take(net, kind)
    q = what & QUEUE_MASK
    enter(net, what >> QUEUE_BITS, q)
    activate(net, _end(net, q))


@inner
def take_landings(net: Net, now: int) -> None:
    """Put the packets that arrive from links and from sources into their queues."""
    while time_of(net, ARRIVALS) == now:
        _land(net, ARRIVALS)
    while time_of(net, LATE_ARRIVALS) == now:
        _land(net, LATE_ARRIVALS)
    while time_of(net, OFFERS) == now:
        _land(net, OFFERS)


@inner
def _way_on(net: Net, mask: int, node: int, to_via: bool, q: int, now: int) -> int:
    """Queue at the other end of a free link to which the packet in queue `q` may be sent; −1: none at present."""
    least = net.inject_slots if _from_source(net, q) else 1
    best, space, has_space = -1, 0, False
    for port in range(2 * net.dimensions):
        if (mask >> port) & 1:
            link = link_of(net, node, port)
            free = net.queue_packets - int64(int8s(net.held)[link * VC_STRIDE + ADAPTIVE])
            has_space = has_space or free >= least
            if free >= least and free > space and link_at(net, link).free <= now:
                best, space = link * VC_STRIDE + ADAPTIVE, free
    if has_space:
        return best
    port = escape_port(mask)
    link = link_of(net, node, port)
    vc = ESCAPE_VIA if to_via else ESCAPE
    need = net.enter_slots
    if _from_source(net, q):
        need = max(need, net.inject_slots)
    elif q % VC_STRIDE == vc and port_of(net, q) == port:
        need = 1
    if link_at(net, link).free > now or net.queue_packets - int64(int8s(net.held)[link * VC_STRIDE + vc]) < need:
        return -1
    return link * VC_STRIDE + vc


@inner
def _way_around(net: Net, node: int, goal: int, t: int, q: int, now: int) -> int:
    """As `_way_on` for a packet for `t` by way of `goal`, in a network that is not whole; its escape is for `t`.

    Who is on the escape stays there.
    """
    need = net.inject_slots if _from_source(net, q) else 1
    if q % VC_STRIDE != net.escape_vc:
        _, mask = way(net, node, goal)
        best, space, has_space = -1, 0, False
        for port in range(2 * net.dimensions):
            if (mask >> port) & 1:
                link = link_of(net, node, port)
                free = net.queue_packets - int64(int8s(net.held)[link * VC_STRIDE + ADAPTIVE])
                has_space = has_space or free >= need
                if free >= need and free > space and link_at(net, link).free <= now:
                    best, space = link * VC_STRIDE + ADAPTIVE, free
        if has_space:
            return best
    link = link_of(net, node, int64(int8s(net.around_next)[node * net.nodes + t]))
    to = link * VC_STRIDE + net.escape_vc
    if link_at(net, link).free > now or net.queue_packets - int64(int8s(net.held)[to]) < need:
        return -1
    return to


@inlined
def _send_to_sink(net: Net, node: int, q: int, p: int, now: int) -> bool:
    """Send a packet to the sink of its node, if that is possible now."""
    if int64s(net.sink_free)[node] > now:
        return False
    left = now + net.host_send_cycles
    int64s(net.sink_free)[node] = left
    append(net, SINKS, left, packet_and_queue(p, q))
    packet = packet_at(net, p)
    # who comes by its destination has not waited for its end before it came into its queue
    wait = net.sink_wait_cycles if packet.goal != packet.destination else 0
    record_delivery(net, p, left + wait + net.host_cycles)
    return True


@inlined
def _discard(net: Net, q: int, p: int, now: int) -> None:
    """Drop a packet whose destination has failed: it leaves its queue in the time of one for the sink."""
    append(net, SINKS, now + net.host_send_cycles, packet_and_queue(p, q))
    net.last_move = now
    net.vanished += 1
    net.unroutable += 1
    packet_at(net, p).queue = -1


@inlined
def _send_to_link(net: Net, to: int, q: int, p: int, to_sink: bool, now: int) -> None:
    """Send a packet to the queue `to` at the other end of a link; for a sink it comes when that may begin."""
    int8s(net.held)[to] += 1
    link = link_at(net, to // VC_STRIDE)
    left = now + net.send_cycles
    link.free = left
    link.sent += 1
    net.sent += 1
    append(net, FREES, left, packet_and_queue(p, q))
    if to_sink:
        append(net, LATE_ARRIVALS, now + net.hop_cycles + net.sink_wait_cycles, packet_and_queue(p, to))
    else:
        append(net, ARRIVALS, now + net.hop_cycles, packet_and_queue(p, to))
    packet_at(net, p).hops += 1


@inlined
def _list_once(net: Net, node: int, message: int, t: int) -> None:
    """List the ways of a source's message when its first packet leaves."""
    source = source_at(net, node)
    if net.algorithm != ABR and t != node and source.listed != message:
        source.listed = message
        list_routes(net, node, t)


@inner
def send_on(net: Net, node: int, q: int, p: int, now: int) -> bool:
    """Send the packet whose turn it is in queue `q`, if that is possible now."""
    packet = packet_at(net, p)
    t, goal, kind, directions = int64(packet.destination), int64(packet.goal), int64(packet.kind), packet.directions
    if _from_source(net, q):
        _list_once(net, node, packet.number // net.message_packets, t)
        goal, kind, directions = choose_goal(net, node, t, net.held)
    elif node == goal:
        goal = t
    escapes = False
    if net.around:
        goal, directions = goal_around(net, node, goal, t), 0
        if goal < 0:
            _discard(net, q, p, now)
            return True
    if node == goal:
        if not _send_to_sink(net, node, q, p, now):
            return False
    else:
        if net.around:
            to = _way_around(net, node, goal, t, q, now)
            escapes = to % VC_STRIDE == net.escape_vc
        else:
            to = _way_on(net, ways_left(net, node, goal, directions), node, goal != t, q, now)
        if to < 0:
            return False
        _send_to_link(net, to, q, p, (escapes or goal == t) and _end(net, to) == t, now)
    net.last_move = now
    packet.goal, packet.kind, packet.directions = goal, kind, directions
    if _from_source(net, q):
        note_choice(net, p, now)
    if escapes:
        packet.goal = t
    return True


@inner
def serve(net: Net, node: int, now: int) -> None:
    """Send on what can be sent on at a node, in the order of ports from port (cycle mod ports) on."""
    ports = 2 * net.dimensions + 1
    for j in range(ports):
        port = (now + j) % ports - 1
        link = link_of(net, node, net.host_port)
        if port >= 0:
            link = int64(int32s(net.into)[link_of(net, node, port)])
            if link < 0:
                continue
        for vc in range(net.vcs - 1, -1, -1):
            q = link * VC_STRIDE + vc
            k = first_waiting(net, q)
            while k >= 0 and send_on(net, node, q, int64(int32s(net.queue_packet)[q * net.queue_packets + k]), now):
                words(net.queue_sent)[q] |= uint64(1) << uint64(k)
                k = first_waiting(net, q)


@inlined
def look_again(net: Net) -> None:
    """Let all routers send on what they can, where something failed, works again or has new ways."""
    if net.look:
        net.look = net.active_nodes = 0
        for node in range(net.nodes):
            serve(net, node, int64(net.now))


@inner
def feed(net: Net, now: int) -> None:
    """Let the sources send a packet whose message is pending, where their queues have room."""
    net.next_feed += net.feed_cycles
    done = now + net.offer_cycles
    for node in range(net.nodes):
        source = source_at(net, node)
        message = int64(source.message)
        q = (link_of(net, node, net.host_port)) * VC_STRIDE
        if message >= net.messages or source.may_offer > now or int8s(net.held)[q] >= net.queue_packets:
            continue
        if int64s(net.birth)[node * net.messages + message] > now:
            continue
        int8s(net.held)[q] += 1
        t = int64s(net.destination)[node * net.messages + message]
        p = new_packet(net, node, message, source.accepted, t)
        packet_at(net, p).queue = q
        net.last_move = now  # it has been quiet since the last message, not stuck
        append(net, OFFERS, done, packet_and_queue(p, q))
        source.accepted += 1
        if source.accepted == net.message_packets:
            source.message += 1
            source.accepted = 0


@inlined
def route(net: Net, now: int) -> None:
    """Do what the routers do in a cycle."""
    net.active_nodes = 0
    take_credits(net, now)
    take_departures(net, now)
    take_landings(net, now)
    for k in range(net.active_nodes):
        node = int64s(net.active_node)[k]
        int8s(net.active)[node] = 0
        serve(net, node, now)


@entry(int64(int64, NET_RECORD))
def run(until: int, net: Net) -> int:
    """Go on until cycle `until` or until everything is delivered; as `kernel.run`."""
    whole = net.nodes * net.messages * net.message_packets
    look_again(net)
    while net.delivered + net.vanished + net.abandoned != whole:
        now = min(next_event(net), time_of(net, LATE_ARRIVALS), time_of(net, SINKS), time_of(net, HOST_CREDITS))
        net.now = min(now, until)
        if now >= until:
            return DONE
        if stands_still(net, now):
            return STUCK
        route(net, now)
        if now == net.next_feed:
            feed(net, now)
    return EMPTY

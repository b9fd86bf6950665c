"""The crossbar of a router: routes of the first packets, and matches by exact least-recently-used order."""

from collections.abc import Callable
from typing import Any

from numba import int64, uint64

from hopforge.model.kernel.bits import bit_of, trailing_zeros
from hopforge.model.kernel.compile import inlined, inner
from hopforge.model.kernel.memory import floats, function_at, int32s, int64s, prefetch, words
from hopforge.model.network.core.candidates import blank_candidates, candidate_level, candidate_mask, candidate_port
from hopforge.model.network.core.event_log import call_log
from hopforge.model.network.core.kinds import DRAINED, GRANTED, HEAD, TAIL
from hopforge.model.network.core.layouts import OUTPUT_VC, PACKET
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.packet_ends import lose_packet
from hopforge.model.network.core.records import output_vc, packet_at
from hopforge.model.network.parts.feedback import REPORT_SIGNATURE
from hopforge.sim.queued.delay_lines import put
from hopforge.sim.queued.queue_lists import append, ask, let_send, port_of, take_first, wake
from hopforge.sim.queued.records import (
    ELAPSED_BITS,
    OUTPUT_QUEUE,
    ROUTED,
    STAMP_BITS,
    Part,
    Queues,
    input_queue,
    line_at,
    note_at,
    output_queue,
)

OUTPUT_QUEUE_BYTES, OUTPUT_VC_BYTES, PACKET_BYTES = OUTPUT_QUEUE.itemsize, OUTPUT_VC.itemsize, PACKET.itemsize
_call_report = function_at(REPORT_SIGNATURE)


@inner
def choose_output(net: Net, router: int, count: int) -> int:
    """Output port · V + VC of the candidates in ``net.candidate``: lowest level, then most room, then first."""
    best: Any
    best, best_level, best_room = int64(-1), int64(256), int64(-1)
    for k in range(count):
        packed = int64s(net.candidate)[k]
        level = candidate_level(packed)
        if level > best_level:
            continue
        mask = uint64(candidate_mask(packed))
        first = candidate_port(packed) * net.vcs
        while mask != uint64(0):
            v = trailing_zeros(mask)
            mask &= mask - uint64(1)
            room = int64(output_vc(net, router * net.ports * net.vcs + first + v).credits)
            if level < best_level or room > best_room:
                best, best_level, best_room = int64(first + v), int64(level), room
    return best


@inner
def route_head(net: Net, queues: Queues, part: Part, route: Callable[..., int], n: int, now: int) -> None:
    """Compute the route of the first packet of input VC `n`; packets without one are taken out and counted."""
    queue = input_queue(queues, n)
    router, port = int64(queue.router), port_of(net, queue)
    while queue.length > 0:
        p = int64(queue.first)
        packet = packet_at(net, p)
        blank_candidates(net, 0)
        count = route(
            router,
            port,
            int64(queue.number) - port * net.vcs,
            packet,
            net,
            int32s(net.table),
            floats(net.memory),
            int64s(net.candidate),
        )
        packet.hops += 1
        if count == 1:
            packed = int64s(net.candidate)[0]
            output = candidate_port(packed) * net.vcs + trailing_zeros(uint64(candidate_mask(packed)))
            if candidate_mask(packed) & (candidate_mask(packed) - 1) != 0:
                output = choose_output(net, router, 1)
        else:
            output = choose_output(net, router, count)
        if output >= 0:
            m = router * net.ports * net.vcs + output
            prefetch(queues.output_queue + m * OUTPUT_QUEUE_BYTES)
            prefetch(net.output_vc + m * OUTPUT_VC_BYTES)
            queue.output = output
            ask(net, queues, part, queue)
            if net.log_event != 0:
                call_log(net.log_event, net, ROUTED, now, n, int64(m), (p << 2) | HEAD | TAIL)
            return
        take_first(queues, queue)
        put(line_at(queues.credit_line, queue.credit_line), now, int64(queue.credit_to) << 1)
        if net.log_event != 0:
            call_log(net.log_event, net, DRAINED, now, n, int64(-1), (p << 2) | HEAD | TAIL)
        net.flits_dropped += 1
        lose_packet(net, p, now)
    queue.output = -1


@inner
def leave(net: Net, queues: Queues, n: int, now: int) -> int:
    """Take the first packet out of input VC `n`, with credit and feedback upstream; returns it."""
    queue = input_queue(queues, n)
    p = take_first(queues, queue)
    if queue.length != 0:
        prefetch(net.packet + int64(queue.first) * PACKET_BYTES)
    line = line_at(queues.credit_line, queue.credit_line)
    place = put(line, now, int64(queue.credit_to) << 1)
    if net.feedback != 0 and queue.credit_to < net.output_vcs:
        packet = packet_at(net, p)
        wanted = _call_report(
            net.report,
            int64(queue.router),
            port_of(net, queue),
            packet,
            packet.part & ((1 << ELAPSED_BITS) - 1),
            net,
            int32s(net.table),
            floats(net.memory),
            note_at(line.put_notes, place),
        )
        if wanted != 0:
            int64s(line.put_entries)[place] |= 1
    return p


@inlined
def take_ports(matched: Any, count: int, i: int, o: int) -> bool:
    """Note input `i` and output `o` in `matched`, uint64[2, `count`], unless one of them is there already."""
    at, to = i >> 6, count + (o >> 6)
    if (matched[at] & bit_of(i)) | (matched[to] & bit_of(o)) != uint64(0):
        return False
    matched[at] |= bit_of(i)
    matched[to] |= bit_of(o)
    return True


@inlined
def match(net: Net, queues: Queues, part: Part, route: Callable[..., int], router: int, now: int) -> None:
    """One match of the crossbar of `router`: least recently used input VCs first."""
    first = router * net.ports * net.vcs
    order, age = int32s(queues.order), int64s(queues.age)
    count = 0
    for word in range(queues.words):
        at = router * queues.words + word
        rest = words(queues.requests)[at]
        while rest != uint64(0):
            number = (word << 6) + trailing_zeros(rest)
            rest &= rest - uint64(1)
            queue = input_queue(queues, first + number)
            m = first + int64(queue.output)
            if output_queue(queues, m).length >= queues.output_depth:
                words(queues.requests)[at] &= ~bit_of(number)
                words(queues.blocked)[m * queues.words + word] |= bit_of(number)
                queues.blocked_requests += 1
                continue
            prefetch(net.packet + int64(queue.first) * PACKET_BYTES)
            stamp = int64(queue.stamp)
            k = count
            while k > 0 and age[k - 1] > stamp:
                age[k], order[k] = age[k - 1], order[k - 1]
                k -= 1
            age[k], order[k] = stamp, number
            count += 1
    if count == 0:
        local = router - part.first_router
        words(part.asking)[local >> 6] &= ~bit_of(local)
        return
    queues.matches += 1
    granted = int32s(queues.granted)
    grants = 0
    wide = net.port_words > 1
    if wide:
        for k in range(2 * net.port_words):
            words(queues.matched)[k] = 0
    inputs, outputs = uint64(0), uint64(0)
    for k in range(count):
        n = first + int64(order[k])
        queue = input_queue(queues, n)
        m = first + int64(queue.output)
        output = output_queue(queues, m)
        i, o = port_of(net, queue), int64(output.number)
        if wide:
            if not take_ports(words(queues.matched), net.port_words, i, o):
                continue
        elif inputs & bit_of(i) != uint64(0) or outputs & bit_of(o) != uint64(0):
            continue
        inputs |= bit_of(i)
        outputs |= bit_of(o)
        queue.stamp = (now << STAMP_BITS) + grants
        granted[grants] = n
        grants += 1
        p = leave(net, queues, n, now)
        if net.log_event != 0:
            call_log(net.log_event, net, GRANTED, now, n, m, (p << 2) | HEAD | TAIL)
        append(queues, output, p)
        output_vc(net, m).credits -= 1
        if output.length == 1 and output.credits > 0:
            let_send(net, queues, part, output, now)
        if queues.wake_late != 0:
            wake(net, queues, part, int64(output.port), now)
    net.last_move = max(net.last_move, now)
    for k in range(grants):
        n = int64(granted[k])
        queue = input_queue(queues, n)
        if queue.length > 0:
            route_head(net, queues, part, route, n, now)
        else:
            queue.output = -1
        if queue.output < 0:
            number = int64(queue.number)
            words(queues.requests)[router * queues.words + (number >> 6)] &= ~bit_of(number)

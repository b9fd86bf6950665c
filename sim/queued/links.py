"""Links: what arrives in a cycle, and what output ports send."""

from collections.abc import Callable

from numba import int64, uint32, uint64

from hopforge.model.kernel.bits import bit_of, first_at_or_after, trailing_zeros
from hopforge.model.kernel.compile import inlined, inner
from hopforge.model.kernel.memory import floats, function_at, int32s, int64s, prefetch, words
from hopforge.model.network.core.event_log import call_log
from hopforge.model.network.core.kinds import HEAD, HOST_VC_BITS, HOST_VC_MASK, RECEIVED, TAIL
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.packet_ends import count_arrival
from hopforge.model.network.core.records import host_at, output_port, output_vc, packet_at
from hopforge.model.network.parts.feedback import LEARN_SIGNATURE
from hopforge.sim.queued.crossbar import OUTPUT_QUEUE_BYTES, OUTPUT_VC_BYTES, PACKET_BYTES, route_head
from hopforge.sim.queued.delay_lines import due, put
from hopforge.sim.queued.queue_lists import append, let_send, take_first, wake
from hopforge.sim.queued.records import (
    ELAPSED_BITS,
    INPUT_QUEUE,
    LINKED,
    Part,
    Queues,
    input_queue,
    line_at,
    nic_at,
    note_at,
    output_queue,
)

#: entries of a delay line ahead of time whose records are prefetched
AHEAD = 8
INPUT_QUEUE_BYTES = INPUT_QUEUE.itemsize
_call_learn = function_at(LEARN_SIGNATURE)


@inlined
def take_credits(net: Net, queues: Queues, part: Part, now: int) -> None:
    """Credits, and the feedback that travels with them, that count from this cycle on."""
    for k in range(part.first_line, part.first_line + queues.lines):
        line = line_at(queues.credit_line, k)
        for _ in range(due(line, now)):
            place = line.first & line.mask
            entry = int64s(line.entries)[place]
            if line.first + AHEAD < line.last:
                later = int64s(line.entries)[(line.first + AHEAD) & line.mask] >> 1
                if later < net.output_vcs:
                    prefetch(queues.output_queue + later * OUTPUT_QUEUE_BYTES)
                    prefetch(net.output_vc + later * OUTPUT_VC_BYTES)
            line.first += 1
            m = entry >> 1
            if m >= net.output_vcs:
                h = m - net.output_vcs
                nic = nic_at(queues, h)
                nic.credits = nic.credits + 1
                if nic.waiting != 0:
                    nic.waiting = 0
                    h -= part.first_host
                    words(part.due_hosts)[h >> 6] |= bit_of(h)
                continue
            if entry & 1 != 0:
                output = output_queue(queues, m)
                _call_learn(
                    net.learn,
                    int64(output.router),
                    int64(output.number),
                    int64(output.vc),
                    note_at(line.notes, place),
                    net,
                    int32s(net.table),
                    floats(net.memory),
                )
                net.notes += 1
            output = output_queue(queues, m)
            output.credits = output.credits + 1
            output_vc(net, m).credits += 1
            if output.credits == 1 and output.length > 0:
                let_send(net, queues, part, output, now)
            if queues.wake_late != 0:
                wake(net, queues, part, int64(output.port), now)


@inner
def receive(net: Net, queues: Queues, h: int, v: int, p: int, now: int) -> None:
    """Let host `h` take a packet: credit back at once, statistics, its record becomes free."""
    nic = nic_at(queues, h)
    put(line_at(queues.credit_line, nic.credit_line), now, int64(nic.output_vc + v) << 1)
    if net.log_event != 0:
        call_log(net.log_event, net, RECEIVED, now, h, v, (p << 2) | HEAD | TAIL)
    host_at(net, h).flits_received += 1
    net.flits_ejected += 1
    net.last_move = max(net.last_move, now)
    if packet_at(net, p).user1 != 0:
        queues.derouted += 1
    count_arrival(net, p, now, queues.bin_cycles)


@inlined
def take_packets(net: Net, queues: Queues, part: Part, route: Callable[..., int], now: int) -> None:
    """Packets that arrive in this cycle: into the input queue, or to the host."""
    for k in range(part.first_line, part.first_line + queues.lines):
        line = line_at(queues.packet_line, k)
        for _ in range(due(line, now)):
            entry = int64s(line.entries)[line.first & line.mask]
            if line.first + AHEAD < line.last:
                later = int64s(line.entries)[(line.first + AHEAD) & line.mask]
                prefetch(net.packet + (later & 0xFFFFFFFF) * PACKET_BYTES)
                if later >> 32 < net.input_vcs:
                    prefetch(queues.input_queue + (later >> 32) * INPUT_QUEUE_BYTES)
            line.first += 1
            target, p = entry >> 32, entry & 0xFFFFFFFF
            if target >= net.input_vcs:
                target -= net.input_vcs
                receive(net, queues, target >> HOST_VC_BITS, target & HOST_VC_MASK, p, now)
                continue
            packet = packet_at(net, p)
            packet.part = (now << ELAPSED_BITS) | min(now - (packet.part >> ELAPSED_BITS), (1 << ELAPSED_BITS) - 1)
            queue = input_queue(queues, target)
            append(queues, queue, p)
            if queue.length == 1:
                route_head(net, queues, part, route, target, now)


@inlined
def send(net: Net, queues: Queues, part: Part, q: int, now: int) -> None:
    """Send the next packet of output port `q`, which has one that may go."""
    port = output_port(net, q)
    v = first_at_or_after(uint64(port.free_mask), port.g)
    port.g = v + 1 if v + 1 < net.vcs else 0
    m = q * net.vcs + v
    output = output_queue(queues, m)
    p = take_first(queues, output)
    if net.log_event != 0:
        call_log(net.log_event, net, LINKED, now, m, m, (p << 2) | HEAD | TAIL)
    output.credits = output.credits - 1
    if output.length == 0 or output.credits == 0:
        port.free_mask = port.free_mask & ~(uint32(1) << uint32(v))
    port.flits += 1
    port.busy_until = now + queues.packet_cycles
    put(line_at(queues.free_line, part.free_line), now, q)
    put(line_at(queues.packet_line, output.packet_line), now, (int64(output.target) << 32) | p)
    net.last_move = max(net.last_move, now)
    if output.length + 1 == queues.output_depth:  # somebody may wait for this place
        router = int64(output.router)
        for word in range(queues.words):
            waiting = words(queues.blocked)[m * queues.words + word]
            if waiting != uint64(0):
                words(queues.requests)[router * queues.words + word] |= waiting
                words(queues.blocked)[m * queues.words + word] = 0
                local = router - part.first_router
                words(part.asking)[local >> 6] |= bit_of(local)


@inlined
def free_ports(queues: Queues, part: Part, now: int) -> None:
    """Ports whose link becomes free in this cycle may send."""
    line = line_at(queues.free_line, part.free_line)
    for _ in range(due(line, now)):
        q = int64s(line.entries)[line.first & line.mask] - part.first_port
        line.first += 1
        words(part.pending)[q >> 6] |= bit_of(q)


@inlined
def send_all(net: Net, queues: Queues, part: Part, now: int) -> None:
    """Let the ports send that may, if they have a packet and a credit for it."""
    for word in range(part.pending_words):
        ports = words(part.pending)[word]
        if ports != uint64(0):
            words(part.pending)[word] = 0
            while ports != uint64(0):
                q = part.first_port + (word << 6) + trailing_zeros(ports)
                ports &= ports - uint64(1)
                if output_port(net, q).free_mask != 0:
                    send(net, queues, part, q, now)

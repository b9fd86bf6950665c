"""The step function of input-output-queued routers, cycle by cycle as in docs/router-models.md.

Nothing is searched for: what may move in a cycle stands in delay lines (one per length of link: what was sent first
arrives first), in masks of requests, and in a calendar of hosts.
"""

from collections.abc import Callable
from typing import Any

from numba import int64, types, uint32, uint64

from hopforge.model.input_output_queued.records import (
    ELAPSED_BITS,
    INPUT_QUEUE,
    INTERVAL,
    INTERVAL_BITS,
    OUTPUT_QUEUE,
    QUEUES_RECORD,
    Queues,
    input_queue,
    line_at,
    nic_at,
    note_beside,
    output_queue,
)
from hopforge.model.network.bits import bit_of, first_at_or_after, trailing_zeros
from hopforge.model.network.cache import compile_cached, inlined, inner
from hopforge.model.network.candidates import candidate_level, candidate_mask, candidate_port
from hopforge.model.network.feedback import LEARN_SIGNATURE, REPORT_SIGNATURE
from hopforge.model.network.hooks import ARRIVED, CYCLE, DEPARTED, LOST, call_hook
from hopforge.model.network.memory import floats, function_at, int32s, int64s, prefetch, words
from hopforge.model.network.progress import stop_reason
from hopforge.model.network.records import (
    DONE,
    GROW,
    HISTOGRAM_BINS,
    HOST_VC_BITS,
    HOST_VC_MASK,
    NET_RECORD,
    OUTPUT_PORT,
    OUTPUT_VC,
    PACKET,
    PATTERN_SIGNATURE,
    PROGRAM,
    ROUTE_SIGNATURE,
    Net,
    host_at,
    output_port,
    output_vc,
    packet_at,
)
from hopforge.model.network.sources import create_packet

#: a cycle after all others
NEVER = 1 << 62
#: entries of a delay line ahead of time whose records are prefetched
AHEAD = 8
INPUT_QUEUE_BYTES, OUTPUT_QUEUE_BYTES = INPUT_QUEUE.itemsize, OUTPUT_QUEUE.itemsize
OUTPUT_VC_BYTES, OUTPUT_PORT_BYTES, PACKET_BYTES = OUTPUT_VC.itemsize, OUTPUT_PORT.itemsize, PACKET.itemsize
_call_report, _call_learn = function_at(REPORT_SIGNATURE), function_at(LEARN_SIGNATURE)


@inlined
def put(line: Queues, now: int, what: int) -> int:
    """Put an entry into a delay line; returns its place."""
    place = line.last & line.mask
    int64s(line.entries)[place] = what
    line.last += 1
    int32s(line.counts)[(now + line.delay) & line.count_mask] += 1
    return place


@inlined
def due(line: Queues, now: int) -> int:
    """Count the entries of a delay line that come out in cycle `now` (asked once)."""
    slot = now & line.count_mask
    count = int64(int32s(line.counts)[slot])
    int32s(line.counts)[slot] = 0
    return count


@inlined
def append(queues: Queues, queue: Queues, p: int) -> None:
    """Put packet `p` behind all others of an input or output queue."""
    if queue.length == 0:
        queue.first = p
    else:
        int32s(queues.following)[queue.last] = p
    queue.last = p
    queue.length = queue.length + 1


@inlined
def take_first(queues: Queues, queue: Queues) -> int:
    """Take the first packet out of an input or output queue, which must have one; returns it."""
    p = int64(queue.first)
    queue.length = queue.length - 1
    if queue.length != 0:
        queue.first = int32s(queues.following)[p]
    return p


@inlined
def number_of(net: Net, queue: Queues) -> int:
    """Port · V + VC of an input queue."""
    return int64(queue.port) * net.vcs + int64(queue.vc)


@inlined
def ask(net: Net, queues: Queues, queue: Queues) -> None:
    """Let the first packet of an input VC ask for the crossbar."""
    number = number_of(net, queue)
    words(queues.requests)[int64(queue.router) * queues.words + (number >> 6)] |= bit_of(number)
    words(queues.asking)[queue.router >> 6] |= bit_of(queue.router)


@inlined
def let_send(net: Net, queues: Queues, output: Queues, now: int) -> None:
    """Note that an output queue has a packet and a credit."""
    q = int64(output.port)
    port = output_port(net, q)
    port.free_mask = port.free_mask | (uint32(1) << uint32(output.vc))
    if port.busy_until <= now:
        words(queues.pending)[q >> 6] |= bit_of(q)


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
def route_head(net: Net, queues: Queues, route: Callable[..., int], n: int, now: int) -> None:
    """Compute the route of the first packet of input VC `n`; packets without one are taken out and counted."""
    queue = input_queue(queues, n)
    router = int64(queue.router)
    while queue.length > 0:
        p = int64(queue.first)
        packet = packet_at(net, p)
        count = route(
            router,
            int64(queue.port),
            int64(queue.vc),
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
            queue.output_port = output // net.vcs
            ask(net, queues, queue)
            return
        take_first(queues, queue)
        put(line_at(queues.credit_line, queue.credit_line), now, int64(queue.credit_to) << 1)
        net.flits_dropped += 1
        net.packets_dropped += 1
        if net.messages != 0:
            call_hook(net.messages, net, LOST, p, now)
        int32s(net.free_packet)[net.free_packets] = p
        net.free_packets += 1
    queue.output = -1


@inlined
def take_credits(net: Net, queues: Queues, now: int) -> None:
    """Credits, and the feedback that travels with them, that count from this cycle on."""
    for k in range(queues.credit_lines):
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
                    words(queues.due_hosts)[h >> 6] |= bit_of(h)
                continue
            if entry & 1 != 0:
                output = output_queue(queues, m)
                _call_learn(
                    net.learn,
                    int64(output.router),
                    int64(output.number),
                    int64(output.vc),
                    note_beside(line, place),
                    net,
                    int32s(net.table),
                    floats(net.memory),
                )
                net.notes += 1
            output = output_queue(queues, m)
            output.credits = output.credits + 1
            output_vc(net, m).credits += 1
            if output.credits == 1 and output.length > 0:
                let_send(net, queues, output, now)


@inner
def receive(net: Net, queues: Queues, h: int, v: int, p: int, now: int) -> None:
    """Let host `h` take a packet: credit back at once, statistics, its record becomes free."""
    nic = nic_at(queues, h)
    put(line_at(queues.credit_line, nic.credit_line), now, int64(nic.output_vc + v) << 1)
    host_at(net, h).flits_received += 1
    net.flits_ejected += 1
    net.last_move = now
    packet = packet_at(net, p)
    latency = now - packet.created
    net.packets_ejected += 1
    net.measured += 1
    net.latency_sum += latency
    net.network_latency_sum += now - packet.sent
    net.hops_sum += packet.hops
    net.latency_max = max(net.latency_max, latency)
    net.latency_min = min(net.latency_min, latency)
    int64s(net.histogram)[min(latency // queues.bin_cycles, HISTOGRAM_BINS - 1)] += 1
    if packet.user1 != 0:
        queues.derouted += 1
    if net.messages != 0:
        call_hook(net.messages, net, ARRIVED, p, now)
    int32s(net.free_packet)[net.free_packets] = p
    net.free_packets += 1


@inlined
def take_packets(net: Net, queues: Queues, route: Callable[..., int], now: int) -> None:
    """Packets that arrive in this cycle: into the input queue, or to the host."""
    for k in range(queues.packet_lines):
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
            packet.unused = (now << ELAPSED_BITS) | min(now - (packet.unused >> ELAPSED_BITS), (1 << ELAPSED_BITS) - 1)
            queue = input_queue(queues, target)
            append(queues, queue, p)
            if queue.length == 1:
                route_head(net, queues, route, target, now)


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
            int64(queue.port),
            packet,
            packet.unused & ((1 << ELAPSED_BITS) - 1),
            net,
            int32s(net.table),
            floats(net.memory),
            note_beside(line, place),
        )
        if wanted != 0:
            int64s(line.entries)[place] |= 1
    return p


@inlined
def match(net: Net, queues: Queues, route: Callable[..., int], router: int, now: int) -> None:
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
        words(queues.asking)[router >> 6] &= ~bit_of(router)
        return
    queues.matches += 1
    granted = int32s(queues.granted)
    grants = 0
    inputs, outputs = uint64(0), uint64(0)
    for k in range(count):
        n = first + int64(order[k])
        queue = input_queue(queues, n)
        if inputs & bit_of(queue.port) != uint64(0) or outputs & bit_of(queue.output_port) != uint64(0):
            continue
        inputs |= bit_of(queue.port)
        outputs |= bit_of(queue.output_port)
        queue.stamp = (now << 6) + grants
        granted[grants] = n
        grants += 1
        p = leave(net, queues, n, now)
        m = first + int64(queue.output)
        output = output_queue(queues, m)
        append(queues, output, p)
        output_vc(net, m).credits -= 1
        if output.length == 1 and output.credits > 0:
            let_send(net, queues, output, now)
    net.last_move = now
    for k in range(grants):
        n = int64(granted[k])
        queue = input_queue(queues, n)
        if queue.length > 0:
            route_head(net, queues, route, n, now)
        else:
            queue.output = -1
        if queue.output < 0:
            number = number_of(net, queue)
            words(queues.requests)[router * queues.words + (number >> 6)] &= ~bit_of(number)


@inlined
def send(net: Net, queues: Queues, q: int, now: int) -> None:
    """Send the next packet of output port `q`, which has one that may go."""
    port = output_port(net, q)
    v = first_at_or_after(uint64(port.free_mask), port.g)
    port.g = v + 1 if v + 1 < net.vcs else 0
    m = q * net.vcs + v
    output = output_queue(queues, m)
    p = take_first(queues, output)
    output.credits = output.credits - 1
    if output.length == 0 or output.credits == 0:
        port.free_mask = port.free_mask & ~(uint32(1) << uint32(v))
    port.flits += 1
    port.busy_until = now + queues.packet_cycles
    put(line_at(queues.free_line, 0), now, q)
    put(line_at(queues.packet_line, output.packet_line), now, (int64(output.target) << 32) | p)
    net.last_move = now
    if output.length + 1 == queues.output_depth:  # somebody may wait for this place
        router = int64(output.router)
        for word in range(queues.words):
            waiting = words(queues.blocked)[m * queues.words + word]
            if waiting != uint64(0):
                words(queues.requests)[router * queues.words + word] |= waiting
                words(queues.blocked)[m * queues.words + word] = 0
                words(queues.asking)[router >> 6] |= bit_of(router)


@inlined
def free_ports(net: Net, queues: Queues, now: int) -> None:
    """Ports whose link becomes free in this cycle may send."""
    line = line_at(queues.free_line, 0)
    for _ in range(due(line, now)):
        q = int64s(line.entries)[line.first & line.mask]
        if line.first + AHEAD < line.last:
            prefetch(net.output_port + int64s(line.entries)[(line.first + AHEAD) & line.mask] * OUTPUT_PORT_BYTES)
        line.first += 1
        words(queues.pending)[q >> 6] |= bit_of(q)


@inlined
def ready_ports(net: Net, queues: Queues) -> int:
    """List the ports that send in this cycle in ``queues.ready``; returns how many."""
    count = 0
    for word in range(queues.port_words):
        ports = words(queues.pending)[word]
        if ports != uint64(0):
            words(queues.pending)[word] = 0
            while ports != uint64(0):
                q = (word << 6) + trailing_zeros(ports)
                ports &= ports - uint64(1)
                port = output_port(net, q)
                if port.free_mask != 0:
                    v = first_at_or_after(uint64(port.free_mask), port.g)
                    prefetch(queues.output_queue + (q * net.vcs + v) * OUTPUT_QUEUE_BYTES)
                    int32s(queues.ready)[count] = q
                    count += 1
    return count


@inlined
def wake_at(net: Net, queues: Queues, h: int, when: int, now: int) -> None:
    """Let host `h` look for a packet in cycle `when`.

    In the calendar a slot comes round more often than a far time, which is then entered again; ranks of a program, who
    skip cycles and have no times to tell, use `host_wake`.
    """
    if net.source_kind == PROGRAM:
        int64s(net.host_wake)[h] = when
        return
    slot = min(when, now + queues.calendar_mask) & queues.calendar_mask
    nic_at(queues, h).next = int32s(queues.calendar)[slot]
    int32s(queues.calendar)[slot] = h


@inlined
def wake_hosts(net: Net, queues: Queues, now: int) -> None:
    """Find the hosts that look for a packet in this cycle."""
    if net.source_kind == PROGRAM:
        for k in range(net.hosts):
            if int64s(net.host_wake)[k] <= now:
                int64s(net.host_wake)[k] = NEVER
                words(queues.due_hosts)[k >> 6] |= bit_of(k)
        return
    slot = now & queues.calendar_mask
    h: Any = int64(int32s(queues.calendar)[slot])
    int32s(queues.calendar)[slot] = -1
    while h >= 0:
        words(queues.due_hosts)[h >> 6] |= bit_of(h)
        h = int64(nic_at(queues, h).next)


@inlined
def next_creation(net: Net, queues: Queues, h: int) -> int:
    """When the next packet of host `h` comes into the queue of its NIC."""
    if net.source_kind != INTERVAL:
        return int64(host_at(net, h).next_time)
    if host_at(net, h).stopped != 0:
        return NEVER
    nic = nic_at(queues, h)
    return max(nic.due >> INTERVAL_BITS, int64s(queues.departures)[h * queues.nic_depth + nic.place])


@inlined
def inject(net: Net, queues: Queues, pattern: Callable[..., int], h: int, now: int) -> None:
    """Send a packet of host `h`, if there is one and it can be sent in this cycle."""
    nic = nic_at(queues, h)
    host = host_at(net, h)
    created = next_creation(net, queues, h)
    when = max(created, int64(nic.busy_until))
    if when > now:
        wake_at(net, queues, h, when, now)
        return
    if nic.credits == 0:
        nic.waiting = 1
        return
    if net.source_kind == INTERVAL:
        host.next_time = created
    create_packet(net, pattern, h)
    if net.source_kind == INTERVAL:
        int64s(queues.departures)[h * queues.nic_depth + nic.place] = now
        nic.place = nic.place + 1 if nic.place + 1 < queues.nic_depth else 0
        nic.due = max(nic.due, created << INTERVAL_BITS) + queues.interval
    p = int64(host.packet)
    host.packet = -1
    if net.messages != 0:
        call_hook(net.messages, net, DEPARTED, p, now)
    packet = packet_at(net, p)
    packet.sent = now
    nic.credits = nic.credits - 1
    nic.busy_until = now + queues.packet_cycles
    host.flits_sent += 1
    net.flits_injected += 1
    net.last_move = now
    put(line_at(queues.packet_line, nic.packet_line), now, (int64(nic.target) << 32) | p)
    wake_at(net, queues, h, max(int64(nic.busy_until), next_creation(net, queues, h)), now)


def _make_run_cycles(digest: str) -> Callable[..., int]:
    def run_cycles(
        route: Callable[..., int], pattern: Callable[..., int], net: Net, queues: Queues, cycles: int
    ) -> int:
        """Simulate up to `cycles` cycles.

        Parameters
        ----------
        route, pattern : function
            Routing algorithm (`ROUTE_SIGNATURE`) and traffic pattern (`PATTERN_SIGNATURE`).
        net, queues : record
            State, changed in place.
        cycles : int
            How many.

        Returns
        -------
        int
            DONE, GROW, DEADLOCK, FINISHED or STUCK as in `model.network.kernel`.
        """
        if len(digest) == 0:  # mentions the digest: see model.network.cache
            return DONE
        end = net.cycle + cycles
        while net.cycle < end:
            if net.free_packets < net.hosts:
                return GROW
            now = int64(net.cycle)
            take_credits(net, queues, now)
            take_packets(net, queues, route, now)
            if net.source_kind == PROGRAM:
                wake = call_hook(net.messages, net, CYCLE, now, now)
                if wake < 0:
                    return -wake
                if wake > now:
                    net.cycle = wake  # all ranks compute: perhaps beyond the end
                    continue
            if now % queues.match_cycles == 0:
                for word in range(net.router_words):
                    routers = words(queues.asking)[word]
                    while routers != uint64(0):
                        router = (word << 6) + trailing_zeros(routers)
                        routers &= routers - uint64(1)
                        match(net, queues, route, router, now)
            free_ports(net, queues, now)
            for k in range(ready_ports(net, queues)):
                send(net, queues, int64(int32s(queues.ready)[k]), now)
            wake_hosts(net, queues, now)
            for word in range(queues.host_words):
                hosts = words(queues.due_hosts)[word]
                if hosts != uint64(0):
                    words(queues.due_hosts)[word] = 0
                    while hosts != uint64(0):
                        inject(net, queues, pattern, (word << 6) + trailing_zeros(hosts), now)
                        hosts &= hosts - uint64(1)
            net.cycle = now + 1
            reason = stop_reason(net, now)
            if reason != DONE:
                return reason
        return DONE

    return run_cycles


#: the compiled step function
run_cycles = compile_cached(
    _make_run_cycles,
    int64(types.FunctionType(ROUTE_SIGNATURE), types.FunctionType(PATTERN_SIGNATURE), NET_RECORD, QUEUES_RECORD, int64),
    __package__,
)

"""What becomes visible at the start of a cycle: credits, flits in their FIFOs or at hosts, heads with their routes.

A branch that is guessed wrongly takes as long as fifty instructions. Whether a flit comes to a host and whether it is a
head cannot be guessed, so flits are sorted into lists first, without branches.
"""

from collections.abc import Callable
from typing import Any

from numba import int32, int64, uint64

from hopforge.model.kernel.compile import inlined, inner
from hopforge.model.kernel.memory import floats, int32s, int64s, prefetch
from hopforge.model.network.core.candidates import blank_candidates
from hopforge.model.network.core.events import accept, answer_ahead, end_routing, receive, start_routing, take_credit
from hopforge.model.network.core.kinds import ACTIVE, AHEAD_ENGINES, IDLE, RC
from hopforge.model.network.core.loads_ahead import (
    AHEAD,
    CHUNK,
    OUTPUT_VC_BYTES,
    SPARSE,
    load_arrival,
    load_event,
    load_flit,
    load_heads,
    load_place,
)
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import fifo_of, input_vc, output_vc, packet_at, vc_in_port
from hopforge.model.network.core.switch_requests import want_switch


@inner
def decide_ahead(net: Net, route: Callable[..., int]) -> None:
    """Let heads that the switch has sent decide for their next router, by its queues; their candidates are not kept."""
    place = net.candidate + net.input_vcs * net.candidate_bytes
    for k in range(net.heads_sent_count):
        n = int64s(net.heads_sent)[k] >> 32
        packet, vc = packet_at(net, int64s(net.heads_sent)[k] & 0xFFFFFFFF), input_vc(net, n)
        if packet.dst >= net.hosts:
            continue  # an acknowledge has its own way
        blank_candidates(net, (net.input_vcs * net.candidate_bytes) >> 3)
        route(
            int64(vc.router),
            int64(vc.port) - int64(vc.router) * net.ports,
            vc_in_port(net, vc),
            packet,
            net,
            int32s(net.table),
            floats(net.memory),
            int64s(place),
        )
    net.heads_sent_count = 0


@inlined
def sort_events(net: Net, events: Any, count: int, first_vc: int, vcs: int, to_hosts: int) -> tuple[Any, int]:
    """Let those of the first `count` events that come to the `vcs` input VCs from `first_vc` on close up.

    Those that come to hosts are added to the `to_hosts` of ``to_hosts``. Returns how many there are of both.
    """
    hosts = int64s(net.to_hosts)
    inside = int64(0)
    for k in range(count):
        event = int64(events[k])
        n = event >> 32
        events[inside] = event
        inside += int64(uint64(n - first_vc) < uint64(vcs))
        hosts[to_hosts] = event
        to_hosts += int64(n >= net.input_vcs)
    return inside, to_hosts


@inlined
def accept_events(net: Net, events: Any, begin: int, end: int, last: int, heads: int) -> int:
    """Write the flits of events number `begin` up to, but without, `end` of `last` into their FIFOs.

    Heads with nothing before them are added to the `heads` of ``heads_next``, whose new number is returned; behind
    other flits their VC may ask for the switch.
    """
    heads_next, bodies = int32s(net.heads_next), int32s(net.bodies)
    count = int64(0)
    for k in range(begin, end):
        if k + AHEAD < last:
            load_flit(net, int64(events[k + AHEAD]))
        if net.fifo_apart != 0 and k + AHEAD // 2 < last:
            load_place(net, int64(events[k + AHEAD // 2]))
        event = int64(events[k])
        n = event >> 32
        vc = input_vc(net, n)
        before, idle = int64(vc.flits), int64(vc.state == IDLE)
        place = int64(vc.head) + before
        if place >= net.buffer:
            place -= net.buffer
        fifo_of(net, n)[place] = int32(event & 0xFFFFFFFF)
        vc.flits = before + 1
        heads_next[heads] = n
        heads += idle & int64(before == 0)  # else the head before it is in the list
        bodies[count] = n
        count += 1 - idle
    for k in range(count):
        n = int64(bodies[k])
        vc = input_vc(net, n)
        want_switch(net, n, uint64(vc.state == ACTIVE) & uint64(output_vc(net, int64(vc.out_vc)).credits > 0))
    return heads


@inlined
def take_events(
    net: Net, route: Callable[..., int], events: Any, count: int, first_vc: int, vcs: int, heads: int, to_hosts: int,
    now: int,
) -> int:  # fmt: skip
    """RC of the first `heads` of ``heads_next``, then arrivals of the first `count` events, in their order.

    Of these as `sort_events`. Returns how many are in ``to_hosts``. Where a head may meet more than a table
    (``unusual``) one comes after the other.
    """
    begin: Any = int64(0)
    rest = count
    if net.unusual == 0:
        count, to_hosts = sort_events(net, events, count, first_vc, vcs, to_hosts)
        rest = 0
    while True:
        if net.unusual == 0:
            end = min(begin + CHUNK, count)
            heads = accept_events(net, events, begin, end, count, heads)
            begin = end
        for k in range(-heads, rest):  # in one loop: RC is compiled once
            n = int64(0)
            if k < 0:
                if net.far != 0:
                    load_heads(net, int32s(net.heads_next), heads + k, heads)
                n = int64(int32s(net.heads_next)[heads + k])
            else:
                if k + AHEAD < rest:
                    load_event(net, int64(events[k + AHEAD]))
                if net.fifo_apart != 0 and k + AHEAD // 2 < rest:
                    load_place(net, int64(events[k + AHEAD // 2]))
                event = int64(events[k])
                n = event >> 32
                flit = event & 0xFFFFFFFF
                if n >= net.input_vcs:
                    receive(net, n - net.input_vcs, flit, now)
                    continue
                if uint64(n - first_vc) >= uint64(vcs) or not accept(net, n, flit, now):
                    continue
            start_routing(net, route, n, now)
        if net.unusual != 0 or begin == count:
            return to_hosts
        heads = 0


@inlined
def receive_all(net: Net, to_hosts: int, now: int) -> None:
    """Let the first `to_hosts` flits of ``to_hosts`` come to their hosts."""
    for k in range(to_hosts):
        if k + AHEAD < to_hosts:
            load_arrival(net, int64s(net.to_hosts)[k + AHEAD])
        event = int64s(net.to_hosts)[k]
        receive(net, (event >> 32) - net.input_vcs, event & 0xFFFFFFFF, now)


@inlined
def deliver(net: Net, route: Callable[..., int], now: int) -> None:
    """Everything that becomes visible at the start of cycle `now`."""
    if net.heads_sent_count != 0:
        decide_ahead(net, route)
    slot = now & net.wheel_mask
    first = slot * net.event_capacity
    for k in range(int32s(net.credit_events)[slot]):
        if k + AHEAD < int32s(net.credit_events)[slot]:
            # also of a host's VC, where it loads something else: a branch would be mispredicted
            prefetch(net.output_vc + int64(int32s(net.credit_event)[first + k + AHEAD]) * OUTPUT_VC_BYTES)
        take_credit(net, int64(int32s(net.credit_event)[first + k]))
    int32s(net.credit_events)[slot] = 0
    heads, flits = int64(net.heads_count), int64(int32s(net.flit_events)[slot])
    net.heads_count = 0
    net.sparse = int64(flits < SPARSE) & net.far
    events = int64s(net.flit_event + 8 * first)
    to_hosts = take_events(net, route, events, flits, int64(0), int64(net.input_vcs), heads, int64(0), now)
    receive_all(net, to_hosts, now)
    int32s(net.flit_events)[slot] = 0
    for k in range(int32s(net.ready_events)[slot]):
        n = int64(int32s(net.ready_event)[slot * net.event_capacity + k])
        if net.lookahead == AHEAD_ENGINES and input_vc(net, n).state != RC:
            answer_ahead(net, n)
        else:
            end_routing(net, n)
    int32s(net.ready_events)[slot] = 0

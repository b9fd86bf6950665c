"""SA with several crossbar ports, iterations or steps in a cycle, or a crossbar of several cycles (router.md)."""

from typing import Any

from numba import int64, uint64

from hopforge.model.kernel.bits import bit_of
from hopforge.model.kernel.compile import c_kernel, inlined, inner
from hopforge.model.kernel.memory import int64s
from hopforge.model.network.core.hooks import HOOK_SIGNATURE
from hopforge.model.network.core.kinds import ACTIVE
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import input_vc, output_port, router_at
from hopforge.model.network.core.switch_allocation import vcs_that_ask
from hopforge.model.network.parts.connections import (
    any_connected,
    connected_to,
    is_closed,
    mark_connected,
    set_connected,
)
from hopforge.model.network.parts.crossbar_match import gather_requests, match_crossbar, vc_of_pair
from hopforge.model.network.parts.output_queues import can_take, send_queued
from hopforge.model.network.parts.port_masks import any_asks
from hopforge.model.network.parts.switch_match import collect_requests, enter_requests, match_ports, move_pointers


@inlined
def send_matched(net: Net, router: int, e: int, f: int, v: int, now: int) -> None:
    """Send a flit of VC `v` from crossbar input `e` to crossbar output `f`, which stay connected if they are held."""
    ports, ins, outs = net.ports, net.input_speedup, net.output_speedup
    i, o = e // ins, f // outs
    send_queued(net, router, i, v, o, now)
    if net.speculation != 0:  # nobody speculates there in this step
        first = router * ports * (ins + outs)
        int64s(net.crossbar_step)[first + e] = net.steps + 1
        int64s(net.crossbar_step)[first + ports * ins + f] = net.steps + 1
    if net.hold_switch != 0:
        vc = input_vc(net, (router * ports + i) * net.vcs + v)
        more = vc.state == ACTIVE and vc.flits > 0
        set_connected(net, router, e, 1 + f * net.vcs + v if more else 0)


@inner
def serve_connected(net: Net, router: int, now: int) -> None:
    """Send a flit over every connection, or end it where the VC has no flit or credit, or the output is full."""
    mark_connected(net, router)
    if not any_connected(net, router):
        return
    for e in range(net.ports * net.input_speedup):
        held = int64(connected_to(net, router, e)) - 1
        if held < 0:
            continue
        f = held // net.vcs
        v = held - f * net.vcs
        i, p = e // net.input_speedup, router * net.ports + f // net.output_speedup
        if net.output_queues == 0 and output_port(net, p).busy_until > now:
            continue
        if vcs_that_ask(net, p, i) & bit_of(v) != uint64(0) and can_take(net, p, now):
            send_matched(net, router, e, f, v, now)
        else:
            set_connected(net, router, e, 0)


@inner
def without_closed(net: Net, router: int, requests: int, now: int) -> Any:
    """Keep the requests of `collect_requests` whose ports can take part; returns their number."""
    match_input, match_output, match_vc = int64s(net.match_input), int64s(net.match_output), int64s(net.match_vc)
    kept = int64(0)
    for k in range(requests):
        i, o = match_input[k], match_output[k]
        if not is_closed(net, i, o) and can_take(net, router * net.ports + o, now):
            match_input[kept], match_output[kept], match_vc[kept] = i, o, match_vc[k]
            kept += 1
    return kept


@inlined
def match_other(net: Net, many: int, router: int, now: int) -> None:
    """SA of one router in a step of cycle `now` with one crossbar port each, by any allocator and arbiters."""
    match_input, match_output, match_vc = int64s(net.match_input), int64s(net.match_output), int64s(net.match_vc)
    requests, _ = collect_requests(net, many, router, now)
    requests = without_closed(net, router, requests, now)
    if requests == 0:
        return
    pairs = match_ports(net, many, router, enter_requests(net, many, router, requests), 0)
    for k in range(pairs):
        i, o, v = match_input[k], match_output[k], match_vc[k]
        move_pointers(net, router, i, v, o, 0, net.steps)
        send_matched(net, router, i, o, v, now)
    state = router_at(net, router)
    state.sa_diagonal = (state.sa_diagonal + 1) % state.turn_ports


@inlined
def match_sped(net: Net, many: int, router: int, now: int) -> None:
    """SA of one router in a step of cycle `now` between crossbar ports."""
    pairs = match_crossbar(net, many, router, gather_requests(net, many, router, now), 0)
    for k in range(pairs):
        e, f = int64s(net.match_input)[k], int64s(net.match_output)[k]
        send_matched(net, router, e, f, vc_of_pair(net, many, router, e, f), now)


@inlined
def sped_match_routers(net: Net, many: int, first: int, end: int, now: int) -> int:
    """SA of routers `first` up to, but without, `end`."""
    for router in range(first, end):
        connected = any_connected(net, router)
        if net.hold_switch != 0:
            serve_connected(net, router, now)
        if connected or any_asks(net, many, router):
            if net.between_ports != 0:
                match_sped(net, many, router, now)
            else:
                match_other(net, many, router, now)
    return 0


@c_kernel(HOOK_SIGNATURE)
def sped_match(net: Net, first: int, end: int, now: int) -> int:
    """Serve routers whose masks of ports are one word: the hook `switch_match`."""
    return sped_match_routers(net, 1, first, end, now)


@c_kernel(HOOK_SIGNATURE)
def sped_match_words(net: Net, first: int, end: int, now: int) -> int:
    """Serve any routers: the hook `switch_match`."""
    return sped_match_routers(net, net.port_words, first, end, now)

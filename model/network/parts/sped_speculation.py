"""Speculative switch requests beside speedups and crossbars of several cycles (router.md, speculation)."""

from typing import Any

from numba import int64, uint64

from hopforge.model.kernel.bits import bit_of
from hopforge.model.kernel.compile import c_kernel, inlined, inner
from hopforge.model.kernel.memory import int8s, int32s, int64s
from hopforge.model.network.core.hooks import HOOK_SIGNATURE, MATCH
from hopforge.model.network.core.kinds import (
    ACTIVE,
    FAIR_WAVEFRONT,
    INPUT_FIRST,
    INPUT_FIRST_PORTS,
    LONELY,
    OUTPUT_FIRST,
)
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import input_port, input_vc, output_vc, router_at, vc_in_port
from hopforge.model.network.core.switch_allocation import vcs_that_ask
from hopforge.model.network.parts.connections import any_connected, is_closed, mark_connected
from hopforge.model.network.parts.crossbar_match import (
    clear_best,
    diagonal_size,
    enter_best,
    enter_request,
    gather_requests,
    match_crossbar,
    pointers_of,
    turns_of,
    vc_of_pair,
)
from hopforge.model.network.parts.lonely_match import step_on
from hopforge.model.network.parts.output_queues import can_take
from hopforge.model.network.parts.port_masks import any_asks, place_of, word_of
from hopforge.model.network.parts.shared_switch import any_credit
from hopforge.model.network.parts.speculation import match_speculative
from hopforge.model.network.parts.sped_switch import send_matched, serve_connected
from hopforge.model.network.parts.switch_match import ask, forget_requests, is_asked, move_pointers, note_recent


@inlined
def end_of_heads(net: Net, router: int, first: int) -> Any:
    """Where the heads of a router end in ``net.spec_vc`` that begin at `first`, at the latest."""
    last = int64(first)
    while last < net.speculative and int32s(net.spec_vc)[last] < (router + 1) * net.ports * net.vcs:
        last += 1
    return last


@inlined
def crossbar_ports(net: Net, router: int, j: int) -> tuple[Any, Any, Any, Any]:
    """Crossbar input and output, VC and global output port of head number `j` of ``net.spec_vc``."""
    vc = input_vc(net, int32s(net.spec_vc)[j])
    i, v, o = int64(input_port(net, vc.port).port), vc_in_port(net, vc), int64(int32s(net.spec_port)[j])
    e = i * net.input_speedup + v % net.input_speedup
    return e, o * net.output_speedup + i % net.output_speedup, v, router * net.ports + o


@inlined
def stands_back(net: Net, many: int, requested: Any, e: int, f: int) -> bool:
    """Whether another request is before that of a head: for its output, or with `input_first_ports` of its input."""
    if net.sa_kind == OUTPUT_FIRST:
        return bool(word_of(requested, net.requested, many, f >> 6) & bit_of(f) != uint64(0))
    found = False
    for o in range(net.ports * net.output_speedup):
        found = found or is_asked(net, many, e, o)
    return found


@inlined
def yield_heads(net: Net, many: int, router: int, first: int, last: int, now: int) -> None:
    """Take the VCs from heads `first` … `last` − 1 of ``net.spec_vc`` that stand back (``speculation: yielding``)."""
    requested = gather_requests(net, many, router, now)
    for j in range(first, last):
        e, f, _, _ = crossbar_ports(net, router, j)
        if stands_back(net, many, requested, e, f):
            int32s(net.spec_mask)[j] = 0
    forget_requests(net, many, requested)


@inner
def match_heads(net: Net, many: int, yielding: int, now: int) -> None:
    """Second switch allocator: match crossbar ports of the heads that ask VA in this step.

    The matches replace the requests in ``net.spec_vc`` and ``net.spec_port``.
    """
    ports, vcs = net.ports, net.vcs
    net.spec_matches = 0
    position = int64(0)
    while position < net.speculative:
        router = int64(input_vc(net, int32s(net.spec_vc)[position]).router)
        turn, requested = int32s(turns_of(net, router)), uint64(0)
        if net.sa_kind == INPUT_FIRST:
            clear_best(net)
        if net.hold_switch != 0:
            mark_connected(net, router)
        last = end_of_heads(net, router, position)
        if yielding != 0:
            yield_heads(net, many, router, position, last, now)
        for j in range(position, last):
            e, f, v, p = crossbar_ports(net, router, j)
            if yielding != 0 and not any_credit(net, p, int32s(net.spec_mask)[j]):
                continue
            if not is_closed(net, e, f) and can_take(net, p, now):
                requested = enter_request(net, many, requested, e, v, f, int64(turn[e]))
        position = last
        if net.sa_kind == INPUT_FIRST:
            requested = enter_best(net, many, requested)
        pairs = match_crossbar(net, many, router, requested, 1)
        for k in range(pairs):
            e, f = int64s(net.match_input)[k], int64s(net.match_output)[k]
            v = int64(int8s(net.representative)[place_of(many, e, f)])
            int32s(net.spec_vc)[net.spec_matches] = (router * ports + e // net.input_speedup) * vcs + v
            int32s(net.spec_port)[net.spec_matches] = f // net.output_speedup
            net.spec_matches += 1


@inlined
def move_second(net: Net, router: int, e: int, f: int, v: int, now: int) -> None:
    """Move the pointers of the second allocator, and that to the VCs of crossbar input `e`, with a grant."""
    ports, ins, outs = net.ports, net.input_speedup, net.output_speedup
    if net.between_ports == 0:
        move_pointers(net, router, e, v, f, 1, net.steps)
        return
    int32s(turns_of(net, router))[e] = v + ins if v + ins < net.vcs else v + ins - net.vcs
    if net.matrix != 0 and (net.sa_kind <= OUTPUT_FIRST or net.sa_kind == INPUT_FIRST_PORTS):
        note_recent(net, router, e, f, 1, net.steps)
        return
    pointers = pointers_of(net, router, 1)
    if net.sa_kind == LONELY:
        step_on(net, router, pointers, e, f)
        return
    int32s(net.crossbar_pointer)[pointers + f] = e + 1 if e + 1 < ports * ins else 0
    int32s(net.crossbar_pointer)[pointers + ports * outs + e] = f + 1 if f + 1 < ports * outs else 0


@inner
def grant_heads(net: Net, now: int) -> None:
    """Carry out the speculative matches that no other grant of the step and no failed VA stands against."""
    ports, ins, outs = net.ports, net.input_speedup, net.output_speedup
    for k in range(net.spec_matches):
        vc = input_vc(net, int32s(net.spec_vc)[k])
        router = int64(vc.router)
        e, f, v, _ = crossbar_ports(net, router, k)
        first = router * ports * (ins + outs)
        taken = int64s(net.crossbar_step)
        if taken[first + e] == net.steps + 1 or taken[first + ports * ins + f] == net.steps + 1:
            continue
        if vc.state != ACTIVE or output_vc(net, vc.out_vc).credits <= 0:
            continue
        state = router_at(net, router)
        if net.sa_kind > OUTPUT_FIRST and state.spec_cycle != net.steps:
            state.spec_cycle = net.steps
            before = e + f if net.sa_kind == FAIR_WAVEFRONT else int64(state.spec_diagonal)
            state.spec_diagonal = (before + 1) % diagonal_size(net, router)
        move_second(net, router, e, f, v, now)
        send_matched(net, router, e, f, v, now)


@c_kernel(HOOK_SIGNATURE)
def sped_speculate(net: Net, event: int, a: int, b: int) -> int:
    """Match, then carry out: the hook `speculation`."""
    if event != MATCH:
        grant_heads(net, a)
    elif net.between_ports != 0:
        match_heads(net, net.port_words, 0, a)
    else:
        match_speculative(net, net.port_words, a)
    return 0


@c_kernel(HOOK_SIGNATURE)
def sped_yield(net: Net, event: int, a: int, b: int) -> int:
    """Match heads that stand back from all others, then carry out: the hook `speculation`."""
    if event != MATCH:
        grant_heads(net, a)
    else:
        match_heads(net, net.port_words, 1, a)
    return 0


@inlined
def match_shared_ports(net: Net, many: int, router: int, first: int, now: int) -> int:
    """SA of one router; its heads begin in ``net.spec_vc`` at `first`. Returns where those of the next one begin."""
    ports, ins, outs = net.ports, net.input_speedup, net.output_speedup
    turn, last = int32s(turns_of(net, router)), end_of_heads(net, router, first)
    if net.hold_switch != 0:
        serve_connected(net, router, now)
    requested = gather_requests(net, many, router, now)
    for half in range(2):  # of a crossbar input from its pointer on; beside no other request
        for j in range(first, last):
            e, f, v, p = crossbar_ports(net, router, j)
            if (v >= turn[e]) != (half == 0) or is_asked(net, many, e, f) or is_closed(net, e, f):
                continue
            if can_take(net, p, now) and any_credit(net, p, int32s(net.spec_mask)[j]):
                requested = ask(net, many, requested, e, v, f)
    pairs = match_crossbar(net, many, router, requested, 0)
    for k in range(pairs):
        e, f = int64s(net.match_input)[k], int64s(net.match_output)[k]
        v = vc_of_pair(net, many, router, e, f)
        i, p = e // ins, router * ports + f // outs
        vc = input_vc(net, (router * ports + i) * net.vcs + v)
        if vcs_that_ask(net, p, i) & bit_of(v) == uint64(0) and (
            vc.state != ACTIVE or output_vc(net, vc.out_vc).credits <= 0
        ):
            continue  # VA failed, or gave a VC without credits: the switch stays unused
        send_matched(net, router, e, f, v, now)
    return last


@c_kernel(HOOK_SIGNATURE)
def sped_shared_match(net: Net, first: int, end: int, now: int) -> int:
    """Serve routers `first` up to, but without, `end`: the hook `switch_match`."""
    for router in range(first, end):
        position = int64(net.spec_matches)
        heads = position < net.speculative and int32s(net.spec_vc)[position] < (router + 1) * net.ports * net.vcs
        if heads or any_connected(net, router) or any_asks(net, net.port_words, router):
            net.spec_matches = match_shared_ports(net, net.port_words, router, position, now)
    return 0

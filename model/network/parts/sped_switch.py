"""SA with several crossbar ports at an input or output, several iterations, or several steps in a cycle (router.md).

Crossbar port e = i·input_speedup + v mod input_speedup of input i serves the VCs v of its class; port
f = o·output_speedup + i mod output_speedup of output o serves the inputs i of its class, as in BookSim 2.
"""

from typing import Any

from numba import int64, uint64

from hopforge.model.kernel.bits import bit_of, bits_between, first_of_mask, first_without, trailing_zeros
from hopforge.model.kernel.compile import c_kernel, inlined, inner
from hopforge.model.kernel.memory import int8s, int32s, int64s, words
from hopforge.model.network.core.events import batch_start
from hopforge.model.network.core.hooks import HOOK_SIGNATURE
from hopforge.model.network.core.records import OUTPUT_FIRST, Net, output_port, router_at
from hopforge.model.network.core.switch_allocation import note_grant, send_through, vcs_that_ask
from hopforge.model.network.parts.switch_match import (
    any_asks,
    ask,
    collect_requests,
    enter_requests,
    forget,
    forget_requests,
    is_asked,
    match_ports,
    move_pointers,
    place_of,
)


@inlined
def pointers_of(net: Net, router: int) -> int:
    """Place of the pointers of a router: of its crossbar outputs, of its crossbar inputs, then of their VCs."""
    return router * net.ports * (net.output_speedup + 2 * net.input_speedup)


@inner
def through_crossbar(net: Net, router: int, now: int) -> int:
    """Last cycle of a flit in the crossbar, less one, that is granted now and takes several cycles there."""
    if net.stage_batches != 0:
        return batch_start(int64s(net.crossbar_free), router, now + 1, net.crossbar_cycles) + net.crossbar_cycles - 2
    return now + net.crossbar_cycles - 1


@inner
def enter_queue(net: Net, p: int, when: int) -> None:
    """Note that a flit comes behind the crossbar of output port `p` in step, or cycle, `when`.

    ``queue_group`` of a port: when the last flits but one came, or come, and up to which cycle the channel is taken
    without them and those after them; then the same for the last ones.
    """
    group = int64s(net.queue_group + 32 * p)
    if group[2] != when:
        group[0], group[1] = group[2], group[3]
        group[2], group[3] = when, output_port(net, p).busy_until


@inner
def queue_is_full(net: Net, p: int, now: int) -> bool:
    """Whether as many flits wait behind the crossbar of output port `p` as may, without those still in it."""
    group = int64s(net.queue_group + 32 * p)
    step = net.steps if net.crossbar_cycles == 1 else now
    taken = int64(output_port(net, p).busy_until)
    if group[0] >= step:
        taken = int64(group[1])
    elif group[2] >= step:
        taken = int64(group[3])
    return bool(taken + 1 - now >= net.queue_flits)


@inlined
def leaving_cycle(net: Net, router: int, p: int, now: int) -> int:
    """Cycle of the grant as which a flit leaves that output port `p` is granted now; it waits for those before it.

    A grant passes the crossbar in the next step: in this cycle, if another step follows.
    """
    if net.output_queues == 0:
        return now
    through, step = now - net.step_follows, net.steps + 1
    if net.crossbar_cycles > 1:
        through = through_crossbar(net, router, now)
        step = through + 1
    if net.queue_flits != 0:
        enter_queue(net, p, step)
    return max(through, int64(output_port(net, p).busy_until))


@inlined
def credit_cycle(net: Net, q: int, now: int) -> int:
    """Cycle in which the credit of a flit leaves input port `q`: one a cycle, which holds all VCs of a step."""
    sent, step = int64s(net.credit_sent), int64s(net.credit_step)
    if step[q] != net.steps + 1:
        step[q] = net.steps + 1
        sent[q] = max(now, sent[q] + 1)
    return int64(sent[q])


@inner
def gather_requests(net: Net, router: int, now: int) -> None:
    """Enter who asks for which crossbar output in ``net.asking_inputs``, and these outputs in ``net.requested``.

    For a crossbar input and output the first VC at or after the pointer of the input stands, in ``representative``.
    """
    ports, many, outs = net.ports, net.input_speedup, net.output_speedup
    representative = int8s(net.representative)
    turn = int32s(net.crossbar_pointer + 4 * (pointers_of(net, router) + ports * (outs + many)))
    first, last = router * ports, (router + 1) * ports
    for word in range(first >> 6, (last + 63) >> 6):
        asked = bits_between(words(net.asking)[word], word, first, last)
        while asked != uint64(0):
            p = (word << 6) + trailing_zeros(asked)
            asked &= asked - uint64(1)
            if net.output_queues == 0 and output_port(net, p).busy_until > now:
                continue
            if net.queue_flits != 0 and queue_is_full(net, p, now):
                continue
            for i in range(ports):
                vcs = vcs_that_ask(net, p, i)
                while vcs != uint64(0):
                    v = trailing_zeros(vcs)
                    vcs &= vcs - uint64(1)
                    e, f = i * many + v % many, (p - first) * outs + i % outs
                    q = int64(turn[e])
                    if not is_asked(net, e, f) or int64(representative[place_of(net, e, f)]) < q <= v:
                        ask(net, e, v, f)


@inner
def match_crossbar(net: Net, router: int) -> Any:
    """Match crossbar inputs and outputs by iSLIP; returns the number of pairs in ``net.match_input`` and so on.

    Pointers move with what the first iteration matches.
    """
    ports, many, outs = net.ports, net.input_speedup, net.output_speedup
    asking_inputs, asking_outputs, count = words(net.asking_inputs), words(net.asking_outputs), net.port_words
    requested, chosen, matched = words(net.requested), words(net.chosen), words(net.taken_inputs)
    match_input, match_output = int64s(net.match_input), int64s(net.match_output)
    of_output = int32s(net.crossbar_pointer + 4 * pointers_of(net, router))
    of_input = int32s(net.crossbar_pointer + 4 * (pointers_of(net, router) + ports * outs))
    pairs = int64(0)
    forget(matched, 0, count)
    for iteration in range(net.iterations):
        for word in range(count):
            rest = requested[word]
            while rest != uint64(0):
                f = (word << 6) + trailing_zeros(rest)
                rest &= rest - uint64(1)
                e = first_without(asking_inputs, f * count, matched, count, int64(of_output[f]))
                if e >= 0:
                    asking_outputs[e * count + word] |= bit_of(f)
                    chosen[e >> 6] |= bit_of(e)
        before = pairs
        for word in range(count):
            rest = chosen[word]
            chosen[word] = 0
            matched[word] |= rest
            while rest != uint64(0):
                e = (word << 6) + trailing_zeros(rest)
                rest &= rest - uint64(1)
                f = first_of_mask(asking_outputs, e * count, count, int64(of_input[e]))
                forget(asking_outputs, e, count)
                requested[f >> 6] &= ~bit_of(f)
                forget(asking_inputs, f, count)
                if iteration == 0:
                    of_output[f] = e + 1 if e + 1 < ports * many else 0
                    of_input[e] = f + 1 if f + 1 < ports * outs else 0
                match_input[pairs], match_output[pairs] = e, f
                pairs += 1
        if pairs == before:
            break
    forget_requests(net)
    return pairs


@inlined
def send_queued(net: Net, router: int, i: int, v: int, o: int, now: int) -> None:
    """Send a flit from input `i`, VC `v`, to output `o` and what waits behind the crossbar there."""
    q, p = router * net.ports + i, router * net.ports + o
    leaves, back = leaving_cycle(net, router, p, now), credit_cycle(net, q, now)
    send_through(net, q * net.vcs + v, q, p, i * net.vcs + v, now, leaves, back)
    if router_at(net, router).drain_ports != 0:
        note_grant(net, p, i, now)


@inner
def without_full_queues(net: Net, router: int, requests: int, now: int) -> Any:
    """Keep the requests of `collect_requests` whose outputs can take a flit; returns their number."""
    match_input, match_output, match_vc = int64s(net.match_input), int64s(net.match_output), int64s(net.match_vc)
    kept = int64(0)
    for k in range(requests):
        if not queue_is_full(net, router * net.ports + match_output[k], now):
            match_input[kept], match_output[kept], match_vc[kept] = match_input[k], match_output[k], match_vc[k]
            kept += 1
    return kept


@inner
def match_other(net: Net, router: int, now: int) -> None:
    """SA of one router in a step of cycle `now` by an allocator other than iSLIP, one crossbar port each."""
    match_input, match_output, match_vc = int64s(net.match_input), int64s(net.match_output), int64s(net.match_vc)
    requests, _ = collect_requests(net, router, now)
    if net.queue_flits != 0:
        requests = without_full_queues(net, router, requests, now)
    if requests == 0:
        return
    enter_requests(net, router, requests)
    pairs = match_ports(net, router, 0)
    for k in range(pairs):
        i, o, v = match_input[k], match_output[k], match_vc[k]
        move_pointers(net, router, i, v, o, 0, now)
        send_queued(net, router, i, v, o, now)
    state = router_at(net, router)
    state.sa_diagonal = (state.sa_diagonal + 1) % net.ports


@inner
def match_sped(net: Net, router: int, now: int) -> None:
    """SA of one router in a step of cycle `now` by iSLIP."""
    ports, vcs, many, outs = net.ports, net.vcs, net.input_speedup, net.output_speedup
    match_input, match_output = int64s(net.match_input), int64s(net.match_output)
    turn = int32s(net.crossbar_pointer + 4 * (pointers_of(net, router) + ports * (outs + many)))
    gather_requests(net, router, now)
    pairs = match_crossbar(net, router)
    for k in range(pairs):
        e, f = match_input[k], match_output[k]
        v = int64(int8s(net.representative)[place_of(net, e, f)])
        turn[e] = v + many if v + many < vcs else v + many - vcs
        send_queued(net, router, e // many, v, f // outs, now)


@c_kernel(HOOK_SIGNATURE)
def sped_match(net: Net, first: int, end: int, now: int) -> int:
    """SA of routers `first` up to, but without, `end`: the hook `switch_match`."""
    for router in range(first, end):
        if any_asks(net, router):
            if net.sa_kind == OUTPUT_FIRST:
                match_sped(net, router, now)
            else:
                match_other(net, router, now)
    return 0

"""SA with several crossbar ports at an input or output, several iterations, or several steps in a cycle (router.md).

Crossbar port e = i·input_speedup + v mod input_speedup of input i serves the VCs v of its class; port
f = o·output_speedup + i mod output_speedup of output o serves the inputs i of its class, as in BookSim 2.
"""

from typing import Any

from numba import int64, uint64

from hopforge.model.kernel.bits import (
    bit_of,
    first_at_or_after,
    first_of_mask,
    first_without,
    trailing_zeros,
)
from hopforge.model.kernel.compile import c_kernel, inlined, inner
from hopforge.model.kernel.memory import int8s, int32s, int64s, words
from hopforge.model.network.core.events import batch_of, batch_start
from hopforge.model.network.core.hooks import HOOK_SIGNATURE
from hopforge.model.network.core.records import OUTPUT_FIRST, PORT_SHARE_BITS, Net, output_port, router_at
from hopforge.model.network.core.switch_allocation import note_grant, send_through
from hopforge.model.network.parts.port_masks import (
    any_asks,
    asked_ports,
    asked_words,
    forget,
    put_bit,
    take_bit,
    take_word,
    word_of,
)
from hopforge.model.network.parts.switch_match import (
    ask,
    collect_requests,
    enter_requests,
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
def through_crossbar(net: Net, q: int, now: int) -> int:
    """Last cycle in the crossbar, less one, of a flit of input port `q` that is granted now and takes several there."""
    if net.stage_batches != 0:
        start = batch_start(int64s(net.crossbar_free), batch_of(net, q), now + 1, net.crossbar_cycles)
        return start + net.crossbar_cycles - 2
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
def leaving_cycle(net: Net, q: int, p: int, now: int) -> int:
    """Cycle of the grant as which a flit leaves that goes from input port `q` to output port `p` now.

    It waits for those before it.

    A grant passes the crossbar in the next step: in this cycle, if another step follows.
    """
    if net.output_queues == 0:
        return now
    through, step = now - net.step_follows, net.steps + 1
    if net.crossbar_cycles > 1:
        through = through_crossbar(net, q, now)
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


@inlined
def gather_requests(net: Net, many: int, router: int, now: int) -> Any:
    """Enter who asks for which crossbar output in ``net.asking_inputs``; returns the mask of these outputs.

    For a crossbar input and output the first VC at or after the pointer of the input stands, in ``representative``.
    """
    ports, ins, outs = net.ports, net.input_speedup, net.output_speedup
    representative = int8s(net.representative)
    turn = int32s(net.crossbar_pointer + 4 * (pointers_of(net, router) + ports * (outs + ins)))
    requested, first = uint64(0), router * ports
    for k in range(asked_words(net, many, router)):
        base, asked = asked_ports(net, many, router, k)
        while asked != uint64(0):
            p = base + trailing_zeros(asked)
            asked &= asked - uint64(1)
            if net.output_queues == 0 and output_port(net, p).busy_until > now:
                continue
            if net.queue_flits != 0 and queue_is_full(net, p, now):
                continue
            for word in range(net.vc_words):
                vcs = words(net.switching)[p * net.vc_words + word]
                while vcs != uint64(0):
                    number = (word << 6) + trailing_zeros(vcs)
                    vcs &= vcs - uint64(1)
                    i = (number * net.port_share) >> PORT_SHARE_BITS
                    v = number - i * net.vcs
                    e, f = i * ins + v % ins, (p - first) * outs + i % outs
                    q = int64(turn[e])
                    if not is_asked(net, many, e, f) or int64(representative[place_of(many, e, f)]) < q <= v:
                        requested = ask(net, many, requested, e, v, f)
    return requested


@inlined
def free_input(net: Net, many: int, f: int, matched: Any, start: int) -> int:
    """First crossbar input at or after `start` that asks for output `f` and is not `matched`; −1: there is none."""
    if many != 1:
        return int64(first_without(words(net.asking_inputs), f * many, words(net.taken_inputs), many, start))
    inputs = words(net.asking_inputs)[f] & ~matched
    return int(first_at_or_after(inputs, start)) if inputs != uint64(0) else -1


@inlined
def put_word(mask: Any, address: int, many: int, word: int, more: Any) -> Any:
    """Return a mask with the bits `more` of word number `word`, which are set in the array at `address`, too."""
    if many != 1:
        words(address)[word] |= more
    return mask | more


@inlined
def match_crossbar(net: Net, many: int, router: int, requested: Any) -> Any:
    """Match crossbar inputs and outputs by iSLIP; returns the number of pairs in ``net.match_input`` and so on.

    Pointers move with what the first iteration matches.
    """
    ports, ins, outs = net.ports, net.input_speedup, net.output_speedup
    asking_inputs, asking_outputs = words(net.asking_inputs), words(net.asking_outputs)
    match_input, match_output = int64s(net.match_input), int64s(net.match_output)
    of_output = int32s(net.crossbar_pointer + 4 * pointers_of(net, router))
    of_input = int32s(net.crossbar_pointer + 4 * (pointers_of(net, router) + ports * outs))
    pairs, matched = int64(0), uint64(0)
    if many != 1:
        forget(words(net.taken_inputs), 0, many)
    for iteration in range(net.iterations):
        chosen = uint64(0)
        for word in range(many):
            rest = word_of(requested, net.requested, many, word)
            while rest != uint64(0):
                f = (word << 6) + trailing_zeros(rest)
                rest &= rest - uint64(1)
                e = free_input(net, many, f, matched, int64(of_output[f]))
                if e >= 0:
                    asking_outputs[e * many + word] |= bit_of(f)
                    chosen = put_bit(chosen, net.chosen, many, e)
        before = pairs
        for word in range(many):
            rest = take_word(chosen, net.chosen, many, word)
            matched = put_word(matched, net.taken_inputs, many, word, rest)
            while rest != uint64(0):
                e = (word << 6) + trailing_zeros(rest)
                rest &= rest - uint64(1)
                f = first_of_mask(asking_outputs, e * many, many, int64(of_input[e]))
                forget(asking_outputs, e, many)
                requested = take_bit(requested, net.requested, many, f)
                forget(asking_inputs, f, many)
                if iteration == 0:
                    of_output[f] = e + 1 if e + 1 < ports * ins else 0
                    of_input[e] = f + 1 if f + 1 < ports * outs else 0
                match_input[pairs], match_output[pairs] = e, f
                pairs += 1
        if pairs == before:
            break
    forget_requests(net, many, requested)
    return pairs


@inlined
def send_queued(net: Net, router: int, i: int, v: int, o: int, now: int) -> None:
    """Send a flit from input `i`, VC `v`, to output `o` and what waits behind the crossbar there."""
    q, p = router * net.ports + i, router * net.ports + o
    leaves, back = leaving_cycle(net, q, p, now), credit_cycle(net, q, now)
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


@inlined
def match_other(net: Net, many: int, router: int, now: int) -> None:
    """SA of one router in a step of cycle `now` by an allocator other than iSLIP, one crossbar port each."""
    match_input, match_output, match_vc = int64s(net.match_input), int64s(net.match_output), int64s(net.match_vc)
    requests, _ = collect_requests(net, many, router, now)
    if net.queue_flits != 0:
        requests = without_full_queues(net, router, requests, now)
    if requests == 0:
        return
    pairs = match_ports(net, many, router, enter_requests(net, many, router, requests), 0)
    for k in range(pairs):
        i, o, v = match_input[k], match_output[k], match_vc[k]
        move_pointers(net, router, i, v, o, 0, now)
        send_queued(net, router, i, v, o, now)
    state = router_at(net, router)
    state.sa_diagonal = (state.sa_diagonal + 1) % net.ports


@inlined
def match_sped(net: Net, many: int, router: int, now: int) -> None:
    """SA of one router in a step of cycle `now` by iSLIP."""
    ports, vcs, ins, outs = net.ports, net.vcs, net.input_speedup, net.output_speedup
    match_input, match_output = int64s(net.match_input), int64s(net.match_output)
    turn = int32s(net.crossbar_pointer + 4 * (pointers_of(net, router) + ports * (outs + ins)))
    pairs = match_crossbar(net, many, router, gather_requests(net, many, router, now))
    for k in range(pairs):
        e, f = match_input[k], match_output[k]
        v = int64(int8s(net.representative)[place_of(many, e, f)])
        turn[e] = v + ins if v + ins < vcs else v + ins - vcs
        send_queued(net, router, e // ins, v, f // outs, now)


@inlined
def sped_match_routers(net: Net, many: int, first: int, end: int, now: int) -> int:
    """SA of routers `first` up to, but without, `end`."""
    for router in range(first, end):
        if any_asks(net, many, router):
            if net.sa_kind == OUTPUT_FIRST:
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

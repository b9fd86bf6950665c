"""Requests and matchings of the crossbar ports of a router (router.md, speedups and iterations).

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
from hopforge.model.kernel.compile import inlined
from hopforge.model.kernel.memory import int8s, int32s, int64s, words
from hopforge.model.kernel.rng import next_below
from hopforge.model.network.core.kinds import (
    DRAWN,
    FAIR_WAVEFRONT,
    INPUT_FIRST,
    INPUT_FIRST_PORTS,
    LONELY,
    MAXIMUM,
    OUTPUT_FIRST,
    PORT_SHARE_BITS,
)
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import router_at
from hopforge.model.network.parts.connections import is_closed
from hopforge.model.network.parts.input_match import match_inputs_in_turn
from hopforge.model.network.parts.lonely_match import in_block, match_lonely
from hopforge.model.network.parts.output_queues import can_take
from hopforge.model.network.parts.port_masks import (
    asked_ports,
    asked_words,
    forget,
    place_of,
    put_bit,
    take_bit,
    take_word,
    word_of,
)
from hopforge.model.network.parts.switch_match import ask, forget_requests, is_asked, match_ports, note_recent


@inlined
def pointers_of(net: Net, router: int, second: int) -> int:
    """Place of the pointers of a router: of its crossbar outputs, of its crossbar inputs, then of their VCs.

    Those of the second allocator, of speculative requests, come behind the others of all routers.
    """
    return (second * net.routers + router) * net.ports * (net.output_speedup + 2 * net.input_speedup)


@inlined
def turns_of(net: Net, router: int) -> int:
    """Address of the pointers of a router to the VCs of its crossbar inputs, which both allocators share."""
    place = pointers_of(net, router, 0) + net.ports * (net.output_speedup + net.input_speedup)
    return int64(net.crossbar_pointer + 4 * place)


@inlined
def clear_best(net: Net) -> None:
    """`input_first`: no VC stands for any crossbar input."""
    for e in range(net.ports * net.input_speedup):
        int64s(net.winner_rank)[e] = net.vcs


@inlined
def enter_request(net: Net, many: int, requested: Any, e: int, v: int, f: int, q: int) -> Any:
    """Enter a request of crossbar input `e` with VC `v` for crossbar output `f`, by increasing VC; `q`: pointer of `e`.

    For `e` and `f` (`input_first`: for `e`) the first VC at or after `q` stands.
    """
    if net.sa_kind == INPUT_FIRST:
        rank = v - q if v >= q else v - q + net.vcs
        if rank < int64s(net.winner_rank)[e]:
            int64s(net.winner_rank)[e] = rank
            int64s(net.winner_request)[e] = (f << 8) | v
    elif not is_asked(net, many, e, f) or int64(int8s(net.representative)[place_of(many, e, f)]) < q <= v:
        requested = ask(net, many, requested, e, v, f)
    return requested


@inlined
def enter_best(net: Net, many: int, requested: Any) -> Any:
    """`input_first`: let the VC that stands for each crossbar input ask."""
    for e in range(net.ports * net.input_speedup):
        if int64s(net.winner_rank)[e] < net.vcs:
            chosen = int64s(net.winner_request)[e]
            requested = ask(net, many, requested, e, chosen & 255, chosen >> 8)
    return requested


@inlined
def gather_requests(net: Net, many: int, router: int, now: int) -> Any:
    """Enter who asks for which crossbar output in ``net.asking_inputs``; returns the mask of these outputs.

    Those that are connected stand in ``net.taken_inputs`` and ``net.taken_outputs`` and take no part.
    """
    ports, ins, outs = net.ports, net.input_speedup, net.output_speedup
    turn = int32s(turns_of(net, router))
    requested, first = uint64(0), router * ports
    if net.sa_kind == INPUT_FIRST:
        clear_best(net)
    for k in range(asked_words(net, many, router)):
        base, asked = asked_ports(net, many, router, k)
        while asked != uint64(0):
            p = base + trailing_zeros(asked)
            asked &= asked - uint64(1)
            if not can_take(net, p, now):
                continue
            for word in range(net.vc_words):
                vcs = words(net.switching)[p * net.vc_words + word]
                while vcs != uint64(0):
                    number = (word << 6) + trailing_zeros(vcs)
                    vcs &= vcs - uint64(1)
                    i = (number * net.port_share) >> PORT_SHARE_BITS
                    v = number - i * net.vcs
                    e, f = i * ins + v % ins, (p - first) * outs + i % outs
                    if not is_closed(net, e, f):
                        requested = enter_request(net, many, requested, e, v, f, int64(turn[e]))
    return enter_best(net, many, requested) if net.sa_kind == INPUT_FIRST else requested


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
def match_islip(net: Net, many: int, router: int, requested: Any, second: int) -> Any:
    """`output_first`, `pim`: match crossbar inputs and outputs; returns the number of pairs.

    Pointers of the first allocator move with what the first iteration matches; `pim` draws in their place.
    """
    ports, ins, outs = net.ports, net.input_speedup, net.output_speedup
    own = int64(router_at(net, router).turn_ports)
    asking_inputs, asking_outputs = words(net.asking_inputs), words(net.asking_outputs)
    match_input, match_output = int64s(net.match_input), int64s(net.match_output)
    pointers = pointers_of(net, router, second)
    of_output = int32s(net.crossbar_pointer + 4 * pointers)
    of_input = int32s(net.crossbar_pointer + 4 * (pointers + ports * outs))
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
                if e >= 0 and net.sa_kind == DRAWN:
                    drawn = next_below(words(net.router_rng), router, own * ins)
                    e = free_input(net, many, f, matched, in_block(e, int64(drawn), own * ins))
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
                start = int64(of_input[e])
                if net.sa_kind == DRAWN:
                    drawn = next_below(words(net.router_rng), router, own * outs)
                    f = first_of_mask(asking_outputs, e * many, many, start)
                    start = in_block(f, int64(drawn), own * outs)
                f = first_of_mask(asking_outputs, e * many, many, start)
                forget(asking_outputs, e, many)
                requested = take_bit(requested, net.requested, many, f)
                forget(asking_inputs, f, many)
                if iteration == 0 and second == 0:
                    of_output[f] = e + 1 if e + 1 < ports * ins else 0
                    of_input[e] = f + 1 if f + 1 < ports * outs else 0
                match_input[pairs], match_output[pairs] = e, f
                pairs += 1
        if pairs == before:
            break
    forget_requests(net, many, requested)
    return pairs


@inlined
def match_inputs(net: Net, many: int, router: int, requested: Any, second: int) -> Any:
    """`input_first`: every crossbar output picks one of the inputs that chose it; returns the number of pairs."""
    of_output = int32s(net.crossbar_pointer + 4 * pointers_of(net, router, second))
    pairs = int64(0)
    for word in range(many):
        rest = take_word(requested, net.requested, many, word)
        while rest != uint64(0):
            f = (word << 6) + trailing_zeros(rest)
            rest &= rest - uint64(1)
            e = first_of_mask(words(net.asking_inputs), f * many, many, int64(of_output[f]))
            forget(words(net.asking_inputs), f, many)
            if second == 0:
                of_output[f] = e + 1 if e + 1 < net.ports * net.input_speedup else 0
            int64s(net.match_input)[pairs], int64s(net.match_output)[pairs] = e, f
            pairs += 1
    return pairs


@inlined
def match_waves(net: Net, many: int, router: int, requested: Any, second: int) -> Any:
    """`wavefront`: requests in the order of their diagonals, in a square matrix; returns the number of pairs."""
    state, used, pairs = router_at(net, router), uint64(0), int64(0)
    inputs, outputs = int64(state.turn_ports) * net.input_speedup, int64(state.turn_ports) * net.output_speedup
    size = max(inputs, outputs)
    start = int64(state.spec_diagonal if second else state.sa_diagonal)
    for k in range(size):
        for word in range(many):
            rest = word_of(requested, net.requested, many, word)
            while rest != uint64(0):
                f = (word << 6) + trailing_zeros(rest)
                rest &= rest - uint64(1)
                place = (start + k - f % outputs) % size
                if place >= inputs:
                    continue
                for e in range(place, net.ports * net.input_speedup, inputs):
                    if is_asked(net, many, e, f) and word_of(used, net.chosen, many, e >> 6) & bit_of(e) == uint64(0):
                        used = put_bit(used, net.chosen, many, e)
                        requested = take_bit(requested, net.requested, many, f)
                        forget(words(net.asking_inputs), f, many)
                        int64s(net.match_input)[pairs], int64s(net.match_output)[pairs] = e, f
                        pairs += 1
                        break
    if many != 1:
        forget(words(net.chosen), 0, many)
    forget_requests(net, many, requested)
    if second == 0 and pairs > 0:
        if net.sa_kind == FAIR_WAVEFRONT:
            start = int64s(net.match_input)[0] + int64s(net.match_output)[0]
        state.sa_diagonal = (start + 1) % size
    return pairs


@inlined
def diagonal_size(net: Net, router: int) -> int:
    """Values of the pointer of an allocator: inputs of the crossbar with max_size, diagonals with wavefront."""
    outputs = 1 if net.sa_kind == MAXIMUM else net.output_speedup
    return int(router_at(net, router).turn_ports * max(net.input_speedup, outputs))


@inlined
def match_by_matrix(net: Net, many: int, router: int, requested: Any, second: int) -> Any:
    """Matrix arbiters and `max_size`, as between the ports of other routers; returns the number of pairs."""
    match_input, match_output = int64s(net.match_input), int64s(net.match_output)
    pairs = match_ports(net, many, router, requested, second)
    if second == 0 and pairs > 0:
        if net.sa_kind == MAXIMUM:
            state = router_at(net, router)
            state.sa_diagonal = (state.sa_diagonal + 1) % diagonal_size(net, router)
        else:
            for k in range(pairs):
                note_recent(net, router, match_input[k], match_output[k], 0, net.steps)
    return pairs


@inlined
def match_crossbar(net: Net, many: int, router: int, requested: Any, second: int) -> int:
    """Match crossbar inputs and outputs; returns the number of pairs in ``net.match_input`` and so on.

    Pointers of the first allocator have moved then, but for those to VCs; of the second one (`second`) none.
    """
    if net.sa_kind == MAXIMUM or (net.matrix != 0 and net.sa_kind <= OUTPUT_FIRST):
        return match_by_matrix(net, many, router, requested, second)
    if net.sa_kind == LONELY:
        return match_lonely(net, many, router, pointers_of(net, router, second), requested, 1 - second)
    if net.sa_kind == INPUT_FIRST_PORTS:
        return match_inputs_in_turn(net, many, router, pointers_of(net, router, second), requested, second)
    if net.sa_kind == OUTPUT_FIRST or net.sa_kind == DRAWN:  # noqa: PLR1714 - a kernel
        return match_islip(net, many, router, requested, second)
    if net.sa_kind == INPUT_FIRST:
        return match_inputs(net, many, router, requested, second)
    return match_waves(net, many, router, requested, second)


@inlined
def vc_of_pair(net: Net, many: int, router: int, e: int, f: int) -> int:
    """VC that stands for crossbar ports `e` and `f`, which are matched: the next one of `e` is in turn."""
    v = int64(int8s(net.representative)[place_of(many, e, f)])
    next_vc = v + net.input_speedup
    int32s(turns_of(net, router))[e] = next_vc if next_vc < net.vcs else next_vc - net.vcs
    return v

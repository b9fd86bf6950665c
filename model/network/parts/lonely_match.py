"""Lonely output allocators (docs/definitions/router.md, VA: loa), for VA and for crossbar ports."""

from typing import Any

from numba import int64, uint64

from hopforge.model.kernel.bits import any_bit, bit_of, first_of_mask, trailing_zeros
from hopforge.model.kernel.compile import c_kernel, inlined, inner
from hopforge.model.kernel.memory import int32s, int64s, words
from hopforge.model.network.core.hooks import HOOK_SIGNATURE
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import input_vc, output_vc, router_at
from hopforge.model.network.parts.maximum_match import turn_requests
from hopforge.model.network.parts.port_masks import forget, put_bit, take_word, word_of
from hopforge.model.network.parts.vc_match import grant_vc


@inner
def count_requests(net: Net, many: int, requested: Any) -> None:
    """Write into ``net.match_vc`` how many inputs ask for each of the outputs `requested`."""
    counts, asking = int64s(net.match_vc), words(net.asking_inputs)
    for word in range(many):
        rest = word_of(requested, net.requested, many, word)
        while rest != uint64(0):
            f = (word << 6) + trailing_zeros(rest)
            rest &= rest - uint64(1)
            counts[f] = 0
            for k in range(many):
                inputs = asking[f * many + k]
                while inputs != uint64(0):
                    inputs &= inputs - uint64(1)
                    counts[f] += 1


@inlined
def loneliest(net: Net, many: int, e: int, start: int, outputs: int) -> int:
    """Of the outputs that input `e` asks for that with the fewest requests; of equals the first one from `start` on."""
    best, fewest = -1, int64(0)
    for k in range(outputs):
        f = start + k if start + k < outputs else start + k - outputs
        if words(net.asking_outputs)[e * many + (f >> 6)] & bit_of(f) != uint64(0):
            count = int64s(net.match_vc)[f]
            if best < 0 or count < fewest:
                best, fewest = f, count
    return best


@inlined
def in_block(place: int, start: int, block: int) -> int:
    """`start`, in the block of `place` (router.md, allocator_ports)."""
    return place - place % block + start % block


@inlined
def picked(net: Net, many: int, chosen: Any, e: int, f: int) -> Any:
    """Enter the pick of crossbar input `e`, which asks for nothing more; returns the outputs that were picked."""
    forget(words(net.asking_outputs), e, many)
    words(net.asking_inputs)[f * many + (e >> 6)] |= bit_of(e)
    return put_bit(chosen, net.chosen, many, f)


@inner
def match_lonely(net: Net, many: int, router: int, pointers: int, requested: Any, moves: int) -> Any:
    """Match crossbar ports; returns the number of pairs.

    `pointers` is the place of those of outputs, then inputs, in ``net.crossbar_pointer``; they move if `moves` is set.
    """
    inputs, outputs = net.ports * net.input_speedup, net.ports * net.output_speedup
    own = int64(router_at(net, router).turn_ports)
    of_output = int32s(net.crossbar_pointer + 4 * pointers)
    of_input = int32s(net.crossbar_pointer + 4 * (pointers + outputs))
    count_requests(net, many, requested)
    turn_requests(net, many, requested, int64(0))
    chosen, pairs = uint64(0), int64(0)
    for e in range(inputs):
        if any_bit(words(net.asking_outputs), e * many, many):
            asked = first_of_mask(words(net.asking_outputs), e * many, many, 0)
            start = in_block(asked, int64(of_input[e]), own * net.output_speedup)
            f = loneliest(net, many, e, start, outputs)
            chosen = picked(net, many, chosen, e, f)
    for word in range(many):
        rest = take_word(chosen, net.chosen, many, word)
        while rest != uint64(0):
            f = (word << 6) + trailing_zeros(rest)
            rest &= rest - uint64(1)
            e = first_of_mask(words(net.asking_inputs), f * many, many, 0)
            start = in_block(e, int64(of_output[f]), own * net.input_speedup)
            e = first_of_mask(words(net.asking_inputs), f * many, many, start)
            forget(words(net.asking_inputs), f, many)
            if moves != 0:
                step_on(net, router, pointers, e, f)
            int64s(net.match_input)[pairs], int64s(net.match_output)[pairs] = e, f
            pairs += 1
    return pairs


@inlined
def step_on(net: Net, router: int, pointers: int, e: int, f: int) -> None:
    """Move the pointers of a crossbar input and output that are granted on by one."""
    own = int64(router_at(net, router).turn_ports)
    of_output = int32s(net.crossbar_pointer + 4 * pointers)
    of_input = int32s(net.crossbar_pointer + 4 * (pointers + net.ports * net.output_speedup))
    of_output[f] = of_output[f] + 1 if of_output[f] + 1 < own * net.input_speedup else 0
    of_input[e] = of_input[e] + 1 if of_input[e] + 1 < own * net.output_speedup else 0


@c_kernel(HOOK_SIGNATURE)
def match_lonely_vcs(net: Net, router: int, requests: int, now: int) -> int:
    """Match the requests of a router: the hook `vc_match`."""
    width, vcs = net.ports * net.vcs, net.vcs
    block = int64(router_at(net, router).turn_ports) * vcs
    request_vc, request_port, request_mask = int64s(net.request_vc), int64s(net.request_port), int64s(net.request_mask)
    counts, best_rank, best = int64s(net.pair_order), int64s(net.winner_rank), int64s(net.winner_request)
    for m in range(width):
        counts[m], best_rank[m] = 0, width
    for k in range(requests):
        mask = request_mask[k]
        while mask != 0:
            counts[request_port[k] * vcs + trailing_zeros(uint64(mask))] += 1
            mask &= mask - 1
    for k in range(requests):
        start = int64(input_vc(net, router * width + request_vc[k]).pointer)
        chosen, fewest, mask = int64(-1), int64(0), request_mask[k]
        while mask != 0:
            m = request_port[k] * vcs + trailing_zeros(uint64(mask))
            mask &= mask - 1
            order = counts[m] * width + (m - start) % block
            if chosen < 0 or order < fewest:
                chosen, fewest = m, order
        first = int64(output_vc(net, router * width + chosen).pointer)
        rank = (request_vc[k] - first) % block
        if rank < best_rank[chosen]:
            best_rank[chosen], best[chosen] = rank, k
    for m in range(width):
        if best_rank[m] < width:
            n = request_vc[best[m]]
            given, taker = output_vc(net, router * width + m), input_vc(net, router * width + n)
            of_output, of_input = int64(given.pointer) + 1, int64(taker.pointer) + 1
            grant_vc(net, router, n, m, now)
            given.pointer, taker.pointer = of_output % block, of_input % block
    return 0

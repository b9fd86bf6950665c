"""Matchings of the most pairs, by augmenting paths (docs/definitions/router.md, VA), for VA and SA."""

from typing import Any

from numba import int64, uint64

from hopforge.model.kernel.bits import any_bit, bit_of, trailing_zeros
from hopforge.model.kernel.compile import c_kernel, inlined
from hopforge.model.kernel.memory import int8s, int64s, words
from hopforge.model.network.core.hooks import HOOK_SIGNATURE
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import router_at
from hopforge.model.network.parts.port_masks import place_of, take_word
from hopforge.model.network.parts.vc_match import grant_vc

# Arrays of width `pair_width`, one behind the other. ``pair_order``: whence an output was reached, the row matched
# with it; ``pair_request``: two lists of rows; ``pair_output``: of a row its first output, the output matched with it,
# and the mask of its outputs, of one word in VA and of ``net.port_words`` in SA; in VA then which request it is.


@inlined
def pair_width(net: Net) -> int:
    """Most rows or outputs: VCs of a router, or outputs of its crossbar if there are more."""
    return int(net.ports * max(net.vcs, net.output_speedup))


@inlined
def reach(net: Net, many: int, rows: int, width: int) -> int:
    """Find a shortest path to an output that is free; return that output, -1: there is none.

    Masks have `many` words.
    """
    reached, lists, of_row = int64s(net.pair_order), int64s(net.pair_request), int64s(net.pair_output)
    now_list, next_list = int64(0), int64(width)
    count = 0
    for row in range(rows):
        for word in range(many):
            base, rest = of_row[row] + (word << 6), uint64(of_row[2 * width + row * many + word])
            while rest != uint64(0):
                reached[base + trailing_zeros(rest)] = -1
                rest &= rest - uint64(1)
        if of_row[width + row] < 0:
            lists[count] = row
            count += 1
    while count > 0:
        found = 0
        for k in range(count):
            row = lists[now_list + k]
            for word in range(many):
                base, rest = of_row[row] + (word << 6), uint64(of_row[2 * width + row * many + word])
                while rest != uint64(0):
                    m = base + trailing_zeros(rest)
                    rest &= rest - uint64(1)
                    if of_row[width + row] == m or reached[m] >= 0:
                        continue
                    reached[m] = row
                    if reached[width + m] < 0:
                        return m
                    lists[next_list + found] = reached[width + m]
                    found += 1
        now_list, next_list = next_list, now_list
        count = found
    return -1


@inlined
def match_most(net: Net, many: int, rows: int) -> None:
    """Match rows and outputs: of row r the first output and the mask from there on are given, its output is written.

    Masks have `many` words.
    """
    width = pair_width(net)
    reached, of_row = int64s(net.pair_order), int64s(net.pair_output)
    for row in range(rows):
        of_row[width + row] = -1
        for word in range(many):
            base, rest = of_row[row] + (word << 6), uint64(of_row[2 * width + row * many + word])
            while rest != uint64(0):
                reached[width + base + trailing_zeros(rest)] = -1
                rest &= rest - uint64(1)
    while True:
        end = reach(net, many, rows, width)
        if end < 0:
            break
        while end >= 0:  # the row that reached it leaves its own output to the row that reached that
            row = reached[end]
            reached[width + end] = row
            before = of_row[width + row]
            of_row[width + row] = end
            end = before


@inlined
def turn_requests(net: Net, many: int, requested: Any, first: int) -> None:
    """Enter the requests of ``net.asking_inputs`` in ``net.asking_outputs``; the former are cleared.

    Output o has place o − first there, modulo the outputs.
    """
    asking_inputs, asking_outputs = words(net.asking_inputs), words(net.asking_outputs)
    for word in range(many):
        rest = take_word(requested, net.requested, many, word)
        while rest != uint64(0):
            o = (word << 6) + trailing_zeros(rest)
            rest &= rest - uint64(1)
            place = o - first if o >= first else o - first + net.ports * net.output_speedup
            for k in range(many):
                inputs = asking_inputs[o * many + k]
                asking_inputs[o * many + k] = 0
                while inputs != uint64(0):
                    i = (k << 6) + trailing_zeros(inputs)
                    inputs &= inputs - uint64(1)
                    asking_outputs[i * many + (place >> 6)] |= bit_of(place)


@inlined
def match_most_ports(net: Net, many: int, router: int, requested: Any, speculative: int) -> int:
    """As `switch_match.match_ports`: match inputs and outputs of the requests in ``net.asking_inputs`` (cleared).

    With several crossbar ports it matches these.
    """
    ports, width = net.ports * net.input_speedup, pair_width(net)
    asking_outputs = words(net.asking_outputs)
    match_input, match_output, match_vc = int64s(net.match_input), int64s(net.match_output), int64s(net.match_vc)
    of_row = int64s(net.pair_output)
    outputs = net.ports * net.output_speedup
    turn_requests(net, many, requested, net.first_output)
    first = int64(router_at(net, router).spec_diagonal if speculative else router_at(net, router).sa_diagonal)
    rows, block = int64(0), int64(router_at(net, router).turn_ports) * net.input_speedup
    for base in range(0, ports, block):
        for k in range(block):
            i = base + (first + k) % block
            if any_bit(asking_outputs, i * many, many):
                match_input[rows], of_row[rows] = i, 0
                for word in range(many):
                    of_row[2 * width + rows * many + word] = int64(asking_outputs[i * many + word])
                    asking_outputs[i * many + word] = 0
                rows += 1
    match_most(net, many, rows)
    count = 0
    for row in range(rows):
        o = of_row[width + row]
        if o >= 0:
            o = o + net.first_output if o + net.first_output < outputs else o + net.first_output - outputs
            i = match_input[row]
            match_input[count], match_output[count] = i, o
            match_vc[count] = int64(int8s(net.representative)[place_of(many, i, o)])
            count += 1
    return count


@c_kernel(HOOK_SIGNATURE)
def match_maximum(net: Net, router: int, requests: int, now: int) -> int:
    """Match the requests of a router, as many as can be: the hook `vc_match`."""
    width = pair_width(net)
    request_vc, request_port, request_mask = int64s(net.request_vc), int64s(net.request_port), int64s(net.request_mask)
    of_row = int64s(net.pair_output)
    state = router_at(net, router)
    block = int64(state.turn_ports) * net.vcs
    pointer = int64(state.va_diagonal)
    begin = int64(0)
    while begin < requests:  # of the VCs of a block of ports, those from the pointer on come first
        base = request_vc[begin] // block * block
        first, end = begin, begin
        while end < requests and request_vc[end] < base + block:
            end += 1
            if request_vc[end - 1] < base + pointer:
                first = end
        for row in range(begin, end):
            k = first + row - begin
            k = k if k < end else k - (end - begin)
            of_row[row], of_row[2 * width + row] = request_port[k] * net.vcs, request_mask[k]
            of_row[3 * width + row] = k
        begin = end
    match_most(net, 1, requests)
    for row in range(requests):
        k = of_row[3 * width + row]
        if of_row[width + row] >= 0:
            grant_vc(net, router, request_vc[k], of_row[width + row], now)
    state.va_diagonal = (state.va_diagonal + 1) % block
    return 0

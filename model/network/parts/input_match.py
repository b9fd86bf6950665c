"""SA with inputs that choose an output in turn (docs/definitions/router.md, SA: input_first_ports)."""

from typing import Any

from numba import int64, uint64

from hopforge.model.kernel.bits import any_bit, first_of_mask, trailing_zeros
from hopforge.model.kernel.compile import inlined, inner
from hopforge.model.kernel.memory import int32s, int64s, words
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.parts.lonely_match import picked
from hopforge.model.network.parts.maximum_match import turn_requests
from hopforge.model.network.parts.port_masks import forget, take_word
from hopforge.model.network.parts.switch_match import least_recent, note_recent, recent_of


@inlined
def in_turn(net: Net, many: int, mask: int, pointer: int, arbiter: int) -> int:
    """Bit of the mask at address `mask` that an arbiter picks.

    `pointer`: place of a round-robin arbiter in ``net.crossbar_pointer``; `arbiter`: of a matrix one in
    ``net.sa_recent``.
    """
    if net.matrix != 0:
        return least_recent(net, many, arbiter, mask)
    return first_of_mask(words(mask), 0, many, int64(int32s(net.crossbar_pointer)[pointer]))


@inner
def match_inputs_in_turn(net: Net, many: int, router: int, pointers: int, requested: Any, second: int) -> Any:
    """Match crossbar ports: every input picks an output, every output an input that picked it.

    Returns the number of pairs. `pointers` is the place of those of outputs, then inputs, in
    ``net.crossbar_pointer``; those of the first allocator move.
    """
    inputs, outputs = net.ports * net.input_speedup, net.ports * net.output_speedup
    turn_requests(net, many, requested, int64(0))
    chosen, pairs = uint64(0), int64(0)
    for e in range(inputs):
        if any_bit(words(net.asking_outputs), e * many, many):
            arbiter = recent_of(net, router, e, 2 * second + 1)
            f = in_turn(net, many, net.asking_outputs + 8 * e * many, pointers + outputs + e, arbiter)
            chosen = picked(net, many, chosen, e, f)
    for word in range(many):
        rest = take_word(chosen, net.chosen, many, word)
        while rest != uint64(0):
            f = (word << 6) + trailing_zeros(rest)
            rest &= rest - uint64(1)
            arbiter = recent_of(net, router, f, 2 * second)
            e = in_turn(net, many, net.asking_inputs + 8 * f * many, pointers + f, arbiter)
            forget(words(net.asking_inputs), f, many)
            if second == 0:
                move_turns(net, router, pointers, e, f)
            int64s(net.match_input)[pairs], int64s(net.match_output)[pairs] = e, f
            pairs += 1
    return pairs


@inlined
def move_turns(net: Net, router: int, pointers: int, e: int, f: int) -> None:
    """Note the grant of crossbar input `e` to output `f` in the arbiters of both."""
    if net.matrix != 0:
        note_recent(net, router, e, f, 0, net.steps)
        return
    inputs, outputs = net.ports * net.input_speedup, net.ports * net.output_speedup
    int32s(net.crossbar_pointer)[pointers + f] = e + 1 if e + 1 < inputs else 0
    int32s(net.crossbar_pointer)[pointers + outputs + e] = f + 1 if f + 1 < outputs else 0

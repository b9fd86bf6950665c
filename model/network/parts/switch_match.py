"""SA with input-first, wavefront and max_size allocators and with matrix arbiters, compiled only where used."""

from typing import Any

from numba import int64, uint64

from hopforge.model.kernel.bits import bit_of, first_of_mask, trailing_zeros
from hopforge.model.kernel.compile import c_kernel, inlined
from hopforge.model.kernel.memory import int8s, int64s, words
from hopforge.model.network.core.hooks import HOOK_SIGNATURE
from hopforge.model.network.core.kinds import INPUT_FIRST, MAXIMUM, OUTPUT_FIRST
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import input_port, input_vc, output_port, router_at, vc_in_port
from hopforge.model.network.core.switch_allocation import grant_switch, note_grant
from hopforge.model.network.parts.maximum_match import match_most_ports
from hopforge.model.network.parts.port_masks import (
    any_asks,
    asked_ports,
    asked_words,
    forget,
    place_of,
    put_bit,
    take_bit,
    take_word,
    word_of,
)


@inlined
def matrix_width(net: Net) -> int:
    """Count the requesters of a matrix arbiter: the ports of a router, or of its crossbar if there are more."""
    return int(net.ports * max(net.input_speedup, net.output_speedup))


@inlined
def recent_of(net: Net, router: int, port: int, side: int) -> int:
    """Place in ``net.sa_recent`` of the arbiter of an output (`side` 0), an input (1); 2, 3: second allocator."""
    width = matrix_width(net)
    return int(((side * net.routers + router) * width + port) * width)


@inlined
def note_recent(net: Net, router: int, i: int, o: int, speculative: int, now: int) -> None:
    """Note the grant of input `i` to output `o` in the matrix arbiters of both."""
    int64s(net.sa_recent)[recent_of(net, router, o, 2 * speculative) + i] = now
    int64s(net.sa_recent)[recent_of(net, router, i, 2 * speculative + 1) + o] = now


@inlined
def pick_of_output(net: Net, many: int, router: int, output: int, speculative: int) -> int:
    """Arbiter of `output`: one of the inputs that ask for it."""
    if net.matrix == 0:
        port = output_port(net, router * net.ports + output)
        start = int64(port.spec_g if speculative else port.g)
        return first_of_mask(words(net.asking_inputs), output * many, many, start)
    base = recent_of(net, router, output, 2 * speculative)
    return least_recent(net, many, base, net.asking_inputs + 8 * output * many)


@inlined
def pick_of_input(net: Net, many: int, router: int, i: int, speculative: int) -> int:
    """Arbiter of input `i`: one of the outputs that chose it."""
    if net.matrix == 0:
        port = input_port(net, router * net.ports + i)
        start = int64(port.spec_a if speculative else port.a)
        return first_of_mask(words(net.asking_outputs), i * many, many, start)
    base = recent_of(net, router, i, 2 * speculative + 1)
    return least_recent(net, many, base, net.asking_outputs + 8 * i * many)


@inlined
def least_recent(net: Net, many: int, base: int, mask: int) -> int:
    """Bit, of the mask at address `mask`, whose entry of ``net.sa_recent`` after `base` is the oldest (lowest)."""
    best, best_time = -1, int64(0)
    for word in range(many):
        rest = words(mask)[word]
        while rest != uint64(0):
            k = (word << 6) + trailing_zeros(rest)
            rest &= rest - uint64(1)
            if best < 0 or int64s(net.sa_recent)[base + k] < best_time:
                best, best_time = k, int64s(net.sa_recent)[base + k]
    return best


@inlined
def move_pointers(net: Net, router: int, i: int, v: int, o: int, speculative: int, now: int) -> None:
    """Note the grant (input `i`, VC `v`) → output `o` in the arbiters that took part."""
    ports = net.ports
    inp = input_port(net, router * ports + i)
    inp.q = v + 1 if v + 1 < net.vcs else 0
    if net.matrix != 0:
        note_recent(net, router, i, o, speculative, now)
        return
    next_input = i + 1 if i + 1 < ports else 0
    next_output = o + 1 if o + 1 < ports else 0
    if speculative:
        inp.spec_a = next_output
        output_port(net, router * ports + o).spec_g = next_input
    else:
        inp.a = next_output
        output_port(net, router * ports + o).g = next_input


@inlined
def is_asked(net: Net, many: int, i: int, o: int) -> bool:
    """Whether input `i` has asked for output `o`."""
    return bool(words(net.asking_inputs)[o * many + (i >> 6)] & bit_of(i) != uint64(0))


@inlined
def ask(net: Net, many: int, requested: Any, i: int, v: int, o: int) -> Any:
    """Enter the request of input `i` for output `o` with VC `v`; returns `requested` with it."""
    int8s(net.representative)[place_of(many, i, o)] = v
    words(net.asking_inputs)[o * many + (i >> 6)] |= bit_of(i)
    return put_bit(requested, net.requested, many, o)


@inlined
def enter_requests(net: Net, many: int, router: int, requests: int) -> Any:
    """Enter the requests in ``net.match_input`` and so on (by increasing input and VC).

    For an input and an output (input_first: for an input) the first VC at or after q stands. Returns the mask of the
    outputs that are asked for.
    """
    match_input, match_output, match_vc = int64s(net.match_input), int64s(net.match_output), int64s(net.match_vc)
    requested, kept = uint64(0), 0
    for k in range(requests):
        i, o, v = match_input[k], match_output[k], match_vc[k]
        q = int64(input_port(net, router * net.ports + i).q)
        if net.sa_kind == INPUT_FIRST:
            # the list itself is shortened to one entry an input
            if kept > 0 and match_input[kept - 1] == i:
                if not match_vc[kept - 1] < q <= v:
                    continue
                kept -= 1
            match_input[kept], match_output[kept], match_vc[kept] = i, o, v
            kept += 1
            continue
        if not is_asked(net, many, i, o) or int8s(net.representative)[place_of(many, i, o)] < q <= v:
            requested = ask(net, many, requested, i, v, o)
    for k in range(kept):
        requested = ask(net, many, requested, match_input[k], match_vc[k], match_output[k])
    return requested


@inlined
def add_pair(net: Net, many: int, count: int, i: int, o: int) -> int:
    """Note that input `i` and output `o` are matched; returns how many are."""
    int64s(net.match_input)[count], int64s(net.match_output)[count] = i, o
    int64s(net.match_vc)[count] = int64(int8s(net.representative)[place_of(many, i, o)])
    return count + 1


@inlined
def match_outputs(net: Net, many: int, router: int, requested: Any, speculative: int) -> int:
    """`input_first`: every output picks one of the inputs that are left to it."""
    count = 0
    for word in range(many):
        rest = take_word(requested, net.requested, many, word)
        while rest != uint64(0):
            o = (word << 6) + trailing_zeros(rest)
            rest &= rest - uint64(1)
            count = add_pair(net, many, count, pick_of_output(net, many, router, o, speculative), o)
            forget(words(net.asking_inputs), o, many)
    return count


@inlined
def match_offers(net: Net, many: int, router: int, requested: Any, speculative: int) -> int:
    """`output_first`: every output offers itself to an input, every input picks an offer."""
    outputs, chosen, count = words(net.asking_outputs), uint64(0), 0
    for word in range(many):
        rest = take_word(requested, net.requested, many, word)
        while rest != uint64(0):
            o = (word << 6) + trailing_zeros(rest)
            rest &= rest - uint64(1)
            i = pick_of_output(net, many, router, o, speculative)
            forget(words(net.asking_inputs), o, many)
            outputs[i * many + word] |= bit_of(o)
            chosen = put_bit(chosen, net.chosen, many, i)
    for word in range(many):
        rest = take_word(chosen, net.chosen, many, word)
        while rest != uint64(0):
            i = (word << 6) + trailing_zeros(rest)
            rest &= rest - uint64(1)
            count = add_pair(net, many, count, i, pick_of_input(net, many, router, i, speculative))
            forget(outputs, i, many)
    return count


@inlined
def match_diagonals(net: Net, many: int, router: int, requested: Any, speculative: int) -> int:
    """`wavefront`: requests in the order of their diagonals; pairs of one diagonal never conflict."""
    state, ports, used, count = router_at(net, router), net.ports, uint64(0), 0
    block, start = int64(state.turn_ports), int64(state.spec_diagonal if speculative else state.sa_diagonal)
    for k in range(block):
        for word in range(many):
            rest = word_of(requested, net.requested, many, word)
            while rest != uint64(0):
                o = (word << 6) + trailing_zeros(rest)
                rest &= rest - uint64(1)
                place = start + k - o % block
                place = place + block if place < 0 else place - block if place >= block else place
                for i in range(place, ports, block):
                    if is_asked(net, many, i, o) and word_of(used, net.chosen, many, i >> 6) & bit_of(i) == uint64(0):
                        used = put_bit(used, net.chosen, many, i)
                        requested = take_bit(requested, net.requested, many, o)
                        forget(words(net.asking_inputs), o, many)
                        count = add_pair(net, many, count, i, o)
                        break
    if many != 1:
        forget(words(net.chosen), 0, many)
    forget_requests(net, many, requested)
    return count


@inlined
def forget_requests(net: Net, many: int, requested: Any) -> None:
    """Clear the requests that are left."""
    for word in range(many):
        rest = take_word(requested, net.requested, many, word)
        while rest != uint64(0):
            forget(words(net.asking_inputs), (word << 6) + trailing_zeros(rest), many)
            rest &= rest - uint64(1)


@inlined
def match_ports(net: Net, many: int, router: int, requested: Any, speculative: int) -> int:
    """Match inputs and outputs of the requests in ``net.asking_inputs`` (cleared); `requested`: outputs asked for.

    Returns the number of pairs in ``net.match_input``, ``net.match_output`` and ``net.match_vc``.
    """
    if net.sa_kind == INPUT_FIRST:
        return match_outputs(net, many, router, requested, speculative)
    if net.sa_kind == OUTPUT_FIRST:
        return match_offers(net, many, router, requested, speculative)
    if net.sa_kind == MAXIMUM:
        return match_most_ports(net, many, router, requested, speculative)
    return match_diagonals(net, many, router, requested, speculative)


@inlined
def asking_vcs(net: Net, many: int, router: int, word: int) -> Any:
    """Word of the mask of the VCs that ask for an output port of a router."""
    asking = uint64(0)
    for k in range(asked_words(net, many, router)):
        base, asked = asked_ports(net, many, router, k)
        while asked != uint64(0):
            p = base + trailing_zeros(asked)
            asked &= asked - uint64(1)
            asking |= words(net.switching)[p * net.vc_words + word]
    return asking


@inlined
def collect_requests(net: Net, many: int, router: int, now: int) -> tuple[Any, Any]:
    """List in ``net.match_input`` and so on, by increasing input and VC, who asks for which output without speculation.

    Returns the number of requests, and a mask of inputs and outputs (in one) that is 0 if none has several. Beyond 64
    ports two may share a bit of it.
    """
    first_port = router * net.ports
    first = first_port * net.vcs
    match_input, match_output, match_vc = int64s(net.match_input), int64s(net.match_output), int64s(net.match_vc)
    pairs = int64(0)
    inputs, outputs, shared = uint64(0), uint64(0), uint64(0)
    for word in range(net.vc_words):
        asking = asking_vcs(net, many, router, word)
        while asking != uint64(0):
            number = (word << 6) + trailing_zeros(asking)
            asking &= asking - uint64(1)
            vc = input_vc(net, first + number)
            i, o = int64(vc.port) - first_port, int64(vc.out_port)
            if net.output_queues != 0 or output_port(net, first_port + o).busy_until <= now:
                match_input[pairs], match_output[pairs], match_vc[pairs] = i, o, vc_in_port(net, vc)
                pairs += 1
                shared |= (inputs & bit_of(i)) | (outputs & bit_of(o))
                inputs |= bit_of(i)
                outputs |= bit_of(o)
    return pairs, shared


@inlined
def match_switch(net: Net, many: int, router: int, now: int) -> None:
    """SA of one router in cycle `now`, without the speculative requests, by any allocator and arbiters."""
    ports = net.ports
    match_input, match_output, match_vc = int64s(net.match_input), int64s(net.match_output), int64s(net.match_vc)
    pairs, shared = collect_requests(net, many, router, now)
    if pairs == 0:
        return
    if shared != uint64(0) or net.sa_kind != OUTPUT_FIRST:  # otherwise every request is a grant
        pairs = match_ports(net, many, router, enter_requests(net, many, router, pairs), 0)
    for k in range(pairs):
        i, o, v = match_input[k], match_output[k], match_vc[k]
        move_pointers(net, router, i, v, o, 0, now)
        grant_switch(net, (router * ports + i) * net.vcs + v, router * ports + o, now)
        if net.speculation != 0 or router_at(net, router).drain_ports != 0:
            note_grant(net, router * ports + o, i, now)
    if net.sa_kind > OUTPUT_FIRST:
        state = router_at(net, router)
        state.sa_diagonal = (state.sa_diagonal + 1) % state.turn_ports


@inlined
def switch_match_routers(net: Net, many: int, first: int, end: int, now: int) -> int:
    """SA of routers `first` up to, but without, `end`."""
    for router in range(first, end):
        if any_asks(net, many, router):
            match_switch(net, many, router, now)
    return 0


@c_kernel(HOOK_SIGNATURE)
def switch_match(net: Net, first: int, end: int, now: int) -> int:
    """Serve routers whose masks of ports are one word: the hook `switch_match`."""
    return switch_match_routers(net, 1, first, end, now)


@c_kernel(HOOK_SIGNATURE)
def switch_match_words(net: Net, first: int, end: int, now: int) -> int:
    """Serve any routers: the hook `switch_match`."""
    return switch_match_routers(net, net.port_words, first, end, now)

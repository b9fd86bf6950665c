"""SA with input-first, wavefront and max_size allocators and with matrix arbiters, compiled only where used."""

from typing import Any

from numba import int64, uint64

from hopforge.model.kernel.bits import bit_of, bits_at, bits_between, first_of_mask, trailing_zeros
from hopforge.model.kernel.compile import c_kernel, inlined, inner
from hopforge.model.kernel.memory import int8s, int64s, words
from hopforge.model.network.core.hooks import HOOK_SIGNATURE
from hopforge.model.network.core.records import (
    INPUT_FIRST,
    MAXIMUM,
    OUTPUT_FIRST,
    Net,
    input_port,
    input_vc,
    output_port,
    router_at,
    vc_in_port,
)
from hopforge.model.network.core.switch_allocation import grant_switch, note_grant
from hopforge.model.network.parts.maximum_match import match_most_ports


@inlined
def any_asks(net: Net, router: int) -> bool:
    """Whether somebody asks for an output port of a router."""
    first, last = router * net.ports, (router + 1) * net.ports
    if net.ports <= 64:
        return bool(bits_at(words(net.asking), first, net.ports) != uint64(0))
    found = uint64(0)
    for word in range(first >> 6, (last + 63) >> 6):
        found |= bits_between(words(net.asking)[word], word, first, last)
    return bool(found != uint64(0))


@inlined
def pick_of_output(net: Net, router: int, output: int, speculative: int) -> int:
    """Arbiter of `output`: one of the inputs that ask for it."""
    ports, count = net.ports, net.port_words
    p = router * ports + output
    if net.matrix == 0:
        port = output_port(net, p)
        start = int64(port.spec_g if speculative else port.g)
        return first_of_mask(words(net.asking_inputs), output * count, count, start)
    base = (speculative * 2 * net.routers * ports + p) * ports
    return least_recent(net, base, words(net.asking_inputs), output * count)


@inlined
def pick_of_input(net: Net, router: int, i: int, speculative: int) -> int:
    """Arbiter of input `i`: one of the outputs that chose it."""
    ports, count = net.ports, net.port_words
    p = router * ports + i
    if net.matrix == 0:
        port = input_port(net, p)
        start = int64(port.spec_a if speculative else port.a)
        return first_of_mask(words(net.asking_outputs), i * count, count, start)
    base = ((speculative * 2 + 1) * net.routers * ports + p) * ports
    return least_recent(net, base, words(net.asking_outputs), i * count)


@inner
def least_recent(net: Net, base: int, masks: Any, first: int) -> int:
    """Bit, of the mask that begins in ``masks[first]``, whose entry of ``net.sa_recent`` after `base` is the oldest."""
    best, best_time = -1, int64(0)
    for word in range(net.port_words):
        rest = masks[first + word]
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
        half = net.routers * ports
        int64s(net.sa_recent)[(speculative * 2 * half + router * ports + o) * ports + i] = now
        int64s(net.sa_recent)[((speculative * 2 + 1) * half + router * ports + i) * ports + o] = now
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
def place_of(net: Net, i: int, o: int) -> int:
    """Where the VC that stands for input `i` and output `o` is in ``net.representative``."""
    return (i * net.port_words << 6) | o


@inlined
def is_asked(net: Net, i: int, o: int) -> bool:
    """Whether input `i` has asked for output `o`."""
    return bool(words(net.asking_inputs)[o * net.port_words + (i >> 6)] & bit_of(i) != uint64(0))


@inlined
def ask(net: Net, i: int, v: int, o: int) -> None:
    """Enter the request of input `i` for output `o` with VC `v`."""
    int8s(net.representative)[place_of(net, i, o)] = v
    words(net.asking_inputs)[o * net.port_words + (i >> 6)] |= bit_of(i)
    words(net.requested)[o >> 6] |= bit_of(o)


@inlined
def forget(masks: Any, number: int, count: int) -> None:
    """Clear mask `number` of masks of `count` words."""
    masks[number * count] = 0
    for k in range(1, count):
        masks[number * count + k] = 0


@inlined
def enter_requests(net: Net, router: int, requests: int) -> None:
    """Enter the requests in ``net.match_input`` and so on (by increasing input and VC).

    For an input and an output (input_first: for an input) the first VC at or after q stands.
    """
    match_input, match_output, match_vc = int64s(net.match_input), int64s(net.match_output), int64s(net.match_vc)
    kept = 0
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
        if not is_asked(net, i, o) or int8s(net.representative)[place_of(net, i, o)] < q <= v:
            ask(net, i, v, o)
    for k in range(kept):
        ask(net, match_input[k], match_vc[k], match_output[k])


@inlined
def add_pair(net: Net, count: int, i: int, o: int) -> int:
    """Note that input `i` and output `o` are matched; returns how many are."""
    int64s(net.match_input)[count], int64s(net.match_output)[count] = i, o
    int64s(net.match_vc)[count] = int64(int8s(net.representative)[place_of(net, i, o)])
    return count + 1


@inner
def match_outputs(net: Net, router: int, speculative: int) -> int:
    """`input_first`: every output picks one of the inputs that are left to it."""
    requested, count = words(net.requested), 0
    for word in range(net.port_words):
        rest = requested[word]
        requested[word] = 0
        while rest != uint64(0):
            o = (word << 6) + trailing_zeros(rest)
            rest &= rest - uint64(1)
            count = add_pair(net, count, pick_of_output(net, router, o, speculative), o)
            forget(words(net.asking_inputs), o, net.port_words)
    return count


@inner
def match_offers(net: Net, router: int, speculative: int) -> int:
    """`output_first`: every output offers itself to an input, every input picks an offer."""
    requested, chosen, outputs = words(net.requested), words(net.chosen), words(net.asking_outputs)
    count, many = 0, net.port_words
    for word in range(many):
        rest = requested[word]
        requested[word] = 0
        while rest != uint64(0):
            o = (word << 6) + trailing_zeros(rest)
            rest &= rest - uint64(1)
            i = pick_of_output(net, router, o, speculative)
            forget(words(net.asking_inputs), o, many)
            outputs[i * many + word] |= bit_of(o)
            chosen[i >> 6] |= bit_of(i)
    for word in range(many):
        rest = chosen[word]
        chosen[word] = 0
        while rest != uint64(0):
            i = (word << 6) + trailing_zeros(rest)
            rest &= rest - uint64(1)
            count = add_pair(net, count, i, pick_of_input(net, router, i, speculative))
            forget(outputs, i, many)
    return count


@inner
def match_diagonals(net: Net, router: int, speculative: int) -> int:
    """`wavefront`: requests in the order of their diagonals; pairs of one diagonal never conflict."""
    requested, used, inputs = words(net.requested), words(net.chosen), words(net.asking_inputs)
    ports, many, count = net.ports, net.port_words, 0
    start = int64(router_at(net, router).spec_diagonal if speculative else router_at(net, router).sa_diagonal)
    for k in range(ports):
        for word in range(many):
            rest = requested[word]
            while rest != uint64(0):
                o = (word << 6) + trailing_zeros(rest)
                rest &= rest - uint64(1)
                i = (start + k - o) % ports
                if is_asked(net, i, o) and used[i >> 6] & bit_of(i) == uint64(0):
                    used[i >> 6] |= bit_of(i)
                    requested[word] &= ~bit_of(o)
                    forget(inputs, o, many)
                    count = add_pair(net, count, i, o)
    forget(used, 0, many)
    forget_requests(net)
    return count


@inner
def forget_requests(net: Net) -> None:
    """Clear the requests that are left."""
    requested = words(net.requested)
    for word in range(net.port_words):
        rest = requested[word]
        requested[word] = 0
        while rest != uint64(0):
            forget(words(net.asking_inputs), (word << 6) + trailing_zeros(rest), net.port_words)
            rest &= rest - uint64(1)


@inner
def match_ports(net: Net, router: int, speculative: int) -> int:
    """Match inputs and outputs of the requests in ``net.asking_inputs`` and ``net.requested`` (cleared).

    Returns the number of pairs in ``net.match_input``, ``net.match_output`` and ``net.match_vc``.
    """
    if net.sa_kind == INPUT_FIRST:
        return match_outputs(net, router, speculative)
    if net.sa_kind == OUTPUT_FIRST:
        return match_offers(net, router, speculative)
    if net.sa_kind == MAXIMUM:
        return match_most_ports(net, router, speculative)
    return match_diagonals(net, router, speculative)


@inlined
def asking_vcs(net: Net, first: int, word: int) -> Any:
    """Word of the mask of the VCs that ask for an output port of the router whose ports begin at `first`."""
    asking, last = uint64(0), first + net.ports
    if net.ports <= 64:
        asked = bits_at(words(net.asking), first, net.ports)
        while asked != uint64(0):
            p = first + trailing_zeros(asked)
            asked &= asked - uint64(1)
            asking |= words(net.switching)[p * net.vc_words + word]
        return asking
    for k in range(first >> 6, (last + 63) >> 6):
        asked = bits_between(words(net.asking)[k], k, first, last)
        while asked != uint64(0):
            p = (k << 6) + trailing_zeros(asked)
            asked &= asked - uint64(1)
            asking |= words(net.switching)[p * net.vc_words + word]
    return asking


@inner
def collect_requests(net: Net, router: int, now: int) -> tuple[Any, Any]:
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
        asking = asking_vcs(net, first_port, word)
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


@inner
def match_switch(net: Net, router: int, now: int) -> None:
    """SA of one router in cycle `now`, without the speculative requests, by any allocator and arbiters."""
    ports = net.ports
    match_input, match_output, match_vc = int64s(net.match_input), int64s(net.match_output), int64s(net.match_vc)
    pairs, shared = collect_requests(net, router, now)
    if pairs == 0:
        return
    if shared != uint64(0) or net.sa_kind != OUTPUT_FIRST:  # otherwise every request is a grant
        enter_requests(net, router, pairs)
        pairs = match_ports(net, router, 0)
    for k in range(pairs):
        i, o, v = match_input[k], match_output[k], match_vc[k]
        move_pointers(net, router, i, v, o, 0, now)
        grant_switch(net, (router * ports + i) * net.vcs + v, router * ports + o, now)
        if net.speculation != 0 or router_at(net, router).drain_ports != 0:
            note_grant(net, router * ports + o, i, now)
    if net.sa_kind > OUTPUT_FIRST:
        state = router_at(net, router)
        state.sa_diagonal = (state.sa_diagonal + 1) % ports


@c_kernel(HOOK_SIGNATURE)
def switch_match(net: Net, first: int, end: int, now: int) -> int:
    """SA of routers `first` up to, but without, `end`: the hook `switch_match`."""
    for router in range(first, end):
        if any_asks(net, router):
            match_switch(net, router, now)
    return 0

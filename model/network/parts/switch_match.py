"""SA with input-first, wavefront and max_size allocators and with matrix arbiters, compiled only where used."""

from typing import Any

from numba import int64, uint64

from hopforge.model.kernel.bits import bit_of, bits_at, first_at_or_after, trailing_zeros
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
def pick_of_output(net: Net, router: int, output: int, inputs: int, speculative: int) -> int:
    """Arbiter of `output`: one input of the mask `inputs`."""
    ports = net.ports
    p = router * ports + output
    if net.matrix == 0:
        port = output_port(net, p)
        return first_at_or_after(inputs, int64(port.spec_g if speculative else port.g))
    base = (speculative * 2 * net.routers * ports + p) * ports
    return least_recent(net, base, inputs)


@inlined
def pick_of_input(net: Net, router: int, i: int, outputs: int, speculative: int) -> int:
    """Arbiter of input `i`: one output of the mask `outputs`."""
    ports = net.ports
    p = router * ports + i
    if net.matrix == 0:
        port = input_port(net, p)
        return first_at_or_after(outputs, int64(port.spec_a if speculative else port.a))
    base = ((speculative * 2 + 1) * net.routers * ports + p) * ports
    return least_recent(net, base, outputs)


@inner
def least_recent(net: Net, base: int, mask: int) -> int:
    """Bit of `mask` whose entry of ``net.sa_recent`` after `base` is the oldest (ties: lowest)."""
    rest = uint64(mask)
    best, best_time = -1, int64(0)
    while rest != uint64(0):
        k = trailing_zeros(rest)
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
def ask(net: Net, i: int, v: int, o: int) -> Any:
    """Enter the request of input `i` for output `o` with VC `v`; returns the bit of `o`."""
    int8s(net.representative)[(i << 6) | o] = v
    words(net.asking_inputs)[o] |= uint64(1) << uint64(i)
    return uint64(1) << uint64(o)


@inlined
def enter_requests(net: Net, router: int, requests: int) -> Any:
    """Enter the requests in ``net.match_input`` and so on (by increasing input and VC); returns the outputs' mask.

    For an input and an output (input_first: for an input) the first VC at or after q stands.
    """
    match_input, match_output, match_vc = int64s(net.match_input), int64s(net.match_output), int64s(net.match_vc)
    requested = uint64(0)
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
        if words(net.asking_inputs)[o] & bit_of(i) == uint64(0) or int8s(net.representative)[(i << 6) | o] < q <= v:
            requested |= ask(net, i, v, o)
    for k in range(kept):
        requested |= ask(net, match_input[k], match_vc[k], match_output[k])
    return requested


@inner
def match_ports(net: Net, router: int, requested: Any, speculative: int) -> int:
    """Match inputs and outputs of the requests in ``net.asking_inputs`` (cleared).

    Returns the number of pairs in ``net.match_input``, ``net.match_output`` and ``net.match_vc``.
    """
    asking_inputs, asking_outputs = words(net.asking_inputs), words(net.asking_outputs)
    match_input, match_output, match_vc = int64s(net.match_input), int64s(net.match_output), int64s(net.match_vc)
    representative = int8s(net.representative)
    count = 0
    if net.sa_kind == INPUT_FIRST:
        while requested != uint64(0):
            o = trailing_zeros(requested)
            requested &= requested - uint64(1)
            i = pick_of_output(net, router, o, asking_inputs[o], speculative)
            match_input[count], match_output[count], match_vc[count] = i, o, int64(representative[(i << 6) | o])
            asking_inputs[o] = 0
            count += 1
        return count
    if net.sa_kind == OUTPUT_FIRST:
        chosen = uint64(0)
        while requested != uint64(0):
            o = trailing_zeros(requested)
            requested &= requested - uint64(1)
            i = pick_of_output(net, router, o, asking_inputs[o], speculative)
            asking_inputs[o] = 0
            asking_outputs[i] |= uint64(1) << uint64(o)
            chosen |= uint64(1) << uint64(i)
        while chosen != uint64(0):
            i = trailing_zeros(chosen)
            chosen &= chosen - uint64(1)
            o = pick_of_input(net, router, i, asking_outputs[i], speculative)
            match_input[count], match_output[count], match_vc[count] = i, o, int64(representative[(i << 6) | o])
            asking_outputs[i] = 0
            count += 1
        return count
    if net.sa_kind == MAXIMUM:
        return match_most_ports(net, router, requested, speculative)
    ports = net.ports
    start = int64(router_at(net, router).spec_diagonal if speculative else router_at(net, router).sa_diagonal)
    inputs_used = uint64(0)
    for k in range(ports):
        rest = requested
        while rest != uint64(0):
            o = trailing_zeros(rest)
            rest &= rest - uint64(1)
            i = (start + k - o) % ports
            bit = uint64(1) << uint64(i)
            if asking_inputs[o] & bit != uint64(0) and inputs_used & bit == uint64(0):
                inputs_used |= bit
                requested &= ~(uint64(1) << uint64(o))
                asking_inputs[o] = 0
                match_input[count], match_output[count], match_vc[count] = i, o, int64(representative[(i << 6) | o])
                count += 1
    while requested != uint64(0):
        asking_inputs[trailing_zeros(requested)] = 0
        requested &= requested - uint64(1)
    return count


@inner
def collect_requests(net: Net, router: int, now: int) -> tuple[Any, Any]:
    """List in ``net.match_input`` and so on, by increasing input and VC, who asks for which output without speculation.

    Returns the number of requests, and the mask of inputs and outputs (in one) that have several.
    """
    ports = net.ports
    first = router * ports * net.vcs
    match_input, match_output, match_vc = int64s(net.match_input), int64s(net.match_output), int64s(net.match_vc)
    pairs = int64(0)
    inputs, outputs, shared = uint64(0), uint64(0), uint64(0)
    asked = bits_at(words(net.asking), router * ports, ports)
    for word in range(net.vc_words):
        asking = uint64(0)
        ports_asked = asked
        while ports_asked != uint64(0):
            o = trailing_zeros(ports_asked)
            ports_asked &= ports_asked - uint64(1)
            asking |= words(net.switching)[(router * ports + o) * net.vc_words + word]
        while asking != uint64(0):
            number = (word << 6) + trailing_zeros(asking)
            asking &= asking - uint64(1)
            vc = input_vc(net, first + number)
            i, o = int64(vc.port) - router * ports, int64(vc.out_port)
            if net.output_queues != 0 or output_port(net, router * ports + o).busy_until <= now:
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
        pairs = match_ports(net, router, enter_requests(net, router, pairs), 0)
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
        if bits_at(words(net.asking), router * net.ports, net.ports) != uint64(0):
            match_switch(net, router, now)
    return 0

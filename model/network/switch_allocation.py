"""SA: which input VC sends a flit through the crossbar (docs/router.md, SA); `allocate_routers` serves all routers."""

from typing import Any

from numba import int64, uint32, uint64

from hopforge.model.network.bits import bit_of, first_at_or_after, trailing_zeros
from hopforge.model.network.cache import inlined, inner
from hopforge.model.network.events import OUTPUT_VC_BYTES, pop_flit, send_flit, want_switch
from hopforge.model.network.hooks import GRANT, MATCH, call_hook
from hopforge.model.network.memory import int8s, int32s, int64s, prefetch, words
from hopforge.model.network.records import (
    ACTIVE,
    INPUT_FIRST,
    OUTPUT_FIRST,
    TAIL,
    Net,
    input_port,
    input_vc,
    output_port,
    output_vc,
    router_at,
)
from hopforge.model.network.vc_allocation import allocate_vcs


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


@inlined
def grant_switch(net: Net, router: int, i: int, v: int, o: int, now: int) -> None:
    """Send the first flit of input VC (`i`, `v`) to output `o`."""
    n = (router * net.ports + i) * net.vcs + v
    m = int64(input_vc(net, n).out_vc)
    output = output_vc(net, m)
    port = output_port(net, router * net.ports + o)
    output.credits = output.credits - 1
    flit = pop_flit(net, n, now)
    send_flit(net, n, m, port.flit_time, flit, now)
    port.flits += 1
    port.busy_until = now + port.cycles_per_flit
    if flit & TAIL != 0:
        if net.release_credits != 0:
            output.tail_sent = 1
        else:
            output.owner = -1
            port.free_mask = port.free_mask | (uint32(1) << output.vc)
    if flit & TAIL != 0 or output.credits == 0 or input_vc(net, n).flits == 0:
        number = i * net.vcs + v
        words(net.switching)[router * net.vc_words + (number >> 6)] &= ~bit_of(number)


@inlined
def allocate_switch(net: Net, router: int, now: int) -> None:
    """SA of one router in cycle `now`, without the speculative requests."""
    ports = net.ports
    first = router * ports * net.vcs
    match_input, match_output, match_vc = int64s(net.match_input), int64s(net.match_output), int64s(net.match_vc)
    pairs = int64(0)
    inputs, outputs, shared = uint64(0), uint64(0), uint64(0)
    for word in range(net.vc_words):
        asking = words(net.switching)[router * net.vc_words + word]
        while asking != uint64(0):
            number = (word << 6) + trailing_zeros(asking)
            asking &= asking - uint64(1)
            vc = input_vc(net, first + number)
            i, o = int64(vc.port) - router * ports, int64(vc.out_port)
            prefetch(net.output_vc + int64(vc.out_vc) * OUTPUT_VC_BYTES)
            prefetch(net.fifo + 4 * ((first + number) * net.buffer + vc.head))
            if output_port(net, router * ports + o).busy_until <= now:
                match_input[pairs], match_output[pairs], match_vc[pairs] = i, o, int64(vc.vc)
                pairs += 1
                shared |= (inputs & bit_of(i)) | (outputs & bit_of(o))
                inputs |= bit_of(i)
                outputs |= bit_of(o)
    if pairs == 0:
        return
    if shared != uint64(0) or net.sa_kind != OUTPUT_FIRST:  # otherwise every request is a grant
        pairs = match_ports(net, router, enter_requests(net, router, pairs), 0)
    for k in range(pairs):
        i, o, v = match_input[k], match_output[k], match_vc[k]
        move_pointers(net, router, i, v, o, 0, now)
        grant_switch(net, router, i, v, o, now)
    state = router_at(net, router)
    if net.sa_kind > OUTPUT_FIRST:
        state.sa_diagonal = (state.sa_diagonal + 1) % ports
    if net.speculation != 0 or state.drain_ports != uint64(0):
        state.granted_inputs = uint64(0)
        state.granted_outputs = uint64(0)
        for k in range(pairs):
            state.granted_inputs |= bit_of(match_input[k])
            state.granted_outputs |= bit_of(match_output[k])
        state.granted_cycle = now


@inlined
def activate_granted(net: Net) -> None:
    """Let the VCs that VA served in this cycle ask for the switch from the next cycle on."""
    for k in range(net.granted_count):
        n = int64(int32s(net.granted)[k])
        vc = input_vc(net, n)
        if vc.state == ACTIVE and vc.flits > 0 and output_vc(net, int64(vc.out_vc)).credits > 0:
            want_switch(net, n)
    net.granted_count = 0


@inlined
def allocate_routers(net: Net, now: int) -> None:
    """VA and SA of all routers in cycle `now`, one router after the other.

    With speculation VA of all routers comes first, then both matches, then the grants: a speculative match is decided
    on the registers at the start of the cycle and carried out if VA and SA allow it.
    """
    vc_words = net.vc_words
    net.speculative = 0
    separate = net.speculation != 0
    for stage in range(2 if separate else 1):
        for word in range(net.router_words):
            routers = words(net.active)[word]
            while routers != uint64(0):
                router = word * 64 + trailing_zeros(routers)
                routers &= routers - uint64(1)
                if stage == 0:
                    allocate_vcs(net, router, now)
                if separate and stage == 0:
                    continue
                allocate_switch(net, router, now)
                if not separate:
                    activate_granted(net)
                left = uint64(0)
                for k in range(router * vc_words, (router + 1) * vc_words):
                    left |= words(net.waiting)[k] | words(net.switching)[k]
                if left == uint64(0):
                    words(net.active)[word] &= ~bit_of(router)
        if separate and stage == 0:
            call_hook(net.speculation, net, MATCH, now, now)
    if separate:
        call_hook(net.speculation, net, GRANT, now, now)
        activate_granted(net)

"""SA: which input VC sends a flit through the crossbar (docs/router.md, SA); one call serves all routers."""

from typing import Any

from numba import int64, njit, uint32, uint64

from hopforge.model.network.bits import first_at_or_after, trailing_zeros
from hopforge.model.network.events import pop_flit, send_flit
from hopforge.model.network.memory import int8s, int32s, int64s, words
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


@njit
def pick_of_output(net: Net, router: int, output: int, inputs: int, speculative: int) -> int:
    """Arbiter of `output`: one input of the mask `inputs`."""
    ports = net.ports
    p = router * ports + output
    if net.matrix == 0:
        port = output_port(net, p)
        return first_at_or_after(inputs, port.spec_g if speculative else port.g)
    base = (speculative * 2 * net.routers * ports + p) * ports
    return least_recent(net, base, inputs)


@njit
def pick_of_input(net: Net, router: int, i: int, outputs: int, speculative: int) -> int:
    """Arbiter of input `i`: one output of the mask `outputs`."""
    ports = net.ports
    p = router * ports + i
    if net.matrix == 0:
        port = input_port(net, p)
        return first_at_or_after(outputs, port.spec_a if speculative else port.a)
    base = ((speculative * 2 + 1) * net.routers * ports + p) * ports
    return least_recent(net, base, outputs)


@njit
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


@njit
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


@njit
def ask(net: Net, i: int, v: int, o: int) -> Any:
    """Enter the request of input `i` for output `o` with VC `v`; returns the bit of `o`."""
    int8s(net.representative)[(i << 6) | o] = v
    words(net.asking_inputs)[o] |= uint64(1) << uint64(i)
    return uint64(1) << uint64(o)


@njit
def collect(net: Net, router: int, i: int, requested: Any, now: int) -> Any:
    """Enter the requests of input port `i`; returns the mask of all requested outputs so far."""
    port = input_port(net, router * net.ports + i)
    first = (router * net.ports + i) * net.vcs
    mask = uint64(port.switch_mask)
    upper = (mask >> uint64(port.q)) << uint64(port.q)
    seen = uint64(0)
    for half in range(2):
        part = upper if half == 0 else mask ^ upper
        while part != uint64(0):
            v = trailing_zeros(part)
            part &= part - uint64(1)
            o = int64(input_vc(net, first + v).out_port)
            bit = uint64(1) << uint64(o)
            if seen & bit == uint64(0) and output_port(net, router * net.ports + o).busy_until <= now:
                seen |= ask(net, i, v, o)
                if net.sa_kind == INPUT_FIRST:
                    return requested | seen
    return requested | seen


@njit
def match_ports(net: Net, router: int, requested: Any, speculative: int) -> int:
    """Match inputs and outputs of the requests in ``net.asking_inputs`` (cleared).

    Returns the number of pairs in ``net.match_input`` and ``net.match_output``.
    """
    asking_inputs, asking_outputs = words(net.asking_inputs), words(net.asking_outputs)
    match_input, match_output = int64s(net.match_input), int64s(net.match_output)
    count = 0
    if net.sa_kind == INPUT_FIRST:
        while requested != uint64(0):
            o = trailing_zeros(requested)
            requested &= requested - uint64(1)
            match_input[count] = pick_of_output(net, router, o, asking_inputs[o], speculative)
            match_output[count] = o
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
            match_input[count] = i
            match_output[count] = pick_of_input(net, router, i, asking_outputs[i], speculative)
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
                match_input[count] = i
                match_output[count] = o
                count += 1
    while requested != uint64(0):
        asking_inputs[trailing_zeros(requested)] = 0
        requested &= requested - uint64(1)
    return count


@njit
def grant_switch(net: Net, router: int, i: int, v: int, o: int, now: int) -> None:
    """Send the first flit of input VC (`i`, `v`) to output `o`."""
    n = (router * net.ports + i) * net.vcs + v
    m = input_vc(net, n).out_vc
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
        inp = input_port(net, router * net.ports + i)
        inp.switch_mask = inp.switch_mask & ~(uint32(1) << uint32(v))
        if inp.switch_mask == 0:
            router_at(net, router).switch_ports = router_at(net, router).switch_ports & ~(uint64(1) << uint64(i))


@njit
def allocate_switch(net: Net, now: int) -> None:
    """SA of all routers in cycle `now`, without the speculative requests."""
    ports = net.ports
    for word in range(net.router_words):
        routers = words(net.switching)[word]
        while routers != uint64(0):
            router = word * 64 + trailing_zeros(routers)
            routers &= routers - uint64(1)
            state = router_at(net, router)
            requested = uint64(0)
            inputs = state.switch_ports
            while inputs != uint64(0):
                i = trailing_zeros(inputs)
                inputs &= inputs - uint64(1)
                requested = collect(net, router, i, requested, now)
            if requested != uint64(0):
                pairs = match_ports(net, router, requested, 0)
                granted_inputs = uint64(0)
                granted_outputs = uint64(0)
                for k in range(pairs):
                    i, o = int64s(net.match_input)[k], int64s(net.match_output)[k]
                    v = int64(int8s(net.representative)[(i << 6) | o])
                    move_pointers(net, router, i, v, o, 0, now)
                    grant_switch(net, router, i, v, o, now)
                    granted_inputs |= uint64(1) << uint64(i)
                    granted_outputs |= uint64(1) << uint64(o)
                if net.sa_kind > OUTPUT_FIRST:
                    state.sa_diagonal = (state.sa_diagonal + 1) % ports
                state.granted_inputs = granted_inputs
                state.granted_outputs = granted_outputs
                state.granted_cycle = now
            if state.switch_ports == uint64(0):
                words(net.switching)[word] &= ~(uint64(1) << uint64(router & 63))


@njit
def activate_granted(net: Net) -> None:
    """Let the VCs that VA served in this cycle ask for the switch from the next cycle on."""
    for k in range(net.granted_count):
        n = int32s(net.granted)[k]
        vc = input_vc(net, n)
        if vc.state == ACTIVE and vc.flits > 0 and output_vc(net, vc.out_vc).credits > 0:
            port = input_port(net, vc.port)
            port.switch_mask = port.switch_mask | (uint32(1) << vc.vc)
            router_at(net, port.router).switch_ports |= uint64(1) << uint64(port.port)
            words(net.switching)[port.router >> 6] |= uint64(1) << uint64(port.router & 63)


@njit
def match_speculative(net: Net, now: int) -> None:
    """Second switch allocator: match the heads that asked VA in this cycle.

    Runs between `allocate_vcs` and `allocate_switch`, because it decides on the registers at the start of the cycle;
    the matches replace the requests in ``net.spec_vc`` and ``net.spec_port``.
    """
    ports, vcs = net.ports, net.vcs
    net.spec_matches = 0
    position = 0
    while position < net.speculative:
        router = int64(input_port(net, input_vc(net, int32s(net.spec_vc)[position]).port).router)
        requested = uint64(0)
        while position < net.speculative and int32s(net.spec_vc)[position] < (router + 1) * ports * vcs:
            # the entries of one input port are neighbours, by increasing VC: take them from q on
            p = input_vc(net, int32s(net.spec_vc)[position]).port
            end = position
            while end < net.speculative and input_vc(net, int32s(net.spec_vc)[end]).port == p:
                end += 1
            port = input_port(net, p)
            seen = uint64(0)
            for half in range(2):
                for j in range(position, end):
                    v = int64(input_vc(net, int32s(net.spec_vc)[j]).vc)
                    o = int64(int32s(net.spec_port)[j])
                    if (v >= port.q) != (half == 0) or seen & (uint64(1) << uint64(o)) != uint64(0):
                        continue
                    if net.sa_kind == INPUT_FIRST and seen != uint64(0):
                        continue
                    if output_port(net, router * ports + o).busy_until <= now:
                        seen |= ask(net, int64(port.port), v, o)
            requested |= seen
            position = end
        if requested == uint64(0):
            continue
        pairs = match_ports(net, router, requested, 1)
        for k in range(pairs):
            i, o = int64s(net.match_input)[k], int64s(net.match_output)[k]
            int32s(net.spec_vc)[net.spec_matches] = (router * ports + i) * vcs + int8s(net.representative)[(i << 6) | o]
            int32s(net.spec_port)[net.spec_matches] = o
            net.spec_matches += 1


@njit
def grant_speculative(net: Net, now: int) -> None:
    """Carry out the speculative matches that no grant of `allocate_switch` and no failed VA stands against."""
    ports = net.ports
    for k in range(net.spec_matches):
        n = int32s(net.spec_vc)[k]
        vc = input_vc(net, n)
        port = input_port(net, vc.port)
        i, o = int64(port.port), int64(int32s(net.spec_port)[k])
        router = int64(port.router)
        state = router_at(net, router)
        if state.granted_cycle != now:
            state.granted_cycle = now
            state.granted_inputs = uint64(0)
            state.granted_outputs = uint64(0)
        if (state.granted_inputs >> uint64(i)) & uint64(1) or (state.granted_outputs >> uint64(o)) & uint64(1):
            continue
        if vc.state != ACTIVE or output_vc(net, vc.out_vc).credits <= 0:
            continue
        v = int64(vc.vc)
        if net.sa_kind > OUTPUT_FIRST and state.spec_cycle != now:
            state.spec_cycle = now
            state.spec_diagonal = (state.spec_diagonal + 1) % ports
        move_pointers(net, router, i, v, o, 1, now)
        grant_switch(net, router, i, v, o, now)
        state.granted_inputs |= uint64(1) << uint64(i)
        state.granted_outputs |= uint64(1) << uint64(o)

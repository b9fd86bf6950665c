"""Speculative switch requests (docs/definitions/router.md, SA): a head asks for VC and switch in the same cycle."""

from numba import int64, uint64

from hopforge.model.kernel.compile import c_kernel, inlined, inner
from hopforge.model.kernel.memory import int32s, int64s
from hopforge.model.network.core.hooks import HOOK_SIGNATURE, MATCH
from hopforge.model.network.core.kinds import ACTIVE, INPUT_FIRST, OUTPUT_FIRST
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import input_port, input_vc, output_vc, router_at, vc_in_port
from hopforge.model.network.core.switch_allocation import grant_switch, note_grant
from hopforge.model.network.parts.connections import is_closed, mark_connected
from hopforge.model.network.parts.output_queues import can_take
from hopforge.model.network.parts.switch_match import ask, is_asked, match_ports, move_pointers


@inlined
def match_speculative(net: Net, many: int, now: int) -> None:
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
        if net.hold_switch != 0:
            mark_connected(net, router)
        while position < net.speculative and int32s(net.spec_vc)[position] < (router + 1) * ports * vcs:
            # the entries of one input port are neighbours, by increasing VC: take them from q on
            p = input_vc(net, int32s(net.spec_vc)[position]).port
            end = position
            while end < net.speculative and input_vc(net, int32s(net.spec_vc)[end]).port == p:
                end += 1
            port = input_port(net, p)
            seen = False
            for half in range(2):
                for j in range(position, end):
                    v = vc_in_port(net, input_vc(net, int32s(net.spec_vc)[j]))
                    o = int64(int32s(net.spec_port)[j])
                    if (v >= port.q) != (half == 0) or is_asked(net, many, int64(port.port), o):
                        continue
                    if net.sa_kind == INPUT_FIRST and seen:
                        continue
                    if not is_closed(net, int64(port.port), o) and can_take(net, router * ports + o, now):
                        requested = ask(net, many, requested, int64(port.port), v, o)
                        seen = True
            position = end
        if requested == uint64(0):
            continue
        pairs = match_ports(net, many, router, requested, 1)
        for k in range(pairs):
            i, o = int64s(net.match_input)[k], int64s(net.match_output)[k]
            int32s(net.spec_vc)[net.spec_matches] = (router * ports + i) * vcs + int64s(net.match_vc)[k]
            int32s(net.spec_port)[net.spec_matches] = o
            net.spec_matches += 1


@inner
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
        p = router * ports + o
        if int64s(net.granted_input)[router * ports + i] == now + 1 or int64s(net.granted_output)[p] == now + 1:
            continue
        if vc.state != ACTIVE or output_vc(net, vc.out_vc).credits <= 0:
            continue
        v = vc_in_port(net, vc)
        if net.sa_kind > OUTPUT_FIRST and state.spec_cycle != now:
            state.spec_cycle = now
            state.spec_diagonal = (state.spec_diagonal + 1) % state.turn_ports
        move_pointers(net, router, i, v, o, 1, now)
        grant_switch(net, int64(n), p, now)
        note_grant(net, p, i, now)


@inlined
def match_or_grant(net: Net, many: int, event: int, now: int) -> int:
    """Match, then carry out."""
    if event == MATCH:
        match_speculative(net, many, now)
    else:
        grant_speculative(net, now)
    return 0


@c_kernel(HOOK_SIGNATURE)
def speculate(net: Net, event: int, a: int, b: int) -> int:
    """Serve routers whose masks of ports are one word: the hook `speculation`."""
    return match_or_grant(net, 1, event, a)


@c_kernel(HOOK_SIGNATURE)
def speculate_words(net: Net, event: int, a: int, b: int) -> int:
    """Serve any routers: the hook `speculation`."""
    return match_or_grant(net, net.port_words, event, a)

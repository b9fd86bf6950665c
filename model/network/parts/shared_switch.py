"""Speculative switch requests in the allocator of all others (definitions/router.md, SA, ``speculation: shared``)."""

from typing import Any

from numba import int64, uint64

from hopforge.model.kernel.bits import bit_of, trailing_zeros
from hopforge.model.kernel.compile import c_kernel, inlined
from hopforge.model.kernel.memory import int32s, int64s
from hopforge.model.network.core.hooks import HOOK_SIGNATURE, MATCH
from hopforge.model.network.core.kinds import ACTIVE, MAXIMUM
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import input_port, input_vc, output_port, output_vc, router_at, vc_in_port
from hopforge.model.network.core.switch_allocation import grant_switch, note_grant, vcs_that_ask
from hopforge.model.network.parts.port_masks import any_asks
from hopforge.model.network.parts.switch_match import (
    ask,
    collect_requests,
    enter_requests,
    is_asked,
    match_ports,
    move_pointers,
)


@inlined
def any_credit(net: Net, p: int, mask: int) -> bool:
    """Whether one of the VCs `mask` of global output port `p` has credits."""
    found = False
    rest = uint64(mask)
    while rest != uint64(0):
        found = found or output_vc(net, p * net.vcs + trailing_zeros(rest)).credits > 0
        rest &= rest - uint64(1)
    return found


@inlined
def enter_speculative(
    net: Net, many: int, requested: Any, router: int, first: int, last: int, now: int
) -> Any:  # fmt: skip
    """Enter heads `first` … `last` − 1 of ``net.spec_vc`` where no other request stands; returns `requested`."""
    for half in range(2):  # of an input port from q on
        for j in range(first, last):
            vc = input_vc(net, int32s(net.spec_vc)[j])
            port = input_port(net, vc.port)
            i, o = int64(port.port), int64(int32s(net.spec_port)[j])
            p, v = router * net.ports + o, vc_in_port(net, vc)
            if (v >= port.q) != (half == 0) or is_asked(net, many, i, o):
                continue
            if output_port(net, p).busy_until <= now and any_credit(net, p, int32s(net.spec_mask)[j]):
                requested = ask(net, many, requested, i, v, o)
    return requested


@inlined
def match_shared(net: Net, many: int, router: int, first: int, now: int) -> int:
    """SA of one router; its heads begin in ``net.spec_vc`` at `first`. Returns where those of the next one begin."""
    ports = net.ports
    last = first
    while last < net.speculative and int32s(net.spec_vc)[last] < (router + 1) * ports * net.vcs:
        last += 1
    pairs, _ = collect_requests(net, many, router, now)
    requested = enter_requests(net, many, router, pairs)
    requested = enter_speculative(net, many, requested, router, first, last, now)
    pairs = match_ports(net, many, router, requested, 0)
    for k in range(pairs):
        i, o, v = int64s(net.match_input)[k], int64s(net.match_output)[k], int64s(net.match_vc)[k]
        p = router * ports + o
        n = (router * ports + i) * net.vcs + v
        move_pointers(net, router, i, v, o, 0, now)
        vc = input_vc(net, n)
        if vcs_that_ask(net, p, i) & bit_of(v) == uint64(0) and (
            vc.state != ACTIVE or output_vc(net, vc.out_vc).credits <= 0
        ):
            continue  # VA failed, or gave a VC without credits: the switch stays unused
        grant_switch(net, n, p, now)
        if router_at(net, router).drain_ports != 0:
            note_grant(net, p, i, now)
    if net.sa_kind == MAXIMUM and pairs > 0:
        state = router_at(net, router)
        state.sa_diagonal = (state.sa_diagonal + 1) % state.turn_ports
    return last


@inlined
def shared_match_routers(net: Net, many: int, first: int, end: int, now: int) -> int:
    """SA of routers `first` up to, but without, `end`."""
    for router in range(first, end):
        position = int64(net.spec_matches)
        heads = position < net.speculative and int32s(net.spec_vc)[position] < (router + 1) * net.ports * net.vcs
        if any_asks(net, many, router) or heads:
            net.spec_matches = match_shared(net, many, router, position, now)
    return 0


@c_kernel(HOOK_SIGNATURE)
def shared_match(net: Net, first: int, end: int, now: int) -> int:
    """Serve routers whose masks of ports are one word: the hook `switch_match`."""
    return shared_match_routers(net, 1, first, end, now)


@c_kernel(HOOK_SIGNATURE)
def shared_match_words(net: Net, first: int, end: int, now: int) -> int:
    """Serve any routers: the hook `switch_match`."""
    return shared_match_routers(net, net.port_words, first, end, now)


@c_kernel(HOOK_SIGNATURE)
def begin_shared(net: Net, event: int, a: int, b: int) -> int:
    """Begin with the heads of the first router: the hook `speculation`."""
    if event == MATCH:
        net.spec_matches = 0
    return 0

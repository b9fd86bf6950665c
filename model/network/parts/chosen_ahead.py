"""SA whose inputs choose a cycle ahead (docs/definitions/router.md, Inputs that choose ahead): ``sa: input_ahead``."""

from numba import int64, uint64

from hopforge.model.kernel.compile import c_kernel, inlined, inner
from hopforge.model.kernel.memory import int64s, words
from hopforge.model.network.core.hooks import HOOK_SIGNATURE
from hopforge.model.network.core.kinds import ACTIVE, RC, VA
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import input_port, input_vc, output_port, output_vc, router_at
from hopforge.model.network.core.switch_allocation import grant_switch, note_grant
from hopforge.model.network.parts.switch_match import ask, match_ports, move_pointers


@inner
def in_turn(net: Net, n: int) -> bool:
    """Whether input VC `n` counts when its input chooses; an unroutable head is in RC for its only cycle of VA."""
    vc = input_vc(net, n)
    if vc.state == ACTIVE:
        return vc.flits > 0 and output_vc(net, int64(vc.out_vc)).credits > 0
    return vc.state in (VA, RC)


@inner
def chosen_vc(net: Net, q: int) -> int:
    """VC that input port `q` chooses, -1: none."""
    start = int64(input_port(net, q).q)
    for k in range(net.vcs):
        v = start + k if start + k < net.vcs else start + k - net.vcs
        if in_turn(net, q * net.vcs + v):
            return v
    return -1


@inner
def asked_output(net: Net, router: int, n: int, now: int) -> int:
    """Output that input VC `n` requests in this cycle, -1: none."""
    vc = input_vc(net, n)
    if vc.state == RC:
        return -1
    o, number = int64(vc.out_port), int64(vc.number)
    p = router * net.ports + o
    asks = words(net.switching)[p * net.vc_words + (number >> 6)] >> uint64(number & 63) & uint64(1)
    return o if asks != uint64(0) and output_port(net, p).busy_until <= now else -1


@inlined
def match_router(net: Net, many: int, router: int, now: int) -> None:
    """SA of one router in cycle `now`."""
    ports = net.ports
    requested = uint64(0)
    for i in range(ports):
        q = router * ports + i
        v = chosen_vc(net, q)
        if v < 0:
            continue
        o = asked_output(net, router, q * net.vcs + v, now)
        if o >= 0:
            requested = ask(net, many, requested, i, v, o)
        else:
            input_port(net, q).q = v + 1 if v + 1 < net.vcs else 0
    if requested == uint64(0):
        return
    pairs = match_ports(net, many, router, requested, 0)
    match_input, match_output, match_vc = int64s(net.match_input), int64s(net.match_output), int64s(net.match_vc)
    for k in range(pairs):
        i, o, v = match_input[k], match_output[k], match_vc[k]
        move_pointers(net, router, i, v, o, 0, now)
        grant_switch(net, (router * ports + i) * net.vcs + v, router * ports + o, now)
        if router_at(net, router).drain_ports != 0:
            note_grant(net, router * ports + o, i, now)


@inlined
def match_chosen_routers(net: Net, many: int, first: int, end: int, now: int) -> int:
    """SA of routers `first` up to, but without, `end`."""
    for router in range(first, end):
        match_router(net, many, router, now)
    return 0


@c_kernel(HOOK_SIGNATURE)
def match_chosen(net: Net, first: int, end: int, now: int) -> int:
    """Serve routers whose masks of ports are one word: the hook `switch_match`."""
    return match_chosen_routers(net, 1, first, end, now)


@c_kernel(HOOK_SIGNATURE)
def match_chosen_words(net: Net, first: int, end: int, now: int) -> int:
    """Serve any routers: the hook `switch_match`."""
    return match_chosen_routers(net, net.port_words, first, end, now)

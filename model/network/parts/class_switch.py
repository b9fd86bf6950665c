"""SA with classes of traffic: requests that are not due are dropped (docs/definitions/traffic-classes.md)."""

from numba import int64

from hopforge.model.kernel.compile import c_kernel, inlined, inner
from hopforge.model.kernel.memory import int32s, int64s
from hopforge.model.network.core.hooks import HOOK_SIGNATURE
from hopforge.model.network.core.kinds import CLASS_BITS, OUTPUT_FIRST, STRICT, WEIGHTED
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import router_at, traffic_class_at
from hopforge.model.network.core.switch_allocation import grant_switch, note_grant
from hopforge.model.network.parts.class_rounds import charge
from hopforge.model.network.parts.port_masks import any_asks
from hopforge.model.network.parts.switch_match import collect_requests, enter_requests, match_ports, move_pointers


@inlined
def class_of(net: Net, v: int) -> int:
    """Class of VC `v`."""
    return (net.vc_class >> (CLASS_BITS * v)) & ((1 << CLASS_BITS) - 1)


@inlined
def level_of(net: Net, p: int, v: int) -> int:
    """How far VC `v` goes before others at output port number `p`."""
    c = class_of(net, v)
    if net.qos == STRICT:
        return int64(traffic_class_at(net, c).priority)
    return int64(int32s(net.quota)[p * net.traffic_classes + c] > 0)


@inner
def keep_best(net: Net, router: int, requests: int, side: int) -> int:
    """Drop the requests below the highest level of their output (`side` 0) or input (1); returns how many stay."""
    match_input, match_output, match_vc = int64s(net.match_input), int64s(net.match_output), int64s(net.match_vc)
    best = int64s(net.best_level)
    first = router * net.ports
    for k in range(requests):
        best[match_output[k] if side == 0 else match_input[k]] = -1
    for k in range(requests):
        place = match_output[k] if side == 0 else match_input[k]
        best[place] = max(best[place], level_of(net, first + match_output[k], match_vc[k]))
    kept = 0
    for k in range(requests):
        i, o, v = match_input[k], match_output[k], match_vc[k]
        if level_of(net, first + o, v) == best[o if side == 0 else i]:
            match_input[kept], match_output[kept], match_vc[kept] = i, o, v
            kept += 1
    return kept


@inlined
def match_classes(net: Net, many: int, router: int, now: int) -> None:
    """SA of one router in cycle `now`."""
    ports = net.ports
    requests, _ = collect_requests(net, many, router, now)
    if requests == 0:
        return
    requests = keep_best(net, router, requests, 0)
    if net.qos == STRICT:
        requests = keep_best(net, router, requests, 1)
    pairs = match_ports(net, many, router, enter_requests(net, many, router, requests), 0)
    match_input, match_output, match_vc = int64s(net.match_input), int64s(net.match_output), int64s(net.match_vc)
    for k in range(pairs):
        i, o, v = match_input[k], match_output[k], match_vc[k]
        p = router * ports + o
        move_pointers(net, router, i, v, o, 0, now)
        grant_switch(net, (router * ports + i) * net.vcs + v, p, now)
        if net.qos == WEIGHTED:
            charge(net, int32s(net.quota), p * net.traffic_classes, class_of(net, v))
        if router_at(net, router).drain_ports != 0:
            note_grant(net, p, i, now)
    if net.sa_kind > OUTPUT_FIRST:
        state = router_at(net, router)
        state.sa_diagonal = (state.sa_diagonal + 1) % state.turn_ports


@inlined
def class_match_routers(net: Net, many: int, first: int, end: int, now: int) -> int:
    """SA of routers `first` up to, but without, `end`."""
    for router in range(first, end):
        if any_asks(net, many, router):
            match_classes(net, many, router, now)
    return 0


@c_kernel(HOOK_SIGNATURE)
def class_match(net: Net, first: int, end: int, now: int) -> int:
    """Serve routers whose masks of ports are one word: the hook `switch_match`."""
    return class_match_routers(net, 1, first, end, now)


@c_kernel(HOOK_SIGNATURE)
def class_match_words(net: Net, first: int, end: int, now: int) -> int:
    """Serve any routers: the hook `switch_match`."""
    return class_match_routers(net, net.port_words, first, end, now)

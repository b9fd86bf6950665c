"""SA in which a granted pair of ports stays connected for the rest of the packet (router.md, SA, `hold_switch`).

Without speculation the arrays for its requests are free: ``net.spec_port`` holds 1 + output port · VCs + VC of every
input port that is connected, 0 for the others, ``net.spec_mask`` how many of a router's are.
"""

from typing import Any

from numba import int64, uint64

from hopforge.model.kernel.bits import bit_of
from hopforge.model.kernel.compile import c_kernel, inlined
from hopforge.model.kernel.memory import int32s, int64s, words
from hopforge.model.network.core.hooks import HOOK_SIGNATURE
from hopforge.model.network.core.kinds import ACTIVE, OUTPUT_FIRST
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import input_vc, output_port, router_at
from hopforge.model.network.core.switch_allocation import grant_switch, note_grant, vcs_that_ask
from hopforge.model.network.parts.port_masks import any_asks, forget, put_bit, word_of
from hopforge.model.network.parts.switch_match import collect_requests, enter_requests, match_ports, move_pointers


@inlined
def set_held(net: Net, router: int, i: int, held: int) -> None:
    """Note what input `i` is connected to (0: nothing)."""
    q = router * net.ports + i
    before = int32s(net.spec_port)[q]
    int32s(net.spec_port)[q] = held
    int32s(net.spec_mask)[router] += int64(held != 0) - int64(before != 0)


@inlined
def send_and_hold(net: Net, router: int, i: int, v: int, o: int, now: int) -> None:
    """Send a flit from input `i`, VC `v`, to output `o`; they stay connected if more of the packet waits."""
    n = (router * net.ports + i) * net.vcs + v
    grant_switch(net, n, router * net.ports + o, now)
    vc = input_vc(net, n)
    more = vc.state == ACTIVE and vc.flits > 0
    set_held(net, router, i, 1 + o * net.vcs + v if more else 0)
    if router_at(net, router).drain_ports != 0:
        note_grant(net, router * net.ports + o, i, now)


@inlined
def serve_held(net: Net, many: int, router: int, now: int) -> tuple[Any, Any]:
    """Send a flit over every connection, or end it where the VC has no flit or no credit.

    Returns the masks of the inputs and outputs that were connected, also in ``net.taken_inputs`` and
    ``net.taken_outputs``: nobody else may use them in this cycle.
    """
    inputs, outputs = uint64(0), uint64(0)
    if many != 1:
        forget(words(net.taken_inputs), 0, many)
        forget(words(net.taken_outputs), 0, many)
    if int32s(net.spec_mask)[router] == 0:
        return inputs, outputs
    for i in range(net.ports):
        held = int64(int32s(net.spec_port)[router * net.ports + i]) - 1
        if held < 0:
            continue
        o = held // net.vcs
        v = held - o * net.vcs
        p = router * net.ports + o
        inputs = put_bit(inputs, net.taken_inputs, many, i)
        outputs = put_bit(outputs, net.taken_outputs, many, o)
        if output_port(net, p).busy_until > now:
            continue
        if vcs_that_ask(net, p, i) & bit_of(v) != uint64(0):
            send_and_hold(net, router, i, v, o, now)
        else:
            set_held(net, router, i, 0)
    return inputs, outputs


@inlined
def match_held(net: Net, many: int, router: int, now: int) -> None:
    """SA of one router in cycle `now`: connections, then the requests of all other ports."""
    inputs, outputs = serve_held(net, many, router, now)
    match_input, match_output, match_vc = int64s(net.match_input), int64s(net.match_output), int64s(net.match_vc)
    requests, _ = collect_requests(net, many, router, now)
    kept = int64(0)
    for k in range(requests):
        i, o = match_input[k], match_output[k]
        taken = word_of(inputs, net.taken_inputs, many, i >> 6) & bit_of(i)
        if taken | (word_of(outputs, net.taken_outputs, many, o >> 6) & bit_of(o)) == uint64(0):
            match_input[kept], match_output[kept], match_vc[kept] = i, o, match_vc[k]
            kept += 1
    if kept == 0:
        return
    pairs = match_ports(net, many, router, enter_requests(net, many, router, kept), 0)
    for k in range(pairs):
        i, o, v = match_input[k], match_output[k], match_vc[k]
        move_pointers(net, router, i, v, o, 0, now)
        send_and_hold(net, router, i, v, o, now)
    if net.sa_kind > OUTPUT_FIRST:
        state = router_at(net, router)
        state.sa_diagonal = (state.sa_diagonal + 1) % state.turn_ports


@inlined
def held_match_routers(net: Net, many: int, first: int, end: int, now: int) -> int:
    """SA of routers `first` up to, but without, `end`."""
    for router in range(first, end):
        if any_asks(net, many, router) or int32s(net.spec_mask)[router] != 0:
            match_held(net, many, router, now)
    return 0


@c_kernel(HOOK_SIGNATURE)
def held_match(net: Net, first: int, end: int, now: int) -> int:
    """Serve routers whose masks of ports are one word: the hook `switch_match`."""
    return held_match_routers(net, 1, first, end, now)


@c_kernel(HOOK_SIGNATURE)
def held_match_words(net: Net, first: int, end: int, now: int) -> int:
    """Serve any routers: the hook `switch_match`."""
    return held_match_routers(net, net.port_words, first, end, now)

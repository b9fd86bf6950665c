"""VA by lists of requests: heads with several candidates, matrix arbiters, wavefront, speculation, many VCs.

Compiled only where `build` needs it; what all other networks do is in `model.network.core.vc_allocation`.
"""

from typing import Any

from numba import int64, uint32, uint64

from hopforge.model.kernel.bits import any_bit, bit_of, trailing_zeros
from hopforge.model.kernel.compile import c_kernel, inlined, inner
from hopforge.model.kernel.memory import int8s, int32s, int64s, words
from hopforge.model.network.core.candidates import candidate_level, candidate_mask, candidate_need, candidate_port
from hopforge.model.network.core.hooks import ACTIVATE, HOOK_SIGNATURE, call_hook
from hopforge.model.network.core.kinds import ACTIVE, AHEAD_ENGINES, INPUT_FIRST
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import input_vc, output_port, output_vc
from hopforge.model.network.core.switch_requests import want_switch
from hopforge.model.network.core.vc_allocation import available_vcs, first_in_turn, packet_flits


@inlined
def candidate_vcs(net: Net, router: int, packed: int, length: int) -> int:
    """Mask of the candidate's VCs that are free with the room that the candidate and the switching ask for."""
    need = max(candidate_need(packed), net.head_credits, length)
    return available_vcs(net, router * net.ports + candidate_port(packed), candidate_mask(packed), need)


@inner
def credits_of(net: Net, router: int, packed: int) -> int:
    """Sum of the credits of all VCs of the candidate."""
    base = (router * net.ports + candidate_port(packed)) * net.vcs
    total = 0
    rest = candidate_mask(packed)
    while rest != 0:
        total += output_vc(net, base + trailing_zeros(uint64(rest))).credits
        rest &= rest - 1
    return total


@inner
def choose_among(net: Net, router: int, vc: int, length: int) -> tuple[int, int]:
    """As `choose_candidate`, where there are several."""
    best_port, best_mask, best_level, best_credits = 0, 0, 256, -1
    for k in range(input_vc(net, vc).candidates):
        packed = int64s(net.candidate)[vc * net.max_candidates + k]
        level = candidate_level(packed)
        if level > best_level:
            continue
        mask = candidate_vcs(net, router, packed, length)
        if mask == 0:
            continue
        credits = credits_of(net, router, packed)
        if level < best_level or credits > best_credits:
            best_port, best_mask, best_level, best_credits = candidate_port(packed), mask, level, credits
    return best_port, best_mask


@inlined
def choose_candidate(net: Net, router: int, vc: int) -> tuple[int, int]:
    """Output port and mask of available VCs that input VC `vc` asks for in this cycle (mask 0: none)."""
    length = packet_flits(net, vc)
    if input_vc(net, vc).candidates > 1:
        return choose_among(net, router, vc, length)
    packed = int64s(net.candidate)[vc * net.max_candidates]
    return candidate_port(packed), candidate_vcs(net, router, packed, length)


@inlined
def pick_output(net: Net, vc: int, port: int, mask: int) -> int:
    """Ask the input arbiter of `vc`: one VC of `mask` at output `port` (its own number in the router)."""
    if net.va_matrix == 0:
        return first_in_turn(net, vc, port, mask)
    width = net.ports * net.vcs
    base = (net.input_vcs + vc) * width + port * net.vcs
    best, best_time = -1, int64(0)
    while mask != 0:
        w = trailing_zeros(uint64(mask))
        mask &= mask - 1
        if best < 0 or int64s(net.va_recent)[base + w] < best_time:
            best, best_time = w, int64s(net.va_recent)[base + w]
    return best


@inlined
def output_rank(net: Net, router: int, output: int, requester: int) -> int:
    """Order in which the arbiter of output VC `output` (number in the router) prefers `requester`: lower is better."""
    width = net.ports * net.vcs
    if net.va_matrix == 0:
        rank = requester - int64(output_vc(net, router * width + output).pointer)
        return rank if rank >= 0 else rank + width
    return (int64s(net.va_recent)[(router * width + output) * width + requester] + 1) * width + requester


@inlined
def grant_vc(net: Net, router: int, requester: int, output: int, now: int) -> None:
    """Give output VC `output` to input VC `requester` (numbers in the router)."""
    width = net.ports * net.vcs
    n = router * width + requester
    m = router * width + output
    given = output_vc(net, m)
    given.owner = n
    given.pointer = requester + 1 if requester + 1 < width else 0
    taker = input_vc(net, n)
    taker.pointer = output + 1 if output + 1 < width else 0
    taker.state = ACTIVE
    taker.out_vc = m
    if net.va_matrix != 0:
        int64s(net.va_recent)[m * width + requester] = now + net.steps
        int64s(net.va_recent)[(net.input_vcs + n) * width + output] = now + net.steps
    words(net.waiting)[router * net.vc_words + (requester >> 6)] &= ~bit_of(requester)
    out = output_port(net, router * net.ports + taker.out_port)
    out.free_mask = out.free_mask & ~(uint32(1) << given.vc)
    int32s(net.granted)[net.granted_count] = n
    net.granted_count += 1


@inner
def match_requests(net: Net, router: int, requests: int, shared: Any, now: int) -> None:
    """Match the `requests` collected in ``net.request_vc`` and so on and grant.

    `shared` is the mask of the output ports with more than one request: only there separable allocators have to choose.
    """
    vcs = net.vcs
    request_vc, request_port, request_mask = int64s(net.request_vc), int64s(net.request_port), int64s(net.request_mask)
    winner_stamp, winner_rank, winner_request = (
        int64s(net.winner_stamp),
        int64s(net.winner_rank),
        int64s(net.winner_request),
    )
    stamp = (now + net.steps) * net.routers + router  # marks the entries of `winner` that belong to this call
    for k in range(requests):
        if shared & bit_of(request_port[k]) == uint64(0):
            continue
        mask = request_mask[k]
        if net.va_kind == INPUT_FIRST:
            n = router * net.ports * vcs + request_vc[k]
            mask = int64(1) << pick_output(net, n, request_port[k], mask)
            request_mask[k] = mask
        while mask != 0:
            m = request_port[k] * vcs + trailing_zeros(uint64(mask))
            mask &= mask - 1
            rank = output_rank(net, router, m, request_vc[k])
            if winner_stamp[m] != stamp or rank < winner_rank[m]:
                winner_stamp[m] = stamp
                winner_rank[m] = rank
                winner_request[m] = k
    for k in range(requests):
        mask = request_mask[k]
        won = 0
        if shared & bit_of(request_port[k]) == uint64(0):
            won, mask = mask, 0
        while mask != 0:
            w = trailing_zeros(uint64(mask))
            mask &= mask - 1
            if winner_request[request_port[k] * vcs + w] == k:
                won |= 1 << w
        if won != 0:
            n = router * net.ports * vcs + request_vc[k]
            w = pick_output(net, n, request_port[k], won)
            grant_vc(net, router, request_vc[k], request_port[k] * vcs + w, now)


@inlined
def forget_idle(net: Net, router: int) -> None:
    """Take a router whose last VC has left VA out of ``net.active``."""
    if net.vc_words == 1:
        idle = uint64(words(net.waiting)[router] == uint64(0))
    else:
        idle = uint64(not any_bit(words(net.waiting), router * net.vc_words, net.vc_words))
    words(net.active)[router >> 6] &= ~(idle << uint64(router & 63))


@inlined
def allocate_vcs(net: Net, router: int, now: int) -> None:
    """VA of one router in cycle `now`; what it adds to ``net.granted`` asks for the switch from `now` + 1 on."""
    vcs = net.vcs
    first = router * net.ports * vcs
    request_vc, request_port, request_mask = int64s(net.request_vc), int64s(net.request_port), int64s(net.request_mask)
    requests = int64(0)
    asked, shared = uint64(0), uint64(0)
    for word in range(net.vc_words):
        waiting = words(net.waiting)[router * net.vc_words + word]
        while waiting != uint64(0):
            number = (word << 6) + trailing_zeros(waiting)
            waiting &= waiting - uint64(1)
            output, mask = choose_candidate(net, router, first + number)
            if mask != 0:
                request_vc[requests] = number
                request_port[requests] = output
                request_mask[requests] = mask
                requests += 1
                shared |= asked & bit_of(output)
                asked |= bit_of(output)
                input_vc(net, first + number).out_port = output
                if net.speculation != 0 and not (
                    net.lookahead == AHEAD_ENGINES and int8s(net.unanswered)[first + number] != 0
                ):
                    int32s(net.spec_vc)[net.speculative] = first + number
                    int32s(net.spec_port)[net.speculative] = output
                    int32s(net.spec_mask)[net.speculative] = mask
                    net.speculative += 1
    if net.vc_match != 0 and requests > 0:
        call_hook(net.vc_match, net, int64(router), requests, now)
        return
    if shared != uint64(0):
        match_requests(net, router, requests, shared, now)
        return
    for k in range(requests):
        w = pick_output(net, first + request_vc[k], request_port[k], request_mask[k])
        grant_vc(net, router, request_vc[k], request_port[k] * vcs + w, now)


@inner
def activate_granted(net: Net) -> None:
    """Let the VCs that VA served in this cycle ask for the switch from the next cycle on."""
    for k in range(net.granted_count):
        n = int64(int32s(net.granted)[k])
        vc = input_vc(net, n)
        credits = output_vc(net, int64(vc.out_vc)).credits
        want_switch(net, n, uint64(vc.state == ACTIVE) & uint64(vc.flits > 0) & uint64(credits > 0))
    net.granted_count = 0


@c_kernel(HOOK_SIGNATURE)
def match_vcs(net: Net, event: int, first: int, routers: int) -> int:
    """VA of some routers of the block that begins with `first`, or what follows it: the hook `vc_lists`."""
    if event == ACTIVATE:
        activate_granted(net)
        return 0
    rest = uint64(routers)
    while rest != uint64(0):
        router = first + trailing_zeros(rest)
        rest &= rest - uint64(1)
        allocate_vcs(net, router, int64(net.cycle))
        forget_idle(net, router)
    return 0

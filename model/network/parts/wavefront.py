"""The wavefront allocator of VA (docs/definitions/router.md, VA)."""


from numba import int64, uint64

from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.compile import c_kernel
from hopforge.model.kernel.memory import int64s
from hopforge.model.network.core.hooks import HOOK_SIGNATURE
from hopforge.model.network.core.kinds import FAIR_WAVEFRONT
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import router_at
from hopforge.model.network.parts.vc_match import grant_vc


@c_kernel(HOOK_SIGNATURE)
def match_wavefront(net: Net, router: int, requests: int, now: int) -> int:
    """Match the requests of a router in the order of their diagonals: the hook `vc_match`.

    Pairs of one diagonal never conflict.
    """
    vcs = net.vcs
    request_vc, request_port = int64s(net.request_vc), int64s(net.request_port)
    request_mask, winner_stamp = int64s(net.request_mask), int64s(net.winner_stamp)
    stamp = (now + net.steps) * net.routers + router  # marks the entries of `winner` that belong to this call
    state = router_at(net, router)
    block = int64(state.turn_ports) * vcs
    diagonal = int64(state.va_diagonal)
    pair_order, pair_request = int64s(net.pair_order), int64s(net.pair_request)
    pair_output = int64s(net.pair_output)
    count = 0
    for k in range(requests):
        mask = request_mask[k]
        while mask != 0:
            m = request_port[k] * vcs + trailing_zeros(uint64(mask))
            mask &= mask - 1
            order = (request_vc[k] % block + m % block - diagonal) % block
            place = count
            while place > 0 and pair_order[place - 1] > order:
                pair_order[place] = pair_order[place - 1]
                pair_request[place] = pair_request[place - 1]
                pair_output[place] = pair_output[place - 1]
                place -= 1
            pair_order[place] = order
            pair_request[place] = k
            pair_output[place] = m
            count += 1
    for k in range(requests):
        request_mask[k] = -1
    first = int64(-1)
    for p in range(count):
        k, m = pair_request[p], pair_output[p]
        if request_mask[k] < 0 and winner_stamp[m] != stamp:
            winner_stamp[m] = stamp
            request_mask[k] = m
            first = request_vc[k] + m if first < 0 else first
            grant_vc(net, router, request_vc[k], m, now)
    diagonal = first if net.va_kind == FAIR_WAVEFRONT else diagonal
    state.va_diagonal = (diagonal + 1) % block
    return 0

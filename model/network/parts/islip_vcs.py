"""VA by several iterations of iSLIP (docs/definitions/router.md, VA)."""

from numba import uint64

from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.compile import c_kernel, inner
from hopforge.model.kernel.memory import int64s
from hopforge.model.network.core.hooks import HOOK_SIGNATURE
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import input_vc, output_vc
from hopforge.model.network.parts.vc_match import grant_vc, output_rank, pick_output

#: of a request that has been granted
_OVER = -1


@inner
def grant_in_turn(net: Net, router: int, requester: int, output: int, iteration: int, now: int) -> None:
    """Give output VC `output` to input VC `requester`; only the first iteration moves their pointers."""
    width = net.ports * net.vcs
    given, taker = output_vc(net, router * width + output), input_vc(net, router * width + requester)
    of_output, of_input = given.pointer, taker.pointer
    grant_vc(net, router, requester, output, now)
    if iteration > 0:
        given.pointer, taker.pointer = of_output, of_input


@c_kernel(HOOK_SIGNATURE)
def match_islip(net: Net, router: int, requests: int, now: int) -> int:
    """Match the requests of a router in ``net.va_iterations`` rounds: the hook `vc_match`.

    In each, output VCs that are left pick among the requests that are left, and these among the VCs that picked them.
    """
    vcs = net.vcs
    request_vc, request_port = int64s(net.request_vc), int64s(net.request_port)
    request_mask, winner_rank, winner_request = (
        int64s(net.request_mask), int64s(net.winner_rank), int64s(net.winner_request),
    )  # fmt: skip
    for m in range(net.ports * vcs):
        winner_rank[m] = 0
    for iteration in range(net.va_iterations):
        granted = False
        for k in range(requests):  # a rank is kept as its negative, 0: none, _OVER below: the output VC is taken
            mask = max(request_mask[k], 0)
            while mask != 0:
                m = request_port[k] * vcs + trailing_zeros(uint64(mask))
                mask &= mask - 1
                rank = output_rank(net, router, m, request_vc[k]) + 1
                if winner_rank[m] == 0 or rank < winner_rank[m]:
                    winner_rank[m], winner_request[m] = rank, k
        for k in range(requests):
            mask, won = max(request_mask[k], 0), 0
            while mask != 0:
                w = trailing_zeros(uint64(mask))
                mask &= mask - 1
                m = request_port[k] * vcs + w
                if winner_rank[m] > 0 and winner_request[m] == k:
                    won |= 1 << w
            if won == 0:
                continue
            w = pick_output(net, router * net.ports * vcs + request_vc[k], request_port[k], won)
            m = request_port[k] * vcs + w
            grant_in_turn(net, router, request_vc[k], m, iteration, now)
            request_mask[k] = _OVER
            winner_rank[m] = _OVER
            granted = True
        if not granted:
            break
        for k in range(requests):  # what is left asks for the output VCs that are left
            mask, left = max(request_mask[k], 0), 0
            while mask != 0:
                w = trailing_zeros(uint64(mask))
                mask &= mask - 1
                m = request_port[k] * vcs + w
                if winner_rank[m] != _OVER:
                    left |= 1 << w
                    winner_rank[m] = 0
            request_mask[k] = left if request_mask[k] > 0 else request_mask[k]
    return 0

"""VA by parallel iterative matching (docs/definitions/router.md, VA: pim)."""

from numba import int64, uint64

from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.compile import c_kernel
from hopforge.model.kernel.memory import int64s, words
from hopforge.model.kernel.rng import next_below
from hopforge.model.network.core.hooks import HOOK_SIGNATURE
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import router_at
from hopforge.model.network.parts.vc_match import grant_vc


@c_kernel(HOOK_SIGNATURE)
def match_drawn_vcs(net: Net, router: int, requests: int, now: int) -> int:
    """Match the requests of a router in ``net.va_iterations`` rounds: the hook `vc_match`.

    ``pair_order`` is 0 for an output VC that nobody asks for, else 1 + where its choice begins.
    """
    width, vcs, stream = net.ports * net.vcs, net.vcs, words(net.router_rng)
    block = int64(router_at(net, router).turn_ports) * vcs  # of all that ask for an output VC, or that are asked for
    request_vc, request_port, request_mask = int64s(net.request_vc), int64s(net.request_port), int64s(net.request_mask)
    begins, best_rank, best = int64s(net.pair_order), int64s(net.winner_rank), int64s(net.winner_request)
    taken = uint64(0)  # of the output port at hand
    for _ in range(net.va_iterations):
        for m in range(width):
            begins[m], best_rank[m] = 0, width
        for k in range(requests):
            mask = request_mask[k]
            while mask != 0:
                begins[request_port[k] * vcs + trailing_zeros(uint64(mask))] = 1
                mask &= mask - 1
        for m in range(width):
            if begins[m] != 0:
                begins[m] = 1 + int64(next_below(stream, router, block))
        for k in range(requests):
            mask = request_mask[k]
            while mask != 0:
                m = request_port[k] * vcs + trailing_zeros(uint64(mask))
                mask &= mask - 1
                rank = (request_vc[k] - begins[m] + 1) % block
                if rank < best_rank[m]:
                    best_rank[m], best[m] = rank, k
        for k in range(requests):
            mask, start, nearest, chosen = request_mask[k], int64(-1), int64(width), int64(-1)
            while mask != 0:
                m = request_port[k] * vcs + trailing_zeros(uint64(mask))
                mask &= mask - 1
                if best_rank[m] < width and best[m] == k:
                    start = int64(next_below(stream, router, block)) if start < 0 else start
                    if (m - start) % block < nearest:
                        nearest, chosen = (m - start) % block, m
            if chosen >= 0:
                grant_vc(net, router, request_vc[k], chosen, now)
                best_rank[chosen] = -1
                request_mask[k] = 0
        for k in range(requests):  # what is left asks for the output VCs that are left
            mask, taken = request_mask[k], uint64(0)
            while mask != 0:
                w = trailing_zeros(uint64(mask))
                mask &= mask - 1
                if best_rank[request_port[k] * vcs + w] < 0:
                    taken |= uint64(1) << uint64(w)
            request_mask[k] = int64(uint64(request_mask[k]) & ~taken)
    return 0

"""Queues that a routing relation may look at: those behind the output ports of its own router."""

from numba import njit

from hopforge.model.network.core.records import Net, output_vc


@njit
def used_credits(net: Net, router: int, port: int) -> int:
    """Flits sent by a port whose credits are not back, over all its VCs."""
    first = (router * net.ports + port) * net.vcs
    used = 0
    for v in range(net.vcs):
        output = output_vc(net, first + v)
        used += output.depth - output.credits
    return used

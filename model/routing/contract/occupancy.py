"""How full what lies behind an output port is, as adaptive routing relations see it."""

from hopforge.model.kernel.compile import both
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import output_vc


@both()
def used_credits(net: Net, router: int, port: int) -> int:
    """Credits in use over all VCs of a port; with output queues, what waits in them besides."""
    first = (router * net.ports + port) * net.vcs
    used = 0
    for v in range(net.vcs):
        output = output_vc(net, first + v)
        used += output.depth - output.credits
    return used

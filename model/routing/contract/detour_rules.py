"""The minimal way or a detour? Single decisions of adaptive routing (docs/definitions/any-routing.md).

Queues are numbers of used credits (with output queues, of packets in them besides). Each rule says whether the detour
is taken; the minimal way wins where both are equal.
"""

from hopforge.model.kernel.compile import both

#: values of `routing.rule`
PRODUCT, DOUBLE, THREE_HALVES = range(3)
RULES = ("product", "double", "three_halves")


@both()
def cost_of(rule: int, links: int, queue: int) -> int:
    """Return by what a detour is chosen among several: the smallest, of equals the first."""
    return links * queue if rule == PRODUCT else queue


@both()
def takes_detour(rule: int, links_min: int, queue_min: int, links: int, queue: int, bias: float) -> bool:
    """Compare the minimal way with a detour: both paths' links, the queues of their first links."""
    if rule == PRODUCT:
        return links_min * queue_min > links * queue + bias
    if rule == DOUBLE:
        return queue_min >= 2 * queue + bias
    return queue_min >= 3 * queue // 2 + bias


@both()
def takes_detour_by_sums(sum_min: int, sum_detour: int, bias: float) -> bool:
    """Compare the queues along both paths (UGAL-G)."""
    return sum_min > sum_detour + bias


@both()
def weight_of(hops_left: int, queue: int, deroute: bool, bias: float) -> float:
    """Weight of a port on a HyperX, the smallest wins: a deroute has a hop more to go, and the bias on its queue."""
    return (hops_left + 1) * (queue + bias) if deroute else float(hops_left * queue)


@both()
def is_congested(queue_min: int, buffer: int) -> bool:
    """Whether two thirds of a virtual channel's buffer are in use at the minimal port (PolarFly)."""
    return 3 * queue_min >= 2 * buffer

"""Rounds of weighted classes at an output or a host (docs/definitions/traffic-classes.md, Weighted)."""

from typing import Any

from hopforge.model.kernel.compile import inlined
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import traffic_class_at

#: a class that could not send keeps flits of so many rounds, with those of the new one
ROUNDS_KEPT = 8


@inlined
def charge(net: Net, quota: Any, first: int, c: int) -> None:
    """Take a flit of class `c` from its round, of which the classes begin at ``quota[first]``; a new one if need be."""
    if quota[first + c] == 0:
        for d in range(net.traffic_classes):
            weight = traffic_class_at(net, d).weight
            quota[first + d] = min(quota[first + d] + weight, ROUNDS_KEPT * weight)
    quota[first + c] -= 1

"""Any routing algorithm for classes of traffic on VCs of their own (docs/definitions/traffic-classes.md)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numba import int64

from hopforge.model.kernel.compile import around
from hopforge.model.kernel.memory import int32s
from hopforge.model.network.core.candidates import MASK_AT
from hopforge.model.network.core.net_record import ROUTE_SIGNATURE
from hopforge.model.routing.combined.message_classes import refuse_named_vcs
from hopforge.model.routing.contract.plan import RoutingError, RoutingPlan, all_vcs
from hopforge.model.topology import Topology

#: bits of a candidate that name VCs
_ALL_MASKS = 0xFFFF << MASK_AT


def vc_ranges(counts: Sequence[int]) -> list[range]:
    """Return the virtual channels of each class, in order.

    Examples
    --------
    >>> vc_ranges([1, 3])
    [range(0, 1), range(1, 4)]
    """
    ends = np.cumsum(counts).tolist()
    return [range(end - count, end) for count, end in zip(counts, ends, strict=True)]


def plan_for_classes(
    plans: Sequence[RoutingPlan], counts: Sequence[int], topology: Topology, *, algorithm: str
) -> RoutingPlan:
    """Turn routings into that of a network whose classes of traffic have virtual channels of their own.

    Parameters
    ----------
    plans : sequence of RoutingPlan
        For the VCs of each class; the same object for as many.
    counts : sequence of int
        VCs of each class.

    Raises
    ------
    RoutingError
        An algorithm that learns, or whose answers depend on the queues of VCs that it names by number; one whose
        relation is not the same for every number of VCs.
    """
    first = plans[0]
    for plan in plans:
        refuse_named_vcs(plan, topology, algorithm, "traffic.classes.vcs must not be given", "reply")
        if plan.memory.size > 1:
            raise RoutingError(f"traffic.classes.vcs must not be given with routing.algorithm {algorithm}: it learns")
    alike = len(set(counts)) == 1
    relations = {(plan.route.py_func, plan.every and plan.every.py_func) for plan in plans}
    if not alike and (len(relations) > 1 or any(plan.unguarded is not None for plan in plans)):
        raise RoutingError(
            f"traffic.classes: routing.algorithm {algorithm} needs as many vcs for every class, not "
            f"{', '.join(map(str, counts))}"
        )
    parts = [first.table] if alike else [np.asarray(plan.table, np.int32).reshape(-1) for plan in plans]
    begins = [0] * len(plans) if alike else np.cumsum([0, *(len(part) for part in parts[:-1])]).tolist()
    ranges = vc_ranges(counts)
    layout = tuple((of_class.start, len(of_class), begin) for of_class, begin in zip(ranges, begins, strict=True))
    masks = class_masks(plans, counts)
    return replace(
        _shifted(first, layout),
        table=first.table if alike else np.concatenate(parts),
        max_candidates=max(plan.max_candidates for plan in plans),
        phases=max(plan.phases for plan in plans),
        every_candidates=max(plan.every_candidates for plan in plans),
        obligation="escape" if any(plan.obligation == "escape" for plan in plans) else first.obligation,
        words="; ".join(f"class {c}: {plan.words}" for c, plan in enumerate(plans) if plan.words),
        inject_mask=np.bitwise_or.reduce([np.asarray(mask) for mask in masks]),
        escape_mask=None,
        among=_among(plans, counts, topology, algorithm),
    )


def _among(
    plans: Sequence[RoutingPlan], counts: Sequence[int], topology: Topology, algorithm: str
) -> RoutingPlan | None:
    """Return all ports of which routers take one, for all classes."""
    every = [plan.among for plan in plans if plan.among is not None]
    return plan_for_classes(every, counts, topology, algorithm=algorithm) if len(every) == len(plans) else None


def class_masks(plans: Sequence[RoutingPlan], counts: Sequence[int]) -> list[Any]:
    """Return the VCs on which hosts send packets of each class."""
    masks = [all_vcs(count) if plan.inject_mask is None else plan.inject_mask
             for plan, count in zip(plans, counts, strict=True)]  # fmt: skip
    return [np.asarray(mask) << of_class.start for mask, of_class in zip(masks, vc_ranges(counts), strict=True)]


def _shifted(plan: RoutingPlan, layout: tuple[tuple[int, int, int], ...]) -> RoutingPlan:
    return replace(
        plan,
        route=_of_class(plan.route, layout),
        every=None if plan.every is None else _of_class(plan.every, layout),
        unguarded=None if plan.unguarded is None else _shifted(plan.unguarded, layout),
        of_paths=(),
        among=None,
    )


@cache
def _of_class(route: Any, layout: tuple[tuple[int, int, int], ...]) -> Any:
    """Compile the relation around another one.

    `layout`: first VC, number of VCs, and first entry of the table of each class.
    """
    of_vc = [each for each in layout for _ in range(each[1])]
    firsts = tuple(each[0] for each in of_vc)
    counts = tuple(each[1] for each in of_vc)
    begins = tuple(4 * each[2] for each in of_vc)
    if any(begins):

        def of_class(
            router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
        ) -> int:
            first = firsts[in_vc]
            part = int32s(int64(net.table) + begins[in_vc])
            count = route(router, in_port, in_vc - first, packet, net, part, memory, out)
            for k in range(count):
                masks = out[k] & _ALL_MASKS
                kept = masks & (((1 << counts[in_vc]) - 1) << MASK_AT)
                out[k] = (out[k] ^ masks) | kept << first
            return count

    else:

        def of_class(
            router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
        ) -> int:
            first = firsts[in_vc]
            count = route(router, in_port, in_vc - first, packet, net, table, memory, out)
            for k in range(count):
                masks = out[k] & _ALL_MASKS
                kept = masks & (((1 << counts[in_vc]) - 1) << MASK_AT)
                out[k] = (out[k] ^ masks) | kept << first
            return count

    return around(ROUTE_SIGNATURE, of_class)

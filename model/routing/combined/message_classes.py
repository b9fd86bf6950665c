"""Any routing algorithm for requests and replies on halves of the virtual channels (docs/definitions/replies.md)."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from hopforge.model.kernel.compile import around
from hopforge.model.network.core.candidates import MASK_AT
from hopforge.model.network.core.net_record import ROUTE_SIGNATURE
from hopforge.model.routing.contract.fields_read import fields_read
from hopforge.model.routing.contract.plan import RoutingError, RoutingPlan, all_vcs
from hopforge.model.topology import Topology


def plan_for_replies(plan: RoutingPlan, topology: Topology, vcs: int, *, own: bool, algorithm: str) -> RoutingPlan:
    """Turn a routing into that of a network whose hosts send replies.

    Parameters
    ----------
    plan : RoutingPlan
        For the VCs that a class has.
    vcs : int
        Virtual channels per port, of both classes together.
    own : bool
        Each class has a half of them.

    Raises
    ------
    RoutingError
        Halves for an algorithm whose answers depend on the queues of VCs that it names by number.
    """
    mask = all_vcs(vcs // 2 if own else vcs) if plan.inject_mask is None else plan.inject_mask
    if not own:
        return replace(plan, reply_mask=mask)
    refuse_named_vcs(plan, topology, algorithm, "traffic.reply.vcs must be shared", "reply")
    return replace(_in_halves(plan, vcs // 2), inject_mask=mask, reply_mask=np.asarray(mask) << (vcs // 2))


def plan_for_acknowledges(plan: RoutingPlan, topology: Topology, vcs: int, *, own: bool, algorithm: str) -> RoutingPlan:
    """Turn a routing into that of a network whose routers acknowledge packets (docs/definitions/acknowledges.md).

    Parameters
    ----------
    plan : RoutingPlan
        For the VCs that packets have.
    vcs : int
        Virtual channels per port.
    own : bool
        The last of them is for acknowledges alone.

    Raises
    ------
    RoutingError
        An algorithm that learns from all packets; `own` for one that compares the queues of VCs.
    """
    if plan.feedback is not None:
        raise RoutingError(
            f"traffic.acknowledge: routing.algorithm {algorithm} learns from every packet, and would from acknowledges"
        )
    if not own:
        return replace(plan, ack_mask=plan.escape_mask)
    refuse_named_vcs(plan, topology, algorithm, "traffic.acknowledge.vcs must be shared", "acknowledge")
    mask = all_vcs(vcs - 1) if plan.inject_mask is None else plan.inject_mask
    return replace(plan, inject_mask=mask, ack_mask=1 << (vcs - 1))


def acknowledge_mask(plan: RoutingPlan, vcs: int) -> int:
    """Return the VCs on which service hosts send acknowledges, of `vcs` of a port."""
    return all_vcs(vcs) if plan.ack_mask is None else int(plan.ack_mask)


def refuse_named_vcs(plan: RoutingPlan, topology: Topology, algorithm: str, limit: str, kind: str) -> None:
    """Refuse an algorithm that learns, or compares the queues of VCs that it names by number.

    Parameters
    ----------
    limit : str
        What must be instead.
    kind : str
        ``reply``, or ``acknowledge``: from which agents learn.

    Raises
    ------
    RoutingError
        It does.
    """
    names_vcs = topology.kind == "dragonfly" or plan.unguarded is not None
    learns = plan.feedback is not None or (plan.agents is not None and kind == "reply")
    if learns or plan.compares_vcs or (names_vcs and fields_read((plan.unguarded or plan).route).changing):
        raise RoutingError(
            f"{limit} with routing.algorithm {algorithm}, which compares the queues of virtual channels, not own"
        )


def _in_halves(plan: RoutingPlan, half: int) -> RoutingPlan:
    return replace(
        plan,
        route=_of_class(plan.route, half),
        every=None if plan.every is None else _of_class(plan.every, half),
        unguarded=None if plan.unguarded is None else _in_halves(plan.unguarded, half),
        of_paths=(),
        among=None if plan.among is None else _in_halves(plan.among, half),
    )


@cache
def _of_class(route: Any, half: int) -> Any:
    """Compile the relation around another one."""
    all_of_half = all_vcs(half) << MASK_AT

    def of_class(
        router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
    ) -> int:
        upper = in_vc >= half
        count = route(router, in_port, in_vc - half if upper else in_vc, packet, net, table, memory, out)
        for k in range(count):
            masks = out[k] & (65535 << MASK_AT)
            kept = masks & all_of_half  # a user's relation may name VCs that there are not
            out[k] = (out[k] ^ masks) | (kept << half if upper else kept)
        return count

    return around(ROUTE_SIGNATURE, of_class)

"""Which routing algorithms look-ahead takes: the next router has to be known before anything is allocated."""

from collections.abc import Iterator

from hopforge.model.routing.contract.fields_read import fields_read
from hopforge.model.routing.contract.plan import RoutingError, RoutingPlan
from hopforge.model.routing.contract.unknown_inputs import unknown_inputs


def refuse_unknown_next(plan: RoutingPlan, algorithm: str) -> None:
    """Refuse a routing algorithm whose next router, or route there, is not known in this one.

    Raises
    ------
    RoutingError
        Naming the algorithm and the first reason (docs/definitions/router.md, Look-ahead).
    """
    for reason in _reasons(plan):
        raise RoutingError(f"router.lookahead: routing.algorithm {algorithm} {reason}")


def _reasons(plan: RoutingPlan) -> Iterator[str]:
    if plan.random:
        yield "draws random numbers, which the next router would draw later"
    if plan.uses_via:
        yield "sends packets over a router drawn at the source, which a router does not know"
    if plan.memory.size > 1 or plan.feedback is not None or plan.agents is not None:
        yield "learns, and what the next router has learned is not known here"
    # of several paths an address names one, and a head has all that is hashed
    if plan.by_source and not plan.of_paths and plan.among is None:
        yield (
            "chooses a link by the source (routing.links: hash, routing.spread: flow or entropy), which a router does "
            "not know"
        )
    if plan.max_candidates > 1:
        yield "gives several ports for a destination, so the next router is not known before allocation"
    route = plan.of_paths[0].route if plan.of_paths else (plan.among or plan).route
    changing = [] if plan.unguarded is not None else fields_read(route).changing
    if changing:
        yield f"reads {changing[0]}, which in the next router is not known here"
    for what in unknown_inputs(plan, phase_known=False):
        yield f"{what}, which the next router would do later, or is not known here"

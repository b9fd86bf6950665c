"""Routing algorithms: `ROUTING` maps a name to what makes it ready for a network (contract: `plan.RoutingPlan`)."""

from hopforge.model.network.parts.feedback import Feedback, learner, reporter
from hopforge.model.routing import dragonfly, dragonfly_adaptive, dragonfly_learning, graph, grid, tables, tree
from hopforge.model.routing.plan import ROUTING, RoutingError, RoutingPlan, draw_below, register, relation
from hopforge.model.routing.user import prepare_routing

__all__ = [
    "ROUTING",
    "Feedback",
    "RoutingError",
    "RoutingPlan",
    "dragonfly",
    "dragonfly_adaptive",
    "dragonfly_learning",
    "draw_below",
    "graph",
    "grid",
    "learner",
    "prepare_routing",
    "register",
    "relation",
    "reporter",
    "tables",
    "tree",
]

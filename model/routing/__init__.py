"""Routing algorithms: `ROUTING` maps a name to what makes it ready for a network (contract: `plan.RoutingPlan`).

All that a routing file of a user's own needs is imported from here.

May import: model.network, model.irregular and what lies below. Read first: `plan.py`.
"""

from hopforge.model.network.core.user_code import candidate, draw_below, output_vc
from hopforge.model.network.parts.feedback import Feedback, learner, reporter
from hopforge.model.routing import (
    booksim_min,
    butterfly,
    detours,
    dragonfly,
    dragonfly_adaptive,
    dragonfly_learning,
    graph,
    graph_detours,
    grid,
    grid_agents,
    hyperx_adaptive,
    line_order,
    random_minimal,
    tables,
    torus_detours,
    tree,
)
from hopforge.model.routing.plan import ROUTING, RoutingError, RoutingPlan, register, relation
from hopforge.model.routing.user import prepare_routing
from hopforge.model.topology import Topology

__all__ = [
    "ROUTING",
    "Feedback",
    "RoutingError",
    "RoutingPlan",
    "Topology",
    "booksim_min",
    "butterfly",
    "candidate",
    "detours",
    "dragonfly",
    "dragonfly_adaptive",
    "dragonfly_learning",
    "draw_below",
    "graph",
    "graph_detours",
    "grid",
    "grid_agents",
    "hyperx_adaptive",
    "learner",
    "line_order",
    "output_vc",
    "prepare_routing",
    "random_minimal",
    "register",
    "relation",
    "reporter",
    "tables",
    "torus_detours",
    "tree",
]

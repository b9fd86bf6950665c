"""Routing algorithms: `ROUTING` maps a name to what makes it ready for a network (contract: `plan.RoutingPlan`).

All that a routing file of a user's own needs is imported from here.

May import: model.network, model.irregular and what lies below. Read first: `plan.py`.
"""

from hopforge.model.network.core.user_code import candidate, draw_below, output_vc
from hopforge.model.network.parts.feedback import Feedback, learner, reporter
from hopforge.model.routing import (
    detours,
    dragonfly,
    dragonfly_adaptive,
    dragonfly_learning,
    graph,
    grid,
    grid_agents,
    hyperx_adaptive,
    tables,
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
    "candidate",
    "detours",
    "dragonfly",
    "dragonfly_adaptive",
    "dragonfly_learning",
    "draw_below",
    "graph",
    "grid",
    "grid_agents",
    "hyperx_adaptive",
    "learner",
    "output_vc",
    "prepare_routing",
    "register",
    "relation",
    "reporter",
    "tables",
    "tree",
]

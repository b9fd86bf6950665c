"""Routing algorithms: `ROUTING` maps a name to what makes it ready for a network (its plan: `contract.plan`).

All that a routing file of a user's own needs is imported from here.

May import: model.network, model.irregular and what lies below. Read first: `contract/plan.py`.
"""

from hopforge.model.network.core.user_code import candidate, draw_below, output_vc
from hopforge.model.network.parts.feedback import Feedback, learner, reporter
from hopforge.model.routing.agents import grid as grid_agents
from hopforge.model.routing.contract.plan import ROUTING, RoutingError, RoutingPlan, register, relation
from hopforge.model.routing.contract.user import prepare_routing
from hopforge.model.routing.dragonflies import adaptive as dragonfly_adaptive
from hopforge.model.routing.dragonflies import dragonfly
from hopforge.model.routing.dragonflies import learning as dragonfly_learning
from hopforge.model.routing.graphs import booksim_min, graph, random_minimal, tables
from hopforge.model.routing.graphs import detours as graph_detours
from hopforge.model.routing.grids import grid, hyperx_adaptive, line_order, torus_detours
from hopforge.model.routing.layered import butterfly, tree
from hopforge.model.routing.ways import detours
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

"""Traffic of the network simulator: patterns (where packets go), and programs placed on hosts.

All that a traffic file of a user's own needs is imported from here.

May import: model. Read first: `patterns.py`.
"""

from hopforge.model.network.core.user_code import draw_host, draw_share
from hopforge.model.topology import Topology
from hopforge.sim.traffic import dimension_patterns, drawn_patterns  # noqa: F401 - enter their patterns
from hopforge.sim.traffic.find import prepare_traffic
from hopforge.sim.traffic.patterns import (
    PATTERNS,
    TrafficError,
    TrafficPlan,
    destination_rule,
    register,
)

__all__ = [
    "PATTERNS",
    "Topology",
    "TrafficError",
    "TrafficPlan",
    "destination_rule",
    "draw_host",
    "draw_share",
    "prepare_traffic",
    "register",
]

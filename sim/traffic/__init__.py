"""Traffic of the network simulator: patterns (where packets go)."""

from hopforge.sim.traffic.patterns import (
    PATTERNS,
    TrafficError,
    TrafficPlan,
    destination_rule,
    draw_host,
    draw_share,
    prepare_traffic,
    register,
)

__all__ = [
    "PATTERNS",
    "TrafficError",
    "TrafficPlan",
    "destination_rule",
    "draw_host",
    "draw_share",
    "prepare_traffic",
    "register",
]

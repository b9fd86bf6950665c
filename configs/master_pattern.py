"""A traffic pattern of one's own: every fourth packet goes to a master, the others to the host opposite."""

from typing import Any

import numpy as np

from hopforge.sim.traffic import Topology, TrafficPlan, destination_rule

MASTER, PERIOD = 0, 4


def master(host: int, number: int, net: Any, table: Any) -> int:
    """Destination of packet `number` (from 0) of `host`."""
    hosts, goal, period = table[0], table[1], table[2]
    return goal if number % period == 0 else hosts - 1 - host


def prepare(topology: Topology, options: dict[str, Any], generator: np.random.Generator) -> TrafficPlan:
    """Fill the table that `master` reads; called once per run. `generator` is seeded from the configuration."""
    return TrafficPlan(destination_rule(master), np.array([topology.hosts, MASTER, PERIOD], np.int32))

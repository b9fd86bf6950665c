"""What `hopforge bounds` makes of a file before it computes: network, demand, and what is too large."""

from dataclasses import dataclass

import numpy as np

from hopforge.model.config import Config, ConfigError
from hopforge.model.free_memory import refuse_beyond_memory
from hopforge.model.topology import Topology, TopologyError, build
from hopforge.model.topology.failed import refuse_failed
from hopforge.model.topology.tiers import refuse_speeds
from hopforge.sim.bounds.ideal import ideal_variables
from hopforge.sim.bounds.permutation import assignment_steps
from hopforge.sim.bounds.shares import MinimalWays
from hopforge.sim.traffic.demand import Demand, mean_demand

__all__ = ["MAX_ROUTERS", "MOST_STEPS", "MOST_VARIABLES", "BoundsSetup", "prepare_bounds"]

#: routers of a network, steps of the assignment problems, variables of a linear program
MAX_ROUTERS, MOST_STEPS, MOST_VARIABLES = 8192, 1e11, 250_000
#: bytes of all arrays [router, router] together, for each pair
_BYTES_A_PAIR = 80


@dataclass(frozen=True, eq=False)
class BoundsSetup:
    """Bounds before they are computed.

    Attributes
    ----------
    topology : Topology
        The network.
    ways : MinimalWays
        Its shortest ways.
    uniform, traffic : Demand
        Rates of uniform traffic, and of section `traffic`.
    left_out : dict
        ``worst permutation`` or ``ideal`` → why it is too large, one line.
    """

    topology: Topology
    ways: MinimalWays
    uniform: Demand
    traffic: Demand
    left_out: dict[str, str]


def prepare_bounds(config: Config) -> BoundsSetup:
    """Build the network and its demand.

    Raises
    ------
    ConfigError, TopologyError, TrafficError, FailureError, UserError
        A user's mistake, or too large a network.
    """
    refuse_failed(config.failed, "hopforge bounds")
    traffic = config.traffic
    for key, value in (
        ("source: program", traffic.source == "program"), ("reply", traffic.reply is not None),
        ("acknowledge", traffic.acknowledge is not None), ("classes", bool(traffic.classes)),
    ):  # fmt: skip
        if value:
            raise ConfigError(f"traffic.{key}: bounds are of patterns, whose rates are known; remove it")
    topology = build(config.topology, config.address)
    refuse_speeds(topology, "hopforge bounds")
    R = topology.routers
    if R > MAX_ROUTERS:
        raise TopologyError("topology", f"{R} routers; hopforge bounds takes at most {MAX_ROUTERS}")
    refuse_beyond_memory(_BYTES_A_PAIR * R * R, f"bounds of {R} routers")
    uniform = mean_demand(topology, "uniform", {}, np.random.default_rng(0))
    pattern = "file" if traffic.file is not None else traffic.pattern
    demand = mean_demand(topology, pattern, traffic.model_dump(), np.random.default_rng((config.seed, 3)))
    ways = MinimalWays(topology)
    return BoundsSetup(topology, ways, uniform, demand, _too_large(topology, ways, uniform))


def _too_large(topology: Topology, ways: MinimalWays, uniform: Demand) -> dict[str, str]:
    found = {}
    steps, variables = assignment_steps(ways), ideal_variables(topology, uniform.rate)
    if steps > MOST_STEPS:
        found["worst permutation"] = f"no worst permutation: about {steps:.1e} steps, more than {MOST_STEPS:.0e}"
    if variables > MOST_VARIABLES:
        found["ideal"] = f"no ideal throughput: {variables} variables, more than {MOST_VARIABLES}"
    return found

"""What `hopforge bounds` makes of a file before it computes: network, demand, and what is too large."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config, ConfigError
from hopforge.model.free_memory import refuse_beyond_memory
from hopforge.model.topology import Topology, TopologyError, build
from hopforge.model.topology.failed import refuse_failed, without_failed
from hopforge.model.topology.tiers import refuse_speeds
from hopforge.sim.bounds.fixed import FixedRouting, configured_routing
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
    fixed : FixedRouting or None
        That of section `routing`, if every packet's way is fixed.
    to_hosts : dict
        For it: ``uniform`` or ``traffic`` → rates float64[router, host].
    left_out : dict
        ``worst permutation`` or ``ideal`` → why it is too large, ``routing`` → why its ways are not fixed; one line.
    """

    topology: Topology
    ways: MinimalWays
    uniform: Demand
    traffic: Demand
    fixed: FixedRouting | None
    to_hosts: dict[str, NDArray[np.float64]]
    left_out: dict[str, str]


def prepare_bounds(config: Config) -> BoundsSetup:
    """Build the network and its demand.

    Raises
    ------
    ConfigError, TopologyError, TrafficError, FailureError, UserError
        A user's mistake, or too large a network.
    """
    if config.failed.switches:
        refuse_failed(config.failed, "hopforge bounds, but for failed links,")
    traffic = config.traffic
    for key, value in (
        ("source: program", traffic.source == "program"), ("reply", traffic.reply is not None),
        ("acknowledge", traffic.acknowledge is not None), ("classes", bool(traffic.classes)),
    ):  # fmt: skip
        if value:
            raise ConfigError(f"traffic.{key}: bounds are of patterns, whose rates are known; remove it")
    topology = without_failed(build(config.topology, config.address), config.failed)
    refuse_speeds(topology, "hopforge bounds")
    R = topology.routers
    if R > MAX_ROUTERS:
        raise TopologyError("topology", f"{R} routers; hopforge bounds takes at most {MAX_ROUTERS}")
    refuse_beyond_memory(_BYTES_A_PAIR * R * R, f"bounds of {R} routers")
    pattern = "file" if traffic.file is not None else traffic.pattern
    asked: dict[str, tuple[str, dict[str, Any], Any]] = {
        "uniform": ("uniform", {}, 0), "traffic": (pattern, traffic.model_dump(), (config.seed, 3)),
    }  # fmt: skip

    def rates(key: str, *, to_hosts: bool) -> Demand:
        name, options, seed = asked[key]
        return mean_demand(topology, name, options, np.random.default_rng(seed), to_hosts=to_hosts)

    uniform, demand = (rates(key, to_hosts=False) for key in asked)
    ways = MinimalWays(topology)
    left_out = _too_large(topology, ways, uniform)
    fixed, reason = configured_routing(config, topology)
    if reason:
        left_out["routing"] = reason
    to_hosts = {} if fixed is None else {key: rates(key, to_hosts=True).rate for key in asked}
    return BoundsSetup(topology, ways, uniform, demand, fixed, to_hosts, left_out)


def _too_large(topology: Topology, ways: MinimalWays, uniform: Demand) -> dict[str, str]:
    found = {}
    steps, variables = assignment_steps(ways), ideal_variables(topology, uniform.rate)
    if steps > MOST_STEPS:
        found["worst permutation"] = f"no worst permutation: about {steps:.1e} steps, more than {MOST_STEPS:.0e}"
    if variables > MOST_VARIABLES:
        found["ideal"] = f"no ideal throughput: {variables} variables, more than {MOST_VARIABLES}"
    return found

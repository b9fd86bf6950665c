"""Cycles of a run's warm-up and measurement, from section `simulation`."""

from typing import NamedTuple

from hopforge.model.config import Config
from hopforge.sim.run.flit_networks import Built
from hopforge.sim.traffic import TrafficError


class RunLengths(NamedTuple):
    """Cycles of the warm-up (0: to be found), and least and most cycles of the measurement."""

    warmup: int
    least: int
    most: int


def run_lengths(config: Config, built: Built) -> RunLengths:
    """Return how long a run of a network may be.

    Raises
    ------
    TrafficError
        Times in µs without a router that has times.
    """
    limits, per_flit = config.simulation, built.flit_cycles
    warmup = limits.warmup_cycles * per_flit
    if limits.warmup_us is not None:
        warmup = cycles_of_us(built, limits.warmup_us)
    if limits.measure_us is not None:
        return RunLengths(warmup, (measured := cycles_of_us(built, limits.measure_us)), measured)
    return RunLengths(warmup, limits.min_cycles * per_flit, limits.max_cycles * per_flit)


def cycles_of_us(built: Built, time_us: float) -> int:
    """Return the whole cycles of a time, at least one.

    Raises
    ------
    TrafficError
        The router has no times in ns.
    """
    if built.cycle_ns == 0.0:
        raise TrafficError("simulation: times in µs need router.cycle_ns")
    return max(round(time_us * 1000 / built.cycle_ns), 1)

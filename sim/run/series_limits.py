"""What a run in bins of time needs of its file, found before it begins."""

from hopforge.sim.run.load_changes import check_load_changes
from hopforge.sim.run.run_lengths import cycles_of_us
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.traffic import TrafficError


def series_cycles(run: Simulation) -> int:
    """Return the cycles of a run of `hopforge series`.

    Raises
    ------
    TrafficError
        A program as source, a load that cannot change, a router that does not exist or that has no learned times, or
        fewer cycles than bins.
    """
    limits = run.config.simulation
    if run.placed is not None:
        raise TrafficError("traffic.source: a program has no load; hopforge net runs it")
    for router in limits.series_routers:
        if router >= run.topology.routers:
            raise TrafficError(
                f"simulation.series_routers must be routers from 0 to {run.topology.routers - 1}, not {router}"
            )
        if run.plan.estimates is None:
            raise TrafficError(f"simulation.series_routers: {run.config.routing.algorithm} learns no times")
    if limits.load_steps:
        check_load_changes(run.config, run.load)
    key, total = "max_cycles", limits.max_cycles * run.built.flit_cycles
    if limits.measure_us is not None:
        key, total = "measure_us", cycles_of_us(run.built, limits.measure_us)
    if total < limits.series_bins:
        raise TrafficError(
            f"simulation.series_bins: must be at most the {total} cycles of {key}, not {limits.series_bins}"
        )
    return total

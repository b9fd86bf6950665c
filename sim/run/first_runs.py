"""The first runs of a sweep of routers with flits, made ready to find mistakes."""

from hopforge.sim.run.jobs import Job
from hopforge.sim.run.run_lengths import run_lengths
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.traffic import TrafficError

__all__ = ["prepare_job"]


def prepare_job(job: Job) -> Simulation:
    """Make a run of a sweep ready.

    Raises
    ------
    UserError
        A network that cannot be simulated so, or a program as source.
    """
    run = Simulation(job.config, job.load, job.seed)
    if run.placed is not None:
        raise TrafficError("traffic.source: a program has no load; hopforge net runs it once, from begin to end")
    run_lengths(run.config, run.built)
    return run

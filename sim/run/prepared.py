"""What each command that simulates a network makes of a file before its run."""

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.network.settings import Script
from hopforge.sim.run.jobs import Job, network_jobs
from hopforge.sim.run.model_runs import NetRun, SeriesRun, model_runs, sweep_runs
from hopforge.sim.run.router_models import router_model
from hopforge.sim.run.simulation import Simulation

__all__ = ["prepare_net", "prepare_network_sweep", "prepare_series", "prepare_trace"]


def prepare_net(
    config: Config, *, load: float | None = None, seed: int | None = None, threads: int | None = 1
) -> NetRun:
    """Make a run ready; load and seed are those of the file unless given; `threads` as for `Simulation`."""
    return model_runs(config, "net").net(config, load, seed, threads)


def prepare_series(config: Config, *, load: float | None = None, seed: int | None = None) -> SeriesRun:
    """Make a run in bins of time ready."""
    offered = config.simulation.load if load is None else load
    return model_runs(config, "series").series(config, offered, config.seed if seed is None else seed)


def prepare_trace(
    config: Config,
    *,
    load: float | None = None,
    seed: int | None = None,
    script: Script | None = None,
    check: bool = True,
) -> Simulation:
    """Make the run ready whose packets are followed; `script` and `check` as for `Simulation`.

    Raises
    ------
    UserError
        Flits wait behind the crossbar, which the log of a trace does not know.
    """
    router_model(config, "trace")
    for key in ("output_speedup", "internal_speedup", "crossbar_cycles"):
        if (value := getattr(config.router, key)) != 1:
            limit = "must be 1 with hopforge trace (times behind the crossbar are not logged)"
            raise UserError(f"router.{key} {limit}, not {value:g}")
    offered = config.simulation.load if load is None else load
    return Simulation(config, offered, config.seed if seed is None else seed, script=script, check=check)


def prepare_network_sweep(config: Config) -> list[Job]:
    """List the runs of a sweep, of which the first of every variant could begin."""
    jobs = network_jobs(config)
    sweep_runs(config).prepare_sweep(jobs)
    return jobs

"""Many runs of one kind: variants × loads × seeds of a configuration, over all cores or a Dask cluster.

What is run and what becomes of the results is that of a `Sweep`: the routers with flits (`sim.run.flit_sweep`), the
packet routers (`sim.packet.sweep`), programs (`sim.programs.app_sweep`). Each finished run is kept
(`sim.run.kept_results`), so that a stopped sweep goes on where it was.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from hopforge.model.config import Config
from hopforge.sim.run.jobs import Job, jobs_at, network_jobs
from hopforge.sim.run.kept_results import FINISHED, Row, kept_results, naming_variant
from hopforge.sim.run.knee import Knee, knee_of, next_load
from hopforge.sim.run.wanted_result import Wanted, described, files_read


def curve_knees(curve: pd.DataFrame, saturated: "pd.Series[bool]") -> dict[str, Knee]:
    """Return the knee of each variant of a curve, given which of its rows are beyond it."""
    return {
        str(name): knee_of(rows["load"].tolist(), saturated[rows.index].tolist())
        for name, rows in curve.groupby("variant", sort=False)
    }


class Sweep(ABC):
    """What a sweep runs, and what becomes of its results."""

    def jobs(self, config: Config) -> list[Job]:
        """List all runs: variants, then loads, then seeds; without ``simulation.variants`` the file is the only one."""
        return network_jobs(config)

    @abstractmethod
    def run_one(self, job: Job) -> Row:
        """Do one run, in a worker process; returns a row of the table of runs."""

    def prepare(self, missing: Sequence[Job]) -> None:  # noqa: B027 - nothing to do is fine
        """Find mistakes before the first of the runs that are missing."""

    def unused(self, config: Config) -> set[str]:
        """Return the sections that play no part in a run."""
        return set()

    def name(self, job: Job) -> str:
        """Say which run a job is, among all of the sweep."""
        return f"{job.variant}, load {job.load:.6g}, seed {job.seed}".removeprefix(", ")

    def choices(self, config: Config) -> dict[str, Any]:
        """Return what decides the results beside the configuration: values that JSON can hold."""
        return {}

    @abstractmethod
    def summarise(self, runs: pd.DataFrame) -> pd.DataFrame:
        """Return the means over the seeds."""

    @abstractmethod
    def write(self, config: Config, runs: pd.DataFrame, folder: Path) -> None:
        """Write tables, plot and metadata."""

    @abstractmethod
    def table(self, config: Config, runs: pd.DataFrame) -> list[list[str]]:
        """Return what the terminal shows: headings, then rows of as many cells."""

    def knees(self, runs: pd.DataFrame) -> dict[str, Knee]:
        """Return the knee of each variant, by its name in the tables; empty where runs have no loads."""
        return {}

    def wanted(self, jobs: Sequence[Job]) -> list[Wanted]:
        """Say what decides the result of each job."""
        known: dict[int, tuple[dict[str, Any], dict[str, str], tuple[Path, ...]]] = {}
        found = []
        for job in jobs:
            if id(job.config) not in known:
                unused = self.unused(job.config)
                values, files = described(job.config, without=unused)
                paths = tuple(files_read(job.config, without=unused).values())
                known[id(job.config)] = ({**values, **self.choices(job.config)}, files, paths)
            values, files, paths = known[id(job.config)]
            run = {"load": job.load, "seed": job.seed}
            found.append(Wanted(self.name(job), {**values, "kind": type(self).__name__, "run": run}, files, paths))
        return found

    def run(
        self,
        config: Config,
        folder: Path,
        progress: Callable[[int, int], None],
        workers: int | None = None,
        dask: str | None = None,
        *,
        tell: Callable[[str], None] = lambda line: None,
    ) -> pd.DataFrame:
        """Do every run that `folder` has no result of yet; returns the table of all runs.

        With `simulation.knee_percent` loads are added, one for each variant and round, until the knees are known.

        The results do not depend on where and on how many processes they are computed.

        Parameters
        ----------
        config : Config
            Loads, seeds and variants stand in its section `simulation`.
        folder : Path
            Results; each finished run is kept at once in ``folder/runs/``.
        progress : callable
            Called with (finished, in all).
        workers : int, optional
            Processes; by default one per core.
        dask : str, optional
            Address of a Dask scheduler, whose workers are used instead of processes here.
        tell : callable, optional
            Called with a line about runs that are computed again.

        Raises
        ------
        SweepError
            No scheduler at the address, or a variant that does not fit its network (before any run).
        UserError
            The same of a configuration without variants.
        """
        jobs = self.jobs(config)
        prepared: set[str] = set()

        def prepare(missing: Sequence[int]) -> None:
            fresh = [jobs[number] for number in missing if jobs[number].variant not in prepared]
            self.prepare(fresh)
            prepared.update(job.variant for job in fresh)

        while True:
            rows = kept_results(
                jobs, self.wanted(jobs), self._named_run, folder / FINISHED, progress,
                tell=tell, prepare=prepare, workers=workers, dask=dask,
            )  # fmt: skip
            names = [job.variant or config.name for job in jobs]
            runs = pd.DataFrame([{"variant": name, **row} for name, row in zip(names, rows, strict=True)])
            more = jobs_at(jobs, self._further_loads(config, runs))
            if not more:
                return runs
            order = list(dict.fromkeys(job.variant for job in jobs))
            jobs = sorted([*jobs, *more], key=lambda job: (order.index(job.variant), job.load))

    def _further_loads(self, config: Config, runs: pd.DataFrame) -> dict[str, float]:
        """Return the next load of each variant whose knee is not yet known as its configuration wants."""
        found = {}
        for name, knee in self.knees(runs).items():
            variant = name if config.variants else ""
            chosen = (config.variants or {"": config})[variant]
            within = chosen.simulation.knee_within
            load = None if within is None else next_load(knee, within, chosen.traffic.highest_load)
            if load is not None:
                found[variant] = load
        return found

    def _named_run(self, job: Job) -> Row:
        with naming_variant(job.variant):
            return self.run_one(job)

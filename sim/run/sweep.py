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
from hopforge.sim.run.jobs import Job, network_jobs
from hopforge.sim.run.kept_results import FINISHED, Row, Wanted, described, kept_results, naming_variant


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

    def wanted(self, jobs: Sequence[Job]) -> list[Wanted]:
        """Say what decides the result of each job."""
        known: dict[int, tuple[dict[str, Any], dict[str, str]]] = {}
        found = []
        for job in jobs:
            if id(job.config) not in known:
                values, files = described(job.config, without=self.unused(job.config))
                known[id(job.config)] = ({**values, **self.choices(job.config)}, files)
            values, files = known[id(job.config)]
            name = f"{job.variant}, load {job.load:.6g}, seed {job.seed}".removeprefix(", ")
            run = {"load": job.load, "seed": job.seed}
            found.append(Wanted(name, {**values, "kind": type(self).__name__, "run": run}, files))
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
        rows = kept_results(
            jobs, self.wanted(jobs), self._named_run, folder / FINISHED, progress,
            tell=tell, prepare=lambda missing: self.prepare([jobs[number] for number in missing]),
            workers=workers, dask=dask,
        )  # fmt: skip
        names = [job.variant or config.name for job in jobs]
        return pd.DataFrame([{"variant": name, **row} for name, row in zip(names, rows, strict=True)])

    def _named_run(self, job: Job) -> Row:
        with naming_variant(job.variant):
            return self.run_one(job)

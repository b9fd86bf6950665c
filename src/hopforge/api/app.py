"""A program on a network: what `hopforge app` runs."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hopforge.api.configuration import Configuration, configuration
from hopforge.api.progress import Progress, shown
from hopforge.api.result import Result, called
from hopforge.model.config import Config
from hopforge.sim.programs.app_result import AppRun
from hopforge.sim.programs.application import app_rows, run_app, write_app
from hopforge.sim.programs.jobs_run import job_lines
from hopforge.sim.programs.loggops_run import LoggopsRun
from hopforge.sim.run.model_runs import Progress as Advance
from hopforge.sim.start.preparation import prepare
from hopforge.sim.traffic.forecast import CARRIED_PACKETS_PER_SECOND, forecast

__all__ = ["AppFound", "app"]


class AppFound:
    """A program of `hopforge app`, prepared, then run, then shown and written."""

    unit = "running"

    def __init__(self, config: Config) -> None:
        self._config, self._setup = config, prepare("app", config)
        self._found: AppRun | LoggopsRun

    def forecast(self) -> str:
        """Say how long it will take, if that is more than a minute and known before."""
        if (packets := getattr(self._setup, "packets", None)) is not None:
            return forecast(packets.message_packets, "packets", CARRIED_PACKETS_PER_SECOND)
        run = getattr(self._setup, "simulation", None)
        return "" if run is None else forecast(run.message_flits)

    def run(self, progress: Advance) -> None:
        """Run it to its end."""
        self._found = run_app(self._config, progress, self._setup)

    def values(self) -> dict[str, Any]:
        """Return makespan, shares of waiting and computing, messages, energy."""
        return asdict(self._found.found)

    def rows(self) -> list[tuple[str, str]]:
        """Say the makespan and the times of the ranks."""
        return app_rows(self._found)

    def lines(self) -> list[list[str]]:
        """Return headings and a line for each job, if there are several."""
        return [] if isinstance(self._found, LoggopsRun) else job_lines(self._found)

    def write(self, folder: Path, *, plots: bool = False) -> None:
        """Write tables and metadata; nothing is drawn."""
        write_app(self._found, folder)


def app(config: Configuration | str | os.PathLike[str], *, progress: Progress = True) -> Result:
    """Run the program of section `workload` on the network, as ``hopforge app``.

    Key ``app.engine`` of the configuration chooses between flows, the cycle-accurate simulator and LogGOPS.

    Parameters
    ----------
    config : Configuration or str or Path
        What is run, or its file.
    progress : bool or callable
        A bar on a terminal and in Jupyter, or a function that is called with (done, in all).

    Returns
    -------
    Result
        `table` has one row, ``tables["ranks"]`` one for each rank, ``tables["energy"]`` one for each part of a switch
        (LogGOPS has none). With ``workload.kind: jobs`` ``tables["job_runs"]`` has one for each job. With
        ``simulation.failures`` ``tables["failures"]`` has one for each failure or repair.

    Raises
    ------
    UserError
        The configuration is no good for it, or the program cannot end.
    """
    with called(configuration(config), "app", "app") as call:
        found = AppFound(call.config)
        with shown(progress, found.unit) as advance:
            found.run(advance)
    return Result(call, found, tables=("app",))

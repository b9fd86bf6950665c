"""Many runs of a network or a program: what `hopforge sweep` runs."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopforge.api.configuration import Configuration, configuration
from hopforge.api.errors import number_within, warn
from hopforge.api.progress import Progress, shown
from hopforge.api.result import Result, called, check_folder, html_lines
from hopforge.model.config import Config
from hopforge.sim.run.knee import knee_words
from hopforge.sim.run.model_runs import Progress as Advance
from hopforge.sim.run.model_runs import configured_sweep, runs_programs
from hopforge.sim.run.run_words import class_rows, failure_plan_rows, run_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SweepFound", "sweep"]


class SweepFound:
    """The runs of `hopforge sweep`: run, then shown and written."""

    unit = "runs"

    def __init__(self, config: Config) -> None:
        self._config, self._sweep = config, configured_sweep(config)
        self._runs: pd.DataFrame

    def run(
        self, progress: Advance, folder: Path, workers: int | None, dask: str | None, tell: Callable[[str], None]
    ) -> None:
        """Do every run that `folder` has no result of yet."""
        self._runs = self._sweep.run(self._config, folder, progress, workers, dask, tell=tell)

    def values(self) -> dict[str, Any]:
        """Return nothing: a sweep has tables."""
        return {}

    def rows(self) -> list[tuple[str, str]]:
        """Say what ran, and where it saturates."""
        knees = self._sweep.knees(self._runs)
        variants = self._config.variants or {"": self._config}
        said = [
            (f"{name} saturates" if self._config.variants else "saturates",
             ": ".join(knee_words(knee, variants[name if self._config.variants else ""].traffic.highest_load)))
            for name, knee in knees.items()
        ]  # fmt: skip
        programs = runs_programs(self._config)
        of_runs = [] if programs else [*failure_plan_rows(variants), *class_rows(variants)]
        return run_rows(variants, programs=programs) + of_runs + said

    def lines(self) -> list[list[str]]:
        """Return headings, and a row for each variant and load."""
        return self._sweep.table(self._config, self._runs)

    def write(self, folder: Path, *, plots: bool = True) -> None:
        """Write tables, plot and metadata."""
        self._sweep.write(self._config, self._runs, folder)


class _SweepResult(Result):
    """Shows the table of the terminal, too."""

    _found: SweepFound

    def __repr__(self) -> str:
        lines = self._found.lines()
        width = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
        shown_lines = ("  ".join(f"{cell:>{wide}}" for cell, wide in zip(line, width, strict=True)) for line in lines)
        return "\n".join([super().__repr__(), *shown_lines])

    def _repr_html_(self) -> str:
        return html_lines(self._found.lines()) + super()._repr_html_()


def sweep(
    config: Configuration | str | os.PathLike[str],
    *,
    output: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    dask: str | None = None,
    progress: Progress = True,
) -> Result:
    """Simulate all variants, loads and seeds of section `simulation` on all cores, as ``hopforge sweep``.

    With a section `app` its program runs. A program that is not a notebook begins with ``if __name__ == "__main__":``,
    since other processes read it, too; ``workers=1`` needs none.

    Parameters
    ----------
    config : Configuration or str or Path
        What is run, or its file.
    output : str or Path, optional
        Folder in which every run is kept as soon as it is finished, so that a stopped sweep goes on there, and to which
        the results are written. Without it nothing is kept.
    workers : int, optional
        Processes; by default one for each core.
    dask : str, optional
        Address of a Dask scheduler, whose workers are used instead.
    progress : bool or callable
        A bar on a terminal and in Jupyter, or a function that is called with (done, in all).

    Returns
    -------
    Result
        `table` has a row for each variant and load (the means over the seeds), ``tables["runs"]`` one for each run.

    Raises
    ------
    UserError
        The configuration is no good for it.
    """
    workers = number_within("workers", workers, 1)
    if not isinstance(dask, str | None):
        raise TypeError(f"dask must be the address of a scheduler, not {dask!r}")
    kept = check_folder(output)
    with called(configuration(config), "sweep", "sweep", output=output, workers=workers, dask=dask) as call:
        found = SweepFound(call.config)
        with tempfile.TemporaryDirectory(prefix="hopforge-") as scratch, shown(progress, found.unit) as advance:
            found.run(advance, Path(scratch) if kept is None else kept, workers, dask, warn)
        if kept is not None:
            found.write(kept)
    return _SweepResult(call, found, tables=("curve", "variants"), picture=("latency_load", "makespan"))

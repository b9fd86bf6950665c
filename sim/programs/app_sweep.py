"""The sweep of programs: variants × seeds of a file with section `app`, and their makespans."""

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from hopforge.model.config import Config
from hopforge.model.output.plots import draw_grouped_bars, new_figure, save_figure, style_axes
from hopforge.model.output.results import run_metadata, staged, write_metadata, write_tables
from hopforge.model.output.times import time_unit
from hopforge.sim.programs.app_setup import prepare_programs
from hopforge.sim.programs.application import AppRun, run_app
from hopforge.sim.run.jobs import Job, program_jobs
from hopforge.sim.run.kept_results import Row
from hopforge.sim.run.sweep import Sweep

MEANS = [
    "makespan_s", "waiting_share", "computing_share", "miss_share", "energy_j", "conventional_energy_j",
    "mean_slowdown", "max_slowdown", "utilisation", "link_share",  # of several jobs
]  # fmt: skip


class AppSweep(Sweep):
    """Variants × seeds of the program of section `workload`; of the loads only `simulation.load` plays a part."""

    def jobs(self, config: Config) -> list[Job]:
        """List all runs: variants, then seeds."""
        return program_jobs(config)

    def name(self, job: Job) -> str:
        """Say which run a job is; a program has no load."""
        return f"{job.variant}, seed {job.seed}".removeprefix(", ")

    def choices(self, config: Config) -> dict[str, Any]:
        """Whether SimGrid is there, where that decides."""
        return {"simgrid": config.app.backend == "auto" and shutil.which("smpirun") is not None}

    def prepare(self, missing: Sequence[Job]) -> None:
        """Make the program of every variant ready: mistakes."""
        prepare_programs(missing)

    def run_one(self, job: Job) -> Row:
        """Run a program."""
        run = run_app(job.config)
        return run.row() if isinstance(run, AppRun) else asdict(run.found)

    def summarise(self, runs: pd.DataFrame) -> pd.DataFrame:
        """One row per variant: means over seeds, and `gain`, the makespan of the first variant over its own."""
        means = [name for name in MEANS if name in runs]  # engine loggops knows neither switches nor energy
        table = runs.groupby("variant", sort=False)[means].mean().reset_index()
        table.insert(1, "seeds", runs.groupby("variant", sort=False)["seed"].count().to_numpy())
        table.insert(3, "gain", table["makespan_s"][0] / table["makespan_s"])
        return table

    def write(self, config: Config, runs: pd.DataFrame, folder: Path) -> None:
        """Write runs and their means (CSV, Parquet), plot (PNG) and metadata (JSON)."""
        means = self.summarise(runs)
        with staged(folder) as scratch:
            write_tables(scratch, {"runs": runs, "variants": means})
            write_metadata(scratch, run_metadata(config))
            figure, (axes,) = new_figure(width_in=max(7.2, 1.1 * len(means)))
            _draw(axes, config.name, means)
            save_figure(figure, scratch / "makespan.png")

    def table(self, config: Config, runs: pd.DataFrame) -> list[list[str]]:
        """Headings, and a row per variant."""
        table = self.summarise(runs)
        factor, unit = time_unit(table["makespan_s"].max())
        table["makespan_s"] *= factor
        shown = [column for column in _COLUMNS if column in table]
        rows = [["variant", *(_COLUMNS[column][0] for column in shown)]]
        for row in table.to_dict("records"):
            rows.append([str(row["variant"]), *(_words(row[column], _COLUMNS[column][1], unit) for column in shown)])
        return rows


#: column of the means → its heading, and how its values are written; engine loggops knows neither switches nor energy
_COLUMNS = {
    "makespan_s": ("makespan", "{:.6g} {unit}"), "gain": ("gain", "{:.4f}"), "waiting_share": ("waiting", "{:.1%}"),
    "computing_share": ("computing", "{:.1%}"), "miss_share": ("misses", "{:.3%}"), "energy_j": ("energy", "{:.4g} J"),
    "conventional_energy_j": ("without caches", "{:.4g} J"),
    "mean_slowdown": ("slowdown", "{:.4f}"), "max_slowdown": ("largest", "{:.4f}"),
}  # fmt: skip


def _words(value: float, form: str, unit: str) -> str:
    return "–" if pd.isna(value) else form.format(value, unit=unit)


APP_SWEEP = AppSweep()


def _draw(axes: Axes, name: str, means: pd.DataFrame) -> None:
    factor, unit = time_unit(means["makespan_s"].max())
    style_axes(axes, title=f"Makespan, {name}", x_label="", y_label=unit)
    draw_grouped_bars(axes, groups=list(means["variant"]), series={"makespan": list(factor * means["makespan_s"])})

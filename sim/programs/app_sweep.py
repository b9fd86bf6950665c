"""Many runs of programs: variants × seeds of a file with section `app`, over all cores or a Dask cluster."""

import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from hopforge.model.config import Config
from hopforge.model.output.plots import draw_grouped_bars, new_figure, save_figure, style_axes
from hopforge.model.output.results import run_metadata, staged, write_metadata, write_tables
from hopforge.sim.programs.application import run_app
from hopforge.sim.run.kept_runs import Row, config_key, kept_runs, naming_variant

SECTIONS = {
    "topology", "failed", "address", "lookup", "router", "packet", "routing", "tables", "traffic", "simulation",
    "workload", "app", "timing", "energy", "seed",
}
MEANS = ["makespan_s", "waiting_share", "computing_share", "miss_share", "energy_j", "conventional_energy_j"]


def is_app_sweep(config: Config) -> bool:
    """Tell whether `hopforge sweep` runs programs: the file, or one of its variants, has section `app`."""
    return any("app" in each.model_fields_set for each in (config, *config.variants.values()))


def app_sweep_runs(
    config: Config,
    folder: Path,
    progress: Callable[[int, int], None],
    workers: int | None = None,
    dask: str | None = None,
) -> pd.DataFrame:
    """Run the program of every variant with every seed that `folder` has no result of yet.

    Parameters
    ----------
    config, folder, progress, workers, dask
        As of `sim.run.sweep.sweep_runs`; loads play no part.

    Returns
    -------
    DataFrame
        A row for each run: variant, and `AppMeasurement`.

    Raises
    ------
    SweepError
        No scheduler at the address, or a variant whose program cannot run: names it.
    UserError
        The same of a configuration without variants.
    """
    jobs = [
        (name if config.variants else "", variant.model_copy(update={"seed": variant.seed + k}))
        for name, variant in (config.variants or {config.name: config}).items()
        for k in range(variant.simulation.seeds)
    ]
    keys = [app_key(variant) for _, variant in jobs]
    rows = kept_runs(jobs, keys, run_variant, folder, progress, workers=workers, dask=dask)
    return pd.DataFrame([{"variant": name or config.name, **row} for (name, _), row in zip(jobs, rows, strict=True)])


def app_key(config: Config) -> str:
    """Name of one run: a digest of everything that decides its result."""
    simgrid = config.app.backend == "auto" and shutil.which("smpirun") is not None
    return config_key(config, SECTIONS, simgrid)


def run_variant(job: tuple[str, Config]) -> Row:
    """Run a program; errors name the variant, if it has a name."""
    name, config = job
    with naming_variant(name):
        return asdict(run_app(config).found)


def summarise_apps(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per variant: means over seeds, and `gain`, the makespan of the first variant over its own."""
    table = runs.groupby("variant", sort=False)[MEANS].mean().reset_index()
    table.insert(1, "seeds", runs.groupby("variant", sort=False)["seed"].count().to_numpy())
    table.insert(3, "gain", table["makespan_s"][0] / table["makespan_s"])
    return table


def write_app_sweep(config: Config, runs: pd.DataFrame, folder: Path) -> None:
    """Write runs and their means (CSV, Parquet), plot (PNG) and metadata (JSON)."""
    means = summarise_apps(runs)
    with staged(folder) as scratch:
        write_tables(scratch, {"runs": runs, "variants": means})
        write_metadata(scratch, run_metadata(config))
        figure, (axes,) = new_figure(width_in=max(7.2, 1.1 * len(means)))
        _draw(axes, config.name, means)
        save_figure(figure, scratch / "makespan.png")


def _draw(axes: Axes, name: str, means: pd.DataFrame) -> None:
    style_axes(axes, title=f"Makespan, {name}", x_label="", y_label="ms")
    draw_grouped_bars(axes, groups=list(means["variant"]), series={"makespan": list(1e3 * means["makespan_s"])})

"""Many runs of the network simulator: variants × loads × seeds, over all cores or a Dask cluster; tables and plot."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hopforge.model.config import Config
from hopforge.model.output.plots import PALETTE, Line, draw_lines, new_figure, save_figure, style_axes
from hopforge.model.output.results import run_metadata, staged, write_metadata, write_tables
from hopforge.sim.run.kept_runs import Row, config_key, kept_runs, naming_variant
from hopforge.sim.run.simulation import Simulation


class Job(NamedTuple):
    """One run."""

    config: Config
    load: float
    seed: int


def run_key(config: Config, load: float, seed: int) -> str:
    """Name of one run: a digest of everything that decides its result."""
    sections = {"topology", "failed", "address", "lookup", "router", "packet", "routing", "traffic", "simulation"}
    if config.routing.algorithm == "tables":  # random ties and landmarks come from the seed of the file
        sections |= {"tables", "seed"}
    return config_key(config, sections, load, seed)


def run_one(job: Job) -> Row:
    """Simulate one load and seed (in a worker process); freedom from deadlock has been proved before."""
    return Simulation(*job, check=False).run().row()


def sweep_jobs(config: Config) -> list[tuple[str, Job]]:
    """List all runs with the names of their variants: variants, then loads, then seeds.

    Without ``simulation.variants`` there is one variant, called as the configuration.
    """
    return [
        (name, Job(variant, load, variant.seed + k))
        for name, variant in (config.variants or {config.name: config}).items()
        for load in variant.simulation.loads
        for k in range(variant.simulation.seeds)
    ]


def sweep_runs(
    config: Config,
    folder: Path,
    progress: Callable[[int, int], None],
    workers: int | None = None,
    dask: str | None = None,
) -> pd.DataFrame:
    """Run every variant, load and seed that `folder` has no result of yet; returns the table of all runs.

    Each finished run is kept at once in ``folder/runs/``, so a stopped sweep goes on where it was. The results do not
    depend on where and on how many processes they are computed.

    Parameters
    ----------
    config : Config
        Loads, seeds and variants stand in its section `simulation`.
    folder : Path
        Results.
    progress : callable
        Called with (finished, in all).
    workers : int, optional
        Processes; by default one per core.
    dask : str, optional
        Address of a Dask scheduler, whose workers are used instead of processes here.

    Raises
    ------
    SweepError
        No scheduler at the address, or a variant that does not fit its network (before any run).
    UserError
        The same of a configuration without variants.
    """
    named = sweep_jobs(config)
    jobs = [job for _, job in named]
    rows = kept_runs(
        jobs, [run_key(*job) for job in jobs], run_one, folder, progress,
        prepare=lambda missing: _prove([named[number] for number in missing], named=bool(config.variants)),
        workers=workers, dask=dask,
    )
    return pd.DataFrame([{"variant": name, **row} for (name, _), row in zip(named, rows, strict=True)])


def _prove(missing: Iterable[tuple[str, Job]], *, named: bool) -> None:
    """Prepare the first run of every variant: mistakes, proof of deadlock freedom, kernels into the disk cache."""
    seen: set[str] = set()
    for name, job in missing:
        if name in seen:
            continue
        seen.add(name)
        with naming_variant(name if named else ""):
            Simulation(*job).advance(0)


MEANS = [
    "latency",
    "latency_interval",
    "latency_median",
    "latency_p95",
    "latency_p99",
    "network_latency",
    "hops",
    "accepted",
    "accepted_worst",
    "channel_load_max",
    "channel_load_mean",
    "hit_rate",
]


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per variant and load: means over seeds, and `saturated` if any run was."""
    parts = []
    for name in runs["variant"].unique():
        by_load = runs[runs["variant"] == name].groupby("load", sort=True)
        table = by_load[MEANS].mean().reset_index()
        table.insert(0, "variant", name)
        table.insert(2, "saturated", by_load["saturated"].any().to_numpy())
        table.insert(3, "seeds", by_load["seed"].count().to_numpy())
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def write_sweep(config: Config, runs: pd.DataFrame, folder: Path) -> None:
    """Write runs and curve (CSV, Parquet), plot (PNG) and metadata (JSON)."""
    curve = summarise(runs)
    with staged(folder) as scratch:
        write_tables(scratch, {"runs": runs, "curve": curve})
        write_metadata(scratch, run_metadata(config))
        if config.variants:
            plot_variants(config.name, curve, scratch / "latency_load.png")
        else:
            plot_curve(config.name, curve, scratch / "latency_load.png")


def _panels(name: str) -> tuple[Figure, Axes, Axes]:
    figure, (left, right) = new_figure(panels=2)
    load = "offered load (flits per host and cycle)"
    style_axes(left, title=f"Latency, {name}", x_label=load, y_label="latency (cycles)")
    style_axes(right, title="Throughput", x_label=load, y_label="accepted (flits per host and cycle)")
    return figure, left, right


def plot_curve(name: str, curve: pd.DataFrame, path: Path) -> None:
    """Draw mean and 99th percentile of latency, and accepted over offered load; latencies of stable points only."""
    stable = curve[~curve["saturated"]]
    figure, left, right = _panels(name)
    if len(stable):
        draw_lines(
            left,
            [
                Line("mean", stable["load"], stable["latency"], 0, error=stable["latency_interval"]),
                Line("99 %", stable["load"], stable["latency_p99"], 1),
            ],
        )
    draw_lines(
        right,
        [
            Line("mean", curve["load"], curve["accepted"], 0),
            Line("worst host", curve["load"], curve["accepted_worst"], 1),
            Line("offered", np.array(curve["load"]), np.array(curve["load"]), 2, dashed=True, marked=False),
        ],
    )
    save_figure(figure, path)


def plot_variants(name: str, curve: pd.DataFrame, path: Path) -> None:
    """Draw mean latency (stable points only) and accepted over offered load, one line per variant."""
    figure, left, right = _panels(name)
    latencies, rates = [], []
    for k, variant in enumerate(curve["variant"].unique()):
        points = curve[curve["variant"] == variant]
        stable = points[~points["saturated"]]
        dashed = k >= len(PALETTE)  # colours begin again
        if len(stable):
            half = stable["latency_interval"]
            latencies.append(Line(variant, stable["load"], stable["latency"], k, dashed=dashed, error=half))
        rates.append(Line(variant, points["load"], points["accepted"], k, dashed=dashed))
    if latencies:
        draw_lines(left, latencies)
    draw_lines(right, rates)
    save_figure(figure, path)

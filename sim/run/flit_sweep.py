"""The sweep of the routers with flits: its runs, its curves of latency and throughput over the load."""

import math
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import stdtrit

from hopforge.model.config import Config
from hopforge.model.config.uses import USES
from hopforge.model.output.plots import PALETTE, Line, draw_lines, new_figure, save_figure, style_axes
from hopforge.model.output.results import run_metadata, staged, write_metadata, write_tables
from hopforge.sim.run.first_runs import prepare_job
from hopforge.sim.run.jobs import Job, try_variants
from hopforge.sim.run.kept_results import Row, naming_variant
from hopforge.sim.run.knee import Knee
from hopforge.sim.run.rate_time import rate_time, rate_units
from hopforge.sim.run.reordering import Reordering
from hopforge.sim.run.run_statistics import figure
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.run.sources import check_bursts
from hopforge.sim.run.sweep import Sweep, curve_knees


class FlitSweep(Sweep):
    """Variants × loads × seeds of a network whose routers move flits."""

    def unused(self, config: Config) -> set[str]:
        """Sections about packet routers and programs, but for those that a run reads, as the times of tiers."""
        return {"workload", "timing", "energy", "app", "packet"} - USES["sweep"](config)

    def run_one(self, job: Job) -> Row:
        """Simulate one load and seed; freedom from deadlock has been proved before."""
        run = Simulation(job.config, job.load, job.seed, check=False)
        row = run.run().row()
        if run.agents is not None:
            run.agents.raise_if_diverged()
        return row

    def prepare(self, missing: Sequence[Job]) -> None:
        """Start the first run of every variant: mistakes, proof of deadlock freedom, kernels into the disk cache."""
        for job in missing:
            with naming_variant(job.variant):
                check_bursts(job.config, job.load)
        try_variants(missing, lambda job: prepare_job(job).advance(0))

    def summarise(self, runs: pd.DataFrame) -> pd.DataFrame:
        """One row per variant and load: means over seeds, and `saturated` if any run was."""
        return summarise(runs)

    def knees(self, runs: pd.DataFrame) -> dict[str, Knee]:
        """Saturated: one of the seeds was."""
        curve = summarise(runs)
        return curve_knees(curve, curve["saturated"])

    def write(self, config: Config, runs: pd.DataFrame, folder: Path) -> None:
        """Write runs and curve (CSV, Parquet), plot (PNG) and metadata (JSON)."""
        curve = summarise(runs)
        with staged(folder) as scratch:
            write_tables(scratch, {"runs": runs, "curve": curve}, rate_units(config))
            write_metadata(scratch, run_metadata(config))
            if config.variants:
                plot_variants(config.name, curve, scratch / "latency_load.png", rate_time(config))
            else:
                plot_curve(config.name, curve, scratch / "latency_load.png", rate_time(config))

    def table(self, config: Config, runs: pd.DataFrame) -> list[list[str]]:
        """Headings, and a row per variant and load."""
        first = ["variant"] if config.variants else []
        curve = summarise(runs)
        classes = traffic_classes(curve)
        heads = [f"{each} {kind}" for each in classes for kind in ("latency", "99 %", "accepted")]
        rows = [[*first, "load", "latency", "99 %", "accepted", "worst host", "hops", *heads]]
        for row in curve.itertuples():
            latency = "saturated" if row.saturated else _latency(row.latency, row.latency_interval)
            rows.append([
                *([str(row.variant)] if config.variants else []),
                f"{row.load:.4g}", latency, figure(row.latency_p99), f"{row.accepted:.4f}",
                f"{row.accepted_worst:.4f}", figure(row.hops, ".3f"),
                *(text for each in classes for text in _class_words(row, each)),
            ])  # fmt: skip
        return rows


FLIT_SWEEP = FlitSweep()

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
#: with `traffic.reply`, or with `traffic.acknowledge`
CLASS_MEANS = ["request_latency", "reply_latency", "round_trip_latency", "acknowledge_latency"]
#: with `traffic.reorder`
REORDER_MEANS = [field.name for field in fields(Reordering)]
#: behind the name of a class of `traffic.classes`
TRAFFIC_CLASS_MEANS = ["_offered", "_accepted", "_latency", "_latency_p99"]


def traffic_classes(runs: pd.DataFrame) -> list[str]:
    """Return the names of the classes of traffic in a table of runs or its summary, in their order."""
    return [name.removesuffix("_offered") for name in map(str, runs) if name.endswith("_offered")]


def _latency(mean: Any, half: Any) -> str:
    return "–" if math.isnan(mean) else f"{mean:.2f} ± {figure(half, '.2f')}"


def _class_words(row: Any, name: str) -> tuple[str, str, str]:
    """Return mean latency, 99 % and accepted rate of a class of traffic in a row of the summary."""
    latency, p99 = getattr(row, f"{name}_latency"), getattr(row, f"{name}_latency_p99")
    return figure(latency, ".2f"), figure(p99), f"{getattr(row, f'{name}_accepted'):.4f}"


def _interval(of_load: pd.DataFrame) -> float:
    """Half width of the 95 % interval of the mean latency over the seeds with packets.

    Seeds with the same mean do not say how far means spread: then it is the interval that runs have, as of one run.
    """
    means = of_load["latency"].dropna().to_numpy(float)
    if len(np.unique(means)) > 1:
        return float(stdtrit(len(means) - 1, 0.975) * means.std(ddof=1) / np.sqrt(len(means)))
    return float(of_load["latency_interval"].mean())


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per variant and load: means over the seeds with packets, and `saturated` if any run was.

    Intervals are those of a run; of several, Student's t over their means (as `hopforge compare` has it).
    """
    parts = []
    for name in runs["variant"].unique():
        by_load = runs[runs["variant"] == name].groupby("load", sort=True)
        of_classes = [f"{each}{kind}" for each in traffic_classes(runs) for kind in TRAFFIC_CLASS_MEANS]
        others = [name for name in (*CLASS_MEANS, *REORDER_MEANS) if name in runs]
        table = by_load[[*MEANS, *others, *of_classes]].mean().reset_index()
        table["latency_interval"] = by_load[["latency", "latency_interval"]].apply(_interval).to_numpy()
        table.insert(0, "variant", name)
        table.insert(2, "saturated", by_load["saturated"].any().to_numpy())
        table.insert(3, "seeds", by_load["seed"].count().to_numpy())
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def _panels(name: str, time: str) -> tuple[Figure, Axes, Axes]:
    figure, (left, right) = new_figure(panels=2)
    load = f"offered load (flits per host and {time})"
    style_axes(left, title=f"Latency, {name}", x_label=load, y_label="latency (cycles)")
    style_axes(right, title="Throughput", x_label=load, y_label=f"accepted (flits per host and {time})")
    return figure, left, right


def plot_curve(name: str, curve: pd.DataFrame, path: Path, time: str = "cycle") -> None:
    """Draw mean and 99th percentile of latency, and accepted over offered load, flits per `time`.

    Latencies are those of stable points only.
    """
    stable = curve[~curve["saturated"]]
    figure, left, right = _panels(name, time)
    means = Line("mean" if len(stable) else "saturated", stable["load"], stable["latency"], 0,
                 error=stable["latency_interval"])  # fmt: skip
    draw_lines(left, [means, Line("99 %", stable["load"], stable["latency_p99"], 1)] if len(stable) else [means])
    draw_lines(
        right,
        [
            Line("mean", curve["load"], curve["accepted"], 0),
            Line("worst host", curve["load"], curve["accepted_worst"], 1),
            Line("offered", np.array(curve["load"]), np.array(curve["load"]), 2, dashed=True, marked=False),
        ],
    )
    left.set_xlim(right.get_xlim())
    save_figure(figure, path)


def plot_variants(name: str, curve: pd.DataFrame, path: Path, time: str = "cycle") -> None:
    """Draw mean latency (stable points only) and accepted over offered load (per `time`), one line per variant.

    A variant that is saturated at every load has no latency, and its label says so.
    """
    figure, left, right = _panels(name, time)
    latencies, rates = [], []
    for k, variant in enumerate(curve["variant"].unique()):
        points = curve[curve["variant"] == variant]
        stable = points[~points["saturated"]]
        dashed = k >= len(PALETTE)  # colours begin again
        label = variant if len(stable) else f"{variant}: saturated"
        half = stable["latency_interval"]
        latencies.append(Line(label, stable["load"], stable["latency"], k, dashed=dashed, error=half))
        rates.append(Line(variant, points["load"], points["accepted"], k, dashed=dashed))
    draw_lines(left, latencies)
    draw_lines(right, rates)
    left.set_xlim(right.get_xlim())
    save_figure(figure, path)

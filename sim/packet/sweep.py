"""`hopforge sweep` with ``router.model: packet``: variants × loads × seeds of messages on a torus or mesh."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from hopforge.model.config import Config
from hopforge.model.output.plots import PALETTE, Line, draw_lines, new_figure, save_figure, style_axes
from hopforge.model.output.results import run_metadata, staged, write_metadata, write_tables
from hopforge.sim.packet.network import PacketNetwork
from hopforge.sim.packet.saturation import LIFETIME_LIMIT
from hopforge.sim.packet.simulation import run_packets
from hopforge.sim.run.kept_runs import Row, SweepError, kept_runs, naming_variant
from hopforge.sim.run.sweep import Job, run_key, sweep_jobs

_MEANS = [
    "lifetime_ns", "lifetime_median_ns", "lifetime_p95_ns", "lifetime_p99_ns", "accepted", "hops", "outflanked",
    "wrapped", "refused", "link_load",
]  # fmt: skip


def is_packet_sweep(config: Config) -> bool:
    """Whether the file or one of its variants has packet routers."""
    return any(one.router.model == "packet" for one in (config.variants or {config.name: config}).values())


def packet_sweep_runs(
    config: Config,
    folder: Path,
    progress: Callable[[int, int], None],
    workers: int | None = None,
    dask: str | None = None,
) -> pd.DataFrame:
    """Run every variant, load and seed that `folder` has no result of yet; returns the table of all runs.

    Parameters
    ----------
    config, folder, progress, workers, dask
        As of `sim.run.sweep.sweep_runs`.

    Raises
    ------
    SweepError
        A variant that does not fit its network, or that has other routers; before any run.
    """
    named = sweep_jobs(config)
    _check(dict(named), named=bool(config.variants))
    jobs = [job for _, job in named]
    rows = kept_runs(jobs, [run_key(*job) for job in jobs], run_one, folder, progress, workers=workers, dask=dask)
    return pd.DataFrame([{"variant": name, **row} for (name, _), row in zip(named, rows, strict=True)])


def run_one(job: Job) -> Row:
    """Simulate one load and seed, in a worker process; freedom from deadlock has been proved before."""
    return run_packets(PacketNetwork(*job, check=False)).row()


def _check(jobs: dict[str, Job], *, named: bool) -> None:
    """Prepare a run of every variant: mistakes, and the proof of deadlock freedom."""
    for name, job in jobs.items():
        with naming_variant(name if named else ""):
            if job.config.router.model != "packet":
                raise SweepError(f"router.model must be packet as in other variants, not {job.config.router.model}")
            PacketNetwork(*job)


def summarise_packets(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per variant and load: means over the seeds, and whether the load is sustained.

    Sustained: all packets arrived, and the mean lifetime is at most `LIFETIME_LIMIT` times that at the lowest load.
    """
    curve = runs.groupby(["variant", "load"], sort=False)[_MEANS].mean().reset_index()
    complete = runs.groupby(["variant", "load"], sort=False)["complete"].all().to_numpy()
    lowest = curve.sort_values("load").groupby("variant")["lifetime_ns"].first()
    within = curve["lifetime_ns"] <= LIFETIME_LIMIT * curve["variant"].map(lowest)
    curve.insert(2, "sustained", complete & within.to_numpy())
    return curve


def write_packet_sweep(config: Config, runs: pd.DataFrame, folder: Path) -> None:
    """Write runs and curve (CSV, Parquet), plot (PNG) and metadata (JSON)."""
    curve = summarise_packets(runs)
    figure, (left, middle, right) = new_figure(panels=3, width_in=5.6)
    load = "load (1: uniform traffic saturates the bisection)"
    style_axes(left, title=f"Lifetime while sustained, {config.name}", x_label=load, y_label="mean lifetime (µs)")
    style_axes(middle, title="Throughput until the last packet has arrived", x_label=load, y_label="accepted")
    style_axes(right, title="Detours", x_label=load, y_label="share of packets")
    lifetimes, accepted, detours = [], [], []
    for k, (name, points) in enumerate(curve.groupby("variant", sort=False)):
        dashed, sustained = k >= len(PALETTE), points[points["sustained"]]
        lifetimes.append(Line(str(name), sustained["load"], sustained["lifetime_ns"] / 1000, k, dashed=dashed))
        accepted.append(Line(str(name), points["load"], points["accepted"], k, dashed=dashed))
        detours.append(Line(str(name), points["load"], points["outflanked"] + points["wrapped"], k, dashed=dashed))
    for axes, lines in ((left, lifetimes), (middle, accepted), (right, detours)):
        draw_lines(axes, lines)
    with staged(folder) as scratch:
        write_tables(scratch, {"runs": runs, "curve": curve})
        save_figure(figure, scratch / "latency_load.png")
        write_metadata(scratch, run_metadata(config))

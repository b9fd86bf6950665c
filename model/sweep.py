"""Many runs of the network simulator: loads × seeds, over all cores, resumable; tables and the latency-load plot."""

import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hopforge.model.config import Config
from hopforge.model.plots import Line, draw_lines, new_figure, save_figure, style_axes
from hopforge.model.results import run_metadata, staged, write_metadata, write_tables
from hopforge.model.simulation import Measurement, Simulation

#: folder of finished runs inside the folder of results
FINISHED = "runs"


def run_key(config: Config, load: float, seed: int) -> str:
    """Name of one run: a digest of everything that decides its result."""
    parts = config.model_dump(
        mode="json", include={"topology", "address", "router", "routing", "traffic", "simulation"}
    )
    for name in ("load", "loads", "seeds"):
        del parts["simulation"][name]
    for section in ("routing", "traffic"):
        file = getattr(config, section).file
        if file is not None:
            parts[section]["digest"] = sha256(Path(file).read_bytes()).hexdigest()
    text = json.dumps([parts, load, seed], sort_keys=True)
    return sha256(text.encode()).hexdigest()[:24]


def run_one(job: tuple[Config, float, int]) -> Measurement:
    """Simulate one load and seed (in a worker process)."""
    config, load, seed = job
    return Simulation(config, load, seed).run()


def _ignore_interrupt() -> None:
    # Ctrl-C reaches the whole process group; only the parent decides what to do
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def sweep_runs(
    config: Config, folder: Path, progress: Callable[[int, int], None], workers: int | None = None
) -> pd.DataFrame:
    """Run every load and seed that `folder` has no result of yet; returns the table of all runs.

    Each finished run is kept at once in ``folder/runs/``, so a stopped sweep goes on where it was. The results do not
    depend on the number of workers.

    Parameters
    ----------
    config : Config
        Loads and seeds stand in its section `simulation`.
    folder : Path
        Results.
    progress : callable
        Called with (finished, in all).
    workers : int, optional
        Processes; by default one per core.
    """
    store = folder / FINISHED
    store.mkdir(parents=True, exist_ok=True)
    jobs = [(config, load, config.seed + k) for load in config.simulation.loads for k in range(config.simulation.seeds)]
    names = [store / f"{run_key(*job)}.json" for job in jobs]
    rows: dict[int, dict[str, Any]] = {
        k: json.loads(name.read_text()) for k, name in enumerate(names) if name.is_file()
    }
    progress(len(rows), len(jobs))
    missing = [k for k in range(len(jobs)) if k not in rows]
    for k, measured in _results([jobs[k] for k in missing], workers):
        place = missing[k]
        rows[place] = measured.row()
        unfinished = names[place].with_suffix(".tmp")
        unfinished.write_text(json.dumps(rows[place], default=float))
        unfinished.replace(names[place])
        progress(len(rows), len(jobs))
    return pd.DataFrame([rows[k] for k in range(len(jobs))])


def _results(jobs: list[tuple[Config, float, int]], workers: int | None) -> Iterator[tuple[int, Measurement]]:
    """Results in the order of the jobs, with their numbers."""
    count = min(workers or os.cpu_count() or 1, len(jobs))
    if count <= 1:
        for k, job in enumerate(jobs):
            yield k, run_one(job)
        return
    # compile (or load) the kernel and the relations here, so that the workers find them in the cache
    Simulation(*jobs[0], check=False)
    with multiprocessing.get_context("spawn").Pool(count, initializer=_ignore_interrupt) as pool:
        yield from enumerate(pool.imap(run_one, jobs))


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per load: means over seeds, and `saturated` if any run was."""
    numbers = [
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
    ]
    table = runs.groupby("load", sort=True)[numbers].mean().reset_index()
    table.insert(1, "saturated", runs.groupby("load", sort=True)["saturated"].any().to_numpy())
    table.insert(2, "seeds", runs.groupby("load", sort=True)["seed"].count().to_numpy())
    return table


def write_sweep(config: Config, runs: pd.DataFrame, folder: Path) -> None:
    """Write runs and curve (CSV, Parquet), plot (PNG) and metadata (JSON)."""
    curve = summarise(runs)
    with staged(folder) as scratch:
        write_tables(scratch, {"runs": runs, "curve": curve})
        write_metadata(scratch, run_metadata(config))
        plot_curve(config.name, curve, scratch / "latency_load.png")


def plot_curve(name: str, curve: pd.DataFrame, path: Path) -> None:
    """Draw mean and 99th percentile of latency, and accepted over offered load; latencies of stable points only."""
    stable = curve[~curve["saturated"]]
    figure, (left, right) = new_figure(panels=2)
    style_axes(
        left, title=f"Latency, {name}", x_label="offered load (flits per host and cycle)", y_label="latency (cycles)"
    )
    if len(stable):
        draw_lines(
            left,
            [
                Line("mean", stable["load"], stable["latency"], 0, error=stable["latency_interval"]),
                Line("99 %", stable["load"], stable["latency_p99"], 1),
            ],
        )
    style_axes(
        right,
        title="Throughput",
        x_label="offered load (flits per host and cycle)",
        y_label="accepted (flits per host and cycle)",
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


def measurement_rows(found: Measurement) -> list[tuple[str, str]]:
    """Say what `hopforge net` shows: subject and words."""
    spread = (
        f"median {found.latency_median:.0f}, 95 % {found.latency_p95:.0f}, "
        f"99 % {found.latency_p99:.0f}, max {found.latency_max}"
    )
    ends = {
        "precision": "the interval is tight enough",
        "max_cycles": "simulation.max_cycles reached",
        "saturated": "the source queues grow",
    }
    rows = [
        (
            "offered load",
            f"{found.load:.4g} flits per host and cycle"
            + (", SATURATED: latencies depend on the length of the run" if found.saturated else ""),
        ),
        ("accepted", f"{found.accepted:.4g} (worst host {found.accepted_worst:.4g})"),
        ("latency", f"{found.latency:.2f} ± {found.latency_interval:.2f} cycles ({spread})"),
        ("in the network", f"{found.network_latency:.2f} cycles"),
        ("routers visited", f"{found.hops:.3f}"),
        ("channel load", f"mean {found.channel_load_mean:.3f}, highest {found.channel_load_max:.3f} flits per cycle"),
        (
            "cycles",
            f"{found.warmup_cycles:,} to warm up, {found.cycles:,} measured ({ends[found.stop]}); "
            f"{found.packets:,} packets, {found.cpu_seconds:.2f} s",
        ),
    ]
    if found.dropped_packets:
        rows.append(("unroutable", f"{found.dropped_packets:,} packets dropped"))
    return rows

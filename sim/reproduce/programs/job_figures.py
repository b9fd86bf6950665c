"""Jobs that share a machine: their sizes (seed 004, figure 2.13), waits by placement, caches under a day of jobs."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config import parse_config
from hopforge.model.output.plots import Line, draw_lines, draw_paper_points, new_figure, style_axes
from hopforge.model.workload.jobs import size_shares, usable_jobs
from hopforge.model.workload.lublin import draw_log
from hopforge.sim.hits.hit_rates import run_hits
from hopforge.sim.jobs.interference import interference
from hopforge.sim.jobs.placement import PLACEMENTS, lines_of
from hopforge.sim.jobs.space_sharing import SCHEDULERS, Schedule, schedule
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, pick

_SIZES = tuple(1 << bits for bits in range(14))
_PROCESSORS = 8192
_DIMS = (8, 8, 4)
_ENTRIES = (16, 32, 64, 128, 256)


def _size_rows(point: Point, options: Options) -> list[Row]:
    count = 100_000 if options.full else 20_000
    log = draw_log(str(point["kind"]), count, _PROCESSORS, np.random.default_rng(options.seed))
    jobs = usable_jobs(log, machine_nodes=_PROCESSORS)
    shares = size_shares(jobs.processors, jobs.run)
    rows: list[Row] = []
    for size in _SIZES:
        below = shares.jobs[shares.size < size]
        rows.append({**point, "processors": size, "less_percent": 100 * float(below[-1]) if len(below) else 0.0})
    return rows


def _compare_sizes(data: pd.DataFrame, options: Options) -> list[Comparison]:
    note = f"drawn log of a machine of {_PROCESSORS} processors, as RICC has; the paper's logs are not shipped"
    found = []
    for kind in ("all", "batch", "interactive"):
        ours = pick(data, "less_percent", kind=kind, processors=128)
        found.append(Comparison(f"jobs of less than 128 processors, {kind}", "%", 98.0, ours, note))
        ours = pick(data, "less_percent", kind=kind, processors=1024)
        claim = "at least 90 in many systems"
        found.append(Comparison(f"jobs of less than 1024 processors, {kind}", "%", None, ours, note, claim))
    return found


def _draw_sizes(data: pd.DataFrame, options: Options) -> Figure:
    figure, (axes,) = new_figure(width_in=8.0)
    style_axes(
        axes, title="Jobs of less processors, drawn logs", x_label="processors", y_label="jobs, %", log_x=True,
        x_ticks=[1, 8, 64, 128, 1024, 8192],
    )  # fmt: skip
    draw_paper_points(axes, 128, 98.0, label="RICC, paper", offset=(4, -14))
    lines = []
    for color, kind in enumerate(dict.fromkeys(data["kind"])):
        part = data[data["kind"] == kind]
        lines.append(Line(str(kind), part["processors"], part["less_percent"], color))
    draw_lines(axes, lines)
    return figure


def _wait_rows(point: Point, options: Options) -> list[Row]:
    nodes, count = math.prod(_DIMS), 2000 if options.full else 500
    jobs = usable_jobs(draw_log("all", count, nodes, np.random.default_rng(options.seed)), machine_nodes=nodes)
    done = schedule(
        jobs, _DIMS, scheduler=str(point["scheduler"]), placement=str(point["placement"]), seed=options.seed,
        groups=lines_of(_DIMS),
    )  # fmt: skip
    at = _most_jobs(done)
    running = np.flatnonzero((done.start <= at) & (at < done.end))
    links = interference(_DIMS, [done.used[job] for job in running])
    used = sum(job.links for job in links)
    return [{
        **point, "jobs": len(jobs), "mean_wait_s": float(done.wait.mean()),
        "mean_bounded_slowdown": float(done.bounded_slowdown.mean()), "utilisation": float(done.utilisation),
        "shared_percent": 100 * sum(job.shared for job in links) / used if used else 0.0,
    }]  # fmt: skip


def _most_jobs(done: Schedule) -> float:
    """Return the first start after which most jobs of several nodes run."""
    several = done.jobs.nodes > 1
    starts, ends = np.sort(done.start[several]), np.sort(done.end[several])
    together = np.arange(1, len(starts) + 1) - np.searchsorted(ends, starts, side="right")
    return float(starts[np.argmax(together)])


def _compare_waits(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for row in data.to_dict("records"):
        note = f"bounded slowdown {row['mean_bounded_slowdown']:.1f}, utilisation {row['utilisation']:.3f}"
        name = f"{row['scheduler']}, {row['placement']}"
        found.append(Comparison(f"mean wait, {name}", "s", None, float(row["mean_wait_s"]), note))
        if row["scheduler"] == "easy":
            note = "of the links that jobs use at the instant at which most jobs of several nodes run"
            found.append(Comparison(f"links shared, {name}", "%", None, float(row["shared_percent"]), note))
    return found


def _draw_waits(data: pd.DataFrame, options: Options) -> Figure:
    figure, (axes,) = new_figure(width_in=8.0)
    style_axes(axes, title=f"{data['jobs'].iloc[0]} drawn jobs on an 8x8x4 torus", x_label="", y_label="mean wait, s")
    names = list(dict.fromkeys(data["placement"]))
    lines = []
    for color, scheduler in enumerate(SCHEDULERS):
        part = data[data["scheduler"] == scheduler]
        lines.append(Line(scheduler, np.arange(len(names)), part["mean_wait_s"], color))
    draw_lines(axes, lines)
    axes.set_xticks(range(len(names)), labels=names)
    return figure


def _day_rows(point: Point, options: Options) -> list[Row]:
    count = 1000 if options.full else 200
    text = (
        f"name: day\nseed: {options.seed}\ntopology: {{kind: torus, radices: [8, 8, 4]}}\n"
        f"lookup: {{reduction: false, cache: {{entries: {point['entries']}, ways: 4}}}}\n"
        f"workload: {{kind: job_log, generate: all, count: {count}, placement: {point['placement']}}}\n"
    )
    found = run_hits(parse_config(text)).totals
    return [{**point, **{name: found[name] for name in ("lookups", "hits", "compulsory", "capacity", "conflict")},
             "hit_percent": 100 * found["hit_rate"], "forwarding_mpps": found["forwarding_mpps"]}]  # fmt: skip


def _compare_day(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for row in data.to_dict("records"):
        parts = ", ".join(f"{int(row[name]):,} {name}" for name in ("compulsory", "capacity", "conflict"))
        name = f"hit rate, {row['entries']} lines, {row['placement']}"
        note = f"{int(row['lookups']):,} lookups; misses: {parts}"
        found.append(Comparison(name, "%", None, float(row["hit_percent"]), note))
    return found


def _draw_day(data: pd.DataFrame, options: Options) -> Figure:
    figure, (axes,) = new_figure(width_in=8.0)
    style_axes(
        axes, title="Caches under the jobs of a drawn log, 8x8x4 torus", x_label="lines, 4 ways", y_label="hit rate, %",
        log_x=True, x_ticks=list(_ENTRIES),
    )  # fmt: skip
    lines = []
    for color, placement in enumerate(dict.fromkeys(data["placement"])):
        part = data[data["placement"] == placement]
        lines.append(Line(str(placement), part["entries"], part["hit_percent"], color))
    draw_lines(axes, lines)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "jobs.fig2.13", "Sizes of parallel jobs", "seed 004, figure 2.13",
        (
            "jobs drawn from the model of Lublin and Feitelson in place of the archive's logs: `hopforge jobs LOG.swf`",
            "the paper's text gives 98 % below 128 processors for RICC, and more than 90 % below 1024 in many systems",
        ),
        lambda options: [{"kind": kind} for kind in ("all", "batch", "interactive")], _size_rows, _compare_sizes,
        _draw_sizes,
    ),
    Reproduction(
        "jobs.placements", "Waits and shared links by scheduler and placement", "none: work that seed 004 leaves open",
        (
            "500 drawn jobs (2000 with --full) on an 8x8x4 torus; groups are lines of 8 and planes of 64 nodes",
            "links: every ordered pair of ranks sends a packet, dimension order: docs/definitions/jobs.md",
        ),
        lambda options: [
            {"scheduler": scheduler, "placement": placement} for scheduler in SCHEDULERS for placement in PLACEMENTS
        ], _wait_rows, _compare_waits, _draw_waits,
    ),
    Reproduction(
        "jobs.day", "Hit rate of routing caches under a day of jobs", "none: work that seed 004 leaves open",
        (
            "200 drawn jobs (1000 with --full) on an 8x8x4 torus, EASY; each makes one pairwise all-to-all and ten",
            "neighbour exchanges (docs/definitions/jobs.md#packets-of-a-log); keys are destinations",
        ),
        lambda options: [
            {"entries": entries, "placement": placement} for placement in ("linear", "block", "random")
            for entries in _ENTRIES
        ], _day_rows, _compare_day, _draw_day,
    ),
)  # fmt: skip

"""What `hopforge jobs` computes: a log on a machine, by schedulers and placements, as tables, pictures and metadata.

Definition: docs/definitions/jobs.md.
"""

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hopforge.model.output.program_digest import program_digest
from hopforge.model.output.results import command_facts, package_versions, staged, write_metadata, write_tables
from hopforge.model.workload.job_log import log_text
from hopforge.model.workload.jobs import Jobs, size_shares
from hopforge.sim.jobs.interference import interference
from hopforge.sim.jobs.prepared import JobsError, JobsReport, JobsSetup
from hopforge.sim.jobs.space_sharing import Schedule, schedule

__all__ = ["busiest_instant", "run_jobs", "write_jobs"]

Table = dict[str, Any]

#: most ordered pairs of ranks of one instant whose packets are counted
MAX_PAIRS = 10**9


def run_jobs(setup: JobsSetup, progress: Callable[[int, int], None] = lambda done, total: None) -> JobsReport:
    """Run the jobs by every scheduler with every placement.

    Raises
    ------
    JobsError
        Jobs run together whose packets are too many to be counted.
    """
    found = JobsReport(setup)
    pairs = [(one, other) for one in setup.schedulers for other in setup.placements]
    total = len(pairs) * len(setup.jobs)
    parts: dict[str, list[Table]] = {"jobs": [], "schedules": [], "interference": []}
    for number, (scheduler, placement) in enumerate(pairs):
        before = number * len(setup.jobs)
        done = schedule(
            setup.jobs, setup.machine.dims, scheduler=scheduler, placement=placement, seed=setup.seed,
            groups=setup.groups,
            progress=lambda begun, _, before=before: progress(before + begun, total),  # type: ignore[misc]
        )  # fmt: skip
        name = {"scheduler": scheduler, "placement": placement}
        parts["jobs"].append(_named(name, _job_columns(done)))
        parts["schedules"].append(_named(name | {"seed": setup.seed}, _figures(done)))
        if setup.interference:
            parts["interference"].append(_named(name, _interference_columns(done)))
        found.waits[scheduler, placement] = np.sort(done.wait)
    found.tables = {name: _joined(tables) for name, tables in parts.items() if tables}
    found.tables["job_sizes"] = _sizes(setup.jobs)
    return found


def _named(name: Table, columns: Table) -> Table:
    count = len(next(iter(columns.values())))
    return {key: np.full(count, value) for key, value in name.items()} | columns


def _joined(tables: list[Table]) -> Table:
    return {key: np.concatenate([table[key] for table in tables]) for key in tables[0]}


def _job_columns(done: Schedule) -> Table:
    jobs = done.jobs
    return {
        "job": jobs.number, "submit": jobs.submit, "start": done.start, "wait": done.wait, "run": jobs.run,
        "estimate": jobs.estimate, "processors": jobs.processors, "nodes": jobs.nodes,
        "first_node": np.array([one[0] for one in done.used]), "last_node": np.array([one[-1] for one in done.used]),
        "bounded_slowdown": done.bounded_slowdown,
    }  # fmt: skip


def _figures(done: Schedule) -> Table:
    row = {
        "jobs": len(done.jobs), "makespan": done.makespan, "utilisation": done.utilisation,
        "mean_wait": done.wait.mean(), "median_wait": np.median(done.wait), "longest_wait": done.wait.max(),
        "mean_bounded_slowdown": done.bounded_slowdown.mean(),
    }  # fmt: skip
    return {key: np.array([value]) for key, value in row.items()}


def _sizes(jobs: Jobs) -> Table:
    parts = []
    for axis, size in (("nodes", jobs.nodes), ("processors", jobs.processors)):
        shares = size_shares(size, jobs.run)
        parts.append(_named({"axis": axis}, {"size": shares.size, "jobs": shares.jobs, "hours": shares.hours}))
    return _joined(parts)


def busiest_instant(done: Schedule) -> float:
    """Return the first start after which most nodes run jobs."""
    edges = np.concatenate([done.start, done.end])
    change = np.concatenate([done.jobs.nodes, -done.jobs.nodes])
    order = np.lexsort((change, edges))  # at one instant jobs end before jobs start
    return float(edges[order][np.argmax(np.cumsum(change[order]))])


def _interference_columns(done: Schedule) -> Table:
    at = busiest_instant(done)
    running = np.flatnonzero((done.start <= at) & (at < done.end))
    nodes = done.jobs.nodes[running]
    pairs = int((nodes * (nodes - 1)).sum())
    if pairs > MAX_PAIRS:
        raise JobsError(f"interference: at most {MAX_PAIRS} pairs of ranks are counted, not {pairs}; take fewer nodes")
    found = interference(done.dims, [done.used[job] for job in running])
    columns: Table = {"instant": np.full(len(running), at), "job": done.jobs.number[running], "nodes": nodes}
    for key in ("mean_hops", "links", "shared", "own_max", "total_max", "slowdown", "foreign"):
        columns[key] = np.array([getattr(one, key) for one in found])
    return columns


def write_jobs(found: JobsReport, folder: Path, *, plots: bool = False) -> None:
    """Write all tables (CSV and Parquet), ``metadata.json``, of a drawn log ``log.swf``, and pictures; all or nothing.

    Raises
    ------
    ResultError
        The folder cannot be written.
    """
    setup = found.setup
    with staged(folder) as scratch:
        write_tables(scratch, found.tables)
        if setup.drawn:
            (scratch / "log.swf").write_text(log_text(setup.log), encoding="utf-8")
        if plots:
            from hopforge.sim.jobs.pictures import draw_jobs  # noqa: PLC0415 - matplotlib is slow to import

            draw_jobs(found, scratch)
        write_metadata(scratch, _metadata(setup))


def _metadata(setup: JobsSetup) -> dict[str, Any]:
    machine, log = setup.machine, setup.log
    return {
        **command_facts(), "seed": setup.seed, "versions": {"python": platform.python_version(), **package_versions()},
        "program_digest": program_digest(),
        "machine": {"dims": list(machine.dims), "nodes": machine.nodes, "ppn": machine.ppn,
                    "from_header": machine.from_header},
        "schedulers": list(setup.schedulers), "placements": list(setup.placements), "groups": list(setup.groups),
        "log": {"name": log.name, "drawn": setup.drawn, "lines": len(log.records), "jobs": len(setup.jobs),
                "skipped": dict(setup.jobs.skipped), "header": dict(log.header)},
    }  # fmt: skip

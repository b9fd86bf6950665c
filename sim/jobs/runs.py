"""What `hopforge jobs` computes: a log on a machine, by schedulers and placements, as tables, pictures and metadata.

Definition: docs/definitions/jobs.md.
"""

import math
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.output.program_digest import program_digest
from hopforge.model.output.results import command_facts, package_versions, staged, write_metadata, write_tables
from hopforge.model.workload.job_log import JobLog, log_text
from hopforge.model.workload.jobs import Jobs, size_shares, usable_jobs
from hopforge.sim.jobs.interference import interference
from hopforge.sim.jobs.space_sharing import Schedule, schedule

__all__ = [
    "JobsError",
    "JobsReport",
    "JobsSetup",
    "Machine",
    "check_nodes",
    "machine_of",
    "prepare_jobs",
    "run_jobs",
    "write_jobs",
]

Table = dict[str, Any]

MAX_NODES = 1 << 20
#: most ordered pairs of ranks of one instant whose packets are counted
MAX_PAIRS = 10**9


class JobsError(UserError, ValueError):
    """A log, a machine or an option that does not fit."""


@dataclass(frozen=True)
class Machine:
    """A machine.

    Attributes
    ----------
    dims : tuple of int
        Nodes in each dimension.
    ppn : int
        Processors of a node.
    from_header : bool
        Both are those of the log's header.
    """

    dims: tuple[int, ...]
    ppn: int
    from_header: bool = False

    @property
    def nodes(self) -> int:
        """Nodes in all."""
        return math.prod(self.dims)


@dataclass(frozen=True, eq=False)
class JobsSetup:
    """What is asked for.

    Attributes
    ----------
    log : JobLog
        The log.
    drawn : bool
        It is drawn, not read.
    machine : Machine
        The machine.
    jobs : Jobs
        Those that run; at least one.
    schedulers, placements : sequence of str
        Every pair is run.
    seed : int
        Of all draws.
    interference : bool
        Count the links that jobs share.
    """

    log: JobLog
    drawn: bool
    machine: Machine
    jobs: Jobs
    schedulers: Sequence[str]
    placements: Sequence[str]
    seed: int
    interference: bool


@dataclass(eq=False)
class JobsReport:
    """What was found; tables are those of docs/definitions/columns.md.

    Attributes
    ----------
    setup : JobsSetup
        What was asked.
    tables : dict of str to table
        Name → columns.
    waits : dict
        (scheduler, placement) → float64[job], waits in seconds, ascending.
    """

    setup: JobsSetup
    tables: dict[str, Table] = field(default_factory=dict)
    waits: dict[tuple[str, str], NDArray[np.float64]] = field(default_factory=dict)


def machine_of(log: JobLog, dims: Sequence[int] | None, ppn: int | None) -> Machine:
    """Return the machine that options name, else the one of the header (``MaxNodes``, ``MaxProcs``).

    Raises
    ------
    JobsError
        Neither names one, the header is not in whole numbers, or it has too many nodes.
    """
    if dims is not None:
        found = Machine(tuple(dims), ppn or 1)
    else:
        nodes = _header_number(log, "MaxNodes")
        if nodes is None:
            raise JobsError(f"{log.name}: its header has no MaxNodes; name the machine (--nodes or --dims)")
        processors = _header_number(log, "MaxProcs") or nodes
        found = Machine((nodes,), ppn or -(-processors // nodes), from_header=True)
    check_nodes(found.nodes)
    return found


def check_nodes(nodes: int) -> None:
    """Refuse a machine of too many nodes.

    Raises
    ------
    JobsError
        There are more than `MAX_NODES`.
    """
    if nodes > MAX_NODES:
        raise JobsError(f"a machine must have at most {MAX_NODES} nodes, not {nodes}")


def _header_number(log: JobLog, label: str) -> int | None:
    """Return the first value of a label; some logs write remarks behind the number."""
    values = log.header.get(label)
    if not values:
        return None
    word = (values[0].split() or [""])[0]
    if not (word.isascii() and word.isdigit() and len(word) < 16 and int(word) > 0):
        shown = values[0][:40]
        raise JobsError(f"{log.name}: {label} of its header must be a whole number from 1, not {shown!r}")
    return int(word)


def prepare_jobs(log: JobLog, machine: Machine, **options: Any) -> JobsSetup:
    """Choose the jobs of a log that run.

    Raises
    ------
    JobsError
        None is left.
    """
    jobs = usable_jobs(log, ppn=machine.ppn, machine_nodes=machine.nodes)
    if not len(jobs):
        why = ", ".join(f"{count} {reason}" for reason, count in jobs.skipped.items())
        raise JobsError(f"{log.name}: no job to run in {len(log.records)} lines{f' (skipped: {why})' if why else ''}")
    return JobsSetup(log=log, machine=machine, jobs=jobs, **options)


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
        "schedulers": list(setup.schedulers), "placements": list(setup.placements),
        "log": {"name": log.name, "drawn": setup.drawn, "lines": len(log.records), "jobs": len(setup.jobs),
                "skipped": dict(setup.jobs.skipped), "header": dict(log.header)},
    }  # fmt: skip

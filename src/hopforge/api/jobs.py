"""Jobs that share a machine: what `hopforge jobs` runs."""

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hopforge.api.errors import a_number, number_within, several, yes_or_no
from hopforge.api.progress import Progress, shown
from hopforge.api.result import Result, file_call
from hopforge.model.seeds import MOST_SEED
from hopforge.model.workload.job_log import JobLog, read_log
from hopforge.model.workload.lublin import KINDS, draw_log
from hopforge.sim.jobs.placement import PLACEMENTS
from hopforge.sim.jobs.prepared import JobsError, JobsReport, check_nodes, groups_of, machine_of, prepare_jobs
from hopforge.sim.jobs.runs import run_jobs, write_jobs
from hopforge.sim.jobs.space_sharing import SCHEDULERS
from hopforge.sim.jobs.tables import summary_rows

__all__ = ["jobs"]

_MOST_JOBS, _MOST_PPN = 1_000_000, 1 << 20


class _JobsFound:
    def __init__(self, found: JobsReport) -> None:
        self._found = found

    def values(self) -> dict[str, Any]:
        """Return every figure by scheduler, placement and column: ``easy.linear.mean_wait``."""
        table = self._found.tables["schedules"]
        names = list(zip(table["scheduler"].tolist(), table["placement"].tolist(), strict=True))
        return {
            f"{scheduler}.{placement}.{column}": values[row].item()
            for row, (scheduler, placement) in enumerate(names) for column, values in table.items()
            if column not in ("scheduler", "placement")
        }  # fmt: skip

    def rows(self) -> list[tuple[str, str]]:
        """Say what the log and the machine are."""
        return summary_rows(self._found)

    def write(self, folder: Path, *, plots: bool = False) -> None:
        """Write tables, metadata, a drawn log, and pictures."""
        write_jobs(self._found, folder, plots=plots)


def jobs(
    log: str | os.PathLike[str] | None = None, *, dims: int | Sequence[int] | None = None, ppn: int | None = None,
    schedulers: Sequence[str] = ("fcfs", "easy"), placements: Sequence[str] = ("linear",),
    groups: Sequence[int] = (), generate: str | None = None, count: int = 1000, interference: bool = False,
    seed: int = 1, progress: Progress = True,
) -> Result:
    """Run the jobs of a log on a machine that they share, as ``hopforge jobs``.

    Parameters
    ----------
    log : str or Path, optional
        In the Standard Workload Format (``.swf``, ``.swf.gz``).
    dims : int or sequence of int, optional
        Nodes of the machine, or nodes in each dimension; None: as the header of the log says.
    ppn : int, optional
        Processors of a node; None: 1, or as the header says.
    schedulers : sequence of str
        fcfs, easy.
    placements : sequence of str
        linear, contiguous, block, random, group, subtree.
    groups : sequence of int
        Nodes of a group or subtree, for several levels.
    generate : str, optional
        Draw the log instead: all, batch, interactive or typed.
    count : int
        Jobs of a drawn log.
    interference : bool
        Count the links of a torus that jobs share at the busiest instant.
    seed : int
        Of random placement and of a drawn log.
    progress : bool or callable
        A bar on a terminal and in Jupyter, or a function that is called with (done, in all).

    Returns
    -------
    Result
        `table` has a row for each scheduler and placement, ``tables["jobs"]`` one for each of their jobs.

    Raises
    ------
    UserError
        A log, a machine or a value that is no good.
    """
    ppn, count = number_within("ppn", ppn, 1, _MOST_PPN), number_within("count", count, 1, _MOST_JOBS)
    seed, interference = number_within("seed", seed, 0, MOST_SEED), yes_or_no("interference", interference)
    if seed is None or count is None:
        raise TypeError(f"{'seed' if seed is None else 'count'} must be a whole number, not None")
    groups = tuple(number_within("groups", each, 1) for each in several("groups", groups))
    if not isinstance(schedulers, str):
        schedulers = several("schedulers", schedulers)
    if not isinstance(placements, str):
        placements = several("placements", placements)
    sizes = _sizes(dims)
    options = {
        "dims": sizes[0] if sizes and len(sizes) == 1 else sizes, "ppn": ppn,
        "schedulers": schedulers if tuple(schedulers) != ("fcfs", "easy") else None,
        "placements": placements if tuple(placements) != ("linear",) else None, "groups": groups or None,
        "generate": generate, "count": count if count != 1000 else None, "interference": interference or None,
        "seed": seed if seed != 1 else None,
    }  # fmt: skip
    call = file_call("jobs", log, **options)
    with call.named():
        _check_names("schedulers", schedulers, SCHEDULERS)
        _check_names("placements", placements, PLACEMENTS)
        if sizes is not None and (not sizes or min(sizes) < 1):
            raise JobsError(f"dims must be numbers from 1, not {dims}")
        read = _log(log, generate, count, sizes, ppn, seed)
        machine = machine_of(read, sizes, ppn)
        setup = prepare_jobs(
            read, machine, drawn=log is None, schedulers=tuple(dict.fromkeys(schedulers)),
            placements=tuple(dict.fromkeys(placements)), seed=seed, interference=interference,
            groups=groups_of(machine, sorted(groups), placements),
        )  # fmt: skip
        with shown(progress, "jobs") as advance:
            found = run_jobs(setup, advance)
    return Result(call, _JobsFound(found), tables=("schedules",))


def _check_names(what: str, given: Sequence[str], known: Iterable[str]) -> None:
    names = list(known)
    if isinstance(given, str) or not given or not set(given) <= set(names):
        shown_names = given if isinstance(given, str) else list(given)
        raise JobsError(f"{what} must be some of {', '.join(names)}, not {shown_names!r}")


def _sizes(dims: int | Sequence[int] | None) -> tuple[int, ...] | None:
    if dims is None:
        return None
    try:
        return tuple(a_number("dims", each, int) for each in (dims if isinstance(dims, Iterable) else (dims,)))
    except TypeError as error:
        raise TypeError(f"dims must be whole numbers as (8, 8, 4), not {dims!r}") from error


def _log(
    log: str | os.PathLike[str] | None, generate: str | None, count: int, dims: tuple[int, ...] | None,
    ppn: int | None, seed: int,
) -> JobLog:  # fmt: skip
    if (log is None) == (generate is None):
        raise JobsError("name either a log or generate")
    if log is not None:
        try:
            return read_log(Path(log))
        except OSError as error:
            raise JobsError(f"{log}: cannot read the log: {error.strerror or error}") from error
    if generate not in KINDS:
        raise JobsError(f"generate must be one of {', '.join(KINDS)}, not {generate!r}")
    if dims is None:
        raise JobsError("generate needs a machine: dims")
    check_nodes(math.prod(dims))
    try:
        return draw_log(generate, count, math.prod(dims) * (ppn or 1), np.random.default_rng(seed))
    except ValueError as error:
        raise JobsError(str(error)) from error

"""What `hopforge jobs` is asked for: a log, a machine, the jobs that run on it.

Definition: docs/definitions/jobs.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.workload.job_log import JobLog
from hopforge.model.workload.jobs import Jobs, usable_jobs
from hopforge.sim.jobs.placement import GROUPED, group_problem, lines_of

__all__ = [
    "JobsError", "JobsReport", "JobsSetup", "Machine", "check_nodes", "groups_of", "machine_of", "prepare_jobs",
]  # fmt: skip

Table = dict[str, Any]

MAX_NODES = 1 << 20


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
    groups : sequence of int
        Nodes of the nested groups of the machine, the smallest first.
    """

    log: JobLog
    drawn: bool
    machine: Machine
    jobs: Jobs
    schedulers: Sequence[str]
    placements: Sequence[str]
    seed: int
    interference: bool
    groups: Sequence[int] = ()


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


def groups_of(machine: Machine, given: Sequence[int] | None, placements: Sequence[str]) -> tuple[int, ...]:
    """Return the nested groups of a machine: those given, else its lines and planes, if a placement asks for them.

    Raises
    ------
    JobsError
        They do not divide each other and the machine, or none are needed or known.
    """
    asking = [name for name in placements if name in GROUPED]
    if not asking:
        if given:
            raise JobsError(f"--group is for --placement {' and '.join(GROUPED)}")
        return ()
    groups = tuple(given) if given else lines_of(machine.dims)
    if not groups:
        raise JobsError(f"--placement {asking[0]} needs --group, or a machine of several dimensions (--dims)")
    if problem := group_problem(groups, machine.nodes):
        raise JobsError(f"--group: {problem}")
    return groups


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

"""Jobs of a log that a machine can run, and how large they are.

Definition: docs/definitions/jobs.md.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.workload.job_log import JobLog

__all__ = ["REASONS", "Jobs", "SizeShares", "size_shares", "usable_jobs"]

REASONS = ("partial", "size", "run", "submit", "large")
"""Why a line is skipped; the first that holds counts."""

_PARTIAL = (2, 3, 4)
"""Values of field 11: a part of a job that another line sums up."""


@dataclass(frozen=True, eq=False)
class Jobs:
    """Jobs in the order of their arrival.

    Attributes
    ----------
    number : ndarray
        int64[job], what the log calls it.
    submit, run, estimate : ndarray
        float64[job] in seconds; ``estimate >= run``, so that no job is killed.
    processors, nodes : ndarray
        int64[job].
    skipped : dict of str to int
        Reason (`REASONS`) → lines that are no such job.
    """

    number: NDArray[np.int64]
    submit: NDArray[np.float64]
    run: NDArray[np.float64]
    estimate: NDArray[np.float64]
    processors: NDArray[np.int64]
    nodes: NDArray[np.int64]
    skipped: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.number)


def usable_jobs(log: JobLog, *, ppn: int = 1, machine_nodes: int | None = None) -> Jobs:
    r"""Return the jobs of a log, sorted by submit time; equal times stay in the order of the log.

    Parameters
    ----------
    log : JobLog
        The log.
    ppn : int
        Processors of a node.
    machine_nodes : int, optional
        Nodes of the machine; larger jobs are skipped.

    Raises
    ------
    ValueError
        `ppn` is less than 1.

    Examples
    --------
    >>> from hopforge.model.workload.job_log import parse_log
    >>> jobs = usable_jobs(parse_log("1 9 0 5 3\n2 4 0 5 2 -1 -1 -1 7\n3 0 0 -1 2"), ppn=2)
    >>> jobs.number.tolist(), jobs.nodes.tolist(), jobs.estimate.tolist(), jobs.skipped
    ([2, 1], [1, 2], [7.0, 5.0], {'run': 1})
    """
    if ppn < 1:
        raise ValueError(f"ppn must be at least 1, not {ppn}")
    allocated = log.field("processors")
    processors = np.where(allocated > 0, allocated, log.field("requested_processors"))
    nodes = np.ceil(processors / ppn)
    submit, run, asked = log.field("submit"), log.field("run"), log.field("requested_time")
    large = np.zeros(len(nodes), bool) if machine_nodes is None else nodes > machine_nodes
    wrong = (np.isin(log.field("status"), _PARTIAL), processors <= 0, run < 0, submit < 0, large)
    first = np.select(wrong, range(len(REASONS)), default=-1)
    counts = Counter(first[first >= 0].tolist())
    good = np.flatnonzero(first < 0)
    order = good[np.argsort(submit[good], kind="stable")]
    estimate = np.maximum(np.where(asked > 0, asked, run), run)
    return Jobs(
        log.field("job")[order].astype(np.int64), submit[order], run[order], estimate[order],
        processors[order].astype(np.int64), nodes[order].astype(np.int64),
        {reason: counts[index] for index, reason in enumerate(REASONS) if counts[index]},
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class SizeShares:
    """Two cumulative distributions of job sizes (figure 2.13 of the thesis).

    Attributes
    ----------
    size : ndarray
        int64[point], sizes that occur, ascending.
    jobs : ndarray
        float64[point], share of the jobs of at most this size.
    hours : ndarray
        float64[point], share of size times run time; NaN if all run times are 0.
    """

    size: NDArray[np.int64]
    jobs: NDArray[np.float64]
    hours: NDArray[np.float64]


def size_shares(size: NDArray[np.int64], run: NDArray[np.float64]) -> SizeShares:
    """Return the distributions of sizes, in nodes or in processors.

    Parameters
    ----------
    size : ndarray
        int64[job].
    run : ndarray
        float64[job] in seconds.
    """
    found, which, count = np.unique(size, return_inverse=True, return_counts=True)
    hours = np.bincount(which, weights=size * run, minlength=len(found))
    total = hours.sum()
    share = np.cumsum(hours) / total if total > 0 else np.full(len(found), np.nan)
    return SizeShares(found, np.cumsum(count) / max(len(size), 1), share)

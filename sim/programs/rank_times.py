"""What every run of an MPI program tells, whoever ran it: the whole program, and each of its ranks."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from hopforge.model.workload.program import Program

#: messages that are counted together: more would need memory that is new
_CHUNK = 1 << 16


@dataclass(frozen=True)
class ProgramMeasurement:
    """A program that has run; times in seconds.

    Attributes
    ----------
    engine, backend : str
        What ran it: flow or packet; of flow, embedded or simgrid.
    makespan_s : float
        When the last rank was at its end.
    """

    program: str
    engine: str
    backend: str
    seed: int
    ranks: int
    makespan_s: float


def makespan(finish: Any) -> float:
    """Return when the last rank was at its end; 0 without ranks."""
    return float(np.max(finish, initial=0.0))


def mean_share(times: Any, finish: Any) -> float:
    """Return the mean of `times`, float64[rank], as a share of the makespan."""
    whole = makespan(finish)
    return float(np.mean(times)) / whole if whole > 0 else 0.0


def rank_table(program: Program, host: Any, *, finish: Any, waiting: Any, computing: Any) -> pd.DataFrame:
    """Return a row for each rank.

    Parameters
    ----------
    program : Program
        Its messages.
    host : ndarray, int[rank]
        Where the ranks run.
    finish, waiting, computing : ndarray, float64[rank]
        Seconds: end of the rank; how long it waited for messages; how long it computed.

    Returns
    -------
    DataFrame
        rank, host, finish_s, waiting_s, compute_s, sent_messages, sent_bytes.
    """
    messages, size = np.zeros(program.ranks, np.int64), np.zeros(program.ranks)
    for start in range(0, program.messages, _CHUNK):
        source, sent = program.source[start : start + _CHUNK], program.size_bytes[start : start + _CHUNK]
        messages += np.bincount(source, minlength=program.ranks)
        size += np.bincount(source, sent, program.ranks)
    return pd.DataFrame({
        "rank": np.arange(program.ranks), "host": host,
        "finish_s": finish, "waiting_s": waiting, "compute_s": computing,
        "sent_messages": messages, "sent_bytes": size.astype(np.int64),
    })

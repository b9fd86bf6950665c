"""Jobs drawn from the model of Lublin and Feitelson: sizes, run times, arrivals over the day.

Source: Lublin, Feitelson, "The workload on parallel supercomputers" (JPDC 63, 2003); constants and the steps of the
draw are those of the authors' program m_lublin99.c. Definition: docs/definitions/jobs.md.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hopforge.model.workload.job_log import FIELDS, JobLog

__all__ = [
    "KINDS",
    "LUBLIN",
    "LublinParameters",
    "bucket_weights",
    "draw_log",
    "draw_runs",
    "draw_sizes",
    "draw_submits",
]

Floats = NDArray[np.float64]

BUCKETS = 48
"""Half hours of a day."""
_BUCKET_S = 1800.0
_FIRST_BUCKET = 11
_LONGEST_LN_S = 12.0
_LONGEST_LN_GAP_S = 13.0


@dataclass(frozen=True, kw_only=True)
class LublinParameters:
    """Constants of one kind of jobs; the names are those of the authors.

    Attributes
    ----------
    serial, pow2 : float
        Probability of one processor, and of a power of two.
    ulow, umed, uhi, uprob : float
        Of log2 of the size: uniform from `ulow` to `umed` with `uprob`, else to `uhi`.
    a1, b1, a2, b2, pa, pb : float
        Of ln of the run time in seconds: gamma (shape, scale) 1 with probability `pa` size + `pb`, else 2.
    aarr, barr, arar : float
        Of ln of the gap: gamma of shape `aarr` `arar` and scale `barr`.
    anum, bnum : float
        Of the arrivals over the day: gamma in half hours.
    """

    serial: float
    pow2: float
    ulow: float
    umed: float
    uhi: float
    uprob: float
    a1: float
    b1: float
    a2: float
    b2: float
    pa: float
    pb: float
    aarr: float
    barr: float
    anum: float
    bnum: float
    arar: float

    def for_processors(self, processors: int) -> "LublinParameters":
        """Return the same for a machine: `uhi` is log2 of its processors, `umed` 2.5 less, as the authors advise.

        Raises
        ------
        ValueError
            The machine is so small that `umed` would be below `ulow`.
        """
        uhi = math.log2(max(processors, 1))
        least = math.ceil(2 ** (self.ulow + 2.5))
        if processors < least:
            raise ValueError(f"the model takes machines of at least {least} processors, not {processors}")
        return replace(self, uhi=uhi, umed=uhi - 2.5)


LUBLIN = {
    "all": LublinParameters(
        serial=0.244, pow2=0.576, ulow=0.8, umed=4.5, uhi=7.0, uprob=0.86, a1=4.2, b1=0.94, a2=312.0, b2=0.03,
        pa=-0.0054, pb=0.78, aarr=10.2303, barr=0.4871, anum=8.1737, bnum=3.9631, arar=1.0225,
    ),
    "batch": LublinParameters(
        serial=0.2927, pow2=0.6686, ulow=1.2, umed=5.0, uhi=7.0, uprob=0.875, a1=6.57, b1=0.823, a2=639.1, b2=0.0156,
        pa=-0.003, pb=0.6986, aarr=6.0415, barr=0.8531, anum=6.1271, bnum=5.2740, arar=1.0519,
    ),
    "interactive": LublinParameters(
        serial=0.1541, pow2=0.625, ulow=1.0, umed=3.0, uhi=5.5, uprob=0.705, a1=3.8351, b1=0.6605, a2=7.073, b2=0.6856,
        pa=-0.0118, pb=0.9156, aarr=6.5510, barr=0.6621, anum=8.9186, bnum=3.6680, arar=0.9797,
    ),
}  # fmt: skip
"""Kind of jobs → constants for a machine of 128 processors (interactive jobs: up to 45)."""

KINDS = (*LUBLIN, "typed")
"""What `draw_log` takes; typed: batch and interactive jobs together."""


def draw_sizes(parameters: LublinParameters, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw processors of `count` jobs, int64[job]."""
    kind, half = generator.random(count), generator.random(count)
    low = half <= parameters.uprob
    start = np.where(low, parameters.ulow, parameters.umed)
    length = np.where(low, parameters.umed - parameters.ulow, parameters.uhi - parameters.umed)
    power = start + length * generator.random(count)
    power = np.where(kind <= parameters.serial + parameters.pow2, np.floor(power + 0.5), power)
    size = np.floor(2.0**power + 0.5)
    return np.where(kind <= parameters.serial, 1, size).astype(np.int64)


def draw_runs(parameters: LublinParameters, size: NDArray[np.int64], generator: np.random.Generator) -> Floats:
    """Draw ln of the run times in seconds, float64[job]; what is above 12 is drawn again."""
    share = np.clip(parameters.pa * size + parameters.pb, 0.0, 1.0)
    found = np.full(len(size), np.inf)
    while len(left := np.flatnonzero(found > _LONGEST_LN_S)):
        first = generator.random(len(left)) <= share[left]
        shape = np.where(first, parameters.a1, parameters.a2)
        found[left] = generator.gamma(shape, np.where(first, parameters.b1, parameters.b2))
    return found


def bucket_weights(parameters: LublinParameters) -> Floats:
    """Return how many times the mean rate jobs arrive in each half hour of the day, float64[48]; their mean is 1."""
    from scipy.special import gammainc  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

    bucket = np.arange(_FIRST_BUCKET, _FIRST_BUCKET + BUCKETS)
    edge = (np.append(bucket, bucket[-1] + 1) - 0.5) / parameters.bnum
    found = np.empty(BUCKETS)
    found[(bucket - 1) % BUCKETS] = np.diff(gammainc(parameters.anum, edge))
    return found / found.mean()


def draw_submits(parameters: LublinParameters, count: int, generator: np.random.Generator) -> Floats:
    """Draw submit times in seconds from midnight, float64[job], ascending.

    A gap in points passes a half hour of weight w at w points a second.
    """
    gap = np.full(count, np.inf)
    while len(left := np.flatnonzero(gap > _LONGEST_LN_GAP_S)):
        gap[left] = generator.gamma(parameters.aarr * parameters.arar, parameters.barr, len(left))
    day = BUCKETS * _BUCKET_S
    days, points = np.divmod(np.cumsum(np.exp(gap)), day)
    passed = np.append(0.0, np.cumsum(bucket_weights(parameters))) * _BUCKET_S
    return days * day + np.interp(points, passed, np.arange(BUCKETS + 1) * _BUCKET_S)


def draw_log(kind: str, count: int, processors: int, generator: np.random.Generator) -> JobLog:
    """Draw a log of completed jobs; times are whole seconds, rounded down.

    Parameters
    ----------
    kind : str
        A name of `KINDS`. With ``typed`` queue 0 holds interactive jobs and queue 1 batch jobs, as everywhere here.
    count : int
        Jobs.
    processors : int
        Of the machine. Unless it is a power of two, some jobs are larger than it.
    generator : numpy.random.Generator
        Draws.

    Raises
    ------
    ValueError
        An unknown kind, no jobs, or a machine that is too small.
    """
    if kind not in KINDS:
        raise ValueError(f"kind of jobs must be one of {', '.join(KINDS)}, not {kind}")
    if count < 1:
        raise ValueError(f"count of jobs must be at least 1, not {count}")
    kinds = ("batch", "interactive") if kind == "typed" else (kind,)
    records = np.concatenate([_draw(one, count, processors, generator) for one in kinds])
    submit = records[:, FIELDS.index("submit")]
    records = records[np.argsort(submit, kind="stable")[:count]]
    records[:, FIELDS.index("job")] = np.arange(1, count + 1)
    header = {
        "Version": ["2.2"], "Computer": [f"Lublin-Feitelson {kind}"], "MaxProcs": [str(processors)],
        "MaxJobs": [str(count)],
    }  # fmt: skip
    return JobLog(f"lublin-{kind}", header, records)


def _draw(kind: str, count: int, processors: int, generator: np.random.Generator) -> Floats:
    """Return records of one kind, float64[job, field]."""
    parameters = LUBLIN[kind].for_processors(processors)
    size = draw_sizes(parameters, count, generator)
    values = {
        "run": np.floor(np.exp(draw_runs(parameters, size, generator))), "processors": size,
        "requested_processors": size, "submit": np.floor(draw_submits(parameters, count, generator)), "status": 1.0,
    }  # fmt: skip
    if kind != "all":
        values["queue"] = float(kind == "batch")
    records = np.full((count, len(FIELDS)), -1.0)
    for name, value in values.items():
        records[:, FIELDS.index(name)] = value
    return records

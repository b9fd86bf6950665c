"""What a run's samples say: the end of its start-up, the mean with its interval, percentiles."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.kernel.histogram import EXACT_BINS, bin_ends

#: batches of the interval; they are made of whole samples
BATCHES = 20
#: Student's t of 97.5 % with 1, 2, … BATCHES − 1 degrees of freedom
T_QUANTILES = (
    12.706204736174694, 4.302652729749462, 3.1824463052837078, 2.7764451051977934, 2.5705818356363146,
    2.4469118511449786, 2.364624251592784, 2.306004135204166, 2.262157162798205, 2.228138851986274, 2.200985160091639,
    2.1788128296672284, 2.1603686564627913, 2.144786687917804, 2.131449545559776, 2.1199052992212546,
    2.1098155778333156, 2.1009220402410382, 2.0930240544083087,
)  # fmt: skip


def mser5(means: list[float]) -> int:
    """Find the truncation point (in samples) that minimises the squared standard error of what remains.

    White 1997, batches of 5 samples merged.

    Examples
    --------
    >>> mser5([9.0] * 5 + [1.0, 1.1] * 20)
    5
    """
    values = np.asarray(means, float)
    size = 5 if len(values) >= 50 else 1
    batches = values[: len(values) // size * size].reshape(-1, size).mean(axis=1)
    best, best_score = 0, np.inf
    for d in range(max(len(batches) - 2, 1)):
        rest = batches[d:]
        score = float(rest.var() / len(rest))
        if score < best_score:
            best, best_score = d, score
    return best * size


def batch_interval(samples: list[tuple[int, int]]) -> tuple[float, float]:
    """Mean latency and the half width of its 95 % interval by batch means.

    Parameters
    ----------
    samples : list of (packets, sum of latencies)
        Consecutive samples; they are merged into 20 batches of equal length, the oldest remainder is left out of the
        interval only.

    Returns
    -------
    (float, float)
        nan without packets; the half width is inf where a batch has none.
    """
    packets = np.array([p for p, _ in samples], float)
    totals = np.array([s for _, s in samples], float)
    if packets.sum() == 0:
        return math.nan, math.nan
    mean = float(totals.sum() / packets.sum())
    count = min(BATCHES, len(samples))
    size = len(samples) // count
    p = packets[len(samples) - count * size :].reshape(count, size).sum(axis=1)
    s = totals[len(samples) - count * size :].reshape(count, size).sum(axis=1)
    if count < 2 or (p == 0).any():
        return mean, float("inf")
    deviations = (s - mean * p) / p.mean()
    half = float(T_QUANTILES[count - 2] * np.sqrt((deviations**2).sum() / (count - 1) / count))
    return mean, half


def percentile(histogram: NDArray[np.int64], share: float, largest: int, bin_cycles: int) -> float:
    """Smallest latency that `share` of the packets do not exceed; nan without packets.

    In bins of several cycles, and from 65 536 bins on (`model.kernel.histogram`), the middle of the bin.

    Examples
    --------
    >>> percentile(np.array([0, 1, 2, 1]), 0.5, 3, bin_cycles=1)
    2.0
    """
    total = int(histogram.sum())
    if total == 0:
        return math.nan
    k = int(np.searchsorted(np.cumsum(histogram), share * total))
    middle = float(bin_middles(k, bin_cycles))
    return middle if k < EXACT_BINS else min(middle, float(largest))


def bin_middles(bins: ArrayLike, bin_cycles: int) -> NDArray[np.float64]:
    """Return the middle of bins of a histogram of latencies, in cycles."""
    least, largest = bin_ends(bins, bin_cycles)
    return (least + largest) / 2


def mean_of(total: float, count: int) -> float:
    """Return total over count; nan for nothing."""
    return total / count if count else math.nan


def largest_of(value: int, count: int) -> float:
    """Return the largest of `count` whole numbers; nan without any.

    Examples
    --------
    >>> largest_of(7, 2), largest_of(0, 0)
    (7, nan)
    """
    return value if count else math.nan


def figure(value: Any, form: str = ".0f") -> str:
    """Return a number as people read it; a dash where there is none."""
    return "–" if math.isnan(value) else format(value, form)

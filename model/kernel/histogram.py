"""Bins of histograms of latencies: one for each value below 65 536, above it 128 in every power of two.

Percentiles are then exact below 65 536, and above it within 0.8 % (docs/definitions/measures.md).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.kernel.compile import inlined

__all__ = ["EXACT_BINS", "HISTOGRAM_BINS", "bin_ends", "histogram_bin"]

#: values that have a bin of their own
EXACT_BINS = 1 << 16
#: bits behind the first one that tell the bins above, and how far the smallest of these values is shifted for them
_BITS = 7
_FIRST_SHIFT = 16 - _BITS
#: of a histogram; the last bin ends with the largest int64
HISTOGRAM_BINS = EXACT_BINS + (63 - 16 << _BITS)


@inlined
def histogram_bin(value: int) -> int:
    """Return the bin of a value, which is not negative."""
    if value < EXACT_BINS:
        return value
    shift = _FIRST_SHIFT
    while value >> shift >= 2 << _BITS:
        shift += 1
    return EXACT_BINS + ((shift - _FIRST_SHIFT - 1) << _BITS) + (value >> shift)


def bin_ends(bins: ArrayLike, unit: int = 1) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the largest value of each bin, of values that were divided by `unit` before.

    Examples
    --------
    >>> [ends.tolist() for ends in bin_ends([7, 65536, 65537])]
    [[7.0, 65536.0, 66048.0], [7.0, 66047.0, 66559.0]]
    """
    number = np.asarray(bins, np.int64)
    power, place = np.divmod(np.maximum(number - EXACT_BINS, 0), 1 << _BITS)
    exact, shift = number < EXACT_BINS, power + _FIRST_SHIFT
    least = np.where(exact, number, ((1 << _BITS) + place).astype(np.float64) * 2.0**shift)
    width = np.where(exact, 1.0, 2.0**shift)
    return least * unit, (least + width) * unit - 1

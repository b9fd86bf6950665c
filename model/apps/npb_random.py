"""The NAS Parallel Benchmarks' random numbers: x ← a·x mod 2⁴⁶, a = 5¹³ (RNR-94-007, section 2.2)."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

MULTIPLIER = 5**13
SEED = 314159265
_MASK = (1 << 46) - 1
_BLOCK = 1 << 16


def advanced(seed: int, steps: int) -> int:
    """Return the number that comes `steps` after `seed`."""
    return pow(MULTIPLIER, steps, 1 << 46) * seed & _MASK


def random_blocks(seed: int, count: int) -> Iterator[NDArray[np.uint64]]:
    """Yield the `count` numbers after `seed` (46-bit integers) in blocks of at most 65 536."""
    powers = np.empty(min(_BLOCK, count), np.uint64)
    value = 1
    for index in range(len(powers)):
        value = value * MULTIPLIER & _MASK
        powers[index] = value
    while count > 0:
        block = powers[:count] * np.uint64(seed) & np.uint64(_MASK)  # products wrap at 2**64, a multiple of 2**46
        yield block
        seed = int(block[-1])
        count -= len(block)

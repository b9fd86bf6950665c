"""Draws from numpy's generators of random numbers in kernels: those that the generator itself would give.

numba has them, too, but compiles a dozen functions for them; these here call numpy's own, at their addresses.
"""

import ctypes
from typing import Any

import numpy as np
from numba import float64, int64, uint32, uint64

from hopforge.model.kernel.array_record import ArrayRecord
from hopforge.model.kernel.compile import inner
from hopforge.model.kernel.memory import function_at

_float_at = function_at(float64(int64))
_word_at = function_at(uint32(int64))


class Draws(ArrayRecord):
    """Addresses of a generator's state, and of numpy's functions that draw a float and 32 bits from it."""

    state: int
    next_float: int
    next_word: int

    def __init__(self, rng: np.random.Generator) -> None:
        found = rng.bit_generator.ctypes
        pointers = {"state": found.state, "next_float": found.next_double, "next_word": found.next_uint32}
        super().__init__(**{name: ctypes.cast(one, ctypes.c_void_p).value for name, one in pointers.items()})
        vars(self)["_generator"] = rng  # so that it lives as long


@inner
def draw_float(draws: Any) -> Any:
    """Draw as ``rng.random()``."""
    return _float_at(draws.next_float, draws.state)


@inner
def draw_below(draws: Any, bound: int) -> Any:
    """Draw as ``rng.integers(0, bound)``, 0 < bound < 2³² (Lemire, Fast random integer generation in an interval)."""
    if bound == 1:
        return int64(0)
    product = uint64(_word_at(draws.next_word, draws.state)) * uint64(bound)
    if product & uint64(0xFFFFFFFF) < uint64(bound):
        least = (uint64(1 << 32) - uint64(bound)) % uint64(bound)
        while product & uint64(0xFFFFFFFF) < least:
            product = uint64(_word_at(draws.next_word, draws.state)) * uint64(bound)
    return int64(product >> uint64(32))

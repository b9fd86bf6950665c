"""Draws in kernels are those of numpy's generator itself."""

import gc
from typing import Any

import numpy as np
import pytest

from hopforge.model.kernel.compile import kernel
from hopforge.model.kernel.numpy_draws import Draws, draw_below, draw_float

#: a bound that rejects a quarter of all words, the smallest, powers of two, and the largest
BOUNDS = (3 << 30, 1, 2, 3, 40, 64, 1 << 31, (1 << 32) - 1)


@kernel
def _draw(draws: Any, bound: int, floats: Any, numbers: Any) -> None:
    for index in range(floats.shape[0]):
        floats[index] = draw_float(draws)
        numbers[index] = draw_below(draws, bound)


@pytest.mark.parametrize("bound", BOUNDS)
def test_they_are_those_of_numpy_and_python_goes_on_with_them(bound: int) -> None:
    kept, other = np.random.default_rng(7), np.random.default_rng(7)
    floats, numbers = np.zeros(200), np.zeros(200, np.int64)
    _draw(Draws(kept), bound, floats, numbers)
    for drawn, number in zip(floats, numbers, strict=True):
        assert (drawn, number) == (other.random(), other.integers(0, bound))
    assert kept.random() == other.random()


def test_the_generator_lives_as_long_as_what_draws_from_it() -> None:
    draws, other = Draws(np.random.default_rng(3)), np.random.default_rng(3)
    gc.collect()
    floats, numbers = np.zeros(5), np.zeros(5, np.int64)
    _draw(draws, 10, floats, numbers)
    assert [(other.random(), other.integers(0, 10)) for _ in range(5)] == list(zip(floats, numbers, strict=True))

"""Functions that only kernels call are compiled once, whatever integers they are given."""

import numpy as np
import pytest

from hopforge.model.kernel.compile import PARTS, inner, kernel


@inner
def _shifted(value, by):  # type: ignore[no-untyped-def]
    return value << by


@kernel()
def _sum(small, large):  # type: ignore[no-untyped-def]
    return _shifted(small[0], 20) + _shifted(large[0], small[1]) + _shifted(3, large[1])


@pytest.mark.skipif(not PARTS, reason="another numba: it compiles a part for each type")
def test_a_part_is_compiled_once_for_integers_of_all_sizes_and_loses_no_bit() -> None:
    small, large = np.array([1 << 14, 2], np.int16), np.array([5, 4], np.int64)
    assert _sum(small, large) == (1 << 34) + 20 + 48
    assert len(_shifted.signatures) == 1

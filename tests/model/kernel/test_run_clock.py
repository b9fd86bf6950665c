"""The clock of runs stands still while numba compiles, and goes on when it has ended or failed."""

import time

import numba
import pytest

from hopforge.model.kernel.run_clock import run_seconds


def _spent(begin: tuple[float, float]) -> tuple[float, float]:
    """Return seconds of the run, and of the process, since `begin`."""
    return run_seconds() - begin[0], time.process_time() - begin[1]


def test_compiling_does_not_count() -> None:
    @numba.njit
    def inner(x):  # type: ignore[no-untyped-def]
        return sum([k * x for k in range(10)])

    @numba.njit
    def outer(x):  # type: ignore[no-untyped-def]
        return inner(x) + inner(2 * x)

    begin = run_seconds(), time.process_time()
    assert outer(1) == 135
    run, process = _spent(begin)
    assert 0 <= run < process / 4


def test_it_counts_before_and_after() -> None:
    @numba.njit
    def wrong(x):  # type: ignore[no-untyped-def]
        return x + no_such_name  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(numba.TypingError):
        wrong(1)
    begin = run_seconds(), time.process_time()
    while time.process_time() - begin[1] < 0.05:
        pass
    run, process = _spent(begin)
    assert run == pytest.approx(process, abs=0.01)

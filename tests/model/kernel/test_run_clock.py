"""The clock of runs stands still while numba compiles, and goes on when it has ended or failed."""

import threading
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


def test_other_threads_count_while_one_compiles() -> None:
    """A thread that works all the time that another one compiles, and several that compile at once."""
    worked, ended = [0.0], threading.Event()

    def work() -> None:
        while not ended.is_set():
            sum(range(10_000))
        worked[0] = time.thread_time()

    def compile_some() -> None:
        for k in range(3):

            @numba.njit
            def function(x, k=k):  # type: ignore[no-untyped-def]
                return sum([k * x for _ in range(10)])

            assert function(0) == 0

    begin = run_seconds(), time.process_time()
    threads = [threading.Thread(target=compile_some) for _ in range(2)]
    worker = threading.Thread(target=work)
    for thread in (worker, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    ended.set()
    worker.join()
    run, process = _spent(begin)
    assert worked[0] <= run < process
    assert run == pytest.approx(worked[0], abs=0.2 * (process - worked[0]) + 0.01)

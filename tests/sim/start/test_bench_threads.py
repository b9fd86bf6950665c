"""`hopforge bench net --threads`: the prediction by hand, rows, results of both, mistakes."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hopforge import cli
from hopforge.sim.start import bench_threads
from hopforge.sim.start.bench_net import grid_case
from hopforge.sim.start.bench_threads import barrier_ns, measure_threads, predicted_ns


def test_the_slowest_core_of_each_window_counts() -> None:
    times = np.array([[10, 20, 30, 40], [40, 30, 20, 10], [25, 25, 25, 25]])
    assert predicted_ns(times, 1, 0.0, 7.0) == 100 + 100 + 100 + 7
    assert predicted_ns(times, 2, 2.0, 7.0) == (70 + 2) + (70 + 2) + (50 + 2) + 7
    assert predicted_ns(times, 4, 5.0, 0.0) == (40 + 5) + (40 + 5) + (25 + 5)
    assert predicted_ns(times, 3, 0.0, 0.0) == 70 + 40 + 50  # parts 0; 1; 2 and 3


def test_a_part_that_something_else_kept_waiting_counts_as_usual() -> None:
    times = np.array([[10, 11], [10, 11], [10, 900], [12, 11], [10, 11]])
    assert predicted_ns(times, 2, 0.0, 0.0) == 11 + 11 + 11 + 12 + 11


def test_one_thread_waits_for_nobody() -> None:
    assert barrier_ns(1) == 0.0


def test_rows_of_both_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_threads, "_BARRIERS", 50)
    times = iter([(4.0, 4.0), (2.0, 4.4), (6.0, 5.0), (4.0, 5.0), (5.0, 5.0), (4.0, 5.4)])
    whole = bench_threads._timed

    def timed(run: object, cycles: int) -> object:
        found = next(times, None)
        one = whole(run, cycles)  # type: ignore[arg-type]
        return one if found is None else bench_threads._Time(*found)

    monkeypatch.setattr(bench_threads, "_timed", timed)
    (row,) = measure_threads([grid_case("mesh", 8, 2, 1, 60, 0)], 2, 3)
    assert row["same_results"] is True
    assert (row["wall_ratio"], row["wall_ratio_shortest"], row["wall_ratio_median"]) == (2.0, 2.0, 1.5)
    assert (row["cpu_ratio"], row["cpu_ratio_median"]) == (1.0, 1.08)
    assert row["one_ms_per_cycle"] == pytest.approx(4000 / 60)
    assert row["predicted_2"] > 0 and "predicted_16" not in row  # 8 parts at most
    with pytest.raises(ValueError, match="threads at least 2, not 1"):
        next(measure_threads([], 1))


def test_threads_go_with_no_other_simulator(tmp_path: Path) -> None:
    words = ["bench", "net", "--threads", "2", "--against", str(tmp_path)]
    result = CliRunner().invoke(cli.app, words)
    assert "--threads goes with neither --booksim nor --against" in result.output + str(result.exception)

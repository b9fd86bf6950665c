"""The stop watch of `hopforge bench`, and that every case does what it says."""

import pandas as pd
import pytest

from hopforge.sim.start import bench
from hopforge.sim.start.bench_results import write_bench


def test_rates_are_work_over_the_best_time(monkeypatch):
    clock = iter([0.0, 2.0**26 * 1e-9, 10.0, 14.0, 20.0, 22.0])  # yardstick: 1 ns a step; then 4 s and 2 s
    calls = []
    monkeypatch.setattr(bench, "_yardstick", calls.append)
    monkeypatch.setattr(bench, "_times", lambda run, n: [run() or next(clock) * -1 + next(clock) for _ in range(n)])
    case = bench.Case("thing", "lookup", 6_000_000, lambda: lambda: None)
    (first,) = bench.measure(iter([case]), 1)
    assert calls == [bench.YARDSTICK_STEPS]
    assert first["million_per_s"] == pytest.approx(1.5)
    assert first["per_yardstick_step"] == pytest.approx(1.5e6 * 1e-9)
    assert (first["best_s"], first["median_s"], first["worst_s"]) == (4, 4, 4)


def test_the_first_run_does_not_count():
    runs = []
    assert len(bench._times(lambda: runs.append(0), 3)) == 3
    assert len(runs) == 4


def test_every_case_runs_and_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "LOOKUPS", 1 << 12)
    monkeypatch.setattr(bench, "SLOW_LOOKUPS", 1 << 6)
    monkeypatch.setattr(bench, "BOUND_LOOKUPS", 1 << 12)
    monkeypatch.setattr(bench, "YARDSTICK_STEPS", 1 << 16)
    rows = list(bench.measure(bench.lookup_cases(), 1))
    assert len(rows) == 5 + 2 * 3
    assert all(row["million_per_s"] > 0 for row in rows)
    work = {row["case"]: row["work"] for row in rows}
    assert work["is.A.64: replay on 4x4x4"] == work["is.A.64: from file to counts"]
    write_bench(rows, tmp_path / "out", clock=bench.CLOCK)
    assert pd.read_csv(tmp_path / "out" / "bench.csv")["case"].tolist() == [row["case"] for row in rows]


def test_no_repetition_is_refused():
    with pytest.raises(ValueError, match="repetitions must be at least 1, not 0"):
        list(bench.measure(iter([]), 0))

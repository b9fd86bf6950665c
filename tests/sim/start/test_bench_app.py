"""`hopforge bench app`: what is timed, ratios of pairs, SimGrid or not, mistakes, files."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

from hopforge.model.errors import UserError
from hopforge.sim.start import bench_app
from hopforge.sim.start.bench_app import CASES, AppCase, chosen_cases, measure_app, trace_case
from hopforge.sim.start.bench_results import write_bench

SMALL = AppCase(
    "IS, class S, 8 ranks", "{kind: npb, benchmark: is, class: S, ranks: 8}", "{kind: torus, radices: [2, 2, 2]}",
    packet=True, packet_limit_s=60,
)  # fmt: skip


@pytest.mark.skipif(shutil.which("smpirun") is None, reason="SimGrid is not installed")
def test_both_run_the_same_program() -> None:
    (row,) = measure_app([SMALL], 1)
    assert row["deviation_percent"] == pytest.approx(0, abs=1e-4)
    assert row["simgrid_s"] > 0.01  # a process with a platform of its own
    assert row["whole_ratio"] < row["engine_ratio"]


def test_times_without_simgrid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_app.shutil, "which", lambda name: None)
    (row,) = measure_app([SMALL], 2)
    assert "simgrid_s" not in row
    assert 0 < row["engine_s"] < row["whole_s"]
    assert (row["ranks"], row["packet_limit_s"], row["limit_s"]) == (8, 60, None)
    assert abs(row["packet_deviation_percent"]) < 10
    write_bench([row], tmp_path / "out", clock=bench_app.CLOCK)
    assert pd.read_csv(tmp_path / "out" / "bench.csv")["case"].tolist() == ["IS, class S, 8 ranks"]


def test_ratios_are_those_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    # seconds of the engine and of all, makespan; then SimGrid's seconds and makespan
    ours = iter([(1.0, 2.0, 0.5), (2.0, 4.0, 0.5), (1.0, 4.0, 0.5)])
    theirs = iter([(4.0, 0.4), (6.0, 0.4), (8.0, 0.4)])
    monkeypatch.setattr(bench_app.shutil, "which", lambda name: name)
    monkeypatch.setattr(bench_app, "time_ours", lambda config, topology: next(ours))
    monkeypatch.setattr(bench_app, "time_simgrid", lambda words, ranks, folder: next(theirs))
    (row,) = measure_app([AppCase("x", "{kind: collective, operation: barrier}")], 3)
    assert (row["engine_ratio_lowest"], row["engine_ratio"], row["engine_ratio_highest"]) == (3, 4, 8)
    assert (row["whole_ratio_lowest"], row["whole_ratio"], row["whole_ratio_highest"]) == (1.5, 2, 2)
    assert (row["engine_s"], row["whole_s"], row["simgrid_s"]) == (1, 4, 6)
    assert row["deviation_percent"] == pytest.approx(25)
    assert "packet_s" not in row


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^repetitions must be at least 1, not 0$"):
        list(measure_app([SMALL], 0))
    with pytest.raises(UserError, match=r"^--trace: no such file: .*nothing$"):
        trace_case(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="empty"):
        list(measure_app([trace_case(tmp_path / "empty")], 1))


def test_the_aims_are_those_of_the_issue() -> None:
    assert {case.name: case.limit_s for case in CASES if case.limit_s is not None} == {"IS A, 256 ranks": 30}
    packet = {case.name: case.packet_limit_s for case in CASES if case.packet}
    assert packet == {"IS A, 64 ranks": 60}
    assert len(chosen_cases(True, [])) == len(CASES) > len(chosen_cases(False, [])) == 4
    assert [case.name for case in chosen_cases(False, [Path(__file__)])][4:] == [Path(__file__).name]

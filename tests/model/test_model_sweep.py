"""Sweeps: every load and seed once, resumed after a stop, the same on one process and on two; the commands."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from hopforge.model import sweep
from hopforge.model.config import Config, parse_config
from hopforge.model.sweep import run_key, summarise, sweep_runs, write_sweep

TEXT = """
name: small
topology: {kind: mesh, radices: [3, 3]}
simulation: {loads: [0.1, 0.3], seeds: 2, min_cycles: 1000, max_cycles: 2000, warmup_cycles: 500}
"""


def small(**changes: object) -> Config:
    return parse_config(TEXT)


def silent(done: int, total: int) -> None:
    pass


def without_times(runs: pd.DataFrame) -> pd.DataFrame:
    return runs.drop(columns="cpu_seconds")


def test_a_stopped_sweep_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sweep_runs(small(), tmp_path / "whole", silent, workers=1)
    assert list(zip(whole["load"], whole["seed"], strict=True)) == [(0.1, 1), (0.1, 2), (0.3, 1), (0.3, 2)]
    calls = []
    real = sweep.run_one

    def stop_after_two(job):
        calls.append(job[1:])
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(job)

    monkeypatch.setattr(sweep, "run_one", stop_after_two)
    with pytest.raises(KeyboardInterrupt):
        sweep_runs(small(), tmp_path / "stopped", silent, workers=1)
    resumed = sweep_runs(small(), tmp_path / "stopped", silent, workers=1)
    assert calls == [(0.1, 1), (0.1, 2), (0.3, 1), (0.3, 1), (0.3, 2)]
    pd.testing.assert_frame_equal(without_times(resumed), without_times(whole))


def test_processes_do_not_change_results(tmp_path: Path) -> None:
    one, two = (sweep_runs(small(), tmp_path / str(n), silent, workers=n) for n in (1, 2))
    pd.testing.assert_frame_equal(without_times(one), without_times(two))


def test_the_key_names_all_that_decides_the_result(tmp_path: Path) -> None:
    key = run_key(small(), 0.1, 1)
    assert run_key(small(), 0.1, 1) == key
    other = [run_key(small(), 0.2, 1), run_key(small(), 0.1, 2)]
    for lines in ("router: {vcs: 2}", "traffic: {packet_flits: 2}", "routing: {algorithm: up_down}"):
        other.append(run_key(parse_config(TEXT + lines), 0.1, 1))
    # a user's file counts by its contents
    for text in ("a = 1", "a = 2"):
        (tmp_path / "mine.py").write_text(text)
        lines = "routing: {algorithm: file, file: mine.py}"
        other.append(run_key(parse_config(TEXT + lines, folder=tmp_path), 0.1, 1))
    assert len({key, *other}) == len(other) + 1
    # more loads or seeds leave finished runs valid
    assert run_key(parse_config(TEXT.replace("seeds: 2", "seeds: 5")), 0.1, 1) == key


def test_summary_and_files(tmp_path: Path) -> None:
    runs = sweep_runs(small(), tmp_path, silent, workers=1)
    curve = summarise(runs)
    assert curve["load"].tolist() == [0.1, 0.3]
    assert curve["seeds"].tolist() == [2, 2]
    assert curve["latency"][0] == pytest.approx(runs["latency"][:2].mean())
    write_sweep(small(), runs, tmp_path)
    assert (tmp_path / "latency_load.png").stat().st_size > 5000
    assert len(pd.read_csv(tmp_path / "runs.csv")) == 4
    assert len(pd.read_parquet(tmp_path / "curve.parquet")) == 2


@pytest.mark.parametrize("command", ["net", "sweep"])
@pytest.mark.parametrize("lines, message", [
    ("routing: {algorithm: nca}", "routing.algorithm nca needs a topology of kind fat_tree, not mesh"),
    ("traffic: {pattern: transpose3d}", "traffic.pattern transpose3d needs a cubic number of hosts, not 9"),
    ("router: {vcs: 17}", "router.vcs"),
])  # fmt: skip
def test_mistakes_are_one_line_and_status_2(tmp_path: Path, command: str, lines: str, message: str) -> None:
    (tmp_path / "c.yml").write_text(TEXT + lines)
    arguments = [sys.executable, "-m", "hopforge.cli", command, str(tmp_path / "c.yml"), "-o", str(tmp_path / "out")]
    run = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert message in run.stderr
    assert run.stdout == ""


def test_net_prints_and_writes(tmp_path: Path) -> None:
    (tmp_path / "c.yml").write_text(TEXT)
    arguments = ["net", str(tmp_path / "c.yml"), "-o", str(tmp_path / "out"), "--load", "0.2", "--seed", "7"]
    run = subprocess.run(
        [sys.executable, "-m", "hopforge.cli", *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "offered load" in run.stdout
    table = pd.read_csv(tmp_path / "out" / "measurement.csv")
    assert (table["load"][0], table["seed"][0]) == (0.2, 7)

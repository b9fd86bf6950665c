"""`hopforge jobs`: its tables, files and mistakes."""

import gzip
import json
import math

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.model.errors import UserError
from hopforge.model.output.column_notes import column_notes
from hopforge.model.workload.job_log import parse_log, read_log
from hopforge.model.workload.jobs import usable_jobs
from hopforge.sim.jobs import runs
from hopforge.sim.jobs.prepared import JobsError, Machine, machine_of, prepare_jobs
from hopforge.sim.jobs.runs import busiest_instant, run_jobs
from hopforge.sim.jobs.space_sharing import schedule

LOG = """\
; MaxNodes: 4
; MaxProcs: 8
1 0 -1 100 4 -1 -1 4 100
2 1 -1 100 8 -1 -1 8 100
3 2 -1 50 2 -1 -1 2 50
4 3 -1 200 2 -1 -1 2 200
5 4 -1 -1 2
6 5 -1 1 9
7 6 -1 1 1 -1 -1 1 1 -1 3
"""


def called(*words):
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["jobs", *map(str, words)])


def test_the_command_by_hand(tmp_path):
    path = tmp_path / "t.swf.gz"
    path.write_bytes(gzip.compress(LOG.encode()))
    out = tmp_path / "out"
    done = called(path, "-o", out, "--plots")
    assert done.exit_code == 0, done.output
    assert "1 parts of jobs, 1 without a run time, 1 larger than the machine" in done.output
    assert "4 nodes of 2 processors (header)" in done.output
    jobs = pd.read_csv(out / "jobs.csv")
    # 2 nodes are free until 100: EASY starts job 3 in front of job 2, job 4 would delay it
    starts = {"fcfs": [0, 100, 200, 200], "easy": [0, 100, 2, 200]}
    for scheduler, expected in starts.items():
        assert jobs[jobs.scheduler == scheduler].start.tolist() == expected
    figures = pd.read_csv(out / "schedules.csv").set_index("scheduler")
    assert figures.makespan.tolist() == [400, 400]
    assert figures.loc["easy", "utilisation"] == (200 + 400 + 50 + 200) / 1600
    assert figures.loc["easy", "mean_wait"] == (0 + 99 + 0 + 197) / 4
    sizes = pd.read_csv(out / "job_sizes.csv")
    nodes = sizes[sizes.axis == "nodes"]
    assert nodes[["size", "jobs"]].to_numpy().tolist() == [[1, 0.5], [2, 0.75], [4, 1]]
    np.testing.assert_allclose(nodes.hours, np.array([250, 450, 850]) / 850)
    metadata = json.loads((out / "metadata.json").read_text())
    assert metadata["log"]["skipped"] == {"run": 1, "large": 1, "partial": 1}
    assert metadata["log"]["header"] == {"MaxNodes": ["4"], "MaxProcs": ["8"]}
    assert metadata["machine"] == {"dims": [4], "nodes": 4, "ppn": 2, "from_header": True}
    assert {"job_sizes.png", "waits.png", "jobs.parquet"} <= set(metadata["files"])


def test_jobs_that_take_no_time(tmp_path):
    (tmp_path / "t.swf").write_text("1 0 -1 0 2\n2 5 -1 0 1\n3 5 -1 0 4\n")
    for last in (3, 1):  # at different times, and at one
        (tmp_path / "u.swf").write_text("\n".join((tmp_path / "t.swf").read_text().splitlines()[:last]))
        result = called(tmp_path / "u.swf", "--nodes", 4, "--interference", "--plots", "-o", tmp_path / "out")
        assert result.exit_code == 0, result.output
        assert "no job took any time" in result.output and "nan" not in result.output
        utilisation = pd.read_csv(tmp_path / "out" / "schedules.csv")["utilisation"]
        assert list(utilisation.isna()) == [last == 1] * 2 and (last == 1 or set(utilisation) == {0.0})
        assert (tmp_path / "out" / "waits.png").exists()


def test_a_drawn_log_runs_again_from_its_file(tmp_path):
    words = (
        "--dims",
        "4x4x4",
        "--placement",
        "block",
        "--placement",
        "random",
        "--interference",
        "--scheduler",
        "easy",
    )
    first = called("--generate", "typed", "--count", 60, "--seed", 3, "-o", tmp_path / "a", *words)
    assert first.exit_code == 0, first.output
    again = called(tmp_path / "a" / "log.swf", "--seed", 3, "-o", tmp_path / "b", *words)
    assert again.exit_code == 0, again.output
    assert len(read_log(tmp_path / "a" / "log.swf").records) == 60
    for name in ("jobs", "schedules", "job_sizes", "interference"):
        table = pd.read_csv(tmp_path / "a" / f"{name}.csv")
        assert len(table) and set(column_notes(name, table)) == set(table), name
        assert (tmp_path / "a" / f"{name}.csv").read_bytes() == (tmp_path / "b" / f"{name}.csv").read_bytes()
    assert not (tmp_path / "b" / "log.swf").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name either a LOG or --generate"),
        (("t.swf", "--generate", "all"), "name either a LOG or --generate"),
        (("t.swf", "--count", "3"), "--count is for --generate"),
        (("--generate", "all"), "--generate needs a machine: --nodes or --dims"),
        (("--generate", "jann", "--nodes", "64"), "--generate must be one of all, batch, interactive, typed, not jann"),
        (("--generate", "all", "--nodes", "9"), "the model takes machines of at least 10 processors, not 9"),
        (("--generate", "all", "--dims", "2048x2048"), "a machine must have at most 1048576 nodes, not 4194304"),
        (("t.swf", "--nodes", "4", "--dims", "4"), "--nodes and --dims both name the machine"),
        (("t.swf", "--dims", "4,4"), "--dims must be at most 16 whole numbers with x between"),
        (("t.swf", "--dims", "4x0"), "--dims must be numbers from 1, not 4x0"),
        (("t.swf", "--scheduler", "sjf"), "--scheduler must be one of fcfs, easy, not sjf"),
        (("t.swf", "--placement", "x"), "--placement must be one of linear, contiguous, block, random, group, sub"),
        (("u.swf",), "u.swf:2: field 4 (run): 'x' is not a number"),
        (("v.swf",), "v.swf: its header has no MaxNodes; name the machine (--nodes or --dims)"),
        (("v.swf", "--nodes", "2"), "v.swf: no job to run in 1 lines (skipped: 1 large)"),
        (("w.swf",), "w.swf: MaxNodes of its header must be a whole number from 1, not 'many'"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(tmp_path, monkeypatch, words, message):
    texts = {"t": LOG, "u": "; MaxNodes: 2\n1 0 0 x\n", "v": "1 0 0 5 3\n", "w": "; MaxNodes: many\n1 0 0 5 3\n"}
    for name, text in texts.items():
        (tmp_path / f"{name}.swf").write_text(text)
    monkeypatch.chdir(tmp_path)
    done = called(*words, "-o", "out")
    assert isinstance(done.exception, UserError)
    assert message in str(done.exception) and "\n" not in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_the_machine_of_a_header():
    assert machine_of(parse_log("; MaxNodes: 3 (of 4)\n; MaxProcs: 8\n"), None, None) == Machine((3,), 3, True)
    assert machine_of(parse_log("; MaxNodes: 3\n"), None, 2) == Machine((3,), 2, True)
    assert machine_of(parse_log("; MaxNodes: 3\n"), (4, 2), None) == Machine((4, 2), 1)


def test_interference_is_that_of_the_busiest_instant(monkeypatch):
    log = parse_log("1 0 0 9 3\n2 5 0 9 4\n3 5 0 0 1\n4 6 0 9 2\n5 15 0 9 8\n6 30 0 9 8\n")
    setup = prepare_jobs(
        log, Machine((8,), 1), drawn=False, schedulers=["fcfs"], placements=["linear"], seed=1, interference=True
    )
    done = schedule(setup.jobs, (8,), scheduler="fcfs")
    load = [(done.jobs.nodes * ((done.start <= t) & (t < done.end))).sum() for t in range(60)]
    at = busiest_instant(done)
    assert load[int(at)] == max(load) == 8 and at == load.index(8)
    table = run_jobs(setup).tables["interference"]
    assert set(table["instant"]) == {at} and table["nodes"].sum() == 8
    monkeypatch.setattr(runs, "MAX_PAIRS", 9)
    with pytest.raises(JobsError, match="interference: at most 9 pairs of ranks are counted, not 56"):
        run_jobs(setup)


def test_progress_counts_all_jobs():
    seen = []
    setup = prepare_jobs(
        parse_log(LOG), Machine((4,), 2), drawn=False, schedulers=["fcfs", "easy"], placements=["linear", "block"],
        seed=1, interference=False,
    )  # fmt: skip
    report = run_jobs(setup, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (16, 16) and seen == sorted(seen)
    assert len(report.tables["jobs"]["job"]) == 16 and "interference" not in report.tables
    assert all(math.isfinite(value) for value in report.tables["schedules"]["utilisation"])
    assert len(usable_jobs(parse_log(LOG))) == 5

"""`hopforge app` and `hopforge workload`: files, words, mistakes."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hopforge import cli
from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.workload.goal_files import read_goal
from hopforge.model.workload.goal_text import goal_lines
from hopforge.model.workload.read_trace import read_trace
from hopforge.sim.hits import replay as cache_replay
from hopforge.sim.programs import app_setup, application
from hopforge.sim.programs.application import app_rows, run_app

CONFIG = """name: x
topology: {kind: mesh, radices: [2, 2]}
workload: {kind: npb, benchmark: cg, class: S, ranks: RANKS}
app: {host_gflops: 10, backend: embedded}
"""


def hopforge(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int | str | None:
    monkeypatch.setattr(sys, "argv", ["hopforge", *map(str, arguments)])
    monkeypatch.delenv("HOPFORGE_TRACEBACK", raising=False)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return caught.value.code


def written(folder: Path, ranks: int) -> Path:
    path = folder / "x.yml"
    path.write_text(CONFIG.replace("RANKS", str(ranks)))
    return path


def test_app(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = written(tmp_path, 4)
    for name in ("a", "b"):
        assert hopforge(monkeypatch, "app", config, "-o", tmp_path / name) in (0, None)
    said = capsys.readouterr().out
    assert "cg.S.4, 4 ranks" in said
    row = pd.read_csv(tmp_path / "a" / "app.csv").iloc[0]
    ranks = pd.read_csv(tmp_path / "a" / "ranks.csv")
    assert row["makespan_s"] == ranks["finish_s"].max() > 0
    assert f"{1e3 * row['makespan_s']:.6g} ms" in said
    # waiting and computing are all that a rank does, and eager messages cost the sender nothing
    assert (ranks["waiting_s"] + ranks["compute_s"]).tolist() == pytest.approx(ranks["finish_s"].tolist())
    assert (tmp_path / "a" / "ranks.csv").read_bytes() == (tmp_path / "b" / "ranks.csv").read_bytes()
    kept = json.loads((tmp_path / "a" / "metadata.json").read_text())
    assert kept["config"]["workload"]["class"] == "S"
    assert kept["found"]["makespan_s"] == row["makespan_s"]


def test_workload_is_a_trace_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = written(tmp_path, 2)
    assert hopforge(monkeypatch, "workload", config, "-o", tmp_path / "trace") in (0, None)
    trace = read_trace(tmp_path / "trace")
    assert trace.ranks == 2
    replay = tmp_path / "replay.yml"
    replay.write_text(
        f"name: y\ntopology: {{kind: mesh, radices: [2, 2]}}\nworkload: {{kind: trace, file: {tmp_path / 'trace'}}}\n"
        "app: {host_gflops: 10, backend: embedded}\n"
    )
    assert hopforge(monkeypatch, "app", config, "-o", tmp_path / "a") in (0, None)
    assert hopforge(monkeypatch, "app", replay, "-o", tmp_path / "b") in (0, None)
    assert (tmp_path / "a" / "ranks.csv").read_bytes() == (tmp_path / "b" / "ranks.csv").read_bytes()
    assert hopforge(monkeypatch, "workload", config, "-o", tmp_path / "trace") == 2
    assert capsys.readouterr().err.endswith("trace: exists already\n")


@pytest.mark.parametrize(("form", "name"), [("trace", "new"), ("goal", "new.goal"), ("goal-binary", "new.bin"),
                                            ("chakra", "new")])
def test_force_replaces_a_program_that_is_there_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, name: str
) -> None:
    """Files of more ranks than before do not stay; those of somebody else do."""
    monkeypatch.chdir(tmp_path)

    def written_as(ranks: int, place: str, *more: str) -> int | str | None:
        return hopforge(monkeypatch, "workload", written(tmp_path, ranks), "--to", form, "-o", place, *more)

    assert written_as(4, name) in (0, None)
    if (tmp_path / name).is_dir():
        (tmp_path / name / "mine.txt").write_text("mine")
    assert written_as(2, name) == 2
    assert written_as(2, name, "--force") in (0, None)
    assert written_as(2, f"other-{name}") in (0, None)

    def content(place: Path) -> dict[str, bytes]:
        files = sorted(place.iterdir()) if place.is_dir() else [place]
        return {file.name.removeprefix("other-"): file.read_bytes() for file in files}

    kept, fresh = content(tmp_path / name), content(tmp_path / f"other-{name}")
    if (tmp_path / name).is_dir():
        assert kept.pop("mine.txt") == b"mine"
        assert len(kept) == 2
    assert kept == fresh


def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    config = written(tmp_path, 3)
    assert hopforge(monkeypatch, "app", config, "-o", tmp_path / "a") == 2
    assert "workload.ranks: CG class S runs on powers of two (1, 2, 4, " in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
    assert hopforge(monkeypatch, "app", written(tmp_path, 4), "--engine", "fluid") == 2
    assert "--engine must be one of flow, packet, loggops, not fluid" in capsys.readouterr().err


def test_hits_and_app_tell_the_same_of_ranks_that_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "t"
    trace.mkdir()
    for rank in range(3):
        calls = f"{rank} recv {(rank + 1) % 3} 0 10\n{rank} send {(rank + 2) % 3} 0 10\n"
        (trace / f"rank-{rank}.txt").write_text(f"{rank} init\n{calls}")
    config = tmp_path / "x.yml"
    config.write_text(
        f"name: y\ntopology: {{kind: mesh, radices: [2, 2]}}\nworkload: {{kind: trace, file: {trace}}}\n"
        "app: {backend: embedded}\n"
    )
    told = []
    for command in ("hits", "app"):
        assert hopforge(monkeypatch, command, config, "-o", tmp_path / command) == 2
        words = " ".join(capsys.readouterr().err.split())
        told.append(words[words.index("3 of 3 ranks wait") :])
    assert told[0] == told[1]
    for rank in range(3):
        place = f"(recv, {trace}/rank-{rank}.txt:2)"
        assert f"rank {rank} waits for a message from rank {(rank + 1) % 3} {place}" in told[0]


#: refused by what a command prepares, and by the command: once in the middle of a run, or behind it
BEFORE_THE_RUN = {
    "no SimGrid": (
        "app: {backend: simgrid}\n",
        "app.backend: simgrid needs smpirun, which is not installed (apt-get install libsimgrid-dev)",
    ),
    "routes": (
        "app: {backend: embedded}\nrouting: {algorithm: tables, links: adaptive}\n",
        "routing.links: must be own_first, destination or hash for routes that are known beforehand, which "
        "knows no queues, not adaptive",
    ),
    "caches": (
        "app: {backend: embedded, lookup: cache}\n",
        "lookup.cache.entries: 12 caches of 2048 entries need",
    ),
}


@pytest.mark.parametrize("name", BEFORE_THE_RUN)
def test_check_and_app_refuse_before_the_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # where there is no smpirun
    monkeypatch.setattr(cache_replay, "MAX_STATE_BYTES", 1 << 10)
    monkeypatch.setattr(application, "_run_flow", lambda *_: pytest.fail("it ran"))
    config = written(tmp_path, 4)
    changes, reason = BEFORE_THE_RUN[name]
    config.write_text("".join(config.read_text().splitlines(keepends=True)[:3]) + changes)
    for words in (["check", config, "--for", "app"], ["app", config, "-o", tmp_path / "a"]):
        assert hopforge(monkeypatch, *words) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert reason in said
    assert not (tmp_path / "a").exists()


def test_energy_is_that_of_the_routes_of_the_program() -> None:
    """With tables a packet takes their way: up and down a ring around its root, not the shorter one."""
    text = (
        "name: x\ntopology: {kind: torus, radices: [8]}\n"
        "workload: {kind: collective, operation: alltoall, bytes: 100, ranks: 8}\napp: {backend: embedded}\n"
    )
    tables = "routing: {algorithm: tables}\ntables: {scheme: up_down}\n"
    visits = []
    for changes in ("", tables):
        config = parse_config(text + changes)
        setup = app_setup.prepare_app(config)
        assert setup.routes is not None
        hosts = np.arange(8)
        lengths = setup.routes.paths(np.repeat(hosts, 8), np.tile(hosts, 8)).lengths.reshape(8, 8)
        packets = application._visits(setup)[0]
        assert packets == lengths.sum() - 8  # one packet each, none to oneself
        visits.append(packets)
    assert visits[1] > visits[0]


@pytest.mark.parametrize(("app", "ranks", "said"), [
    ("lookup: hit", 4, "nothing was looked up: every switch takes the time of one that hits (app.lookup: hit)"),
    ("lookup: miss", 4, "nothing was looked up: every switch takes the time of one that misses (app.lookup: miss)"),
    ("lookup: conventional", 4, "nothing was looked up: every switch takes the time of one without caches"),
    ("lookup: cache", 1, "nothing was looked up: no message entered the network"),
    ("lookup: cache", 4, "% miss"),
    ("engine: packet", 4, "nothing was looked up: every switch takes the time of one that hits (app.lookup: hit)"),
    ("engine: packet, lookup: cache", 4, "% miss"),
])  # fmt: skip
def test_what_was_looked_up(tmp_path: Path, app: str, ranks: int, said: str) -> None:
    config = parse_config(
        "name: x\ntopology: {kind: mesh, radices: [2, 2]}\n"
        f"workload: {{kind: collective, operation: bcast, bytes: 100, ranks: {ranks}}}\n"
        f"app: {{{app}{'' if 'engine' in app else ', backend: embedded'}}}\n"
    )
    rows = dict(app_rows(run_app(config)))
    assert said in rows["lookups"]
    assert ("%" in rows["lookups"]) == (said == "% miss")


@pytest.mark.parametrize(("lookup", "shown"), [("conventional", "conventional_energy_j"), ("miss", "energy_j")])
def test_conventional_switches_have_no_caches(lookup: str, shown: str) -> None:
    """Their energy is that of the switches that a miss share of 1 is compared with."""
    config = parse_config(
        "name: x\ntopology: {kind: mesh, radices: [2, 2]}\n"
        "workload: {kind: collective, operation: bcast, bytes: 100}\n"
        f"app: {{lookup: {lookup}, backend: embedded}}\n"
    )
    run = run_app(config)
    assert run.found.energy_j > run.found.conventional_energy_j
    said = dict(app_rows(run))["energy"]
    assert said.startswith(f"{getattr(run.found, shown):.4g} J in all switches")
    assert ("which have no caches" in said) == (lookup == "conventional")


@pytest.mark.parametrize(("engine", "said"), [
    ("loggops", "workload: a computation of inf ns is longer than"),
    ("packet", r"workload: inf cycles of computing are more than 4,398,046,511,104"),
    ("flow", r"workload: the program ends at .* s; times beyond 2\^53 ns"),
])  # fmt: skip
def test_computing_for_ever_is_refused(engine: str, said: str) -> None:
    config = parse_config(
        "name: x\ntopology: {kind: mesh, radices: [2, 2]}\nworkload: {kind: npb, benchmark: ep, class: S, ranks: 4}\n"
        f"app: {{engine: {engine}, host_gflops: 1.0e-307{'' if engine != 'flow' else ', backend: embedded'}}}\n"
    )
    with pytest.raises(UserError, match=said):  # and nothing of numpy's: warnings are errors here
        run_app(config)


def test_the_word_run_may_stand_before_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = written(tmp_path, 2)
    assert hopforge(monkeypatch, "app", config, "-o", tmp_path / "a") in (0, None)
    assert hopforge(monkeypatch, "app", "run", config, "-o", tmp_path / "b") in (0, None)
    assert (tmp_path / "a" / "ranks.csv").read_bytes() == (tmp_path / "b" / "ranks.csv").read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--backend", "fluid"], "--backend must be one of embedded, simgrid, auto, not fluid"),
        (["--backend", "embedded", "--engine", "packet"], "--backend is for engine flow, not packet"),
        (["-n", "4"], "-n is for --program"),
        (["extra"], "ARGUMENTS is for --program"),
        (["--program", "a.out", "--engine", "flow"], "--program runs in SimGrid"),
        (["run", "--program", "a.out"], "a.out is no program that can be run"),
    ],
)
def test_mistakes_with_programs(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = written(tmp_path, 4)
    before = words[:1] if words[0] == "run" else []
    assert hopforge(monkeypatch, "app", *before, config, *words[len(before) :], "-o", tmp_path / "a") == 2
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert not (tmp_path / "a").exists()


def test_a_program_becomes_a_schedule_and_that_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    config = written(tmp_path, 2)
    assert hopforge(monkeypatch, "workload", config, "--to", "goal") in (0, None)
    said = capsys.readouterr()
    assert f"wrote build/{config.stem}/workload.goal" in said.out
    assert "hopforge workload does not use app.backend\n" in said.err  # but the speed of a rank
    schedule = tmp_path / "build" / config.stem / "workload.goal"
    (tmp_path / "y.yml").write_text(
        f"name: y\ntopology: {{kind: mesh, radices: [2, 2]}}\nworkload: {{kind: trace, file: {schedule}}}\n"
    )
    assert hopforge(monkeypatch, "workload", "y.yml", "--to", "goal-binary", "-o", "y.bin") in (0, None)
    again = read_goal(tmp_path / "y.bin")
    assert "".join(goal_lines(again)) == schedule.read_text()
    assert f"{(again.kind == 1).sum():,} send" in capsys.readouterr().out
    assert hopforge(monkeypatch, "workload", "y.yml") == 2
    assert "--to trace" in capsys.readouterr().err
    assert hopforge(monkeypatch, "workload", "y.yml", "--to", "tar") == 2
    assert "--to must be one of trace, goal, goal-binary, chakra, not tar" in capsys.readouterr().err
    assert hopforge(monkeypatch, "hits", "y.yml") == 2
    assert "is a schedule of GOAL, no time-independent trace" in capsys.readouterr().err


def test_a_program_becomes_traces_of_chakra_and_these_the_same_schedule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    config = written(tmp_path, 2)
    assert hopforge(monkeypatch, "workload", config, "--to", "goal", "-o", "x.goal") in (0, None)
    assert hopforge(monkeypatch, "workload", config, "--to", "chakra", "-o", "new") in (0, None)
    assert sorted(file.name for file in (tmp_path / "new").iterdir()) == ["trace.0.et", "trace.1.et"]
    (tmp_path / "y.yml").write_text(
        "name: y\ntopology: {kind: mesh, radices: [2, 2]}\nworkload: {kind: chakra, file: new/trace}\n"
    )
    assert hopforge(monkeypatch, "workload", "y.yml", "--to", "goal", "-o", "y.goal") in (0, None)
    assert (tmp_path / "y.goal").read_text() == (tmp_path / "x.goal").read_text()
    assert hopforge(monkeypatch, "app", "y.yml", "--engine", "loggops") in (0, None)
    assert "trace, 2 ranks" in capsys.readouterr().out
    assert hopforge(monkeypatch, "workload", config, "--to", "chakra", "-o", "new") == 2
    assert "new: exists already" in capsys.readouterr().err
    assert hopforge(monkeypatch, "hits", "y.yml") == 2
    assert "execution traces of Chakra, no time-independent trace" in capsys.readouterr().err
    (tmp_path / "new" / "trace.1.et").write_bytes(b"\x05\x0a\x09")
    assert hopforge(monkeypatch, "check", "y.yml") == 2
    assert "trace.1.et: byte 0: truncated: a message of 5 bytes" in " ".join(capsys.readouterr().out.split())
    (tmp_path / "new" / "trace.1.et").unlink()
    (tmp_path / "new" / "trace.0.et").unlink()
    assert hopforge(monkeypatch, "app", "y.yml") == 2
    said = capsys.readouterr().err
    assert "y.yml:3: workload.file: new/trace: there is neither trace.0.et nor" in said
    assert said.count("\n") == 1


JOBS = """name: x
topology: {kind: mesh, radices: [2, 2]}
workload:
  kind: jobs
  jobs:
    - {name: left, ranks: 2, program: {kind: npb, benchmark: cg, class: S, iterations: 2}}
    - {ranks: 2, start_us: 3, program: {kind: collective, operation: bcast}}
"""


def test_app_of_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "x.yml"
    config.write_text(JOBS)
    assert hopforge(monkeypatch, "app", config, "-o", tmp_path / "a") in (0, None)
    said = capsys.readouterr().out
    assert "2; slowdown mean 1, largest 1 (left)" in said
    assert "cg.S.2" in said
    rows = pd.read_csv(tmp_path / "a" / "job_runs.csv")
    assert rows["job"].tolist() == ["left", "1"]
    assert rows["slowdown"].tolist() == [1, 1]
    assert rows["start_s"].tolist() == [0, 3e-6]
    assert pd.read_csv(tmp_path / "a" / "ranks.csv")["job"].tolist() == ["left", "left", "1", "1"]
    row = pd.read_csv(tmp_path / "a" / "app.csv").iloc[0]
    assert row["jobs"] == 2
    assert row["makespan_s"] == (rows["start_s"] + rows["makespan_s"]).max()
    kept = json.loads((tmp_path / "a" / "metadata.json").read_text())
    assert set(kept["columns"]["job_runs"]) == set(rows.columns)
    # what hits has no time for is said
    assert hopforge(monkeypatch, "hits", config, "-o", tmp_path / "h") in (0, None)
    assert "workload.jobs.start_us" in capsys.readouterr().err
    config.write_text(JOBS.replace("name: left, ranks: 2", "name: left, ranks: 4"))
    for command in ("app", "hits"):
        assert hopforge(monkeypatch, command, config, "-o", tmp_path / "b") == 2
        said = capsys.readouterr().err
        assert f"{config}:7: workload.jobs[1]: 2 ranks do not fit: placement=linear finds no hosts for them" in said
    assert not (tmp_path / "b").exists()
    assert hopforge(monkeypatch, "workload", config, "-o", tmp_path / "b") == 2
    assert "workload.kind: jobs holds several programs; one is needed" in capsys.readouterr().err

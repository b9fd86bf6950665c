"""Sweeps over programs: every variant as if it stood alone, resumed after a stop, mistakes with their variant."""

import sys
from pathlib import Path

import pandas as pd
import pytest

from hopforge import cli
from hopforge.model.config import Config, parse_config
from hopforge.sim.programs.app_sweep import APP_SWEEP, AppSweep
from hopforge.sim.programs.application import run_app
from hopforge.sim.run.kept_results import SweepError
from hopforge.sim.run.model_runs import configured_sweep
from hopforge.sim.run.sweep import Job

ALONE = """
name: jobs
topology: {kind: mesh, radices: [2, 2]}
workload: {kind: npb, benchmark: cg, class: S, ranks: 4, iterations: 2}
app: {backend: embedded}
"""
TEXT = ALONE + """
simulation:
  variants:
    conventional: {app.lookup: conventional}
    hit: {}
    again: {app.lookup: hit}
    scattered: {workload.mapping: {kind: random}, simulation.seeds: 2}
"""


def silent(done: int, total: int) -> None:
    pass


def config_of(text: str = TEXT) -> Config:
    return parse_config(text)


def app_key(config: Config) -> str:
    return APP_SWEEP.wanted(APP_SWEEP.jobs(config))[0].key


def test_every_variant_is_run_as_if_it_stood_alone(tmp_path: Path) -> None:
    runs = APP_SWEEP.run(config_of(), tmp_path, silent, workers=1)
    assert runs["variant"].tolist() == ["conventional", "hit", "again", "scattered", "scattered"]
    assert runs["seed"].tolist() == [1, 1, 1, 1, 2]
    alone = run_app(config_of(ALONE)).found.makespan_s
    assert runs["makespan_s"][1] == runs["makespan_s"][2] == alone
    means = APP_SWEEP.summarise(runs).set_index("variant")
    assert means["seeds"].to_dict() == {"conventional": 1, "hit": 1, "again": 1, "scattered": 2}
    assert means["gain"]["hit"] == runs["makespan_s"][0] / alone > 1
    assert means["makespan_s"]["scattered"] == pytest.approx(runs["makespan_s"][3:].mean())


def test_a_run_is_named_by_what_tells_it_from_the_others() -> None:
    """It had a load in its name, which no program has."""
    for config, names in ((config_of(), ["again, seed 1", "scattered, seed 1"]), (config_of(ALONE), ["seed 1"])):
        found = [one.name for one in APP_SWEEP.wanted(APP_SWEEP.jobs(config))]
        assert set(names) <= set(found) and not any("load" in name for name in found)


def test_a_stopped_sweep_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    real = AppSweep.run_one

    def stop_at_third(sweep: AppSweep, job: Job) -> dict[str, object]:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(job.variant)
        return real(sweep, job)

    monkeypatch.setattr(AppSweep, "run_one", stop_at_third)
    with pytest.raises(KeyboardInterrupt):
        APP_SWEEP.run(config_of(), tmp_path, silent, workers=1)
    assert done == ["conventional", "hit"]  # the same as `again`: once
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr(AppSweep, "run_one", lambda sweep, job: done.append(job.variant) or real(sweep, job))
    APP_SWEEP.run(config_of(), tmp_path, lambda *pair: seen.append(pair), workers=1)
    assert done[2:] == ["scattered", "scattered"]
    assert seen == [(3, 5), (4, 5), (5, 5)]


def test_the_key_names_all_that_decides_the_result(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.mkdir()
    keys = [app_key(config_of(ALONE + more)) for more in (
        "", "timing: {cable_ns: 5}", "energy: {buffer_pj_per_bit: 1}", "lookup: {reduction: false}", "seed: 2",
    )]
    for text in ("0 barrier\n", "0 barrier\n0 barrier\n"):
        (trace / "rank-1.txt").write_text(text)
        program = "workload: {kind: npb, benchmark: cg, class: S, ranks: 4, iterations: 2}"
        replay = ALONE.replace(program, f"workload: {{kind: trace, file: {trace}}}")
        keys.append(app_key(config_of(replay)))
    assert len(set(keys)) == len(keys)
    assert app_key(config_of(ALONE + "simulation: {seeds: 3}")) == keys[0]


def test_mistakes_name_the_variant(tmp_path: Path) -> None:
    config = config_of(TEXT + "    wrong: {workload.ranks: 3}\n")
    with pytest.raises(SweepError, match=r"^simulation.variants.wrong: workload.ranks: CG class S runs on powers of"):
        APP_SWEEP.run(config, tmp_path, silent, workers=1)
    assert not list((tmp_path / "runs").glob("*.json"))  # told before the first run


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert configured_sweep(config_of()) is APP_SWEEP
    assert configured_sweep(config_of(ALONE.replace("app:", "timing: {}\n#"))) is not APP_SWEEP
    (tmp_path / "c.yml").write_text(TEXT)
    words = ["hopforge", "sweep", str(tmp_path / "c.yml"), "-o", str(tmp_path / "out"), "--workers", "1"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code in (0, None)
    lines = capsys.readouterr().out.splitlines()
    header = next(number for number, line in enumerate(lines) if line.split()[:1] == ["variant"])
    table = [line.split()[0] for line in lines[header + 1 : header + 5]]
    assert table == ["conventional", "hit", "again", "scattered"]
    assert len(pd.read_csv(tmp_path / "out" / "runs.csv")) == 5
    assert pd.read_parquet(tmp_path / "out" / "variants.parquet")["gain"][0] == 1
    assert (tmp_path / "out" / "makespan.png").stat().st_size > 5000

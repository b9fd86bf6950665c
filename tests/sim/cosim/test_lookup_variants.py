"""Engines drawn at random: what is drawn, what is kept, and that a difference is told."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hopforge.hw.lookup.engine import lookup_engine
from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.lookup.params import LookupParams
from hopforge.sim.cosim import lookup_variants as module
from hopforge.sim.cosim.lookup_variants import cosim_engines
from hopforge.sim.drive.engine_variants import engine_variant
from hopforge.sim.drive.replay import Replay, ReplayResult
from hopforge.sim.drive.runner import SimulatorRun

DEEP = parse_config("""
name: small
topology: {kind: torus, radices: [4, 4]}
lookup: {functions: [arbitrary, torus], pipeline_depth: 6, mshrs: 4, cache: {entries: 16, ways: 2}}
cosim: {simulator: verilator}
""")


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Play nothing, and write no Verilog for it; the list gets the cycles of every recording."""
    cycles: list[int] = []
    monkeypatch.setattr(module, "to_verilog", lambda *_: "")

    def play(_simulator: str, _verilog: str, _top: str, replay: Replay, folder: Path, **_: Any) -> SimulatorRun:
        cycles.append(replay.cycles)
        return SimulatorRun(ReplayResult(replay.cycles, 0, None), 0.0, 0.0, None)

    monkeypatch.setattr(module, "play", play)
    return cycles


@pytest.mark.parametrize(("deep", "depths"), [(True, {5, 6, 7, 8}), (False, {1, 2, 3, 4})])
def test_engines_of_all_kinds_are_drawn(deep: bool, depths: set[int]) -> None:
    drawn = [engine_variant(seed, deep=deep) for seed in range(1, 90)]
    assert len(set(drawn)) == 89
    assert {params.pipeline_depth for params in drawn} == depths
    assert {params.tcam_kind for params in drawn} == {"external", "flops", "sram"}
    assert {params.policy for params in drawn} == {"lru", "plru", "fifo", "random"}
    assert {params.skewed for params in drawn} == {False, True}
    assert engine_variant(7, deep=deep) == engine_variant(7, deep=deep)


def test_a_memory_stage_is_in_all_engines_or_in_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[bool] = []

    def build(*, params: LookupParams) -> Any:
        built.append(params.memory_stage)
        return lookup_engine(params=params)

    monkeypatch.setattr(module, "lookup_engine", build)
    text = "lookup: {functions: [arbitrary, torus], pipeline_depth: 6, memory_stage: true, mshrs: 4}"
    staged = parse_config(f"name: s\ntopology: {{kind: torus, radices: [4, 4]}}\n{text}\n")
    assert cosim_engines(staged, variants=2, lookups=30, simulator="icarus", output=tmp_path).passed
    assert built == [True, True]
    drawn = [engine_variant(seed, deep=True, memory_stage=True) for seed in (1, 2)]
    assert [replace(params, memory_stage=False) for params in drawn] == [engine_variant(s, deep=True) for s in (1, 2)]


def test_finished_runs_are_kept(tmp_path: Path, played: list[int]) -> None:
    report = cosim_engines(DEEP, variants=2, lookups=40, output=tmp_path)
    assert report.passed
    assert len(played) == 2
    assert dict(report.rows())["lookups"].startswith("80: ")
    assert dict(report.rows())["engines"].startswith("2 drawn at random, depths 6, 7")
    with (tmp_path / "runs.jsonl").open("a") as ledger:
        ledger.write('{"variant": 3, "se')  # stopped in the middle
    assert cosim_engines(DEEP, variants=2, lookups=40, output=tmp_path).runs == report.runs  # type: ignore[union-attr]
    assert len(played) == 2
    cosim_engines(DEEP, variants=1, lookups=41, output=tmp_path)
    cosim_engines(DEEP, variants=1, lookups=40, seed=5, output=tmp_path)
    assert len(played) == 4


def test_a_difference_is_told_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    class First:
        def __str__(self) -> str:
            return "cycle 4: resp_hit"

    def play(*_: Any, **__: Any) -> Any:
        calls.append(1)
        return SimulatorRun(ReplayResult(9, 2, First()), 0.0, 0.0, None)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "play", play)
    monkeypatch.setattr(module, "to_verilog", lambda *_: "")
    for _ in range(2):
        report = cosim_engines(DEEP, variants=1, lookups=30, output=tmp_path)
        assert not report.passed
        assert dict(report.rows())["mismatches"] == "variant 1, seed 1: cycle 4: resp_hit"
    assert len(calls) == 2


def test_no_waves_of_many_engines(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--waves is for one engine, not for --variants"):
        cosim_engines(DEEP, variants=2, waves=True, output=tmp_path)

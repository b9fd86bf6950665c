"""The generated table of Q-adaptive: package, lint, co-simulation on both simulators, mutants, proofs."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.gen.formal import q_table as formal
from hopforge.gen.packages.lint_config import lint_config
from hopforge.gen.packages.parts import generate_part
from hopforge.gen.synth.area_and_delay import synthesize_config
from hopforge.model.config import parse_config
from hopforge.model.router.q_table import QTableParams
from hopforge.sim.cosim.mutate import block_names
from hopforge.sim.cosim.mutation_report import Q_TABLE
from hopforge.sim.cosim.mutation_subjects import q_table_subject as subject
from hopforge.sim.cosim.mutation_verdicts import judge
from hopforge.sim.cosim.q_table import cosim_q_table

TEXT = """
name: small
topology: {kind: dragonfly, p: 1, a: 2, h: 1}
address: {chunk_bits: 4}
router: {model: input_output_queued, vcs: 5}
routing: {algorithm: q_adaptive, estimate_bits: 9, estimate_rounding: random}
"""


@pytest.mark.parametrize("simulator", ["icarus", "verilator"])
def test_verilog_equals_golden(simulator: str, tmp_path: Path) -> None:
    config = tmp_path / "small.yml"
    config.write_text(TEXT)
    given = ["--part", "q_table", "--cycles", "700", "--simulator", simulator, "-o", str(tmp_path / "out")]
    ran = CliRunner().invoke(app, ["cosim", str(config), *given])
    assert ran.exit_code == 0, ran.output
    written = json.loads((tmp_path / "out" / "cosim.json").read_text())
    assert (written["cycles"], written["mismatches"]) == (702, 0)
    assert str(tmp_path) not in (tmp_path / "out" / "cosim.json").read_text()


def test_a_difference_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hopforge.sim.cosim import block as module

    right = module.to_verilog

    def wrong(*arguments: object) -> str:
        text = right(*arguments)  # type: ignore[arg-type]
        assert "resp_detour <= " in text
        return text.replace("resp_detour <= ", "resp_detour <= ~", 1)

    monkeypatch.setattr(module, "to_verilog", wrong)
    report = cosim_q_table(parse_config(TEXT), simulator="icarus", cycles=60, output=tmp_path / "out")
    assert not report.passed
    assert "resp_detour" in dict(report.rows())["mismatches"]


def test_package_and_lint(tmp_path: Path) -> None:
    config = parse_config(TEXT)
    files = generate_part(config, "q_table", tmp_path / "q", shared_read=True)
    assert [path.name for path in files] == [
        f"small_q_table{end}" for end in (".sv", ".vlt", ".sdc", "_tb.sv", ".core", ".md", ".json")
    ]
    manifest = json.loads(files[-1].read_text())
    assert manifest["parameters"]["shared_read"] is True
    assert manifest["derived"]["memory_bits"] == 2 * 2 * 9
    assert {"name": "upd_dither", "direction": "input", "width_bits": 10} in manifest["ports"]
    assert "| 205, 41 |" in files[-2].read_text()
    ((name, report),) = lint_config(config, "q_table")
    assert (name, report.findings) == ("small_q_table", ())


@pytest.mark.study
def test_the_bench_notices_faults(tmp_path: Path) -> None:
    assert block_names("q_table") == (Q_TABLE,)
    found = subject(QTableParams.from_config(parse_config(TEXT)), 1)
    verdicts = judge(found._replace(replays=found.replays[:2]), 30, 1, tmp_path / "work", "small", proof_s=0)
    assert sum(verdict.state == "killed" for verdict in verdicts) >= 24


def test_gates(tmp_path: Path) -> None:
    config = parse_config(TEXT)
    (results,) = synthesize_config(config, blocks="q_table", names=["q_minimum"], folder=tmp_path / "synth")
    assert results[0].levels is not None
    assert results[0].flops == 2 * 9 + 9 + 2  # a row of two estimates; least and one bit for each column


def test_proofs_and_their_mutants() -> None:
    assert formal.prove_minimum(3, 3)
    assert formal.prove_product(4, 41)
    for mutant in formal.MINIMUM_MUTANTS:
        assert not formal.prove_minimum(3, 3, mutant)
    assert not formal.prove_product(4, 205, broken=True)

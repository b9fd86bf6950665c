import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.gen.design.configured import engine_parameters
from hopforge.model.config import parse_config
from hopforge.model.lookup.csr import MODES, csr_map
from hopforge.model.output.results import ResultError
from hopforge.sim.cosim import lookup as module
from hopforge.sim.cosim.lookup import cosim, engine_traffic
from hopforge.sim.cosim.prepared import engine_setup
from hopforge.sim.drive.runner import SimulatorError, check_simulator, simulator_name

SMALL = """
name: small
topology: {kind: torus, radices: [4, 4, 4]}
lookup:
  functions: [arbitrary, torus]
  chunk_bits: [4]
  comparators: 3
  mshrs: 2
  cache: {entries: 16, ways: 2}
  tcam: {kind: external}
"""


def small(**changes: str) -> Any:
    text = SMALL
    for old, new in changes.items():
        text = re.sub(rf"{old}: .*", f"{old}: {new}", text)
    return parse_config(text)


def test_report_of_a_good_engine(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    report = cosim(small(), lookups=300, seed=9, output=tmp_path, progress=lambda *cycles: seen.append(cycles))
    assert report.passed
    assert report.totals["lookups"] == 300
    assert report.result.cycles > 300
    assert seen[-1] == (report.result.cycles, report.result.cycles)
    rows = dict(report.rows())
    assert rows["mismatches"] == "0"
    assert rows["lookups"].startswith("300: ")
    written = json.loads((tmp_path / "cosim.json").read_text())
    assert written["counters"]["lookups"] == 300
    assert (written["mismatches"], written["first_mismatch"], written["seed"]) == (0, None, 9)
    assert str(tmp_path) not in (tmp_path / "cosim.json").read_text()


def test_a_mismatch_is_shown_and_ends_with_status_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = module.to_verilog

    def wrong(*arguments: Any) -> str:
        return re.sub(r"(resp_match <= )(.*);", r"\1~(\2);", right(*arguments), count=1)

    monkeypatch.setattr(module, "to_verilog", wrong)
    config = tmp_path / "small.yml"
    config.write_text(SMALL)
    ran = CliRunner().invoke(app, ["cosim", str(config), "--lookups", "50", "-o", str(tmp_path / "out")])
    assert ran.exit_code == 1
    assert re.search(r"mismatches\s+\d+ cycles; first cycle \d+:\s+resp_match is", ran.output)
    written = json.loads((tmp_path / "out" / "cosim.json").read_text())
    assert written["first_mismatch"]["signal"] == "resp_match"


@pytest.mark.parametrize(
    ("topology", "mode", "level", "own"),
    [
        ("{kind: torus, radices: [4, 4, 4]}", "torus", (0, 3), 0x200),
        ("{kind: mesh, radices: [3, 5], hosts_per_router: 2}", "mesh", (0, 2), 0x21),
        ("{kind: fat_tree, k: 2, n: 2}", "fat_tree", (1, 2), 0x10),
        ("{kind: dragonfly, p: 2, a: 4, h: 2}", "dragonfly", (0, 0), 0x420),
    ],
)
def test_the_engine_begins_as_a_switch_in_the_middle(
    topology: str, mode: str, level: tuple[int, int], own: int
) -> None:
    config = small(topology=topology, functions="[arbitrary, mesh, torus, fat_tree, dragonfly]")
    params = engine_parameters(config)
    registers, words = csr_map(params), dict(engine_setup(config, params))
    assert registers["MODE"].decode(words["MODE"])["mode"] == MODES.index(mode)
    assert registers["LEVEL"].decode(words["LEVEL"]) == {"level": level[0], "digits": level[1]}
    assert words["OWN_LO"] == own
    addresses = engine_traffic(config, 10, 1).addresses
    assert len(addresses) >= 8
    assert max(addresses) < 1 << 24


def test_without_reduction_the_mode_is_arbitrary() -> None:
    config = small(functions="[arbitrary, torus]\n  reduction: false")
    words = dict(engine_setup(config, engine_parameters(config)))
    assert list(words) == ["MODE"]
    assert words["MODE"] & 7 == 0


def test_unknown_simulator() -> None:
    with pytest.raises(SimulatorError, match="simulator must be one of icarus, verilator, not 'vcs'"):
        simulator_name("vcs")
    assert simulator_name("icarus") == "icarus"


def test_missing_tools_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SimulatorError, match="icarus needs iverilog, which is missing: apt-get install iverilog"):
        check_simulator("icarus")
    with pytest.raises(SimulatorError, match=re.escape("verilator needs g++, which is missing: apt-get install g++")):
        check_simulator("verilator")


def test_a_full_disk_is_told_with_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "play", full)
    with pytest.raises(ResultError, match=r"new: cannot write results: No space left on device$"):
        cosim(small(), lookups=20, output=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_design_that_does_not_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "to_verilog", lambda *arguments: "module small_lookup(; endmodule")
    with pytest.raises(SimulatorError, match=r"icarus could not build small_lookup: .*build\.log"):
        cosim(small(), lookups=10, output=tmp_path)
    assert not (tmp_path / "cosim.json").exists()

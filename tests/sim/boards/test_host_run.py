"""Simulated boards behind a pseudo-terminal, every counter beside the twin's."""

import json
import shutil
from pathlib import Path

import pytest

from hopforge.gen.fpga.board_design import board_design
from hopforge.model.config import load_config, parse_config
from hopforge.model.errors import UserError
from hopforge.sim.boards.client import BoardError, open_board
from hopforge.sim.boards.host_run import Comparison, HostReport, RunOptions, run_on_board
from hopforge.sim.boards.simulated import SIMULATED_BAUD, SIMULATED_HZ, build_simulated, simulated_board

ROOT = Path(__file__).parents[3]
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
SMALL = (ROOT / "configs/boards/up5k.yml").read_text()


def test_a_difference_is_told(tmp_path):
    same, other = Comparison("SENT", 5, 5), Comparison("HITS", 3, 4)
    options = RunOptions(design="engine", count=5)
    report = HostReport("/dev/ttyUSB0", 10**8, options, (same, other), 9)
    assert not report.passed
    assert dict(report.rows())["HITS"] == "3; the twin has 4"
    assert dict(report.rows())["compared"] == "2 counters, 1 differ from the twin"
    report.keep(tmp_path / "run.json")
    assert json.loads((tmp_path / "run.json").read_text())["passed"] is False
    assert HostReport("p", 1, options, (same,), 1).passed


@pytest.mark.parametrize(("name", "value", "words"), [
    ("count", 0, "^--count must be 1 to 4294967295, not 0$"),
    ("seed", 2**32, "^--seed must be 0 to 4294967295, not 4294967296$"),
    ("timeout_s", float("nan"), "^--timeout-s must be above 0 and at most 3600, not nan$"),
    ("timeout_s", 0, "^--timeout-s must be above 0 and at most 3600, not 0$"),
    ("router", 99, "^--router must be below [0-9]+, the routers of the network, not 99$"),  # before anything is built
])  # fmt: skip
def test_numbers_that_no_register_holds(tmp_path, name, value, words):
    options = RunOptions(**{"design": "engine", "count": 1, name: value})
    with pytest.raises(UserError, match=words):
        run_on_board(parse_config(SMALL), options, port=None, output=tmp_path)


@needs_compiler
def test_an_engine_twice_and_then_it_dies(tmp_path):
    config = parse_config(SMALL)
    for _ in range(2):  # the second time with the model that is there
        report = run_on_board(config, RunOptions(design="engine", count=300, seed=4), port=None, output=tmp_path)
        assert report.passed, [one for one in report.compared if one.board != one.twin]
        assert len(report.compared) == 16
        assert dict((one.name, one.board) for one in report.compared)["ANSWERED"] == 300
    design = board_design(config, "engine", clock_hz=SIMULATED_HZ, baud=SIMULATED_BAUD)
    program = build_simulated(design, tmp_path)
    with simulated_board(program) as (path, process), open_board(path, design.identity, timeout_s=0.5) as client:
        client.check_design()
        for _ in range(2):  # two runs with one reset between: what memories hold does not count
            client.reset()
            assert client.show("STATUS") == 0
        process.kill()
        process.wait()
        with pytest.raises(BoardError, match=r"vanished|no board answers"):
            client.read(0)


@pytest.mark.study
@needs_compiler
@pytest.mark.parametrize(("file", "design"), [
    ("boards/demo.yml", "engine"), ("boards/mesh2x2.yml", "network"), ("cosim/mesh2x2.yml", "network"),
])  # fmt: skip
def test_larger_designs(tmp_path, file, design):
    config = load_config(ROOT / "configs" / file, keys=design == "engine")
    report = run_on_board(config, RunOptions(design=design, count=200), port=None, output=tmp_path)
    assert report.passed, [one for one in report.compared if one.board != one.twin]

"""Routers with AXI-Stream adapters, with the streams of cocotbext-axi on Icarus."""

import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the bench runs inside of the simulator and imports the designs
from stream_designs import design_of

from hopforge.gen.packages.package import component_ports
from hopforge.gen.verilog.writer import to_verilog

RUNS = [("wormhole", 30), ("vct", 6)]
LONG_RUNS = [("vct", 30), ("one_vc", 60)]
"""Design and packets of each host; from 30 on they are of every kind."""


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="no Icarus")
@pytest.mark.parametrize(
    ("design", "packets"), [*RUNS, *(pytest.param(*each, marks=pytest.mark.study) for each in LONG_RUNS)]
)
def test_packets_between_hosts(design: str, packets: int, tmp_path: Path) -> None:
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner

    component = design_of(design)
    (tmp_path / "dut.sv").write_text(to_verilog(component, "dut"))
    inputs = [port["name"] for port in component_ports(component) if port["direction"] == "input"]
    setting = {"design": design, "seed": 1, "packets": packets, "inputs": inputs}
    runner = get_runner("icarus")
    runner.build(
        sources=[tmp_path / "dut.sv"], hdl_toplevel="dut", build_dir=tmp_path, timescale=("1ns", "1ps"),
        log_file=tmp_path / "build.log",
    )  # fmt: skip
    results = runner.test(
        test_module="stream_bench", hdl_toplevel="dut", build_dir=tmp_path, test_dir=tmp_path,
        log_file=tmp_path / "run.log",
        extra_env={
            "STREAM_SETTING": json.dumps(setting), "COCOTB_ANSI_OUTPUT": "0",
            "COCOTB_REWRITE_ASSERTION_FILES": "*_bench.py",  # not all that they import
        },
    )  # fmt: skip
    done, failed = get_results(results)
    assert done == 2 and failed == 0, (tmp_path / "run.log").read_text()[-4000:]

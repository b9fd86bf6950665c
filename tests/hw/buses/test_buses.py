"""Lookup engine and router behind standard buses, driven by bus models that are not ours, on Icarus."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the benches run inside of the simulator and import each other
from bus_designs import design_on

from hopforge.gen.packages.package import component_ports
from hopforge.gen.verilog.writer import to_verilog

needs_icarus = pytest.mark.skipif(shutil.which("iverilog") is None, reason="no Icarus")

DESIGNS = [
    ("axi4_lite", "lookup"),
    ("apb", "lookup"),
    ("wishbone", "lookup"),
    ("axi4_lite", "router_table"),
    pytest.param("apb", "router_table", marks=pytest.mark.study),
    pytest.param("wishbone", "router_table", marks=pytest.mark.study),
    pytest.param("wishbone", "router_lookup", marks=pytest.mark.study),
    pytest.param("axi4_lite", "router_lookup", marks=pytest.mark.study),
    pytest.param("apb", "router_lookup", marks=pytest.mark.study),
]


@needs_icarus
@pytest.mark.parametrize(("bus", "design"), DESIGNS)
def test_accesses_and_interrupts(bus: str, design: str, tmp_path: Path) -> None:
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner

    component = design_on(design, bus)
    (tmp_path / "dut.sv").write_text(to_verilog(component, "dut"))
    inputs = [port["name"] for port in component_ports(component) if port["direction"] == "input"]
    accesses = 300 if os.environ.get("HOPFORGE_STUDY") == "1" and design != "router_lookup" else 60
    setting = {"bus": bus, "design": design, "seed": 1, "accesses": accesses, "inputs": inputs}
    runner = get_runner("icarus")
    runner.build(
        sources=[tmp_path / "dut.sv"], hdl_toplevel="dut", build_dir=tmp_path, timescale=("1ns", "1ps"),
        log_file=tmp_path / "build.log",
    )  # fmt: skip
    results = runner.test(
        test_module="bus_bench", hdl_toplevel="dut", build_dir=tmp_path, test_dir=tmp_path,
        log_file=tmp_path / "run.log",
        extra_env={
            "BUS_SETTING": json.dumps(setting), "COCOTB_ANSI_OUTPUT": "0",
            "COCOTB_REWRITE_ASSERTION_FILES": "*_bench.py",  # not all that they import
        },
    )  # fmt: skip
    done, failed = get_results(results)
    assert done == 6 and failed == 0, (tmp_path / "run.log").read_text()[-4000:]

"""Generated 2×2 networks with AXI-Stream at their hosts, with the streams of cocotbext-axi on Icarus."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from hopforge.gen.packages.parts import part_files
from hopforge.model.config import parse_config

sys.path.insert(0, str(Path(__file__).parent))  # of the bench, which runs inside of the simulator

QUAD = """
name: quad
topology: {kind: mesh, radices: [2, 2]}
address: {width_bits: 14}
router: {vcs: 2, tag_bits: 4, host_ports: axi_stream, stream_beats: 5, MORE}
"""
LOOKUP = "lookup: {cache: {entries: 16, ways: 4}, tcam: {kind: flops, rows: 16}}\n"
NETWORKS = {
    "table": (QUAD.replace("MORE", "buffer_flits: 4, flit_bits: 32, link_latency_cycles: 2"), 50),
    "vct": (QUAD.replace("MORE", "switching: vct, buffer_flits: 8, flit_bits: 40, length_bits: 3, va: free_queue"), 50),
    "lookup": (QUAD.replace("MORE", "buffer_flits: 4, flit_bits: 64, route_computation: lookup") + LOOKUP, 50),
}
"""Configuration, and packets of each host; with 50 they go between all hosts and have every fault."""


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="no Icarus")
@pytest.mark.parametrize(
    "name", ["table", pytest.param("vct", marks=pytest.mark.study), pytest.param("lookup", marks=pytest.mark.study)]
)
def test_packets_between_hosts(name: str, tmp_path: Path) -> None:
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner

    text, packets = NETWORKS[name]
    files = part_files(parse_config(text), "network")
    (tmp_path / "quad.sv").write_text(files["quad_network.sv"])
    manifest = json.loads(files["quad_network.json"])
    programs = json.loads(files["quad_network_program.json"])["routers"] if name == "lookup" else []
    owns = [adapter["own"] for adapter in manifest["streams"]["adapters"]]
    setting = {"seed": 1, "packets": packets, "manifest": manifest, "programs": programs, "nowhere": max(owns) + 1}
    runner = get_runner("icarus")
    runner.build(
        sources=[tmp_path / "quad.sv"], hdl_toplevel="quad_network", build_dir=tmp_path, timescale=("1ns", "1ps"),
        log_file=tmp_path / "build.log",
    )  # fmt: skip
    results = runner.test(
        test_module="network_bench", hdl_toplevel="quad_network", build_dir=tmp_path, test_dir=tmp_path,
        log_file=tmp_path / "run.log",
        extra_env={
            "STREAM_SETTING": json.dumps(setting), "COCOTB_ANSI_OUTPUT": "0",
            "COCOTB_REWRITE_ASSERTION_FILES": "*_bench.py",  # not all that they import
        },
    )  # fmt: skip
    done, failed = get_results(results)
    assert done == 2 and failed == 0, (tmp_path / "run.log").read_text()[-4000:]

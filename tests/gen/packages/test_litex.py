"""The module of LiteX that goes with a package on Wishbone."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

from hopforge.gen.packages.package import write_package
from hopforge.gen.packages.parts import part_files
from hopforge.model.config import parse_config

TEXT = "{name: small, topology: {kind: mesh, radices: [2, 2]}, router: {vcs: 2, buffer_flits: 3}, csr: {bus: BUS}}"

_BENCH = """
module bench;
  reg clk = 0, rst = 1, cyc = 0; wire ack; wire [31:0] data;
  always #1 clk = ~clk;
  top dut (.sys_clk(clk), .sys_rst(rst), .cyc(cyc), .stb(cyc), .we(1'b0), .sel(4'hf), .adr(30'd0), .dat_w(32'd0),
           .ack(ack), .dat_r(data));
  initial begin
    repeat (4) @(posedge clk); rst <= 0; cyc <= 1;
    repeat (20) begin @(posedge clk); if (ack) begin $display("ID %h", data); $finish; end end
    $display("no answer"); $finish;
  end
endmodule
"""


def test_only_wishbone_has_one() -> None:
    assert "small_router0_litex.py" not in part_files(parse_config(TEXT.replace("BUS", "apb")), "router")
    text = part_files(parse_config(TEXT.replace("BUS", "wishbone")), "router")["small_router0_litex.py"]
    compile(text, "small_router0_litex.py", "exec")
    assert '("port__0__in_flit", 67, "i"),' in text and "SIZE = 0x20000" in text
    assert not any(f'("{port}"' in text for port in ("clk", "irq", "s_wb_ack"))


@pytest.mark.study  # needs LiteX, which hopforge does not: pip install litex==2024.12 migen==0.10.0
@pytest.mark.skipif(importlib.util.find_spec("litex") is None, reason="no LiteX")
@pytest.mark.skipif(shutil.which("iverilog") is None, reason="no Icarus")
def test_litex_elaborates_it_and_reads_its_id(tmp_path: Path) -> None:
    from migen.fhdl.verilog import convert

    write_package(part_files(parse_config(TEXT.replace("BUS", "wishbone")), "router"), tmp_path)
    spec = importlib.util.spec_from_file_location("small_litex", tmp_path / "small_router0_litex.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    dut = module.SmallRouter0()
    bus = (dut.bus.cyc, dut.bus.stb, dut.bus.we, dut.bus.sel, dut.bus.adr, dut.bus.dat_w, dut.bus.dat_r, dut.bus.ack)
    names = ("cyc", "stb", "we", "sel", "adr", "dat_w", "dat_r", "ack")
    for name, signal in zip(names, bus, strict=True):
        signal.name_override = name
    (tmp_path / "top.v").write_text(str(convert(dut, set(bus), name="top")))
    (tmp_path / "bench.v").write_text(_BENCH)
    subprocess.run(
        ["iverilog", "-g2012", "-s", "bench", "-o", "bench.vvp", "bench.v", "top.v", "small_router0.sv"], cwd=tmp_path,
        check=True,
    )  # fmt: skip
    done = subprocess.run(["vvp", "-n", "bench.vvp"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "ID 48525401" in done.stdout, done.stdout

"""The text of generated Verilog: equal on every run, without numbers for names, and the same circuit as yosys wrote."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import Component, In, Out

from hopforge.gen.tools.slang import slang_findings
from hopforge.gen.tools.yosys import YosysError, run_yosys
from hopforge.gen.verilog import writer as verilog
from hopforge.gen.verilog.writer import to_verilog
from hopforge.hw.router.router import Router
from hopforge.model.router.params import Route, RouterParams


class Lower(Component):
    """Adds what comes in.

    Latency: none.

    Parameters
    ----------
    width : int
        Bits.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__({"a": In(width), "begin": In(1), "sum": Out(width + 1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        held = Signal(self.width + 1)
        with m.If(self.begin):
            m.d.sync += held.eq(self.a + held)
        m.d.comb += self.sum.eq(held)
        return m


class Upper(Component):
    """Two of the lower, of which one sees a slice; widths that Verilog could widen."""

    a: In(8)
    b: In(8)
    few: In(4)
    begin: In(1)
    any: Out(1)
    wide: Out(12)
    both: Out(8)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.low, m.submodules.high = low, high = Lower(4), Lower(4)
        m.d.comb += [
            low.a.eq(self.a[:4]), high.a.eq(self.b[4:] & ~self.few), low.begin.eq(self.begin & self.a.any()),
            high.begin.eq(~self.begin | (self.a == self.b)),
            self.any.eq((low.sum ^ high.sum).any() & ~(self.a < self.b)),
            self.wide.eq((~self.few + (self.a ^ self.b)) - ~(self.a & self.b)),
        ]  # fmt: skip
        held = Signal(8, init=3)
        with m.Switch(self.few):
            with m.Case(1):
                m.d.sync += held[:4].eq(self.a[4:])
            with m.Case("1--0"):
                m.d.sync += held.eq(~(self.a & self.b))
            with m.Default():
                m.d.sync += held[7].eq(held[0])
        m.d.comb += self.both.eq(held)
        return m


def small_router() -> Router:
    params = RouterParams(
        ports=2, vcs=2, buffer_flits=2, routes=(Route(1), Route(2)), address_bits=1, width_bits=6, tag_bits=2
    )
    return Router(params=params)


_WIRES = "w:* t:$dff %co1:+[Q] %d i:* %d o:* %d"
"""All but ports and registers: a wire may have the name that another one had."""


def unproven(folder: Path, gold: str, gate: str, top: str) -> str:
    """Prove that both texts are the same circuit, register by register; return what yosys could not prove."""
    script = []
    for side, text in (("gold", gold), ("gate", gate)):
        (folder / f"{side}.sv").write_text(text)
        script += [f"read_verilog -sv {side}.sv", f"hierarchy -check -top {top}", "proc", "flatten", "memory_map"]
        script += ["opt_clean", f"rename {top} {side}", f"cd {side}"]
        script += [f"rename -hide {_WIRES}", "cd", f"design -stash {side}"]
    script += ["design -copy-from gold gold", "design -copy-from gate gate", "equiv_make gold gate pair"]
    script += ["hierarchy -top pair", "clean -purge", "equiv_simple", "equiv_induct", "equiv_status -assert", ""]
    try:
        log = run_yosys("\n".join(script), folder, name="equivalence")
    except YosysError as error:
        return str(error)
    assert int(re.findall(r"Of those cells (\d+) are proven", log)[-1]) > 10
    return ""


@pytest.mark.parametrize(("make", "top"), [(Upper, "upper"), (small_router, "router")])
def test_the_circuit_is_that_of_yosys(make, top: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = to_verilog(make(), top)
    assert slang_findings(text, top) == ()
    monkeypatch.setattr(verilog, "_readable", lambda text, *_: text.split("*/\n", 1)[1])
    # an instance that is called like a port gets another name, and registers are compared by name
    raw = re.sub(r"\\data\$\d+ ", "data_memory ", to_verilog(make(), top))
    assert unproven(tmp_path, raw, text, top) == ""
    wrong = text.replace(" & ", " | ", 1)
    assert wrong != text and unproven(tmp_path, raw, wrong, top)


def test_names_and_comments() -> None:
    text = to_verilog(Upper(), "upper")
    assert not re.search(r"\$(?!signed)", text)
    assert str(Path(__file__).parent) not in text
    assert "// upper_low: Lower (" in text and "// Adds what comes in.\n//\n// Latency: none.\n" in text
    assert "// Parameters: width = 4." in text
    assert re.search(r"^  // test_verilog\.py:\d+$", text, re.MULTILINE), "sources, without folders"
    assert "input wire begin_" in text and "input wire \\begin " in text, "only the top keeps a word of the language"
    assert "always_ff @(posedge clk) begin\n    if (begin_) begin\n      held <= " in text


def test_ports_stand_as_declared() -> None:
    component = small_router()
    text = to_verilog(component, "router")
    top = text[text.index("module router(") :].split(");")[0]
    ports = re.findall(r"^  (?:input|output) \w+ (?:\[\d+:0\] )?(\w+)", top, re.MULTILINE)
    declared = ["__".join(map(str, path)) for path, _, _ in component.signature.flatten(component)]
    assert len(ports) > 5
    assert ports == ["clk", "rst", *(name for name in declared if name in ports)]


def test_the_text_is_the_same_everywhere(tmp_path: Path) -> None:
    """Other hash seeds, folders and places of the package; nothing of them is in the text."""
    program = (
        "import sys; from hopforge.gen.packages.parts import part_files\n"
        "from hopforge.model.config import parse_config\n"
        "text = 'name: x\\ntopology: {kind: mesh, radices: [2, 2]}\\nrouter: {vcs: 2, buffer_flits: 2}\\n'\n"
        "sys.stdout.write(part_files(parse_config(text), 'router', router=1)['x_router1.sv'])"
    )
    texts = set()
    package = Path(verilog.__file__).resolve().parents[2]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "hopforge").symlink_to(Path(verilog.__file__).parents[2], target_is_directory=True)
    for number, place in enumerate((Path(verilog.__file__).parents[3], tmp_path / "elsewhere")):
        folder = tmp_path / f"run{number}"
        folder.mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": str(number + 1), "PYTHONPATH": str(place)}
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
        texts.add(done.stdout)
    assert len(texts) == 1
    text = texts.pop()
    assert str(tmp_path) not in text and str(package) not in text and os.sep + "src" + os.sep not in text
    assert not re.search(r"\$(?!signed|clog2)", text) and "\\" not in text

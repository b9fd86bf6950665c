"""The wrapper of memories: the same words as a list, replaceable, and readable by every tool."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import Component

from hopforge.gen.tools.slang import slang_findings
from hopforge.gen.verilog.memories import OWN_MEMORIES
from hopforge.gen.verilog.writer import to_verilog
from hopforge.hw.parts.sram import Sram
from hopforge.sim.drive.replay import Output, Replay, replay_amaranth
from hopforge.sim.drive.runner import replay_cocotb

needs_icarus = pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog is not installed")
WIDTH, DEPTH = 5, 6


class Pair(Component):
    """Two memories of one kind that are written alike; the second is read at the written address."""

    def __init__(self, bit_write: bool, asynchronous: bool, depth: int = DEPTH) -> None:
        self.rams = [
            Sram(depth=depth, width_bits=WIDTH, bit_write=bit_write, asynchronous=asynchronous) for _ in range(2)
        ]
        members = {path[0]: member for path, member, _ in self.rams[0].signature.flatten(self.rams[0])}
        super().__init__(members | {"other": members["r_data"]})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.first, m.submodules.second = first, second = self.rams
        for name in ("r_en", "r_addr", "w_en", "w_addr", "w_data"):
            if hasattr(self, name):
                m.d.comb += [getattr(ram, name).eq(getattr(self, name)) for ram in self.rams]
        m.d.comb += [second.r_addr.eq(self.w_addr), self.r_data.eq(first.r_data), self.other.eq(second.r_data)]
        return m


def accesses(bit_write: bool, asynchronous: bool, cycles: int = 300) -> Replay:
    """Random accesses and what a list of words answers; the old word where a read meets a write."""
    rng = np.random.default_rng(3)
    names = ("r_addr", "w_addr", "w_en", "w_data") + (() if asynchronous else ("r_en",))
    limits = [DEPTH, DEPTH, 1 << WIDTH if bit_write else 2, 1 << WIDTH] + [2] * (not asynchronous)
    driven = rng.integers(0, limits, (cycles, len(names))).astype(np.uint64)
    words, held, expected = [0] * DEPTH, (0, 0), []
    for read, write, enable, data, *wanted in driven.tolist():
        found = words[read], words[write]
        expected.append(found if asynchronous else held)
        held = found if wanted == [1] else held
        mask = enable if bit_write else enable * ((1 << WIDTH) - 1)
        words[write] = words[write] & ~mask | data & mask
    return Replay(names, (Output("r_data"), Output("other")), driven, np.array(expected, np.uint64))


@needs_icarus
@pytest.mark.parametrize(("bit_write", "asynchronous"), [
    (False, True), (True, False),
    *(pytest.param(both, both, marks=pytest.mark.study) for both in (False, True)),
])  # fmt: skip
def test_words(bit_write: bool, asynchronous: bool, tmp_path: Path) -> None:
    replay = accesses(bit_write, asynchronous)
    assert replay_amaranth(Pair(bit_write, asynchronous), replay).mismatches == 0
    text = to_verilog(Pair(bit_write, asynchronous), "pair")
    assert slang_findings(text, "pair") == ()
    assert len(re.findall(r"^module hopforge_\w+ ", text, re.MULTILINE)) == 1, "one module for both memories"
    run = replay_cocotb(text, "pair", replay, tmp_path, simulator="icarus").result
    assert (run.cycles, run.mismatches) == (300, 0)
    if not asynchronous:
        wrong = text.replace("    if (r_en)\n", "    if (r_en && !r_addr[0])\n")
        assert replay_cocotb(wrong, "pair", replay, tmp_path, simulator="icarus").result.mismatches > 50


def test_the_text_does_not_grow_with_the_words() -> None:
    texts = [to_verilog(Pair(True, False, depth=depth), "big") for depth in (8, 4096)]
    assert texts[0].count("\n") == texts[1].count("\n") < 150
    assert "always_ff" not in texts[1], "the array has two writers, its first contents and its port"


@needs_icarus
def test_modules_of_the_user(tmp_path: Path) -> None:
    """Two generated texts are compiled together; with the macro the user's module is taken, and none is needed."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.sv").write_text(to_verilog(Pair(False, False), name))
    head = re.search(r"^module hopforge_ram_1r1w .*?^\);\n", (tmp_path / "one.sv").read_text(), re.M | re.S)
    assert head is not None
    (tmp_path / "own.sv").write_text(f"{head[0]}  macro_of_the_user macro ();\nendmodule\nmodule macro_of_the_user;\n"
                                     "  initial $display(\"own %0d\", 1);\nendmodule\n")  # fmt: skip
    tops = ["-s", "one", "-s", "two"]
    compile_ = ["iverilog", "-g2012", "-o", "all.vvp", *tops]
    subprocess.run([*compile_, "one.sv", "two.sv"], cwd=tmp_path, check=True, capture_output=True)
    subprocess.run([*compile_, f"-D{OWN_MEMORIES}", "one.sv", "two.sv", "own.sv"], cwd=tmp_path, check=True)
    done = subprocess.run(["vvp", "all.vvp"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.count("own 1") == 4
    alone = subprocess.run([*compile_, f"-D{OWN_MEMORIES}", "one.sv"], cwd=tmp_path, capture_output=True, check=False)
    assert alone.returncode != 0

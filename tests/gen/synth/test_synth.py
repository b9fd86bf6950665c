"""Synthesis with a small cell library written here, and without one."""

import dataclasses
import gzip
import json
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import Component, In, Out

sys.path.insert(0, str(Path(__file__).parent))
from timed_library import GATED, LIBERTY, clock_gate

from hopforge.gen.design.blocks import Block, Registered, lookup_blocks
from hopforge.gen.design.router_blocks import allocator_blocks, router_blocks
from hopforge.gen.synth import area_and_delay as synth
from hopforge.gen.synth import timing as synth_timing
from hopforge.gen.synth.area_and_delay import synthesize, synthesize_config
from hopforge.gen.synth.cells import Library, gate_cell, read_library
from hopforge.gen.synth.result import SynthResult, medians
from hopforge.gen.synth.stages import DEEP_STAGES, by_stage
from hopforge.gen.tools.abc_recipes import RECIPES
from hopforge.hw.parts.sram import Sram
from hopforge.hw.ports.flit_buffer import FlitBuffer
from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.lookup.params import LookupParams


class Nand(Component):
    a: In(1)
    b: In(1)
    y: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.y.eq(~(self.a & self.b))
        return m


class Store(Component):
    """A memory as a submodule, as in the routing cache."""

    address: In(4)
    y: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = Sram(depth=16, width_bits=8)
        held = Signal(8)
        m.d.comb += [words.r_addr.eq(self.address), words.r_en.eq(1), self.y.eq(held)]
        m.d.sync += held.eq(~words.r_data)
        return m


class Held(Component):
    """Four registers with one enable."""

    enable: In(1)
    d: In(4)
    q: Out(4)

    def elaborate(self, platform):
        m = Module()
        held = Signal(4, reset_less=True)
        with m.If(self.enable):
            m.d.sync += held.eq(self.d)
        m.d.comb += self.q.eq(held)
        return m


@pytest.fixture
def library(tmp_path):
    path = tmp_path / "tiny.lib.gz"
    path.write_bytes(gzip.compress(LIBERTY.encode()))
    return path


class TestReadLibrary:
    def test_name_and_corner(self, library):
        found = read_library(library)
        assert (found.name, found.corner) == ("tiny", "typical, 1.1 V, 25 °C")

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"not a library", "not a liberty file: it has no library"),
            (b"\x1f\x8b\x08\x00 broken", "cannot read the cell library"),
            (b"library (empty) { }", "not a liberty file"),
        ],
    )
    def test_bad_file(self, tmp_path, content, message):
        path = tmp_path / "bad.lib"
        path.write_bytes(content)
        with pytest.raises(UserError, match=message):
            read_library(path)

    def test_missing_file(self, tmp_path):
        with pytest.raises(UserError, match="cannot read the cell library: No such file"):
            read_library(tmp_path / "none.lib")


class TestGateCell:
    @pytest.mark.parametrize(("latches", "name"), [(0, "GATE_X1"), (4, "GATE_X1"), (5, "GATE_X2"), (100, "GATE_X2")])
    def test_smallest_that_can_drive_the_latches(self, latches, name):
        assert gate_cell(Library("", "", GATED), latches).name == name

    def test_other_inputs_are_low(self):
        gate = gate_cell(Library("", "", clock_gate("SCAN", 1, 1, scan=True)), 0)
        assert gate.low == ("SE",)
        assert gate.instance("en", "ck", "out") == "SCAN _TECHMAP_REPLACE_ (.E(en), .CK(ck), .GCK(out), .SE(1'b0));"

    def test_without_gates(self):
        assert gate_cell(Library("", "", LIBERTY), 3) is None


class TestClockGates:
    def test_registers_with_an_enable(self):
        block = Block(name="held", what="", build=Held, clocked=True, clock_gates=True)
        best = synthesize(block, Library("gated", "", GATED), recipes=["area"])[0]
        assert (best.flops, best.cells) == (4, 1)
        assert best.area_um2 == 4 * 8 + 3
        plain = synthesize(dataclasses.replace(block, clock_gates=False), Library("gated", "", GATED), recipes=["area"])
        assert plain[0].cells > 8, "a multiplexer each, of at least two gates"

    def test_latches_and_their_gates(self):
        block = Block(
            name="buffer", what="", clocked=True,
            build=lambda: FlitBuffer(queues=1, depth=2, data_bits=3, note_bits=2, kind="latches"),
        )  # fmt: skip
        library = Library("gated", "", GATED)
        best = synthesize(block, library, recipes=["area"])[0]
        assert best.flops == 5, "the word on its way"
        assert best.area_um2 > 5 * 8 + 2 * 5 * 5 + 2 * 4, "with latches, gates of twice the drive, and the multiplexers"
        if shutil.which("sta"):
            assert best.sta_ns is not None and best.sta_ns < 1, "time borrowed by a latch is no period"

    def test_latches_need_a_gate(self):
        block = Block(
            name="buffer", what="", clocked=True,
            build=lambda: FlitBuffer(queues=1, depth=1, data_bits=1, note_bits=0, kind="latches"),
        )  # fmt: skip
        with pytest.raises(UserError, match="tiny: no cell with clock_gating_integrated_cell: latch_posedge"):
            synthesize(block, Library("tiny", "", LIBERTY), recipes=["area"])


class TestSynthesize:
    def test_one_gate(self, library):
        block = Block(name="nand", what="", build=Nand)
        best = synthesize(block, read_library(library), recipes=["area"])[0]
        assert (best.area_um2, best.cells, best.flops) == (2, 1, 0)
        assert best.delay_ns == pytest.approx(0.02, abs=0.003)
        if shutil.which("sta"):
            assert best.sta_ns == pytest.approx(0.02, abs=0.003)

    def test_registers_count(self, library):
        block = Block(name="nand", what="", build=lambda: Registered(Nand()), clocked=True)
        best = synthesize(block, read_library(library), recipes=["area"])[0]
        assert (best.flops, best.cells) == (3, 1)
        assert best.area_um2 == 3 * 8 + 2
        if shutil.which("sta"):
            # y: clock to output, gate, setup; the others: inputs change 0.1 ns after the clock edge, then setup
            assert best.stages_ns == pytest.approx({"y": 0.05 + 0.02 + 0.03, "a_q": 0.13, "b_q": 0.13}, abs=0.003)
            assert best.sta_ns == 0.13

    def test_memories_are_outside(self, library):
        block = Block(name="store", what="", build=Store, clocked=True)
        best = synthesize(block, read_library(library), recipes=["area"])[0]
        assert best.flops == 8
        assert (
            8 <= best.cells <= 25
        )  # an inverter and the reset of each bit; 16 words of 8 bits would be 128 flip-flops

    def test_without_a_library(self):
        best = synthesize(Block(name="nand", what="", build=lambda: Registered(Nand())), None)[0]
        assert (best.flops, best.area_um2, best.delay_ns) == (3, None, None)
        assert 1 <= best.cells <= 2
        assert best.levels is not None and 1 <= best.levels <= 2

    def test_best_is_the_smallest_within_the_aim(self):
        def result(name, area, delay):
            return SynthResult(block="b", recipe=name, area_um2=area, delay_ns=delay)

        block = Block(name="b", what="", build=Nand, aim_ns=0.2)
        results = [result("slow", 1, 0.3), result("big", 9, 0.1), result("good", 5, 0.2), result("slower", 2, 0.4)]
        order = sorted(results, key=lambda r: synth._rank(block, r))
        assert [r.recipe for r in order] == ["good", "big", "slow", "slower"]

    def test_medians_are_of_areas_and_delays_each_for_itself(self):
        def result(area, delay):
            return SynthResult(block="b", recipe="r", area_um2=area, delay_ns=delay)

        assert medians([result(3.0, 0.5), result(1.0, 0.9), result(2.0, 0.1)]) == (2.0, 0.5)
        assert medians([result(3.0, 0.5)]) is None

    def test_unknown_recipe(self, library):
        block = Block(name="nand", what="", build=Nand)
        with pytest.raises(UserError, match="unknown recipe 'fastest'; there are fraig-fast"):
            synthesize(block, read_library(library), recipes=["fastest"])

    def test_time_limit(self, library):
        block = Block(name="torus", what="", build=lookup_blocks(LookupParams())["torus"].build)
        with pytest.raises(UserError, match=r"took longer than 0\.01 s"):
            synthesize(block, read_library(library), recipes=["area"], timeout_s=0.01)

    @pytest.mark.skipif(shutil.which("sta") is None, reason="no OpenSTA")
    def test_time_limit_of_opensta(self, library, monkeypatch):
        monkeypatch.setattr(synth_timing, "LIMIT_S", 0.001)
        block = Block(name="held", what="", build=Held, clocked=True)
        with pytest.raises(UserError, match=r"no recipe came to an end: .*OpenSTA did not end within 0\.001 s"):
            synthesize(block, read_library(library), recipes=["area"])


def config():
    return parse_config('{"name": "small", "topology": {"kind": "torus", "radices": [4, 4]}}')


def test_table_of_a_configuration(tmp_path, library):
    names, recipes = ["crc_index", "fat_tree"], ["area", "lut-fast"]
    seen = []
    found = synthesize_config(
        config(), library, names=names, recipes=recipes, folder=tmp_path / "out", progress=seen.append
    )
    assert seen == names == [results[0].block for results in found]
    table = pd.read_csv(tmp_path / "out" / "synth.csv")
    assert set(table["block"]) == set(names)
    assert (table["area_um2"] > 0).all()
    content = json.loads((tmp_path / "out" / "synth.json").read_text())
    assert content["library"] == {"name": "tiny", "corner": "typical, 1.1 V, 25 °C"}
    assert content["recipes"] == RECIPES
    assert (tmp_path / "out" / "crc_index.v").exists()


def test_router_of_a_configuration_and_its_parts():
    text = (
        '{"name": "small", "topology": {"kind": "mesh", "radices": [3, 3]}, '
        '"router": {"vcs": 2, "buffer_flits": 2, "va": "wavefront"}}'
    )
    every = router_blocks(parse_config(text))
    assert list(every) == ["router", "input_unit", "output_unit", "crossbar", "switch_allocator", "vc_allocator"]
    assert every["router"].what.startswith("router 4: 5 ports, 2 VCs, 64 bits, 2 flits, va wavefront")
    assert every["router"].aim_ns is None
    best = synthesize(every["output_unit"], None)[0]
    # per VC: a counter of 2 bits, whether it is 0, whether the VC is free
    assert best.flops == 2 * 4


def test_units_that_choose_one_of_several_ports():
    text = (
        "name: a\ntopology: {kind: hyperx, sizes: [2, 2]}\nrouting: {algorithm: minimal, spread: flow}\n"
        "router: {vcs: 2, buffer_flits: 2, lookahead: true, rc_cycles: 1}\n"
    )
    every = router_blocks(parse_config(text))
    gates = {name: synthesize(every[name], None)[0] for name in ("spread_choice", "next_route")}
    assert all(best.cells > 50 and best.flops == 0 for best in gates.values())
    one = router_blocks(parse_config(text.replace("spread: flow", "ways: one")))
    assert "spread_choice" not in one and synthesize(one["next_route"], None)[0].cells < 50


def test_allocators_by_name():
    every = allocator_blocks()
    assert every["arbiter64"].aim_ns == 0.38
    names = {f"{stage}_{kind}_{ports}x{vcs}" for stage in ("va", "sa") for kind in ("input_first", "output_first")
             for ports in (5, 8, 16) for vcs in (1, 2, 4)}  # fmt: skip
    assert names <= set(every)
    iterated = {f"{stage}_output_first{turns}_{size}" for stage in ("va", "sa") for turns in (2, 4)
                for size in ("5x2", "5x4", "8x2", "8x4") if (stage, size) != ("va", "8x4")}  # fmt: skip
    slow = {name for name, block in every.items() if block.on_request}
    assert slow == {"va_input_first_16x4", "va_output_first_16x4"} | iterated
    best = synthesize(every["arbiter5"], None)[0]
    assert best.flops == 4, "a thermometer code of which bit 0 is always 0"


def test_unknown_set_of_blocks(tmp_path):
    with pytest.raises(UserError, match="unknown set of blocks 'alu'; there are lookup, router, allocators"):
        synthesize_config(config(), blocks="alu", folder=tmp_path)


def test_unknown_block(tmp_path):
    with pytest.raises(UserError, match="unknown block 'alu'; there are crc_index, torus, fat_tree"):
        synthesize_config(config(), names=["alu"], folder=tmp_path)


def test_generic_gates_of_the_reductions_stay_shallow():
    # A ripple of 48 bits would have more than 48 levels; the trees have fewer than half.
    found = synthesize(lookup_blocks(LookupParams())["torus"], None)[0]
    assert found.levels is not None and found.levels < 24


def test_ends_of_paths_belong_to_stages() -> None:
    ends = {
        "keys.partial": 0.44, "keys.decided": 0.41, "keys.place0": 0.4, "compared": 0.43, "cache.match": 0.42,
        "responses.word1": 0.39, "mshrs.done": 0.38, "control.own_lo": 0.37, "setup": 0.45, "elsewhere": 0.1,
    }  # fmt: skip
    assert by_stage(ends) == {
        "A: decide": 0.44, "A: hash, Q": 0.4, "B: choose, read": 0.43, "C1: compare": 0.42, "C2: answer, write": 0.39,
        "M: MSHRs, TCAM port": 0.38, "registers, bus, counters": 0.37, "setup: share of three periods": 0.45,
        "others": 0.1,
    }  # fmt: skip
    assert list(by_stage(ends)) == [*(stage for stage, _ in DEEP_STAGES if stage in by_stage(ends)), "others"]

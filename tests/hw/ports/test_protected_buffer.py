"""Flit buffers with check bits: every single fault, and routers in whose buffers bits change all the time."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.sim import Simulator

sys.path.insert(0, str(Path(__file__).parents[1] / "router"))
from test_router import ROUTERS, run, some_params

from hopforge.hw.ports.flit_buffer import FlitBuffer
from hopforge.hw.ports.input_unit import InputUnit
from hopforge.hw.ports.protected_buffer import ProtectedBuffer
from hopforge.hw.router.controlled import ControlledRouter
from hopforge.model.router.csr import router_csr_map


class FaultyBuffer(FlitBuffer):
    """Flip-flops, of which ``fault_bit`` of word ``fault_at`` is inverted at the end of a cycle with ``fault``."""

    made: list["FaultyBuffer"] = []

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters | {"kind": "flip_flops"})
        self.bits = self.data_bits + self.note_bits
        self.fault, self.fault_at, self.fault_bit = Signal(), Signal(16), Signal(16)
        self.made.append(self)

    def _flip_flops(self, m: Module) -> list[list[Any]]:
        words = super()._flip_flops(m)
        every = [word for of_queue in words for word in of_queue]
        self.strike(m, every)
        return words

    def strike(self, m: Module, words: list[Any]) -> None:
        """Invert the bit, unless a flit is just being written: that is after it."""
        for number, word in enumerate(words):
            with m.If(self.fault & (self.fault_at == number) & ~self.arrives.any()):
                m.d.sync += word.eq(word ^ (Const(1, 1) << self.fault_bit)[: len(word)])


class AgeingBuffer(FaultyBuffer):
    """Bits change by themselves, at most one in a word until it is written again."""

    def strike(self, m: Module, words: list[Any]) -> None:
        state = Signal(31, init=0x2A5)
        m.d.sync += state.eq(Cat(state[30] ^ state[27], state))
        struck = Signal(len(words))
        fresh = ~struck.bit_select(self.fault_at[:5], 1)
        here = self.fault_at < len(words)
        m.d.comb += [
            self.fault_at.eq(state[3:8]),
            self.fault_bit.eq(state[9:15]),
            self.fault.eq(here & (self.fault_bit < self.bits) & (state[20:22] == 0) & fresh),
        ]
        for number in range(len(words)):
            q, place = divmod(number, self.depth)
            written = self.arrives[q] & ((self.write_at[q] == place) if self.depth > 1 else 1)
            with m.If(written):
                m.d.sync += struck[number].eq(0)
            with m.Elif(self.fault & (self.fault_at == number) & ~self.arrives.any()):
                m.d.sync += struck[number].eq(1)
        super().strike(m, words)


def simulate(dut: Any, bench: Any) -> None:
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("protection", ["none", "parity", "secded"])
def test_every_single_fault(protection: str) -> None:
    """Every bit of every place: found with parity, corrected with SECDED, unnoticed without."""
    shape: dict[str, Any] = {"queues": 2, "depth": 2, "data_bits": 70, "note_bits": 5, "kind": "flip_flops"}
    if protection == "none":
        stored: Any = FaultyBuffer(**shape)
        dut: Any = stored
    else:
        dut = ProtectedBuffer(**shape, protection=protection, flit_buffer=FaultyBuffer)  # type: ignore[arg-type]
        stored = dut.stored
    rng = np.random.default_rng(1)
    found = {"detected": 0, "corrected": 0, "wrong": 0}

    async def bench(ctx: Any) -> None:
        for at in range(4):
            q, place = divmod(at, 2)
            for bit in range(stored.bits):
                word, note = int(rng.integers(1 << 60)) << 10 | bit, int(rng.integers(32))
                for signal, value in ((dut.w_data, word), (dut.w_note, note), (dut.arrives, 1 << q), (dut.read_at, at)):
                    ctx.set(signal, value)
                for signals in (dut.write_at, dut.note_at):
                    ctx.set(signals[q], place)
                await ctx.tick()
                ctx.set(dut.arrives, 0)
                for signal, value in ((stored.fault, 1), (stored.fault_at, at), (stored.fault_bit, bit)):
                    ctx.set(signal, value)
                await ctx.tick()
                ctx.set(stored.fault, 0)
                same = (ctx.get(dut.data), ctx.get(dut.notes[q])) == (word, note)
                if protection == "none":
                    found["wrong"] += not same
                    continue
                if ctx.get(dut.data_wrong) or ctx.get(dut.note_wrong) >> q & 1:
                    found["detected"] += 1
                elif ctx.get(dut.data_repaired) or ctx.get(dut.note_repaired) >> q & 1:
                    found["corrected"] += same
                else:
                    found["wrong"] += 1

    simulate(dut, bench)
    fate = {"none": "wrong", "parity": "detected", "secded": "corrected"}[protection]
    assert found == {"detected": 0, "corrected": 0, "wrong": 0} | {fate: 4 * stored.bits}


@pytest.mark.parametrize(
    "name",
    ["escape", *(pytest.param(name, marks=pytest.mark.study) for name in ("islip", "cut-through", "free queue"))],
)
def test_a_router_does_not_notice_what_is_corrected(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every output in every cycle is that of the golden router, while bits change in all of its buffers."""
    monkeypatch.setitem(InputUnit.__init__.__kwdefaults__, "flit_buffer", AgeingBuffer)
    rng = np.random.default_rng(len(name))
    outside = run(some_params(rng, **ROUTERS[name], protection="secded"), 120, len(name))
    assert len(outside.received) > 5


def test_without_protection_a_router_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(InputUnit.__init__.__kwdefaults__, "flit_buffer", AgeingBuffer)
    params = some_params(np.random.default_rng(5), **ROUTERS["islip"])
    with pytest.raises(AssertionError):
        run(params, 120, 5)


@pytest.mark.parametrize("protection", ["parity", "secded"])
def test_flits_with_changed_bits_are_counted(protection: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single flit waits while one of its bits changes; it is counted once, and the interrupt's source is told."""
    FaultyBuffer.made.clear()
    monkeypatch.setitem(InputUnit.__init__.__kwdefaults__, "flit_buffer", FaultyBuffer)
    params = some_params(np.random.default_rng(5), ports=2, vcs=1, buffer_flits=2, rc_cycles=0, protection=protection)
    params = type(params)(**{**vars(params), "routes": (params.routes[0].__class__(2),) * 2})
    dut = ControlledRouter(params=params, events=True)
    registers = router_csr_map(params)
    counters = [name for name in ("FLIT_ERRORS", "FLIT_REPAIRS") if name in registers]
    assert len(counters) == {"parity": 1, "secded": 2}[protection]
    told = []

    async def bench(ctx: Any) -> None:
        pins = dut.port[0]
        for cycle in range(12):
            ctx.set(pins.in_valid, cycle == 0)
            ctx.set(pins.in_flit, {"kind": 3, "vc": 0, "data": 1 << 20})
            for buffer in FaultyBuffer.made[:1]:
                ctx.set(buffer.fault, cycle == 1)
                ctx.set(buffer.fault_bit, 20)
            told.append(ctx.get(dut.memory_error))
            await ctx.tick()
        for name in ("FLIT_ERRORS", "FLIT_REPAIRS"):
            if name not in registers:
                continue
            ctx.set(dut.csr.addr, registers[name].address)
            ctx.set(dut.csr.re, 1)
            await ctx.tick()
            found = ctx.get(dut.csr.rdata)
            assert found == int((name == "FLIT_ERRORS") == (protection == "parity")), name

    simulate(dut, bench)
    assert sum(told) == 1

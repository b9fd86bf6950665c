"""Faults in the flit buffers of a whole router, one at a time, each from reset: what becomes of them at its ports."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import ResetInserter, Signal
from amaranth.sim import Simulator

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "router"))
from test_protected_buffer import FaultyBuffer
from test_router import ROUTERS, Neighbours, some_params

from hopforge.hw.ports.input_unit import InputUnit
from hopforge.hw.router.router import Router
from hopforge.model.router.flit import Flit
from hopforge.model.router.golden import RouterModel
from hopforge.model.router.params import RouterParams

BEFORE, AFTER = 12, 30
"""Cycles of traffic before a fault, and cycles in which it can show itself."""


def struck_router(params: RouterParams, every: int) -> list[str]:
    """Return the fate of a fault in every so many bits of the buffers: detected, corrected, wrong, unread."""
    dut: Any = Router(params=params)
    reset = Signal()
    FaultyBuffer.made.clear()
    simulator = Simulator(ResetInserter(reset)(dut))  # makes the buffers
    buffers = list(FaultyBuffer.made)
    assert len(buffers) == params.ports
    words = range(params.vcs * params.buffer_flits)
    sites = [(each, word, bit) for each in buffers for word in words for bit in range(each.bits)][::every]
    assert len(sites) > 4
    fates = []

    async def bench(ctx: Any) -> None:
        for number, (buffer, word, bit) in enumerate(sites):
            ctx.set(reset, 1)
            await ctx.tick()
            ctx.set(reset, 0)
            fates.append(await _fate(ctx, number, buffer, word, bit))

    async def _fate(ctx: Any, number: int, buffer: FaultyBuffer, word: int, bit: int) -> str:
        golden, outside = RouterModel(params), Neighbours(params, np.random.default_rng(number), len(params.routes))
        outside.load, outside.kindness = 1.0, 0.4  # buffers fill
        struck = wrong = False
        told = ""
        for cycle in range(BEFORE + AFTER):
            row = outside.inputs()
            for pins, port in zip(dut.port, row, strict=True):
                ctx.set(pins.in_valid, port.flit is not None)
                ctx.set(pins.in_flit, (port.flit or Flit(0, 0, 0))._asdict())
                ctx.set(pins.out_credit_valid, port.credit is not None)
                ctx.set(pins.out_credit_vc, port.credit or 0)
            strikes = cycle >= BEFORE and not struck
            for signal, value in ((buffer.fault, strikes), (buffer.fault_at, word), (buffer.fault_bit, bit)):
                ctx.set(signal, value)
            struck |= strikes and not ctx.get(buffer.arrives)
            want = golden.step(row, [])[0]
            for pins, port in zip(dut.port, want, strict=True):
                flit = Flit(*(ctx.get(getattr(pins.out_flit, name)) for name in Flit._fields))
                credit = ctx.get(pins.in_credit_vc) if ctx.get(pins.in_credit_valid) else None
                wrong |= (flit if ctx.get(pins.out_valid) else None, credit) != (port.flit, port.credit)
            if params.protection is not None:
                for event, fate in (("flit_wrong", "detected"), ("flit_repaired", "corrected")):
                    if any(ctx.get(getattr(dut, event)[i]) for i in range(params.ports)):
                        told = told or fate
            outside.observe(want)
            await ctx.tick()
        assert struck
        if told == "corrected" and wrong:
            return "wrong"
        return told or ("wrong" if wrong else "unread")

    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return fates


@pytest.mark.parametrize(
    ("protection", "every"),
    [("parity", 131), ("secded", 151)]
    + [pytest.param(code, 1, marks=pytest.mark.study) for code in (None, "parity", "secded")],
)
def test_no_fault_in_a_buffer_is_overlooked(protection: Any, every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(InputUnit.__init__.__kwdefaults__, "flit_buffer", FaultyBuffer)
    params = some_params(np.random.default_rng(3), **ROUTERS["islip"], protection=protection)
    found = Counter(struck_router(params, every))
    fate = {None: "wrong", "parity": "detected", "secded": "corrected"}[protection]
    assert found[fate] > found["unread"] // 2
    assert set(found) <= {fate, "unread"}

"""Words with check bits: every change of one and two bits, and what the circuit says of it."""

from itertools import combinations
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from hopforge.hw.parts.code_word import CodeWordCheck, coded


@pytest.mark.parametrize(("protection", "data_bits"), [("parity", 7), ("secded", 1), ("secded", 6), ("secded", 11)])
def test_every_change_of_one_and_two_bits(protection: Any, data_bits: int) -> None:
    m = Module()
    m.submodules.check = dut = CodeWordCheck(data_bits=data_bits, protection=protection)
    data, changes = Signal(data_bits), Signal(dut.word_bits)
    m.d.comb += dut.word.eq(coded(data, protection) ^ changes)
    sets = [bits for count in (0, 1, 2) for bits in combinations(range(dut.word_bits), count)]

    async def bench(ctx: Any) -> None:
        for number, bits in enumerate(sets):
            word = (0x5A3 * number + 1) & (1 << data_bits) - 1
            ctx.set(data, word)
            ctx.set(changes, sum(1 << bit for bit in bits))
            await ctx.delay(1e-9)
            found = ctx.get(dut.wrong), ctx.get(dut.repaired)
            if protection == "parity":
                assert found == (len(bits) % 2, 0)
            else:
                assert found == ((0, 0), (0, 1), (1, 0))[len(bits)]
            if not found[0] and len(bits) < 2:
                assert ctx.get(dut.data) == word
                assert ctx.get(dut.word_repaired) == ctx.get(dut.word) ^ sum(1 << bit for bit in bits)

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()

"""Sram against a list of words."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.hw.parts.sram import Sram


@pytest.mark.parametrize("bit_write", [False, True])
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 5, 8])
def test_reads_old_contents_and_holds(depth: int, asynchronous: bool, bit_write: bool) -> None:
    width = 6
    dut = Sram(depth=depth, width_bits=width, bit_write=bit_write, asynchronous=asynchronous)
    rng = np.random.default_rng(depth)

    async def bench(ctx):
        words, held = [0] * depth, 0
        for _ in range(150):
            r_addr, w_addr = (int(x) for x in rng.integers(depth, size=2))
            data, r_en = int(rng.integers(1 << width)), int(rng.integers(2))
            enable = int(rng.integers(1 << width)) if bit_write else int(rng.integers(2))
            ctx.set(dut.w_en, enable)
            ctx.set(dut.w_data, data)
            if depth > 1:
                ctx.set(dut.r_addr, r_addr)
                ctx.set(dut.w_addr, w_addr)
            if not asynchronous:
                ctx.set(dut.r_en, r_en)
            assert ctx.get(dut.r_data) == (words[r_addr] if asynchronous else held)
            if r_en:
                held = words[r_addr]
            mask = enable if bit_write else enable * ((1 << width) - 1)
            words[w_addr] = words[w_addr] & ~mask | data & mask
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize(("name", "parameters"), [("depth", (0, 1)), ("width_bits", (1, 0))])
def test_bad_parameters(name: str, parameters: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least 1, not 0"):
        Sram(depth=parameters[0], width_bits=parameters[1])

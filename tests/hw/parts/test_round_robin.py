"""RoundRobin against counting from a pointer."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.hw.parts.round_robin import RoundRobin


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8])
def test_first_request_at_or_after_the_pointer(width: int) -> None:
    dut = RoundRobin(width=width)
    rng = np.random.default_rng(width)

    async def bench(ctx):
        pointer = 0
        for _ in range(300):
            requests = int(rng.integers(1 << width))
            advance, stay = ((0, 0), (1, 0), (0, 1))[int(rng.integers(3))] if requests else (0, 0)
            ctx.set(dut.requests, requests)
            ctx.set(dut.advance, advance)
            ctx.set(dut.stay, stay)
            chosen = next((n % width for n in range(pointer, pointer + width) if requests >> n % width & 1), None)
            assert ctx.get(dut.grant) == (0 if chosen is None else 1 << chosen)
            if advance:
                pointer = (chosen + 1) % width
            elif stay:
                pointer = chosen
            if width > 1:
                await ctx.tick()

    simulator = Simulator(dut)
    if width > 1:
        simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_bad_width() -> None:
    with pytest.raises(ValueError, match="width must be at least 1, not 0"):
        RoundRobin(width=0)

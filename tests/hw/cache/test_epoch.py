"""EpochControl: no line of an old epoch ever looks new, however flushes and scrubs meet."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.hw.cache.epoch import EpochControl


@pytest.mark.parametrize("request_rate", [0.02, 0.2, 0.6])
@pytest.mark.parametrize(("epoch_bits", "rows"), [(1, 1), (1, 4), (2, 2), (3, 8)])
def test_epochs_never_meet_again(epoch_bits: int, rows: int, request_rate: float) -> None:
    dut = EpochControl(epoch_bits=epoch_bits, rows=rows)
    rng = np.random.default_rng(epoch_bits * 100 + rows)
    flushes = 0

    async def bench(ctx):
        nonlocal flushes
        numbers = [set() for _ in range(rows)]  # per row: numbers of the epochs of which it may hold lines
        owed = False
        for _ in range(1500):
            request = bool(rng.random() < request_rate)
            ctx.set(dut.request, request)
            scrubbed = bool(ctx.get(dut.active)) and rng.random() < 0.5
            ctx.set(dut.scrubbed, scrubbed)
            epoch, row = ctx.get(dut.epoch), ctx.get(dut.row)
            begin, waits = bool(ctx.get(dut.begin)), bool(ctx.get(dut.flush_wait))
            assert ctx.get(dut.event) == (request or begin)
            assert waits == owed, "a flush waits if and only if one was deferred and has not begun"
            if not waits:
                for lines in numbers:
                    lines.add(epoch)  # lines are written in the current epoch, except while a flush waits
            if scrubbed:
                numbers[row] &= {epoch}
            owed = (owed or request) and not begin
            if begin:
                flushes += 1
                assert all((epoch + 1) % 2**epoch_bits not in lines for lines in numbers)
            await ctx.tick()
            assert ctx.get(dut.epoch) == (epoch + begin) % 2**epoch_bits

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert flushes > 5


def test_scrubber_rests_when_all_rows_are_clean() -> None:
    dut = EpochControl(epoch_bits=2, rows=4)

    async def bench(ctx):
        ctx.set(dut.request, 1)
        await ctx.tick()
        ctx.set(dut.request, 0)
        for row in range(4):
            assert (ctx.get(dut.active), ctx.get(dut.row)) == (1, row)
            ctx.set(dut.scrubbed, 1)
            await ctx.tick()
        ctx.set(dut.scrubbed, 0)
        assert ctx.get(dut.active) == 0

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_bad_parameters() -> None:
    with pytest.raises(ValueError, match="epoch_bits must be at least 1, not 0"):
        EpochControl(epoch_bits=0, rows=4)
    with pytest.raises(ValueError, match="rows must be a power of two, not 6"):
        EpochControl(epoch_bits=2, rows=6)

"""Counters in slices, and numbers in halves, against plain addition."""

import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from hopforge.hw.parts.plus_one import count_in_halves, plus_one
from hopforge.hw.parts.sliced_counter import sliced_counter, slices


def simulate(m, bench):
    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("width", [8, 11])
def test_every_slice_steps_and_wraps(width):
    """Clears and gaps fall everywhere; between them the counter runs through all of its numbers."""
    m = Module()
    event, clear = Signal(), Signal()
    value = sliced_counter(m, "events", event, clear, width_bits=width)
    rng = random.Random(width)

    async def bench(ctx):
        count, before = 0, 0
        for cycle in range(3 << width):
            runs_through = cycle // (1 << width) == 1
            happens = 1 if runs_through else int(rng.random() < 0.8)
            clears = 0 if runs_through else int(rng.random() < 0.03)
            ctx.set(event, happens)
            ctx.set(clear, clears)
            assert ctx.get(value) == count, cycle
            await ctx.tick()
            count = 0 if clears else (count + before) % (1 << width)
            before = happens

    simulate(m, bench)


@pytest.mark.parametrize("width", [1, 2, 5, 8])
def test_a_number_in_halves_counts_wraps_and_is_cleared(width):
    m = Module()
    number, low_full, step, clear = Signal(width), Signal(), Signal(), Signal()
    count_in_halves(m, number, low_full, step, clear)
    rng = random.Random(width)

    async def bench(ctx):
        count = 0
        for _ in range(3 << width):
            steps, clears = int(rng.random() < 0.9), int(rng.random() < 0.01)
            ctx.set(step, steps)
            ctx.set(clear, clears)
            assert ctx.get(number) == count
            half = (width + 1) // 2
            assert ctx.get(low_full) == (count % (1 << half) == (1 << half) - 1)
            await ctx.tick()
            count = 0 if clears else (count + steps) % (1 << width)

    simulate(m, bench)


@pytest.mark.parametrize("width", [1, 3, 6])
def test_plus_one_wraps(width):
    m = Module()
    number, following = Signal(width), Signal(width)
    m.d.comb += following.eq(plus_one(number))

    async def bench(ctx):
        for value in range(1 << width):
            ctx.set(number, value)
            assert ctx.get(following) == (value + 1) % (1 << width)

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("width", [8, 32])
def test_slices_lie_side_by_side_up_to_the_top(width):
    found = slices(width)
    assert found[0][0] == 4
    assert found[-1][1] == width
    assert [end for _, end in found[:-1]] == [start for start, _ in found[1:]]

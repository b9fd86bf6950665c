"""The inference block against the network in whole numbers, every sum of the last layer and every cycle count."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.hw.agents.dqn_inference import SHIFT_BITS, DqnInference
from hopforge.model.dqn.int8_network import quantised
from hopforge.model.dqn.shape import NetworkShape
from hopforge.sim.benches.dqn_inference import memory_rows


@pytest.mark.parametrize(
    ("widths", "lanes", "scale", "bits"),
    [((13, 9, 8, 7, 4), 4, 1.0, 8), ((7, 5, 6, 3, 2), 8, 4.0, 12), ((3, 4, 2, 3, 5), 2, 1.0, 9),
     ((1, 9, 5, 6, 3), 4, 1.0, 8), ((2, 9, 3, 5, 3), 4, 1.0, 11)],  # blocks that wait until the one before has left
)
def test_every_advantage(widths: tuple[int, ...], lanes: int, scale: float, bits: int) -> None:
    shape, rng = NetworkShape(*widths), np.random.default_rng(len(widths) * lanes)
    seen = rng.random((12, widths[0]))
    seen[0], seen[1] = 0, 1
    network = quantised(shape, shape.drawn(rng, 0.5) * scale, seen, bits)
    whole = network.whole(seen)
    dut = DqnInference(widths=widths, lanes=lanes, activation_bits=bits)
    rows, biases = memory_rows(dut, network)
    assert (len(rows), len(biases)) == (dut.rows, dut.bias_rows)
    found: list[list[int]] = []
    actions: list[int] = []

    async def bench(ctx):
        ctx.set(dut.shifts, sum(shift << (SHIFT_BITS * k) for k, shift in enumerate(network.shifts)))
        for name, contents in (("w", rows), ("b", biases)):
            for address, word in enumerate(contents):
                ctx.set(getattr(dut, f"{name}_en"), 1)
                ctx.set(getattr(dut, f"{name}_addr"), address)
                ctx.set(getattr(dut, f"{name}_data"), word)
                await ctx.tick()
            ctx.set(getattr(dut, f"{name}_en"), 0)
        for observation in whole:
            for place, value in enumerate(observation):
                ctx.set(dut.x_en, 1)
                ctx.set(dut.x_addr, place)
                ctx.set(dut.x_data, int(value))
                await ctx.tick()
            ctx.set(dut.x_en, 0)
            ctx.set(dut.start, 1)
            cycles, sums = 1, []
            await ctx.tick()
            ctx.set(dut.start, int(rng.integers(2)))  # ignored while it is busy
            while True:
                if ctx.get(dut.advantage_valid):
                    sums.append(ctx.get(dut.advantage))
                cycles += 1
                if ctx.get(dut.done):
                    ctx.set(dut.start, 0)
                    break
                assert ctx.get(dut.busy)
                await ctx.tick()
            await ctx.tick()
            assert not ctx.get(dut.busy)
            assert cycles == dut.cycles
            found.append(sums)
            actions.append(ctx.get(dut.action))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert found == network.advantages(whole).tolist()
    assert actions == network.actions(whole).tolist()
    assert len({tuple(sums) for sums in found}) > 4


def test_cycles_of_the_networks_of_the_definition() -> None:
    # 13 inputs are faster than 64 sums can leave: 15 + 3 · 64; then four blocks of 258; a block's way out, and a cycle
    layers = (15 + 3 * 64 + 64 + 1, 4 * 258 + 64 + 1, 4 * 258 + 64 + 1, 258 + 4 + 1)
    assert DqnInference(widths=(13, 256, 256, 256, 4), lanes=64).cycles == 1 + sum(layers) == 2730
    # with a register on the way out a cycle more for each of the three hidden layers
    assert DqnInference(widths=(13, 256, 256, 256, 4), lanes=64, activation_bits=12).cycles == 2733
    with pytest.raises(ValueError, match="actions and lanes must be 2 or more, not 1 and 4"):
        DqnInference(widths=(13, 8, 8, 8, 1), lanes=4)
    with pytest.raises(ValueError, match="sum_bits must be 16 … 48, not 8"):
        DqnInference(widths=(13, 8, 8, 8, 4), lanes=4, sum_bits=8)
    with pytest.raises(ValueError, match="activation_bits must be 8 … 12, not 13"):
        DqnInference(widths=(13, 8, 8, 8, 4), lanes=4, activation_bits=13)

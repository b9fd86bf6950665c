"""The table behind the reduction: every destination gives the port that the chosen pattern names."""

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import Component, In, Out
from amaranth.sim import Simulator

from hopforge.hw.keys.direct_mapping import DirectMapping
from hopforge.hw.keys.reduction_parameters import ReductionParameters
from hopforge.hw.keys.reduction_setup import ReductionSetup

PARAMETERS = ReductionParameters(
    address_bits=12, functions=("mesh", "torus"), chunk_bits=(3,), comparators=3, terminals=False
)


class Wired(Component):
    """The mapping with the setup logic in front, so that the test speaks of addresses and radices."""

    def __init__(self, patterns):
        self.mapping = DirectMapping(PARAMETERS, patterns=patterns)
        self.setup = ReductionSetup(PARAMETERS)
        super().__init__({"shadow": In(PARAMETERS.shadow_layout), "unused": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.setup = self.setup
        m.submodules.mapping = self.mapping
        m.d.comb += [self.setup.shadow.eq(self.shadow), self.mapping.active.eq(self.setup.active)]
        return m


def expected_row(torus, radices, own, destination):
    """Specification: the first dimension that differs decides; a torus goes round if that is shorter."""
    for i, (k, c, d) in enumerate(zip(radices, own, destination, strict=True)):
        offset = d - c
        if offset == 0:
            continue
        plus = offset > 0
        if torus and abs(offset) > k // 2:
            plus = not plus
        return 1 + 2 * i if plus else 2 + 2 * i
    return 0


@pytest.mark.parametrize("patterns", [1, 3, 4])
@pytest.mark.parametrize("torus", [False, True])
def test_every_destination_under_every_pattern(patterns, torus):
    rng = np.random.default_rng(7)
    radices, own = (5, 4, 3), (1, 1, 1)
    dut = Wired(patterns)
    mapping = dut.mapping
    ports = rng.integers(0, 64, size=(patterns, mapping.rows))

    async def bench(ctx):
        s = dut.shadow
        ctx.set(s.mode, 2 if torus else 1)
        ctx.set(s.digits, 3)
        ctx.set(s.own, sum(c << 3 * i for i, c in enumerate(own)))
        for i, k in enumerate(radices):
            ctx.set(s.radix[i], k)
        ctx.set(mapping.w_en, 1)
        for pattern in range(patterns):
            for row in range(mapping.rows):
                ctx.set(mapping.w_pattern, pattern)
                ctx.set(mapping.w_row, row)
                ctx.set(mapping.w_output, int(ports[pattern, row]))
                await ctx.tick()
        ctx.set(mapping.w_en, 0)
        seen = set()
        for pattern in range(patterns):
            ctx.set(mapping.pattern, pattern)
            for destination in np.ndindex(*radices):
                ctx.set(mapping.dst, sum(int(d) << 3 * i for i, d in enumerate(destination)))
                row = expected_row(torus, radices, own, destination)
                seen.add(row)
                assert ctx.get(mapping.output) == ports[pattern, row], (pattern, destination)
        assert seen == set(range(7))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize(("change", "message"), [
    ({"functions": ("mesh", "fat_tree")}, "functions must be mesh, torus or both, not mesh, fat_tree"),
    ({"functions": ()}, "functions must be mesh, torus or both, not none"),
])
def test_other_functions_are_refused(change, message):
    parameters = ReductionParameters(**{"comparators": 3, **change})
    with pytest.raises(ValueError, match=message):
        DirectMapping(parameters, patterns=1)


@pytest.mark.parametrize("name", ["patterns", "output_bits"])
def test_sizes_below_one_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, not 0"):
        DirectMapping(PARAMETERS, **{"patterns": 1, name: 0})

"""The crossbar against a permutation."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.hw.allocation.crossbar import Crossbar


@pytest.mark.parametrize(("inputs", "outputs", "width_bits"), [(1, 1, 1), (3, 4, 5), (5, 2, 16)])
def test_words_go_where_they_are_sent(inputs: int, outputs: int, width_bits: int) -> None:
    dut = Crossbar(inputs=inputs, outputs=outputs, width_bits=width_bits)
    rng = np.random.default_rng(1)

    async def bench(ctx):
        for _ in range(60):
            words = [int(word) for word in rng.integers(1 << width_bits, size=inputs)]
            sources = [int(i) for i in rng.integers(-1, inputs, size=outputs)]
            for i, word in enumerate(words):
                ctx.set(dut.words[i], word)
            ctx.set(dut.select, sum(1 << i * outputs + o for o, i in enumerate(sources) if i >= 0))
            assert [ctx.get(dut.out[o]) for o in range(outputs)] == [words[i] if i >= 0 else 0 for i in sources]

    simulator = Simulator(dut)
    simulator.add_testbench(bench)
    simulator.run()


def test_bad_parameters() -> None:
    with pytest.raises(ValueError, match="width_bits must be at least 1, not 0"):
        Crossbar(inputs=1, outputs=1, width_bits=0)

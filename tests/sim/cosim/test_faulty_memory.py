"""Engines with check bits against the golden one, with bits of their lines inverted on the way."""

import sys
from pathlib import Path

import numpy as np
import pytest
from amaranth.sim import Simulator

sys.path.insert(0, str(Path(__file__).parents[2] / "hw" / "lookup"))
from test_lookup import ENGINES, SMALL, Stimulus, masked

from hopforge.model.lookup.golden.build import golden_engine
from hopforge.model.lookup.golden.ports import LookupInputs, LookupOutputs
from hopforge.model.lookup.params import LookupParams
from hopforge.sim.cosim.faulty_memory import FaultyEngine

RATE = 0.08
"""Faults in a cycle; now and then two hit the same line before it is read."""


def another_fault(golden, last: tuple[int, int, int, object] | None, rng) -> tuple[int, int, int] | None:
    """Draw (row, way, bit); with SECDED half of them are followed by another bit of the same line.

    No line gets more than the code can find: two changed bits, with parity one.
    """
    params, cache = golden.params, golden.cache
    bit = int(rng.choice(cache.words.used_bits))
    if params.protection == "secded" and last is not None and rng.random() < 0.5:
        row, way, first, line = last
        return (row, way, bit) if cache.at(row, way) is line and bit != first else None
    row, way = (int(rng.integers(count)) for count in (params.sets, params.ways))
    return (row, way, bit) if rng.random() < RATE and cache.at(row, way).word is None else None


def run(params: LookupParams, cycles: int, seed: int) -> dict[str, int]:
    """Compare random cycles with faults; return how often lines were found wrong and repaired."""
    dut, golden = FaultyEngine(params), golden_engine(params)
    stimulus = Stimulus(params, np.random.default_rng(seed), calm=True)
    rng = np.random.default_rng(seed + 1)
    names_in = [name for name in LookupInputs._fields if name in dut.signature.members]
    names_out = [name for name in LookupOutputs._fields if name in dut.signature.members]
    seen = {"line_errors": 0, "line_repairs": 0}
    last = None

    async def bench(ctx):
        nonlocal last, seen
        for cycle in range(cycles):
            inputs = stimulus.inputs()
            for name in names_in:
                ctx.set(getattr(dut, name), getattr(inputs, name))
            fault = another_fault(golden, last, rng)
            ctx.set(dut.fault, fault is not None)
            if fault is not None:
                for name, value in zip(("row", "way", "bit"), fault, strict=True):
                    ctx.set(getattr(dut, f"fault_{name}"), value)
            got = masked({name: ctx.get(getattr(dut, name)) for name in names_out})
            want = golden.step(inputs)
            if fault is not None:
                golden.flip(*fault)
            first = fault is not None and (last is None or fault[:2] != last[:2])
            last = (*fault, golden.cache.at(*fault[:2])) if first else None
            assert got == want, f"cycle {cycle}: {inputs}"
            seen |= {name: max(most, golden.counters.get(name, 0)) for name, most in seen.items()}
            stimulus.observe(inputs, got)
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return seen


@pytest.mark.parametrize(
    ("protection", "depth"),
    [
        ("parity", 1), ("secded", 2), ("secded", 8),
        *(
            pytest.param(protection, depth, marks=pytest.mark.study)
            for protection, depths in (("parity", (2, 3, 4, 5, 7, 8)), ("secded", (1, 3, 4, 5, 7)))
            for depth in depths
        ),
    ],
)  # fmt: skip
@pytest.mark.thinned(2)
def test_every_output_equals_golden_with_faults(protection: str, depth: int) -> None:
    """Single faults with parity; with SECDED also two in a word."""
    name = {1: "lru", 2: "skewed", 3: "fifo", 4: "plru", 5: "lru", 7: "plru", 8: "skewed"}[depth]
    params = LookupParams(**(SMALL | ENGINES[name] | {"pipeline_depth": depth, "protection": protection}))
    seen = run(params, 500, 31 * depth)
    assert seen["line_errors"] > 0, "the faults must be found"
    assert (seen["line_repairs"] > 0) == (protection == "secded")

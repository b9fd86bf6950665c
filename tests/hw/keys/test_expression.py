"""Logic of expressions against the golden function: random ones, shipped ones, and inside the node reduction."""

import sys
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hopforge.hw.keys.expression import KeyExpression, QuietSteps
from hopforge.hw.keys.reduction_parameters import ReductionParameters
from hopforge.model.config import parse_config
from hopforge.model.expression.compile import Compiled, compile_expression
from hopforge.model.expression.golden import evaluate
from hopforge.model.expression.names import Names
from hopforge.model.expression.syntax import ExpressionError
from hopforge.model.lookup.params import LookupParams
from hopforge.sim.benches.node_reduction import node_reduction_bench

sys.path.insert(0, str(Path(__file__).parents[2] / "model" / "expression"))
from expression_texts import NAMES, A, texts


def check(compiled: Compiled, places: np.ndarray) -> None:
    """Compare logic and golden function at (own, level, dst)."""
    m = Module()
    m.submodules.early = early = QuietSteps(compiled.program)
    m.submodules.late = late = KeyExpression(compiled.program)
    m.d.comb += late.quiet.eq(early.quiet)

    async def bench(ctx) -> None:  # type: ignore[no-untyped-def]
        for own, level, dst in places.tolist():
            ctx.set(early.own, own)
            ctx.set(early.level, level)
            ctx.set(late.dst, dst)
            want = evaluate(compiled.expression, compiled.names, dst=dst, own=own, level=level)
            assert ctx.get(late.value) == want, (compiled.expression.text, own, level, dst)

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()


@given(text=texts(3), seed=st.integers(0, 1 << 20))
@settings(max_examples=60, deadline=None)
def test_random_expressions(text: str, seed: int) -> None:
    try:
        compiled = compile_expression(f"let x = {text}; {{1:1, x % 1000:10}}", NAMES)
    except ExpressionError:
        assume(False)
        raise
    rng = np.random.default_rng(seed)
    places = np.stack([rng.integers(0, limit, 16) for limit in (1 << A, 32, 1 << A)], axis=1)
    places[:4, 2] = places[:4, 0]
    check(compiled, places)


@pytest.mark.parametrize(
    "text",
    [
        "(dst - own) % 7", "(dst - own) % 8", "(own - 9 * dst) / 13 + 1000000 / 2 - 400000", "(0 - dst) / 8 + 9000",
        "(d[0] - 20) / 64 + 1", "(d[0] - 20) % 64", "dst / 3 % 1", "5", "own[3:0]", "min(0 - 3, dst) + 3",
        "if dst > own then 0 - 1 + 2 else {1:2}",
    ],
)  # fmt: skip
def test_signs_and_divisions(text: str) -> None:
    names = Names(24, NAMES.d, NAMES.c, None, {})
    compiled = compile_expression(f"({text}) % 1000000", names)
    rng = np.random.default_rng(5)
    places = np.stack([rng.integers(0, 1 << 16, 40), rng.integers(0, 32, 40), rng.integers(0, 1 << 16, 40)], axis=1)
    places[:3, 2] = 0, 1, (1 << 24) - 1
    check(compiled, places)


def params(more: str) -> LookupParams:
    return LookupParams.from_config(parse_config(f"name: a\n{more}"))


@pytest.mark.parametrize(
    "more",
    [
        "topology: {kind: hyperx, sizes: [4, 3], hosts_per_router: 2}\n"
        "lookup: {reduction: {name: hyperx}, lag: {max_members: 3}}\n",
        "topology: {kind: torus, radices: [5, 4]}\n"
        "lookup: {reduction: {name: torus}, functions: [arbitrary, torus]}\n",
        "topology: {kind: slim_fly, q: 4}\nlookup: {reduction: {name: slim_fly}, functions: [arbitrary]}\n",
    ],
)
def test_mode_expression_beside_the_others(more: str) -> None:
    bench = node_reduction_bench(params(more), 120, np.random.default_rng(4))
    replay, dut = bench.replay, bench.component

    async def drive(ctx) -> None:  # type: ignore[no-untyped-def]
        for inputs, expected in zip(replay.driven.tolist(), replay.expected.tolist(), strict=True):
            for name, word in zip(replay.inputs, inputs, strict=True):
                ctx.set(getattr(dut, name), word)
            assert ctx.get(dut.key) == expected[0]
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(drive)
    simulator.run()


def test_parameters_that_do_not_fit() -> None:
    program = compile_expression("dst % 5", Names(24)).program
    with pytest.raises(ValueError, match="functions must contain 'expression' exactly if there is one"):
        ReductionParameters(expression=program)
    with pytest.raises(ValueError, match="expression must be one of address_bits=16, not 24"):
        ReductionParameters(address_bits=16, functions=("arbitrary", "expression"), chunk_bits=(4,), expression=program)

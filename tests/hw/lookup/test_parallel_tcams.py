"""TCAMs in turns: hardware against the golden model with random idle cycles and back-pressure; rate; bad parameters."""

import re
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.hw.lookup.parallel_tcams import ParallelTcams
from hopforge.model.lookup.parallel_tcams import Answer, ParallelTcamsModel


def play(tcams: int, cycles: int, *, load: float, ready: float, latency: int | None, seed: int) -> tuple[int, int]:
    """Compare every output in every cycle; the TCAMs answer after `latency` cycles (None: at random).

    Returns
    -------
    int, int
        Requests accepted and answers that left, which are those of the requests, in their order.
    """
    rng = np.random.default_rng(seed)
    dut, golden = ParallelTcams(tcams=tcams, address_bits=6, tag_bits=5, output_bits=4), ParallelTcamsModel(tcams)
    due: list[tuple[int, int] | None] = [None] * tcams  # cycle and destination
    expected: list[tuple[int, Answer]] = []
    arrived: list[tuple[int, Answer]] = []

    async def bench(ctx: Any) -> None:
        request: tuple[int, int] | None = None
        for cycle in range(cycles):
            if request is None and cycle < cycles - 40 * tcams and rng.random() < load:
                request = int(rng.integers(64)), int(rng.integers(32))
            takes = [latency is not None or bool(rng.random() < 0.7) for _ in range(tcams)]
            answers: list[Answer | None] = [None] * tcams
            for k, port in enumerate(dut.tcam):
                mine = due[k]
                if mine is not None and mine[0] <= cycle and (latency is not None or rng.random() < 0.5):
                    answers[k], due[k] = Answer(mine[1] & 1, mine[1] >> 2), None
                found = answers[k] or Answer(0, 0)
                ctx.set(port.req_ready, takes[k])
                ctx.set(port.resp_valid, answers[k] is not None)
                ctx.set(port.resp_match, found.match)
                ctx.set(port.resp_output, found.output)
            can = cycle >= cycles - 40 * tcams or bool(rng.random() < ready)
            ctx.set(dut.resp_ready, can)
            ctx.set(dut.req_valid, request is not None)
            if request is not None:
                ctx.set(dut.req_dst, request[0])
                ctx.set(dut.req_tag, request[1])
            want = golden.step(None if request is None else request[1], can, takes, answers)
            assert ctx.get(dut.req_ready) == want.ready, cycle
            asked = [k for k, port in enumerate(dut.tcam) if ctx.get(port.req_valid)]
            assert asked == ([] if want.asks is None else [want.asks]), cycle
            assert ctx.get(dut.resp_valid) == (want.answer is not None), cycle
            if want.answer is not None:
                seen = ctx.get(dut.resp_tag), Answer(ctx.get(dut.resp_match), ctx.get(dut.resp_output))
                assert seen == want.answer, cycle
                if can:
                    arrived.append(seen)
            if request is not None and want.ready:
                assert want.asks is not None
                assert ctx.get(dut.tcam[want.asks].req_dst) == request[0]
                due[want.asks] = cycle + (latency or int(rng.integers(1, 6))), request[0]
                expected.append((request[1], Answer(request[0] & 1, request[0] >> 2)))
                request = None
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert arrived == expected
    return golden.accepted, golden.left


@pytest.mark.parametrize("tcams", [1, 2, 3, 6])
@pytest.mark.parametrize(("load", "ready"), [(1.0, 1.0), (0.5, 0.4)])
def test_hardware_is_the_golden_model_and_loses_nothing(tcams: int, load: float, ready: float) -> None:
    accepted, left = play(tcams, 500, load=load, ready=ready, latency=None, seed=tcams)
    assert accepted == left > 30


@pytest.mark.parametrize(("tcams", "latency"), [(1, 4), (3, 4), (6, 4), (8, 4)])
def test_rate(tcams: int, latency: int) -> None:
    """K TCAMs of L cycles take min(1, K / (L + 2)) requests a cycle."""
    cycles = 400 + 40 * tcams
    accepted, _ = play(tcams, cycles, load=1.0, ready=1.0, latency=latency, seed=1)
    assert accepted == pytest.approx(400 * min(1.0, tcams / (latency + 2)), abs=tcams + 1)


@pytest.mark.parametrize("name", ["tcams", "address_bits", "tag_bits", "output_bits"])
def test_parameters_below_one_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{name} must be at least 1, not 0")):
        ParallelTcams(**{"tcams": 2, name: 0})

"""Arbiters against counting, and against a list of who was granted when."""

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge.hw.parts.arbiter import (
    PREFIX_WIDTH_MIN,
    Arbiter,
    MatrixArbiter,
    RoundRobinArbiter,
    TwoLevelRoundRobinArbiter,
)


def play(dut: Arbiter, cycles: list[tuple[int, bool]]) -> list[int]:
    """Grants for (requests, advance) of every cycle."""
    grants = []

    async def bench(ctx):
        for requests, advance in cycles:
            ctx.set(dut.requests, requests)
            ctx.set(dut.advance, advance)
            grants.append(ctx.get(dut.grant))
            if dut.width > 1:
                await ctx.tick()

    simulator = Simulator(dut)
    if dut.width > 1:
        simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return grants


def workload(width: int) -> st.SearchStrategy[list[tuple[int, bool]]]:
    word = st.integers(0, (1 << width) - 1)
    dense = word.map(lambda n: n | n >> 1)
    return st.lists(st.tuples(word | dense, st.booleans()), min_size=1, max_size=60)


ROUND_ROBIN = {
    **{
        str(width): (lambda width=width: RoundRobinArbiter(width=width))
        for width in (1, 2, 3, 5, PREFIX_WIDTH_MIN - 1, PREFIX_WIDTH_MIN, 19, 64)
    },
    **{
        f"{groups} x {size}": (
            lambda groups=groups, size=size: TwoLevelRoundRobinArbiter(groups=groups, group_width=size)
        )
        for groups, size in ((1, 1), (1, 3), (3, 1), (2, 2), (5, 4), (3, 17), (16, 2))
    },
}


@pytest.mark.parametrize("name", list(ROUND_ROBIN))
def test_round_robin_counts_from_its_pointer(name: str) -> None:
    build = ROUND_ROBIN[name]
    width = build().width

    @given(workload(width))
    @settings(max_examples=8, deadline=None)
    def check(cycles: list[tuple[int, bool]]) -> None:
        pointer = 0
        for (requests, advance), grant in zip(cycles, play(build(), cycles), strict=True):
            order = [(pointer + k) % width for k in range(width)]
            chosen = next((n for n in order if requests >> n & 1), None)
            assert grant == (0 if chosen is None else 1 << chosen)
            if advance and chosen is not None:
                pointer = (chosen + 1) % width

    check()


@pytest.mark.parametrize("width", [1, 2, 3, 6])
def test_matrix_grants_whoever_waited_longest(width: int) -> None:
    @given(workload(width))
    @settings(max_examples=15, deadline=None)
    def check(cycles: list[tuple[int, bool]]) -> None:
        last = [n - width for n in range(width)]  # cycle of the last grant; never: long ago, lower first
        grants = play(MatrixArbiter(width=width), cycles)
        for cycle, ((requests, advance), grant) in enumerate(zip(cycles, grants, strict=True)):
            asking = [n for n in range(width) if requests >> n & 1]
            assert grant == (1 << min(asking, key=lambda n: last[n]) if asking else 0)
            if advance and asking:
                last[min(asking, key=lambda n: last[n])] = cycle

    check()


@pytest.mark.parametrize(("groups", "size", "name"), [(0, 2, "groups"), (2, 0, "group_width")])
def test_bad_groups(groups: int, size: int, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least 1, not 0"):
        TwoLevelRoundRobinArbiter(groups=groups, group_width=size)


@pytest.mark.parametrize("kind", [RoundRobinArbiter, MatrixArbiter])
def test_bad_width(kind: type[Arbiter]) -> None:
    with pytest.raises(ValueError, match="width must be at least 1, not 0"):
        kind(width=0)

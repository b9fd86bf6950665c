"""Allocators against the golden ones, and against what any of them promises."""

import numpy as np
import pytest
from amaranth.hdl import Cat
from amaranth.sim import Simulator

from hopforge.hw.allocation.allocator import ALLOCATORS, SeparableAllocator, allocator
from hopforge.hw.allocation.islip import IslipAllocator
from hopforge.hw.allocation.switch_allocator import SwitchAllocator
from hopforge.hw.allocation.vc_allocator import VcAllocator
from hopforge.hw.parts.arbiter import ARBITERS
from hopforge.hw.router.router import Router
from hopforge.model.router.allocators import allocation, first_at_or_after, match_in_turns
from hopforge.model.router.params import RouterParams

KINDS = [
    (kind, arbiter) for kind in ALLOCATORS for arbiter in ARBITERS if kind != "wavefront" or arbiter == "round_robin"
]


def run(dut, bench) -> None:
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def pairs(matrix: np.ndarray) -> int:
    return sum(1 << int(n) for n in np.flatnonzero(matrix))


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize(("kind", "arbiter"), KINDS)
def test_grants_equal_golden(kind: str, arbiter: str, size: int) -> None:
    dut = allocator(kind, size=size, arbiter=arbiter)
    golden = allocation(kind, size, arbiter)
    rng = np.random.default_rng(size)
    sizes = set()

    async def bench(ctx):
        for _ in range(120):
            matrix = rng.random((size, size)) < rng.choice([0.15, 0.5, 1.0])
            ctx.set(dut.requests, pairs(matrix))
            want = golden.match({n: set(np.flatnonzero(matrix[n])) for n in range(size)})
            assert ctx.get(dut.grants) == sum(1 << n * size + m for n, m in want.items())
            assert all(matrix[n, m] for n, m in want.items())
            assert len(set(want.values())) == len(want)
            if kind == "wavefront":
                left = np.ix_([n not in want for n in range(size)], [m not in want.values() for m in range(size)])
                assert not matrix[left].any(), "maximal"
            used = {n for n in want if rng.random() < 0.7}
            ctx.set(dut.taken, sum(1 << n for n in used))
            golden.take({n: want[n] for n in used})
            sizes.add(len(want))
            await ctx.tick()

    run(dut, bench)
    assert len(sizes) > 2 or size == 2, "matchings of several sizes"


@pytest.mark.parametrize("refusable", [False, True])
@pytest.mark.parametrize(("size", "iterations"), [(2, 2), (3, 2), (5, 2), (5, 4)])
def test_iterations_equal_golden(size: int, iterations: int, refusable: bool) -> None:
    """Grants of the first iteration move pointers; where grants can be refused, those that are used do, of any."""
    dut = IslipAllocator(inputs=size, outputs=size, iterations=iterations, refusable=refusable)
    golden = allocation("output_first", size)
    rng = np.random.default_rng(size + iterations)
    later = 0

    async def bench(ctx):
        nonlocal later
        for _ in range(150):
            matrix = rng.random((size, size)) < rng.choice([0.3, 0.6, 1.0])
            ctx.set(dut.requests, pairs(matrix))
            want, first = match_in_turns(golden, {n: set(np.flatnonzero(matrix[n])) for n in range(size)}, iterations)
            assert ctx.get(dut.grants) == sum(1 << n * size + m for n, m in want.items())
            assert ctx.get(dut.row_granted) == sum(1 << n for n in want)
            assert ctx.get(dut.column_granted) == sum(1 << m for m in want.values())
            if refusable:
                first = {n: m for n, m in want.items() if rng.random() < 0.7}
                ctx.set(dut.taken, sum(1 << n for n in first))
            golden.take(first)
            later += len(want) > len(first)
            await ctx.tick()

    run(dut, bench)
    assert later


@pytest.mark.parametrize(("kind", "arbiter"), KINDS)
def test_full_load_is_shared_fairly(kind: str, arbiter: str) -> None:
    """All request all: after the pointers have spread every input and every output has a grant in every cycle."""
    size = 4
    dut = allocator(kind, size=size, arbiter=arbiter)
    totals = np.zeros(size * size, int)

    async def bench(ctx):
        ctx.set(dut.requests, (1 << size * size) - 1)
        ctx.set(dut.taken, (1 << size) - 1)
        for cycle in range(60):
            grants = ctx.get(dut.grants)
            if cycle >= 20:
                totals[:] += [grants >> n & 1 for n in range(size * size)]
            await ctx.tick()

    run(dut, bench)
    assert totals.sum() == 40 * size
    assert (totals > 0).all(), "nobody starves"


def test_rectangular_matrix() -> None:
    dut = SeparableAllocator(inputs=3, outputs=2, first="input")

    async def bench(ctx):
        ctx.set(dut.requests, 0b10_01_11)
        ctx.set(dut.taken, 0b111)
        grants = []
        for _ in range(3):
            grants.append(ctx.get(dut.grants))
            await ctx.tick()
        # Input 2 always asks 1, input 1 always 0, input 0 alternates with its pointer only after a grant.
        assert grants == [0b10_00_01, 0b00_01_10, 0b10_00_01]

    run(dut, bench)


@pytest.mark.parametrize(("kind", "arbiter"), KINDS)
@pytest.mark.parametrize(("ports", "vcs"), [(3, 2), (2, 4), (4, 1)])
@pytest.mark.thinned(2)
def test_vc_allocator_equals_golden(kind: str, arbiter: str, ports: int, vcs: int) -> None:
    size = ports * vcs
    dut = VcAllocator(ports=ports, vcs=vcs, kind=kind, arbiter=arbiter)
    golden = allocation(kind, size, arbiter)
    rng = np.random.default_rng(7)
    last: dict[int, int] = {}
    all_requests, all_asked = Cat(*dut.requests), Cat(*dut.asked_port)

    async def bench(ctx):
        for _ in range(100):
            requests = {}
            asked = wanted = shown = 0
            for n in range(size):
                port = int(rng.integers(ports))
                chosen = {port * vcs + w for w in range(vcs) if rng.random() < 0.6}
                silent = kind == "input_first" and rng.random() < 0.3  # its requests count for nothing
                wanted |= 1 << n * ports + port
                asked |= 0 if silent else 1 << n * ports + port
                shown |= sum(1 << n * size + m for m in chosen)
                requests[n] = set() if silent else chosen
            ctx.set(all_requests, shown)
            ctx.set(all_asked, asked)
            if kind == "input_first":
                ctx.set(Cat(*dut.wanted_port), wanted)
            want = golden.match(requests)
            assert ctx.get(Cat(*dut.granted)) == sum(1 << n for n in want)
            assert ctx.get(Cat(*dut.given)) == sum(1 << m for m in want.values())
            member = ctx.get(Cat(*dut.granted_vc))
            assert all(member >> n * vcs & (1 << vcs) - 1 == 1 << m % vcs for n, m in want.items())
            assert ctx.get(Cat(*dut.out_port)) == sum(1 << n * ports + m // vcs for n, m in last.items())
            assert ctx.get(Cat(*dut.out_vc)) == sum(1 << n * vcs + m % vcs for n, m in last.items())
            last.update(want)
            golden.take(want)
            await ctx.tick()

    run(dut, bench)


def golden_switch(kind, size, vcs, requests, pointers, golden):
    """Match of one allocator: {input: (output, VC)}; requests[i][v] is an output or None."""
    asked: dict[int, dict[int, int]] = {}
    for i, row in enumerate(requests):
        if kind == "input_first":
            asking = [v for v in range(vcs) if row[v] is not None]
            v = first_at_or_after(pointers[i], asking, vcs) if asking else None
            asked[i] = {} if v is None else {row[v]: v}
        else:
            by_output = {o: [v for v in range(vcs) if row[v] == o] for o in range(size)}
            asked[i] = {o: first_at_or_after(pointers[i], asking, vcs) for o, asking in by_output.items() if asking}
    match = golden.match({i: set(row) for i, row in asked.items()})
    return {i: (o, asked[i][o]) for i, o in match.items()}


@pytest.mark.parametrize("speculation", [False, True])
@pytest.mark.parametrize(("kind", "arbiter"), KINDS)
def test_switch_allocator_equals_definition(kind: str, arbiter: str, speculation: bool) -> None:
    ports, vcs = 3, 3
    dut = SwitchAllocator(ports=ports, vcs=vcs, kind=kind, arbiter=arbiter, speculation=speculation, label_bits=5)
    regular, guesses = (allocation(kind, ports, arbiter) for _ in range(2))
    pointers = [0] * ports
    rng = np.random.default_rng(3)
    late_grants = 0

    async def bench(ctx):
        nonlocal late_grants
        for _ in range(150):
            asking, speculative = ([[None] * vcs for _ in range(ports)] for _ in range(2))
            for i, v in np.ndindex(ports, vcs):
                kind_of_request = rng.choice(["none", "regular", "speculative"], p=[0.4, 0.3, 0.3])
                if kind_of_request == "regular":
                    asking[i][v] = int(rng.integers(ports))
                elif kind_of_request == "speculative" and speculation:
                    speculative[i][v] = int(rng.integers(ports))
            confirmed = rng.random((ports, vcs)) < 0.6
            labels = rng.integers(0, 32, (ports, vcs))
            ctx.set(dut.labels, sum(int(label) << 5 * n for n, label in enumerate(labels.flat)))
            for name, requests in (("requests", asking), ("speculative", speculative)):
                bits = sum(
                    1 << (i * vcs + v) * ports + requests[i][v]
                    for i, v in np.ndindex(ports, vcs)
                    if requests[i][v] is not None
                )
                if name == "requests" or speculation:
                    ctx.set(getattr(dut, name), bits)
            if speculation:
                ctx.set(dut.confirmed, pairs(confirmed))
            match = golden_switch(kind, ports, vcs, asking, pointers, regular)
            late = golden_switch(kind, ports, vcs, speculative, pointers, guesses)
            outputs = {o for o, _ in match.values()}
            late = {i: (o, v) for i, (o, v) in late.items() if i not in match and o not in outputs and confirmed[i, v]}
            late_grants += len(late)
            both = match | late
            assert ctx.get(dut.grants) == sum(1 << i * ports + o for i, (o, _) in both.items())
            assert ctx.get(dut.granted_vc) == sum(1 << i * vcs + v for i, (_, v) in both.items())
            assert ctx.get(dut.label) == sum(int(labels[i, v]) << 5 * o for i, (o, v) in both.items())
            regular.take({i: o for i, (o, _) in match.items()})
            guesses.take({i: o for i, (o, _) in late.items()})
            for i, (_, v) in both.items():
                pointers[i] = (v + 1) % vcs
            await ctx.tick()

    run(dut, bench)
    assert bool(late_grants) == speculation


def test_bad_parameters() -> None:
    names = "input_first, output_first, wavefront"
    with pytest.raises(ValueError, match=f"va must be one of {names}, not 'islop'"):
        VcAllocator(ports=2, vcs=1, kind="islop")
    with pytest.raises(ValueError, match=f"sa must be one of {names}, input_ahead, not 'islop'"):
        SwitchAllocator(ports=2, vcs=1, kind="islop")
    with pytest.raises(ValueError, match="arbiter must be one of round_robin, matrix, not 'lottery'"):
        SwitchAllocator(ports=2, vcs=1, kind="wavefront", arbiter="lottery")
    with pytest.raises(ValueError, match="vcs must be at least 1, not 0"):
        VcAllocator(ports=2, vcs=0)
    with pytest.raises(ValueError, match="arbiter must be one of round_robin, matrix, not 'lottery'"):
        VcAllocator(ports=2, vcs=1, arbiter="lottery")
    with pytest.raises(ValueError, match=r"va: wavefront takes at most 512 input VCs .*, not 33 · 16 = 528"):
        VcAllocator(ports=33, vcs=16, kind="wavefront", arbiter="matrix")
    large = RouterParams(ports=64, vcs=5, buffer_flits=1, arbiter="matrix")
    with pytest.raises(ValueError, match=r"arbiter: matrix takes at most 256 input VCs .*, not 64 · 5 = 320"):
        Router(params=large)
    with pytest.raises(ValueError, match=r"va_iterations: 2 takes at most 256 input VCs .*, not 17 · 16 = 272; 1"):
        VcAllocator(ports=17, vcs=16, iterations=2)
    with pytest.raises(ValueError, match=r"va must be output_first with round_robin .* not output_first with matrix"):
        VcAllocator(ports=2, vcs=1, arbiter="matrix", iterations=2)
    with pytest.raises(ValueError, match=r"sa must be output_first with .* for iterations=3, not wavefront with round"):
        SwitchAllocator(ports=2, vcs=1, kind="wavefront", iterations=3)
    with pytest.raises(ValueError, match="iterations must be at least 1, not 0"):
        SwitchAllocator(ports=2, vcs=1, iterations=0)
    with pytest.raises(ValueError, match="inputs must be at least 1, not 0"):
        SeparableAllocator(inputs=0, outputs=2, first="input")
    with pytest.raises(ValueError, match="first must be one of input, output, not 'both'"):
        SeparableAllocator(inputs=1, outputs=2, first="both")

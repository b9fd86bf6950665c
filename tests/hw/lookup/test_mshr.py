"""MshrFile: every miss gets its one answer (its races are in test_lookup.py and gen.formal.lookup)."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.hw.lookup.mshr import MshrFile

WIDTHS = {"key_bits": 6, "index_bits": 2, "row_bits": 2, "address_bits": 5, "tag_bits": 16, "output_bits": 8}


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("entries", [1, 2, 5])
@pytest.mark.thinned(2)
def test_every_miss_is_answered_once(entries: int, direct: bool) -> None:
    dut = MshrFile(entries=entries, direct=direct, **WIDTHS)
    rng = np.random.default_rng(entries)
    waiting: dict[int, int] = {}
    merges = answers = 0

    async def bench(ctx):
        nonlocal merges, answers
        asked: dict[int, int] = {}
        next_tag, in_c, flying = 0, None, None
        for cycle in range(2500):
            drain = cycle > 2200
            flush = not drain and rng.random() < 0.02
            ctx.set(dut.flush, flush)
            ctx.set(dut.miss, 1)
            ctx.set(dut.may_merge, 1)
            # Stage C: a lookup that came with the last cycle's `advance`, or a fill.
            allocate = in_c is not None
            if direct and not drain and ctx.get(dut.any_free):
                in_c = int(rng.integers(32))
                allocate = rng.random() < 0.7
            ctx.set(dut.allocate, allocate)
            ctx.set(dut.fresh, 1)
            if allocate:
                ctx.set(dut.key, in_c)
                ctx.set(dut.index, in_c & 3)
                ctx.set(dut.dst, in_c)
                ctx.set(dut.tag, next_tag)
                waiting[next_tag] = in_c
                next_tag += 1
                merges += ctx.get(dut.merged)
            if not direct:
                ctx.set(dut.release, flying is not None)
                if flying is not None and ctx.get(dut.alive):
                    answers += 1
                    assert waiting.pop(flying) is not None
            # TCAM: the output is three times the destination.
            ready, respond = bool(rng.random() < 0.6), bool(asked) and rng.random() < 0.4
            ctx.set(dut.issue_ready, ready)
            ctx.set(dut.answer_valid, respond)
            if respond:
                number = int(rng.choice(list(asked)))
                ctx.set(dut.answer_id, number)
                ctx.set(dut.answer_match, 1)
                ctx.set(dut.answer_output, 3 * asked.pop(number))
            if ready and ctx.get(dut.issue_valid):
                asked[ctx.get(dut.issue_id)] = ctx.get(dut.issue_dst)
            # Stage B: fills go first.
            inject = bool(ctx.get(dut.fill_valid)) and rng.random() < 0.8
            ctx.set(dut.inject, inject)
            flying = None
            if inject:
                tag = ctx.get(dut.fill_tag)
                assert ctx.get(dut.fill_match) == 1
                assert ctx.get(dut.fill_output) == 3 * waiting[tag]
                assert ctx.get(dut.fill_key) == waiting[tag]
                assert ctx.get(dut.fill_index) == waiting[tag] & 3
                if direct:
                    answers += 1
                    del waiting[tag]
                else:
                    flying = tag
            in_c = None
            if not direct:
                room = ctx.get(dut.several_free) or (ctx.get(dut.any_free) and not allocate)
                takes = room and not inject and not drain and rng.random() < 0.7
                in_c = int(rng.integers(32)) if takes else None
                ctx.set(dut.advance, 1)
                ctx.set(dut.next_key, in_c or 0)
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert not waiting, "nothing may be left behind"
    assert answers > 200
    assert merges or entries == 1


@pytest.mark.parametrize("name", ["entries", *WIDTHS])
def test_bad_parameters(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least 1, not 0"):
        MshrFile(**({"entries": 2} | WIDTHS | {name: 0}))

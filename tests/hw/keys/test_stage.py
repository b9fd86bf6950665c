"""KeyStage: order, latency, back-pressure and freshness, whatever the number of registers."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.hw.keys.reduction_parameters import ReductionParameters
from hopforge.hw.keys.stage import KeyStage

ADDRESS_BITS = 12
MASKS = (0b101, 0b111000, 0xFFF)


def parities(word: int) -> int:
    return sum(((word & mask).bit_count() & 1) << bit for bit, mask in enumerate(MASKS))


def build(stages: int, functions: tuple[str, ...] = ("arbitrary",)) -> KeyStage:
    reduction = ReductionParameters(address_bits=ADDRESS_BITS, chunk_bits=(4,), functions=functions, comparators=2)
    return KeyStage(reduction=reduction, stages=stages, tag_bits=8, index_masks=MASKS, index_constant=2)


@pytest.mark.parametrize("functions", [("arbitrary",), ("arbitrary", "mesh")])
@pytest.mark.parametrize("stages", [0, 1, 2])
def test_everything_leaves_in_order(stages: int, functions: tuple[str, ...]) -> None:
    dut = build(stages, functions)
    rng = np.random.default_rng(stages)
    left = 0

    async def bench(ctx):
        nonlocal left
        inside: list[dict] = []
        request, invalidation, tag = None, None, 0
        for _ in range(800):
            if request is None and rng.random() < 0.8:
                tag = (tag + 1) % 256
                request = {"dst": int(rng.integers(1 << ADDRESS_BITS)), "tag": tag, "fresh": True}
            if invalidation is None and rng.random() < 0.1:
                invalidation = {"dst": int(rng.integers(1 << ADDRESS_BITS)), "tag": None, "fresh": True}
            accept_lookup, accept_invalidate = bool(rng.random() < 0.7), bool(rng.random() < 0.7)
            flush = bool(rng.random() < 0.1)
            ctx.set(dut.req_valid, request is not None)
            ctx.set(dut.req_dst, request["dst"] if request else 0)
            ctx.set(dut.req_tag, request["tag"] if request else 0)
            ctx.set(dut.invalidate_pending, invalidation is not None)
            ctx.set(dut.invalidate_dst, invalidation["dst"] if invalidation else 0)
            ctx.set(dut.accept_lookup, accept_lookup)
            ctx.set(dut.accept_invalidate, accept_invalidate)
            ctx.set(dut.flush, flush)

            entering = None
            if ctx.get(dut.invalidate_taken):
                entering, invalidation = invalidation, None
                assert not ctx.get(dut.req_ready)
            elif request and ctx.get(dut.req_ready):
                entering, request = request, None
            if stages == 0 and entering:
                inside.append(entering)
            oldest = inside[0] if inside else None
            kinds = (ctx.get(dut.lookup), ctx.get(dut.invalidate))
            if any(kinds) and (stages or entering):
                assert kinds == ((0, 1) if oldest["tag"] is None else (1, 0))
                dst = oldest["dst"]
                assert (ctx.get(dut.dst), ctx.get(dut.key)) == (dst, dst)
                assert ctx.get(dut.index) == parities(dst) ^ 2
                assert ctx.get(dut.fresh) == oldest["fresh"]
                if oldest["tag"] is not None:
                    assert ctx.get(dut.tag) == oldest["tag"]
                if (kinds[0] and accept_lookup) or (kinds[1] and accept_invalidate):
                    inside.pop(0)
                    left += 1
            assert len(inside) <= stages
            if stages and entering:
                inside.append(entering)
            if flush:
                for one in inside:
                    one["fresh"] = False
            if stages:
                await ctx.tick()

    simulator = Simulator(dut)
    if stages:
        simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert left > 200


def test_bad_parameters() -> None:
    with pytest.raises(ValueError, match="stages must be 0, 1 or 2, not 3"):
        build(3)
    reduction = ReductionParameters(address_bits=ADDRESS_BITS, chunk_bits=(4,), functions=("arbitrary",))
    with pytest.raises(ValueError, match="tag_bits must be at least 1, not 0"):
        KeyStage(reduction=reduction, stages=1, tag_bits=0, index_masks=MASKS)

"""TagSelect against a loop over the ways."""

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge.hw.cache.tag_select import TagSelect


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_selects_the_live_way_with_the_key(data: st.DataObject) -> None:
    ways, tag_bits, output_bits = (data.draw(st.integers(1, most)) for most in (5, 9, 7))
    dut = TagSelect(ways=ways, tag_bits=tag_bits, output_bits=output_bits)
    key = data.draw(st.integers(0, 2**tag_bits - 1))
    place = data.draw(st.integers(0, ways))
    near = st.sampled_from(sorted({key ^ 1 << bit for bit in range(tag_bits)}))
    tags = [key if way == place else data.draw(near) for way in range(ways)]
    stale = data.draw(st.booleans())
    live = [data.draw(st.booleans()) if way != place else not stale for way in range(ways)]
    outputs = [data.draw(st.integers(0, 2**output_bits - 1)) for _ in range(ways)]
    hit = place < ways and not stale

    async def bench(ctx):
        ctx.set(dut.key, key)
        ctx.set(dut.tags, sum(tag << way * tag_bits for way, tag in enumerate(tags)))
        ctx.set(dut.live, sum(bit << way for way, bit in enumerate(live)))
        ctx.set(dut.outputs, sum(output << way * output_bits for way, output in enumerate(outputs)))
        assert ctx.get(dut.hit) == hit
        assert ctx.get(dut.match) == (1 << place if hit else 0)
        assert ctx.get(dut.output) == (outputs[place] if hit else 0)

    simulator = Simulator(dut)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("name", ["ways", "tag_bits", "output_bits"])
def test_bad_parameters(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least 1, not 0"):
        TagSelect(**({"ways": 1, "tag_bits": 1, "output_bits": 1} | {name: 0}))

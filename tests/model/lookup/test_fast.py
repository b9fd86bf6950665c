from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hopforge.model.lookup.fast import layout as lk
from hopforge.model.lookup.fast.kernel import run
from hopforge.model.lookup.fast.state import engine_state
from hopforge.model.lookup.golden.build import SHALLOW_DEPTHS, golden_engine
from hopforge.model.lookup.golden.ports import LookupInputs
from hopforge.model.lookup.params import LookupParams
from hopforge.sim.drive.stimulus import stimulus
from hopforge.sim.drive.stimulus_traffic import Traffic

WORD = (1 << 64) - 1


@st.composite
def engines(draw: Any) -> LookupParams:
    bits = draw(st.sampled_from([14, 16, 24, 33, 48]))
    ways = draw(st.sampled_from([1, 2, 3, 4, 8]))
    policies = ["lru", "fifo", "random"] + ["plru"] * (ways != 3)
    policy = draw(st.sampled_from(policies))
    kind = draw(st.sampled_from(["flops", "sram", "external"]))
    depth = draw(st.integers(1, 8))
    return LookupParams(
        address_bits=bits,
        functions=("arbitrary", *draw(st.sets(st.sampled_from(["mesh", "torus", "fat_tree", "dragonfly"])))),
        chunk_bits=tuple(draw(st.lists(st.sampled_from([2, 3, 4, 6, 8]), min_size=1, max_size=5, unique=True))),
        comparators=draw(st.integers(1, 24)),
        entries=ways * draw(st.sampled_from([1, 2, 4, 16])),
        ways=ways,
        policy=policy,
        skewed=policy == "random" and draw(st.booleans()),
        output_bits=draw(st.sampled_from([1, 16, 33, 64])),
        epoch_bits=draw(st.sampled_from([1, 2, 8])),
        max_members=draw(st.sampled_from([1, 3, 16])),
        mshrs=draw(st.integers(1, 9)),
        request_tag_bits=draw(st.sampled_from([1, 8, 32])),
        pipeline_depth=depth,
        memory_stage=depth > SHALLOW_DEPTHS and draw(st.booleans()),
        tcam_kind=kind,
        tcam_rows=draw(st.integers(1, 12)),
        tcam_latency_cycles=draw(st.integers(2 if kind == "sram" else 1, 9)),
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(engines(), st.integers(0, 1 << 30), st.sampled_from([3, 15, 60]), st.sampled_from([4, 30]))
def test_kernel_equals_the_readable_engine(params: LookupParams, seed: int, quiet: int, pool: int) -> None:
    """Every output in every cycle, and all counters; nothing is left at the end."""
    recorded = stimulus(params, Traffic(lookups=60, seed=seed, quiet_cycles=quiet, pool=pool, link_failures=0.005))
    engine = golden_engine(params)
    for cycle in range(recorded.cycles):
        row = [int(word) for word in recorded.inputs[cycle]]
        row[lk.I_TCAM_OUTPUT] &= WORD
        expected = [int(word) for word in recorded.outputs[cycle]]
        expected[lk.O_RESP_OUTPUT] &= WORD
        assert list(engine.step(LookupInputs(*row))) == expected, cycle
    assert engine.idle


def test_all_kinds_of_events_happen() -> None:
    """The traffic would be worthless if it left something out."""
    totals: dict[str, int] = {}
    for depth in (1, 3, 4):
        params = LookupParams(entries=8, ways=2, epoch_bits=1, tcam_kind="external", pipeline_depth=depth)
        found = stimulus(params, Traffic(lookups=1500, seed=depth, pool=24))
        for name, count in found.totals.items():
            totals[name] = totals.get(name, 0) + count
        assert found.totals["lookups"] == 1500
        assert np.count_nonzero(found.inputs[:, lk.I_LINK_CHANGE]) > 0
        assert np.count_nonzero(found.outputs[:, lk.O_RESP_VALID] & ~found.inputs[:, lk.I_RESP_READY]) > 50
    assert min(totals.values()) > 20, totals


def test_same_seed_same_cycles() -> None:
    params, traffic = LookupParams(entries=8, ways=2), Traffic(lookups=200, seed=4)
    first, second = stimulus(params, traffic), stimulus(params, traffic)
    assert np.array_equal(first.inputs, second.inputs)
    assert np.array_equal(first.outputs, second.outputs)
    assert not np.array_equal(first.inputs[:200], stimulus(params, Traffic(lookups=200, seed=5)).inputs[:200])


def test_run_repeats_the_outputs() -> None:
    params = LookupParams(entries=8, ways=2)
    recorded = stimulus(params, Traffic(lookups=200))
    state = engine_state(params)
    assert np.array_equal(run(state, recorded.inputs), recorded.outputs)
    assert state.total_values() == recorded.totals

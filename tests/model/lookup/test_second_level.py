"""The second level: golden engine, its kernel, and the functional cache of two levels."""

from typing import Any

import numpy as np
import pytest

from hopforge.model.lookup.csr import csr_map
from hopforge.model.lookup.fast import layout as lk
from hopforge.model.lookup.golden.build import golden_engine
from hopforge.model.lookup.golden.ports import LookupInputs, LookupOutputs
from hopforge.model.lookup.params import LookupParams
from hopforge.model.lookup.routing_cache import RoutingCache
from hopforge.model.lookup.second_level import SecondLevelParams
from hopforge.model.lookup.two_level_cache import TwoLevelCache
from hopforge.sim.drive.engine_variants import engine_variant
from hopforge.sim.drive.stimulus import Traffic, stimulus

WORD = (1 << 64) - 1


@pytest.mark.parametrize(
    ("seed", "deep"),
    [(4, False), (5, True), (7, False), *(pytest.param(n, n % 2 == 0, marks=pytest.mark.study) for n in range(12, 16))],
)
def test_kernel_equals_the_readable_engine(seed: int, deep: bool) -> None:
    """Every output in every cycle; nothing is left at the end."""
    params = engine_variant(seed, deep=deep)
    assert params.second_level is not None
    recorded = stimulus(params, Traffic(lookups=200, seed=seed, quiet_cycles=30, pool=30, link_failures=0.003))
    engine = golden_engine(params)
    for cycle in range(recorded.cycles):
        row = [int(word) for word in recorded.inputs[cycle]]
        row[lk.I_TCAM_OUTPUT] &= WORD
        expected = [int(word) for word in recorded.outputs[cycle]]
        expected[lk.O_RESP_OUTPUT] &= WORD
        assert list(engine.step(LookupInputs(*row))) == expected, cycle
    assert engine.idle


class Driven:
    """An engine with an external TCAM of three cycles, that answers what `answer` says."""

    def __init__(self, depth: int, second: SecondLevelParams, **changes: Any) -> None:
        self.params = LookupParams(
            entries=4, ways=2, tcam_kind="external", pipeline_depth=depth, second_level=second, **changes
        )
        self.engine = golden_engine(self.params)
        self.registers = csr_map(self.params)
        self.asked: list[int] = []  # destinations
        self.due: list[tuple[int, int, int]] = []
        self.base = 0
        self.now = self.tag = 0
        self.write("CTRL", 1)
        self.idle(40)

    def step(self, **values: int) -> LookupOutputs:
        self.now += 1
        if self.due and self.due[0][0] <= self.now:
            _, number, dst = self.due.pop(0)
            values |= {"tcam_resp_valid": 1, "tcam_resp_id": number, "tcam_resp_match": 1}
            values["tcam_resp_output"] = dst + self.base & 0xFFFF
        seen = self.engine.step(LookupInputs(resp_ready=1, tcam_req_ready=1, **values))
        if seen.tcam_req_valid:
            self.asked.append(seen.tcam_req_dst)
            self.due.append((self.now + 3, seen.tcam_req_id, seen.tcam_req_dst))
        return seen

    def idle(self, cycles: int) -> list[LookupOutputs]:
        return [self.step() for _ in range(cycles)]

    def write(self, name: str, word: int) -> None:
        self.step(csr_addr=self.registers[name].address, csr_we=1, csr_wdata=word)

    def read(self, name: str) -> int:
        self.step(csr_addr=self.registers[name].address, csr_re=1)
        return [seen.csr_rdata for seen in self.idle(4)][-1]

    def look(self, dst: int) -> tuple[int, int]:
        """Return (output, cycles until the response) of one lookup."""
        self.tag = self.tag % 255 + 1
        while not self.step(req_valid=1, req_dst=dst, req_tag=self.tag).req_ready:
            pass
        begun = self.now
        while not (seen := self.step()).resp_valid or seen.resp_tag != self.tag:
            assert self.now < begun + 1000
        return seen.resp_output, self.now - begun


@pytest.mark.parametrize("depth", [1, 3, 4, 6])
@pytest.mark.parametrize(("policy", "ways"), [("lru", 2), ("random", 4)])
def test_one_at_a_time_it_is_the_functional_cache_of_two_levels(depth: int, policy: Any, ways: int) -> None:
    engine = Driven(depth, SecondLevelParams(entries=16, ways=ways, policy=policy), functions=("arbitrary",))
    cache = TwoLevelCache(
        RoutingCache(entries=4, ways=2), RoutingCache(entries=16, ways=ways, policy=policy)
    )  # fmt: skip
    keys = np.random.default_rng(depth).integers(0, 24, 150)
    levels = cache.run(keys, keys)
    for dst, level in zip(keys.tolist(), levels.tolist(), strict=True):
        before = len(engine.asked)
        assert engine.look(dst)[0] == dst
        engine.idle(20)
        assert len(engine.asked) - before == (level == 0)
    assert engine.read("COUNT_HITS") == (levels == 1).sum()
    assert engine.read("COUNT_SECOND_HITS") == (levels == 2).sum() > 10
    assert engine.read("COUNT_SECOND_MISSES") == (levels == 0).sum()


@pytest.mark.parametrize("depth", [2, 5])
def test_a_hit_takes_as_long_as_a_tcam_of_that_latency(depth: int) -> None:
    times = {}
    for latency in (4, 5, 9):
        engine = Driven(depth, SecondLevelParams(entries=64, ways=4, latency_cycles=latency), functions=("arbitrary",))
        for dst in range(64):
            engine.look(dst)
        asked = len(engine.asked)
        times[latency] = engine.look(0)[1]
        assert len(engine.asked) == asked
    alone = golden_engine(
        LookupParams(entries=4, ways=2, pipeline_depth=depth, tcam_latency_cycles=4, functions=("arbitrary",))
    )
    alone.step(LookupInputs(req_valid=1, resp_ready=1))
    wait = next(n for n in range(1, 100) if alone.step(LookupInputs(resp_ready=1)).resp_valid)
    assert times == {4: wait, 5: wait + 1, 9: wait + 5}


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
@pytest.mark.parametrize("gap", range(0, 30, 3))
def test_no_answer_from_before_an_invalidation_stays(depth: int, gap: int) -> None:
    """The TCAM answers otherwise from the cycle on in which the invalidation is done."""
    engine = Driven(depth, SecondLevelParams(entries=16, ways=4), functions=("arbitrary",))
    for dst in (7, 1, 2, 3, 4, 5, 6):
        engine.look(dst)
    engine.step(req_valid=1, req_dst=7)
    engine.idle(gap)
    engine.write("INVALIDATE_LO", 7)
    engine.base = 100
    while engine.read("STATUS") >> 4 & 1:
        pass
    assert engine.look(7)[0] == 107
    for dst in (1, 2, 3, 4, 5, 6):
        engine.look(dst)
    assert engine.look(7)[0] == 107


@pytest.mark.parametrize("depth", [3, 6])
def test_a_flush_is_of_both_levels(depth: int) -> None:
    engine = Driven(depth, SecondLevelParams(entries=16, ways=4), functions=("arbitrary",), epoch_bits=1)
    for turn in range(5):
        engine.base = 100 * turn
        engine.write("CTRL", 3)
        for dst in (7, 1, 2, 3, 4, 5, 6, 7):
            assert engine.look(dst)[0] == dst + engine.base
    engine.idle(200)
    assert engine.read("STATUS") & 0b110 == 0


def test_what_a_second_level_may_not_be() -> None:
    for change, text in (
        ({"entries": 24, "ways": 4}, "second_level.entries must give a power of two of sets, not 24/4 = 6"),
        ({"latency_cycles": 3}, "second_level.latency_cycles must be 4 to 64, not 3"),
        ({"ways": 3, "entries": 6, "policy": "plru"}, "second_level.policy plru needs a power of two of ways"),
        ({"entries": 6}, "second_level.ways must divide second_level.entries=6, not 4"),
    ):
        with pytest.raises(ValueError, match=text):
            LookupParams(second_level=SecondLevelParams(**change))  # type: ignore[arg-type]


def test_registers_of_a_second_level_are_there_with_one_only() -> None:
    names = {"SECOND_LEVEL", "COUNT_SECOND_HITS", "COUNT_SECOND_MISSES"}
    assert not names & csr_map(LookupParams()).by_name.keys()
    registers = csr_map(LookupParams(second_level=SecondLevelParams()))
    assert names <= registers.by_name.keys()
    fields = registers["SECOND_LEVEL"].decode(registers["SECOND_LEVEL"].reset)
    assert fields == {"second_index_bits": 11, "second_ways": 4, "second_latency": 4}

"""The rule cache in hardware: against the golden one, every output in every cycle; its parts by themselves."""

import random
from functools import cache
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib.memory import Memory
from amaranth.sim import Simulator

from hopforge.hw.parts.sram import Sram
from hopforge.hw.rules import prefix_rules, rule_cache
from hopforge.hw.rules.cube_sweep import CubeSweep
from hopforge.hw.rules.prefix_rules import PrefixRules
from hopforge.hw.rules.rule_cache import RuleCache
from hopforge.model.lookup.rules.rule_cache_params import RuleCacheParams
from hopforge.sim.benches.rule_cache import RuleCacheRun, RuleCacheTraffic, rule_cache_run
from hopforge.sim.drive.replay import Replay, replay_amaranth

CASES = {
    "mep": RuleCacheParams(entries=4, rows=6, address_bits=7, output_bits=4),
    "exact, slow TCAM": RuleCacheParams(policy="exact", entries=3, rows=5, address_bits=5, tcam_cycles=7),
    "host, all lines go": RuleCacheParams(
        policy="host", entries=2, rows=4, address_bits=6, tcam_cycles=5, invalidation="flush"
    ),
    "mep, sets of two": RuleCacheParams(entries=8, ways=2, index_bits=3, rows=6, address_bits=7, output_bits=4),
    "exact, sets of four, slow TCAM": RuleCacheParams(
        policy="exact", entries=8, ways=4, rows=5, address_bits=5, tcam_cycles=7
    ),
    "host, sets of one, all lines go": RuleCacheParams(
        policy="host", entries=4, ways=1, index_bits=2, rows=4, address_bits=6, tcam_cycles=5, invalidation="flush"
    ),
    "the smallest": RuleCacheParams(entries=1, rows=1, address_bits=1, output_bits=1, id_bits=1),
}
EVENTS = ("hits", "fills", "evictions", "drops", "flushes", "refused", "insertions", "removals", "changes")


@cache
def recorded(name: str) -> RuleCacheRun:
    lookups = 900 if CASES[name].ways is None else 450  # walks make runs of sets longer
    seed = 31 if name == "mep, sets of two" else 4  # a line takes the place of two inside it
    return rule_cache_run(CASES[name], RuleCacheTraffic(lookups=lookups, seed=seed, updates=0.1))


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.thinned(2)
def test_equals_golden_rule_cache(name: str) -> None:
    run = recorded(name)
    assert all(run.counts[event] for event in EVENTS), run.counts
    result = replay_amaranth(RuleCache(CASES[name]), run.replay)
    assert result.first is None, str(result.first)


def test_addresses_of_ipv6() -> None:
    """Two words of stimulus a port; the set is a hash of 48 bits."""
    params = RuleCacheParams(entries=4, ways=2, rows=4, address_bits=128, output_bits=4)
    run = rule_cache_run(params, RuleCacheTraffic(lookups=60, seed=4, updates=0.1))
    assert run.counts["hits"] and run.counts["fills"]
    result = replay_amaranth(RuleCache(params), run.replay)
    assert result.first is None, str(result.first)


def test_a_wrong_output_is_seen() -> None:
    replay = recorded("the smallest").replay.head(100)
    wrong = replay.expected.copy()
    column = [output.name for output in replay.outputs].index("filled")
    wrong[60, column] ^= np.uint64(1)
    result = replay_amaranth(
        RuleCache(CASES["the smallest"]), Replay(replay.inputs, replay.outputs, replay.driven, wrong)
    )
    assert result.mismatches == 1 and result.first is not None
    assert (result.first.cycle, result.first.signal) == (60, "filled")


def _nothing_overlaps(value: Value, mask: Value, other_value: Value, other_mask: Value) -> Value:
    return Const(0, 1)


def _nothing_to_tell_apart(m: Module, word: Signal) -> Value:
    return Const(0, len(word))


class _Garbage(Sram):
    """A memory that wakes up with valid lines."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        whole = (1 << self.width_bits) - 1
        m.submodules.array = array = Memory(
            shape=self.width_bits, depth=self.depth, init=[whole ^ 9 * row & whole >> 1 for row in range(self.depth)]
        )
        write, read = array.write_port(), array.read_port()
        m.d.comb += [
            write.en.eq(self.w_en), write.addr.eq(self.w_addr), write.data.eq(self.w_data), read.en.eq(self.r_en),
            read.addr.eq(self.r_addr), self.r_data.eq(read.data),
        ]  # fmt: skip
        return m


def test_memories_wake_up_with_anything() -> None:
    """The walk after reset removes all lines."""
    case = "mep, sets of two"
    result = replay_amaranth(RuleCache(CASES[case], memory=_Garbage), recorded(case).replay.head(500))
    assert result.first is None, str(result.first)


def test_a_walk_that_lets_lines_answer_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    elaborate = CubeSweep.elaborate

    def without(self: CubeSweep, platform: object) -> Module:
        m = elaborate(self, platform)
        m.d.comb += self.pending.eq(0)
        return m

    monkeypatch.setattr(CubeSweep, "elaborate", without)
    case = "mep, sets of two"
    assert replay_amaranth(RuleCache(CASES[case]), recorded(case).replay, to_first=True).first is not None


@pytest.mark.parametrize(
    ("module", "name", "fault"),
    [(rule_cache, "overlaps", _nothing_overlaps), (prefix_rules, "down_to_first", _nothing_to_tell_apart)],
    ids=["a fill in flight survives an update", "a line is as wide as its rule"],
)
def test_a_fault_is_seen(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, fault: Any) -> None:
    monkeypatch.setattr(module, name, fault)
    assert replay_amaranth(RuleCache(CASES["mep"]), recorded("mep").replay, to_first=True).first is not None


def _search(p: RuleCacheParams, rows: list[tuple[int, int, int]], addresses: list[int]) -> list[tuple[int, int, int]]:
    """Write the rows (value, length, output), and return match, output and length of the cube of every address."""
    dut, found = PrefixRules(p), []
    full = (1 << p.address_bits) - 1

    async def bench(ctx: Any) -> None:
        for row, (value, length, output) in enumerate(rows):
            ctx.set(dut.write, 1)
            ctx.set(dut.write_valid, 1)
            ctx.set(dut.write_row, row)
            ctx.set(dut.write_value, value)
            ctx.set(dut.write_mask, full >> length ^ full)
            await ctx.tick()
            ctx.set(dut.write, 0)
            ctx.set(dut.late_write, 1)
            ctx.set(dut.late_row, row)
            ctx.set(dut.late_output, output)
            await ctx.tick()
            ctx.set(dut.late_write, 0)
        for address in addresses:
            ctx.set(dut.address, address)
            await ctx.tick().repeat(2)
            mask = ctx.get(dut.cube)
            assert mask == full >> mask.bit_count() ^ full  # a prefix
            found.append((ctx.get(dut.match), ctx.get(dut.output), mask.bit_count()))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return found


@pytest.mark.parametrize("policy", ["exact", "host", "mep"])
def test_rows_in_any_order_and_what_may_be_cached(policy: str) -> None:
    """By hand: 1*, 10* inside it, 1011 inside that, and 10* again in a higher row."""
    rows = [(0b1011, 4, 5), (0b1000, 1, 6), (0b1000, 2, 7), (0b1000, 2, 8)]
    p = RuleCacheParams(policy=policy, entries=1, rows=4, address_bits=4, output_bits=4)
    wanted = {  # address: (match, output), then lengths for exact, host, mep
        0b0000: (0, 0, 4, 4, 1),  # no rule: every rule lies in the cube of no bit
        0b1100: (1, 6, 4, 4, 2),  # 1*, from which 10* must be told
        0b1001: (1, 7, 4, 4, 3),  # 10* of the lower row, from which 1011 must be told: 100*
        0b1010: (1, 7, 4, 4, 4),
        0b1011: (1, 5, 4, 4, 4),
    }
    at = ["exact", "host", "mep"].index(policy)
    expected = [(match, output, lengths[at]) for match, output, *lengths in wanted.values()]
    assert _search(p, rows, list(wanted)) == expected


def test_every_cube_is_the_widest_of_its_kind() -> None:
    """Widening it by a bit lets a longer rule in, or makes it shorter than the rule."""
    draw = random.Random(2)
    p = RuleCacheParams(entries=1, rows=6, address_bits=6, output_bits=3)
    rows = []
    for row in range(p.rows):
        length = draw.randrange(7)
        rows.append((draw.randrange(64) >> 6 - length << 6 - length, length, row))

    def best(address: int) -> tuple[int, int, int]:
        inside = [(length, -row, row) for value, length, row in rows if (address ^ value) >> 6 - length == 0]
        return max(inside, default=(0, 1, -1))

    assert len({best(address) for address in range(64)}) > 3
    for address, (match, output, length) in enumerate(_search(p, rows, list(range(64)))):
        own, _, row = best(address)
        assert (match, output) == ((1, row) if row >= 0 else (0, 0))
        # longer rules, or any if none matches, that share an address with a prefix of so many bits
        longer = [(value, other) for value, other, _ in rows if row < 0 or other > own]
        shared = [[(value ^ address) >> 6 - min(bits, other) == 0 for value, other in longer] for bits in range(7)]
        right = [bits for bits in range(own, 7) if bits == 6 or not any(shared[bits])]
        assert length == right[0], f"{address:06b}"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"policy": "megaflow"}, "policy must be one of exact, host, mep, not megaflow"),
        ({"invalidation": "none"}, "invalidation must be one of overlap, flush, not none"),
        ({"entries": 0}, "entries must be 1 to 65536, not 0"),
        ({"entries": 65}, "entries must be 1 to 64 without ways, not 65"),
        ({"ways": 0}, "ways must be 1 to 16, not 0"),
        ({"ways": 17}, "ways must be 1 to 16, not 17"),
        ({"ways": 16}, r"entries must be ways=16 times a power of two from 2 on, not 16 \(for a single set .*\)"),
        ({"entries": 24, "ways": 2}, r"entries must be ways=2 times a power of two from 2 on, not 24 .*"),
        ({"entries": 15, "ways": 4}, r"entries must be ways=4 times a power of two from 2 on, not 15 .*"),
        ({"index_bits": 8}, "index_bits needs ways: without sets nothing is hashed, not 8"),
        ({"ways": 2, "index_bits": 33}, "index_bits must be 1 to 32, not 33"),
        ({"ways": 2, "index_bits": 0}, "index_bits must be 1 to 32, not 0"),
        ({"rows": 1025}, "rows must be 1 to 1024, not 1025"),
        ({"address_bits": 129}, "address_bits must be 1 to 128, not 129"),
        ({"tcam_cycles": 3}, "tcam_cycles must be 4 to 32, not 3"),
    ],
)
def test_sizes_out_of_range(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        RuleCacheParams(**keys)

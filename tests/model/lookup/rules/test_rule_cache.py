"""The golden rule cache: cycles by hand, and the counts of the cube cache where lookups wait for each other."""

import random

import pytest

from hopforge.model.lookup.rules.cube_cache import CubeCache, CubeSettings
from hopforge.model.lookup.rules.cubes import prefix_mask
from hopforge.model.lookup.rules.rule_cache import Request, RowUpdate, RuleCache, RuleCacheOutputs
from hopforge.model.lookup.rules.rule_cache_params import RuleCacheParams
from hopforge.model.lookup.rules.rule_table import Rule, RuleTable, Update
from hopforge.model.numbers.crc import crc_address

WEST, EAST = 3, 5


def play(cache: RuleCache, offered: dict[int, Request | RowUpdate], cycles: int) -> dict[int, RuleCacheOutputs]:
    """Offer each in its cycle only, and return the outputs of all cycles."""
    found = {}
    for cycle in range(cycles):
        this = offered.get(cycle)
        request, update = (this if isinstance(this, kind) else None for kind in (Request, RowUpdate))
        found[cycle] = cache.step(request, update)  # type: ignore[arg-type]
    return found


def answers(found: dict[int, RuleCacheOutputs]) -> dict[int, tuple[int, int, int | None]]:
    """Return cycle -> number, whether a hit, and answer."""
    return {
        cycle: (out.resp_id, out.resp_hit, out.resp_output if out.resp_match else None)
        for cycle, out in found.items()
        if out.resp_valid
    }


def test_cycles_by_hand() -> None:
    """A rule comes in cycle 0; a miss takes 2 + 4 cycles and blocks the port in one of them, a hit takes 2."""
    cache = RuleCache(RuleCacheParams(entries=2, rows=2, address_bits=4))
    found = play(cache, {
        0: RowUpdate(row=1, rule=1, value=0b1011, length=2, output=WEST),
        1: Request(1, 0b1000),  # miss: in C in cycle 2 and again in 6
        7: Request(2, 0b1011),  # hit
        8: RowUpdate(row=1, rule=1, value=0b1000, length=2, output=EAST),
        9: Request(3, 0b1011),  # behind it: miss, in C in 10 and 14
    }, 17)  # fmt: skip
    assert answers(found) == {7: (1, 0, WEST), 9: (2, 1, WEST), 15: (3, 0, EAST)}
    assert [cycle for cycle, out in found.items() if out.filled] == [7, 15]
    assert [cycle for cycle, out in found.items() if not out.req_ready] == [0, 5, 8, 13]
    assert [cycle for cycle, out in found.items() if not out.update_ready] == [1, 2, 5, 9, 10, 13]


def test_an_update_behind_a_miss_drops_its_line() -> None:
    """The answer is that of the moment in which the lookup was accepted; the line would be wrong, and is not kept."""
    cache = RuleCache(RuleCacheParams(entries=2, rows=2, address_bits=4))
    found = play(cache, {
        0: RowUpdate(row=0, rule=1, value=0b1000, length=1, output=WEST),
        3: Request(1, 0b1100),
        4: RowUpdate(row=1, rule=1, value=0b1110, length=3, output=EAST),  # not in the rule's 110*, but in 1***
        5: Request(2, 0b1110),
        14: Request(3, 0b1100),
    }, 22)  # fmt: skip
    assert answers(found) == {9: (1, 0, WEST), 11: (2, 0, EAST), 20: (3, 0, WEST)}
    assert [cycle for cycle, out in found.items() if out.dropped] == [9]
    assert sorted(cache.lines) == [(0b1100, 0b1110), (0b1110, 0b1110)]  # 110* and 111*


def test_what_is_refused() -> None:
    cache = RuleCache(RuleCacheParams(entries=1, rows=3, address_bits=4))
    found = play(cache, {
        0: RowUpdate(row=1, rule=0),  # nothing there
        3: RowUpdate(row=3, rule=1, length=1),  # no such row
        6: RowUpdate(row=0, rule=1, length=5),  # no such length
        9: RowUpdate(row=0, rule=1, value=0b0111, length=1, output=WEST),
        12: RowUpdate(row=0, rule=1, value=0b1000, length=1, output=EAST),  # over another rule
        15: RowUpdate(row=0, rule=1, value=0b0000, length=1, output=EAST),  # the same prefix
    }, 20)  # fmt: skip
    assert [cycle for cycle, out in found.items() if out.refused] == [2, 5, 8, 14]
    assert cache.table.rules == [Rule(0, 0, 0b1000, 1, EAST)]


def test_a_flush_forgets_what_is_in_flight() -> None:
    cache = RuleCache(RuleCacheParams(entries=2, rows=1, address_bits=4, policy="exact"))
    found = play(cache, {0: Request(1, 2), 8: Request(2, 3), 9: RowUpdate(flush=1), 16: Request(3, 2)}, 24)
    assert answers(found) == {6: (1, 0, None), 14: (2, 0, None), 22: (3, 0, None)}
    assert [cycle for cycle, out in found.items() if out.dropped] == [14]
    assert list(cache.lines) == [(2, 15)]


def _in_sets() -> RuleCache:
    """Two sets of one line; the highest bit of four chooses: the CRC of 0 and of 1 ends with different bits."""
    cache = RuleCache(RuleCacheParams(entries=2, ways=1, index_bits=1, rows=2, address_bits=4))
    assert [crc_address("CRC-32C", word, 1) & 1 for word in (0, 1)] == [1, 0]
    return cache


def test_reset_walks_through_the_sets() -> None:
    """Two steps, in C in cycles 1 and 2; no update until then, lookups in every second turn."""
    found = play(_in_sets(), {}, 6)
    assert [cycle for cycle, out in found.items() if not out.update_ready] == [0, 1, 2]
    assert [cycle for cycle, out in found.items() if not out.req_ready] == [0]


def test_a_wide_update_walks_and_its_lines_do_not_answer() -> None:
    """0*** is in set 1, 1*** in set 0: the walk comes to 0*** last."""
    cache = _in_sets()
    found = play(cache, {
        4: RowUpdate(row=0, rule=1, value=0, length=0, output=WEST),  # walk in C in 6 and 7
        10: Request(1, 0b0011),  # miss: FILL in C in 15
        17: Request(2, 0b0011),  # hit
        18: RowUpdate(row=0, rule=1, value=0, length=0, output=EAST),  # steps in C in 20 and 21
        19: Request(3, 0b0011),  # in C in 20: the line is there and must not answer; FILL in C in 24
        30: Request(4, 0b0100),  # hit: no line is wider than one bit
        31: Request(5, 0b1100),  # another set
    }, 40)  # fmt: skip
    assert answers(found) == {
        16: (1, 0, WEST), 19: (2, 1, WEST), 25: (3, 0, EAST), 32: (4, 1, EAST), 37: (5, 0, EAST)
    }  # fmt: skip
    assert cache.lines == {(0b0000, 0b1000): EAST, (0b1000, 0b1000): EAST}


def test_a_narrow_update_needs_no_walk() -> None:
    cache = _in_sets()
    found = play(cache, {
        4: RowUpdate(row=1, rule=1, value=0b0110, length=3, output=WEST),
        8: Request(1, 0b0110), 9: Request(2, 0b1111),
        20: RowUpdate(row=1, rule=1, value=0b0110, length=3, output=EAST),
        23: Request(3, 0b1111), 24: Request(4, 0b0110),
    }, 34)  # fmt: skip
    assert [cycle for cycle, out in found.items() if cycle > 18 and not out.update_ready] == [21, 22, 28]
    assert answers(found) == {14: (1, 0, WEST), 15: (2, 0, None), 25: (3, 1, None), 30: (4, 0, EAST)}


def test_a_walk_ends_under_full_load() -> None:
    """Before each of 16 steps goes at most a lookup, and each lookup comes back once."""
    params = RuleCacheParams(policy="exact", entries=16, ways=1, rows=1, address_bits=16, tcam_cycles=9)
    cache = RuleCache(params)
    ready = 0
    for cycle in range(200):
        out = cache.step(Request(cycle % 64, 7 * cycle), None)
        if out.update_ready:
            break
        ready += out.req_ready
    assert cycle <= 3 * 16 + 9 + 2 and ready


@pytest.mark.parametrize("invalidation", ["overlap", "flush"])
@pytest.mark.parametrize("policy", ["exact", "host", "mep"])
@pytest.mark.parametrize("ways", [None, 1])
def test_counts_of_the_cube_cache(policy: str, invalidation: str, ways: int | None) -> None:
    """Where every operation waits for the one before, the hardware is the cube cache that fills at once."""
    draw, width, size, bits = random.Random(5), 6, 3 if ways is None else 4, None if ways is None else 3
    params = RuleCacheParams(
        policy=policy, entries=size, rows=5, address_bits=width, invalidation=invalidation, ways=ways, index_bits=bits
    )
    settings = CubeSettings(policy, size, invalidation, ways=ways, index_bits=bits)
    hardware, cache = RuleCache(params), CubeCache(RuleTable([], width), settings)
    play(hardware, {}, 16)
    counted = {"hits": 0, "fills": 0, "evicted": 0}
    rules: dict[int, Rule] = {}
    for number in range(600):
        if draw.random() < 0.15:
            row, out = draw.randrange(5), draw.randrange(4)
            if row not in rules:
                mask = prefix_mask(draw.randrange(width + 1), width)
                rule = Rule(row, draw.randrange(64) & mask, mask, mask.bit_count(), out)
                offered, event = RowUpdate(row, 1, rule.value, rule.priority, out), Update("add", rule)
                rules[row] = rule
            elif draw.random() < 0.5:
                offered, event = RowUpdate(row, 0), Update("del", rules.pop(row))
            else:
                rules[row] = rules[row]._replace(out=out)
                event = Update("mod", rules[row])
                offered = RowUpdate(row, 1, rules[row].value, rules[row].priority, out)
            told = play(hardware, {0: offered}, 16)
            cache.update(event)
            assert not any(output.refused for output in told.values())
            continue
        address = draw.choice([0, 7, 9, 21, 22, 40, 41, 63])
        told = play(hardware, {0: Request(number % 64, address)}, 8)
        out = cache.look_up(address)
        assert [answer for *_, answer in answers(told).values()] == [out]
        counted["hits"] += sum(output.resp_hit for output in told.values())
        counted["fills"] += sum(output.filled for output in told.values())
        counted["evicted"] += sum(output.evicted for output in told.values())
    cache.look_up(0)  # writes what the last miss left
    right = cache.counts()
    assert right.hits and right.evicted and right.wrong == 0
    last = play(hardware, {0: Request(0, 0)}, 8)
    counted["hits"] += sum(output.resp_hit for output in last.values())
    assert counted == {"hits": right.hits, "fills": right.fills, "evicted": right.evicted}

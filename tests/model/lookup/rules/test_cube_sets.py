"""Cube caches in sets: golden model and kernel against an oracle of lists, written from the definition alone."""

import random
from typing import NamedTuple

import numpy as np
import pytest

from hopforge.model.lookup.rules.address_words import as_addresses
from hopforge.model.lookup.rules.cube_cache import CubeCache, CubeSettings
from hopforge.model.lookup.rules.cube_kernel import PrefixRules, run_prefixes
from hopforge.model.lookup.rules.cube_sets import CubeSets
from hopforge.model.lookup.rules.cubes import prefix_mask
from hopforge.model.lookup.rules.rule_table import Rule, RuleTable, Update
from hopforge.sim.hits.rule_traffic import RuleTraffic

Prefix = tuple[int, int]
WIDTHS = (3, 8, 12, 32, 62, 63, 64, 65, 100, 128)


class Case(NamedTuple):
    width: int
    settings: CubeSettings
    start: dict[Prefix, int]
    events: list[int | tuple[str, Prefix, int]]


def crc32c(data: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


class Oracle:
    """A list of [value, length, answer] for each set, the most recent one last; a miss is written at once."""

    def __init__(self, case: Case) -> None:
        self.case, self.width, self.rules = case, case.width, dict(case.start)
        self.sets: list[list[list[int]]] = [[] for _ in range(case.settings.size // (case.settings.ways or 1))]
        self.counts = {"hits": 0, "wrong": 0, "evicted": 0, "absorbed": 0, "invalidated": 0}

    def inside(self, address: int, prefix: list[int] | Prefix, most: int | None = None) -> bool:
        length = prefix[1] if most is None else min(prefix[1], most)
        return (address ^ prefix[0]) >> (self.width - length) == 0

    def look_up(self, address: int) -> None:
        bits, settings = self.case.settings.index_bits or 0, self.case.settings
        matching = [(prefix[1], out) for prefix, out in self.rules.items() if self.inside(address, prefix)]
        own, answer = max(matching, default=(-1, -1))
        word = (address >> (self.width - bits)).to_bytes(-(-bits // 8), "big")
        held = self.sets[crc32c(word) % len(self.sets)]
        for line in sorted(held, key=lambda line: -line[1]):
            if self.inside(address, line):
                self.counts["hits"] += 1
                self.counts["wrong"] += line[2] != answer
                held.append(held.pop(held.index(line)))
                return
        longer = [prefix for prefix in self.rules if prefix[1] > own]
        free = [
            n for n in range(max(own, 0), self.width) if not any(self.inside(address, other, n) for other in longer)
        ]  # fmt: skip
        narrow = {"exact": [], "host": free if free[:1] == [max(own, 0)] else [], "mep": free}[settings.policy]
        length = max(min(narrow, default=self.width), bits)
        value = address >> (self.width - length) << (self.width - length)
        gone = [line for line in held if line[1] >= length and self.inside(line[0], (value, length))]
        for line in gone:
            held.remove(line)
        self.counts["absorbed"] += len(gone)
        if len(held) == settings.ways:
            held.pop(0)
            self.counts["evicted"] += 1
        held.append([value, length, answer])

    def update(self, kind: str, prefix: Prefix, out: int) -> None:
        if kind == "del":
            del self.rules[prefix]
        else:
            self.rules[prefix] = out
        for held in self.sets:
            for line in list(held):
                if self.case.settings.invalidation == "flush" or self.inside(line[0], prefix, line[1]):
                    held.remove(line)
                    self.counts["invalidated"] += 1


def drawn(rng: random.Random, lookups: int, width: int) -> Case:
    """Draw rules inside each other, addresses near them, and updates; a lookup of each ends the run."""
    ways, sets = rng.randint(1, 4), 1 << rng.randint(0, 4)
    settings = CubeSettings(
        rng.choice(["exact", "host", "mep"]), ways * sets, rng.choice(["overlap", "overlap", "flush"]), ways=ways,
        index_bits=rng.randint(1, width),
    )  # fmt: skip
    near = [rng.getrandbits(width)]
    live: dict[Prefix, int] = {}

    def prefix() -> Prefix:
        length = rng.randint(0, width)
        value = rng.choice(near) ^ (rng.getrandbits(width) if rng.random() < 0.3 else 0)
        return value >> (width - length) << (width - length), length

    for _ in range(rng.randint(1, 20)):
        found = prefix()
        live[found] = rng.randrange(4)
        near.append(found[0] | rng.getrandbits(width) >> found[1])
    start, events = dict(live), list[int | tuple[str, Prefix, int]]()
    for _ in range(lookups):
        events.append(rng.choice(near) ^ (1 << rng.randrange(width) if rng.random() < 0.5 else 0))
        if rng.random() > 0.08:
            continue
        kind, new = rng.choice(["add", "del", "mod"]), prefix()
        if kind == "add" and new not in live:
            live[new] = rng.randrange(4)
            events.append((kind, new, live[new]))
        elif kind != "add" and live:
            old, out = rng.choice(list(live)), rng.randrange(4)
            events.append((kind, old, out))
            live[old] = out
            if kind == "del":
                del live[old]
    return Case(width, settings, start, [*events, ("add", new, 0)] if (new := (0, 0)) not in live else events)


def check(case: Case, *, golden: bool) -> int:
    """Compare, and return the hits."""
    oracle, width = Oracle(case), case.width
    numbers: dict[Prefix, int] = {}

    def rule(prefix: Prefix, out: int) -> Rule:
        return Rule(numbers[prefix], prefix[0], prefix_mask(prefix[1], width), prefix[1], out)

    numbers |= {prefix: number for number, prefix in enumerate(case.start)}
    rules = [rule(prefix, out) for prefix, out in case.start.items()]
    updates, before, lookups = list[Update](), list[int](), list[int]()
    for number, event in enumerate(case.events, len(rules)):
        if isinstance(event, int):
            oracle.look_up(event)
            lookups.append(event)
            continue
        kind, prefix, out = event
        oracle.update(kind, prefix, out)
        if kind == "add":
            numbers[prefix] = number
        updates.append(Update(kind, rule(prefix, out)))
        before.append(len(lookups))
    traffic = RuleTraffic(as_addresses(lookups, width), np.array(before, np.int64), updates, width)
    lengths, outs = np.array([each.priority for each in rules]), np.array([each.out for each in rules], np.int32)
    table = PrefixRules(as_addresses([each.value for each in rules], width), lengths, outs, width)
    found = run_prefixes(table, traffic.prefix_events(), case.settings)._asdict()
    if golden:
        assert found == CubeCache(RuleTable(rules, width), case.settings).run(traffic.events())._asdict()
    last = isinstance(case.events[-1], int)  # its fill is written before the next event
    for name, count in oracle.counts.items():
        open_end = last and name in ("evicted", "absorbed") and count >= found[name]
        assert found[name] == count or open_end, case.settings
    assert found["wrong"] == 0
    return found["hits"]


def test_kernel_and_golden_equal_the_oracle() -> None:
    rng = random.Random(3)
    assert sum(check(drawn(rng, 250, rng.choice(WIDTHS)), golden=True) for _ in range(16)) > 500


@pytest.mark.study
def test_a_million_lookups() -> None:
    rng = random.Random(4)
    for _ in range(340):
        check(drawn(rng, 3000, rng.choice(WIDTHS)), golden=False)


def test_one_set_is_the_fully_associative_cache() -> None:
    """As many ways as entries, and one hashed bit, which cuts only what is wider than half of the addresses."""
    rng = random.Random(8)
    case = drawn(rng, 1500, 12)
    rules = [
        Rule(number, value, prefix_mask(length, 12), length, out)
        for number, ((value, length), out) in enumerate(case.start.items())
    ]
    lookups = [event for event in case.events if isinstance(event, int)]
    runs = [
        CubeCache(RuleTable(rules, 12), CubeSettings("exact", 8, ways=ways)).run(lookups) for ways in (None, 8)
    ]  # fmt: skip
    assert runs[0] == runs[1] and runs[0].evicted


@pytest.mark.parametrize("width", [62, 63, 64, 65, 128])
def test_one_address_and_every_length(width: int) -> None:
    """A rule of each length around one address; an address that first differs in bit k is answered by rule k."""
    value = int("95a6" * 8, 16) >> (128 - width)
    rules = [
        Rule(length, value & prefix_mask(length, width), prefix_mask(length, width), length, length)
        for length in range(width + 1)
    ]  # fmt: skip
    table = RuleTable(rules, width)
    for bit in range(width):
        assert table.answer(value ^ 1 << (width - 1 - bit)) == bit
    assert table.answer(value) == width
    lookups = [value ^ 1 << bit for bit in range(width)] * 2
    prefixes = PrefixRules(
        as_addresses([rule.value for rule in rules], width), np.arange(width + 1), np.arange(width + 1, dtype=np.int32),
        width,
    )  # fmt: skip
    traffic = RuleTraffic(as_addresses(lookups, width), np.zeros(0, np.int64), [], width)
    counts = run_prefixes(prefixes, traffic.prefix_events(), CubeSettings("mep", 256))
    assert (counts.hits, counts.wrong, counts.evicted) == (width, 0, 0)


def test_set_of_an_address() -> None:
    """The highest 20 bits as three bytes, by the CRC written out above."""
    sets = CubeSets(32, 20, 16)
    for address in (0, 0x12345678, 0xFFFFFFFF):
        assert sets.number(address) == crc32c((address >> 12).to_bytes(3, "big")) % 16


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"ways": 3}, "size=8 must be ways=3 times a power of two"),
        ({"ways": 0}, "size=8 must be ways=0 times a power of two"),
        ({"index_bits": 4}, "index_bits must be at least 1, with ways, not 4 with ways None"),
        ({"ways": 2, "index_bits": 0}, "index_bits must be at least 1, with ways, not 0 with ways 2"),
        ({"ways": 2, "index_bits": 9}, "index_bits must be at most the width of 8 bits, not 9"),
    ],
)
def test_sets_out_of_range(keys: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        CubeCache(RuleTable([], 8), CubeSettings("mep", 8, **keys))  # type: ignore[arg-type]

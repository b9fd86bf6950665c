"""The functional cache against a plain one written from the definition, and the specification's figures."""

import copy
import math
import pickle
from collections import OrderedDict
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from hopforge.model.config import parse_config
from hopforge.model.lookup.cache_line import Line, pack_line, unpack_line
from hopforge.model.lookup.cache_replay import replay, replay_streams
from hopforge.model.lookup.miss_causes import CAUSES, miss_causes
from hopforge.model.lookup.node_reduction import NodeReduction
from hopforge.model.lookup.routing_cache import RoutingCache
from hopforge.model.lookup.tcam import NO_MATCH
from hopforge.model.lookup.two_level_cache import TwoLevelCache
from hopforge.model.numbers.address import AddressFormat
from hopforge.model.numbers.crc import crc_address
from hopforge.model.numbers.skew_matrices import skew_matrices

# --- a plain cache from the definition


class PlainCache:
    """Sets as lists of (key, output) or None; docs/definitions/lookup-engine.md, "Replacement"."""

    def __init__(self, entries: int, ways: int, policy: str, skewed: bool, address_bits: int = 24, seed: int = 0xACE1):
        self.ways, self.rows, self.policy, self.skewed = ways, entries // ways, policy, skewed
        self.address_bits = address_bits
        self.lines: list[list[tuple[int, int] | None]] = [[None] * ways for _ in range(self.rows)]
        self.time = 0
        self.touched = [list(range(-ways, 0)) for _ in range(self.rows)]  # way 0 is the oldest
        self.filled = [list(range(-ways, 0)) for _ in range(self.rows)]
        self.pointer = [0] * self.rows
        self.tree = [{} for _ in range(self.rows)]  # type: list[dict[tuple[int, ...], int]]
        self.register = [int(bit) for bit in f"{seed:016b}"]  # the highest bit first
        self.matrices = skew_matrices(address_bits, (self.rows - 1).bit_length(), ways) if skewed else ()

    def places(self, key: int) -> list[tuple[int, int]]:
        payload = key % (1 << self.address_bits)
        if self.skewed:
            return [
                (sum(((payload & mask).bit_count() & 1) << bit for bit, mask in enumerate(matrix)), way)
                for way, matrix in enumerate(self.matrices)
            ]
        row = crc_address("CRC-32C", payload, self.address_bits) % self.rows
        return [(row, way) for way in range(self.ways)]

    def touch(self, row: int, way: int) -> None:
        self.time += 1
        self.touched[row][way] = self.time
        path: tuple[int, ...] = ()
        for level in reversed(range(self.ways.bit_length() - 1)):
            side = way >> level & 1
            self.tree[row][path] = 1 - side  # away from the touched way
            path = (*path, side)

    def lookup(self, key: int) -> int | None:
        for row, way in self.places(key):
            line = self.lines[row][way]
            if line is not None and line[0] == key:
                self.touch(row, way)
                return line[1]
        return None

    def fill(self, key: int, output: int) -> int | None:
        if self.lookup(key) is not None:
            return None
        places = self.places(key)
        free = [place for place in places if self.lines[place[0]][place[1]] is None]
        row, way = free[0] if free else self.victim(places)
        old = self.lines[row][way]
        self.lines[row][way] = key, output
        if old is not None and self.policy == "random":
            new = self.register[16 - 16] ^ self.register[16 - 15] ^ self.register[16 - 13] ^ self.register[16 - 4]
            self.register = [*self.register[1:], new]
        if not self.skewed and way == self.pointer[row]:
            self.pointer[row] = (way + 1) % self.ways
        self.touch(row, way)
        self.filled[row][way] = self.time
        return None if old is None else old[0]

    def victim(self, places: list[tuple[int, int]]) -> tuple[int, int]:
        row = places[0][0]
        if self.policy == "random":
            number = int("".join(map(str, self.register)), 2)
            return places[number * self.ways // 65536]
        if self.policy == "lru":
            return min(places, key=lambda place: self.touched[place[0]][place[1]])
        if self.policy == "fifo":
            if self.skewed:
                return min(places, key=lambda place: self.filled[place[0]][place[1]])
            return row, self.pointer[row]
        path: tuple[int, ...] = ()
        while len(path) < self.ways.bit_length() - 1:
            path = (*path, self.tree[row].get(path, 0))
        return row, int("0" + "".join(map(str, path)), 2)

    def remove(self, key: int) -> bool:
        for row, way in self.places(key):
            line = self.lines[row][way]
            if line is not None and line[0] == key:
                self.lines[row][way] = None
                return True
        return False

    def clear(self) -> None:
        self.lines = [[None] * self.ways for _ in range(self.rows)]


GEOMETRIES = [
    *((16, ways, policy, False) for ways in (1, 2, 4, 8, 16) for policy in ("lru", "plru", "fifo", "random")),
    *((12, 3, policy, False) for policy in ("lru", "fifo", "random")),
    *((32, 4, policy, True) for policy in ("lru", "fifo", "random")),
    (1, 1, "lru", False), (64, 64, "plru", False), (64, 64, "lru", False), (24, 3, "random", True),
]  # fmt: skip


@pytest.mark.parametrize(("entries", "ways", "policy", "skewed"), GEOMETRIES)
def test_equals_the_plain_cache(entries: int, ways: int, policy: Any, skewed: bool) -> None:
    rng = np.random.default_rng(7)
    cache = RoutingCache(entries=entries, ways=ways, policy=policy, skewed=skewed)
    plain = PlainCache(entries, ways, policy, skewed)
    keys = rng.integers(0, 1 << 28, size=2 * entries + 3)
    hits = evictions = 0
    for _ in range(40 * entries + 200):
        key = int(rng.choice(keys))
        action = rng.random()
        if action < 0.01:
            cache.flush()
            plain.clear()
        elif action < 0.04:
            assert cache.invalidate(key) == plain.remove(key)
        else:
            found = cache.lookup(key)
            assert found == plain.lookup(key)
            hits += found is not None
            if (found is None and action < 0.9) or action > 0.95:  # sometimes what is there already
                evicted = cache.fill(key, key & 0xFFFF)
                assert evicted == plain.fill(key, key & 0xFFFF)
                evictions += evicted is not None
    assert hits > 20 and evictions > 20
    for row in range(plain.rows):
        for way in range(ways):
            line = cache.line(row, way)
            assert (line.tag, line.output) == plain.lines[row][way] if line.valid else plain.lines[row][way] is None
    live = {line[0]: line[1] for lines in plain.lines for line in lines if line is not None}
    assert cache.contents() == live


@settings(deadline=None, max_examples=60)  # the first call compiles
@given(st.sampled_from(GEOMETRIES), st.lists(st.integers(0, 40), max_size=200), st.integers(0, 100))
def test_a_run_is_the_same_as_one_at_a_time(geometry: tuple[int, int, Any, bool], keys: list[int], cut: int) -> None:
    entries, ways, policy, skewed = geometry
    plain = PlainCache(entries, ways, policy, skewed)
    cache = RoutingCache(entries=entries, ways=ways, policy=policy, skewed=skewed)
    expected_hits, expected_outputs, evictions, drops, fills = [], [], 0, 0, 0
    outputs = [NO_MATCH if key % 7 == 6 else 3 * key for key in keys]
    for key, output in zip(keys, outputs, strict=True):
        found = plain.lookup(key)
        expected_hits.append(found is not None)
        expected_outputs.append(output if found is None else found)
        if found is None and output == NO_MATCH:
            drops += 1
        elif found is None:
            fills += 1
            evictions += plain.fill(key, output) is not None
    parts = [cache.run(part, answers) for part, answers in ((keys[:cut], outputs[:cut]), (keys[cut:], outputs[cut:]))]
    assert [hit for part in parts for hit in part.hits.tolist()] == expected_hits
    assert [output for part in parts for output in part.outputs.tolist()] == expected_outputs
    assert sum(part.fills for part in parts) == fills == cache.counters["fills"]
    assert sum(part.evictions for part in parts) == evictions == cache.counters["evictions"]
    assert sum(part.drops for part in parts) == drops == cache.counters["drops"]
    assert cache.counters["lookups"] == len(keys)
    assert cache.counters["hits"] == sum(expected_hits)


def test_places_follow_the_crc_of_the_payload() -> None:
    cache = RoutingCache(entries=2048, ways=4)
    for payload in (0, 1, 0x123456, 0xFFFFFF):
        for mode in range(5):
            assert cache.rows(mode << 24 | payload) == (crc_address("CRC-32C", payload) & 511,) * 4
    wide = RoutingCache(entries=64, ways=2, address_bits=33, crc="CRC-24/OPENPGP")
    assert wide.rows(0x1_2345_6789)[0] == crc_address("CRC-24/OPENPGP", 0x1_2345_6789, 33) & 31
    assert RoutingCache(entries=4, ways=4).rows(99) == (0, 0, 0, 0)


# --- contents and control


def test_line_images() -> None:
    image = pack_line(Line(tag=(1 << 64) - 1, output=0x1234, valid=True, epoch=0x55))
    assert image.to_bytes(12, "little") == b"\xff" * 8 + b"\x34\x12" + b"\x55\x80"
    assert unpack_line(image) == Line((1 << 64) - 1, 0x1234, True, 0x55)
    assert pack_line(Line(0, 0, False, 0)) == 0
    for line, message in (
        (Line(1 << 64, 0, True, 0), r"tag must be less than 2\^64, not 0x10000000000000000"),
        (Line(0, 1 << 16, True, 0), r"output must be less than 2\^16, not 0x10000"),
        (Line(0, 0, True, 1 << 15), r"epoch must be less than 2\^15, not 0x8000"),
    ):
        with pytest.raises(ValueError, match=message):
            pack_line(line)
    with pytest.raises(ValueError, match=r"image must be less than 2\^96"):
        unpack_line(1 << 96)


@given(st.integers(0, (1 << 64) - 1), st.integers(0, 65535), st.booleans(), st.integers(0, (1 << 15) - 1))
def test_line_images_there_and_back(tag: int, output: int, valid: bool, epoch: int) -> None:
    assert unpack_line(pack_line(Line(tag, output, valid, epoch))) == Line(tag, output, valid, epoch)


def test_flush_and_epochs() -> None:
    cache = RoutingCache(entries=8, ways=2, epoch_bits=2)
    for epoch in range(6):
        cache.fill(5, epoch)
        row = cache.rows(5)[0]
        assert cache.line(row, 0) == Line(5, epoch, True, epoch % 4)
        cache.flush()
        assert cache.lookup(5) is None
        assert not cache.line(row, 0).valid
        assert cache.contents() == {}
    assert cache.counters["flushes"] == 6


def test_topology_change() -> None:
    cache = RoutingCache(entries=8, ways=2)
    cache.fill(5, 1)
    cache.topology_change()
    assert cache.lookup(5) is None
    assert cache.fill(5, 2) is None and cache.lookup(5) is None  # still disabled: nothing is taken
    assert not cache.run([5, 5], 2).hits.any()
    assert cache.run([5], NO_MATCH).drops == 1
    assert replay(NodeReduction.arbitrary(), 0, [5, 5], cache).hits == 0
    cache.enabled = True
    assert cache.run([5, 5], 2).outputs.tolist() == [2, 2]
    assert cache.lookup(5) == 2


def test_disabled_keeps_its_lines() -> None:
    cache = RoutingCache(entries=8, ways=2)
    cache.fill(5, 1)
    cache.enabled = False
    assert cache.lookup(5) is None
    cache.enabled = True
    assert cache.lookup(5) == 1


def test_no_match_is_not_cached() -> None:
    cache = RoutingCache(entries=8, ways=2)
    assert cache.fill(5, NO_MATCH) is None
    assert cache.lookup(5) is None
    run = cache.run([5, 5, 6], [NO_MATCH, NO_MATCH, 0])
    assert (run.hits.tolist(), run.outputs.tolist()) == ([False] * 3, [NO_MATCH, NO_MATCH, 0])
    assert (run.drops, run.fills) == (2, 1)
    assert cache.counters["drops"] == 3


def test_from_config() -> None:
    text = "name: test\ntopology: {kind: torus, radices: [4]}\nlookup: {cache: {entries: 512, ways: 8, policy: fifo}}\n"
    cache = RoutingCache.from_config(parse_config(text))
    assert (cache.entries, cache.ways, cache.policy, cache.address_bits, cache.enabled) == (512, 8, "fifo", 24, True)
    assert not RoutingCache.from_config(parse_config(text.replace("entries", "enabled: false, entries"))).enabled
    two = parse_config(text.replace("entries: 512", "second_level: {entries: 4096, ways: 2}, entries: 512"))
    both = TwoLevelCache.from_config(two)
    assert both is not None and (both.first.entries, both.second.entries, both.second.ways) == (512, 4096, 2)
    assert TwoLevelCache.from_config(parse_config(text)) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"entries": 0}, "entries must be at least 1, not 0"),
        ({"ways": 3}, "ways must divide entries=2048, not 3"),
        ({"ways": 0}, "ways must be 1 to 64, not 0"),
        ({"entries": 24, "ways": 4}, "entries must give a power of two of sets, not 24/4 = 6"),
        ({"policy": "mru"}, "policy must be one of lru, plru, fifo, random, srrip, not 'mru'"),
        ({"policy": "plru", "ways": 3, "entries": 24}, "policy plru needs a power of two of ways, not 3"),
        ({"policy": "plru", "skewed": True}, "policy plru needs no skewed association"),
        ({"address_bits": 60}, "address_bits must be 1 to 59, not 60"),
        ({"epoch_bits": 16}, "epoch_bits must be 1 to 15, not 16"),
        ({"random_seed": 0}, "random_seed must be 1 to 65535, not 0"),
        ({"crc": "CRC-7"}, r"crc must be one of CRC-24/OPENPGP, .*, not 'CRC-7'"),
    ],
)
def test_bad_parameters(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RoutingCache(**arguments)


def test_replay_takes_destinations_of_any_shape() -> None:
    reduction, words = NodeReduction.arbitrary(), np.array([[1, 2, 1], [3, 1, 2]])
    found = replay(reduction, 0, words, RoutingCache(entries=4, ways=2))
    assert found == replay(reduction, 0, words.reshape(-1), RoutingCache(entries=4, ways=2))
    assert (found.lookups, found.hits) == (6, 3)
    assert replay(reduction, 0, 7, RoutingCache(entries=4, ways=2)).lookups == 1


def test_bad_arguments() -> None:
    cache = RoutingCache()
    for call in (lambda: cache.lookup(1 << 28), lambda: cache.run([0, 1 << 28]), lambda: cache.fill(1 << 28, 0)):
        with pytest.raises(ValueError, match=r"key must be less than 2\^28, not 0x10000000"):
            call()
    with pytest.raises(ValueError, match="key must be less than .*, not -0x1"):  # noqa: RUF043
        cache.run([-1])
    for call in (lambda: cache.fill(0, -2), lambda: cache.run([0], [-2])):
        with pytest.raises(ValueError, match="at least 0, or NO_MATCH = -1, not -2"):
            call()
    with pytest.raises(ValueError, match="outputs must be one, or as many as keys=3, not 2"):
        cache.run([1, 2, 3], [1, 2])
    with pytest.raises(ValueError, match="row must be less than 512 and way less than 4, not 512, 0"):
        cache.line(512, 0)
    with pytest.raises(ValueError, match="address_bits of the cache must be width_bits=24, not 16"):
        replay(NodeReduction.arbitrary(), 0, [0], RoutingCache(address_bits=16))
    with pytest.raises(ValueError, match=r"starts must ascend from 0 to the number of keys=2, not \[0, 1\]"):
        replay_streams([1, 2], [0, 1], cache)
    with pytest.raises(ValueError, match="address_bits must be 24 in both levels, not 16"):
        TwoLevelCache(cache, RoutingCache(address_bits=16))


# --- two levels


def test_two_levels_one_at_a_time_and_in_a_run() -> None:
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 300, 4000)

    def make() -> TwoLevelCache:
        return TwoLevelCache(RoutingCache(entries=16, ways=2), RoutingCache(entries=128, ways=4, policy="fifo"))

    one, many = make(), make()
    expected = []
    for key in keys.tolist():
        before = one.first.counters["hits"], one.second.counters["hits"]
        output = one.lookup(key)
        assert output in {None, key % 5}
        if output is None:
            one.fill(key, key % 5)
        after = one.first.counters["hits"], one.second.counters["hits"]
        expected.append(1 if after[0] > before[0] else 2 if after[1] > before[1] else 0)
    assert many.run(keys, keys % 5).tolist() == expected
    assert set(expected) == {0, 1, 2}
    assert one.first.contents() == many.first.contents()
    assert one.second.contents() == many.second.contents()
    key = next(iter(one.second.contents()))
    assert one.invalidate(key)
    assert one.lookup(key) is None
    one.flush()
    assert one.first.contents() == one.second.contents() == {}


# --- why lookups miss


def plain_causes(keys: list[int], hits: list[bool], entries: int) -> list[str]:
    seen: set[int] = set()
    full: OrderedDict[int, None] = OrderedDict()
    causes = []
    for key, hit in zip(keys, hits, strict=True):
        ideal = key in full
        causes.append(
            "hit" if hit else "compulsory" if key not in seen else "conflict" if ideal else "capacity"
        )  # fmt: skip
        seen.add(key)
        full[key] = None
        full.move_to_end(key)
        if len(full) > entries:
            full.popitem(last=False)
    return causes


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 30), max_size=300), st.sampled_from([(1, 1), (2, 1), (4, 2), (8, 2), (16, 16), (32, 2)]))
def test_causes_of_misses(keys: list[int], geometry: tuple[int, int]) -> None:
    entries, ways = geometry
    hits = RoutingCache(entries=entries, ways=ways).run(keys).hits
    causes = [CAUSES[cause] for cause in miss_causes(keys, hits, entries)]
    assert causes == plain_causes(keys, hits.tolist(), entries)


def test_causes_of_many_keys() -> None:
    rng = np.random.default_rng(5)
    keys = rng.integers(0, 1 << 28, 5000)[rng.integers(0, 5000, 60_000)]
    hits = RoutingCache().run(keys).hits
    causes = miss_causes(keys, hits, 2048)
    assert [CAUSES[cause] for cause in causes] == plain_causes(keys.tolist(), hits.tolist(), 2048)
    assert np.bincount(causes, minlength=4).min() > 100
    full = RoutingCache(entries=64, ways=64).run(keys).hits
    assert not (miss_causes(keys, full, 64) == CAUSES.index("conflict")).any()


def test_causes_bad_arguments() -> None:
    with pytest.raises(ValueError, match="entries must be at least 1, not 0"):
        miss_causes([1], [False], 0)
    with pytest.raises(ValueError, match="hits must be as many as keys=1, not 2"):
        miss_causes([1], [False, True], 4)


# --- long runs


REPLAYS = [
    NodeReduction.torus((5, 5, 5), address=AddressFormat(24, 3), members=5),
    NodeReduction.mesh((8, 8), address=AddressFormat(24, 3)),
    NodeReduction.fat_tree(8, 1, address=AddressFormat(24, 3)),
    NodeReduction.dragonfly(5, 8, 41, address=AddressFormat(24, 3)),
    NodeReduction.arbitrary(),
]


@pytest.mark.parametrize("reduction", REPLAYS, ids=lambda reduction: reduction.mode)
@pytest.mark.parametrize(("policy", "skewed"), [("lru", False), ("plru", False), ("random", True)])
def test_replay_is_keys_and_a_run(reduction: NodeReduction, policy: Any, skewed: bool) -> None:
    rng = np.random.default_rng(1)
    radices = reduction.radices or (8, 8, 8)
    digits = [rng.integers(0, radix, 3000) << 3 * i for i, radix in enumerate(radices)]
    destinations = np.sum(digits, axis=0)
    router = max(reduction.routers // 2, 1)
    fused, plain = (RoutingCache(entries=16, ways=4, policy=policy, skewed=skewed) for _ in range(2))
    for part in (destinations[:1000], destinations[1000:]):
        counts = replay(reduction, router, part, fused)
        run = plain.run(reduction.keys(router, part))
        assert counts == (len(part), run.hits.sum(), run.evictions)
    assert fused.counters == plain.counters
    assert fused.contents() == plain.contents()


def test_replay_of_streams() -> None:
    rng = np.random.default_rng(2)
    keys = rng.integers(0, 100, 5000)
    starts = [0, 0, 1200, 1201, 4000, 5000]
    found = replay_streams(keys, starts, RoutingCache(entries=32, ways=2))
    for (start, end), counts in zip(pairwise(starts), found.tolist(), strict=True):
        cache = RoutingCache(entries=32, ways=2)
        hits = cache.run(keys[start:end]).hits
        causes = plain_causes(keys[start:end].tolist(), hits.tolist(), 32)
        assert counts == [*(causes.count(cause) for cause in CAUSES), cache.counters["evictions"]]


# --- the specification's figures

EVICTIONS_PERCENT = {  # spec/lookup.md: targets -> 1, 2, 4, 8, 16 ways
    256: (5.98, 0.911, 0.036, 0.0001, 0.0),
    512: (11.50, 3.25, 0.429, 0.014, 0.0),
    1024: (21.29, 10.35, 3.74, 0.829, 0.076),
    2048: (36.78, 27.05, 19.52, 13.93, 9.88),
}
TRIALS = 200


def expected_evictions(targets: int, entries: int, ways: int) -> float:
    """Evictions per inserted target: E[max(X − ways, 0)] over all sets, X binomial."""
    sets = entries // ways
    held = np.arange(targets + 1)
    return sets / targets * float(np.maximum(held - ways, 0) @ binom.pmf(held, targets, 1 / sets))


def scattered(rng: np.random.Generator, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return rng.choice(1 << 24, count, replace=False)


@pytest.mark.parametrize("targets", EVICTIONS_PERCENT)
@pytest.mark.parametrize("column", range(5))
@pytest.mark.thinned(2)
def test_evictions_of_the_table(targets: int, column: int) -> None:
    ways = (1, 2, 4, 8, 16)[column]
    expected = expected_evictions(targets, 2048, ways)
    printed = EVICTIONS_PERCENT[targets][column]
    digits = len(str(printed).split(".")[1])
    assert abs(100 * expected - printed) <= 10.0**-digits  # the last digit printed
    rng = np.random.default_rng(1000 * targets + ways)
    found = np.array([RoutingCache(ways=ways).run(scattered(rng, targets)).evictions for _ in range(TRIALS)])
    mean = found.mean() / targets
    # Poisson where events are rare, the spread of the trials elsewhere
    error = max(found.std(ddof=1), math.sqrt(expected * targets)) / targets / math.sqrt(TRIALS)
    assert abs(mean - expected) <= 4 * error + 1e-9


def test_lru_miss_rate_under_random_access() -> None:
    rng = np.random.default_rng(11)
    rates = []
    for _ in range(40):
        targets = scattered(rng, 2048)
        cache = RoutingCache()
        cache.run(rng.choice(targets, 30_000))
        rates.append(1 - cache.run(rng.choice(targets, 50_000)).hits.mean())
    assert np.mean(rates) == pytest.approx(0.1952, abs=0.004)


def test_lru_miss_rate_in_cyclic_order() -> None:
    rng = np.random.default_rng(12)
    rates = []
    for _ in range(60):
        targets = scattered(rng, 2048)
        cache = RoutingCache()
        cache.run(targets)
        rates.append(1 - cache.run(np.tile(targets, 3)).hits.mean())
    # a set with more targets than ways misses all of them, the others none
    exact = 1 - binom.cdf(3, 2047, 1 / 512)
    assert exact == pytest.approx(0.566, abs=0.001)
    assert np.mean(rates) == pytest.approx(exact, abs=0.008)


def test_skewed_association_lifts_the_hit_rate_of_a_cyclic_order() -> None:
    """spec/router.md: 2048 scattered addresses in cyclic order, from 0.42 to 0.96 with random victims."""
    rng = np.random.default_rng(13)
    rates: dict[str, list[float]] = {"plain": [], "skewed": []}
    for _ in range(10):
        order = np.tile(scattered(rng, 2048), 60)
        for name, cache in (("plain", RoutingCache()), ("skewed", RoutingCache(policy="random", skewed=True))):
            cache.run(order)
            rates[name].append(float(cache.run(order).hits.mean()))
    assert np.mean(rates["plain"]) == pytest.approx(0.43, abs=0.02)
    assert np.mean(rates["skewed"]) == pytest.approx(0.96, abs=0.015)


@pytest.mark.parametrize("ways", [1, 2, 4, 8, 16])
def test_contiguous_addresses_do_not_conflict_with_the_default(ways: int) -> None:
    for targets in (1, 100, 256, 512, 1000, 1024, 2048):
        cache = RoutingCache(ways=ways)
        run = cache.run(np.tile(np.arange(targets), 3))
        if ways > 1 or targets <= 1024:
            assert run.evictions == 0, targets
            assert run.hits.sum() == 2 * targets


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda cache: pickle.loads(pickle.dumps(cache))])
def test_a_copy_goes_on_by_itself_where_the_original_is(copied: Callable[[RoutingCache], RoutingCache]) -> None:
    cache = RoutingCache(entries=8, ways=2, policy="random")
    cache.run(np.arange(50), np.arange(50))
    other = copied(cache)
    assert other.contents() == cache.contents() and other.counters == cache.counters
    before, order = cache.contents(), np.arange(100, 0, -1)
    run = other.run(order, order)
    assert cache.contents() == before != other.contents()
    assert np.array_equal(cache.run(order, order).hits, run.hits) and cache.contents() == other.contents()


def test_ble_is_no_default() -> None:
    for ways in (1, 2, 4, 8, 16):
        for targets in (256, 512, 1024, 2048):
            cache = RoutingCache(ways=ways, crc="CRC-24/BLE")
            assert cache.run(np.arange(targets)).evictions / targets == pytest.approx(0.87, abs=0.006)

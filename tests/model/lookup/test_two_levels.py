"""Two levels of caches, inclusive, exclusive and neither: golden cases, the readable model and the kernel."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.lookup.golden.two_levels import LevelShape, run_levels
from hopforge.model.lookup.routing_cache import RoutingCache
from hopforge.model.lookup.two_level_cache import TwoLevelCache
from hopforge.model.lookup.two_levels import run_two_levels
from hopforge.model.numbers.crc import CrcMatrix, affine_tables, crc_address

_PLACES = [folder / "shared" / "beyond" / "levels.json" for folder in Path(__file__).parents]
GOLDEN = next((place for place in _PLACES if place.is_file()), None)
CONTENTS = ("nine", "inclusive", "exclusive")


def crc_of(key: int) -> int:
    return crc_address("CRC-32C", key)


def cache_of(entries: int, ways: int, index: str) -> RoutingCache:
    """A cache whose set is a CRC, or with ``mod`` the low bits of the key."""
    cache = RoutingCache(entries=entries, ways=ways)
    if index == "mod":
        low = CrcMatrix(tuple(1 << bit for bit in range(cache.row_bits)), 0)
        cache.tables = cache.tables.with_fields(rows=np.array([affine_tables(low, 24)]))
    return cache


def shape_of(entries: int, ways: int, index: str) -> LevelShape:
    return LevelShape(entries, ways, crc_of if index == "crc" else int)


@pytest.mark.skipif(GOLDEN is None, reason="the folder shared is not beside this checkout")
def test_golden_cases() -> None:
    assert GOLDEN is not None
    runs = 0
    for case in json.loads(GOLDEN.read_text())["two_level"]:
        ports, keys = np.array(case["stream"]).T
        for run in case["runs"]:
            plain = run_levels(
                case["stream"], case["ports"], shape_of(*run["l1"]), shape_of(*run["l2"]), run["mode"]
            )
            assert plain == (run["l1_hits"], run["l2_hits"], run["tcam"], run["back"]), run
            found = run_two_levels(ports, keys, cache_of(*run["l1"]), cache_of(*run["l2"]), run["mode"])
            assert tuple(found) == tuple(plain), run
            lookups = len(keys)
            first, last = (lookups - found.first_hits) / lookups, found.tcam / (lookups - found.first_hits)
            assert 0.4 + first * (4 + last * 25) == pytest.approx(run["latency"], abs=1e-8)
            runs += 1
    assert runs >= 12


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize(
    ("first", "second"), [((4, 2), (16, 4)), ((8, 8), (8, 1)), ((2, 1), (64, 4)), ((16, 4), (4, 4))]
)
def test_kernel_equals_the_readable_model(content: str, first: tuple[int, int], second: tuple[int, int]) -> None:
    rng = np.random.default_rng(sum(first))
    ports, keys = rng.integers(0, 3, 2000), np.minimum(rng.zipf(1.2, 2000), 90)
    plain = run_levels(
        zip(ports.tolist(), keys.tolist(), strict=True), 3, shape_of(*first, "crc"), shape_of(*second, "crc"), content
    )
    found = run_two_levels(ports, keys, cache_of(*first, "crc"), cache_of(*second, "crc"), content)
    assert tuple(found) == tuple(plain)
    assert (found.back > 0) == (content == "inclusive" and second[0] < 64)


def test_by_hand() -> None:
    """Two ports with a line each; a second level of two lines."""
    lookups = [(0, 1), (0, 2), (0, 3), (0, 1)]
    first, second = cache_of(1, 1, "mod"), cache_of(2, 2, "mod")
    ports, keys = zip(*lookups, strict=True)
    # nine: 3 pushes 1 out of the second level; exclusive: it holds what the line gave up, 1 and 2
    assert run_two_levels(ports, keys, first, second, "nine").second_hits == 0
    assert run_two_levels(ports, keys, first, second, "exclusive").second_hits == 1
    # inclusive: port 1 keeps key 1 until port 0 has pushed it out of the second level
    lookups = [(1, 1), (0, 2), (0, 3), (1, 1)]
    ports, keys = zip(*lookups, strict=True)
    assert run_two_levels(ports, keys, first, second, "nine")[::3] == (1, 0)
    assert run_two_levels(ports, keys, first, second, "inclusive")[::3] == (0, 1)


@pytest.mark.parametrize("policy", ["lru", "plru", "fifo", "random", "srrip"])
def test_nine_at_one_port_is_the_cache_of_two_levels(policy: Any) -> None:
    keys = np.minimum(np.random.default_rng(3).zipf(1.2, 3000), 200)
    first, second = (RoutingCache(entries=entries, ways=4, policy=policy) for entries in (8, 64))
    found = run_two_levels(np.zeros(len(keys), np.int64), keys, first, second, "nine")
    levels = TwoLevelCache(first, second).run(keys)
    assert found.first_hits == (levels == 1).sum() > 100
    assert found.second_hits == (levels == 2).sum() > 100


@pytest.mark.parametrize("changed", ["content: inclusive", "content: exclusive", "per: switch"])
def test_engines_take_neither(changed: str) -> None:
    text = f"name: x\ntopology: {{kind: mesh, radices: [3, 3]}}\nlookup: {{cache: {{second_level: {{{changed}}}}}}}\n"
    key, value = changed.split(": ")
    config = parse_config(text)
    with pytest.raises(ValueError, match=rf"second_level.{key}: must be \w+ in a lookup engine, not {value}"):
        parse_config(text, hardware=True)
    with pytest.raises(ValueError, match=f"second_level must have content=nine and per=cache here.*{value}"):
        TwoLevelCache.from_config(config)


def test_a_port_below_0_is_refused() -> None:
    with pytest.raises(ValueError, match="ports must be at least 0, not -2"):
        run_two_levels([0, -2], [1, 1], cache_of(4, 2, "crc"), cache_of(8, 2, "crc"), "nine")


@pytest.mark.parametrize(("ports", "keys", "said"), [
    ([0], [1, 2, 3], "ports must be as many as keys=3, not 1"),
    ([0, 1], [1], "ports must be as many as keys=1, not 2"),
    ([0], [-1], "key must be less than 2^28, not -0x1"),  # -1 is what an empty line holds: it was a hit
    ([0], [1 << 28], "key must be less than 2^28, not 0x10000000"),
])  # fmt: skip
def test_what_the_kernel_cannot_read_is_refused(ports: list[int], keys: list[int], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        run_two_levels(ports, keys, cache_of(4, 2, "crc"), cache_of(8, 2, "crc"), "nine")


def test_an_unknown_content_is_refused() -> None:
    with pytest.raises(ValueError, match=r"content must be one of .*nine.*, not 'both'"):
        run_two_levels([0], [1], cache_of(4, 2, "crc"), cache_of(8, 2, "crc"), "both")

"""`hopforge reproduce rules.ways`, `rules.ways-zipf`, `rules.index-bits`, `rules.area`: sets of caches before rules."""

import pandas as pd
import pytest

from hopforge.hw.parts.sram import Sram
from hopforge.sim.reproduce import REPRODUCTIONS
from hopforge.sim.reproduce.lookup import rule_figures, rule_sets
from hopforge.sim.reproduce.registry import Options


@pytest.fixture(autouse=True)
def few_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_figures, "_RULES", 512)


def test_one_set_of_all_ways_is_a_cache_without_sets() -> None:
    """With all bits hashed `exact` has no cube to cut: one set of 16 is what `all` is, and ways of 1 hit less."""
    points = {point["ways"]: {**point, "entries": 16} for point in REPRODUCTIONS["rules.ways"].points(Options())}
    assert list(points) == [1, 2, 4, 8, 16, "all"]
    rows = [row for ways in (1, 16, "all") for row in rule_sets._run(points[ways], Options())]
    table = pd.DataFrame(rows).set_index(["policy", "ways"])["hit_percent"]
    assert table["exact", 1] < table["exact", 16] == table["exact", "all"]
    assert table["mep", 1] < table["mep", 16] <= table["mep", "all"]


def test_all_bits_hashed_leave_addresses_alone() -> None:
    """A line of 32 bits is an address, with every policy; the same lookups then hit."""
    point = next(one for one in REPRODUCTIONS["rules.index-bits"].points(Options()) if one["index_bits"] == 32)
    rows = rule_sets._run(point, Options())
    assert {row["index_bits"] for row in rows} == {32} and {row["policy"] for row in rows} == {"exact", "host", "mep"}
    assert len({row["hit_percent"] for row in rows}) == 1


def test_points_and_words() -> None:
    points = REPRODUCTIONS["rules.ways-zipf"].points(Options())
    assert {(point["ways"], point["zipf"]) for point in points} == {
        (ways, zipf) for ways in (1, 2, 4, 8, 16, "all") for zipf in (0.6, 1.0, 1.4)
    }
    rows = pd.DataFrame(
        [{"zipf": 1.4, "ways": "all", "policy": "mep", "hit_percent": 50.0, "forwarding_mpps": 80.0}]
    )
    found, = rule_sets._compare("ways", "zipf")(rows, Options())
    assert (found.quantity, found.ours) == ("hit rate, zipf 1.4, ways all, mep", 50.0)


def test_area_of_memories_by_hand() -> None:
    """CACTI: 3400 µm² for 64 words of 96 bits, 11 710 for 256; 16 words are as those of 64, 300 as those of 256."""
    few, more = Sram(depth=16, width_bits=50), Sram(depth=300, width_bits=7)
    assert rule_sets.memory_um2([few]) == pytest.approx(16 * 50 * 3400 / (64 * 96))
    assert rule_sets.memory_um2([few, more]) == pytest.approx(16 * 50 * 3400 / 6144 + 300 * 7 * 11_710 / (256 * 96))
    assert rule_sets.memory_um2([]) == 0


def test_area_of_sets_and_of_lines_without() -> None:
    """4 ways of 48 bits (address, 6 of length, match, answer of 8, valid) and 6 of LRU; else flip-flops."""
    rows = [rule_sets._area({"lines": 16, "ways": ways}, Options())[0] for ways in (4, 0)]
    width = 32 + 6 + 1 + 8 + 1
    assert rows[0]["memory_bits"] == 4 * (4 * width + 6)
    assert (rows[1]["memory_bits"], rows[1]["memory_um2"]) == (0, 0.0)
    assert rows[0]["flops"] < 100 < 16 * 48 < rows[1]["flops"]
    found = rule_sets._compare_area(pd.DataFrame(rows), Options())
    assert [found[k].quantity for k in (0, 2)] == ["logic, 16 lines, sets of 4", "logic, 16 lines, fully associative"]

"""`hopforge reproduce lookup.help`: counts that are known otherwise, and the size at which help stops paying."""

import pandas as pd
import pytest

from hopforge.sim.reproduce.lookup import help as lookup_help
from hopforge.sim.reproduce.registry import Options


def table(misses):
    """Misses of LRU and of help by size, of 1000 look-ups."""
    return pd.DataFrame(
        [
            {"entries": entries, "help": name, "misses": count, "lookups": 1000}
            for entries, counts in zip((4, 8, 16, 32, 64), misses, strict=True)
            for name, count in zip(("none (LRU)", "refill"), counts, strict=True)
        ]
    )


@pytest.mark.parametrize(
    ("misses", "size"),
    [
        ([(500, 100), (400, 100), (90, 80), (90, 81), (50, 60)], 32),
        ([(500, 495), (400, 400), (90, 95), (90, 90), (50, 50)], 0),
        ([(500, 400), (400, 300), (90, 50), (90, 50), (50, 40)], 128),
    ],
)
def test_where_it_stops_paying(misses, size):
    assert lookup_help._pays_below(table(misses), help="refill") == size


def test_pairwise_is_what_an_independent_reference_counts(monkeypatch):
    """docs/definitions/prefetch.md: 8 lines, three rounds; hosts' ports and ports between switches together."""
    monkeypatch.setattr(lookup_help, "_ENTRIES", (8,))
    rows = lookup_help._measure({"workload": "all-to-all pairwise", "keys": "addresses"}, Options())
    found = {row["help"]: row["misses"] for row in rows}
    assert {row["lookups"] for row in rows} == {12096 + 49152}
    assert found.pop("prefetch") < 200
    assert found == {
        "none (LRU)": 12096 + 11200, "best choice of lines": 11072 + 9184, "refill": 610 + 10432,
        "refill, soft ejection": 240 + 11738, "refill, hard ejection": 484 + 12038,
    }  # fmt: skip

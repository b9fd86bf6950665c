

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

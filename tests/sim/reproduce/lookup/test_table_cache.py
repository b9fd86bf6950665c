"""`hopforge reproduce loren.cache`: keys by entry and by destination, where the counts are known otherwise."""

import pytest

from hopforge.model.config import parse_config
from hopforge.model.irregular.tables import build_tables
from hopforge.model.topology import build
from hopforge.sim.reproduce.lookup import table_cache
from hopforge.sim.reproduce.registry import Options


@pytest.fixture
def few(monkeypatch):
    chosen = ("LOREN 18, destination", "LOREN 18, entry")
    monkeypatch.setattr(table_cache, "_TABLES", {name: table_cache._TABLES[name] for name in chosen})
    monkeypatch.setattr(table_cache, "_ENTRIES", (4, 256))


def test_large_caches_miss_every_key_once(few):
    rows = {(r["tables"], r["entries"]): r for r in table_cache._measure({"workload": "uniform"}, Options())}
    config = parse_config(
        "name: x\ntopology: {kind: layout_random, n: 8, degree: 4, length: 2, seed: 1}\n"
        "tables: {scheme: loren, t_max: 18}\n"
    )
    tables = build_tables(config.tables, build(config.topology, config.address), config.seed)
    assert tables.details is not None
    visits = (
        set()
    )  # (switch, where from, destination) of all pairs: uniform traffic of 2000 packets a host has them all
    for s in range(64):
        for d in set(range(64)) - {s}:
            here, before = s, -1
            while True:
                visits.add((here, before, d))
                if here == d:
                    break
                before, here = here, int(tables.next_hop[here, d])
    for key in ("destination", "entry"):
        small, large = rows[f"LOREN 18, {key}", 4], rows[f"LOREN 18, {key}", 256]
        assert large["capacity"] == large["conflict"] == 0
        assert large["hits"] + large["compulsory"] == large["lookups"] == small["lookups"]
        assert small["hit_rate"] < large["hit_rate"]
    assert rows["LOREN 18, destination", 256]["compulsory"] == len(visits)
    details = tables.details
    search = {
        (u, w, d if u == d else -1 - min(
            details.destination[u, : details.entries[u]].tolist(),
            key=lambda e: abs(e % 8 - d % 8) + abs(e // 8 - d // 8),
        )) for u, w, d in visits
    }  # fmt: skip
    assert rows["LOREN 18, entry", 256]["compulsory"] == len(search)

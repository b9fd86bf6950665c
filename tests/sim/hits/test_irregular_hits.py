"""`hopforge hits` on tables: ways, keys and hits against a plain walk with a plain LRU cache at every input port."""

from collections import OrderedDict

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.irregular.table_routes import chosen_entries
from hopforge.model.irregular.tables import build_tables
from hopforge.model.topology import build
from hopforge.sim.hits.hit_rates import run_hits
from hopforge.sim.traffic.workload_packets import build_workload

TEXT = """
name: cached
topology: {kind: layout_random, n: 4, degree: 3, length: 3, hosts_per_router: 2, seed: 2}
tables: {TABLES}
routing: {algorithm: tables}
lookup: {cache: {entries: 4, ways: 4}}
workload: {kind: uniform, packets_per_host: 60}
"""


def _config(section, old="", new=""):
    return parse_config(TEXT.replace("TABLES", section).replace(old, new), "test.yml")


def _asked(tables, here, there):
    """Switch that stands for the entry taken, from the definitions of the schemes."""
    if hasattr(tables.details, "successor"):  # LOREN: the first of the nearest, on the floor plan of side 4
        known = tables.details.destination[here, : tables.details.entries[here]].tolist()
        return min(known, key=lambda d: abs(d % 4 - there % 4) + abs(d // 4 - there // 4))
    landmark = int(tables.details.landmark_of[there])
    return there if tables.details.known[here, there] or landmark == here else landmark


@pytest.mark.parametrize(
    "section", ["scheme: loren", "scheme: cowen", "scheme: thorup_zwick", "scheme: up_down, layers: single"]
)
@pytest.mark.parametrize("key", ["destination", "entry"])
def test_hits_against_a_plain_walk(section, key):
    if "up_down" in section and key == "entry":
        with pytest.raises(UserError, match="cache_key: entry is for loren, cowen, thorup_zwick only"):
            _config(f"{section}, cache_key: {key}")
        return
    config = _config(f"{section}, cache_key: {key}")
    topology = build(config.topology, config.address)
    tables = build_tables(config.tables, topology, config.seed)
    caches: dict[tuple[int, int], OrderedDict[object, None]] = {}
    hits = lookups = 0
    assert config.workload is not None
    sources, destinations = build_workload(config.workload, topology, config.seed).all_packets()
    for s, d in zip(sources.tolist(), destinations.tolist(), strict=True):
        here, port, there = s // 2, s % 2, d // 2
        while True:
            cache = caches.setdefault((here, port), OrderedDict())
            asked = ("host", d) if key == "destination" or here == there else ("switch", _asked(tables, here, there))
            lookups += 1
            hits += asked in cache
            cache[asked] = None
            cache.move_to_end(asked)
            if len(cache) > 4:
                cache.popitem(last=False)
            if here == there:
                break
            after = int(tables.next_hop[here, there])
            port = topology.peer_router[after].tolist().index(here)
            here = after
    found = run_hits(config).totals
    assert (found["lookups"], found["hits"]) == (lookups, hits)
    assert 0 < hits < lookups


def test_keys_are_few_and_lead_where_the_destination_leads():
    config = _config("scheme: loren")
    tables = build_tables(config.tables, build(config.topology, config.address), config.seed)
    chosen = chosen_entries(tables)
    for here in range(16):
        others = np.delete(np.arange(16), here)
        assert len(np.unique(chosen[here, others])) <= tables.entries[here]
        assert (tables.next_hop[here, chosen[here, others]] == tables.next_hop[here, others]).all()
    assert (np.diag(chosen) == -1).all()


def test_a_small_tcam_drops_what_it_has_no_row_for():
    whole = run_hits(_config("scheme: loren")).totals
    assert whole["unmatched"] == 0
    found = run_hits(
        _config("scheme: loren", "cache: {entries", "tcam: {kind: flops, rows: 3}, cache: {entries")
    ).totals
    assert found["unmatched"] > 0
    assert found["delivered"] < found["packets"] == whole["packets"]


def test_every_switch_needs_a_host_for_entry_keys(tmp_path):
    lines = ("router 0 node 0 router 1", "router 1 node 1 router 2", "router 2 router 3", "router 3 node 2")
    (tmp_path / "net.anynet").write_text("\n".join(lines) + "\n")
    text = TEXT.replace("TABLES", "scheme: cowen, cache_key: entry").split("topology:")
    rest = text[1].split("\n", 1)[1]
    config = parse_config(f"{text[0]}topology: {{kind: edge_list, file: net.anynet}}\n{rest}", folder=tmp_path)
    with pytest.raises(UserError, match=r"tables.cache_key: entry needs a host at every router; router 2 has none"):
        run_hits(config)

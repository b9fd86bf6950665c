"""SRRIP against a plain reading of its definition (docs/definitions/replacement.md); who does not take it says so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopforge.model.config import ConfigError, load_config, parse_config
from hopforge.model.config.lookup import CrcConfig
from hopforge.model.lookup.params import LookupParams
from hopforge.model.lookup.routing_cache import RoutingCache
from hopforge.sim.hits.hit_rates import run_hits

MODULO = CrcConfig(width=24, poly=1)
BASE = """\
name: t
topology: {kind: torus, radices: [4, 4]}
lookup: {reduction: false, cache: {entries: 4, ways: 4, policy: srrip}}
workload: {kind: uniform, packets_per_host: 60}
"""


def plain(keys, sets, ways):
    """Whether each look-up hits."""
    lines = [[] for _ in range(sets)]  # [key, prediction]
    hits = []
    for key in keys:
        row = lines[key % sets]
        found = next((line for line in row if line[0] == key), None)
        hits.append(found is not None)
        if found is not None:
            found[1] = 0
        elif len(row) < ways:
            row.append([key, 2])
        else:
            while all(line[1] < 3 for line in row):
                for line in row:
                    line[1] += 1
            victim = next(line for line in row if line[1] == 3)
            victim[:] = [key, 2]
    return hits


@given(st.lists(st.integers(0, 23), max_size=200), st.sampled_from([(1, 1), (1, 3), (2, 2), (4, 4)]))
def test_kernel_is_the_definition(keys, shape):
    sets, ways = shape
    cache = RoutingCache(entries=sets * ways, ways=ways, policy="srrip", crc=MODULO)
    want = plain(keys, sets, ways)
    assert cache.run(keys).hits.tolist() == want
    cache.reset()
    for key, hit in zip(keys, want, strict=True):  # one at a time
        assert (cache.lookup(key) is not None) is hit
        if not hit:
            cache.fill(key, 0)


def test_a_scan_does_not_push_out_what_is_used():
    keys = [1, 2, 1, 2] + [key for first in range(10, 40, 2) for key in (first, first + 1, 1, 2)]
    srrip = RoutingCache(entries=4, ways=4, policy="srrip", crc=MODULO).run(keys).hits
    fifo = RoutingCache(entries=4, ways=4, policy="fifo", crc=MODULO).run(keys).hits
    assert srrip.sum() == 2 + 2 * 15
    assert fifo.sum() < srrip.sum()


def test_replay_counts_it():
    found = run_hits(parse_config(BASE), bounds=True).totals
    assert found["min"] <= found["misses"] != found["lru"]


@pytest.mark.parametrize(
    ("lookup", "key"),
    [
        ("cache: {policy: srrip}", "lookup.cache.policy"),
        ("cache: {second_level: {policy: srrip}}", "lookup.cache.second_level.policy"),
    ],
)
def test_engines_refuse_it_by_name(lookup, key):
    config = parse_config(BASE.replace("reduction: false, cache: {entries: 4, ways: 4, policy: srrip}", lookup))
    with pytest.raises(ValueError, match=rf"{key}: must be lru, plru, fifo or random in a lookup engine, not srrip"):
        LookupParams.from_config(config)


def test_files_for_hardware_are_refused(tmp_path):
    (tmp_path / "c.yml").write_text(BASE)
    with pytest.raises(ConfigError, match=r"c.yml:3: lookup.cache.policy: must be lru, plru, fifo or random in"):
        load_config(tmp_path / "c.yml", hardware=True)


def test_skewed_association_is_refused():
    with pytest.raises(ConfigError, match="srrip is not defined for skewed association"):
        parse_config(BASE.replace("policy: srrip", "policy: srrip, skewed: true"))
    with pytest.raises(ValueError, match="policy srrip needs no skewed association"):
        RoutingCache(entries=8, ways=2, policy="srrip", skewed=True)

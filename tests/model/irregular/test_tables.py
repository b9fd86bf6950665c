"""Section `tables`: figures of merit against plain oracles, files, simulated networks, errors."""

import json

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.irregular import lash
from hopforge.model.irregular.channels import channel_list, check_next_hops
from hopforge.model.irregular.files import read_next_hops
from hopforge.model.irregular.neighbours import neighbour_array
from hopforge.model.irregular.shortest import shortest_next_hops
from hopforge.model.irregular.tables import build_tables
from hopforge.model.progress import told
from hopforge.model.routing.graphs import tables as routing_tables
from hopforge.model.topology import build
from hopforge.model.topology.floor_plan import positions
from hopforge.sim.pages.route_load import all_to_all_load, hotspot_quality, local_quality
from hopforge.sim.pages.route_write import quality_table, route_rows, write_route
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.start import summary

TEXT = """
name: irregular
topology: {kind: layout_random, n: 5, degree: 4, length: 3, seed: 2}
tables: {scheme: SCHEME, layers: LAYERS, patterns: 20}
router: {vcs: 12, buffer_flits: 4}
routing: {algorithm: tables}
simulation: {load: 0.05, min_cycles: 1000, max_cycles: 2000, warmup_cycles: 500}
"""


def _config(scheme="loren", layers="acro", **replaced):
    text = TEXT.replace("SCHEME", scheme).replace("LAYERS", layers)
    for old, new in replaced.items():
        text = text.replace(old, new)
    return parse_config(text, "test.yml")


def _tables(config):
    topology = build(config.topology, config.address)
    return build_tables(config.tables, topology, config.seed)


def _channels_of(tables, s, d):
    way = []
    while s != d:
        way.append(int(tables.next_channel[s, d]))
        s = int(tables.next_hop[s, d])
    return way


@pytest.mark.parametrize("scheme", ["shortest", "loren", "cowen", "thorup_zwick"])
def test_all_to_all_load_counts_paths(scheme):
    tables = _tables(_config(scheme))
    expected = np.zeros(len(tables.channels.source), int)
    for s in range(25):
        for d in range(25):
            for c in _channels_of(tables, s, d):
                expected[c] += 1
    assert all_to_all_load(tables.next_channel, tables.channels).tolist() == expected.tolist()
    assert expected.sum() == tables.hops.sum()


def test_quality_of_extreme_patterns():
    tables = _tables(_config("shortest"))
    generator = np.random.default_rng(1)
    # hotspot(1): all send to one switch; its last channels carry the rest of the network
    found = hotspot_quality(1.0, 3000, tables.next_channel, tables.channels, generator)
    expected = []
    for hot in range(25):
        load = np.zeros(len(tables.channels.source))
        ways = [_channels_of(tables, s, hot) for s in range(25) if s != hot]
        for way in ways:
            load[way] += 1
        expected.append((np.mean([1 / load[way].max() for way in ways]), np.mean([1 / len(way) for way in ways])))
    bandwidth, efficiency = np.mean(expected, axis=0)
    assert found.bandwidth == pytest.approx(bandwidth, rel=0.03)
    assert found.efficiency == pytest.approx(efficiency, rel=0.03)


def test_local_quality_prefers_near_switches():
    tables = _tables(_config("shortest"))
    place = positions(tables.topology)
    far, near = (
        local_quality(gamma, place, 500, tables.next_channel, tables.channels, np.random.default_rng(1))
        for gamma in (0.01, 6.0)
    )
    assert near.efficiency > far.efficiency
    assert near.bandwidth > far.bandwidth
    # γ → 0: every other switch with the same probability
    off = ~np.eye(25, dtype=bool)
    assert far.efficiency == pytest.approx((1 / tables.hops[off]).mean(), rel=0.02)


def test_patterns_without_a_pair_do_not_count():
    neighbours = neighbour_array([[1], [0]])
    channels = channel_list(neighbours)
    table = check_next_hops(shortest_next_hops(neighbours), channels)
    for beta in (0.0, 0.5, 1.0):  # both send over a link of their own or not at all
        assert hotspot_quality(beta, 50, table, channels, np.random.default_rng(1)) == (1, 1)


def test_switches_at_one_place_are_as_near_as_any():
    tables = _tables(_config("shortest"))
    off = ~np.eye(25, dtype=bool)
    one_place = np.zeros((25, 2))
    found = local_quality(2.0, one_place, 500, tables.next_channel, tables.channels, np.random.default_rng(1))
    assert found.efficiency == pytest.approx((1 / tables.hops[off]).mean(), rel=0.02)
    place = positions(tables.topology).copy()
    place[1] = place[0]
    close = local_quality(3000.0, 3 * place, 500, tables.next_channel, tables.channels, np.random.default_rng(1))
    assert 0 < close.efficiency <= 1


@pytest.mark.parametrize("scheme", ["shortest", "loren", "thorup_zwick"])
def test_files(tmp_path, scheme):
    config = _config(scheme)
    tables = _tables(config)
    quality = quality_table(config, tables, lambda done, total: None)
    assert list(quality["pattern"]) == ["hotspot"] * 3 + ["local"] * 3
    write_route(config, tables, quality, tmp_path / "out", lambda done, total: None)
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"next_hops.csv", "tables.json", "lft.txt", "load.png", "channels.csv", "metadata.json"} <= written
    assert ("path_length.png" in written) == (scheme != "shortest")
    assert ("landmarks.png" in written) == (scheme == "thorup_zwick")
    assert (read_next_hops(tmp_path / "out" / "next_hops.csv", 25).next_hop == tables.next_hop).all()
    document = json.loads((tmp_path / "out" / "tables.json").read_text(encoding="utf-8"))
    assert [len(row) for row in document["entries"]] == tables.entries.tolist()
    assert len(document["orders"]) == tables.layers.count
    rows = dict(route_rows(tables, quality))
    assert rows["entries"].startswith(f"{tables.entries.max()} at most")
    # a table of one's own gives the same network
    mine = f"file: {tmp_path / 'out' / 'next_hops.csv'}, layers_file: {tmp_path / 'out' / 'layers.csv'}, layers:"
    again = _tables(_config("file", "file", **{"layers:": mine}))
    assert (again.next_hop == tables.next_hop).all()
    assert (again.layers.layer == tables.layers.layer).all()
    assert again.layers.count == tables.layers.count


@pytest.mark.parametrize("layers", ["acro", "lash", "lash_tor", "dfsssp", "hop_indexed"])
def test_simulated_paths_are_those_of_the_tables(layers):
    config = _config("loren", layers)
    run = Simulation(config, 0.05, 1)
    found = run.run()
    tables = _tables(config)
    assert found.packets > 500
    assert found.dropped_packets == 0
    off = ~np.eye(25, dtype=bool)
    # uniform traffic, hosts send to themselves, too: routers visited = hops + 1
    assert found.hops == pytest.approx(1 + tables.hops[off].sum() / 625, rel=0.03)


def test_too_few_virtual_channels():
    config = _config("loren", "acro", **{"vcs: 12": "vcs: 1"})
    need = _tables(config).layers.count
    with pytest.raises(UserError, match=f"router.vcs must be at least {need} for acro with these tables, not 1"):
        Simulation(config, 0.05, 1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scheme: loren": "scheme: shortest, t_max: 9"}, "t_max: is for loren, cowen, thorup_zwick only"),
        ({"scheme: loren": "scheme: loren, ties: random"}, "ties: is for scheme=shortest only"),
        ({"scheme: loren": "scheme: file"}, "file: missing; scheme=file needs it"),
        ({"scheme: loren": "scheme: loren, file: x.csv"}, "file: is for scheme=file only"),
    ],
)
def test_section_errors(change, words):
    with pytest.raises(UserError, match=words):
        _config("loren", "acro", **change)


def test_a_table_of_layers_by_hop_that_is_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(routing_tables, "_MOST_ENTRIES", 1500)
    Simulation(_config(layers="dfsssp"), 0.05, 1)
    with pytest.raises(UserError, match=r"lash_tor has a layer for each hop .* 25 routers \d+ entries, more than 1500"):
        Simulation(_config(layers="lash_tor"), 0.05, 1)


def test_limits_of_networks():
    config = parse_config("name: x\ntopology: {kind: mesh, radices: [1]}\n", "test.yml")
    with pytest.raises(UserError, match="topology: at least 2 routers are needed for routing tables, not 1"):
        _tables(config)
    text = "name: x\ntopology: {kind: torus, radices: [128, 129]}\naddress: {chunk_bits: 8}\n"
    config = parse_config(text, "test.yml")
    with pytest.raises(UserError, match="topology: at most 16384 routers can have routing tables, not 16512: every"):
        _tables(config)


@pytest.mark.parametrize(("scheme", "layers", "free", "words"), [
    ("shortest", "acro", [40 * 25**2 - 1], "the routing tables of the .* need"),
    ("k_shortest", "fewest, lmc: 2", [100 * 25**2 - 1], "the routing tables of the .* need"),
    ("loren", "acro", [40 * 25**2, 1000], "the layers of the hops of all paths of the .* need"),
])  # fmt: skip
def test_tables_that_need_more_memory_than_there_is_are_refused(monkeypatch, scheme, layers, free, words):
    there = iter(free)
    monkeypatch.setattr("hopforge.model.free_memory.free_memory", lambda: next(there))
    with pytest.raises(UserError, match=words):
        _tables(_config(scheme, layers, **{"algorithm: tables": "algorithm: up_down"}))


def test_loren_is_checked_wherever_its_ways_are_followed(monkeypatch):
    monkeypatch.setattr(summary, "SAMPLED_ABOVE", 24)
    for routing, checked in (("tables", True), ("minimal, ways: tables", True), ("minimal", False)):
        rows = dict(summary.summarize(_config(**{"algorithm: tables": f"algorithm: {routing}"})))
        assert ("virtual layers" in rows) == checked
        assert ("not checked: more than 24 routers" in rows["tables"]) != checked


@pytest.mark.parametrize(
    ("method", "first", "times"), [("lash", "7 of 600 paths", 85), ("lash_tor", "paths of 1 of 25", 24)]
)
def test_lash_goes_on_where_it_was(monkeypatch, method, first, times):
    """Ctrl-C ends it between two parts; it had waited for all paths, which are many in large networks."""
    whole, told_words = _tables(_config("shortest", method)).layers, []
    monkeypatch.setattr(lash, "_AT_ONCE", 7)
    with told(told_words.append):
        parts = _tables(_config("shortest", method)).layers
    assert parts.count == whole.count > 1 and parts.layer.tolist() == whole.layer.tolist()
    assert first in told_words[0] and len(told_words) == times
    monkeypatch.setattr(lash, "MAX_LAYERS", whole.count - 1)
    with pytest.raises(UserError, match=f"{method} needs more than 64 layers"):
        _tables(_config("shortest", method))

"""LOREN on large networks: sampled pairs against plain walks and a breadth-first search of networkx."""

import dataclasses

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.irregular.loren import loren_path
from hopforge.model.topology import build
from hopforge.model.topology.routing_table import distances
from hopforge.sim.pages import route_large
from hopforge.sim.pages.route_large import large_rows, sample_loren, write_large

TEXT = "name: big\ntopology: {kind: layout_random, n: 12, degree: 4, length: 3, seed: 2}\ntables: {scheme: loren}\n"


@pytest.fixture(scope="module")
def found():
    config = parse_config(TEXT, "test.yml")
    return sample_loren(config, build(config.topology, config.address))


def test_sampled_pairs(found):
    peers = found.topology.peer_router
    graph = nx.Graph([(u, int(w)) for u, row in enumerate(peers) for w in row if w >= 0])
    far = dict(nx.all_pairs_shortest_path_length(graph))
    pairs = found.pairs
    assert len(pairs) == 64 * 143
    assert (pairs["source"] != pairs["destination"]).all()
    for pair in pairs.sample(500, random_state=1).itertuples():
        assert len(loren_path(found.tables, pair.source, pair.destination)) == pair.hops + 1
        assert far[pair.source][pair.destination] == pair.shortest


def test_rows_and_files(found, tmp_path):
    rows = dict(large_rows(found))
    assert rows["delivery"] == "9,152 sampled pairs followed, all delivered"
    assert rows["bits"].endswith("with an entry per destination 1,144")  # 143 · 8
    config = parse_config(TEXT, "test.yml")
    write_large(config, found, tmp_path / "out")
    entries = pd.read_parquet(tmp_path / "out" / "entries.parquet")
    assert (entries.groupby("router").size() == found.tables.entries).all()
    first = entries.groupby("router").head(4)
    assert (first["destination"] == first["next_router"]).all()  # neighbours come first
    assert (first["hops"] == 1).all()
    assert len(pd.read_csv(tmp_path / "out" / "pairs.csv")) == len(found.pairs)


def test_a_circle_is_refused_with_its_pair(found, monkeypatch):
    config = parse_config(TEXT, "test.yml")
    broken = found.tables.successor.copy()
    here, there = 0, int(broken[0, 0])
    broken[here], broken[there] = there, here
    wrong = dataclasses.replace(found.tables, successor=broken)
    monkeypatch.setattr(route_large, "loren_tables", lambda neighbours, t_max, plan: wrong)
    with pytest.raises(UserError, match=r"from router \d+ to router \d+ packets go in a circle"):
        sample_loren(config, build(config.topology, config.address))


def test_failures_are_named_and_counted(found, tmp_path):
    peers = found.topology.peer_router
    a, b = 0, int(peers[0].max())
    config = parse_config(TEXT + f"failed: {{links: [[{a}, {b}]], switches: [77]}}\n", "test.yml")
    left = sample_loren(config, build(config.topology, config.address))
    write_large(config, left, tmp_path / "out")
    after = pd.read_parquet(tmp_path / "out" / "entries.parquet")
    assert not (after == 77)[["router", "destination", "next_router"]].any(axis=None)
    graph = nx.Graph([(u, int(w)) for u, row in enumerate(peers) for w in row if w >= 0])
    graph.remove_edge(a, b)
    graph.remove_node(77)
    assert all(graph.has_edge(u, w) for u, w in zip(after["router"], after["next_router"], strict=True))
    far = dict(nx.all_pairs_shortest_path_length(graph))
    for pair in left.pairs.sample(200, random_state=1).itertuples():
        assert far[pair.source][pair.destination] == pair.shortest <= pair.hops
    before = {
        (u, int(d)): int(w)
        for u, (row, ways) in enumerate(zip(found.tables.destination, found.tables.successor, strict=True))
        for d, w in zip(row, ways, strict=True)
        if d >= 0
    }
    now = {(row.router, row.destination): row.next_router for row in after.itertuples()}
    written, removed = {k for k, w in now.items() if before.get(k) != w}, set(before) - set(now)
    rows = dict(large_rows(left))
    switches = len({u for u, _ in written | removed})
    assert rows["entries changed"] == f"{len(written)} written and {len(removed)} removed in {switches} of 144 switches"
    assert rows["failed"] == f"link {a}–{b}, switch 77"


def test_shortest_distances_beyond_254_hops(tmp_path):
    (tmp_path / "line.txt").write_text("".join(f"{k} {k + 1}\n" for k in range(299)))
    config = parse_config("name: x\ntopology: {kind: edge_list, file: line.txt}\n", "test.yml", folder=tmp_path)
    line = build(config.topology, config.address)
    assert distances(line, np.array([299]))[0].tolist() == list(range(299, -1, -1))

"""Routing caches with ECMP and with several LIDs: every lookup by hand, and what is refused."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.model.topology.spread_by_bits import port_of

from hopforge.model.config import Config, parse_config
from hopforge.model.errors import UserError
from hopforge.model.irregular.failure import plain_tables
from hopforge.model.topology import build
from hopforge.sim.hits.assisted import Help
from hopforge.sim.hits.hit_rates import run_hits
from hopforge.sim.hits.prepared import prepare_hits
from hopforge.sim.start.preparation import prepare

HYPERX = "{kind: hyperx, sizes: [3, 3], hosts_per_router: 2}"
TABLES = "tables: {scheme: k_shortest, lmc: 1, slack: 1, layers: fewest}\n"


def config_of(routing: str, more: str = "", topology: str = HYPERX, entries: int = 4096) -> Config:
    return parse_config(
        f"name: x\ntopology: {topology}\nrouting: {{{routing}}}\n{more}router: {{vcs: 8}}\n"
        f"lookup: {{cache: {{entries: {entries}}}}}\nworkload: {{kind: uniform, packets_per_host: 40}}\n"
    )


def mixed(s: int, d: int, e: int, r: int) -> int:
    """g of several-paths.md."""
    w = (((s + 1) * 2654435761) ^ (e * 668265263)) % 2**32
    w = ((w ^ (w >> 15) ^ d) * 2246822507) % 2**32
    w = ((w ^ (w >> 13) ^ r) * 3266489909) % 2**32
    return w ^ (w >> 16)


def walked(config: Config, per_packet: bool) -> tuple[int, int]:
    """Lookups, and different (input port, key), packet after packet by hand."""
    topology = build(config.topology, config.address)
    tables = plain_tables(config.tables, topology, 1) if config.routing.algorithm == "tables" else None
    far = np.full((topology.routers,) * 2, -1)
    for goal in range(topology.routers):
        far[goal, goal], ring = 0, [goal]
        for at in ring:
            for peer in topology.peer_router[at].tolist():
                if peer >= 0 and far[peer, goal] < 0:
                    far[peer, goal] = far[at, goal] + 1
                    ring.append(peer)
    sent: Counter[tuple[int, int]] = Counter()
    keys, lookups = set(), 0
    for sources, goals in prepare_hits(config).workload.chunks():
        for s, d in zip(sources.tolist(), goals.tolist(), strict=True):
            e = sent[s, d] if per_packet else 0
            sent[s, d] += 1
            lid, at, there = 0, int(topology.host_router[s]), int(topology.host_router[d])
            if tables is not None:
                lid = (mixed(s, d, 0, topology.routers) % 2 + e) % 2
            port, address = int(topology.host_port[s]), int(topology.host_address[d])
            while True:
                lookups += 1
                keys.add((at, port, address if tables is None else 2 * address + lid))
                if at == there:
                    break
                if tables is None:
                    ways = [p for p, peer in enumerate(topology.peer_router[at].tolist())
                            if peer >= 0 and far[peer, there] == far[at, there] - 1]  # fmt: skip
                    out = ways[port_of(s, d, e, at, len(ways))]
                else:
                    out = int(np.flatnonzero(topology.peer_router[at] == tables.all_paths[lid].next_hop[at, there])[0])
                at, port = int(topology.peer_router[at, out]), int(topology.peer_port[at, out])
    return lookups, len(keys)


@pytest.mark.parametrize(("routing", "more", "per_packet"), [
    ("algorithm: minimal, spread: flow", "", False),
    ("algorithm: minimal, spread: entropy", "traffic: {entropy: {per: packet}}\n", True),
    ("algorithm: tables, spread: flow", TABLES, False),
    ("algorithm: tables, spread: entropy", TABLES + "traffic: {entropy: {per: packet}}\n", True),
    ("algorithm: tables, spread: entropy", TABLES + "traffic: {entropy: {per: flow}}\n", False),
])  # fmt: skip
def test_every_lookup_is_that_of_the_definition(routing: str, more: str, per_packet: bool) -> None:
    config = config_of(routing, more)
    found = run_hits(config).result
    lookups, keys = walked(config, per_packet)
    assert int(found.lookups.sum()) == lookups
    assert int(found.compulsory.sum()) == keys < lookups
    assert int(found.hits.sum() + found.capacity.sum() + found.conflict.sum()) == lookups - keys
    assert found.delivered == found.packets == 18 * 40


def test_a_line_holds_all_ports_of_a_destination() -> None:
    """ECMP: a packet of the same destination hits at its first switch, whichever way the one before took."""
    config = config_of("algorithm: minimal, spread: packet", entries=64)
    caches = prepare_hits(config).caches
    caches.send(np.zeros(50, np.int64), np.full(50, 17))
    first = int(caches.inputs.first[0, 0])
    assert int(caches.result.hits[first]) == 49
    used = np.flatnonzero(caches.result.lookups)
    assert len(used) == 5  # the source, two routers between, and the two ports by which they enter the goal
    topology = caches.topology
    assert {int(caches.inputs.router[k]) for k in used} >= {0, int(topology.host_router[17])}


def test_lids_share_no_line_and_are_drawn_for_each_packet() -> None:
    config = config_of("algorithm: tables, spread: packet", TABLES, entries=64)
    caches = prepare_hits(config).caches
    caches.send(np.zeros(50, np.int64), np.full(50, 17))
    first = int(caches.inputs.first[0, 0])
    assert int(caches.result.hits[first]) == 48
    again = prepare_hits(config).caches
    again.send(np.zeros(50, np.int64), np.full(50, 17))
    assert np.array_equal(again.result.hits, caches.result.hits)


def test_turns_go_on_from_piece_to_piece() -> None:
    config = config_of("algorithm: tables, spread: entropy", TABLES + "traffic: {entropy: {per: packet, values: 3}}\n")
    spread = prepare_hits(config).caches._spread
    assert spread is not None
    got: list[Any] = []
    for size in (2, 1, 4):
        got += spread.next_entropies(np.full(size, 5)).tolist()
    assert got == [0, 1, 0, 0, 1, 0, 0]  # 0, 1, 2, 0, 1, 2, 0 by two LIDs
    assert spread.next_entropies(np.array([5, 6, 5, 6, 6])).tolist() == [1, 0, 0, 1, 0]


@pytest.mark.parametrize(("routing", "more", "said"), [
    ("algorithm: valiant, spread: packet", "",
     r"routing\.spread: packet is not for ways of routing\.algorithm valiant"),
    ("algorithm: minimal, spread: entropy", "traffic: {entropy: {per: message}}\n",
     r"traffic\.entropy\.per: must be flow or packet for routing caches"),
    ("algorithm: tables, spread: flow", TABLES.replace("lmc: 1", "lmc: 7") + "address: {width_bits: 14}\n",
     r"address\.width_bits: must be at least 15 for 128 LIDs for each host, not 14"),
])  # fmt: skip
def test_what_a_replay_does_not_know_is_refused(routing: str, more: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        prepare("hits", config_of(routing, more, topology="{kind: fully_connected, routers: 9, hosts_per_router: 16}"))


def test_rows_in_the_switch_and_help() -> None:
    base = config_of("algorithm: tables, spread: flow", TABLES)
    for rows, fits in ((35, False), (36, True)):
        tcam = base.lookup.tcam.model_copy(update={"kind": "flops", "rows": rows})
        config = base.model_copy(update={"lookup": base.lookup.model_copy(update={"tcam": tcam})})
        if fits:
            assert run_hits(config).result.unmatched.sum() == 0
        else:
            with pytest.raises(UserError, match=r"lookup\.tcam\.rows: must be at least 36 with routing\.spread"):
                prepare_hits(config)
    drawn = config_of("algorithm: tables, spread: packet", TABLES)
    with pytest.raises(UserError, match=r"routing\.spread: must be flow for help with routing caches, not packet"):
        run_hits(drawn, wanted=Help(prefetch=1))

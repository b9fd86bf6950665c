"""Acknowledges beside failures, replayed from the log of all flits by docs/definitions/acknowledges.md.

Tables of entries, queues of service hosts, all counters, and the columns and cycles of `failures.csv`.
"""

import json
import random
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.network.core.kinds import DRAINED, GRANTED, HEAD, RECEIVED, SENT, TAIL
from hopforge.model.network.parts.trail_tables import trail_counts
from hopforge.sim.run.simulation import Simulation

sys.path.insert(0, str(Path(__file__).parent))
from flit_replay import CYCLES, Replay, destinations, drawn_failures, logged_run, seeds

#: acknowledges are lost on links, in switches, in queues, and before failed ports; two hosts a router
QUICK = (0, 1, 3, 5, 8, 13)
COUNTERS = (
    "delivered", "acks_made", "acks_sent", "acks_home", "acks_no_entry", "acks_queue_full", "acks_own_full", "entries",
    "table_full", "expired_entries", "acks_lost", "flushed_entries",
)  # fmt: skip


class Waiting(NamedTuple):
    """An acknowledge that its service host has not sent whole."""

    code: int
    port: int
    kept: bool
    from_cycle: int


class AcknowledgeReplay(Replay):
    """Adds entries, acknowledges and the buffers that they stand in."""

    def __init__(self, run: Simulation, failures: list[dict[str, Any]], destination: dict[int, int]) -> None:
        super().__init__(run, failures)
        self.hosts = run.topology.hosts
        assert run.config.traffic.acknowledge is not None
        self.rules, self.destination = run.config.traffic.acknowledge, destination
        self.home = [*run.topology.host_router.tolist(), *range(run.topology.routers)]
        self.counts = Counter[str]()
        self.entries: dict[int, list[tuple[int, int, int | None]]] = defaultdict(list)
        self.queue: dict[int, list[Waiting]] = defaultdict(list)
        self.made = Counter[int]()
        self.of: dict[int, tuple[int, int, int]] = {}  # acknowledge → packet, port by which it leaves, router behind
        self.came: dict[int, int | None] = {}  # packet → port by which its head came to its last router
        self.alive = 0
        self.buffer: dict[tuple[int, int, int], list[tuple[int, int]]] = defaultdict(list)
        self.coming: dict[int, list[tuple[tuple[int, int, int], int, int]]] = defaultdict(list)
        self.tails: dict[int, list[int]] = defaultdict(list)

    def flits_of(self, packet: int) -> int:
        return self.rules.flits if packet >> 40 >= self.hosts else self.length

    def router_of(self, source: int) -> int:
        return self.home[source]

    def run(self, events: list[list[int]]) -> None:
        for now, kind, _, _, packet, flit in events:
            if kind == RECEIVED and flit & TAIL:
                self.tails[now].append(packet)
        super().run(events)

    def asks(self, packet: int) -> bool:
        number = (packet & (1 << 40) - 1) + 1
        return self.rules.ratio > 0 and number % self.rules.ratio == 0

    def lose(self, acknowledges: set[int]) -> None:
        self.gone |= acknowledges
        self.counts["acks_lost"] += len(acknowledges)
        self.alive -= len(acknowledges)
        self.flits = {key: place for key, place in self.flits.items() if key[0] not in acknowledges}
        self.queue = defaultdict(list, {r: [a for a in q if a.code not in acknowledges] for r, q in self.queue.items()})
        self._forget(acknowledges)

    def _forget(self, gone: set[int]) -> None:
        for vc, flits in self.buffer.items():
            self.buffer[vc] = [one for one in flits if one[0] not in gone]
        for due, flying in self.coming.items():
            self.coming[due] = [one for one in flying if one[1] not in gone]

    def fail(self, now: int) -> int:
        before, old, records = set(self.gone), self.down[1], len(self.records)
        lost = super().fail(now)
        if len(self.records) == records:
            return lost
        gone = self.gone - before
        cut = {packet for packet in gone if packet >> 40 >= self.hosts}
        waiting = {one.code for router in self.down[1] - old for one in self.queue[router]}
        more = sum(packet in waiting - cut for packet, _ in self.flits)
        record = self.records[-1]
        record["packets_lost"] -= len(cut)
        record["flits_of_cut_packets"] += more
        record["acknowledges_lost"] = len(cut | waiting)
        self._forget(gone)
        self.lose(cut | waiting)
        return lost + more

    def under_way(self) -> bool:
        return self.alive > 0 or super().under_way()

    def reconfigure(self, now: int) -> None:
        super().reconfigure(now)
        if self.emptying:
            self._lose_before_ports()

    def note(self, column: str, now: int) -> None:
        super().note(column, now)
        if column == "reprogrammed_cycle":
            self.counts["flushed_entries"] += sum(map(len, self.entries.values()))
            self.entries.clear()

    def _lose_before_ports(self) -> None:
        """Lose acknowledges that can only leave by a failed port: in their queue, or first of their service port."""
        doomed = {
            one.code for router, queue in self.queue.items() for one in queue
            if (router, one.port) in self.down[0] and not self.sent[one.code]
        }  # fmt: skip
        for (router, port, _), flits in self.buffer.items():
            if port == self.ports - 1 and flits and flits[0][1] & HEAD:
                doomed |= {flits[0][0]} if (router, self.of[flits[0][0]][1]) in self.down[0] else set()
        self.records[-1]["acknowledges_lost"] = self.records[-1].get("acknowledges_lost", 0) + len(doomed)
        self.lose(doomed)

    def move(self, now: int) -> None:
        heads = []
        for vc, packet, kind in self.coming.pop(now, ()):
            self.buffer[vc].append((packet, kind))
            if kind & HEAD and packet >> 40 < self.hosts:
                heads.append((vc[0], vc[1], packet))
        super().move(now)
        limit = self.rules.age_limit_cycles
        for router, entries in self.entries.items():
            young = [entry for entry in entries if limit is None or now - entry[1] <= limit]
            self.counts["expired_entries"] += len(entries) - len(young)
            self.entries[router] = young
        for router, port, packet in sorted(heads):
            by = port if self.peer(router, port) >= 0 else None
            if self.home[self.destination[packet]] == router:
                self.came[packet] = by
            elif self.asks(packet):
                full = len(self.entries[router]) == self.rules.table
                self.counts["table_full" if full else "entries"] += 1
                self.entries[router] += [] if full else [(packet, now, by)]
        here = self.tails.get(now, [])
        for _, packet in sorted((self.destination[p], p) for p in here if p >> 40 < self.hosts):
            self._deliver(packet, self.home[self.destination[packet]], now)
        for code in (p for p in here if p >> 40 >= self.hosts):
            self._take(code, self.of[code][2], now)

    def _deliver(self, packet: int, router: int, now: int) -> None:
        self.counts["delivered"] += 1
        port, most = self.came[packet], self.rules.own_queue
        if port is None or not self.asks(packet):
            return
        if most is not None and sum(not one.kept for one in self.queue[router]) >= most:
            self.counts["acks_own_full"] += 1
            return
        self.counts["acks_made"] += 1
        self.alive += 1
        self._create(router, port, packet, now, kept=False)

    def _take(self, code: int, router: int, now: int) -> None:
        most, packet = self.rules.queue, self.of[code][0]
        places = [place for place, entry in enumerate(self.entries[router]) if entry[0] == packet]
        self.alive -= 1
        if most is not None and sum(one.kept for one in self.queue[router]) >= most:
            self.counts["acks_queue_full"] += 1
        elif not places:
            self.counts["acks_no_entry"] += 1
        elif (port := self.entries[router].pop(places[-1])[2]) is None:
            self.counts["acks_home"] += 1
        else:
            self.alive += 1
            self._create(router, port, packet, now, kept=True)

    def _create(self, router: int, port: int, packet: int, now: int, *, kept: bool) -> None:
        code = (self.hosts + router) << 40 | self.made[router]
        self.made[router] += 1
        self.of[code] = packet, port, self.peer(router, port)
        self.queue[router].append(Waiting(code, port, kept, now + self.rules.delay_cycles))
        self.counts["acks_sent"] += 1

    def event(self, now: int, kind: int, source: int, target: int, packet: int, flit: int) -> tuple[int, int, int]:
        if kind == SENT and source >= self.hosts:
            router = source - self.hosts
            assert self.queue[router][0].code == packet and now >= self.queue[router][0].from_cycle
            if flit & HEAD:
                self.over[packet], self.source[packet] = Counter(), source
            self.flits[packet, self.sent[packet]] = "in", router, now
            self.sent[packet] += 1
            if flit & TAIL:
                self.queue[router].pop(0)
            self.coming[now + 1 + self.host_link].append(((router, self.ports - 1, target), packet, flit))
            return 1, 0, 0
        found = super().event(now, kind, source, target, packet, flit)
        if kind == SENT:
            router = self.router_of(source)
            port = int(np.flatnonzero(self.topology.host_at[router] == source)[0])
            self.coming[now + 1 + self.host_link].append(((router, port, target), packet, flit))
        elif kind in (GRANTED, DRAINED):
            vc = source // (self.ports * self.vcs), source // self.vcs % self.ports, source % self.vcs
            assert self.buffer[vc].pop(0) == (packet, flit)
            router, port = divmod(target // self.vcs, self.ports)
            if kind == GRANTED and self.peer(router, port) >= 0:
                behind = self.peer(router, port), int(self.topology.peer_port[router, port]), target % self.vcs
                self.coming[now + 2 + self.link].append((behind, packet, flit))
        return found


def drawn(seed: int) -> tuple[Config, list[dict[str, Any]]]:
    draw = random.Random(seed)
    rules = {"flits": draw.choice([1, 3, 6]), "ratio": draw.choice([1, 1, 2]), "delay_cycles": draw.choice([1, 5, 40])}
    limits = {"table": [2, 8, 1024], "queue": [None, 1, 3], "own_queue": [None, 1, 3], "age_limit_cycles": [None, 20]}
    rules |= {key: value for key, values in limits.items() if (value := draw.choice(values)) is not None}
    traffic = {"packet_flits": draw.choice([1, 2, 5]), "acknowledge": rules | {"vcs": draw.choice(["shared", "own"])}}
    switching, release = draw.choice(["wormhole", "vct", "saf"]), draw.choice(["tail", "credits"])
    base = (
        f"name: x\ntopology: {{kind: random_regular, routers: 8, degree: 4, hosts_per_router: {draw.choice([1, 2])}, "
        f"seed: 2}}\nrouting: {{algorithm: {draw.choice(['up_down', 'tables'])}}}\ntraffic: {json.dumps(traffic)}\n"
        f"router: {{vcs: 4, buffer_flits: 8, switching: {switching}, vc_release: {release}, "
        f"link_latency_cycles: {draw.choice([1, 3])}}}\n"
    )
    failures = drawn_failures(draw, base, [0, 150, 200, 333, 500, CYCLES - 1])
    simulation = {"load": draw.choice([0.05, 0.2, 0.6]), "failures": failures, "failure_series_cycles": 50}
    return parse_config(f"{base}simulation: {json.dumps(simulation)}\n"), failures


@pytest.mark.parametrize("seed", seeds(QUICK, 60))
def test_acknowledges_are_what_the_events_say(seed: int) -> None:
    config, failures = drawn(seed)
    run, log = logged_run(config, 400_000)
    assert run.reconfiguration is not None
    replay = AcknowledgeReplay(run, failures, destinations(config))
    replay.run(log)
    counts = trail_counts(run.state)
    assert {name: counts[name] for name in COUNTERS} == {name: replay.counts[name] for name in COUNTERS}
    assert counts["acks_made"] > 0 and int(run.state["acks_alive"]) == replay.alive
    table = run.reconfiguration.table()
    for place, record in enumerate(replay.records):
        assert {name: int(table[name][place]) for name in record} == record
    series = run.reconfiguration.series.to_numpy()[:, [0, 1, 2, 4]]
    assert series == pytest.approx(np.array(replay.bins)[:, [0, 1, 2, 4]])

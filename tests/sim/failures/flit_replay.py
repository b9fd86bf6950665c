"""Failures replayed from the events of all flits, by the words of docs/guides/failures.md: losses, cycles, series.

Nothing of the simulator is used but the log of what moved, so that losses follow from where flits were.
"""

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.network.core.kinds import DRAINED, GRANTED, HEAD, RECEIVED, SENT
from hopforge.model.topology.configured import network_topology
from hopforge.sim.run.simulation import Simulation

CYCLES, BIN = 1000, 50


class Replay:
    """Flits of a network of input-queued routers and where they are, from the log of a run.

    Parameters
    ----------
    run : Simulation
        At its end, with its log.
    failures : list of dict
        Section `simulation.failures`.
    """

    def __init__(self, run: Simulation, failures: list[dict[str, Any]]) -> None:
        self.failures, self.topology = failures, run.topology
        self.ports, self.vcs = int(run.state["ports"]), int(run.state["vcs"])
        self.link, self.host_link = run.config.router.link_latency_cycles, run.config.router.host_latency_cycles
        self.length = run.config.traffic.packet_flits
        #: (packet, flit) → "in" (from its host), "link", "buffer" or "out" (to a host); router or port; since when
        self.flits: dict[tuple[int, int], tuple[str, Any, int]] = {}
        self.comes: set[tuple[int, int]] = set()  # cycle and packet of every flit that a destination receives
        self.sent, self.received, self.drained, self.passed, self.taken = (Counter[Any]() for _ in range(5))
        self.over: dict[int, Counter[tuple[int, int]]] = {}  # flits of a packet that were granted to each link
        self.source: dict[int, int] = {}  # host that has sent the packet, the last time
        self.gone: set[int] = set()
        self.turned: dict[int, int] = {}  # host to which a packet was granted
        self.kept: dict[int, int] = {}  # packet that is set aside → its host
        self.busy: Counter[tuple[int, int, int]] = Counter()  # router, port, tenth of the run
        self.down: tuple[set[tuple[int, int]], set[int]] = set(), set()
        self.records: list[dict[str, int]] = []
        self.bins: list[list[float]] = []
        self.arrivals: list[int] = []
        self.stop_at: int | None = None
        self.ready, self.emptying = 0, False

    def flits_of(self, packet: int) -> int:
        """Length of a packet."""
        return self.length

    def under_way(self) -> bool:
        """Whether the network is not empty."""
        return bool(self.flits)

    def router_of(self, source: int) -> int:
        """Router of a host."""
        return int(self.topology.host_router[source])

    def peer(self, router: int, port: int) -> int:
        return int(self.topology.peer_router[router, port])

    def parts(self, down: list[dict[str, Any]]) -> tuple[set[tuple[int, int]], set[int]]:
        """Ports and switches that are down."""
        switches = {switch for failure in down for switch in failure.get("switches", [])}
        pairs = [set(pair) for failure in down for pair in failure.get("links", [])]
        ports = {(r, p) for r in range(self.topology.routers) for p in range(self.ports) if self.peer(r, p) >= 0}
        return {
            (r, p) for r, p in ports if {r, self.peer(r, p)} in pairs or {r, self.peer(r, p)} & switches
        }, switches  # fmt: skip

    def run(self, events: list[list[int]]) -> None:
        at = 0
        self.comes = {(now, packet) for now, kind, _, _, packet, _ in events if kind == RECEIVED}
        counts = [0, 0, 0]
        for now in range(CYCLES + 1):
            if now and now % BIN == 0:
                scale = self.topology.hosts * BIN
                self.bins.append([now - BIN, counts[0] / scale, counts[1] / scale, counts[2], len(self.flits)])
                counts = [0, 0, 0]
            if now == CYCLES:
                break
            counts[2] += self.fail(now)
            self.reconfigure(now)
            self.move(now)
            while at < len(events) and events[at][0] == now:
                counts = [a + b for a, b in zip(counts, self.event(*events[at]), strict=True)]
                at += 1

    def fail(self, now: int) -> int:
        """What fails and works again before anything else in cycle `now`; returns lost flits."""
        spans = [(f["cycle"], f["cycle"] + f.get("repair_cycles", CYCLES)) for f in self.failures]
        causes = [f for f, span in zip(self.failures, spans, strict=True) if now in span]
        if not causes:
            return 0
        down = [f for f, (begin, end) in zip(self.failures, spans, strict=True) if begin <= now < end]
        old, self.down = self.down, self.parts(down)
        ports, switches = (new - before for new, before in zip(self.down, old, strict=True))
        on_links = {key for key, (kind, where, _) in self.flits.items() if kind == "link" and where in ports}
        inside = {key for key, (kind, where, _) in self.flits.items() if kind != "link" and where in switches}
        lost = {packet for packet, _ in on_links | inside}
        for packet, granted in self.over.items():  # a part has passed, or is still in its host
            if packet not in self.gone and packet not in self.kept:
                cut = any(link in ports and 0 < flits < self.flits_of(packet) for link, flits in granted.items())
                begun = 0 < self.sent[packet] < self.flits_of(packet)
                lost |= {packet} if cut or (begun and self.router_of(self.source[packet]) in switches) else set()
        flits = [key for key in self.flits if key[0] in lost]
        for key in flits:
            del self.flits[key]
        self.gone |= lost | {packet for packet, host in self.kept.items() if self.router_of(host) in switches}
        self.kept = {packet: host for packet, host in self.kept.items() if packet not in self.gone}
        known = now + min(cause["detection_cycles"] for cause in causes)
        self.ready = max(self.ready, known + max(cause["reprogram_cycles"] for cause in causes))
        self.records.append({
            "cycle": now, "flits_on_links": len(on_links), "flits_in_switches": len(inside), "packets_lost": len(lost),
            "flits_of_cut_packets": len(flits) - len(on_links) - len(inside),
        })  # fmt: skip
        if self.emptying:
            self.records[-1]["stopped_cycle"] = now
        else:
            self.stop_at = known if self.stop_at is None else min(self.stop_at, known)
        return len(flits)

    def reconfigure(self, now: int) -> None:
        if self.stop_at is not None and now >= self.stop_at:
            self.stop_at, self.emptying = None, True
            self.note("stopped_cycle", now)
        live = (packet for packet in self.sent if packet not in self.gone and packet not in self.kept)
        begun = any(0 < self.sent[packet] < self.flits_of(packet) for packet in live)
        if self.emptying and not self.under_way() and not begun:
            self.note("empty_cycle", now)
            if now >= self.ready:
                self.emptying = False
                self.note("reprogrammed_cycle", now)

    def note(self, column: str, now: int) -> None:
        for record in self.records:
            record.setdefault(column, now)

    def move(self, now: int) -> None:
        """Flits that are in a buffer from this cycle on, and those that hosts set aside (nobody receives them)."""
        for key, (kind, where, since) in list(self.flits.items()):
            if kind == "link" and now == since + 2 + self.link:
                self.flits[key] = "buffer", self.peer(*where), now
            elif kind == "in" and now == since + 1 + self.host_link:
                self.flits[key] = "buffer", where, now
            elif kind == "out" and now == since + 2 + self.host_link and (now, key[0]) not in self.comes:
                assert self.emptying
                del self.flits[key]
                self.taken[key[0]] += 1
                if self.taken[key[0]] == self.flits_of(key[0]):
                    del self.taken[key[0]]
                    self.kept[key[0]] = self.turned[key[0]]

    def event(self, now: int, kind: int, source: int, target: int, packet: int, flit: int) -> tuple[int, int, int]:
        """Move a flit; returns flits sent, accepted, lost."""
        assert packet not in self.gone, "a lost packet goes on"
        if kind == SENT:
            if flit & HEAD:
                assert not self.emptying and self.router_of(source) not in self.down[1]
                if packet in self.kept:
                    assert self.kept.pop(packet) == source
                    self.sent[packet] = 0
                else:
                    assert self.sent[packet] == 0
                    assert source not in self.kept.values(), "own packets go before what was set aside"
                self.over[packet], self.source[packet] = Counter(), source
            self.flits[packet, self.sent[packet]] = "in", self.router_of(source), now
            self.sent[packet] += 1
            return 1, 0, 0
        if kind == GRANTED:
            number = self.passed[packet, source] % self.flits_of(packet)
            self.passed[packet, source] += 1
            router, port = divmod(target // self.vcs, self.ports)
            assert self.flits[packet, number][:2] == ("buffer", router) and (router, port) not in self.down[0]
            if self.peer(router, port) < 0:
                self.flits[packet, number] = "out", router, now
                self.turned[packet] = int(self.topology.host_at[router, port])
                return 0, 0, 0
            self.flits[packet, number] = "link", (router, port), now
            self.over[packet][router, port] += 1
            self.busy[router, port, now // 100] += 1
            return 0, 0, 0
        gone = self.received if kind == RECEIVED else self.drained
        assert kind in (RECEIVED, DRAINED)
        assert self.flits.pop((packet, gone[packet]))[0] == ("out" if kind == RECEIVED else "buffer")
        gone[packet] += 1
        if kind == RECEIVED and gone[packet] == self.flits_of(packet):
            self.arrivals.append(now)
        return 0, int(kind == RECEIVED), int(kind == DRAINED)


def destinations(config: Config) -> dict[int, int]:
    """Destination of every packet of a host, from a run that is looked at in every cycle."""
    run, found, seen = Simulation(config, config.simulation.load, 1, log_events=400_000), {}, 0
    for _ in range(CYCLES):
        run.advance(1)
        pool, log = run.state["packet"], run.state["log"].reshape(-1, 6)
        codes = (pool["src"].astype(np.int64) << 40) | pool["number"]
        for now, kind, source, _, packet, flit in log[seen : int(run.state["log_length"])].tolist():
            if kind == SENT and flit & HEAD and source < run.topology.hosts:
                place = np.flatnonzero((codes == packet) & (pool["sent"] == now) & (pool["length"] > 0))
                found[packet] = int(pool["dst"][place[0]])
        seen = int(run.state["log_length"])
    return found


def drawn_failures(draw: random.Random, base: str, cycles: list[int]) -> list[dict[str, Any]]:
    """Draw failures of links and switches of a network of 8 routers, and repairs, for section `simulation`."""
    ends = network_topology(parse_config(base)).channels()
    links = sorted({(int(a), int(b)) for a, b in zip(ends.src_router, ends.dst_router, strict=True) if a < b})
    failures: list[dict[str, Any]] = []
    for _ in range(draw.choice([1, 2, 3])):
        failure: dict[str, Any] = {"cycle": draw.choice(cycles), "detection_cycles": draw.choice([0, 10, 60])}
        failure |= {"reprogram_cycles": draw.choice([0, 1, 100])}
        if draw.random() < 0.6:
            failure["repair_cycles"] = sum(failure.values()) - failure["cycle"] + draw.choice([1, 30, 200])
        one = draw.choice(["links", "switches"])
        failures.append(failure | {one: [draw.randrange(8)] if one == "switches" else [list(draw.choice(links))]})
    return failures


def seeds(quick: tuple[int, ...], count: int) -> list[Any]:
    """Return `quick`, and all others below `count` for a study."""
    return [*quick, *(pytest.param(n, marks=pytest.mark.study) for n in sorted({*range(count)} - {*quick}))]


def logged_run(config: Config, events: int) -> tuple[Simulation, list[list[int]]]:
    """Run `CYCLES` of a configuration; the run at its end and its log."""
    run = Simulation(config, config.simulation.load, 1, log_events=events)
    run.advance(CYCLES)
    return run, run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])].tolist()

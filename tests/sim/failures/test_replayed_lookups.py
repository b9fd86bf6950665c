"""Lookup engines beside failures: golden engines asked as the log of all flits says (docs/guides/failures.md).

When a head leaves its router, and what each engine counts, follow from where flits were.
"""

import json
import random
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.lookup.csr import csr_map
from hopforge.model.lookup.golden.build import SHALLOW_DEPTHS, golden_engine
from hopforge.model.lookup.golden.ports import LookupInputs
from hopforge.model.lookup.params import LookupParams
from hopforge.model.network.core.kinds import DRAINED, GRANTED, HEAD, SENT, TAIL
from hopforge.sim.run.lookup_routing import route_lookup
from hopforge.sim.run.simulation import Simulation

sys.path.insert(0, str(Path(__file__).parent))
from flit_replay import Replay, destinations, drawn_failures, logged_run, seeds

#: each fails without one of the rules: what is given up in deep engines, in both levels, and who asks anew
QUICK = (0, 13, 16, 54)
VC = tuple[int, int, int]  # router, input port, virtual channel
COUNTERS = ("hits", "merges", "misses", "fills", "evictions", "drops")


class Engine:
    """A golden engine, enabled, with a TCAM outside that has no row for some destinations."""

    def __init__(self, params: LookupParams, latency: int) -> None:
        self.golden, self.latency = golden_engine(params), latency
        self.golden.step(LookupInputs(csr_we=1, csr_addr=csr_map(params)["CTRL"].address, csr_wdata=1))
        while not self.golden.idle:
            self.golden.step(LookupInputs())
        self.before = dict(self.golden.counters)
        self.answers: dict[int, tuple[int, int]] = {}
        self.tags: dict[int, VC] = {}
        self.lacks: set[int] = set()
        self.early = 0  # hits that were accepted and never compared

    def accepted(self) -> int:
        """Return how many lookups a shallow engine has accepted and not compared: if they hit they may count."""
        stages: Any = self.golden
        return sum(stage is not None for stage in (*stages._a, stages._c)) if hasattr(stages, "_depth") else 0

    def give_up(self) -> None:
        """Lose what is under way; lines, counters, pointers and registers stay."""
        golden: Any = self.golden
        self.early += self.accepted()
        kept = {name: getattr(golden, name) for name in ("_shadow", "_active", "_cache", "counters", "_late_counts",
                "_enables") if hasattr(golden, name)}  # fmt: skip
        pointers, second = (golden._mshrs.issue_pointer, golden._mshrs.fill_pointer), golden._second
        golden.reset()
        vars(golden).update(kept)
        golden._mshrs.issue_pointer, golden._mshrs.fill_pointer = pointers
        if second is not None:
            golden._second._cache = second._cache
        self.answers.clear()

    def flush(self, lacks: set[int]) -> None:
        """Begin an epoch in which no line is live."""
        golden: Any = self.golden
        for level in (golden, golden._second):
            if level is not None:
                level._cache._lines = [[line._replace(valid=False) for line in row] for row in level._cache._lines]
        self.lacks = lacks

    def step(self, now: int, vc: VC | None, address: int) -> tuple[bool, VC | None]:
        """Go through a cycle; returns whether the request was accepted, and which VC is answered in this cycle."""
        given = {}
        if now in self.answers:
            number, asked = self.answers.pop(now)
            match = int(asked not in self.lacks)
            given = {"tcam_resp_valid": 1, "tcam_resp_id": number, "tcam_resp_match": match, "tcam_resp_output": match}
        tag = 0 if vc is None else vc[1] * 16 + vc[2]
        out = self.golden.step(LookupInputs(
            req_valid=int(vc is not None), req_dst=address, req_tag=tag, resp_ready=1, tcam_req_ready=1, **given
        ))  # fmt: skip
        if out.tcam_req_valid:
            self.answers[now + self.latency] = out.tcam_req_id, out.tcam_req_dst
        if vc is not None:
            self.tags[tag] = vc
        return vc is not None and bool(out.req_ready), self.tags[out.resp_tag] if out.resp_valid else None

    @property
    def counts(self) -> dict[str, int]:
        return {name: count - self.before[name] for name, count in self.golden.counters.items()}


class LookupReplay(Replay):
    """Adds the buffers of all VCs, which heads are in RC, and the engines."""

    def __init__(self, run: Simulation, failures: list[dict[str, Any]], destination: dict[int, int]) -> None:
        super().__init__(run, failures)
        lookup = run.config.lookup
        self.sharing, self.destination = lookup.ports_per_engine, destination
        params = route_lookup(run.config, run.topology, run.plan).params
        self.engines = {
            (router, number): Engine(params, lookup.tcam.latency_cycles)
            for router in range(run.topology.routers) for number in range(-(-self.ports // self.sharing))
        }  # fmt: skip
        self.whole = run.config.router.switching == "saf"
        self.buffer: dict[VC, list[tuple[int, int]]] = defaultdict(list)  # packet and kind of each flit
        self.coming: dict[int, list[tuple[VC, int, int]]] = defaultdict(list)
        self.serves: dict[VC, int] = {}  # packet of a VC that is not idle
        self.asks: dict[VC, bool] = {}  # VCs in RC: has not asked yet
        self.left: dict[VC, int] = {}  # first cycle behind RC
        self.pointer, self.member = Counter[Any](), Counter[Any]()

    def engine_of(self, vc: VC) -> tuple[int, int]:
        return vc[0], vc[1] // self.sharing

    def fail(self, now: int) -> int:
        before = set(self.gone)
        lost = super().fail(now)
        gone = self.gone - before
        for due, flits in self.coming.items():
            self.coming[due] = [one for one in flits if one[1] not in gone]
        for vc, flits in self.buffer.items():
            self.buffer[vc] = [one for one in flits if one[0] not in gone]
        losing = {vc for vc, packet in self.serves.items() if packet in gone}
        given_up = {self.engine_of(vc) for vc in losing if vc in self.asks}
        for vc in losing:
            del self.serves[vc]
            self.asks.pop(vc, None)
        for engine in given_up:
            self.engines[engine].give_up()
        self.asks |= {vc: True for vc in self.asks if self.engine_of(vc) in given_up}
        return lost

    def note(self, column: str, now: int) -> None:
        super().note(column, now)
        if column == "reprogrammed_cycle":
            silent = {h for h in range(self.topology.hosts) if self.router_of(h) in self.down[1]}
            for engine in self.engines.values():
                engine.flush(silent)

    def move(self, now: int) -> None:
        super().move(now)
        for vc, packet, kind in self.coming.pop(now, ()):
            self.buffer[vc].append((packet, kind))
        for vc, flits in self.buffer.items():
            if vc not in self.serves and flits:
                packet = flits[0][0]
                if not self.whole or sum(one[0] == packet for one in flits) == self.length:
                    self.serves[vc], self.asks[vc] = packet, True
        asking = [vc for vc, waits in self.asks.items() if waits]
        for (router, number), engine in self.engines.items():
            mine = [vc for vc in asking if self.engine_of(vc) == (router, number)]
            chosen = min(mine, key=lambda vc: (
                (vc[1] - self.member[self.engine_of(vc)]) % self.sharing, (vc[2] - self.pointer[vc[:2]]) % self.vcs
            ), default=None)  # fmt: skip
            address = 0 if chosen is None else self.destination[self.serves[chosen]]
            accepted, answered = engine.step(now, chosen, address)
            if accepted and chosen is not None:
                self.asks[chosen] = False
                self.pointer[chosen[:2]] = (chosen[2] + 1) % self.vcs
                self.member[router, number] = (chosen[1] + 1) % self.sharing
            if answered is not None:
                del self.asks[answered]
                self.left[answered] = now + 1

    def event(self, now: int, kind: int, source: int, target: int, packet: int, flit: int) -> tuple[int, int, int]:
        found = super().event(now, kind, source, target, packet, flit)
        if kind == SENT:
            router = self.router_of(source)
            port = int(np.flatnonzero(self.topology.host_at[router] == source)[0])
            self.coming[now + 1 + self.host_link].append(((router, port, target), packet, flit))
        elif kind in (GRANTED, DRAINED):
            vc = source // (self.ports * self.vcs), source // self.vcs % self.ports, source % self.vcs
            assert self.buffer[vc].pop(0) == (packet, flit)
            if flit & HEAD:
                assert vc not in self.asks and now >= self.left[vc] + (kind == GRANTED), "moves before its answer"
            if flit & TAIL:
                del self.serves[vc]
            router, port = divmod(target // self.vcs, self.ports)
            if kind == GRANTED and self.peer(router, port) >= 0:
                behind = self.peer(router, port), int(self.topology.peer_port[router, port]), target % self.vcs
                self.coming[now + 2 + self.link].append((behind, packet, flit))
        return found


def drawn(seed: int) -> tuple[Config, list[dict[str, Any]]]:
    """Draw engines of all depths, with a second level or without, alone or shared."""
    draw = random.Random(seed)
    depth, ways = draw.choice([1, 2, 3, 4, 5, 6, 7, 8]), draw.choice([1, 2, 4])
    cache: dict[str, Any] = {"entries": ways, "ways": ways, "policy": draw.choice(["lru", "fifo", "plru", "random"])}
    if draw.random() < 0.4:
        cache["second_level"] = {"entries": 4, "ways": 4, "latency_cycles": draw.choice([4, 7])}
    lookup = {
        "reduction": False, "pipeline_depth": depth, "memory_stage": depth > 4 and draw.random() < 0.4,
        "mshrs": draw.choice([2, 5, 8]), "ports_per_engine": draw.choice([1, 1, 2, 4]), "cache": cache,
        "tcam": {"kind": "external", "latency_cycles": draw.choice([1, 8, 40])},
    }  # fmt: skip
    switching, release = draw.choice(["wormhole", "vct", "saf"]), draw.choice(["tail", "credits"])
    base = (
        "name: x\ntopology: {kind: random_regular, routers: 8, degree: 4, hosts_per_router: 1, seed: 2}\n"
        f"routing: {{algorithm: tables}}\ntraffic: {{packet_flits: {draw.choice([1, 2, 5])}}}\n"
        f"router: {{vcs: 4, buffer_flits: 8, switching: {switching}, vc_release: {release}, "
        "route_computation: lookup}\n"
        f"lookup: {json.dumps(lookup)}\n"
    )
    failures = drawn_failures(draw, base, [150, 200, 333, 500, 900])
    simulation = {"load": draw.choice([0.2, 0.6]), "failures": failures, "failure_series_cycles": 50}
    return parse_config(f"{base}simulation: {json.dumps(simulation)}\n"), failures


@pytest.mark.parametrize("seed", seeds(QUICK, 60))
def test_lookups_are_what_the_events_say(seed: int) -> None:
    config, failures = drawn(seed)
    run, log = logged_run(config, 200_000)
    replay = LookupReplay(run, failures, destinations(config))
    replay.run(log)
    lookup = run.state.lookup
    assert lookup is not None and lookup.counts["merges"].sum() > 0
    counts = {name: lookup.counts.get(name, np.zeros(0)) for name in COUNTERS}
    counts["misses"] = sum(lookup.counts[name] for name in ("compulsory", "capacity", "conflict", "unmatched"))
    if lookup.second is not None:
        counts["second_hits"] = lookup.second.counts["hits"]
    of_port = lookup.arrays["engine_of"].reshape(-1, replay.ports)
    for (router, number), engine in replay.engines.items():
        place, early = of_port[router, number * replay.sharing], engine.early + engine.accepted()
        if config.lookup.pipeline_depth > SHALLOW_DEPTHS:
            engine.golden.step(LookupInputs(resp_ready=1))  # its counters are a cycle late
        for name, values in counts.items():
            more = int(values[place]) - engine.counts[name]
            assert 0 <= more <= (early if name == "hits" else 0), (router, number, name)

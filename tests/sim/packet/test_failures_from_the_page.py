"""Packet routers beside failures from docs/definitions/torus-router.md alone: times, ways, fates, and all measures.

A third hand. It takes the messages (destination, creation) from the network and nothing else: no settings, no epochs,
no golden network. ABR with queues before the links and the times of the paper, plainly, cycle by cycle.
"""

import json
import math
import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import pytest

from hopforge.model.config import parse_config
from hopforge.model.topology.failed import FailureError
from hopforge.sim.packet.network import PacketNetwork
from hopforge.sim.packet.series import run_packet_series
from hopforge.sim.packet.simulation import PacketMeasurement, run_packets

WAITS, SENT, BACK, TAKEN = range(4)
#: cycles of 1.6 ns: a packet on a link, its latency, the same of hosts
S, LINK, H, HOST = 128, 125, 40, 50
#: until a router takes a packet from a link, and from a host; until the answer is back; what a sink begins later
TIMES = {"saf": (S + LINK, H + HOST, LINK, 0), "vct": (4 + LINK, 2 + HOST, LINK, S - 4 - H)}


@dataclass(eq=False)
class Packet:
    target: int
    accepted: int = -1
    delivered: int = -1
    hops: int = 0
    fate: str = ""


@dataclass(eq=False)
class Slot:
    packet: Packet
    state: int = WAITS


class Page:
    """All routers and sources; a direction is 2 · dimension, + 1 where it goes down."""

    def __init__(self, drawn: dict[str, Any], targets: Any, births: Any) -> None:
        self.k, self.births, self.size = drawn["radices"], births, drawn["queue"]
        self.hop, self.offer, self.answer, self.wait = TIMES[drawn["switching"]]
        self.feed, self.dirs = round(S * max(self.k) / 8 / 2.4), range(2 * len(self.k))
        self.nodes = n = math.prod(self.k)
        self.near = {(x, d): self._next(x, d) for x in range(n) for d in self.dirs}
        self.queues: dict[Any, list[Slot]] = {(*one, v): [] for one in self.near for v in range(4)}
        self.packets = [[[Packet(int(t)) for _ in range(drawn["packets"])] for t in some] for some in targets]
        self.free, self.sink_free, self.sinks = dict.fromkeys(self.near, 0), [0] * n, [[0] for _ in range(n)]
        self.message, self.offered, self.taken = [0] * n, [0] * n, [0] * n
        self.events: dict[int, list[Any]] = defaultdict(list)
        self.ways: Any = None  # the rings; else links and switches that have failed
        self.down, self.gone, self.stopped = set[Any](), set[int](), set[int]()
        self.escape, self.due, self.refused = -1, -1, 0
        self.rows, self.sends, self.arrivals = list[Counter[str]](), list[Any](), list[Any]()
        self.epochs = self._epochs(drawn["failures"])

    def _place(self, n: int) -> list[int]:
        return [n // math.prod(self.k[:a]) % k for a, k in enumerate(self.k)]

    def _next(self, n: int, d: int) -> int:
        x, k = self._place(n)[d // 2], self.k[d // 2]
        return n + ((x + 1 - 2 * (d % 2)) % k - x) * math.prod(self.k[: d // 2])

    def _epochs(self, failures: list[dict[str, Any]]) -> dict[int, tuple[set[Any], set[int], int]]:
        found = {}
        ends = [(one["cycle"], one["cycle"] + one.get("repair_cycles", 10**9), one) for one in failures]
        for time in sorted({time for *times, _ in ends for time in times if time < 10**9}):
            now = [one for begin, end, one in ends if begin <= time < end]
            due = [one for *times, one in ends if time in times]
            gone = {n for one in now for n in one.get("switches", [])}
            down = {(n, p - 1) for one in now for n, p in one.get("ports", [])} | {x for x in self.near if x[0] in gone}
            known = time + min(one["detection_cycles"] for one in due) + max(one["reprogram_cycles"] for one in due)
            found[time * S] = (down | {(self.near[n, d], d ^ 1) for n, d in down}, gone, known * S)
        return found

    def _minimal(self, n: int, t: int) -> list[int]:
        if self.ways is not None:
            return [
                d for d in self.dirs if (y := self.open.get((n, d))) is not None and self.far[y][t] < self.far[n][t]
            ]
        ups = [(t - s) % k for s, t, k in zip(self._place(n), self._place(t), self.k, strict=True)]
        return [2 * a + (2 * up > k) for a, (up, k) in enumerate(zip(ups, self.k, strict=True)) if up]

    def _list_ways(self) -> None:
        """Distances, and the next direction of up/down."""
        self.far: list[dict[int, int]] = []
        self.open = {link: y for link, y in self.near.items() if link not in self.down}
        for n in range(self.nodes):
            found, todo = {n: 0}, [n]
            for x in todo:
                for y in {y for link, y in self.open.items() if link[0] == x} - {*found}:
                    found[y] = found[x] + 1
                    todo.append(y)
            self.far.append(found)
        first = next(one for one in self.far if len(one) > 1)
        order = {n: k for k, n in enumerate(sorted(first, key=lambda n: (first[n], n)))}
        self.around: dict[Any, int] = {}
        for t in order:
            length = {t: 0}
            for nodes, sign in ((list(order)[::-1], 1), (list(order), -1)):  # down, then up
                table = dict(length)
                for n in nodes:
                    ends = [(y, link[1]) for link, y in self.open.items() if link[0] == n and y in table]
                    steps = [(table[y] + 1, d) for y, d in ends if (order[y] - order[n]) * sign > 0]
                    if n not in table and steps:
                        table[n], self.around[n, t] = min(steps)
                length = table

    def _lose(self, key: Any, what: str, states: Any) -> None:
        lost = [slot for slot in self.queues[key] if slot.state in states]
        self.queues[key] = [slot for slot in self.queues[key] if slot not in lost]
        for slot in lost:
            if slot.state != TAKEN:
                slot.packet.fate = what
                self.rows[-1][what] += 1

    def _fail(self, now: int) -> None:
        down, gone, due = self.epochs[now]
        self.rows.append(Counter(cycle=now, in_force=-1))
        for link in down - self.down - (self.ways[0] if self.ways else set()):
            for v in range(4):
                self._lose((*link, v), "on_links", (SENT, BACK, TAKEN))
            self.free[link] = now
        for n in gone - self.gone:
            for key in self.queues:
                if key[0] == n:
                    self._lose(key, "in_switches", range(4))
            for time, some in self.events.items():
                self.events[time] = [event for event in some if event[:2] != ("offer", n)]
            back = min((time for time, one in self.epochs.items() if time > now and n not in one[1]), default=math.inf)
            for m in range(self.message[n], int((self.births[n] < back).sum())):
                for one in [one for one in self.packets[n][m] if one.accepted < 0 and not one.fate]:
                    one.fate = "unsent"
                    self.rows[-1]["unsent"] += 1
                self.message[n], self.offered[n], self.taken[n] = m + 1, 0, 0
            self.stopped.add(n)
        self.down, self.gone, self.due = down, gone, max(due, self.due)

    def _install(self, now: int) -> None:
        whole = not self.down and not self.gone
        following = -1 if whole and self.escape != 1 else 1 if self.escape == 3 else 3
        needed = [following] if following > 0 else [1, 2] if self.escape > 0 else []
        self.due = now + S
        if any(slots for key, slots in self.queues.items() if key[2] in needed):
            return
        self.ways, self.escape = None if following < 0 else (self.down, self.gone), following
        if self.ways is not None:
            self._list_ways()
        self.stopped &= self.gone
        if following < 0 or not whole:
            self.due = -1
            for row in [row for row in self.rows if row["in_force"] < 0]:
                row["in_force"] = now

    def _enter(self, now: int, n: int, one: Packet, came: Any) -> bool:
        """Take a packet at `n` that moved in a direction on a channel, if it may enter a queue there."""
        if n == one.target:
            self.sinks[n] = [end for end in self.sinks[n] if end > now]
            if len(self.sinks[n]) < self.size:
                self.sink_free[n] = end = max(now, self.sink_free[n]) + H
                self.sinks[n].append(end)
                self.arrivals.append((now, one))
                one.delivered, one.fate = end + HOST + self.wait, "arrived"
            return one.fate == "arrived"
        if self.ways is not None and one.target in self.ways[1]:
            one.fate = "unroutable"
            self.rows[-1]["unroutable"] += 1
            return True
        minimal = self._minimal(n, one.target)
        room = {d: self.size - len(self.queues[n, d, 0]) for d in minimal}
        key = (n, max(minimal, key=lambda d: (room[d], -d)), 0)
        if came[1] == self.escape or max(room.values()) == 0:
            key = (n, minimal[0], 2) if self.ways is None else (n, self.around[n, one.target], self.escape)
            if self.size - len(self.queues[key]) < (1 if self.ways is not None or came == key[1:] else 2):
                return False
        self.queues[key].append(Slot(one))
        return True

    def run(self, end: int) -> None:
        """Run all cycles before `end`."""
        for now in range(end):
            if now in self.epochs:
                self._fail(now)
            if now == self.due:
                self._install(now)
            came: list[Any] = []
            for kind, n, slot, key in self.events.pop(now, []):
                if kind == "offer":
                    came.append((n, 0, None, None))
                elif slot in self.queues[key] and kind == "hop":
                    back = self.ways is not None and key[:2] in self.ways[0]
                    came.append((key[0] if back else self.near[key[:2]], (key[1] ^ back) + 1, slot, key))
                elif slot in self.queues[key] and slot.state == TAKEN:
                    self.queues[key].remove(slot)
                elif slot in self.queues[key]:
                    slot.state = WAITS
            for n, number, slot, key in sorted(came, key=lambda one: (one[1] - now) % (len(self.dirs) + 1)):
                if slot is not None:
                    took = self._enter(now, n, slot.packet, (number - 1, key[2]))
                    slot.state, self.refused = TAKEN if took else BACK, self.refused + (not took)
                    slot.packet.hops += took and n != key[0]
                    self.events[now + self.answer].append(("answer", n, slot, key))
                elif self._enter(now, n, one := self.packets[n][self.message[n]][self.taken[n]], (-1, -9)):
                    one.accepted, self.taken[n] = -1 if one.fate == "unroutable" else now, self.taken[n] + 1
                    if self.taken[n] == len(self.packets[n][0]):
                        self.message[n], self.offered[n], self.taken[n] = self.message[n] + 1, 0, 0
                else:
                    self.offered[n], self.refused = self.offered[n] - 1, self.refused + 1
            for link, free in self.free.items():
                if free <= now and (link not in self.down or (self.ways is not None and link in self.ways[0])):
                    waiting = [(s, (*link, v)) for v in (3, 2, 1, 0) for s in self.queues[*link, v] if s.state == WAITS]
                    for slot, key in waiting[:1]:
                        slot.state, self.free[link] = SENT, now + S
                        self.events[now + self.hop].append(("hop", 0, slot, key))
                        self.sends.append((now, link))
            for n in set(range(self.nodes)) - self.stopped if now % self.feed == 0 else ():
                m = self.message[n]
                if m < len(self.births[n]) and self.births[n][m] <= now and self.offered[n] < len(self.packets[n][m]):
                    self.offered[n] += 1
                    self.events[now + self.offer].append(("offer", n, None, None))


def draw(seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    radices, failures = rng.choice([[4, 4], [5, 3], [4, 3], [3, 2, 2]]), []
    for _ in range(rng.randint(2, 4)):
        node, known = rng.randrange(math.prod(radices)), rng.randint(0, 6)
        part: dict[str, Any] = rng.choice([{"switches": [node]}, {"ports": [[node, rng.randint(1, 4)]]}])
        part |= {"cycle": rng.randint(0, 20), "detection_cycles": rng.randint(0, 4), "reprogram_cycles": known}
        failures.append(part | rng.choice([{}, *({"repair_cycles": 5 + known + rng.randint(0, 19)} for _ in range(3))]))
    queue, packets, switching = rng.choice([2, 3]), rng.randint(1, 5), rng.choice(["saf", "vct"])
    return {"radices": radices, "failures": failures, "packets": packets, "switching": switching, "queue": queue}


def test_packets_and_measures_are_those_of_the_page() -> None:
    what: Counter[str] = Counter()
    for seed in range(18):
        drawn = draw(seed)
        config = parse_config(
            f"name: x\ntopology: {{kind: torus, radices: {drawn['radices']}}}\nrouter: {{model: packet}}\n"
            f"routing: {{algorithm: abr}}\ntraffic: {{message_packets: {drawn['packets']}}}\n"
            f"packet: {{messages: 4, queue_packets: {drawn['queue']}, switching: {drawn['switching']}}}\n"
            f"simulation: {{series_bins: 8, failures: {json.dumps(drawn['failures'])}}}\n"
        )
        try:
            network, binned = (PacketNetwork(config, load, seed, log=True) for load in (2.0, 1.0))
        except FailureError:  # no such link, or the network falls apart
            continue
        for one in (network, binned):
            page = Page(drawn, one.destinations, one.births)
            found = run_packet_series(one, lambda *_: None) if one is binned else run_packets(one)
            page.run(one.cycle + (one is network))
            packets = [packet for some in page.packets for message in some for packet in message]
            ours = [(p.accepted, p.delivered, p.hops if p.fate == "arrived" else -1) for p in packets]
            assert one.log[["accepted", "delivered", "hops"]].tolist() == ours, seed
            names = ["on_links", "in_switches", "unsent", "unroutable"]
            assert one.failures is not None
            table = one.failures.table()[["cycle", *(f"packets_{name}" for name in names), "reprogrammed_cycle"]]
            assert table.to_numpy().tolist() == [[row[k] for k in ("cycle", *names, "in_force")] for row in page.rows]
            what.update(p.fate for p in packets)
            if isinstance(found, PacketMeasurement):
                arrived = sum(p.fate == "arrived" for p in packets)
                assert (found.packets, found.lost) == (arrived, len(packets) - arrived)
                assert found.refused == pytest.approx(page.refused / arrived)
                assert found.link_load == pytest.approx(len(page.sends) * S / found.cycles / len(page.near))
                continue
            for k, row in enumerate(found.bins.itertuples()):
                bounds = range(one.cycle * k // 8, one.cycle * (k + 1) // 8)
                busy = Counter(link for now, link in page.sends if now in bounds)
                assert row.packets == sum(now in bounds for now, _ in page.arrivals)
                assert row.channel_load_mean == pytest.approx(busy.total() * S / len(bounds) / len(page.near))
                assert row.channel_load_max == pytest.approx(max(busy.values(), default=0) * S / len(bounds))
    assert min(what[fate] for fate in ("arrived", "on_links", "in_switches", "unsent", "unroutable")) > 10, what

"""Recorded programs on one switch beside a slow replay from the definition (docs/definitions/engines.md).

All routes are equally long, so flows share a full link equally. The replay has MPI's order of messages, requests and
waits, both limits of bytes, ranks of one host, and ranks that receive from any source.
"""

import random
from collections import defaultdict, deque
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

import hopforge as hf

LATENCY, RATE = (51 + 2 * 50) * 1e-9, 1e9  # of a switch and two cables; bytes a second of 8 Gbit/s
SAME_TIME = 1e-12
ANY_SOURCE, ANY_TAG = -555, -444
ELEMENT = {0: 8, 1: 4, 2: 1, 3: 2, 6: 1, 43: 16}  # bytes of datatypes, SimGrid's numbers


@dataclass(eq=False)
class Message:
    """A message: where it is from and to, the bytes left, and when it came or comes through the latency."""

    source: int
    target: int
    left: float
    eager: bool
    started: bool = False
    flows_from: float | None = None
    arrived: bool = False


@dataclass(eq=False)
class Receive:
    """A posted receive; `free`: nobody waits for it."""

    free: bool
    message: Message | None = None


class SlowReplay:
    """Programs of calls, one list for each rank."""

    def __init__(self, programs, hosts, buffered, eager):
        self.programs, self.hosts, self.buffered, self.eager = programs, hosts, buffered, eager
        self.now, self.flows = 0.0, []
        self.sent, self.posted = defaultdict(deque), defaultdict(deque)
        self.wild = [
            any({ANY_SOURCE, ANY_TAG} & set(call[1:3]) for call in calls if "recv" in call[0]) for calls in programs
        ]

    def start(self, message):
        if message.started:
            return
        message.started = True
        if self.hosts[message.source] == self.hosts[message.target]:
            message.arrived = True
        else:
            message.flows_from = self.now + LATENCY
            self.flows.append(message)

    def send(self, source, target, tag, size):
        message, waits = Message(source, target, size + 16, size < self.eager), self.posted[source, target, tag]
        local = self.hosts[source] == self.hosts[target]
        if self.wild[target] and not isinstance(tag, tuple):
            self.start(message)
        elif waits:
            waits.popleft().message = message
            self.start(message)
        else:
            self.sent[source, target, tag].append(message)
            if size < self.buffered or local:
                self.start(message)
        return message

    def receive(self, source, target, tag):
        receive, there = Receive(self.wild[target] and not isinstance(tag, tuple)), self.sent[source, target, tag]
        if there and not receive.free:
            receive.message = there.popleft()
            self.start(receive.message)
        elif not receive.free:
            self.posted[source, target, tag].append(receive)
        return receive

    def calls(self, rank):
        """Yield what a rank waits for: a list of messages and receives, or a time."""
        requests, ranks = [], len(self.programs)
        for name, *words in self.programs[rank]:
            if name in ("send", "isend", "recv", "irecv"):
                peer, tag, size, kind = words
                if "send" in name:
                    one, key = self.send(rank, peer, tag, size * ELEMENT[kind]), (rank, peer, tag)
                else:
                    one, key = self.receive(peer, rank, tag), (peer, rank, tag)
                if name[0] == "i":
                    requests.append((key, one))
                else:
                    yield [one]
            elif name == "sendRecv":
                size, target, _, source, kind, _ = words
                yield [self.send(rank, target, 0, size * ELEMENT[kind]), self.receive(source, rank, 0)]
            elif name == "wait":
                at = next((i for i, (key, _) in enumerate(requests) if key == tuple(words)), None)
                if at is not None:
                    yield [requests.pop(at)[1]]
            elif name == "waitall":
                yield [one for _, one in requests]
                requests = []
            elif name == "barrier":  # dissemination; its receives wait, also those of a rank that receives from any
                for step in range((ranks - 1).bit_length()):
                    far, tag = 1 << step, (words[0], step)
                    yield [
                        self.send(rank, (rank + far) % ranks, tag, 0), self.receive((rank - far) % ranks, rank, tag)
                    ]  # fmt: skip
            else:
                yield words[0] / 1e9 if name == "compute" else words[0]

    def ends(self, wait):
        """Whether a rank goes on that waits for this."""
        if isinstance(wait, float):
            return wait <= self.now + SAME_TIME
        return all(
            one.eager or one.arrived if isinstance(one, Message) else one.free or (one.message and one.message.arrived)
            for one in wait
        )

    def rates(self):
        """Max-min fair rates of the flows that have passed the latency."""
        moving = [flow for flow in self.flows if flow.flows_from is None]
        ends = {flow: ((self.hosts[flow.source], 0), (self.hosts[flow.target], 1)) for flow in moving}
        left, rate = dict.fromkeys((link for both in ends.values() for link in both), RATE), {}
        while len(rate) < len(moving):
            users = {link: [flow for flow in moving if flow not in rate and link in ends[flow]] for link in left}
            tightest = min((link for link in left if users[link]), key=lambda link: left[link] / len(users[link]))
            share = left[tightest] / len(users[tightest])
            for flow in users[tightest]:
                rate[flow] = share
                for link in ends[flow]:
                    left[link] -= share
        return rate

    def run(self):
        """Return when each rank ends and how long it has waited for messages."""
        ranks = range(len(self.programs))
        calls, waits = [self.calls(rank) for rank in ranks], [[] for _ in ranks]
        finished, waited, since = [None] * len(ranks), [0.0] * len(ranks), [0.0] * len(ranks)
        while True:
            ready = True
            while ready:
                ready = [rank for rank in ranks if finished[rank] is None and self.ends(waits[rank])]
                for rank in ready:
                    if not isinstance(waits[rank], float):
                        waited[rank] += self.now - since[rank]
                    since[rank], wait = self.now, next(calls[rank], None)
                    if wait is None:
                        finished[rank] = self.now
                    waits[rank] = self.now + wait if isinstance(wait, float) else wait
            rate = self.rates()
            times = [wait for wait in waits if isinstance(wait, float)]
            times += [self.now + flow.left / rate[flow] if flow in rate else flow.flows_from for flow in self.flows]
            if not times:
                assert None not in finished
                return finished, waited
            step, self.now = min(times) - self.now, min(times)
            for flow in list(self.flows):
                if flow in rate:
                    flow.left -= rate[flow] * step
                    if flow.left <= rate[flow] * SAME_TIME + 1e-9:
                        flow.arrived = True
                        self.flows.remove(flow)
                elif flow.flows_from <= self.now + SAME_TIME:
                    flow.flows_from = None


def drawn(rnd):
    """Draw programs that end: in the order of the draw a receive comes after its send, unless nobody waits for it."""
    ranks, number = rnd.randint(2, 5), count()
    programs, requests = [[] for _ in range(ranks)], [[] for _ in range(ranks)]
    wild = {rank for rank in range(ranks) if rnd.random() < 0.3}
    for _ in range(rnd.randint(8, 25)):
        a, b, kind, tag = rnd.randrange(ranks), rnd.randrange(ranks), rnd.choice([*ELEMENT]), rnd.randrange(2)
        size, what = rnd.choice([0, 1, 100, 5000, rnd.randint(1, 20000)]), rnd.random()
        if what < 0.65:
            late, wait = rnd.random() < 0.5, ("wait", a, b, tag)
            anywhere = rnd.choice([(ANY_SOURCE, tag), (a, ANY_TAG)]) if b in wild else (a, tag)
            receive = ("irecv" if late else "recv", *anywhere, size, kind)
            early = late and rnd.random() < 0.3
            if early:
                programs[b].append(receive)
            programs[a].append(("isend" if rnd.random() < 0.5 or a == b else "send", b, tag, size, kind))
            if programs[a][-1][0] == "isend":
                requests[a].append(wait)
            if not early:
                programs[b].append(receive)
            if late:
                requests[b].append(wait)
        elif what < 0.75:
            for rank in range(ranks):
                programs[rank].append(("sendRecv", size, (rank + 1) % ranks, size, (rank - 1) % ranks, kind, kind))
        elif what < 0.8:
            at = next(number)
            for calls in programs:
                calls.append(("barrier", at))
        elif what < 0.9:
            programs[a].append(rnd.choice([("compute", rnd.random() * 1e5), ("sleep", rnd.random() * 1e-5)]))
        elif requests[a]:
            programs[a].append(requests[a].pop(rnd.randrange(len(requests[a]))))
    for calls in programs:
        calls.append(("waitall",))
    return programs


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(tmp_path: Path, seed: int) -> None:
    rnd = random.Random(seed)
    programs = drawn(rnd)
    hosts = list(range(len(programs))) if seed % 3 else [rnd.randrange(4) for _ in programs]
    buffered, eager = rnd.choice([(0, 65536), (65536, 65536), (0, 0), (100, 5000)])
    folder = tmp_path / "trace"
    folder.mkdir()
    for rank, calls in enumerate(programs):
        lines = [" ".join(map(str, call if call[0] != "barrier" else call[:1])) for call in calls]
        (folder / f"rank-{rank}.txt").write_text("".join(f"{rank} {line}\n" for line in lines))
    (tmp_path / "hosts").write_text("".join(f"{host}\n" for host in hosts))
    config = hf.loads(
        "name: x\ntopology: {kind: mesh, radices: [1], hosts_per_router: 8}\n"
        "timing: {link_gbps: 8, switch_base_ns: 51, cable_ns: 50}\n"
        f"workload: {{kind: trace, file: {folder}, mapping: {{kind: file, file: {tmp_path / 'hosts'}}}}}\n"
        f"app: {{backend: embedded, host_gflops: 1, buffered_bytes: {buffered}, eager_bytes: {eager}}}\n"
    )
    found = hf.app(config, progress=False).tables["ranks"]
    finished, waited = SlowReplay(programs, hosts, buffered, eager).run()
    assert found["finish_s"].tolist() == pytest.approx(finished, rel=1e-9, abs=1e-11)
    assert found["waiting_s"].tolist() == pytest.approx(waited, rel=1e-9, abs=1e-11)


def test_the_draw_has_what_it_is_for() -> None:
    """Of 40 programs some have ranks that receive from any source, and some large messages to these."""
    programs = [drawn(random.Random(seed)) for seed in range(40)]
    wild = [SlowReplay(one, [0] * len(one), 0, 0).wild for one in programs]
    large = [
        call for one, targets in zip(programs, wild, strict=True) for calls in one for call in calls
        if call[0] == "send" and targets[call[1]] and call[3] * ELEMENT[call[4]] >= 5000
    ]  # fmt: skip
    assert len(large) > 10
    assert {call[0] for one in programs for calls in one for call in calls} == {
        "send", "isend", "recv", "irecv", "sendRecv", "wait", "waitall", "barrier", "compute", "sleep",
    }  # fmt: skip

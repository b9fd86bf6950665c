"""Collectives beside failures on routers of flits: a plain model of docs/guides/programs.md, from the log of flits.

When flits left and arrived is all that it knows: of it follow the messages of packets, and what each rank does when.
"""

import json
import random
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.network.core.kinds import GRANTED, RECEIVED, SENT, TAIL
from hopforge.model.network.parts.program_arrays import ProgramError
from hopforge.sim.run.program_run import run_program
from hopforge.sim.run.simulation import Simulation

ROUTERS, MTU, CAPACITY = 8, 40, 1_000_000
#: messages are lost in half of them
QUICK = range(16)
KINDS = (("alltoall", "linear"), ("alltoall", "ring"), ("allgather", "ring"), ("barrier", "bruck"), ("bcast", "linear"),
         ("bcast", "ring"), ("gather", "linear"), ("scatter", "linear"))  # fmt: skip
Message = tuple[int, int, int]


def rounds_of(kind: str, how: str, p: int, size: int) -> list[list[Message]]:
    """Source, destination and bytes of the messages of each round (docs/guides/workloads.md#collectives)."""
    if kind == "alltoall":
        rounds = [[(r, (r + i) % p, size) for r in range(p)] for i in range(1, p)]
        return rounds if how == "ring" else [[message for one in rounds for message in one]]
    if kind == "allgather":
        return [[(r, (r + 1) % p, size) for r in range(p)]] * (p - 1)
    if kind == "barrier":
        return [[(r, (r + (1 << i)) % p, 0) for r in range(p)] for i in range((p - 1).bit_length())]
    if how == "ring":
        return [[(r, r + 1, size)] for r in range(p - 1)]
    return [[(r, 0, size) if kind == "gather" else (0, r, size) for r in range(1, p)]]


class Model:
    """Ranks, one call after the other, and the source queues of their hosts."""

    def __init__(self, calls: list[list[Message]], host: list[int], traffic: Any, log: list[list[int]],
                 failures: list[int]) -> None:  # fmt: skip
        self.messages = [message for one in calls for message in one]
        self.steps: list[list[tuple[str, int]]] = [[] for _ in host]
        first = 0
        for one in calls:  # receives are posted, then comes what is sent; then both are waited for
            for what, end in (("post", 1), ("send", 0), ("came", 1), ("left", 0)):
                for number, message in enumerate(one, first):
                    self.steps[message[end]].append((what, number))
            first += len(one)
        self.host, self.traffic = host, traffic
        self.tail: dict[int, int] = {}
        self.came: dict[int, list[int]] = defaultdict(list)
        last: dict[int, int] = {}
        for now, kind, _, _, packet, flit in log:
            if kind == SENT:
                last.setdefault(packet, now)
                if packet not in self.tail:
                    last[packet] = now
                    self.tail |= {packet: now} if flit & TAIL else {}
            elif kind == RECEIVED and flit & TAIL:
                self.came[now].append(packet)
        for packet, now in last.items():  # cut on its way out: it has left in the cycle of the failure
            after = [cycle for cycle in failures if cycle > now]
            if packet not in self.tail and after:
                self.tail[packet] = min(after) - 1
        self.queue: dict[int, list[list[Any]]] = defaultdict(list)  # message, what of it, packets that are left
        self.idle, self.count = Counter[int](), Counter[int]()
        self.of: dict[int, tuple[int, str]] = {}
        self.left: dict[int, int] = {}
        self.leaves: dict[int, list[int]] = defaultdict(list)
        self.started, self.arrived, self.departed = {}, {}, set[int]()
        self.asked, self.posted = set[int](), set[int]()
        self.at, self.finish, self.waited, self.since = ([value] * len(host) for value in (0, -1, 0, -1))

    def start_of(self, message: int) -> str:
        size = self.messages[message][2]
        if self.traffic.rendezvous_bytes is not None and size > self.traffic.rendezvous_bytes:
            return "request"
        return "matched" if self.traffic.matched_bytes is not None and size >= self.traffic.matched_bytes else "data"

    def put(self, message: int, what: str, now: int) -> None:
        source, target, size = self.messages[message]
        host = self.host[target if what == "answer" else source]
        if not self.queue[host]:
            self.idle[host] = max(self.idle[host], now)
        self.left[message] = max(1, -(-size // MTU)) if what == "data" else 1
        self.queue[host].append([message, what, self.left[message]])

    def cycle(self, now: int) -> None:
        for packet in self.came[now]:
            message, what = self.of[packet]
            self.left[message] -= 1
            if self.left[message]:
                continue
            if what == "data":
                self.arrived[message] = now
            elif what == "answer":
                self.put(message, "data", now)
            else:
                self.asked.add(message)
                if message in self.posted:
                    self.put(message, "answer", now)
        self.departed |= set(self.leaves.pop(now, ()))
        while ranks := [rank for rank in range(len(self.host)) if self.can(rank)]:
            self.go_on(ranks[0], now)
        for host, queue in self.queue.items():
            if queue and self.idle[host] <= now:
                self.take(host, queue)

    def take(self, host: int, queue: list[list[Any]]) -> None:
        """Let a host take up its next packet: `traffic.injection` says which."""
        packet = host << 40 | self.count[host]
        self.count[host] += 1
        queue[0][2] -= 1
        message, what, left = queue[0]
        self.of[packet] = message, what
        self.idle[host] = self.tail.get(packet, 1 << 60) + 1
        if not left:
            queue.pop(0)
            if what == "data":
                self.leaves[self.idle[host]].append(message)
        elif self.traffic.injection == "packets":
            queue.append(queue.pop(0))

    def can(self, rank: int) -> bool:
        if self.finish[rank] >= 0 or self.at[rank] == len(self.steps[rank]):
            return self.finish[rank] < 0
        what, message = self.steps[rank][self.at[rank]]
        return message in {"came": self.arrived, "left": self.departed}.get(what, (message,))

    def go_on(self, rank: int, now: int) -> None:
        self.waited[rank] += now - self.since[rank] if self.since[rank] >= 0 else 0
        while self.at[rank] < len(self.steps[rank]):
            if not self.can(rank):
                self.since[rank] = now
                return
            what, message = self.steps[rank][self.at[rank]]
            self.at[rank] += 1
            if what == "post":
                self.posted.add(message)
                if message in self.asked:
                    self.put(message, "answer" if self.start_of(message) == "request" else "data", now)
            elif what == "send":
                self.send(message, now)
        self.finish[rank] = now

    def send(self, message: int, now: int) -> None:
        source, target, _ = self.messages[message]
        self.started[message], start = now, self.start_of(message)
        if self.host[source] == self.host[target]:
            self.arrived[message] = now
            self.departed.add(message)
        elif start == "matched" and message not in self.posted:
            self.asked.add(message)
        else:
            self.put(message, "request" if start == "request" else "data", now)


def drawn(seed: int, folder: Path) -> tuple[Config, list[list[Message]], list[int]]:
    """Draw a collective, and failures of links that a flit passes in a run without them, about then."""
    draw = random.Random(seed)
    ranks, size, repeat = draw.choice([3, 5, 8]), draw.choice([1, 40, 390]), draw.choice([1, 3])
    host = [draw.randrange(ROUTERS) for _ in range(ranks)]
    (folder / "hosts").write_text("\n".join(map(str, host)))
    kind, how = draw.choice(KINDS)
    traffic = {"source": "program", "flit_bytes": 10, "injection": draw.choice(["messages", "packets"])}
    traffic |= {key: 50 for key in ("rendezvous_bytes", "matched_bytes") if draw.random() < 0.4}
    router = {"vcs": 4, "buffer_flits": 8, "switching": draw.choice(["wormhole", "vct", "saf"])}
    text = (
        f"name: x\ntopology: {{kind: random_regular, routers: {ROUTERS}, degree: 4, hosts_per_router: 1, seed: 2}}\n"
        f"routing: {{algorithm: up_down}}\nrouter: {json.dumps(router)}\ntraffic: {json.dumps(traffic)}\n"
        f"workload: {{kind: collective, operation: {kind}, bytes: {size}, ranks: {ranks}, repeat: {repeat}, "
        f"mtu_bytes: {MTU}, collectives: {{{kind}: {how}}}, mapping: {{kind: file, file: {folder}/hosts}}}}\n"
    )
    run = Simulation(parse_config(text), 0.1, 1, log_events=CAPACITY)
    run_program(run)
    peers, ports = run.topology.peer_router, run.topology.max_ports
    granted = [(now, *divmod(target // 4, ports)) for now, event, _, target, *_ in log_of(run) if event == GRANTED]
    moves = [(now, router, int(peers[router, port])) for now, router, port in granted if peers[router, port] >= 0]
    failures: list[dict[str, Any]] = []
    for now, *link in draw.sample(moves, min(len(moves), draw.choice([1, 2]))):
        failure = {"detection_cycles": draw.choice([0, 60]), "reprogram_cycles": draw.choice([0, 100])}
        failures.append(failure | {"cycle": max(0, now + draw.choice([-40, -5, 0, 1, 2])), "links": [link]})
    config = parse_config(f"{text}simulation: {json.dumps({'failures': failures})}\n")
    return config, rounds_of(kind, how, ranks, size) * repeat, host


def log_of(run: Simulation) -> list[list[int]]:
    found: list[list[int]] = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])].tolist()
    return found


@pytest.mark.parametrize("seed", [*QUICK, *(pytest.param(n, marks=pytest.mark.study) for n in range(16, 150))])
def test_ranks_do_what_the_events_say(seed: int, tmp_path: Path) -> None:
    config, calls, host = drawn(seed, tmp_path)
    run, text = Simulation(config, 0.1, 1, log_events=CAPACITY), ""
    try:
        run_program(run)
    except ProgramError as error:
        text = str(error)
    records = [] if run.reconfiguration is None else run.reconfiguration.records
    model = Model(calls, host, config.traffic, log_of(run), [record.cycle for record in records])
    for now in range(int(run.state["cycle"]) + 1):
        model.cycle(now)
    assert run.placed is not None
    program, message, rank = run.placed.program, run.state["message"], run.state["rank"][: len(host)]
    numbers: dict[tuple[int, int], list[int]] = defaultdict(list)  # the n-th message of a pair is that of the model
    for number, pair in enumerate(zip(program.source.tolist(), program.destination.tolist(), strict=True)):
        numbers[pair].append(number)
    for mine, (source, target, size) in enumerate(model.messages):
        his = numbers[source, target].pop(0)
        assert program.size_bytes[his] == size
        found = model.started.get(mine, -1), model.arrived.get(mine, -1)
        assert found == (message["started"][his], message["arrived"][his]), (source, target)
    assert model.finish == rank["finished"].tolist()
    ended = [number for number, cycle in enumerate(model.finish) if cycle >= 0]
    assert [model.waited[number] for number in ended] == rank["waited"][ended].tolist()
    waits = model.asked - model.posted  # not lost: the receive is not posted
    lost = [number for number in model.started if number not in model.arrived and number not in waits]
    assert sum(record.messages_lost for record in records) == len(lost)
    told = re.search(r"failures lost (\d+) message", text)
    assert (int(told[1]) if told else 0) == len(lost) and bool(text) == (len(ended) < len(host))

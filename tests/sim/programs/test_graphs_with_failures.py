"""Chakra and training beside failures on routers of flits: a plain model of docs/definitions/goal.md, from the log.

The model knows when flits left and arrived, nothing else. Of it follow the messages of packets, who waits for what, the
times of all operations, and what a lost message stops.
"""

import heapq
import json
import math
import random
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.network.core.event_log import put_log
from hopforge.model.network.core.kinds import GRANTED
from hopforge.model.workload.chakra_nodes import Node, nodes_bytes
from hopforge.model.workload.schedule import CALC, RECV, SEND, GoalError, Schedule
from hopforge.sim.programs.app_setup import AppSetup, prepare_app
from hopforge.sim.programs.program_routers import cycle_ns
from hopforge.sim.programs.schedule_packet import SchedulePacket

sys.path.insert(0, str(Path(__file__).parent))
from source_queues import Hosts

RANKS, ROUTERS, MTU, CAPACITY = 6, 10, 40, 1_000_000
#: messages are lost in half of them
QUICK = range(12)


class Model:
    """Ranks by the rules of LogGOPS on a network; times in cycles of `unit` a unit."""

    def __init__(self, schedule: Schedule, host: list[int], machine: dict[str, Any], unit: float, hosts: Hosts) -> None:
        self.rank, self.kind, self.peer, self.tag, self.cpu, self.nic = (
            getattr(schedule, key).tolist() for key in ("rank", "kind", "peer", "tag", "cpu", "nic")
        )
        self.size = [size if kind == CALC else max(1, size)
                     for size, kind in zip(schedule.size.tolist(), self.kind, strict=True)]  # fmt: skip
        self.host, self.hosts, self.unit, self.most = host, hosts, unit, machine["S"]
        self.o, self.g = machine["o"] * unit, machine["g"] * unit
        self.after = {"end": defaultdict(list), "start": defaultdict(list)}
        self.missing = Counter[int]()
        for name, edges in (("end", schedule.at_end), ("start", schedule.at_start)):
            for before, after in zip(edges.before.tolist(), edges.next.tolist(), strict=True):
                self.after[name][before].append(after)
                self.missing[after] += 1
        self.sends = [op for op, kind in enumerate(self.kind) if kind == SEND]
        self.number = {op: number for number, op in enumerate(self.sends)}
        self.start, self.end, self.partner = {}, {}, {}
        self.free: dict[tuple[Any, ...], float] = defaultdict(float)
        # what could happen: operations that are ready, messages that look for a receive, receives to be carried out
        self.can = {("op", op): 0.0 for op in range(len(self.kind)) if not self.missing[op]}
        self.posted, self.come = [], []
        self.future: list[tuple[float, str, int]] = []
        self.run()

    def run(self) -> None:
        now, coming = 0.0, sorted(self.hosts.came)
        while True:
            while self.step(now):
                pass
            now = min([self.future[0][0] if self.future else math.inf, *coming[:1]])
            if now == math.inf:
                return
            if coming and coming[0] == now:
                for message in self.hosts.arrivals(coming.pop(0)):
                    self.can["look", self.sends[message]] = now
            while self.future and self.future[0][0] == now:
                _, what, op = heapq.heappop(self.future)
                if what == "hand":
                    self.hosts.hand(int(now), self.number[op], self.host[self.rank[op]], self.size[op])
                elif what == "local":
                    self.can["look", op] = now
                elif what == "end":
                    self.tell("end", op, now)

    def tell(self, name: str, op: int, now: float) -> None:
        (self.end if name == "end" else self.start)[op] = now
        for after in self.after[name][op]:
            self.missing[after] -= 1
            if not self.missing[after]:
                self.can["op", after] = now

    def later(self, time: float, what: str, op: int, now: float) -> None:
        if time > now:
            heapq.heappush(self.future, (time, what, op))
        elif what == "end":
            self.tell("end", op, now)
        elif what == "local":
            self.can["look", op] = now

    def step(self, now: float) -> bool:
        """Start what goes first of all that can start in this instant."""

        def may(what: str, op: int) -> bool:
            if what == "look" or (what == "op" and self.kind[op] == RECV):
                return True
            nic = what != "op" or self.kind[op] != SEND or self.free["nic", self.rank[op], self.nic[op]] <= now
            return nic and self.free["cpu", self.rank[op], self.cpu[op]] <= now

        found = [(since, what != "look", op, what) for (what, op), since in self.can.items() if may(what, op)]
        if not found:
            return False
        _, _, op, what = min(found)
        del self.can[what, op]
        cpu = "cpu", self.rank[op], self.cpu[op]
        if what == "carry":
            self.free[cpu] = now + self.o
            self.later(now + self.o, "end", op, now)
            if self.size[op] > self.most:
                self.later(now + self.o, "end", self.partner[op], now)
        elif what == "look":
            self.meet([(receive, op) for receive in self.posted], op, self.come, now)
        else:
            self.tell("start", op, now)
            if self.kind[op] == RECV:
                self.meet([(op, message) for message in self.come], op, self.posted, now)
                return True
            takes = self.o if self.kind[op] == SEND else self.size[op] * self.unit
            self.free[cpu] = now + takes
            self.later(now + takes, "free", op, now)
            if self.kind[op] == CALC or self.size[op] <= self.most:
                self.later(now + takes, "end", op, now)
            if self.kind[op] == SEND:
                self.free["nic", self.rank[op], self.nic[op]] = now + self.g
                self.later(now + self.g, "free", op, now)
                same = self.host[self.rank[op]] == self.host[self.peer[op]]
                self.later(*((now + takes, "local") if same else (math.floor(now + takes) + 1.0, "hand")), op, now)
        return True

    def meet(self, pairs: list[tuple[int, int]], op: int, waiting: list[int], now: float) -> None:
        for receive, message in pairs:
            if (self.rank[receive], self.peer[receive], self.tag[receive]) == (
                self.peer[message], self.rank[message], self.tag[message]
            ):  # fmt: skip
                (self.posted if op == message else self.come).remove(receive if op == message else message)
                self.partner[receive], self.partner[message] = message, receive
                self.can["carry", receive] = now
                return
        waiting.append(op)


def traces(draw: random.Random, folder: Path) -> str:
    """Write computations, messages and collectives of all ranks, each behind some of the four nodes before."""
    nodes: list[list[Node]] = [[] for _ in range(RANKS)]

    def add(rank: int, kind: int, micros: int = 0, **attributes: int) -> None:
        n = len(nodes[rank])
        before = {n - 1} if kind == 7 and n else set(draw.choices(range(max(0, n - 4), n), k=min(n, 2)))
        nodes[rank].append(Node(n, kind, "", np.array(sorted(before), np.uint64), micros=micros, attributes=attributes))

    for step in range(14):
        chance = draw.random()
        if chance < 0.3:
            add(draw.randrange(RANKS), 4, draw.choice([1, 2]), is_cpu_op=draw.choice([0, 1]))
        elif chance < 0.8:
            (source, target), size = draw.sample(range(RANKS), 2), draw.choice([1, 40, 200, 777])
            add(source, 5, comm_dst=target, comm_size=size, comm_tag=step)
            add(target, 6, comm_src=source, comm_size=size, comm_tag=step)
        else:
            kind, size = draw.choice([0, 2, 6, 7, 9]), draw.choice([64, 1000])
            for rank in range(RANKS):
                add(rank, 7, comm_type=kind, **({} if kind == 9 else {"comm_size": size}))
    for rank, own in enumerate(nodes):
        (folder / f"t.{rank}.et").write_bytes(b"".join(nodes_bytes(own or [Node(0, 4, micros=1)])))
    return f"kind: chakra, file: {folder}/t, all_gather_size: part"


TRAINING = (
    "kind: training, sizes: {layers: 2, width: 48, heads: 6, feed_forward: 48, vocabulary: 48, sequence: 6}, "
    "shrink: 50, parallel: {data: 3, pipeline: 2}, microbatches: 2, gradients: {zero: %d}"
)


def ready(config: Config) -> tuple[AppSetup, SchedulePacket]:
    setup = prepare_app(config)
    assert setup.simulation is not None and setup.schedule is not None
    put_log(setup.simulation.state, CAPACITY)
    return setup, SchedulePacket(setup.config, setup.simulation, setup.placed, setup.schedule, cycle_ns(setup.config))


def log_of(setup: AppSetup) -> list[list[int]]:
    assert setup.simulation is not None
    state = setup.simulation.state
    found: list[list[int]] = state["log"].reshape(-1, 6)[: int(state["log_length"])].tolist()
    return found


def drawn(seed: int, folder: Path) -> tuple[Config, dict[str, Any], bool]:
    """Draw a graph, and failures of links that a flit passes in a run without them, about then."""
    draw = random.Random(seed)
    (folder / "hosts").write_text("\n".join(map(str, draw.choices(range(ROUTERS), k=RANKS))))
    machine = {"o": draw.choice([0, 8]), "g": draw.choice([0, 32]), "O": 0, "S": draw.choice([0, 100, 10**9])}
    graph = draw.random() < 0.3
    workload = TRAINING % draw.choice([0, 3]) if graph else traces(draw, folder)
    in_turn = draw.random() < 0.5
    router = {"vcs": 4, "buffer_flits": 8, "switching": draw.choice(["wormhole", "vct", "saf"])}
    app = {"engine": "packet", "injection": "shared" if in_turn else "queued", "loggops": machine | {"unit_ns": 1}}
    text = (
        f"name: x\ntopology: {{kind: random_regular, routers: {ROUTERS}, degree: 4, hosts_per_router: 1, seed: 2}}\n"
        f"routing: {{algorithm: {draw.choice(['up_down', 'tables'])}}}\nrouter: {json.dumps(router)}\n"
        "timing: {link_gbps: 80, switch_base_ns: 0, cable_ns: 0}\ntraffic: {flit_bytes: 10}\n"
        f"workload: {{{workload}, mtu_bytes: {MTU}, mapping: {{kind: file, file: {folder}/hosts}}}}\n"
        f"app: {json.dumps(app | ({'host_gflops': 1} if graph else {}))}\n"
    )
    setup, run = ready(parse_config(text))
    run.run_schedule()
    peers, ports, vcs = setup.topology.peer_router, setup.topology.max_ports, 4
    granted = [(now, *divmod(target // vcs, ports)) for now, kind, _, target, *_ in log_of(setup) if kind == GRANTED]
    moves = [(now, router, int(peers[router, port])) for now, router, port in granted if peers[router, port] >= 0]
    failures: list[dict[str, Any]] = []
    for now, *link in draw.sample(moves, draw.choice([1, 2])):
        failure = {"detection_cycles": draw.choice([0, 60]), "reprogram_cycles": draw.choice([0, 100])}
        if draw.random() < 0.5:
            failure["repair_cycles"] = sum(failure.values()) + 30
        failures.append(failure | {"cycle": max(0, now + draw.choice([-40, -5, 0, 1, 2])), "links": [link]})
    return parse_config(f"{text}simulation: {json.dumps({'failures': failures})}\n"), machine, in_turn


@pytest.mark.parametrize("seed", [*QUICK, *(pytest.param(n, marks=pytest.mark.study) for n in range(12, 100))])
def test_operations_are_what_the_events_say(seed: int, tmp_path: Path) -> None:
    config, machine, in_turn = drawn(seed, tmp_path)
    setup, run = ready(config)
    text, times = "", None
    try:
        times = run.run_schedule()
    except GoalError as error:
        text = str(error)
    assert setup.simulation is not None and setup.schedule is not None and setup.simulation.reconfiguration is not None
    cycle, hosts = cycle_ns(setup.config), Hosts(log_of(setup), MTU, in_turn=in_turn)
    model = Model(setup.schedule, setup.placed.host.tolist(), machine, 1 / cycle, hosts)
    message = setup.simulation.state["message"][: len(model.sends)]
    for number in np.flatnonzero(~setup.placed.local).tolist():
        found = hosts.handed.get(number, -1), hosts.arrived.get(number, -1)
        assert found == (message["started"][number], message["arrived"][number]), number
    lost = len(hosts.handed) - len(hosts.arrived)
    assert sum(record.messages_lost for record in setup.simulation.reconfiguration.records) == lost
    if times is not None:
        assert not lost
        for mine, his in ((model.start, times.start), (model.end, times.end)):
            assert [mine[op] * cycle for op in range(len(his))] == pytest.approx((his * 1e9).tolist(), abs=1e-6)
        assert [model.partner.get(op, -1) for op in range(len(times.partner))] == times.partner.tolist()
        return
    waits = [op for op in model.start if model.kind[op] == RECV and op not in model.partner]
    never = len(model.kind) - len(model.start)
    for count, words in (
        (lost, r"failures lost (\d+) message"), (len(waits), r"(\d+) receives? waits? for"),
        (never, r"(\d+) operations? never ran"),
    ):  # fmt: skip
        told = re.search(words, text)
        assert (int(told[1]) if told else 0) == count, text

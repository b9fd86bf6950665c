"""Failures under programs on input-output-queued routers: every message and every loss as with the golden hosts."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sim.failures.test_queued import DRAGONFLY, TIMES, check_state, compare, queued
from tests.sim.packet.test_packet_programs import programs, write

from hopforge.model.config import Config, parse_config
from hopforge.model.network.core.records import FINISHED, STUCK
from hopforge.model.topology import Topology
from hopforge.model.topology.link_times import queued_times
from hopforge.model.workload import operations as op
from hopforge.sim.packet.golden_programs import Hosts, Message, Rank
from hopforge.sim.programs.golden_queued import GoldenPrograms
from hopforge.sim.queued.build import QueueParameters
from hopforge.sim.queued.golden import GoldenUgalNode
from hopforge.sim.run.program_run import stuck_text
from hopforge.sim.run.simulation import Simulation

#: bytes of a packet, and cycles of one
PACKET, CYCLES = 512, 16


def programmed(path: Path, failures: str, traffic: str = "", algorithm: str = "ugal_node") -> Config:
    return parse_config(
        f"name: test\n{DRAGONFLY % (2, 2)}\n"
        f"router: {{model: input_output_queued, vcs: 4, buffer_flits: 3, output_buffer_flits: 2, {TIMES}}}\n"
        f"routing: {{algorithm: {algorithm}}}\n"
        f"workload: {{kind: trace, file: {path}, mtu_bytes: {PACKET}, mapping: {{kind: random}}}}\n"
        f"traffic: {{source: program, flit_bytes: {PACKET}, cycles_per_flop: 16{traffic}}}\n"
        f"simulation: {{failures: [{failures}]}}\n"
    )


def hosts_of(run: Simulation) -> tuple[Hosts, list[Message]]:
    """Ranks and messages for the golden hosts, from the program and what the file asks for."""
    assert run.placed is not None
    program, traffic, place = run.placed.program, run.config.traffic, run.placed.host
    has_receive = set(program.operand[program.kind == op.POST].tolist())
    messages = []
    for m, size in enumerate(program.size_bytes.tolist()):
        how = "at_once"
        if m in has_receive:
            if traffic.rendezvous_bytes is not None and size > traffic.rendezvous_bytes:
                how = "asks"
            elif traffic.matched_bytes is not None and size >= traffic.matched_bytes:
                how = "matched"
        ends = ((int(place[rank[m]]),) for rank in (program.source, program.destination))
        messages.append(Message(*ends, max(1, -(-size // PACKET)), how, size < traffic.eager_bytes))
    names = {op.SEND: "send", op.WAIT_SENT: "wait sent", op.POST: "post", op.RECEIVE: "receive"}
    ranks = []
    for rank in range(program.ranks):
        operations: list[tuple] = []
        for k in range(program.first[rank], program.first[rank + 1]):
            kind, operand = int(program.kind[k]), int(program.operand[k])
            if kind == op.COMPUTE:
                operations.append(("compute", round(program.amount[operand] * traffic.cycles_per_flop)))
            else:
                operations.append((names[kind], messages[operand]))
        ranks.append(Rank(operations))
    return Hosts(ranks, traffic.injection == "packets"), messages


class GoldenRun(GoldenPrograms, GoldenUgalNode):
    """The golden with its failures: (cycle, ports that fail), (cycle, ports that work again), in packet times."""

    def plan(self, begin: dict[int, set], end: dict[int, set], detection: int, reprogram: int) -> None:
        self.changes, self.detection, self.reprogramming = (begin, end), detection * CYCLES, reprogram * CYCLES
        self.stop_at, self.ready_at = -1, -1

    def step(self) -> None:
        begin, end = self.changes
        time, now = self.now // CYCLES, self.now
        if now % CYCLES == 0 and (time in begin or time in end):
            self.fail(begin.get(time, set()))
            self.repair(end.get(time, set()))
            detected = now + self.detection
            self.ready_at = max(self.ready_at, detected + self.reprogramming)
            if not self.stopped and self.stop_at < now:
                self.stop_at = detected
        if now == self.stop_at:
            self.stop()
        if self.stopped and now >= self.ready_at and now % 4 == 0 and self.empty:
            self.reprogram()
        super().step()


def far_links(topology: Topology) -> list[tuple[int, int]]:
    return [
        (r, o) for r in range(topology.routers) for o in range(topology.max_ports)
        if topology.peer_router[r, o] // 2 > r // 2
    ]  # fmt: skip


def assert_equal_to_golden(
    path: Path, traffic: str, cycles: list[int], chosen: list[int], repair: int, seed: int = 1
) -> Counter[str]:
    """Run both to the end, or to where nothing can happen any more; returns what happened."""
    topology = Simulation(programmed(path, "", traffic), 0.1, seed).topology
    links = [far_links(topology)[k] for k in chosen]
    times = dict(zip(cycles, links, strict=True))
    failures = ", ".join(
        f"{{cycle: {cycle}, links: [[{r}, {topology.peer_router[r, o]}]], detection_cycles: 3, reprogram_cycles: 6, "
        f"repair_cycles: {repair}}}"
        for cycle, (r, o) in times.items()
    )
    run = Simulation(programmed(path, failures, traffic), 0.1, seed)
    state, network = queued(run)
    spans = queued_times(run.config.router, topology)
    given = QueueParameters(4, 3, 2, spans.flit_cycles, spans.crossbar_cycles, spans.flight_cycles, 3)
    golden = GoldenRun(topology, given, 1.0, seed)
    hosts, messages = hosts_of(run)
    golden.begin(hosts)
    ports = {
        cycle: {(r, o), (int(topology.peer_router[r, o]), int(topology.peer_port[r, o]))}
        for cycle, (r, o) in times.items()
    }
    golden.plan(ports, {cycle + repair: which for cycle, which in ports.items()}, 3, 6)
    code = 0
    while code not in (FINISHED, STUCK):
        code = run.advance(37)
        check_state(run)
        while golden.now < int(state["cycle"]):
            golden.step()
        if code not in (FINISHED, STUCK):
            compare(golden, state, network, golden.now)
    golden.step()  # the cycle in which it ended
    lost = golden.lost_messages
    assert {messages.index(one) for one in lost} == network.lost.numbers
    assert run.reconfiguration is not None
    records = run.reconfiguration.records
    assert sum(record.messages_lost for record in records) == len(lost)
    assert golden.lost == sum(record.packets_lost for record in records) == state["packets_dropped"]
    found = state["message"][["started", "arrived"]][: len(messages)].tolist()
    assert [(one.started, one.arrived) for one in messages] == found
    ranks = state["rank"][: len(hosts.ranks)]
    assert [one.finished for one in hosts.ranks] == ranks["finished"].tolist()
    ended = ranks["finished"] >= 0
    assert [one.waited for one in hosts.ranks if one.finished >= 0] == ranks["waited"][ended].tolist()
    assert hosts.ended == (code == FINISHED)
    if code == STUCK:
        assert f"; failures lost {len(lost)} message" in stuck_text(run)
        for _ in range(600):  # indeed nothing comes any more
            golden.step()
        assert [one.arrived for one in messages] == [arrived for _, arrived in found]
    aside = sum(record.packets_set_aside for record in records)
    return Counter(lost=len(lost), aside=aside, again=sum(r.reprogrammed_cycle >= 0 for r in records), code=code)


@pytest.mark.parametrize(
    ("traffic", "cycles", "lost"),
    [("", [5, 9], True), (", rendezvous_bytes: 600, eager_bytes: 700", [0], False),
     (", matched_bytes: 100, rendezvous_bytes: 2000, injection: packets", [6], True)],
)  # fmt: skip
def test_every_message_as_with_the_golden_hosts(tmp_path: Path, traffic: str, cycles: list[int], lost: bool) -> None:
    calls = ["alltoall 900 900", "compute 7", "allreduce 5000 0", "bcast 77 2", "barrier"]
    path = write(tmp_path, [calls] * (20 if lost else 7))
    what = assert_equal_to_golden(path, traffic, cycles, [0, 5][: len(cycles)], 40)
    assert (what["lost"] > 0) == (what["code"] == STUCK) == lost
    assert what["again"] > 0


def check_random(folder: Path, ranks: list[list[str]], draw: st.DataObject) -> Counter[str]:
    traffic = draw.draw(st.sampled_from(["", ", rendezvous_bytes: 512", ", matched_bytes: 513, injection: packets"]))
    chosen = draw.draw(st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True))
    cycles = draw.draw(st.lists(st.integers(0, 60), min_size=len(chosen), max_size=len(chosen), unique=True))
    return assert_equal_to_golden(write(folder, ranks), traffic, cycles, chosen, draw.draw(st.integers(10, 40)))


@settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(ranks=programs(8), draw=st.data())
def test_random_programs_as_with_the_golden_hosts(
    tmp_path_factory: pytest.TempPathFactory, ranks: list[list[str]], draw: st.DataObject
) -> None:
    check_random(tmp_path_factory.mktemp("random"), ranks, draw)


@pytest.mark.study
@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(ranks=programs(8), draw=st.data())
def test_many_random_programs_as_with_the_golden_hosts(
    tmp_path_factory: pytest.TempPathFactory, ranks: list[list[str]], draw: st.DataObject
) -> None:
    check_random(tmp_path_factory.mktemp("random"), ranks, draw)

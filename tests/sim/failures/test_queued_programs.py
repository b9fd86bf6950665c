"""Failures under programs on input-output-queued routers: every message and every loss as with the golden hosts.

Links fail on a dragonfly; links, switches at which no rank runs, and both on networks with shortest ways.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sim.failures.test_queued import DRAGONFLY, TIMES, check_state, compare, queued
from tests.sim.packet.test_packet_programs import programs, write

from hopforge.model.config import Config, parse_config
from hopforge.model.network.core.kinds import FINISHED, STUCK
from hopforge.model.topology import Topology
from hopforge.model.topology.link_times import queued_times
from hopforge.model.topology.routing_table import distances
from hopforge.model.workload import operations as op
from hopforge.sim.packet.golden_programs import Hosts, Message, Rank
from hopforge.sim.programs.golden_queued import GoldenPrograms
from hopforge.sim.queued.build import QueueParameters
from hopforge.sim.queued.golden import Golden
from hopforge.sim.queued.golden_dragonfly import GoldenUgalNode
from hopforge.sim.queued.golden_shortest import GoldenShortest
from hopforge.sim.run.program_run import stuck_text
from hopforge.sim.run.simulation import Simulation

#: bytes of a packet, and cycles of one
PACKET, CYCLES = 512, 16


#: how long hosts do not know of a failure, and how long new tables take, in packet times
DETECTION, REPROGRAM = 3, 6


class Network(NamedTuple):
    """A network, its routing, and virtual channels."""

    topology: str
    algorithm: str
    vcs: int


GROUPS = Network(DRAGONFLY % (2, 2), "ugal_node", 4)
#: each router has hosts; half of those of the tree have none
REGULAR = Network(
    "topology: {kind: random_regular, routers: 10, degree: 3, hosts_per_router: 2, seed: 3}", "shortest", 6
)
TREE = Network("topology: {kind: fat_tree, k: 3, n: 2}", "shortest", 8)


class Failure(NamedTuple):
    """Links between routers, and routers, that fail in a packet time, and when they work again."""

    begin: int
    end: int
    links: tuple[tuple[int, int], ...] = ()
    switches: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        return (
            f"{{cycle: {self.begin}, links: {[list(link) for link in self.links]}, switches: {list(self.switches)}, "
            f"detection_cycles: {DETECTION}, reprogram_cycles: {REPROGRAM}, repair_cycles: {self.end - self.begin}}}"
        )

    def ports(self, topology: Topology) -> set[tuple[int, int]]:
        """All ports that it takes down, by definition both ends of a link, and hosts of a switch."""
        found = set()
        for r in range(topology.routers):
            for o in range(topology.max_ports):
                peer = int(topology.peer_router[r, o])
                if (
                    (r in self.switches and (peer >= 0 or topology.host_at[r, o] >= 0))
                    or (peer >= 0 and (peer in self.switches or (r, peer) in self.links or (peer, r) in self.links))
                ):  # fmt: skip
                    found.add((r, o))
        return found


def programmed(path: Path, failures: Sequence[Failure], traffic: str, network: Network, seed: int) -> Config:
    text = ", ".join(failure.text for failure in failures)
    return parse_config(
        f"name: test\nseed: {seed}\n{network.topology}\n"
        f"router: {{model: input_output_queued, vcs: {network.vcs}, buffer_flits: 3, output_buffer_flits: 2, "
        f"{TIMES}}}\n"
        f"routing: {{algorithm: {network.algorithm}}}\n"
        f"workload: {{kind: trace, file: {path}, mtu_bytes: {PACKET}, mapping: {{kind: random}}}}\n"
        f"traffic: {{source: program, flit_bytes: {PACKET}, cycles_per_flop: 16{traffic}}}\n"
        f"simulation: {{failures: [{text}]}}\n"
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


class Failing(Golden):
    """The golden with its failures, in packet times."""

    def plan(self, failures: Sequence[Failure]) -> None:
        self.failures = [(failure, failure.ports(self.topology)) for failure in failures]
        self.stop_at, self.ready_at = -1, -1

    def step(self) -> None:
        time, now = self.now // CYCLES, self.now
        if now % CYCLES == 0 and any(time in failure[:2] for failure, _ in self.failures):
            down = [(failure, ports) for failure, ports in self.failures if failure.begin <= time < failure.end]
            ports = {port for _, which in down for port in which}
            begun = {r for failure, _ in down if failure.begin == time for r in failure.switches}
            self.fail(ports - self.down, begun)
            self.repair(self.down - ports)
            detected = now + DETECTION * CYCLES
            self.ready_at = max(self.ready_at, detected + REPROGRAM * CYCLES)
            if not self.stopped and self.stop_at < now:
                self.stop_at = detected
        if now == self.stop_at:
            self.stop()
        if self.stopped and now >= self.ready_at and now % 4 == 0 and self.empty:
            self.reprogram()
        super().step()


class GoldenGroups(GoldenPrograms, Failing, GoldenUgalNode):
    """Programs on a dragonfly, through failures."""


class GoldenGraph(GoldenPrograms, Failing, GoldenShortest):
    """Programs on any network, through failures."""


def far_links(topology: Topology) -> list[tuple[int, int]]:
    return [
        (r, int(topology.peer_router[r, o])) for r in range(topology.routers) for o in range(topology.max_ports)
        if topology.peer_router[r, o] // 2 > r // 2
    ]  # fmt: skip


def assert_equal_to_golden(
    path: Path, failures: Sequence[Failure], traffic: str = "", network: Network = GROUPS, seed: int = 1
) -> Counter[str]:
    """Run both to the end, or to where nothing can happen any more; returns what happened."""
    run = Simulation(programmed(path, failures, traffic, network, seed), 0.1, seed)
    state, failing = queued(run)
    topology = run.topology
    spans = queued_times(run.config.router, topology)
    given = QueueParameters(network.vcs, 3, 2, spans.flit_cycles, spans.crossbar_cycles, spans.flight_cycles, 3)
    golden = (GoldenGroups if network is GROUPS else GoldenGraph)(topology, given, 1.0, seed)
    hosts, messages = hosts_of(run)
    golden.begin(hosts)
    golden.plan(failures)
    code = 0
    while code not in (FINISHED, STUCK):
        code = run.advance(37)
        check_state(run)
        while golden.now < int(state["cycle"]):
            golden.step()
        if code not in (FINISHED, STUCK):
            compare(golden, state, failing, golden.now)
    golden.step()  # the cycle in which it ended
    lost = golden.lost_messages
    assert {messages.index(one) for one in lost} == failing.lost.numbers
    assert run.reconfiguration is not None
    records = run.reconfiguration.records
    what = Counter[str](code=code, lost=len(lost), again=sum(r.reprogrammed_cycle >= 0 for r in records))
    for name in ("messages_lost", "packets_lost", "packets_unsent", "packets_set_aside", "packets_without_host"):
        what[name] = sum(getattr(record, name) for record in records)
    what["in_switches"] = sum(record.flits_in_switches for record in records)
    assert what["messages_lost"] == len(lost)
    everywhere = what["packets_lost"] + what["packets_unsent"] + what["packets_without_host"]
    assert golden.lost == everywhere == state["packets_dropped"]
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
    return what


def fail_links(path: Path, traffic: str, cycles: list[int], chosen: list[int], repair: int) -> Counter[str]:
    links = far_links(Simulation(programmed(path, [], traffic, GROUPS, 1), 0.1, 1).topology)
    failures = [Failure(cycle, cycle + repair, (links[k],)) for cycle, k in zip(cycles, chosen, strict=True)]
    return assert_equal_to_golden(path, failures, traffic)


@pytest.mark.parametrize(
    ("traffic", "cycles", "lost"),
    [("", [5, 9], True), (", rendezvous_bytes: 600, eager_bytes: 700", [0], False),
     (", matched_bytes: 100, rendezvous_bytes: 2000, injection: packets", [6], True)],
)  # fmt: skip
def test_every_message_as_with_the_golden_hosts(tmp_path: Path, traffic: str, cycles: list[int], lost: bool) -> None:
    calls = ["alltoall 900 900", "compute 7", "allreduce 5000 0", "bcast 77 2", "barrier"]
    path = write(tmp_path, [calls] * (20 if lost else 7))
    what = fail_links(path, traffic, cycles, [0, 5][: len(cycles)], 40)
    assert (what["lost"] > 0) == (what["code"] == STUCK) == lost
    assert what["again"] > 0


def check_random(folder: Path, ranks: list[list[str]], draw: st.DataObject) -> Counter[str]:
    traffic = draw.draw(st.sampled_from(["", ", rendezvous_bytes: 512", ", matched_bytes: 513, injection: packets"]))
    chosen = draw.draw(st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True))
    cycles = draw.draw(st.lists(st.integers(0, 60), min_size=len(chosen), max_size=len(chosen), unique=True))
    return fail_links(write(folder, ranks), traffic, cycles, chosen, draw.draw(st.integers(10, 40)))


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


CALLS = ["alltoall 900 900", "compute 7", "allreduce 5000 0", "bcast 77 2", "barrier"]


def without_ranks(path: Path, network: Network, seed: int) -> tuple[Topology, list[int], set[int]]:
    """Return a network, the switches that may fail (the others hang together without them), those of ranks."""
    run = Simulation(programmed(path, [], "", network, seed), 0.1, seed)
    assert run.placed is not None
    taken = set(run.topology.host_router[run.placed.host].tolist())
    free = [r for r in range(run.topology.routers) if r not in taken and hang_together(run.topology, {r}, set())]
    assert free
    return run.topology, free, taken


def hang_together(topology: Topology, switches: set[int], links: set[tuple[int, int]]) -> bool:
    rest = set(range(topology.routers)) - switches
    found, queue = {min(rest)}, [min(rest)]
    while queue:
        r = queue.pop()
        for peer in topology.peer_router[r].tolist():
            if peer in rest - found and (r, peer) not in links and (peer, r) not in links:
                found.add(peer)
                queue.append(peer)
    return found == rest


def links_of(topology: Topology) -> list[tuple[int, int]]:
    return [(r, peer) for r in range(topology.routers) for peer in topology.peer_router[r].tolist() if peer > r]


def passing(topology: Topology, routers: set[int]) -> list[int]:
    """Count for each router the pairs of other routers between which it is on a shortest way."""
    far = distances(topology)
    return [
        sum(far[a, r] + far[r, b] == far[a, b] for a in routers for b in routers if r not in (a, b))
        for r in range(topology.routers)
    ]


@pytest.mark.study
def test_switches_and_links_as_with_the_golden_hosts(tmp_path: Path) -> None:
    """The switch that most messages pass fails, alone, and with links; everything that may happen does."""
    path = write(tmp_path, [CALLS * 2] * 6)
    seen = Counter[str]()
    for network, seed in ((REGULAR, 1), (REGULAR, 2), (TREE, 1), (TREE, 2)):
        topology, free, routers = without_ranks(path, network, seed)
        busy = passing(topology, routers)
        switch = max(free, key=busy.__getitem__)
        links = sorted(links_of(topology), key=lambda link: busy[link[0]] * busy[link[1]], reverse=True)
        near = [link for link in links if switch in link and hang_together(topology, set(), {link})]
        far = [link for link in links if switch not in link and hang_together(topology, {switch}, {link})]
        assert near and far
        for failures in (
            [Failure(0, 40, (), (switch,))],
            [Failure(8, 60, (), (switch,))],
            [Failure(9, 70, (), (switch,)), Failure(14, 50, (far[0],))],
            [Failure(6, 60, (near[0],)), Failure(13, 40, (), (switch,))],
            [Failure(7, 50, (near[0], far[0]), (switch,)), Failure(20, 50, (far[1],))],
        ):
            found = assert_equal_to_golden(path, failures, "", network, seed)
            seen += Counter(name for name, count in found.items() if count and name != "code")
            seen["stuck" if found["code"] == STUCK else "finished"] += 1
    names = ("in_switches", "packets_unsent", "packets_set_aside", "packets_without_host", "stuck", "finished", "again")
    assert {name: seen[name] > 0 for name in names} == dict.fromkeys(names, True), seen


def draw_failures(topology: Topology, free: list[int], draw: st.DataObject) -> list[Failure]:
    """Draw failures of links and switches that leave the network in one piece, whatever of them is down."""
    switches, links, found = set[int](), set[tuple[int, int]](), []
    for _ in range(draw.draw(st.integers(1, 3))):
        begin = draw.draw(st.integers(0, 60))
        end = begin + draw.draw(st.integers(DETECTION + REPROGRAM + 1, 40))
        switch, link = draw.draw(st.sampled_from(free)), draw.draw(st.sampled_from(links_of(topology)))
        which = draw.draw(st.sampled_from(["switch", "link", "both"]))
        more = set() if which == "link" else {switch}
        cut = set() if which == "switch" else {link}
        if not hang_together(topology, switches | more, links | cut) or more & switches:
            continue
        switches |= more
        links |= cut
        found.append(Failure(begin, end, tuple(cut), tuple(more)))
    return found


def check_random_switches(folder: Path, ranks: list[list[str]], draw: st.DataObject) -> Counter[str]:
    network, seed = draw.draw(st.sampled_from([REGULAR, TREE])), draw.draw(st.integers(1, 5))
    path = write(folder, ranks)
    topology, free, _ = without_ranks(path, network, seed)
    failures = draw_failures(topology, free, draw)
    traffic = draw.draw(st.sampled_from(["", ", rendezvous_bytes: 512", ", matched_bytes: 513, injection: packets"]))
    return assert_equal_to_golden(path, failures, traffic, network, seed) if failures else Counter()


@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(ranks=programs(6), draw=st.data())
def test_random_switches_as_with_the_golden_hosts(
    tmp_path_factory: pytest.TempPathFactory, ranks: list[list[str]], draw: st.DataObject
) -> None:
    check_random_switches(tmp_path_factory.mktemp("random"), ranks, draw)


@pytest.mark.study
@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(ranks=programs(6), draw=st.data())
def test_many_random_switches_as_with_the_golden_hosts(
    tmp_path_factory: pytest.TempPathFactory, ranks: list[list[str]], draw: st.DataObject
) -> None:
    check_random_switches(tmp_path_factory.mktemp("random"), ranks, draw)

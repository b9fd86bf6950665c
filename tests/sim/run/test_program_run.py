"""Programs in the network: zero-load times by the formula, an event-by-event oracle, conservation, dead ends."""

from collections import Counter, deque
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge.model.config import Config, ConfigError, parse_config
from hopforge.model.config.uses import unused_sections
from hopforge.model.network.core.state import NetworkError
from hopforge.model.network.parts.program_arrays import ProgramError
from hopforge.model.workload.trace import TraceError
from hopforge.sim.programs.application import run_app
from hopforge.sim.programs.program_routers import ApplicationError
from hopforge.sim.run.packet_trace import list_packets
from hopforge.sim.run.program_run import ProgramMeasurement, program_rows, rank_table, run_program, write_program
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.traffic import TrafficError
from hopforge.sim.traffic.forecast import forecast
from hopforge.sim.traffic.packet_stream import WorkloadError

ROW = "topology: {kind: mesh, radices: [6]}"
SWITCH = "topology: {kind: mesh, radices: [1], hosts_per_router: 8}"
FLIT_BYTES, MTU = 10, 40


def base(routers: int, rc: int = 0, link: int = 1) -> int:
    """Cycles from sending a flit to its arrival without load (docs/definitions/router.md): the formula for one flit."""
    return (3 + rc) * routers + link * (routers - 1) + 3


def write(folder: Path, ranks: list[list[str]]) -> Path:
    path = folder / "program"
    path.mkdir(exist_ok=True)
    for rank, lines in enumerate(ranks):
        (path / f"rank-{rank}.txt").write_text("".join(f"{rank} {line}\n" for line in ["init", *lines]))
    return path


def traced(
    folder: Path, ranks: list[list[str]], *lines: str, topology: str = ROW, workload: str = "", more: str = ""
) -> Config:
    path = write(folder, ranks)
    text = f"name: test\n{topology}\nworkload: {{kind: trace, file: {path}, mtu_bytes: {MTU}{workload}}}\n"
    text += f"traffic: {{source: program, flit_bytes: {FLIT_BYTES}{more}}}\n"
    return parse_config(text + "\n".join(lines or ["router: {buffer_flits: 32}"]))


def finish(checked: Config, **options: int) -> tuple[Simulation, ProgramMeasurement]:
    run = Simulation(checked, 0.1, 1, **options)
    return run, run_program(run)


@pytest.mark.parametrize(
    "router", ["buffer_flits: 8", "model: input_output_queued, buffer_flits: 8, output_buffer_flits: 4"]
)
def test_measures_of_packets_are_those_of_the_list_of_packets(router: str) -> None:
    """Counted anew from what `hopforge trace` lists: percentiles, and rates by the time of a flit on its link."""
    config = parse_config(
        "name: test\ntopology: {kind: mesh, radices: [3, 2], hosts_per_router: 2}\nrouting: {algorithm: dor}\n"
        f"router: {{vcs: 2, {router}}}\ntraffic: {{source: program, flit_bytes: 64}}\n"
        "workload: {kind: collective, operation: alltoall, ranks: 9, bytes: 900, mtu_bytes: 64}\n"
    )
    run, found = finish(config)
    cycles, flit, width = int(run.state["cycle"]), run.built.flit_cycles, run.built.bin_cycles
    assert (flit, width) == ((80, 8) if "model" in router else (1, 1))
    packets = list_packets(config, 0.1, 1, cycles + 1)
    assert found.packets == len(packets) == 9 * 8 * 15 > 1000
    latency, in_network = packets["latency"].to_numpy(), (packets["arrived"] - packets["sent"]).to_numpy()
    for name, values in (("latency", latency), ("network_latency", in_network)):
        assert values.min() >= 0
        assert getattr(found, name) == pytest.approx(values.mean())
        assert getattr(found, f"{name}_max") == values.max()
        for part, share in (("median", 0.5), ("p95", 0.95), ("p99", 0.99)):
            exact = int(np.quantile(values, share, method="inverted_cdf"))
            middle = exact // width * width + (width - 1) / 2
            assert getattr(found, f"{name}_{part}") == middle, (name, part)
    assert found.accepted == pytest.approx(packets["flits"].sum() * flit / cycles / 12)


# ---- known times ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rc, link", [(0, 1), (2, 3)])
@pytest.mark.parametrize("size, flits", [(0, 1), (10, 1), (11, 2), (40, 4), (41, 5), (400, 40)])
def test_ping_pong_takes_the_formula(tmp_path: Path, size: int, flits: int, rc: int, link: int) -> None:
    there, back = [f"send 3 0 {size}", "recv 3 0 -1"], ["recv 0 0 -1", f"send 0 0 {size}"]
    rounds = 5
    checked = traced(
        tmp_path, [there * rounds, [], [], back * rounds],
        f"router: {{buffer_flits: 64, rc_cycles: {rc}, link_latency_cycles: {link}}}",
    )  # fmt: skip
    run, found = finish(checked)
    latency = base(4, rc, link) + flits - 1
    assert found.makespan == 2 * rounds * latency
    assert found.message_latency == found.message_latency_max == latency
    assert found.flits == 2 * rounds * flits
    assert found.hops == 4
    # a rank that is not in the game is at its end at once; rank 3 has sent when its last flit has left
    assert rank_table(run).finish_cycle.tolist()[:3] == [found.makespan, 0, 0]
    assert rank_table(run).finish_cycle[3] == found.makespan - latency + flits


def test_ping_pong_between_input_output_queued_routers(tmp_path: Path) -> None:
    """Computing skips cycles in which nothing is under way; two groups of a dragonfly, flights as documented."""
    rounds, flops = 4, 12_345
    ranks: list[list[str]] = [[] for _ in range(6)]
    ranks[0] = [f"compute {flops}", "send 5 0 16", "recv 5 0 -1"] * rounds
    ranks[5] = ["recv 0 0 -1", "send 0 0 33"] * rounds
    path = write(tmp_path, ranks)
    text = (
        "name: test\ntopology: {kind: dragonfly, p: 1, a: 2, h: 1}\naddress: {chunk_bits: 4}\n"
        "router: {model: input_output_queued, vcs: 2}\nrouting: {algorithm: dragonfly_min}\n"
        f"workload: {{kind: trace, file: {path}, mtu_bytes: 16}}\n"
        "traffic: {source: program, flit_bytes: %d, cycles_per_flop: 10}"
    )
    run, found = finish(parse_config(text % 16))
    host, local, far, packet, match = 75, 125, 800, 80, 8
    peer = run.topology.peer_router
    gate = next(r for r in (0, 1) if peer[r, 2] >= 4)  # group 0 → group 2, routers 4 and 5
    flights = [host, *([local] if gate != 0 else []), far, *([local] if peer[gate, 2] != 5 else []), host]

    def arrival(sent: int, flights: list[int]) -> int:
        for flight in flights[:-1]:
            sent = -(-(sent + flight) // match) * match
        return sent + flights[-1]

    now = 0
    for _ in range(rounds):
        now = arrival(now + 10 * flops, flights)
        now = arrival(now + 2 * packet, flights[::-1])  # three packets, one behind the other
    assert found.makespan == now
    assert found.packets == 4 * rounds
    assert found.hops == len(flights) - 1
    whole = text % 16 + "\napp: {engine: packet, host_gflops: 0.25, lookup: %s}\n"  # 10 cycles of 0.4 ns for a flop
    assert run_app(parse_config(whole % "hit")).found.makespan_s == pytest.approx(now * 0.4e-9, rel=1e-9)
    with pytest.raises(ApplicationError, match=r"app.lookup: must be hit with router.model=input_output_queued, not m"):
        run_app(parse_config(whole % "miss"))
    with pytest.raises(NetworkError, match=r"workload.mtu_bytes must be at most traffic.flit_bytes=8 .*, not 16"):
        finish(parse_config(text % 8))


def test_a_message_around_the_ring(tmp_path: Path) -> None:
    ring = "topology: {kind: torus, radices: [5]}"
    ranks = [[f"recv {(r - 1) % 5} 0 30", f"send {(r + 1) % 5} 0 30"] for r in range(5)]
    ranks[0].reverse()
    _, found = finish(traced(tmp_path, ranks, topology=ring))
    assert found.makespan == 5 * (base(2) + 2)


@pytest.mark.parametrize("operation, algorithm, rounds, flits", [
    ("alltoall", "pairwise", 7, 4),
    ("alltoall", "bruck", 3, 16),  # half of the blocks in each round
    ("allreduce", "recursive_doubling", 3, 4),
    ("allreduce", "ring", 14, 1),  # eighths of the vector: 5 bytes
    ("allgather", "ring", 7, 4),
    ("bcast", "binomial", 3, 4),
    ("barrier", "bruck", 3, 1),
])  # fmt: skip
@pytest.mark.parametrize("repeat", [1, 3])
def test_collectives_on_one_switch(operation: str, algorithm: str, rounds: int, flits: int, repeat: int) -> None:
    # in each round a host sends to at most one other and receives from at most one: nothing collides
    checked = parse_config(
        f"name: test\n{SWITCH}\ntraffic: {{source: program, flit_bytes: {FLIT_BYTES}}}\nrouter: {{buffer_flits: 32}}\n"
        f"workload: {{kind: collective, operation: {operation}, bytes: 40, repeat: {repeat}, mtu_bytes: 400, "
        f"collectives: {{{operation}: {algorithm}}}}}"
    )
    _, found = finish(checked)
    latency = base(1) + flits - 1
    if operation == "bcast":
        # the root sends to one child after the other, and sends the next vector without waiting for anybody; the rank
        # that is three rounds away gets the first one last
        assert found.makespan == rounds * latency + (repeat - 1) * 3 * flits
    else:
        assert found.makespan == repeat * rounds * latency


def test_computing_sleeping_and_idle_cycles(tmp_path: Path) -> None:
    ranks = [["compute 3e9", "send 1 0 10", "sleep 2", "compute 1e3"], ["compute 7", "recv 0 0 10", "compute 50.4"]]
    _, found = finish(traced(tmp_path, ranks))
    assert found.makespan == base(2)  # by default computing takes no time
    checked = traced(tmp_path, ranks, more=", cycles_per_flop: 1, cycles_per_second: 1.5e6")
    run, found = finish(checked)
    table = rank_table(run)
    assert table.finish_cycle.tolist() == [3_000_000_000 + 1 + 3_000_000 + 1000, 3_000_000_000 + base(2) + 50]
    assert table.compute_cycles.tolist() == [3_003_001_000, 57]
    assert table.waiting_cycles.tolist() == [1, 3_000_000_000 + base(2) - 7]
    assert found.cpu_seconds < 5  # idle cycles are skipped; all is compiled by now


def test_messages_within_a_host_and_to_oneself(tmp_path: Path) -> None:
    ranks = [
        ["isend 0 5 400", "recv 0 5 400", "wait 0 0 5", "send 1 0 400", "recv 2 0 20"],
        ["recv 0 0 400"],
        ["send 0 0 20"],
    ]
    mapping = tmp_path / "map.txt"
    mapping.write_text("1\n1\n0\n")
    _, found = finish(traced(tmp_path, ranks, workload=f", mapping: {{kind: file, file: {mapping}}}"))
    assert (found.messages, found.local_messages, found.packets) == (3, 2, 1)
    assert found.makespan == base(2) + 1


def test_rendezvous_waits_for_the_receive(tmp_path: Path) -> None:
    # request and answer are one flit each; then the data
    ranks = [["send 1 0 200"], ["compute 1000", "recv 0 0 200"]]
    more = ", cycles_per_flop: 1, rendezvous_bytes: "
    run, found = finish(traced(tmp_path, ranks, more=more + "199"))
    assert found.makespan == 1000 + 2 * base(2) + 19
    assert rank_table(run).finish_cycle[0] == 1000 + base(2) + 20
    run, found = finish(traced(tmp_path, ranks, more=more + "200"))
    assert found.makespan == 1000
    assert rank_table(run).finish_cycle[0] == 20


@pytest.mark.parametrize(("least", "starts"), [(200, 1000), (201, 0)])
def test_matched_messages_start_with_their_receive(tmp_path: Path, least: int, starts: int) -> None:
    """Without asking: no request and no answer."""
    ranks = [["send 1 0 200"], ["compute 1000", "recv 0 0 200"]]
    run, found = finish(traced(tmp_path, ranks, more=f", cycles_per_flop: 1, matched_bytes: {least}"))
    assert rank_table(run).finish_cycle.tolist() == [starts + 20, max(1000, starts + base(2) + 19)]
    assert found.packets == 5
    # a receive that is there already: at once
    ranks = [["compute 1000", "send 1 0 200"], ["recv 0 0 200"]]
    run, _ = finish(traced(tmp_path, ranks, more=f", cycles_per_flop: 1, matched_bytes: {least}"))
    assert rank_table(run).finish_cycle.tolist() == [1020, 1000 + base(2) + 19]


@pytest.mark.parametrize(("injection", "long", "short"), [("messages", 39, 43), ("packets", 43, 7)])
def test_messages_of_a_host_one_after_the_other_or_packets_in_turn(
    tmp_path: Path, injection: str, long: int, short: int
) -> None:
    """40 flits in 10 packets to the next host, then 4 in one to the one behind it: when their last flits leave."""
    ranks = [["isend 1 0 400", "isend 2 0 40", "waitall 2"], ["recv 0 0 400"], ["recv 0 0 40"]]
    run, _ = finish(traced(tmp_path, ranks, more=f", injection: {injection}"))
    assert rank_table(run).finish_cycle.tolist() == [44, long + base(2), short + base(3)]


# ---- the dependency rules, event by event ---------------------------------------------------------------------------


class Oracle:
    """Programs where no two messages meet in the network: everything in the order it happens.

    A host sends one flit per cycle, message by message in the order in which they were handed over; a flit takes
    ``latency[source][target]`` cycles. Messages match by source, destination, tag and order.
    """

    def __init__(self, ranks: list[list[str]], latency: list[list[int]], rendezvous: int | None) -> None:
        self.ranks, self.latency, self.rendezvous = ranks, latency, rendezvous
        count = len(ranks)
        self.now = 0
        self.at, self.busy, self.finished = [0] * count, [0] * count, [-1] * count
        self.queue: list[deque] = [deque() for _ in ranks]  # [kind, message, flits left]
        self.wire: list[tuple[int, str, dict]] = []
        self.sends: dict[tuple, list[dict]] = {}
        self.receives: dict[tuple, list[dict]] = {}
        self.requests: list[dict[tuple, list]] = [{} for _ in ranks]
        self.started: list[dict] = [{} for _ in ranks]  # what the present operation of a rank has begun

    def finishing(self) -> list[int]:
        """Return the finishing cycles of the ranks."""
        while any(cycle < 0 for cycle in self.finished):
            for entry in [one for one in self.wire if one[0] == self.now]:
                self.wire.remove(entry)
                self.arrive(*entry[1:])
            for rank in range(len(self.ranks)):
                self.execute(rank)
            for rank in range(len(self.ranks)):
                self.transmit(rank)
            self.now += 1
            assert self.now < 100_000, "the oracle does not come to an end"
        return self.finished

    def meet(self, key: tuple) -> None:
        """Match what has been posted, and answer those that asked."""
        for message, receive in zip(self.sends.get(key, []), self.receives.get(key, []), strict=False):
            receive["message"] = message
            message["posted"] = True
            if message.get("asked") and not message.get("answered"):
                message["answered"] = True
                self.queue[key[1]].append(["answer", message, 1])

    def send(self, rank: int, words: list[str]) -> dict:
        size, key = int(words[3]), (rank, int(words[1]), int(words[2]))
        message = {"key": key, "size": size, "left": False, "here": False, "posted": False}
        self.sends.setdefault(key, []).append(message)
        packets = max(1, -(-size // MTU))
        rest = size - (packets - 1) * MTU
        message["flits"] = (packets - 1) * -(-MTU // FLIT_BYTES) + max(1, -(-rest // FLIT_BYTES))
        if self.rendezvous is not None and size > self.rendezvous:
            self.queue[rank].append(["ask", message, 1])
        else:
            self.queue[rank].append(["data", message, message["flits"]])
        self.meet(key)
        return message

    def receive(self, rank: int, words: list[str]) -> dict:
        key = (int(words[1]), rank, int(words[2]))
        posted: dict = {}
        self.receives.setdefault(key, []).append(posted)
        self.meet(key)
        return posted

    def arrive(self, kind: str, message: dict) -> None:
        """Take the last flit of something off the wire."""
        source, target, _ = message["key"]
        if kind == "ask":
            message["asked"] = True
            if message["posted"]:
                message["answered"] = True
                self.queue[target].append(["answer", message, 1])
        elif kind == "answer":
            self.queue[source].append(["data", message, message["flits"]])
        elif kind == "gone":
            message["left"] = True
        else:
            message["here"] = True

    def execute(self, rank: int) -> None:
        """Run a rank as far as it comes in this cycle."""
        lines = self.ranks[rank]
        while self.finished[rank] < 0 and self.busy[rank] <= self.now:
            if self.at[rank] == len(lines):
                self.finished[rank] = self.now
            elif self.operation(rank, lines[self.at[rank]].split()):
                self.started[rank] = {}
                self.at[rank] += 1
            else:
                break

    def operation(self, rank: int, words: list[str]) -> bool:
        """Begin an operation, or go on with it; returns whether it is done."""
        name, state, requests = words[0], self.started[rank], self.requests[rank]
        if name == "compute":
            self.busy[rank] = self.now + int(words[1])
            return True
        begin = self.send if name.endswith("send") else self.receive
        if name in ("send", "recv"):
            if not state:
                state["request"] = begin(rank, words)
            return done(state["request"])
        if name in ("isend", "irecv"):
            pair = (rank, int(words[1])) if name == "isend" else (int(words[1]), rank)
            requests.setdefault((*pair, int(words[2])), []).append(begin(rank, words))
            return True
        if name == "wait":
            pending = requests.get(tuple(map(int, words[1:])), [])
            if not state:
                state["request"] = pending.pop(0) if pending else None
            return done(state["request"])
        assert name == "waitall"
        if not all(done(request) for pending in requests.values() for request in pending):
            return False
        requests.clear()
        return True

    def transmit(self, rank: int) -> None:
        """Put the next flit of a host on the wire."""
        if not self.queue[rank]:
            return
        kind, message, flits = self.queue[rank][0]
        source, target, _ = message["key"]
        self.queue[rank][0][2] = flits - 1
        if flits == 1:
            self.queue[rank].popleft()
            goal = source if kind == "answer" else target
            self.wire.append((self.now + self.latency[rank][goal], kind, message))
            if kind == "data":
                self.wire.append((self.now + 1, "gone", message))


def done(request: dict | None) -> bool:
    """Tell whether a send has left or a receive has its message."""
    if request is None:
        return True
    if "left" in request:  # a send
        return request["left"]
    return "message" in request and request["message"]["here"]


@st.composite
def programs(draw: st.DrawFn, ranks: int, pairs: list[tuple[int, int]]) -> list[list[str]]:
    """Programs that come to an end with eager and rendezvous sends: every pair of calls is appended to both ranks."""
    lines: list[list[str]] = [[] for _ in range(ranks)]
    for _ in range(draw(st.integers(1, 25))):
        source, target = draw(st.sampled_from(pairs))
        size, tag = draw(st.sampled_from([0, 7, 40, 41, 200])), draw(st.integers(0, 1))
        kind = draw(st.sampled_from(["blocking", "free", "late", "compute", "waitall"]))
        if kind == "compute":
            lines[source].append(f"compute {draw(st.integers(1, 60))}")
        elif kind == "waitall":
            lines[target].append("waitall")
        elif kind == "blocking":
            lines[source].append(f"send {target} {tag} {size}")
            lines[target].append(f"recv {source} {tag} {size}")
        else:
            lines[source].append(f"isend {target} {tag} {size}")
            lines[target].append(f"irecv {source} {tag} {size}")
            if kind == "late":
                lines[target] += [f"compute {draw(st.integers(1, 60))}", f"wait {source} {target} {tag}"]
                lines[source].append(f"wait {source} {target} {tag}")
    return [[*one, "waitall"] for one in lines]


def _finishing(folder: Path, ranks: list[list[str]], topology: str, more: str) -> tuple[list[int], Simulation]:
    run, found = finish(traced(folder, ranks, topology=topology, more=", cycles_per_flop: 1" + more))
    assert (
        int(run.state["messages_arrived"])
        == found.messages
        == sum(line.split()[0] in ("send", "isend") for lines in ranks for line in lines)
    )
    return rank_table(run).finish_cycle.tolist(), run


@settings(max_examples=40)
@given(ranks=programs(2, [(0, 1), (1, 0)]), rendezvous=st.sampled_from([None, 0, 40]))
def test_two_ranks_against_the_oracle(
    tmp_path_factory: pytest.TempPathFactory, ranks: list[list[str]], rendezvous: int | None
) -> None:
    more = "" if rendezvous is None else f", rendezvous_bytes: {rendezvous}"
    found, _ = _finishing(tmp_path_factory.mktemp("two"), ranks, "topology: {kind: mesh, radices: [2]}", more)
    assert found == Oracle(ranks, [[0, base(2)], [base(2), 0]], rendezvous).finishing()


@settings(max_examples=25)
@given(ranks=programs(5, [(r, (r + 1) % 5) for r in range(5)]))
def test_a_ring_of_ranks_against_the_oracle(tmp_path_factory: pytest.TempPathFactory, ranks: list[list[str]]) -> None:
    # every rank sends to its neighbour only: no two messages share a channel or a host's input
    found, _ = _finishing(tmp_path_factory.mktemp("ring"), ranks, "topology: {kind: torus, radices: [5]}", "")
    assert found == Oracle(ranks, [[base(2)] * 5] * 5, None).finishing()


# ---- conservation ---------------------------------------------------------------------------------------------------


def flits_per_pair(run: Simulation) -> dict[tuple[int, int], int]:
    """Flits that arrived, by source and destination, from the log of events."""
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    arrived = log[log[:, 1] == 3]
    return Counter(zip((arrived[:, 4] >> 40).tolist(), arrived[:, 2].tolist(), strict=True))


@pytest.mark.parametrize("mapping", ["linear", "random"])
def test_every_byte_of_a_crowded_program_arrives(tmp_path: Path, mapping: str) -> None:
    calls = ["alltoall 90 90", "allreduce 50 0", "bcast 77 2", "barrier", "allgather 25 25", "alltoall 1 1"]
    path = write(tmp_path, [calls] * 12)
    checked = parse_config(
        f"name: test\ntopology: {{kind: torus, radices: [4, 3]}}\ntraffic: {{source: program, flit_bytes: 16}}\n"
        f"workload: {{kind: trace, file: {path}, mtu_bytes: 64, mapping: {{kind: {mapping}}}}}\n"
        "router: {vcs: 2, buffer_flits: 2}"
    )
    run, found = finish(checked, log_events=300_000)
    placed = run.placed
    expected: Counter = Counter()
    for source, target, size in zip(
        placed.program.source, placed.program.destination, placed.program.size_bytes.tolist(), strict=True
    ):
        whole, rest = divmod(size, 64)
        flits = 4 * whole + -(-rest // 16) if size else 1
        expected[int(placed.host[source]), int(placed.host[target])] += flits
    assert flits_per_pair(run) == expected
    assert sorted(placed.host.tolist()) == list(range(12))
    assert (run.state["message"]["arrived"] >= run.state["message"]["started"]).all()
    assert found.flits == sum(expected.values()) == int(run.state["flits_injected"])
    assert found.makespan == rank_table(run).finish_cycle.max()
    assert int(run.state["packets_created"]) == found.packets
    write_program(run, found, tmp_path / "out")
    assert pd.read_csv(tmp_path / "out" / "program.csv")["makespan"].tolist() == [found.makespan]
    assert len(pd.read_parquet(tmp_path / "out" / "ranks.parquet")) == 12
    assert dict(program_rows(found))["messages"].startswith(f"{found.messages:,} with")


def test_same_program_same_bits() -> None:
    text = (
        "name: test\ntopology: {kind: torus, radices: [4, 4]}\ntraffic: {source: program}\n"
        "workload: {kind: collective, operation: alltoall, bytes: 500, repeat: 2, mapping: {kind: random}}"
    )
    rows = [finish(parse_config(text))[1].row() for _ in range(2)]
    for row in rows:
        del row["cpu_seconds"]
    assert rows[0] == rows[1]
    assert rows[0]["messages"] == 2 * 16 * 15


def test_a_recorded_program_of_64_ranks_comes_to_its_end() -> None:
    checked = parse_config(
        "name: test\ntopology: {kind: torus, radices: [4, 4, 4]}\nworkload: {kind: trace, file: 'shipped:is.A.64'}\n"
        "traffic: {source: program, flit_bytes: 2048}"
    )
    progress: list[tuple[int, int]] = []
    run = Simulation(checked, 0.1, 1)
    found = run_program(run, lambda done, total: progress.append((done, total)))
    assert found.messages == 22 * 63 * 64 + 11 * 6 * 64 + 3 * 63 + 63
    assert found.packets == found.flits == int(np.maximum(1, -(-run.placed.program.size_bytes // 2048)).sum())
    assert progress[-1] == (found.messages, found.messages)
    assert [done for done, _ in progress] == sorted(done for done, _ in progress)


# ---- dead ends and mistakes -----------------------------------------------------------------------------------------


def test_ranks_that_wait_for_each_other_are_named(tmp_path: Path) -> None:
    ranks = [["recv 1 0 10", "send 1 0 10"], ["recv 0 0 10", "send 0 0 10"], ["send 0 3 10"]]
    with pytest.raises(
        ProgramError,
        match=r"^workload: the program cannot end: in cycle \d+ nothing is under way and 2 of 3 ranks wait: "
        r"rank 0 waits for a message from rank 1 \(recv, .*rank-0.txt:2\); rank 1 waits .* \(recv, .*rank-1.txt:2\)$",
    ):
        finish(traced(tmp_path, ranks))
    # two sends that meet: fine where messages are buffered, not where they wait for their receives
    (tmp_path / "x").mkdir()
    ranks = [["send 1 0 100", "recv 1 0 100"], ["send 0 0 100", "recv 0 0 100"]]
    finish(traced(tmp_path / "x", ranks))
    with pytest.raises(
        ProgramError,
        match=r"rank 0 waits until rank 1 takes its message \(send, .*rank-0.txt:2\); rank 1 waits until rank 0",
    ):
        finish(traced(tmp_path / "x", ranks, more=", rendezvous_bytes: 99"))
    (tmp_path / "y").mkdir()
    big = [[f"recv {(r + 1) % 12} 0 1", f"send {(r - 1) % 12} 0 1"] for r in range(12)]
    with pytest.raises(ProgramError, match=r"12 of 12 ranks wait: rank 0 waits .*; and 4 more ranks$"):
        finish(traced(tmp_path / "y", big, topology="topology: {kind: mesh, radices: [12]}"))


def test_a_message_of_more_packets_than_are_counted_is_refused(tmp_path: Path) -> None:
    most = MTU * (2**31 - 1)
    for size, accepted in ((most, True), (most + 1, False)):
        (tmp_path / str(size)).mkdir()
        checked = traced(tmp_path / str(size), [[f"send 1 0 {size}"], [f"recv 0 0 {size}"]])
        if accepted:
            Simulation(checked, 0.1, 1)
            continue
        with pytest.raises(ProgramError, match=f"a message of {size} bytes is {2**31} packets of {MTU} bytes"):
            Simulation(checked, 0.1, 1)


def test_a_receive_that_nobody_sends_is_refused_with_the_ranks_that_wait(tmp_path: Path) -> None:
    ranks = [["recv 1 7 10"], [], ["irecv 0 1 5", "wait 0 2 1"]]
    with pytest.raises(
        TraceError,
        match=r"rank-0.txt:2: rank 0 waits for a message from rank 1 with tag 7 that is never sent; so does rank 2$",
    ):
        Simulation(traced(tmp_path, ranks), 0.1, 1)


def test_wild_receives_do_not_wait_even_with_rendezvous(tmp_path: Path) -> None:
    ranks = [["send 1 0 100"], ["recv -555 0 100"]]
    run, found = finish(traced(tmp_path, ranks, more=", rendezvous_bytes: 0"))
    assert found.messages == 1
    assert rank_table(run).finish_cycle.tolist() == [10, 0]


def test_unroutable_messages_are_told(tmp_path: Path) -> None:
    rule = tmp_path / "nowhere.py"
    rule.write_text(
        "import numpy as np\nfrom hopforge.model.routing import RoutingPlan, relation\n"
        "def nowhere(router, in_port, in_vc, packet, net, table, memory, out):\n    return 0\n"
        "def prepare(topology, vcs, options):\n    return RoutingPlan(relation(nowhere), np.zeros(1, np.int32))\n"
    )
    checked = traced(
        tmp_path, [["send 1 0 1"], ["recv 0 0 1"]],
        f"routing: {{algorithm: file, file: {rule}, check: false}}",
    )  # fmt: skip
    with pytest.raises(ProgramError, match=r"1 of 2 ranks wait: .*; unroutable and dropped: 1 packet$"):
        finish(checked)


def test_mistakes_in_the_configuration_are_one_clear_line() -> None:
    collective = "workload: {kind: collective, operation: bcast, root: 6}"
    for lines, message in [
        ("traffic: {source: program}", r"traffic.source: program needs a section workload that is a program"),
        (
            "workload: {kind: uniform}\ntraffic: {source: program}",
            r"traffic.source: program needs a section workload that is a program \(kind: npb, trace, collective, …\)$",
        ),
        (
            f"{collective}\ntraffic: {{source: program, pattern: transpose}}",
            r"traffic.pattern: is for source=bernoulli or on_off only, not source=program$",
        ),
        (
            f"{collective}\ntraffic: {{source: program, message_packets: 2}}",
            r"traffic.message_packets: is for source=bernoulli or on_off only, not source=program$",
        ),
    ]:
        with pytest.raises(ConfigError, match=message):
            parse_config(f"name: test\n{ROW}\n{lines}")
    checked = parse_config(f"name: test\n{ROW}\n{collective}\ntraffic: {{source: program}}")
    with pytest.raises(WorkloadError, match=r"^workload.root: rank 6 is not one of the 6 ranks$"):
        Simulation(checked, 0.1, 1)
    checked = parse_config(
        f"name: test\n{ROW}\nworkload: {{kind: collective, operation: scan, ranks: 7}}\ntraffic: {{source: program}}"
    )
    with pytest.raises(WorkloadError, match=r"^workload: 7 ranks are more than the 6 hosts of the 6 mesh$"):
        Simulation(checked, 0.1, 1)
    checked = parse_config(
        f"name: test\n{ROW}\nworkload: {{kind: collective, operation: scan}}\ntraffic: {{source: program}}"
    )
    with pytest.raises(TrafficError, match=r"^traffic.source: a program has no load; hopforge net runs it once"):
        Simulation(checked, 0.1, 1).run()


def test_computations_that_come_to_more_cycles_than_are_counted_are_refused(tmp_path: Path) -> None:
    """Each is below 2^42 cycles; from 2^43 on the time of the rank wrapped, and what came later took no time."""
    half = (1 << 41) - 100
    for computations, fits in ((2, True), (3, False), (5, False)):
        folder = tmp_path / str(computations)
        folder.mkdir()
        checked = traced(
            folder, [[f"compute {half}"] * computations + ["send 1 0 1"], ["recv 0 0 1"]], more=", cycles_per_flop: 1"
        )
        if fits:
            assert finish(checked)[1].makespan == computations * half + base(2)
        else:
            with pytest.raises(ProgramError, match=r"takes more than 4,398,046,511,104 cycles"):
                finish(checked)


def test_programs_of_too_many_flits_are_refused_with_the_time_that_they_would_take() -> None:
    """700 GB in packets of 2048 bytes and flits of 64; what stays within a host is not counted."""
    text = "name: test\n%s\nworkload: {kind: collective, operation: bcast, bytes: %d, ranks: 2%s}\n"
    text += "traffic: {source: program, flit_bytes: 64}"
    with pytest.raises(ProgramError, match=r"have 10,937,500,000 flits, more than 10,000,000,000; .* about 46 minutes"):
        Simulation(parse_config(text % (ROW, 700_000_000_000, "")), 0.1, 1)
    run = Simulation(parse_config(text % (ROW, 700_000_000_000, ", max_flits: 10937500000")), 0.1, 1)
    assert run.message_flits == 10_937_500_000
    assert forecast(run.message_flits) == "10,937,500,000 flits: about 46 minutes of processor time"
    assert forecast(100_000_000) == ""
    with pytest.raises(ProgramError, match=r"have 65 flits, more than 64"):
        Simulation(parse_config(text % (ROW, 2048 * 2 + 1, ", max_flits: 64")), 0.1, 1)
    assert Simulation(parse_config(text % (ROW, 2048 * 2 + 1, ", max_flits: 65")), 0.1, 1).message_flits == 65


def test_a_packet_of_more_flits_than_counters_hold_is_refused_by_its_key() -> None:
    text = "name: test\n%s\nworkload: {kind: collective, operation: bcast, mtu_bytes: %s}\n"
    text += "traffic: {source: program, flit_bytes: 64}"
    with pytest.raises(ProgramError, match=r"workload.mtu_bytes: must be at most 67108864, 1048576 flits of 64 bytes"):
        Simulation(parse_config(text % (ROW, 67_108_865)), 0.1, 1)
    with pytest.raises(ProgramError, match=r"workload.mtu_bytes: .* not 1000000000000000"):
        Simulation(parse_config(text % (ROW, 10**15)), 0.1, 1)


def test_the_limit_of_flits_is_told_where_there_are_none() -> None:
    text = "name: test\n%s\nworkload: {kind: collective, operation: bcast, max_flits: 7}\napp: {engine: %s}\n"
    for engine, told in (("flow", True), ("loggops", True), ("packet", False)):
        unread = unused_sections(parse_config(text % (ROW, engine)), ["app"])
        assert ("workload.max_flits" in unread) == told, engine

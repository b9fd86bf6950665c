"""The dependency rules of programs beside an oracle that goes from event to event."""

import sys
from collections import deque
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge.sim.run.program_run import rank_table
from hopforge.sim.run.simulation import Simulation

sys.path.insert(0, str(Path(__file__).parent))
from program_cases import FLIT_BYTES, MTU, base, finish, traced


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

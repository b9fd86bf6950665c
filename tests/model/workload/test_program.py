"""Expansion, matching and order of recorded programs, against hand-made cases and a slow oracle."""

from collections import Counter, defaultdict, deque

import numpy as np
import pytest

from hopforge.model.config.workload import CollectivesConfig
from hopforge.model.workload.compiled_program import compile_program
from hopforge.model.workload.operations import RECEIVE, SEND
from hopforge.model.workload.packet_order import interleave
from hopforge.model.workload.read_trace import read_trace
from hopforge.model.workload.trace import TraceError

PLAIN = CollectivesConfig()


def program(tmp_path, *ranks, collectives=PLAIN):
    folder = tmp_path / "t"
    folder.mkdir(exist_ok=True)
    for rank, lines in enumerate(ranks):
        (folder / f"rank-{rank + 1}.txt").write_text("".join(f"{rank} {line}\n" for line in ["init", *lines]))
    return compile_program(read_trace(folder), collectives)


def packets(prog, mtu=100, host=None, trace=None):
    run = interleave(prog, np.arange(prog.ranks) if host is None else np.array(host), mtu, trace)
    return list(zip(run.source.tolist(), run.destination.tolist(), strict=True))


def messages(prog):
    return Counter(zip(prog.source.tolist(), prog.destination.tolist(), prog.size_bytes.tolist(), strict=True))


def oracle(prog, host, mtu):
    """Run ranks as generators: yield a packet, or None while waiting."""
    sent = defaultdict(bool)

    def run(rank):
        for op in range(prog.first[rank], prog.first[rank + 1]):
            number = prog.operand[op]
            if prog.kind[op] == RECEIVE:
                while not sent[number]:
                    yield None
            elif prog.kind[op] != SEND:
                pass
            elif host[prog.source[number]] != host[prog.destination[number]]:
                count = max(1, -(-int(prog.size_bytes[number]) // mtu))
                for packet in range(count):
                    if packet == count - 1:
                        sent[number] = True  # seen by ranks that come later in this turn
                    yield int(prog.source[number]), int(prog.destination[number])
            else:
                sent[number] = True

    order, alive = [], deque(run(rank) for rank in range(prog.ranks))
    while alive:
        for _ in range(len(alive)):
            rank = alive.popleft()
            try:
                packet = next(rank)
            except StopIteration:
                continue
            alive.append(rank)
            if packet:
                order.append(packet)
    return order


def test_messages_are_cut_by_the_mtu_and_empty_ones_are_one_packet(tmp_path):
    prog = program(tmp_path, ["send 1 0 250 6", "send 1 0 0 6", "send 1 0 100 6"], [])
    assert packets(prog) == [(0, 1)] * (3 + 1 + 1)


def test_one_packet_per_rank_and_turn(tmp_path):
    prog = program(tmp_path, ["send 2 0 300"], ["send 2 0 200"], ["recv 0 0 300", "send 0 0 100"])
    # turns: (0, 1), (0, 1), (0 and then rank 2, which has just got everything)
    assert packets(prog) == [(0, 2), (1, 2), (0, 2), (1, 2), (0, 2), (2, 0)]


def test_requests_in_flight(tmp_path):
    prog = program(
        tmp_path,
        ["irecv 1 5 100", "isend 1 5 100", "wait 1 0 5", "wait 0 1 5", "send 1 9 100"],
        ["irecv 0 5 100", "irecv 0 9 100", "send 0 5 100", "test 0 1 5", "waitall 2", "send 0 1 0"],
    )
    assert packets(prog) == [(0, 1), (1, 0), (0, 1), (1, 0)]


def test_sizes_take_the_datatype(tmp_path):
    prog = program(
        tmp_path, ["send 1 0 10 0", "send 1 0 10 43", "send 1 0 10", "sendRecv 3 1 4 1 1 1"], ["sendRecv 4 0 4 0 1 1"]
    )
    assert messages(prog) == {(0, 1, 80): 1, (0, 1, 160): 1, (0, 1, 10): 1, (0, 1, 12): 1, (1, 0, 16): 1}


def test_order_of_equal_envelopes(tmp_path):
    # the first receive gets the first send although the second is smaller
    prog = program(tmp_path, ["send 1 0 300", "send 1 0 100"], ["recv 0 0 300", "send 0 0 100", "recv 0 0 100"])
    assert packets(prog) == [(0, 1)] * 3 + [(1, 0), (0, 1)]


def test_messages_within_a_host_make_no_packets(tmp_path):
    prog = program(tmp_path, ["send 0 0 100", "recv 0 0 100", "send 1 0 100"], ["recv 0 0 100", "send 2 0 100"], [])
    assert packets(prog) == [(0, 1), (1, 2)]
    run = interleave(prog, np.array([4, 4, 9]), 100, None)
    assert (run.source.tolist(), run.local_messages) == ([1], 2)


def test_wild_receives_do_not_wait(tmp_path):
    prog = program(tmp_path, ["recv -555 -444 10", "send 1 0 10"], ["compute 5", "recv 0 0 10", "send 0 3 10"])
    assert packets(prog) == [(0, 1), (1, 0)]


def test_waiting_for_ever(tmp_path):
    with pytest.raises(
        TraceError, match=r"rank-2.txt:3: rank 1 waits for a message from rank 0 with tag 4 that is never sent"
    ):
        program(tmp_path, ["send 1 3 10"], ["recv 0 3 10", "recv 0 4 10"])
    prog = program(tmp_path, ["recv 1 0 10", "send 1 0 10"], ["recv 0 0 10", "send 0 0 10"])
    expected = (
        r"^workload: the program cannot end: 2 of 2 ranks wait: rank 0 waits for a message from rank 1 \(recv,"
        r" .*rank-1.txt:2\); rank 1 waits for a message from rank 0 \(recv, .*rank-2.txt:2\)$"
    )
    with pytest.raises(TraceError, match=expected):
        packets(prog, trace=read_trace(tmp_path / "t"))


@pytest.mark.parametrize(("sends", "receives", "room", "size"), [
    ("send 1 7 100 1", "recv 0 7 99 1", 396, 400), ("isend 1 7 3 0", "irecv 0 7 23 6", 23, 24),
    ("sendRecv 5 1 5 1 6 6", "sendRecv 5 0 4 0 6 6", 4, 5),
])
def test_a_receive_without_room_for_its_message(tmp_path, sends, receives, room, size):
    expected = (
        rf"rank-2.txt:3: rank 1 receives at most {room} bytes, the message from rank 0 with tag \d has {size}"
        r" \(.*rank-1.txt:2\)$"
    )
    with pytest.raises(TraceError, match=expected):
        program(tmp_path, [sends], ["compute 1", receives])
    for enough in (receives.replace(" 99 ", " 100 ").replace(" 23 ", " 24 ").replace(" 0 4 ", " 0 5 "),
                   receives.replace(" 99 ", " -1 ").replace(" 23 ", " -1 ").replace("0 4 0 6 6", "0 5 0 6 6")):
        program(tmp_path, [sends], ["compute 1", enough])


def test_messages_of_exchanges_and_others_are_not_told_apart(tmp_path):
    """A trace has no tags of exchanges: the small receive may belong to the small one of two messages."""
    prog = program(tmp_path, ["send 1 0 100", "sendRecv 4 1 4 1 6 6"], ["sendRecv 4 0 4 0 6 6", "recv 0 0 100"])
    assert sorted(prog.size_bytes.tolist()) == [4, 4, 100]


def test_ranks_must_agree_on_collectives(tmp_path):
    with pytest.raises(
        TraceError, match=r"rank-2.txt:2: rank 1 calls bcast where rank 0 calls barrier \(.*rank-1.txt:2\)"
    ):
        program(tmp_path, ["barrier"], ["bcast 1"])
    with pytest.raises(TraceError, match=r"rank-2.txt:2: rank 1 calls bcast with root 1, rank 0 with root 0"):
        program(tmp_path, ["bcast 1 0"], ["bcast 1 1"])
    with pytest.raises(TraceError, match=r"rank-2.txt: rank 1 calls 2 collectives, rank 0 calls 1"):
        program(tmp_path, ["barrier"], ["barrier", "barrier"])


def test_sizes_of_collectives(tmp_path):
    """Bytes per pair as MPI defines them, with algorithms that send every block straight to its place."""
    straight = CollectivesConfig(
        bcast="linear", reduce="linear", gather="linear", scatter="linear", alltoall="linear", reduce_scatter="pairwise"
    )

    def run(*ranks):
        return messages(program(tmp_path, *ranks, collectives=straight))

    assert run(["bcast 5 1 1"], ["bcast 5 1 1"]) == {(1, 0, 20): 1}
    assert run(["reduce 5 0 1 1"], ["reduce 5 0 1 1"]) == {(0, 1, 20): 1}
    assert run(["gather 5 5 0 1 1"], ["gather 5 5 0 1 1"]) == {(1, 0, 20): 1}
    assert run(["gatherv 1 1 7 0 1 1"], ["gatherv 7 1 7 0 1 1"]) == {(1, 0, 28): 1}
    assert run(["scatter 5 5 0 1 1"], ["scatter 9 5 0 1 1"]) == {(0, 1, 20): 1}
    assert run(["scatterv 5 7 5 0 1 1"], ["scatterv 0 0 7 0 1 1"]) == {(0, 1, 28): 1}
    assert run(["alltoall 5 5 1 1"], ["alltoall 5 5 1 1"]) == {(0, 1, 20): 1, (1, 0, 20): 1}
    assert run(["alltoallv 9 4 5 9 4 6 1 1"], ["alltoallv 9 6 3 9 5 3 1 1"]) == {(0, 1, 20): 1, (1, 0, 24): 1}
    assert run(["allgather 5 5 1 1"], ["allgather 5 5 1 1"]) == {(0, 1, 20): 1, (1, 0, 20): 1}
    assert run(["allgatherv 5 5 6 1 1"], ["allgatherv 6 5 6 1 1"]) == {(0, 1, 20): 1, (1, 0, 24): 1}
    assert run(["reducescatter 5 6 0 1"], ["reducescatter 5 6 0 1"]) == {(0, 1, 24): 1, (1, 0, 20): 1}
    assert run(["allreduce 5 0 1"], ["allreduce 5 0 1"]) == {(0, 1, 20): 1, (1, 0, 20): 1}
    assert run(["scan 5 0 1"], ["scan 5 0 1"]) == {(0, 1, 20): 1, (1, 0, 20): 1}
    assert run(["exscan 5 0 1"], ["exscan 5 0 1"]) == {(0, 1, 20): 1, (1, 0, 20): 1}
    assert run(["barrier"], ["barrier"]) == {(0, 1, 0): 1, (1, 0, 0): 1}


def test_ring_allreduce_cuts_the_vector_in_whole_elements(tmp_path):
    prog = program(tmp_path, *[["allreduce 7 0 0"]] * 3, collectives=CollectivesConfig(allreduce="ring"))
    # 7 doubles in pieces of 3, 2, 2; every piece makes p − 1 hops twice
    assert Counter(prog.size_bytes.tolist()) == {24: 4, 16: 8}


def test_alltoallv_with_bruck_is_pairwise(tmp_path):
    lines = [[f"alltoallv 3 {' '.join(str(4 + (s == d)) for d in range(3))} 3 4 4 4 6 6"] for s in range(3)]
    prog = program(tmp_path, *lines, collectives=CollectivesConfig(alltoall="bruck"))
    assert messages(prog) == {(s, d, 4): 1 for s in range(3) for d in range(3) if s != d}


def test_a_barrier_separates(tmp_path):
    prog = program(tmp_path, ["send 1 0 1000", "barrier", "send 1 1 100"], ["recv 0 0 1000", "barrier", "send 0 0 100"])
    order = packets(prog)
    assert order[:10] == [(0, 1)] * 10
    assert sorted(order[10:12]) == [(0, 1), (1, 0)]  # the barrier's own messages


@pytest.mark.parametrize("seed", range(8))
def test_order_against_the_oracle(tmp_path, seed):
    rng = np.random.default_rng(seed)
    ranks = int(rng.integers(2, 7))
    programs = [[] for _ in range(ranks)]
    for _ in range(60):
        kind = rng.integers(0, 6)
        a, b = (int(x) for x in rng.integers(0, ranks, 2))
        size, tag = int(rng.integers(0, 500)), int(rng.integers(0, 3))
        if kind < 2:
            programs[a].append(f"isend {b} {tag} {size}")
            programs[b].append(f"irecv {a} {tag} {size}")
            if rng.integers(0, 2):
                programs[b].append(f"wait {a} {b} {tag}")
        elif kind < 4:
            programs[a].append(f"send {b} {tag} {size}")
            programs[b].append(f"recv {a} {tag} {size}")
        else:
            line = ["barrier", f"bcast {size} {a}", f"allreduce {size} 0", f"alltoall {size} {size}"][
                rng.integers(0, 4)
            ]
            for lines in programs:
                lines.append(line)
    prog = program(tmp_path, *programs)
    host = rng.integers(0, ranks, ranks)
    assert packets(prog, host=host) == oracle(prog, host, 100)
    assert packets(prog) == oracle(prog, np.arange(ranks), 100)


def test_shipped_is_has_the_messages_of_its_algorithms():
    prog = compile_program(read_trace("shipped:is.A.64"), PLAIN)
    # 11 alltoall and alltoallv of 63·64, 11 allreduce of 6 rounds, bcast and 2 reduce of 63, 63 sends
    assert prog.messages == 22 * 63 * 64 + 11 * 6 * 64 + 3 * 63 + 63

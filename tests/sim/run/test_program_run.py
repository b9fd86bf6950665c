"""Programs in the network: zero-load times by the formula, what is measured, conservation."""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hopforge.model.config import parse_config
from hopforge.model.network.core.state import NetworkError
from hopforge.sim.programs.application import run_app
from hopforge.sim.programs.program_routers import ApplicationError
from hopforge.sim.run.packet_trace import list_packets
from hopforge.sim.run.program_run import program_rows, rank_table, run_program, write_program
from hopforge.sim.run.simulation import Simulation

sys.path.insert(0, str(Path(__file__).parent))
from program_cases import FLIT_BYTES, SWITCH, base, finish, traced, write


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

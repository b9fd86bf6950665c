"""Programs on packet routers: kernel equal to golden hosts message by message, closed-form times, what is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge.model.config import Config, parse_config
from hopforge.model.config.uses import unused_sections
from hopforge.model.errors import UserError
from hopforge.model.network.parts.program_arrays import ProgramError
from hopforge.model.routing.grids.intermediate import Place
from hopforge.model.workload import operations as op
from hopforge.sim.packet.golden_programs import GoldenCreditPrograms, GoldenPrograms, Hosts, Message, Rank
from hopforge.sim.packet.program_network import ProgramNetwork
from hopforge.sim.packet.program_run import packet_program_rows, run_packet_program, write_packet_program
from hopforge.sim.programs.app_setup import prepare_app
from hopforge.sim.programs.application import run_app
from hopforge.sim.programs.program_routers import ApplicationError
from hopforge.sim.run.prepared import prepare_net, prepare_network_sweep, prepare_series

#: a packet of 512 B in 2 cycles of 100 ns on a link, in 1 on the link of a host; latencies of 2 and 1
_COARSE = "link_gbps: 20.48, link_ns: 200, host_gbps: 40.96, host_ns: 100"


def write(folder: Path, ranks: list[list[str]]) -> Path:
    path = folder / "program"
    path.mkdir(exist_ok=True)
    for rank, lines in enumerate(ranks):
        (path / f"rank-{rank}.txt").write_text("".join(f"{rank} {line}\n" for line in ["init", *lines]))
    return path


def config(
    workload: str, radices: tuple[int, ...], algorithm: str = "abr", packet: str = _COARSE, traffic: str = "",
    kind: str = "torus", more: str = "",
) -> Config:  # fmt: skip
    return parse_config(
        f"name: test\ntopology: {{kind: {kind}, radices: {list(radices)}}}\nrouter: {{model: packet}}\n"
        f"routing: {{algorithm: {algorithm}}}\ntraffic: {{source: program{traffic}}}\npacket: {{{packet}}}\n"
        f"workload: {{{workload}}}\n{more}"
    )


def places(network: ProgramNetwork) -> list[Place]:
    radices = network.grid.radices
    return [tuple(x[::-1]) for x in np.ndindex(radices[::-1])]


def hosts_of(network: ProgramNetwork) -> tuple[Hosts, list[Message]]:
    nodes, traffic, program = places(network), network.config.traffic, network.placed.program
    has_receive = set(program.operand[program.kind == op.POST].tolist())
    messages = []
    for m, size in enumerate(program.size_bytes.tolist()):
        how = "at_once"
        if m in has_receive:
            if traffic.rendezvous_bytes is not None and size > traffic.rendezvous_bytes:
                how = "asks"
            elif traffic.matched_bytes is not None and size >= traffic.matched_bytes:
                how = "matched"
        ends = (nodes[int(network.placed.host[rank[m]])] for rank in (program.source, program.destination))
        packets = max(1, -(-size // network.config.packet.packet_bytes))
        messages.append(Message(*ends, packets, how, size < traffic.eager_bytes))
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


def golden_of(network: ProgramNetwork) -> tuple[GoldenPrograms | GoldenCreditPrograms, list[Message]]:
    hosts, messages = hosts_of(network)
    made = GoldenCreditPrograms if network.settings.queues == "receiving" else GoldenPrograms
    return made(network.grid, network.settings, places(network), hosts), messages


def assert_equal_to_golden(checked: Config) -> ProgramNetwork:
    """Run both to the end; every message, rank and count is the same."""
    network = ProgramNetwork(checked, 1)
    assert network.advance(10**7)
    network.check_conservation()
    golden, messages = golden_of(network)
    golden.run(network.cycle)
    assert golden.hosts.ended
    assert [(one.started, one.arrived) for one in messages] == network.messages[["started", "arrived"]].tolist()
    assert [(one.finished, one.waited) for one in golden.hosts.ranks] == network.ranks[["finished", "waited"]].tolist()
    counters, packets = network.counters, golden.packets
    assert len(packets) == counters["delivered"] == counters["injected"]
    assert sum(packet.hops for packet in packets) == counters["hops_sum"]
    assert golden.refused == counters["refused"]
    kinds = [packet.via is not None and packet.via.outflanks for packet in packets if packet.via is not None]
    assert (sum(kinds), len(kinds) - sum(kinds)) == (counters["detours_outflank"], counters["detours_wraparound"])
    lives = [packet.delivered - golden.tasks[packet].queued for packet in packets]
    assert (sum(lives), max(lives, default=0)) == (counters["lifetime_sum"], counters["lifetime_max"])
    assert int(network.histogram.sum()) == len(packets)
    return network


@pytest.mark.parametrize("algorithm, radices, packet, traffic", [
    ("abr", (5,), "queue_packets: 2", ""),
    ("ofr", (4, 3), "queue_packets: 2", ", injection: packets"),
    ("ofr", (4, 3), "queue_packets: 2, queues: receiving", ", rendezvous_bytes: 600, eager_bytes: 700"),
    ("por", (4, 4), "queue_packets: 2, feed_waits: true, ties: both", ", matched_bytes: 100, rendezvous_bytes: 2000"),
    pytest.param("por", (2, 5), "queue_packets: 3, queues: receiving, inject_slots: 2",
                 ", injection: packets, matched_bytes: 0", marks=pytest.mark.study),
    ("ofr", (4, 3), "queue_packets: 2, switching: vct, feed_waits: true", ", rendezvous_bytes: 600, eager_bytes: 700"),
    ("ofr", (4, 3), "queue_packets: 2, queues: receiving, switching: vct", ", injection: packets"),
])  # fmt: skip
def test_every_message_as_with_the_golden_hosts(
    tmp_path: Path, algorithm: str, radices: tuple[int, ...], packet: str, traffic: str
) -> None:
    calls = ["alltoall 900 900", "compute 7", "allreduce 5000 0", "bcast 77 2", "barrier", "allgather 1200 1200"]
    path = write(tmp_path, [calls] * int(np.prod(radices)))
    network = assert_equal_to_golden(
        config(f"kind: trace, file: {path}", radices, algorithm, f"{_COARSE}, {packet}",
               f"{traffic}, cycles_per_flop: 3")
    )  # fmt: skip
    assert int(network.counters["messages_arrived"]) == network.placed.program.messages
    if algorithm != "abr":
        assert network.counters["detours_outflank"] + network.counters["detours_wraparound"] > 0


@st.composite
def programs(draw: st.DrawFn, ranks: int) -> list[list[str]]:
    """Programs that come to an end, whatever starts a message: every pair of calls is appended to both ranks."""
    lines: list[list[str]] = [[] for _ in range(ranks)]
    for _ in range(draw(st.integers(1, 30))):
        source = draw(st.integers(0, ranks - 1))
        target = (source + draw(st.integers(1, ranks - 1))) % ranks
        size, tag = draw(st.sampled_from([0, 512, 513, 5000, 9000])), draw(st.integers(0, 1))
        kind = draw(st.sampled_from(["blocking", "free", "late", "compute"]))
        if kind == "compute":
            lines[source].append(f"compute {draw(st.integers(0, 60))}")
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


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    ranks=programs(8),
    queues=st.sampled_from(["sending", "receiving", "sending, feed_waits: true"]),
    start=st.sampled_from(["", ", rendezvous_bytes: 512", ", matched_bytes: 513, injection: packets"]),
    mapping=st.sampled_from(["linear", "random"]),
)
def test_random_programs_as_with_the_golden_hosts(
    tmp_path_factory: pytest.TempPathFactory, ranks: list[list[str]], queues: str, start: str, mapping: str
) -> None:
    path = write(tmp_path_factory.mktemp("random"), ranks)
    workload = f"kind: trace, file: {path}, mapping: {{kind: {mapping}}}"
    packet = f"{_COARSE}, queue_packets: 2, queues: {queues}"
    assert_equal_to_golden(config(workload, (4, 2), "ofr", packet, f", cycles_per_flop: 1{start}"))


# ---- known times ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("queues", ["sending", "receiving"])
@pytest.mark.parametrize("size, packets, hops", [(0, 1, 1), (512, 1, 3), (513, 2, 1), (20_000, 40, 1), (5000, 10, 3)])
def test_ping_pong_takes_the_closed_form(tmp_path: Path, queues: str, size: int, packets: int, hops: int) -> None:
    there, back = [f"send {hops} 0 {size}", f"recv {hops} 0 -1"], ["recv 0 0 -1", f"send 0 0 {size}"]
    ranks: list[list[str]] = [there * 3, [], [], []]
    ranks[hops] = back * 3
    checked = config(f"kind: trace, file: {write(tmp_path, ranks)}", (4,), packet=f"queues: {queues}", kind="mesh")
    network = ProgramNetwork(checked, 1)
    found = run_packet_program(network)
    # 64 + 80 ns to the router; 204.8 ns a packet and 200 ns a link, the packets one behind the other; 64 + 80 ns more
    once = 144 + packets * 204.8 + 200 + (hops - 1) * 404.8 + 144
    assert found.makespan_ns == pytest.approx(6 * once)
    assert (found.message_latency_ns, found.message_latency_max_ns) == pytest.approx((once, once))
    assert (found.packets, found.hops, found.messages) == (6 * packets, hops + 1, 6)
    assert found.link_load_max == pytest.approx(3 * packets * 204.8 / found.makespan_ns)
    assert network.ranks["finished"].tolist()[1:hops] == [0] * (hops - 1)


def test_a_link_of_a_host_that_is_slower_than_the_others_sets_the_pace(tmp_path: Path) -> None:
    path = write(tmp_path, [["send 1 0 2048"], ["recv 0 0 2048"]])
    found = run_packet_program(ProgramNetwork(config(f"kind: trace, file: {path}", (2,), packet="host_gbps: 8"), 1))
    assert found.makespan_ns == pytest.approx(4 * 512 + 80 + 404.8 + 512 + 80)


def test_requests_and_answers_are_packets(tmp_path: Path) -> None:
    """With rendezvous a message of 3 packets takes a request, an answer and its data; computing delays the answer."""
    one, data = 144 + 404.8 + 144, 144 + 3 * 204.8 + 200 + 144
    for late, expected in (("", 2 * one + data), ("compute 10000", 10000 * 1.6 + one + data)):
        path = write(tmp_path, [["send 1 0 1500"], [*late.splitlines(), "recv 0 0 1500"]])
        more = ", rendezvous_bytes: 1000, cycles_per_flop: 1"
        checked = config(f"kind: trace, file: {path}", (2,), packet="", traffic=more)
        found = run_packet_program(ProgramNetwork(checked, 1))
        assert found.makespan_ns == pytest.approx(expected)
        assert found.packets == 5


def test_messages_within_a_host_take_no_time(tmp_path: Path) -> None:
    path = write(tmp_path, [["send 1 0 99", "compute 50"], ["recv 0 0 99", "send 0 1 5"], ["sleep 1"]])
    (tmp_path / "hosts.txt").write_text("0\n0\n1\n")
    workload = f"kind: trace, file: {path}, mapping: {{kind: file, file: {tmp_path / 'hosts.txt'}}}"
    network = ProgramNetwork(config(workload, (2,), traffic=", cycles_per_flop: 2, cycles_per_second: 70"), 1)
    found = run_packet_program(network)
    assert network.ranks["finished"].tolist() == [100, 0, 70]
    assert (found.local_messages, found.packets) == (2, 0)
    assert np.isnan(found.lifetime_ns)
    assert "lifetime" not in dict(packet_program_rows(found))


# ---- results and mistakes -------------------------------------------------------------------------------------------


def test_net_and_app_run_the_same_program(tmp_path: Path) -> None:
    workload = "kind: collective, operation: alltoall, bytes: 1000, repeat: 2"
    network = ProgramNetwork(config(workload, (4, 2), "ofr", traffic=", eager_bytes: 2000, matched_bytes: 2000"), 1)
    found = run_packet_program(network)
    write_packet_program(network, found, tmp_path / "out")
    table = pd.read_csv(tmp_path / "out" / "program.csv")
    assert table["makespan_ns"].tolist() == [found.makespan_ns]
    ranks = pd.read_parquet(tmp_path / "out" / "ranks.parquet")
    assert ranks["sent_bytes"].tolist() == [2 * 7 * 1000] * 8
    assert ranks["finish_cycle"].max() * found.cycle_ns == pytest.approx(found.makespan_ns)
    app = "app: {engine: packet, buffered_bytes: 2000, eager_bytes: 2000, injection: queued}\n"
    run = run_app(config(workload, (4, 2), "ofr", more=app))
    assert run.found.makespan_s == pytest.approx(found.makespan_ns * 1e-9)
    assert run.found.energy_j > 0
    with pytest.raises(ApplicationError, match=r"^app.lookup: must be hit with router.model=packet, not miss"):
        run_app(config(workload, (4, 2), "ofr", more="app: {engine: packet, lookup: miss}\n"))


@pytest.mark.parametrize("queues", ["sending", "receiving"])
def test_schedules_as_linear_programs_with_the_golden_hosts(tmp_path: Path, queues: str) -> None:
    """A linear rank thinks for a cycle before it sends: schedules hand messages over in the cycle after."""
    ranks, blocks = 8, []
    calls = []
    for r in range(ranks):
        to, back = [(r + step) % ranks for step in (1, 3, 2)], [(r - step) % ranks for step in (1, 3, 2)]
        calls.append([
            "compute 1", f"isend {to[0]} 0 700", f"isend {to[1]} 1 1300", f"recv {back[0]} 0 700", "compute 1",
            f"isend {to[2]} 2 5000", f"recv {back[1]} 1 1300", f"recv {back[2]} 2 5000",
        ])  # fmt: skip
        blocks.append(
            f"rank {r} {{\na: send 700b to {to[0]} tag 0\nb: send 1300b to {to[1]} tag 1\n"
            f"c: recv 700b from {back[0]} tag 0\nd: send 5000b to {to[2]} tag 2\nd requires c\n"
            f"e: recv 1300b from {back[1]} tag 1\nf: recv 5000b from {back[2]} tag 2\n}}\n"
        )
    packet = f"{_COARSE}, queues: {queues}"
    linear = ProgramNetwork(
        config(f"kind: trace, file: {write(tmp_path, calls)}", (4, 2), packet=packet, traffic=", cycles_per_flop: 1"), 1
    )
    golden, messages = golden_of(linear)
    golden.run(5000)
    assert golden.hosts.ended
    (tmp_path / "a.goal").write_text(f"num_ranks {ranks}\n{''.join(blocks)}")
    app = "app: {engine: packet, injection: queued, loggops: {o: 0, g: 0, O: 0, S: 1000000000}}\n"
    setup = prepare_app(config(f"kind: trace, file: {tmp_path}/a.goal", (4, 2), packet=packet, more=app))
    found = run_app(setup.config, setup=setup)
    assert found.found.messages == len(messages) == 3 * ranks
    size, placed, network = linear.placed.program.size_bytes, linear.placed, setup.packets
    plain = {
        (int(a), int(b), int(bytes_)): (one.started, one.arrived)
        for a, b, bytes_, one in zip(placed.source_host, placed.destination_host, size, messages, strict=True)
    }
    program = network.placed
    ours = {
        (int(a), int(b), int(bytes_)): times
        for a, b, bytes_, times in zip(
            program.source_host, program.destination_host, program.program.size_bytes,
            network.messages[["started", "arrived"]].tolist(), strict=True,
        )
    }  # fmt: skip
    assert ours == plain and len(plain) == 3 * ranks
    latest = [max(times[1] for ends, times in plain.items() if ends[1] == r) for r in range(ranks)]
    assert (found.ranks["finish_s"] * 1e7).tolist() == pytest.approx(latest)


def test_what_cannot_run_is_refused_by_name(tmp_path: Path) -> None:
    path = write(tmp_path, [["recv 1 0 5", "send 1 0 5"], ["recv 0 0 5", "send 0 0 5"]])
    checked = config(f"kind: trace, file: {path}", (2,))
    with pytest.raises(ProgramError, match=r"^workload: the program cannot end: in cycle 0 .* 2 of 2 ranks wait: "):
        ProgramNetwork(checked, 1).advance(10**6)
    with pytest.raises(UserError, match=r"^--load is for sources with a load, not for traffic.source: program"):
        prepare_net(checked, load=0.5)
    with pytest.raises(UserError, match=r"^traffic.source: with router.model packet a program runs once, from begin"):
        prepare_series(checked)
    with pytest.raises(UserError, match=r"traffic.source: a program has no load; hopforge net runs it once"):
        prepare_network_sweep(checked)
    endless = write(tmp_path, [["compute 3e12"] * 3, []])
    run = ProgramNetwork(config(f"kind: trace, file: {endless}", (2,), traffic=", cycles_per_flop: 1"), 1)
    with pytest.raises(ProgramError, match=r"^workload: the program takes more than the 4398046511104 cycles that are"):
        run_packet_program(run)


def test_keys_that_a_program_on_packet_routers_does_not_read_are_told() -> None:
    workload, packet = "kind: collective, operation: barrier, mtu_bytes: 99", "feed: 3, messages: 4, eta: 1"
    app = "app: {engine: packet}\n"
    checked = config(workload, (2, 2), "ofr", packet, ", flit_bytes: 8", more=app)
    assert unused_sections(checked, ["net"])[-4:] == [
        "packet.feed", "packet.messages", "workload.mtu_bytes", "traffic.flit_bytes",
    ]  # fmt: skip
    other = config(workload, (2, 2), "abr", "outflank_share: 0.5")
    assert "packet.outflank_share" in unused_sections(other, ["net"])
    for switching, told in (("saf", ["packet.head_bytes"]), ("vct", [])):
        headed = config(workload, (2, 2), "ofr", f"head_bytes: 8, switching: {switching}", more=app)
        for command in ("net", "app"):
            assert [key for key in unused_sections(headed, [command]) if "head" in key] == told
    assert unused_sections(checked, ["app"]) == ["packet.feed", "packet.messages", "workload.mtu_bytes"]
    assert unused_sections(checked, ["net", "hits"])[1:] == ["packet.feed", "packet.messages", "traffic.flit_bytes"]

"""Failures under programs on packet routers: kernel equal to golden hosts, lost messages told, known times."""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from tests.sim.packet.test_packet_failures import SOON, changes_of, failing
from tests.sim.packet.test_packet_programs import config, hosts_of, places, programs, write

from hopforge.model.config import Config
from hopforge.model.network.parts.program_arrays import ProgramError
from hopforge.model.topology.failed import FailureError
from hopforge.sim.packet import failures, golden_failures
from hopforge.sim.packet.golden_credit_failures import GoldenCreditProgramFailures
from hopforge.sim.packet.golden_program_failures import GoldenProgramFailures
from hopforge.sim.packet.program_network import ProgramNetwork
from hopforge.sim.packet.program_run import run_packet_program
from hopforge.sim.packet.runs import PacketProgramRun

#: as in test_packet_programs: a packet takes 2 cycles of 100 ns on a link, so a cycle of a failure is 2 cycles
_COARSE = "link_gbps: 20.48, link_ns: 200, host_gbps: 40.96, host_ns: 100"


def failing_config(workload: str, radices: tuple[int, ...], parts: str, algorithm: str, packet: str, traffic: str = "",
                   kind: str = "torus") -> Config:  # fmt: skip
    return config(workload, radices, algorithm, f"{_COARSE}, {packet}", f"{traffic}, cycles_per_flop: 1", kind,
                  f"simulation: {{failures: [{parts}]}}")  # fmt: skip


def assert_equal_to_golden(checked: Config) -> Counter[str]:
    """Run both to the end, or to where nothing can happen any more; returns what happened."""
    network, what, done = ProgramNetwork(checked, 1), Counter[str](), False
    hosts, messages = hosts_of(network)
    kind = GoldenCreditProgramFailures if network.settings.queues == "receiving" else GoldenProgramFailures
    golden = kind(network.grid, network.settings, places(network), hosts, changes_of(network))
    error = ""
    while not done and not error:
        try:
            done = network.advance(network.cycle + 97)
        except ProgramError as found:
            error = str(found)
        network.check_conservation()
        golden.run(network.cycle - (not done and not error))
    assert network.failures is not None
    records = network.failures.records
    lost = golden.lost_messages
    assert {messages.index(one) for one in lost} == network.failures.lost_messages
    assert sum(one.messages_lost for one in records) == len(lost)
    assert hosts.ended == done
    for one in golden.hosts.ranks:  # the kernel counts the waiting of a rank when it goes on
        what["ended"] += one.finished >= 0
    if error:
        waiting = sum(one.finished < 0 for one in hosts.ranks)
        assert f"the program cannot end: in cycle {network.cycle} nothing is under way and {waiting} of " in error
        assert f"; failures lost {len(lost)} message" in error
        what["stands"] = waiting
    assert [(one.started, one.arrived) for one in messages] == network.messages[["started", "arrived"]].tolist()
    ours = network.ranks[["finished", "waited"]].tolist()
    theirs = [(one.finished, one.waited if one.finished >= 0 else ours[k][1]) for k, one in enumerate(hosts.ranks)]
    assert ours == theirs
    assert all(one.arrived < 0 for one in lost)
    counters = network.counters
    table = network.failures.table()
    assert (len(golden.packets), golden.refused) == (counters["injected"], counters["refused"])
    arrived = [one for one in golden.packets if one.delivered >= 0]
    assert (len(arrived), sum(one.hops for one in arrived)) == (counters["delivered"], counters["hops_sum"])
    names = ["on_links", "in_switches", "unsent", "unroutable", "undrained"]
    expected = [[*(getattr(one, name) for name in names), one.in_force] for one in golden.losses]
    assert table[[*(f"packets_{name}" for name in names), "reprogrammed_cycle"]].to_numpy().tolist() == expected
    if error:  # indeed nothing comes any more
        golden.run(network.cycle + 300)
        assert sum(one.finished < 0 for one in hosts.ranks) == what["stands"]
        assert sum(one.delivered >= 0 for one in golden.packets) == counters["delivered"]
    # every packet that a router took has arrived or is told
    assert counters["injected"] == counters["delivered"] + table["packets_lost"].sum()
    what["lost"], what["failures"] = len(lost), len(records)
    what["again"] = sum(one.reprogrammed_cycle >= 0 for one in records)
    what["undrained"] = int(table["packets_undrained"].sum())
    return what


@pytest.mark.parametrize("algorithm, radices, parts, packet, traffic, lost", [
    ("abr", (5,), f"{{cycle: 9, links: [[0, 1]], {SOON}}}", "queue_packets: 2", "", True),
    ("ofr", (4, 3), f"{{cycle: 0, links: [[0, 1]], {SOON}, repair_cycles: 30}}", "queue_packets: 2",
     ", rendezvous_bytes: 600, eager_bytes: 700, injection: packets", False),
    ("por", (4, 4), f"{{cycle: 12, links: [[0, 1], [5, 9]], {SOON}, repair_cycles: 9}}",
     "queue_packets: 2, feed_waits: true, ties: both", ", matched_bytes: 100, rendezvous_bytes: 2000", True),
    pytest.param("ofr", (4, 3), f"{{cycle: 12, links: [[0, 1], [5, 9]], {SOON}, repair_cycles: 9}}",
                 "queue_packets: 2, queues: receiving", ", rendezvous_bytes: 600", True, marks=pytest.mark.study),
])  # fmt: skip
def test_every_message_as_with_the_golden_hosts(
    tmp_path: Path, algorithm: str, radices: tuple[int, ...], parts: str, packet: str, traffic: str, lost: bool
) -> None:
    calls = ["alltoall 900 900", "compute 7", "allreduce 5000 0", "bcast 77 2", "barrier"]
    path = write(tmp_path, [calls] * int(np.prod(radices)))
    what = assert_equal_to_golden(
        failing_config(f"kind: trace, file: {path}", radices, parts, algorithm, packet, traffic)
    )
    assert (what["lost"] > 0) == (what["stands"] > 0) == lost
    assert what["again"] > 0


def check_random(folder: Path, ranks: list[list[str]], parts: str, draw: st.DataObject) -> Counter[str]:
    hosts = draw.draw(st.permutations(range(12)))[: len(ranks)]
    (folder / "hosts.txt").write_text("\n".join(map(str, hosts)) + "\n")
    workload = f"kind: trace, file: {write(folder, ranks)}, mapping: {{kind: file, file: {folder / 'hosts.txt'}}}"
    start = draw.draw(st.sampled_from(["", ", rendezvous_bytes: 512", ", matched_bytes: 513, injection: packets"]))
    more = draw.draw(st.sampled_from(["", ", feed_waits: true", ", switching: vct", ", wraparound: directions"]))
    more += draw.draw(st.sampled_from(["", ", queues: receiving"]))
    algorithm, kind = draw.draw(
        st.sampled_from([("ofr", "torus"), ("por", "torus"), ("abr", "torus"), ("ofr", "mesh")])
    )
    try:
        return assert_equal_to_golden(
            failing_config(workload, (4, 3), parts, algorithm, f"queue_packets: 2{more}", start, kind)
        )
    except FailureError as error:  # no such link, a switch with a rank, or the network falls apart
        assert str(error).startswith("simulation.failures")
        reject()


@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.filter_too_much])
@given(ranks=programs(6), parts=failing((4, 3)), draw=st.data())
def test_random_programs_as_with_the_golden_hosts(
    tmp_path_factory: pytest.TempPathFactory, ranks: list[list[str]], parts: str, draw: st.DataObject
) -> None:
    check_random(tmp_path_factory.mktemp("random"), ranks, parts, draw)


@pytest.mark.study
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(ranks=programs(6), parts=failing((4, 3)), draw=st.data())
def test_many_random_programs_as_with_the_golden_hosts(
    tmp_path_factory: pytest.TempPathFactory, ranks: list[list[str]], parts: str, draw: st.DataObject
) -> None:
    check_random(tmp_path_factory.mktemp("random"), ranks, parts, draw)


def test_lost_messages_of_ways_that_block_for_ever_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (failures, golden_failures):
        monkeypatch.setattr(module, "DRAIN_PACKETS", 20)
    parts = ("cycle: 28, switches: [9]", "cycle: 34, ports: [[12, 2]]", "cycle: 38, switches: [2]")
    words = ", ".join(f"{{{one}, detection_cycles: 1, reprogram_cycles: 2}}" for one in parts)
    # every rank but those at 9 and 2 sends to all others at once; the network is full
    ranks = [k for k in range(16) if k not in (9, 2)]
    (tmp_path / "hosts.txt").write_text("".join(f"{host}\n" for host in ranks))
    calls = [
        [*(f"isend {(r + step) % 14} 0 5000" for step in range(1, 14)),
         *(f"irecv {(r - step) % 14} 0 5000" for step in range(1, 14)), "waitall"] for r in range(14)
    ]  # fmt: skip
    workload = f"kind: trace, file: {write(tmp_path, calls)}, mapping: {{kind: file, file: {tmp_path / 'hosts.txt'}}}"
    what = assert_equal_to_golden(failing_config(workload, (4, 4), words, "ofr", "queue_packets: 2"))
    assert what["undrained"] > 0
    assert (what["failures"], what["again"], what["lost"] > 0, what["stands"] > 0) == (3, 3, True, True)


# ---- known times, and what is told ----------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [0, 10])
def test_a_message_goes_around_a_failed_link(tmp_path: Path, known: int) -> None:
    """Of 5 in a ring, 0 sends to 2, whose link 0–1 has failed: 3 links; or it waits there and comes back, of no use."""
    path = write(tmp_path, [["send 2 0 5"], [], ["recv 0 0 5"], [], []])
    parts = f"{{cycle: 0, links: [[0, 1]], detection_cycles: {known}, reprogram_cycles: 0}}"
    checked = config(f"kind: trace, file: {path}", (5,), more=f"simulation: {{failures: [{parts}]}}")
    network = ProgramNetwork(checked, 1)
    found = run_packet_program(network)
    # hosts 100 + 100 ns at each end, 400 ns a link; known: the packet comes back when the way is known, 400 ns later
    wait = 0 if known == 0 else 10 * 200 - 200 + 400
    assert found.makespan_ns == 400 + wait + 3 * 400
    assert network.failures is not None
    assert (found.packets, network.failures.lost_messages, found.hops) == (1, set(), 3 + 1)


def test_a_lost_message_ends_the_run_with_its_ranks(tmp_path: Path) -> None:
    """A packet is on the link from 0 to 1 from 200 to 600 ns, and all others wait before it."""
    path = write(tmp_path, [["send 1 0 5000"], ["recv 0 0 5000"], ["compute 3000"], []])
    parts = f"{{cycle: 2, links: [[0, 1]], {SOON}}}"
    checked = config(f"kind: trace, file: {path}", (4,), more=f"simulation: {{failures: [{parts}]}}",
                     traffic=", cycles_per_flop: 1")  # fmt: skip
    network = ProgramNetwork(checked, 1)
    with pytest.raises(ProgramError) as caught:
        run_packet_program(network)
    text = str(caught.value)
    assert "1 of 4 ranks wait: rank 1 waits for a message from rank 0" in text
    assert text.endswith("; failures lost 1 message: rank 0 → rank 1 (5000 bytes)")
    assert network.ranks["finished"][2] == 3000
    assert network.ranks["finished"][0] > 0
    (record,) = network.failures.records  # type: ignore[union-attr]
    assert (record.packets_on_links, record.messages_lost) == (1, 1)
    assert record.losses()[-1] == "1 message lost"


def test_a_message_that_nobody_waits_for_is_lost_without_a_wrong_latency(tmp_path: Path) -> None:
    path = write(tmp_path, [["isend 1 0 5", "isend 3 0 5"], ["irecv 0 0 5"], [], ["recv 0 0 5"]])
    parts = f"{{cycle: 2, links: [[0, 1]], {SOON}}}"
    checked = config(f"kind: trace, file: {path}", (4,), more=f"simulation: {{failures: [{parts}]}}")
    network = ProgramNetwork(checked, 1)
    run = PacketProgramRun(network)
    run.run(lambda _done, _of: None)
    found = run.values()
    # the second packet leaves its host 100 ns after the first
    assert (found["message_latency_ns"], found["message_latency_max_ns"], found["packets"]) == (900, 900, 1)
    assert dict(run.rows())["0.4 µs"].startswith("link 0–1 fails; 1 packet lost (1 on links")
    run.write(tmp_path / "out")
    table = pd.read_csv(tmp_path / "out" / "failures.csv")
    assert table[["packets_lost", "messages_lost"]].to_numpy().tolist() == [[1, 1]]


def test_a_program_whose_only_message_is_lost_has_no_latency(tmp_path: Path) -> None:
    path = write(tmp_path, [["isend 1 0 5"], ["irecv 0 0 5"], [], []])
    parts = f"{{cycle: 2, links: [[0, 1]], {SOON}}}"
    checked = config(f"kind: trace, file: {path}", (4,), more=f"simulation: {{failures: [{parts}]}}")
    found = run_packet_program(ProgramNetwork(checked, 1)).row()
    assert found["packets"] == 0
    assert np.isnan([found[f"{what}_ns"] for what in ("message_latency", "message_latency_max", "lifetime_max")]).all()


@pytest.mark.parametrize("parts, end, links", [
    ("", 26, {(0, 1): 10}),
    # link 0–1 fails with a packet on it; it gives the other 9 back, and they go around
    (f"{{cycle: 2, links: [[0, 1]], {SOON}}}", None, {(0, 3): 9, (3, 2): 9, (2, 1): 9}),
])  # fmt: skip
def test_links_are_busy_for_a_share_of_the_time_though_no_rank_waits(
    tmp_path: Path, parts: str, end: int | None, links: dict[tuple[int, int], int]
) -> None:
    """The ranks end in cycle 0; 10 packets of 2 cycles follow."""
    path = write(tmp_path, [["isend 1 0 5000"], ["irecv 0 0 5000"], [], []])
    more = f"simulation: {{failures: [{parts}]}}" if parts else ""
    network = ProgramNetwork(config(f"kind: trace, file: {path}", (4,), more=more), 1)
    found = run_packet_program(network)
    assert found.makespan_ns == 0
    channels = network.topology.channels()
    sent = dict(zip(zip(channels.src_router, channels.dst_router, strict=True), network.channel_packets(), strict=True))
    assert {pair: sent[pair] for pair in links} == links
    # without failures: 100 + 100 ns from the host, 10 × 200 + 200 on the link, 100 + 100 ns to the other host
    end = end or network.cycle
    assert found.link_load_max == pytest.approx(2 * max(sent.values()) / end)
    assert found.link_load == pytest.approx(2 * sum(sent.values()) / len(sent) / end)
    assert 0 < found.link_load_max <= 1


def test_a_switch_with_a_rank_cannot_fail(tmp_path: Path) -> None:
    path = write(tmp_path, [["compute 9"]] * 3)
    parts = f"{{cycle: 2, switches: [2], {SOON}}}"
    checked = config(f"kind: trace, file: {path}", (5,), more=f"simulation: {{failures: [{parts}]}}")
    with pytest.raises(FailureError, match="switch 2 fails and takes host 2 of rank 2 along; hosts of ranks must work"):
        ProgramNetwork(checked, 1)


def test_programs_that_take_practically_for_ever_are_refused(tmp_path: Path) -> None:
    """More packets than `workload.max_flits`, or offers in vain: every 100 ns until a failure is known."""
    path = write(tmp_path, [["send 1 0 5121"], ["recv 0 0 5121"], [], []])
    for limit in (10, 11):
        checked = config(f"kind: trace, file: {path}, max_flits: {limit}", (4,))
        if limit == 11:
            assert ProgramNetwork(checked, 1).message_packets == 11
            continue
        with pytest.raises(ProgramError, match=r"^workload.max_flits: the messages have 11 packets, more than 10;"):
            ProgramNetwork(checked, 1)
    # 4 hosts, 2 offers each in a packet's time on a link: 10 + 5, 6 more until the second is known, 10 at its repair
    parts = "{cycle: 0, links: [[0, 1]], detection_cycles: 10, reprogram_cycles: 5}, "
    parts += "{cycle: 11, links: [[2, 3]], detection_cycles: 10, reprogram_cycles: 0, repair_cycles: 100}"
    for queues, limit, refused in (("sending", 247, True), ("sending", 248, False), ("receiving", 100, False)):
        workload = f"kind: trace, file: {path}, max_flits: {limit}"
        checked = failing_config(workload, (4, 3), parts, "abr", f"queues: {queues}")
        if refused:
            with pytest.raises(ProgramError, match=r"offer packets 248 times in vain .* than workload.max_flits=247;"):
                ProgramNetwork(checked, 1)
        else:
            ProgramNetwork(checked, 1)

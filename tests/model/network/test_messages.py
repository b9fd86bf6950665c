"""Messages of several packets: one destination, latency from creation to the last tail, nothing lost."""

from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.sim.run.packet_script import draw_packets
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.run.sweep import measurement_rows
from hopforge.sim.traffic import TrafficError

TORUS = "topology: {kind: torus, radices: [4, 3]}"


def config(*lines: str) -> Config:
    return parse_config("\n".join(("name: test", *lines)))


def events(run: Simulation) -> np.ndarray:
    return run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]


@pytest.mark.parametrize("packets, flits", [(2, 1), (5, 3), (96, 1)])
def test_zero_load_latency_of_a_message(packets: int, flits: int) -> None:
    # one host of two sends now and then; the formula of definitions/router.md for all flits of the message in a row
    checked = config(
        "topology: {kind: mesh, radices: [5]}",
        f"traffic: {{pattern: hotspot, share: 1.0, targets: [4], message_packets: {packets}, packet_flits: {flits}}}",
        "router: {buffer_flits: 16}",
    )
    run = Simulation(checked, 0.001 * packets * flits, 1)
    run.state["host"]["next_time"][1:] = 1 << 62
    run.advance(40000)
    histogram = run.state["message_histogram"]
    shortest = 3 * 5 + 4 + 3 + packets * flits - 1
    assert int(run.state["messages_measured"]) == histogram.sum() > 10
    assert histogram.nonzero()[0][0] == shortest
    # messages that are created while the last one is being sent wait: some, not most
    assert histogram[shortest] > 0.4 * histogram.sum()
    total = int((np.arange(len(histogram)) * histogram).sum())
    assert int(run.state["message_latency_sum"]) == total
    assert int(run.state["message_latency_max"]) == histogram.nonzero()[0][-1]


def test_packets_of_a_message_have_one_destination_and_all_arrive() -> None:
    packets = 4
    checked = config(
        TORUS, "traffic: {pattern: uniform, source: on_off, burst_load: 0.9, message_packets: 4, packet_range: [1, 3]}"
    )
    run = Simulation(checked, 0.3, 3, log_events=400_000)
    run.advance(4000)
    run.state["host"]["next_time"][:] = 1 << 62  # no new messages; those that were begun are finished
    run.advance(3000)
    assert run.state.flits_in_flight == 0
    log = events(run)
    targets: dict[tuple[int, int], set[int]] = {}
    counted: dict[tuple[int, int], int] = {}
    for target, name, flit in log[log[:, 1] == 3][:, [2, 4, 5]].tolist():
        if flit & 2:
            message = (name >> 40, (name & ((1 << 40) - 1)) // packets)
            targets.setdefault(message, set()).add(target)
            counted[message] = counted.get(message, 0) + 1
    assert len(targets) > 200
    assert all(len(found) == 1 for found in targets.values())
    complete = [message for message, count in counted.items() if count == packets]
    # the last message of a host may have been cut off by the end of the sources
    assert len(counted) - len(complete) <= 12
    assert int(run.state["messages_measured"]) == len(complete)
    assert len({next(iter(found)) for found in targets.values()}) == 12
    # slots: one for each message that was cut off
    assert len(run.state["message"]) - int(run.state["free_messages"]) == len(counted) - len(complete)


@pytest.mark.parametrize("source", ["bernoulli", "on_off"])
def test_the_load_counts_all_flits_of_the_messages(source: str) -> None:
    checked = config(
        TORUS, f"traffic: {{source: {source}, message_packets: 8, packet_flits: 2, burst_cycles: 50, burst_load: 0.8}}"
    )
    assert checked.traffic.mean_flits() == 16
    run = Simulation(checked, 0.1, 2)
    run.advance(200_000)
    # 12 hosts create 15 000 messages: a standard error of 0.8 %, of bursts about twice that
    offered = int(run.state["flits_created"]) / 200_000 / 12
    assert offered == pytest.approx(0.1, rel=0.03 if source == "bernoulli" else 0.06)


def test_patterns_in_turn_advance_with_the_message() -> None:
    checked = config(TORUS, "traffic: {pattern: all_to_all, message_packets: 3}")
    run = Simulation(checked, 0.2, 1, log_events=100_000)
    run.advance(1500)
    log = events(run)
    arrived = log[log[:, 1] == 3]
    seen = 0
    for target, name in arrived[:, [2, 4]].tolist():
        source, number = name >> 40, name & ((1 << 40) - 1)
        assert target == (source + 1 + number // 3 % 11) % 12
        seen += 1
    assert seen > 1000


def test_measures_of_messages() -> None:
    limits = "simulation: {max_cycles: 5000}"
    single, several = (
        Simulation(config(TORUS, f"traffic: {{message_packets: {count}}}", limits), 0.1, 1).run() for count in (1, 6)
    )
    assert single.message_latency == single.latency
    assert single.message_latency_max == single.latency_max
    assert "messages" not in dict(measurement_rows(single))
    # the last of six packets cannot leave before five others have
    assert several.message_latency > several.latency + 2
    assert several.message_latency_median <= several.message_latency_p95 <= several.message_latency_p99
    assert several.message_latency_p99 <= several.message_latency_max == several.latency_max
    assert "messages" in dict(measurement_rows(several))


def test_messages_that_lose_a_packet_are_not_measured(tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text(
        "import numpy as np\nfrom hopforge.model.routing import RoutingPlan, candidate, relation\n"
        "def half(router, in_port, in_vc, packet, net, table, memory, out):\n"
        "    out[0] = candidate(0 if packet.dst == router else 1 if packet.dst > router else 2, 15)\n"
        "    return 0 if packet.src == 0 and packet.number % 5 == 0 else 1\n"
        "def prepare(topology, vcs, options):\n    return RoutingPlan(relation(half), np.zeros(1, np.int32))\n"
    )
    checked = parse_config(
        "name: test\ntopology: {kind: mesh, radices: [2]}\nrouting: {algorithm: file, file: half.py, check: false}\n"
        "traffic: {message_packets: 5}",
        folder=tmp_path,
    )
    run = Simulation(checked, 0.2, 1)
    run.advance(5000)
    run.state["host"]["next_time"][:] = 1 << 62
    run.advance(200)
    host = run.state["host"]
    # every message of host 0 loses its first packet, host 1 none
    assert int(run.state["packets_dropped"]) == -(-int(host["created"][0]) // 5) > 100
    assert int(run.state["messages_measured"]) == int(host["created"][1]) // 5
    cut_off = int((host["created"] % 5 != 0).sum())
    assert len(run.state["message"]) - int(run.state["free_messages"]) == cut_off


def test_packets_drawn_ahead_are_those_of_the_run() -> None:
    checked = config(TORUS, "traffic: {message_packets: 3, packet_range: [1, 2]}")
    host, time, destination, length = draw_packets(Simulation(checked, 0.4, 5), 3000)
    run, listed = Simulation(checked, 0.4, 5), Simulation(checked, 0.4, 5, script=(host, time, destination, length))
    assert len(host) > 5000  # more messages than a network holds at a time
    assert (destination.reshape(-1, 3) == destination[::3, None]).all()
    for one in (run, listed):
        one.advance(2500)
    assert np.array_equal(run.state["histogram"], listed.state["histogram"])
    program = config(TORUS, "workload: {kind: collective, operation: scan}", "traffic: {source: program}")
    with pytest.raises(TrafficError, match=r"^traffic.source must be bernoulli or on_off, not program: "):
        draw_packets(Simulation(program, 0.1, 1), 10)

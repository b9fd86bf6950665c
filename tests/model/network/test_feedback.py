"""Feedback of learning routing algorithms: when it arrives and what it says, against the log of all switch grants."""

from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.sim.run.simulation import Simulation

ROOT = Path(__file__).parents[3]
COLUMNS = 6

#: dimension order on a mesh of width 4 that writes down every note which arrives
RECORDER = """
import numpy as np
from hopforge.model.network.core.candidates import candidate
from hopforge.model.routing import Feedback, RoutingPlan, learner, relation, reporter

def route(router, in_port, in_vc, packet, net, table, memory, out):
    dx, dy = packet.dst % 4 - router % 4, packet.dst // 4 - router // 4
    port = 1 if dx > 0 else 2 if dx < 0 else 3 if dy > 0 else 4 if dy < 0 else 0
    out[0] = candidate(port, table[0])
    return 1

def report(router, in_port, packet, elapsed, net, table, memory, note):
    note.key = (packet.src << 40) | packet.number
    note.value = elapsed + 1000.0 * router + 100000.0 * in_port
    return 0 if packet.number % table[1] == 0 else 1

def learn(router, out_port, out_vc, note, net, table, memory):
    row = 1 + 6 * int(memory[0])
    memory[row] = net.cycle
    memory[row + 1] = router
    memory[row + 2] = out_port
    memory[row + 3] = out_vc
    memory[row + 4] = note.key
    memory[row + 5] = note.value
    memory[0] += 1
    return 0

def prepare(topology, vcs, options):
    table = np.array([(1 << vcs) - 1, SILENT], np.int32)
    feedback = Feedback(reporter(report), learner(learn))
    return RoutingPlan(relation(route), table, memory=np.zeros(1 + 6 * 100000), feedback=feedback)
"""


def recorder(folder: Path, silent: int, router: str, traffic: str) -> Config:
    (folder / "recorder.py").write_text(RECORDER.replace("SILENT", str(silent)))
    return parse_config(
        "name: test\ntopology: {kind: mesh, radices: [4, 3]}\nrouting: {algorithm: file, file: recorder.py}\n"
        f"router: {{{router}}}\ntraffic: {{{traffic}}}",
        folder=folder,
    )


@pytest.mark.parametrize("router, host_latency, link, delay", [
    ("vcs: 2, buffer_flits: 3", 1, 1, 0),
    ("vcs: 3, buffer_flits: 5, link_latency_cycles: 4, credit_delay_cycles: 2, rc_cycles: 1, speculation: true",
     1, 4, 2),
    ("vcs: 1, buffer_flits: 4, host_latency_cycles: 5, switching: vct", 5, 1, 0),
])  # fmt: skip
def test_every_hop_is_reported_in_time(tmp_path: Path, router: str, host_latency: int, link: int, delay: int) -> None:
    checked = recorder(tmp_path, 3, router, "packet_range: [1, 3]")
    run = Simulation(checked, 0.3, 1, log_events=200_000)
    run.advance(1500)
    cycle, ports = int(run.state["cycle"]), run.topology.max_ports
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    sent = {int(row[4]): int(row[0]) for row in log if row[1] == 2 and row[5] & 1}
    hops: dict[int, list[tuple[int, int, int]]] = {}
    for when, kind, n, m, packet, flit in log.tolist():
        if kind == 0 and flit & 1:
            hops.setdefault(packet, []).append((when, n, m))
    expected = []
    for packet, grants in hops.items():
        # arrival of the head at each router: the first cycle in which it can be routed there
        arrival = [sent[packet] + 1 + host_latency, *(when + 2 + link for when, _, _ in grants)]
        for k, (when, n, _) in enumerate(grants):
            comes = when + 1 + link + delay
            if k == 0 or (packet & ((1 << 40) - 1)) % 3 == 0 or comes >= cycle:
                continue
            upstream, vcs = grants[k - 1][2], checked.router.vcs
            here, in_port = n // (ports * vcs), n // vcs % ports
            value = arrival[k] - arrival[k - 1] + 1000 * here + 100000 * in_port
            expected.append((comes, upstream // (ports * vcs), upstream // vcs % ports, upstream % vcs, packet, value))
    count = int(run.state["memory"][0])
    found = run.state["memory"][1 : 1 + COLUMNS * count].reshape(-1, COLUMNS).astype(np.int64)
    assert count == len(expected) == int(run.state["notes"]) > 500
    assert sorted(map(tuple, found.tolist())) == sorted(expected)


def test_feedback_changes_nothing_but_what_it_learns(tmp_path: Path) -> None:
    # the recorder routes in dimension order: the same run as `dor`, which has no feedback
    with_feedback = Simulation(recorder(tmp_path, 1, "vcs: 2", "packet_flits: 2"), 0.4, 1)
    without = Simulation(
        parse_config(
            "name: test\ntopology: {kind: mesh, radices: [4, 3]}\nrouter: {vcs: 2}\ntraffic: {packet_flits: 2}"
        ),
        0.4,
        1,
    )
    for run in (with_feedback, without):
        run.advance(3000)
    assert np.array_equal(with_feedback.state["histogram"], without.state["histogram"])
    assert int(with_feedback.state["notes"]) == 0  # every report says no
    assert "note_event" not in without.state.arrays
    assert int(without.state["feedback"]) == 0


def test_the_pool_of_packets_grows_with_feedback_and_messages() -> None:
    checked = parse_config(
        "name: test\ntopology: {kind: mesh, radices: [8, 8]}\nrouter: {buffer_flits: 32}\n"
        "routing: {algorithm: file, file: learned_west_first.py}\ntraffic: {message_packets: 3}",
        folder=ROOT / "configs",
    )
    run = Simulation(checked, 0.9, 1)
    before = len(run.state["packet"])
    run.advance(1500)
    run.check_conservation()
    assert len(run.state["packet"]) > before
    assert len(run.state["packet_times"]) == 2 * len(run.state["packet"])
    assert len(run.state["packet_message"]) == len(run.state["packet"])


def test_the_example_learns_the_zero_load_times() -> None:
    checked = parse_config(
        "name: test\ntopology: {kind: mesh, radices: [4, 4]}\nrouter: {link_latency_cycles: 2}\n"
        "routing: {algorithm: file, file: learned_west_first.py}",
        folder=ROOT / "configs",
    )
    # one packet at a time between all pairs, often: nothing ever waits, a hop takes 3 + L cycles
    pairs = [(source, target) for source in range(16) for target in range(16)] * 150
    count = len(pairs)
    script = (
        np.array([source for source, _ in pairs]),
        100 * np.arange(count),
        np.array([target for _, target in pairs]),
        np.ones(count, np.int64),
    )
    run = Simulation(checked, 0.1, 1, script=script)
    run.advance(100 * count + 200)
    estimate = run.state["memory"].reshape(16, 16, 5)
    assert int(run.state["packets_ejected"]) == count
    tried = 0
    for router in range(16):
        for target in range(16):
            dx, dy = target % 4 - router % 4, target // 4 - router // 4
            ways = {1: dx > 0, 2: dx < 0, 3: dy > 0 and dx >= 0, 4: dy < 0 and dx >= 0}
            for port, minimal in ways.items():
                if minimal and estimate[router, target, port] > 0:
                    assert estimate[router, target, port] == pytest.approx(5 * (abs(dx) + abs(dy)), rel=1e-3)
                    tried += 1
                elif not minimal:
                    assert estimate[router, target, port] == 0
    assert tried > 250

"""Schedules on the router simulator: against programs without a graph, by hand, and what cannot end."""

from pathlib import Path

import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.network.parts.program_arrays import ProgramError
from hopforge.model.topology import build
from hopforge.model.workload.goal_files import write_goal
from hopforge.model.workload.schedule import GoalError
from hopforge.sim.programs import schedule_packet
from hopforge.sim.programs.app_setup import prepare_app
from hopforge.sim.programs.application import run_app
from hopforge.sim.traffic.scheduled import workload_schedule

CYCLE = 5.0  # ns: 64 bytes at 102.4 Gbit/s
BASE = "name: x\ntopology: {kind: torus, radices: [4, 4]}\nrouter: {vcs: 4}\ntiming: {link_gbps: 102.4}\n"
EARLY = "buffered_bytes: 1000000000, eager_bytes: 1000000000"


def of_file(file: Path, loggops: str, mapping: str = "") -> Config:
    return parse_config(
        f"{BASE}workload: {{kind: trace, file: {file}{mapping}}}\n"
        f"app: {{engine: packet, loggops: {{g: 0, O: 0, {loggops}}}}}\n"
    )


def config_of(folder: Path, ranks: list[str], loggops: str, mapping: str = "") -> Config:
    blocks = "".join(f"rank {n} {{\n{lines}\n}}\n" for n, lines in enumerate(ranks))
    (folder / "a.goal").write_text(f"num_ranks {len(ranks)}\n{blocks}")
    return of_file(folder / "a.goal", loggops, mapping)


def cycles(config: Config) -> list[float]:
    return [pytest.approx(seconds * 1e9 / CYCLE, abs=1e-6) for seconds in run_app(config).ranks["finish_s"]]


def test_a_chain_of_messages_takes_a_cycle_more_for_each(tmp_path: Path) -> None:
    workload = "{kind: collective, operation: alltoall, bytes: 3000, ranks: 16}"
    linear = parse_config(f"{BASE}workload: {workload}\napp: {{engine: packet, {EARLY}}}\n")
    network = build(linear.topology, linear.address)
    write_goal(workload_schedule(linear.workload, network, 1, None), tmp_path / "a.goal")
    expected, found = run_app(linear), run_app(of_file(tmp_path / "a.goal", "o: 0, S: 1000000000"))
    assert found.found.messages == expected.found.messages == 240
    assert found.found.message_latency_s == pytest.approx(expected.found.message_latency_s, rel=1e-12)
    rounds = 15
    more = (found.ranks["finish_s"] - expected.ranks["finish_s"]) * 1e9 / CYCLE
    assert more.tolist() == pytest.approx([rounds] * 16)
    assert found.found.energy_j == pytest.approx(expected.found.energy_j, rel=0.05)  # which counts the time


def test_rules_of_the_ranks(tmp_path: Path) -> None:
    ping = ["send 640b to 1", "recv 640b from 0"]
    run = run_app(config_of(tmp_path, ping, "o: 7"))
    latency = run.found.message_latency_s * 1e9 / CYCLE
    assert latency == pytest.approx(round(latency))
    there = 2 + round(latency)  # handed over in the first cycle behind 1.4
    assert cycles(config_of(tmp_path, ping, "o: 7")) == [1.4, there + 1.4]
    late = ["send 640b to 1", "a: calc 50000\nb: recv 640b from 0\nb requires a"]
    assert cycles(config_of(tmp_path, late, "o: 7, S: 639")) == [10001.4, 10001.4]
    assert cycles(config_of(tmp_path, late, "o: 7, S: 640, unit_ns: 0.5")) == [0.7, 5000.7]
    # nothing is under way for long before a message
    early = ["a: calc 50000\nb: send 640b to 1\nb requires a", "recv 640b from 0"]
    assert cycles(config_of(tmp_path, early, "o: 7")) == [10001.4, 10000 + there + 1.4]
    (tmp_path / "m.txt").write_text("2\n2\n")
    mapping = f", mapping: {{kind: file, file: {tmp_path / 'm.txt'}}}"
    assert cycles(config_of(tmp_path, ping, "o: 7", mapping)) == [1.4, 2.8]


def test_what_cannot_end_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GoalError, match=r"1 message is never received: rank 0 send 5b to 1 tag 3 \(.*a\.goal:3\)$"):
        run_app(config_of(tmp_path, ["send 5b to 1 tag 3", "calc 4"], "o: 1"))
    with pytest.raises(GoalError, match="but the message from rank 0 has 5"):
        run_app(config_of(tmp_path, ["send 5b to 1", "recv 6b from 0"], "o: 1"))
    monkeypatch.setattr(schedule_packet, "MOST", 3)
    with pytest.raises(GoalError, match=r"a: 2 messages of 2 ranks are more than engine packet has numbers for"):
        prepare_app(config_of(tmp_path, ["send 5b to 1\nsend 5b to 1", "calc 1"], "o: 1"))


def test_a_message_after_more_cycles_than_the_simulator_counts_is_refused(tmp_path: Path) -> None:
    late = "a: calc {}\nb: send 640b to 1\nb requires a"
    cycles_counted = 1 << 42
    run = run_app(config_of(tmp_path, [late.format(int((cycles_counted - 10) * CYCLE)), "recv 640b from 0"], "o: 0"))
    assert run.found.makespan_s * 1e9 / CYCLE > cycles_counted - 10
    with pytest.raises(ProgramError, match=r"takes more than 4,398,046,511,104 cycles, which the simulator counts"):
        run_app(config_of(tmp_path, [late.format(int(cycles_counted * CYCLE)), "recv 640b from 0"], "o: 0"))
    with pytest.raises(GoalError, match=r"a\.goal: ends at 9\.0072e\+15; times beyond 2\^53 are not exact$"):
        run_app(config_of(tmp_path, [f"calc {(1 << 53) + 2}"], "o: 0"))

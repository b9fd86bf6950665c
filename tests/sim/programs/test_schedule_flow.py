"""Schedules on the flow engine: by hand, against programs without a graph, and what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.errors import UserError
from hopforge.model.network.parts.program_arrays import ProgramError
from hopforge.model.workload.goal_files import read_goal, write_goal
from hopforge.model.workload.schedule import GoalError
from hopforge.sim.programs.app_setup import prepare_app
from hopforge.sim.programs.application import AppRun, app_rows, run_app, write_app
from hopforge.sim.programs.loggops_engine import LoggopsSettings, run_loggops
from hopforge.sim.traffic.scheduled import workload_schedule

TIMING = "timing: {link_gbps: 8, switch_base_ns: 51, cable_ns: 50}\n"
ONE_SWITCH = "{kind: mesh, radices: [1], hosts_per_router: 4}"
LATENCY, ENVELOPE = 51 + 2 * 50, 16  # ns through one switch; a byte takes 1 ns


def config_of(folder: Path, ranks: list[str], loggops: str, app: str = "", mapping: str = "") -> Config:
    blocks = "".join(f"rank {n} {{\n{lines}\n}}\n" for n, lines in enumerate(ranks))
    (folder / "a.goal").write_text(f"num_ranks {len(ranks)}\n{blocks}")
    return parse_config(
        f"name: x\ntopology: {ONE_SWITCH}\nworkload: {{kind: trace, file: {folder / 'a.goal'}{mapping}}}\n{TIMING}"
        f"app: {{loggops: {{{loggops}}}{app}}}\n"
    )


def finish(folder: Path, ranks: list[str], loggops: str = "o: 10, g: 0, O: 0", mapping: str = "") -> list[float]:
    run = run_app(config_of(folder, ranks, loggops, mapping=mapping))
    return [pytest.approx(seconds * 1e9, rel=1e-9) for seconds in run.ranks["finish_s"]]


def test_a_message_is_handed_over_at_the_end_of_o_and_counts_when_its_last_byte_is_there(tmp_path: Path) -> None:
    there = 200 + LATENCY + 100 + ENVELOPE
    ping = ["send 100b to 1", "recv 100b from 0"]
    assert [200, there + 200] == finish(tmp_path, ping, "o: 200")
    # O of all bytes but the first, at both ends
    assert finish(tmp_path, ping, "o: 200, O: 3") == [200 + 99 * 3, 200 + 2 * 99 * 3 + LATENCY + 116 + 200]
    # the sender of a long message waits for its receive; a late receive finds the message there
    late = ["send 100b to 1", "a: calc 5000\nb: recv 100b from 0\nb requires a"]
    assert finish(tmp_path, late, "o: 200, S: 99") == [5200, 5200]
    assert finish(tmp_path, late, "o: 200, S: 100") == [200, 5200]
    assert finish(tmp_path, late, "o: 200, S: 100, unit_ns: 2") == [400, 10400]


def test_two_senders_share_the_link_of_the_receiver(tmp_path: Path) -> None:
    both = 10 + LATENCY + 2 * (1000 + ENVELOPE)
    receive = "recv 1000b from 1\nrecv 1000b from 2"
    assert [both + 20, 10, 10] == finish(tmp_path, [receive, *["send 1000b to 0"] * 2])
    assert [both + 10, 10, 10] == finish(tmp_path, [receive + " cpu 1", *["send 1000b to 0"] * 2])


def test_a_nic_waits_g_between_messages(tmp_path: Path) -> None:
    sends = "send 1b to 1\nsend 1b to 1 tag 1"
    receive = "recv 1b from 0\nrecv 1b from 0 tag 1"
    last = 1000 + 10 + LATENCY + 17 + 10
    assert [1010, last] == finish(tmp_path, [sends, receive], "o: 10, g: 1000")
    # handed over 10 ns apart, they share a link from the time at which the first has 7 bytes left: 14 ns, then 10
    shared = 20 + LATENCY + 14 + 10
    assert [20, shared + 10] == finish(tmp_path, [sends + " nic 1", receive], "o: 10, g: 1000")


def test_streams_compute_beside_a_message_and_waiting_is_what_no_cpu_covers(tmp_path: Path) -> None:
    ranks = ["send 1000b to 1", "a: recv 1000b from 0\nb: calc 500 cpu 1\nc: calc 7\nc requires a\nd: calc 9 cpu 1\n"
             "d irequires c"]
    run = run_app(config_of(tmp_path, ranks, "o: 10, g: 0"))
    there = 10 + LATENCY + 1016
    assert run.ranks["finish_s"][1] * 1e9 == pytest.approx(there + 10 + 9)
    assert run.ranks["compute_s"][1] * 1e9 == pytest.approx(516)
    assert run.ranks["waiting_s"][1] * 1e9 == pytest.approx(there - 500)
    assert run.found.message_latency_s == pytest.approx((LATENCY + 1016) * 1e-9)
    rows = dict(app_rows(run))
    assert rows["a message"] == "o 10 g 0 O 0 S 65535 in units of 1 ns"
    write_app(run, tmp_path / "out")
    assert {item.stem for item in (tmp_path / "out").glob("*.csv")} >= {"app", "ranks", "energy"}


def test_ranks_of_one_host_and_of_one_rank_need_no_network(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text("2\n2\n")
    mapping = f", mapping: {{kind: file, file: {tmp_path / 'm.txt'}}}"
    assert finish(tmp_path, ["send 9000b to 1", "recv 9000b from 0"], mapping=mapping) == [10, 20]
    assert finish(tmp_path, ["send 9000b to 0\nrecv 9000b from 0"]) == [20]


def crowded(rng: np.random.Generator) -> str:
    """Return the lines of a rank that sends itself messages: short operations, many of which are ready at once."""
    lines, edges = [], []
    for step in range(int(rng.integers(3, 12))):
        what = [f"calc {rng.integers(0, 9)}"]
        if rng.random() < 0.6:
            size, tag = rng.choice([1, 2, 3]), rng.integers(0, 2)
            what = [f"send {size}b to 0 tag {step} nic {tag}", f"recv {size}b from 0 tag {step}"]
        for text in what:
            own = len(lines)
            lines.append(f"l{own}: {text} cpu {rng.integers(0, 2)}")
            for before in set(rng.integers(0, own, 2).tolist()) if own else ():
                edges.append(f"l{own} {rng.choice(['requires', 'irequires'])} l{before}")
    return "\n".join(lines + edges)


@pytest.mark.parametrize("start_us", [0.0, 2.75, 0.3])
def test_what_is_ready_in_one_instant_goes_by_the_order_of_the_rules(tmp_path: Path, start_us: float) -> None:
    """Messages that need no network are those of LogGOPS without latency: in every unit, whenever the job begins."""
    rng, compared = np.random.default_rng(7), 0
    machine = LoggopsSettings(0.0, 3.0, 0.0, 0.0, 1.0, 2)
    for _ in range(60):
        (tmp_path / "a.goal").write_text(f"num_ranks 1\nrank 0 {{\n{crowded(rng)}\n}}\n")
        try:
            expected = run_loggops(read_goal(tmp_path / "a.goal"), machine).finish
        except GoalError:
            continue  # a long message whose receive waits for it
        found = run_app(parse_config(
            f"name: x\ntopology: {ONE_SWITCH}\napp: {{loggops: {{o: 3, g: 0, O: 1, S: 2}}}}\nworkload: {{kind: jobs,"
            f" jobs: [{{start_us: {start_us}, program: {{kind: trace, file: {tmp_path / 'a.goal'}}}}}]}}\n"
        ))  # fmt: skip
        assert isinstance(found, AppRun)
        assert found.jobs is not None
        assert found.jobs["makespan_s"].to_numpy() * 1e9 == pytest.approx(expected, abs=1e-4)
        compared += 1
    assert compared > 30


def test_what_arrives_in_an_instant_goes_before_the_operations_of_it(tmp_path: Path) -> None:
    """Rank 1 has computed when the message is there: the receive, of the lower number, gets the cpu first."""
    there = 10 + LATENCY + 100 + ENVELOPE
    computes = f"a: recv 100b from 0\nb: calc {there} cpu 1\nc: calc 1000\nd: calc 5\nc requires b\nd requires a"
    assert [10, there + 1015] == finish(tmp_path, ["send 100b to 1", computes])
    run = run_app(config_of(tmp_path, ["send 100b to 1", computes], "o: 10, g: 0, O: 0"))
    assert isinstance(run, AppRun)
    assert run.activity is not None
    # the message is under way until its receive is carried out, which nothing precedes
    assert run.activity.ranks["exposed_s"][1] * 1e9 == pytest.approx(10)


PROGRAMS = [
    ("{kind: npb, benchmark: cg, class: S, ranks: 8}", "{kind: torus, radices: [2, 4]}", ""),
    ("{kind: npb, benchmark: mg, class: S, ranks: 16}", "{kind: torus, radices: [4, 4]}", ", injection: queued"),
    ("{kind: collective, operation: alltoall, bytes: 3000, ranks: 16}", "{kind: dragonfly, p: 2, a: 4, h: 2}",
     ", sharing: equal"),
    ("{kind: npb, benchmark: lu, class: S, ranks: 8, iterations: 5}", "{kind: dragonfly, p: 2, a: 4, h: 2}", ""),
]  # fmt: skip


@pytest.mark.parametrize(("workload", "topology", "app"), PROGRAMS)
def test_a_program_as_a_schedule_takes_the_times_of_the_program(
    tmp_path: Path, workload: str, topology: str, app: str
) -> None:
    """Without o and g, where all messages start at once, every rank ends at the same time, but for rounding."""
    text = f"name: x\ntopology: {topology}\n{TIMING}"
    early = "backend: embedded, buffered_bytes: 1000000000, eager_bytes: 1000000000"
    linear = parse_config(f"{text}workload: {workload}\napp: {{{early}{app}}}\n")
    ready = prepare_app(linear)
    program = ready.placed.program
    sizes = replace(program, size_bytes=np.maximum(program.size_bytes, 1))  # as a schedule counts them
    expected = run_app(linear, setup=replace(ready, placed=replace(ready.placed, program=sizes)))
    write_goal(workload_schedule(linear.workload, ready.topology, 1, None), tmp_path / "a.goal")
    graph = parse_config(
        f"{text}workload: {{kind: trace, file: {tmp_path / 'a.goal'}}}\n"
        f"app: {{loggops: {{o: 0, g: 0, O: 0, S: 1000000000}}{app}}}\n"
    )
    found = run_app(graph)
    assert isinstance(found, AppRun)
    assert found.found.messages == expected.found.messages > 100
    assert found.ranks["finish_s"].tolist() == pytest.approx(expected.ranks["finish_s"].tolist(), rel=1e-11)
    assert found.found.energy_j == pytest.approx(expected.found.energy_j, rel=1e-11)


@pytest.mark.parametrize(("app", "words"), [
    (", eager_bytes: 5", "app.eager_bytes: is not for a schedule of GOAL: app.loggops.S says"),
    (", buffered_bytes: 5", "app.buffered_bytes: is not for a schedule of GOAL"),
    (", host_gflops: 5", "app.host_gflops: is not for a schedule of GOAL: it has times"),
    (", backend: simgrid", "app.backend: must be embedded or auto with a schedule of GOAL, not simgrid"),
    (", lookup: cache", "app.lookup: must be hit, miss or conventional with a schedule of GOAL, not cache"),
    (", engine: packet, eager_bytes: 5", "app.eager_bytes: is not for a schedule of GOAL: app.loggops.S says"),
])  # fmt: skip
def test_what_a_schedule_does_not_take_is_refused(tmp_path: Path, app: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        prepare_app(config_of(tmp_path, ["calc 1"], "o: 1", app))


def test_what_cannot_end_is_named(tmp_path: Path) -> None:
    with pytest.raises(GoalError, match=r"1 message is never received: rank 0 send 5b to 1 tag 3 \(.*a\.goal:3\)$"):
        run_app(config_of(tmp_path, ["send 5b to 1 tag 3", "calc 4"], "o: 1"))
    with pytest.raises(UserError, match="5 ranks are more than the 4 hosts"):
        prepare_app(config_of(tmp_path, ["calc 1"] * 5, "o: 1"))
    with pytest.raises(UserError, match=r"a\.goal:3: a message of 281474976710657 bytes is larger"):
        prepare_app(config_of(tmp_path, [f"send {(1 << 48) + 1}b to 0"], "o: 1"))


def test_times_that_cannot_be_counted_are_refused(tmp_path: Path) -> None:
    """2^53 units are counted, the next one is not; a unit may be longer."""
    longest = 1 << 53
    chain = "a: calc {}\nb: calc {}\nb requires a"
    assert finish(tmp_path, [chain.format(longest - 5, 5)]) == [longest]
    for unit in ("", ", unit_ns: 1000"):
        with pytest.raises(GoalError, match=r"a\.goal: ends at 9\.0072e\+15; times beyond 2\^53 are not exact$"):
            finish(tmp_path, [chain.format(longest - 5, 7)], f"o: 10, g: 0, O: 0{unit}")


def test_a_program_of_more_than_2_53_ns_is_refused(tmp_path: Path) -> None:
    for flops, fits in ((4503599627370496, True), (4503599627371520, False)):  # half of it in ns, at 1 Gflop/s
        (tmp_path / "t.txt").write_text(f"0 init\n0 compute {flops}\n0 compute {flops}\n0 finalize\n")
        config = parse_config(
            f"name: x\ntopology: {ONE_SWITCH}\nworkload: {{kind: trace, file: {tmp_path / 't.txt'}}}\n"
            "app: {backend: embedded, host_gflops: 1}\n"
        )
        if fits:
            assert run_app(config).found.makespan_s == pytest.approx(2 * flops * 1e-9, rel=1e-12)
        else:
            with pytest.raises(ProgramError, match=r"ends at 9\.0072e\+06 s; times beyond 2\^53 ns are not exact"):
                run_app(config)

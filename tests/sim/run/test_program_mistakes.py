"""Programs that cannot end or be run are told in one line."""

import sys
from pathlib import Path

import pytest

from hopforge.model.config import ConfigError, parse_config
from hopforge.model.config.uses import unused_sections
from hopforge.model.network.parts.program_arrays import ProgramError
from hopforge.model.workload.trace import TraceError
from hopforge.sim.run.program_run import rank_table
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.traffic import TrafficError
from hopforge.sim.traffic.forecast import forecast
from hopforge.sim.traffic.packet_stream import WorkloadError

sys.path.insert(0, str(Path(__file__).parent))
from program_cases import MTU, ROW, base, finish, traced


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

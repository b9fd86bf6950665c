"""Failures under a program: ways round by the formula, lost messages told with their ranks, nothing lost in silence."""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.network.core.kinds import DATA, FINISHED, STUCK
from hopforge.model.network.parts.program_arrays import ProgramError
from hopforge.model.topology.failed import FailureError
from hopforge.sim.failures.input_queued import InputQueuedFailures
from hopforge.sim.failures.program_messages import lost_text
from hopforge.sim.run.program_run import program_rows, run_program, write_program
from hopforge.sim.run.simulation import Simulation

sys.path.insert(0, str(Path(__file__).parent))
from accounts import check_state

FLIT_BYTES, MTU = 10, 40
RING = "topology: {kind: torus, radices: [4]}\ntables: {scheme: shortest, layers: acro}"
RANDOM = RING.replace("torus, radices: [4]", "random_regular, routers: 12, degree: 4, hosts_per_router: 1, seed: 1")


def base(routers: int) -> int:
    """Cycles from sending a flit to its arrival without load (docs/definitions/router.md)."""
    return 3 * routers + (routers - 1) + 3


def traced(folder: Path, ranks: list[list[str]], failures: str, *, network: str = RING, more: str = "") -> Config:
    path = folder / "program"
    path.mkdir(exist_ok=True)
    for rank, lines in enumerate(ranks):
        (path / f"rank-{rank}.txt").write_text("".join(f"{rank} {line}\n" for line in ["init", *lines]))
    return parse_config(
        f"name: test\n{network}\nworkload: {{kind: trace, file: {path}, mtu_bytes: {MTU}}}\n"
        f"traffic: {{source: program, flit_bytes: {FLIT_BYTES}, cycles_per_flop: 1{more}}}\n"
        f"router: {{vcs: 4, buffer_flits: 16}}\nrouting: {{algorithm: tables}}\n"
        f"simulation: {{failures: [{failures}]}}\n"
    )


def test_a_failure_while_all_ranks_compute_costs_the_way_round(tmp_path: Path) -> None:
    program = [["compute 50000", "send 1 0 40"], ["recv 0 0 -1"], [], []]
    failure = "{cycle: 1000, links: [[0, 1]], detection_cycles: 100, reprogram_cycles: 200}"
    whole = run_program(Simulation(traced(tmp_path, program, ""), 0.1, 1))
    assert whole.makespan == 50000 + base(2) + 3
    run = Simulation(traced(tmp_path, program, failure), 0.1, 1)
    found = run_program(run)
    assert found.makespan == 50000 + base(4) + 3  # by 0, 3, 2, 1
    assert run.reconfiguration is not None
    (record,) = run.reconfiguration.records
    # the kernel passes the failure, as nothing is under way; what follows from it has its own cycles all the same
    assert (record.stopped_cycle, record.empty_cycle, record.reprogrammed_cycle) == (1100, 1100, 1300)
    assert record.messages_lost == record.packets_lost == 0
    assert dict(program_rows(found))["makespan"].startswith(f"{found.makespan:,} cycles")
    write_program(run, found, tmp_path / "out", plots=True)
    assert {"failures.csv", "series.csv", "series.png"} <= {path.name for path in (tmp_path / "out").iterdir()}
    units = pd.read_parquet(tmp_path / "out" / "series.parquet").attrs["units"]
    assert units["sent"] == units["accepted"] == "flits per host and cycle"
    series = run.reconfiguration.series
    assert (series["cycle"] % 100 == 0).all() and series["cycle"].is_unique
    assert len(series) < 30  # bins that the kernel has passed are left out


@pytest.mark.parametrize("packets", [10, 50])
def test_packets_before_a_failed_link_are_sent_round_it(tmp_path: Path, packets: int) -> None:
    """Nothing crosses the link when it fails: packets come to it later, wait, and are sent again by host 0."""
    program = [[f"send 1 0 {MTU * packets}"], ["recv 0 0 -1"], [], []]
    failure = "{cycle: 0, links: [[0, 1]], detection_cycles: 100, reprogram_cycles: 200}"
    run = Simulation(traced(tmp_path, program, failure), 0.1, 1)
    found = run_program(run)
    assert run.reconfiguration is not None
    (record,) = run.reconfiguration.records
    assert record.packets_set_aside > 1 and record.packets_lost == record.messages_lost == 0
    assert found.packets == packets and found.flits == 4 * packets
    # all flits one after the other, with the new tables
    assert found.makespan == 300 + base(4) + 4 * packets - 1
    # rank 0 has sent when its last packet has left for the first time
    sent = int(run.state["rank"]["finished"][0])
    if packets == 10:
        assert (record.packets_set_aside, sent) == (10, 40)
    else:
        assert record.packets_set_aside < packets
        assert sent == 300 + 4 * packets
    assert (run.state["packet_message"] >= 0).all()


def test_a_cut_message_ends_the_run_with_its_ranks(tmp_path: Path) -> None:
    program = [["send 1 0 400"], ["recv 0 0 -1"], ["compute 3000"], []]
    failure = "{cycle: 30, links: [[0, 1]], detection_cycles: 20, reprogram_cycles: 50}"
    run = Simulation(traced(tmp_path, program, failure), 0.1, 1)
    with pytest.raises(ProgramError) as caught:
        run_program(run)
    text = str(caught.value)
    assert "the program cannot end" in text and "rank 1" in text
    assert text.endswith("; failures lost 1 message: rank 0 → rank 1 (400 bytes)")
    assert run.reconfiguration is not None
    assert run.reconfiguration.records[0].messages_lost == 1
    # who sends is rid of the message, and ranks that do not need it have ended
    finished = run.state["rank"]["finished"]
    assert finished[0] > 0 and finished[1] < 0 and finished[2] == 3000


def test_the_last_packet_of_a_message_is_cut_in_its_host(tmp_path: Path) -> None:
    """One packet of 4 flits: the link fails while it is partly in host 0, which is rid of it at once."""
    program = [["send 1 0 40", "send 3 0 10"], ["recv 0 0 -1"], [], ["recv 0 0 -1"]]
    cut = []
    for cycle in range(2, 14):
        failure = f"{{cycle: {cycle}, links: [[0, 1]], detection_cycles: 20, reprogram_cycles: 50}}"
        run = Simulation(traced(tmp_path, program, failure), 0.1, 1)
        try:
            run_program(run)
        except ProgramError as error:
            assert "failures lost 1 message: rank 0 → rank 1 (40 bytes)" in str(error)
            assert run.state["message"]["departed"][:2].tolist() == [1, 1]
            assert run.state["rank"]["finished"][3] > 0  # the other message comes
            cut.append(cycle)
    assert cut


@pytest.mark.parametrize("cycle", [20, 2000])
def test_packets_without_a_row_are_told_beside_lost_messages(tmp_path: Path, cycle: int) -> None:
    """TCAMs of two rows know the way to some ranks only; the link fails with a packet on it, or after all."""
    ranks = [[f"isend {to} 0 40" for to in range(4) if to != rank] for rank in range(4)]
    ranks = [[*lines, *(f"irecv {to} 0 -1" for to in range(4) if to != n), "waitall"] for n, lines in enumerate(ranks)]
    failure = f"{{cycle: {cycle}, links: [[0, 3]], detection_cycles: 20, reprogram_cycles: 50}}"
    config = traced(tmp_path, ranks, failure)
    router = config.router.model_copy(update={"route_computation": "lookup"})
    tcam = config.lookup.tcam.model_copy(update={"kind": "flops", "rows": 2})
    lookup = config.lookup.model_copy(update={"reduction": False, "tcam": tcam})
    run = Simulation(config.model_copy(update={"router": router, "lookup": lookup}), 0.1, 1)
    with pytest.raises(ProgramError) as caught:
        run_program(run)
    assert run.state.lookup is not None
    drained, text = int(run.state.lookup.counts["drops"].sum()), str(caught.value)
    assert f"; unroutable and dropped: {drained} packets" in text and drained > 1
    assert ("; failures lost 1 message: " in text) == (cycle == 20)


@pytest.mark.parametrize("seed", range(4))
def test_no_message_is_lost_in_silence(tmp_path: Path, seed: int) -> None:
    generator = np.random.default_rng(seed)
    ranks: list[list[str]] = [[] for _ in range(12)]
    for _ in range(120):
        a, b = generator.choice(12, 2, replace=False).tolist()
        size = int(generator.integers(1, 300))
        ranks[a] += [f"isend {b} 0 {size}"] if generator.random() < 0.7 else [f"send {b} 0 {size}"]
        ranks[b] += [f"irecv {a} 0 -1"]
    run_length = {0: 60, 1: 150, 2: 400, 3: 700}[seed]
    failures = ", ".join(
        f"{{cycle: {run_length + 90 * k}, links: [[{u}, {v}]], detection_cycles: 30, reprogram_cycles: 40, "
        "repair_cycles: 300}"
        for k, (u, v) in enumerate(links_of(tmp_path)[seed : seed + 3])
    )
    run = Simulation(traced(tmp_path, [[*lines, "waitall"] for lines in ranks], failures, network=RANDOM), 0.1, 1)
    code = 0
    while code not in (FINISHED, STUCK):
        code = run.advance(20)
        check_state(run)
    assert run.reconfiguration is not None and isinstance(run.reconfiguration.network, InputQueuedFailures)
    lost = run.reconfiguration.network.lost.numbers
    message = run.state["message"]
    # what has not arrived is what is told, message by message
    assert set(np.flatnonzero((message["started"] >= 0) & (message["arrived"] < 0)).tolist()) == lost
    assert sum(record.messages_lost for record in run.reconfiguration.records) == len(lost)
    assert (message["departed"][message["started"] >= 0] == 1).all()
    assert (message["to_send"][message["stage"] == DATA] == 0).all()
    assert code == (STUCK if lost else FINISHED)


def links_of(folder: Path) -> list[tuple[int, int]]:
    """Links of the random network, once each."""
    run = Simulation(traced(folder, [[] for _ in range(12)], "", network=RANDOM), 0.1, 1)
    channels = run.topology.channels()
    return sorted({(int(u), int(v)) for u, v in zip(channels.src_router, channels.dst_router, strict=True) if u < v})


def test_mistakes(tmp_path: Path) -> None:
    program = [["send 1 0 40"], ["recv 0 0 -1"], [], []]
    with pytest.raises(FailureError, match=re.escape("takes host 2 of rank 2 along; hosts of ranks must work")):
        Simulation(traced(tmp_path, program, "{cycle: 9, switches: [2]}"), 0.1, 1)


def test_lost_messages_in_words() -> None:
    class Few:
        source, destination, size_bytes = [0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [1, 9, 10, 11, 12]

    assert lost_text(Few(), set()) == ""  # type: ignore[arg-type]
    assert lost_text(Few(), {0}).endswith(": rank 0 → rank 1 (1 byte)")  # type: ignore[arg-type]
    assert lost_text(Few(), {1}) == "; failures lost 1 message: rank 1 → rank 2 (9 bytes)"  # type: ignore[arg-type]
    assert lost_text(Few(), {0, 1, 2, 3, 4}).endswith("rank 3 → rank 4 (11 bytes), …")  # type: ignore[arg-type]

"""Links that fail under schedules and jobs on routers of flits: by hand, and message by message as programs."""

from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.errors import UserError
from hopforge.model.network.parts.program_arrays import ProgramError
from hopforge.model.workload.schedule import GoalError
from hopforge.sim.programs.app_setup import AppSetup, prepare_app
from hopforge.sim.programs.application import run_app
from hopforge.sim.programs.program_routers import cycle_ns
from hopforge.sim.programs.schedule_packet import SchedulePacket
from hopforge.sim.run.program_run import run_program

#: flits of 10 bytes at 80 Gbit/s: a cycle is 1 ns
RING = (
    "name: x\ntopology: {kind: torus, radices: [4]}\ntables: {scheme: shortest, layers: acro}\n"
    "routing: {algorithm: tables}\nrouter: {vcs: 4, buffer_flits: 16}\n"
    "timing: {link_gbps: 80, switch_base_ns: 0, cable_ns: 0}\n"
    "traffic: {flit_bytes: 10}\n"
)
RANDOM = RING.replace("torus, radices: [4]", "random_regular, routers: 12, degree: 4, hosts_per_router: 1, seed: 1")
#: packets of 512 bytes take 16 cycles
QUEUED = (
    "name: x\ntopology: {kind: dragonfly, p: 2, a: 2, h: 2}\nrouting: {algorithm: ugal_node}\n"
    "router: {model: input_output_queued, vcs: 4, buffer_flits: 3, output_buffer_flits: 2, flit_ns: 6.4, "
    "crossbar_ns: 1.6, link_ns: 8, global_ns: 22, host_ns: 1.6, end_ns: 1}\ntraffic: {flit_bytes: 512}\n"
)
APP = "engine: packet, buffered_bytes: 1000000000, eager_bytes: 1000000000"
GOAL_APP = "engine: packet, loggops: {o: 0, g: 0, O: 0, S: 1000000000, unit_ns: %s}"


def base(routers: int) -> int:
    """Cycles from sending a flit to its arrival without load (docs/definitions/router.md)."""
    return 3 * routers + (routers - 1) + 3


def goal(folder: Path, ranks: list[str], network: str = RING, mtu: int = 40, unit: float = 1.0) -> Config:
    blocks = "".join(f"rank {n} {{\n{lines}\n}}\n" for n, lines in enumerate(ranks))
    (folder / "a.goal").write_text(f"num_ranks {len(ranks)}\n{blocks}")
    return parse_config(
        f"{network}workload: {{kind: trace, file: {folder / 'a.goal'}, mtu_bytes: {mtu}}}\napp: {{{GOAL_APP % unit}}}\n"
    )


def failing(failures: str, network: str = RING) -> str:
    return f"{network}simulation: {{failures: [{failures}]}}\n"


def times_of(config: Config) -> list[float]:
    """When each rank ends, in cycles."""
    return [pytest.approx(seconds * 1e9 / cycle_ns(config), abs=1e-6) for seconds in run_app(config).ranks["finish_s"]]


def test_a_message_of_a_schedule_goes_round_a_failed_link(tmp_path: Path) -> None:
    late = ["a: calc 50000\nb: send 40b to 1\nb requires a", "recv 40b from 0"]
    failure = "{cycle: 1000, links: [[0, 1]], detection_cycles: 100, reprogram_cycles: 200}"
    assert times_of(goal(tmp_path, late)) == [50000, 50001 + base(2) + 3]
    assert times_of(goal(tmp_path, late, failing(failure))) == [50000, 50001 + base(4) + 3]
    # what waits before the link is sent again with the new tables
    first = ["send 400b to 1", "recv 400b from 0"]
    failure = failure.replace("1000", "0")
    assert times_of(goal(tmp_path, first, failing(failure)))[1] == 300 + base(4) + 40 - 1


@pytest.mark.parametrize("reprogram", [0, 200])
def test_the_network_is_empty_in_the_cycle_after_the_last_arrival(tmp_path: Path, reprogram: int) -> None:
    """As with other sources: in the cycle of the arrival it was not, though the schedule goes on in it."""
    late = "b: calc 3000\nc: send 40b to 1 tag 1\nc requires b"
    ranks = [f"send 40b to 1\n{late}", "recv 40b from 0\nrecv 40b from 0 tag 1"]
    failure = f"{{cycle: 2, links: [[2, 3]], detection_cycles: 0, reprogram_cycles: {reprogram}}}"
    failures = run_app(goal(tmp_path, ranks, failing(failure))).failures
    assert failures is not None
    arrived = 1 + base(2) + 3
    record = failures.table.iloc[0]
    assert record[["stopped_cycle", "empty_cycle"]].tolist() == [2, arrived + 1]
    assert record["reprogrammed_cycle"] == max(arrived + 1, 2 + reprogram)


@pytest.mark.parametrize("network", [RING, QUEUED])
def test_a_lost_message_of_a_schedule_is_named(tmp_path: Path, network: str) -> None:
    """The others go on for long after."""
    ring = network == RING
    to, cycle, links = (1, 30, "[[0, 1]]") if ring else (4, 5, "")
    ranks = [f"send 2000b to {to}", *["calc 1"] * (3 if ring else 4)]
    ranks[to] = "recv 2000b from 0"
    ranks[2], ranks[3] = "a: calc 5000\nb: send 400b to 3\nb requires a", "recv 400b from 2"
    if not ring:
        chosen = prepare_app(goal(tmp_path, ranks, network, 512)).topology
        links = str([[0, int(r)] for r in chosen.peer_router[0] if r >= 0 and r // 2 != 0])
    part = f"{{cycle: {cycle}, links: {links}, detection_cycles: 2, reprogram_cycles: 5, repair_cycles: 40}}"
    config = goal(tmp_path, ranks, failing(part, network), 40 if ring else 512)
    with pytest.raises(GoalError) as caught:
        run_app(config)
    text = str(caught.value)
    waits = f"the schedule cannot end: 1 receive waits for a message that never comes: rank {to} recv 2000b from 0"
    assert waits in text
    assert text.endswith(f"; failures lost 1 message: rank 0 → rank {to} (2000 bytes)")


@pytest.mark.parametrize("cycle", [21, 2000])
def test_what_has_no_row_is_told_beside_lost_messages(tmp_path: Path, cycle: int) -> None:
    """TCAMs of two rows know the way to some ranks only; packets that a failure cost are not unroutable."""
    ranks = ["\n".join(f"send 40b to {to}\nrecv 40b from {to}" for to in range(4) if to != rank) for rank in range(4)]
    network = RING.replace("buffer_flits: 16", "buffer_flits: 16, route_computation: lookup")
    network += "lookup: {reduction: false, tcam: {kind: flops, rows: 2}}\n"
    failure = f"{{cycle: {cycle}, links: [[0, 3]], detection_cycles: 20, reprogram_cycles: 50}}"
    setup = prepare_app(goal(tmp_path, ranks, failing(failure, network)))
    with pytest.raises(GoalError) as caught:
        run_app(setup.config, setup=setup)
    text, run = str(caught.value), setup.simulation
    assert run is not None and run.state.lookup is not None
    drained = int(run.state.lookup.counts["drops"].sum())
    assert f"; unroutable and dropped: {drained} packets" in text and drained > 1
    assert ("; failures lost 1 message: rank 3 → rank 0 (40 bytes)" in text) == (cycle == 21)


def test_a_switch_with_a_rank_of_a_schedule_cannot_fail(tmp_path: Path) -> None:
    config = goal(tmp_path, ["send 40b to 1", "recv 40b from 0"], failing("{cycle: 2, switches: [1]}"))
    with pytest.raises(UserError, match="takes host 1 of rank 1 along; hosts of ranks must work"):
        prepare_app(config)


def messages_of(setup: AppSetup) -> set[tuple[int, ...]]:
    """Source, destination, size, begin and arrival of each message; sizes tell them apart."""
    assert setup.simulation is not None
    program, state = setup.placed.program, setup.simulation.state
    ends = zip(program.source.tolist(), program.destination.tolist(), program.size_bytes.tolist(), strict=True)
    found = state["message"][["started", "arrived"]][: program.messages].tolist()
    return {(*end, *times) for end, times in zip(ends, found, strict=True)}


@pytest.mark.parametrize(("network", "seed"), [(RANDOM, 1), (RANDOM, 2), (QUEUED, 3), (QUEUED, 4)])
def test_every_message_of_a_schedule_as_of_a_program(tmp_path: Path, network: str, seed: int) -> None:
    """Messages are sent at drawn cycles, and nothing waits for another: the golden hosts know programs."""
    generator, queued = np.random.default_rng(seed), network == QUEUED
    ranks, count = (20, 60) if queued else (12, 80)
    sends: list[list[tuple[int, int, int]]] = [[] for _ in range(ranks)]
    for number in range(count):
        source, target = generator.choice(ranks, 2, replace=False).tolist()
        sends[source].append((int(generator.integers(1, 900)), target, (30 if queued else 1) * (number + 1)))
    graph, program = [""] * ranks, [["init"] for _ in range(ranks)]
    for source, own in enumerate(sends):
        for _, target, size in own:
            program[target].append(f"irecv {source} {size} {size}")
            graph[target] += f"recv {size}b from {source} tag {size}\n"
    for source, own in enumerate(sends):
        now = 0
        for number, (time, target, size) in enumerate(sorted(own)):
            program[source] += [f"compute {time - now}", f"isend {target} {size} {size}"]
            graph[source] += f"c{number}: calc {time - max(now, 1)}\n"
            graph[source] += f"c{number} requires c{number - 1}\n" if number else ""
            graph[source] += f"s{number}: send {size}b to {target} tag {size}\ns{number} requires c{number}\n"
            now = time
        program[source].append("waitall")
    topology = prepare_app(goal(tmp_path, graph, network, 512 if queued else 40)).topology
    far = [
        [int(u), int(v)] for u, v in zip(topology.channels().src_router, topology.channels().dst_router, strict=True)
        if u < v and (not queued or u // 2 != v // 2)
    ]  # fmt: skip
    scale = 16 if queued else 1
    parts = ", ".join(
        f"{{cycle: {at // scale}, links: [{far[(seed * 3 + k) % len(far)]}], detection_cycles: {48 // scale}, "
        f"reprogram_cycles: {64 // scale}, repair_cycles: {320 // scale}}}"
        for k, at in enumerate((160, 400))
    )
    network = failing(parts, network)
    (tmp_path / "calls").mkdir()
    for rank, lines in enumerate(program):
        (tmp_path / "calls" / f"rank-{rank}.txt").write_text("".join(f"{rank} {line}\n" for line in lines))
    config = goal(tmp_path, graph, network, 512 if queued else 40)
    unit = cycle_ns(config)
    setup = prepare_app(goal(tmp_path, graph, network, 512 if queued else 40, unit))
    linear = prepare_app(parse_config(
        f"{network}workload: {{kind: trace, file: {tmp_path / 'calls'}, mtu_bytes: {512 if queued else 40}}}\n"
        f"app: {{{APP}, host_gflops: {1 / unit}}}\n"
    ))  # fmt: skip
    assert linear.simulation is not None and setup.simulation is not None and setup.schedule is not None
    lost = []
    for run in (
        lambda: run_program(linear.simulation),
        SchedulePacket(setup.config, setup.simulation, setup.placed, setup.schedule, unit).run_schedule,
    ):
        try:
            run()
        except (ProgramError, GoalError) as error:
            lost.append(str(error).partition("; failures lost ")[2].partition(" message")[0])
    assert messages_of(setup) == messages_of(linear)
    never = sum(arrived < 0 for *_, arrived in messages_of(setup))
    assert lost == ([str(never)] * 2 if never else [])
    assert setup.simulation.reconfiguration is not None
    records = setup.simulation.reconfiguration.records
    assert sum(record.messages_lost for record in records) == never
    assert sum(record.packets_set_aside + record.packets_lost for record in records) > 0


def test_jobs_have_the_failures_alone_and_together(tmp_path: Path) -> None:
    """Rank pairs 0, 1 and 2, 3 of a ring: the first goes round, over the link of the second."""
    (tmp_path / "pair.goal").write_text(
        "num_ranks 2\nrank 0 {\na: calc 5000\nb: send 40b to 1\nb requires a\n}\nrank 1 {\nrecv 40b from 0\n}\n"
    )
    failure = "{cycle: 1000, links: [[0, 1]], detection_cycles: 100, reprogram_cycles: 200}"
    job = "{program: {kind: trace, file: %s, mtu_bytes: 40, mapping: {first: %d}}}"
    jobs = "".join(f"    - {job % (tmp_path / 'pair.goal', first)}\n" for first in (0, 2))
    config = parse_config(f"{failing(failure)}workload:\n  kind: jobs\n  jobs:\n{jobs}app: {{{GOAL_APP % 1}}}\n")
    found = run_app(config).jobs
    assert found is not None
    spans = [5001 + base(4) + 3, 5001 + base(2) + 3]
    assert (found["alone_s"] * 1e9).tolist() == pytest.approx(spans)
    assert found["makespan_s"].tolist() == pytest.approx(found["alone_s"].tolist(), rel=0.002)
    late = parse_config(
        f"{failing(failure.replace('1000', '5008'))}workload:\n  kind: jobs\n  jobs:\n{jobs}app: {{{GOAL_APP % 1}}}\n"
    )
    with pytest.raises(UserError, match=r"^workload\.jobs\[0\]: .*cannot end.*failures lost 1 message: rank 0 →"):
        run_app(late)

"""Traces of Chakra run by LogGOPS: by hand, beside texts of GOAL, and what is written and read again."""

from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.config.workload import ChakraWorkload
from hopforge.model.topology import build
from hopforge.model.workload.chakra_files import read_chakra, write_chakra
from hopforge.model.workload.chakra_nodes import Node, nodes_bytes
from hopforge.model.workload.goal_text import parse_goal
from hopforge.model.workload.schedule import GoalError
from hopforge.sim.programs.application import run_app
from hopforge.sim.programs.loggops_engine import LoggopsSettings, run_loggops
from hopforge.sim.traffic.packet_stream import WorkloadError
from hopforge.sim.traffic.scheduled import workload_schedule

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
DEFAULT = LoggopsSettings(2500, 1500, 1000, 6, 0, 65535)
RENDEZVOUS = LoggopsSettings(1000, 200, 300, 2, 0, 1024)
ALL_REDUCE, ALL_TO_ALL = 0, 6


def node(number: int, kind: int, *data: int, micros: int = 0, **attributes: int) -> Node:
    return Node(number, kind, "", np.array(data, np.uint64), micros=micros, attributes=dict(attributes))


def traces(folder: Path, *ranks: list[Node]) -> Path:
    for rank, nodes in enumerate(ranks):
        (folder / f"t.{rank}.et").write_bytes(b"".join(nodes_bytes(nodes)))
    return folder / "t"


def finish(prefix: Path, machine: LoggopsSettings, **keys: object) -> list[float]:
    return run_loggops(read_chakra(ChakraWorkload(kind="chakra", file=prefix, **keys)), machine).finish.tolist()


def of_goal(machine: LoggopsSettings, *ranks: str) -> list[float]:
    blocks = "".join(f"rank {n} {{\n{lines}\n}}\n" for n, lines in enumerate(ranks))
    return run_loggops(parse_goal("x", "x", f"num_ranks {len(ranks)}\n{blocks}"), machine).finish.tolist()


def test_an_all_reduce_of_two(tmp_path: Path) -> None:
    nodes = [
        node(0, COMPUTE, micros=5), node(1, COLLECTIVE, 0, comm_type=ALL_REDUCE, comm_size=100),
        node(2, COMPUTE, 1, micros=1),
    ]  # fmt: skip
    # sent from 5000 to 6500; first byte 2500 later, last one 99 · 6 later; received for 1500; computed for 1000
    assert finish(traces(tmp_path, nodes, nodes), DEFAULT) == [5000 + 1500 + 2500 + 594 + 1500 + 1000] * 2


@pytest.mark.parametrize("machine", [DEFAULT, RENDEZVOUS])
def test_host_and_device_beside_messages(tmp_path: Path, machine: LoggopsSettings) -> None:
    prefix = traces(
        tmp_path,
        [node(7, COMPUTE, micros=3), node(8, COMPUTE, micros=2, is_cpu_op=1),
         node(9, SEND, 8, comm_dst=1, comm_size=2000), node(10, COMPUTE, 9, micros=4)],
        [node(0, RECEIVE, comm_src=0, comm_size=2000), node(1, COMPUTE, micros=90), node(2, COMPUTE, 0, 1, micros=1)],
    )  # fmt: skip
    assert finish(prefix, machine) == of_goal(
        machine,
        "a: calc 3000\nb: calc 2000 cpu 1\nc: send 2000b to 1 cpu 2\nc requires b\nd: calc 4000\nd requires c",
        "a: recv 2000b from 0 cpu 2\nb: calc 90000\nc: calc 1000\nc requires a\nc requires b",
    )


@pytest.mark.parametrize("machine", [DEFAULT, RENDEZVOUS])
def test_an_all_to_all_of_four_in_order(tmp_path: Path, machine: LoggopsSettings) -> None:
    late = [[node(0, COMPUTE, micros=rank + 1), node(1, COLLECTIVE, 0, comm_type=ALL_TO_ALL, comm_size=8000)]
            for rank in range(4)]  # fmt: skip
    texts = []
    for rank in range(4):
        lines, before = [f"c: calc {1000 * (rank + 1)}"], ["c"]
        for step in (1, 2, 3):
            peer = rank ^ step
            lines.append(f"r{step}: recv 2000b from {peer} tag {step} cpu 2")
            lines.append(f"s{step}: send 2000b to {peer} tag {step} cpu 2")
            lines += [f"{now}{step} requires {old}" for now in "rs" for old in before]
            before = [f"r{step}", f"s{step}"]
        texts.append("\n".join(lines))
    assert finish(traces(tmp_path, *late), machine, collectives={"alltoall": "pairwise"}) == of_goal(machine, *texts)


PROGRAMS = [
    "{kind: npb, benchmark: cg, class: S, iterations: 2}", "{kind: training, parallelism: data, tokens: 16}",
    "{kind: collective, operation: scan, bytes: 3000, repeat: 3}",
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_that_is_written_and_read_ends_at_the_same_times(tmp_path: Path, program: str) -> None:
    config = parse_config(f"name: x\ntopology: {{kind: mesh, radices: [2, 2]}}\nworkload: {program}\n")
    schedule = workload_schedule(config.workload, build(config.topology, config.address), 1, 3.7)
    write_chakra(schedule, tmp_path / "new")
    again = read_chakra(ChakraWorkload(kind="chakra", file=tmp_path / "new" / "trace"))
    for machine in (DEFAULT, RENDEZVOUS):
        assert run_loggops(again, machine).finish.tolist() == run_loggops(schedule, machine).finish.tolist()


def test_messages_that_nobody_receives_are_named_by_their_nodes(tmp_path: Path) -> None:
    prefix = traces(tmp_path, [node(6, SEND, comm_dst=1, comm_tag=2, comm_size=5)], [])
    with pytest.raises(GoalError, match=r"never received: rank 0 send 5b to 1 tag 2 cpu 2 \(.*t\.0\.et: node 6\)"):
        finish(prefix, DEFAULT)


def test_traces_need_hosts(tmp_path: Path) -> None:
    prefix = traces(tmp_path, *[[node(0, COMPUTE)]] * 5)
    text = f"name: x\ntopology: {{kind: mesh, radices: [2, 2]}}\nworkload: {{kind: chakra, file: {prefix}}}\n"
    with pytest.raises(WorkloadError, match="5 ranks"):
        run_app(parse_config(text + "app: {engine: loggops}\n"))


@pytest.mark.parametrize("engine", ["flow", "packet"])
def test_networks_run_traces_as_they_run_texts(tmp_path: Path, engine: str) -> None:
    nodes = [node(0, COMPUTE, micros=5), node(1, COLLECTIVE, 0, comm_type=ALL_REDUCE, comm_size=1000)]
    goal = "num_ranks 2\n" + "".join(
        f"rank {rank} {{\nc: calc 5000\na: recv 1000b from {1 - rank} cpu 2\nb: send 1000b to {1 - rank} cpu 2\n"
        "a requires c\nb requires c\n}\n" for rank in range(2)
    )  # fmt: skip
    (tmp_path / "x.goal").write_text(goal)
    times = []
    prefix = traces(tmp_path, nodes, nodes)
    for program in (f"{{kind: chakra, file: {prefix}}}", f"{{kind: trace, file: {tmp_path}/x.goal}}"):
        text = f"name: x\ntopology: {{kind: mesh, radices: [2, 2]}}\napp: {{engine: {engine}}}\nworkload: {program}\n"
        times.append(run_app(parse_config(text)).ranks["finish_s"].tolist())
    assert times[0] == times[1]
    assert min(times[0]) > 5e-6


def test_stragglers_of_a_trace(tmp_path: Path) -> None:
    prefix = traces(tmp_path, [node(0, COMPUTE, micros=5)], [node(0, COMPUTE, micros=7)])
    slow = ChakraWorkload.model_validate(
        {"kind": "chakra", "file": prefix, "computing": {"stragglers": 2, "slowdown": 3.0}}
    )
    network = parse_config("name: x\ntopology: {kind: mesh, radices: [2]}\n")
    schedule = workload_schedule(slow, build(network.topology, network.address), 1, None)
    assert run_loggops(schedule, DEFAULT).finish.tolist() == [15000, 21000]

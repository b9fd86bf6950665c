"""Chakra: traces as schedules beside texts of GOAL, process groups, writing; what is refused."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import ConfigError, parse_config
from hopforge.model.config.workload import ChakraWorkload
from hopforge.model.workload.chakra_files import read_chakra, write_chakra
from hopforge.model.workload.chakra_groups import ChakraError
from hopforge.model.workload.chakra_nodes import Node, nodes_bytes, parse_nodes
from hopforge.model.workload.goal_text import goal_lines, parse_goal
from hopforge.model.workload.schedule import CALC, GoalError, Schedule

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7

def node(number: int, kind: int, *data: int, micros: int = 0, ctrl: tuple[int, ...] = (), **attributes: object) -> Node:
    waits = [np.array(ids, np.uint64) for ids in (data, ctrl)]
    return Node(number, kind, f"n{number}", waits[0], waits[1], micros, attributes)  # type: ignore[arg-type]


def collective(number: int, kind: int, *data: int, size: int = 0, **more: object) -> Node:
    return node(number, COLLECTIVE, *data, comm_type=kind, comm_size=size, **more)


def traces(folder: Path, *ranks: list[Node], packed: bool = False) -> Path:
    for rank, nodes in enumerate(ranks):
        content = b"".join(nodes_bytes(nodes))
        if packed:
            (folder / f"t.{rank}.et.gz").write_bytes(gzip.compress(content))
        else:
            (folder / f"t.{rank}.et").write_bytes(content)
    return folder / "t"


def read(folder: Path, *ranks: list[Node], **keys: object) -> Schedule:
    return read_chakra(ChakraWorkload(kind="chakra", file=traces(folder, *ranks), **keys))


def text(schedule: Schedule) -> str:
    return "".join(goal_lines(schedule))


def same(schedule: Schedule, goal: str) -> bool:
    """Tell whether it is the schedule of a text, which may name and place dependencies as it likes."""
    return text(schedule) == text(parse_goal("x", "x", goal))


def test_computations_and_messages(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        [node(5, SEND, 2, comm_dst=1, comm_tag=3, comm_size=70), node(2, COMPUTE, micros=4),
         node(3, COMPUTE, 2, is_cpu_op=1), node(9, 1, 5, 3)],
        [node(0, RECEIVE, comm_src=0, comm_tag=3, comm_size=70, comm_dst=1), node(1, 2, 0, micros=1)],
    )  # fmt: skip
    assert same(
        found,
        """num_ranks 2
        rank 0 {
        a: calc 4000
        b: calc 1 cpu 1
        b requires a
        c: send 70b to 1 tag 3 cpu 2
        c requires a
        d: calc 0 cpu 3
        d requires b
        d requires c
        }
        rank 1 {
        a: recv 70b from 0 tag 3 cpu 2
        b: calc 1000
        b requires a
        }
        """,
    )
    assert found.where(2) == f"{tmp_path / 't'}.0.et: node 5"


def test_packed_files_and_any_source(tmp_path: Path) -> None:
    prefix = traces(tmp_path, [node(0, RECEIVE, comm_src=-1, comm_tag=-1, comm_size=1)], packed=True)
    found = read_chakra(ChakraWorkload(kind="chakra", file=prefix))
    assert same(found, "num_ranks 1\nrank 0 {\nrecv 1b from -1 tag -1 cpu 2\n}\n")


def test_control_dependencies_by_setting(tmp_path: Path) -> None:
    nodes = [node(1, COMPUTE, micros=1), node(2, COMPUTE, ctrl=(1,), micros=2)]
    assert len(read(tmp_path, nodes).at_end.next) == 0
    assert read(tmp_path, nodes, honour_ctrl_deps=True).at_end.next.tolist() == [1]


def test_roofline(tmp_path: Path) -> None:
    nodes = [
        node(0, COMPUTE, micros=9, num_ops=1000, tensor_size=100),  # 1000 / 50 = 20 ns, 100 / 10 = 10 ns
        node(1, COMPUTE, micros=9, num_ops=10, tensor_size=1001),  # 100.1 ns
        node(2, COMPUTE, micros=9), node(3, 3, tensor_size=5), node(4, COMPUTE, num_ops=0),
    ]  # fmt: skip
    keys = {"durations": "roofline", "peak_gflops": 50, "memory_gigabytes_per_s": 10}
    assert read(tmp_path, nodes, **keys).size.tolist() == [20, 101, 9000, 1, 1]
    assert read(tmp_path, nodes).size.tolist() == [9000, 9000, 9000, 1, 1]


def test_a_ring_of_three(tmp_path: Path) -> None:
    ranks = [
        [node(0, COMPUTE, micros=1), collective(1, 0, 0, size=301), node(2, COMPUTE, 1, micros=1)] for _ in range(3)
    ]
    found = read(tmp_path, *ranks, collectives={"allreduce": "ring"})
    pieces, lines = [101, 100, 100], ["num_ranks 3"]
    for rank in range(3):
        lines += [f"rank {rank} {{", "a: calc 1000", "b: calc 0 cpu 3", "b requires a"]
        before = ["b"]
        for step in range(4):
            # reduce-scatter passes on piece r - step, then the all-gather piece r + 1 - (step - 2)
            sent = (rank - step if step < 2 else rank + 3 - step) % 3
            got = (sent - 1) % 3
            lines.append(f"r{step}: recv {pieces[got]}b from {(rank - 1) % 3}{f' tag {step}' if step else ''} cpu 2")
            lines.append(f"s{step}: send {pieces[sent]}b to {(rank + 1) % 3}{f' tag {step}' if step else ''} cpu 2")
            lines += [f"{now}{step} requires {old}" for now in "rs" for old in before]
            before = [f"r{step}", f"s{step}"]
        lines += ["c: calc 0 cpu 3", "c requires r3", "c requires s3", "d: calc 1000", "d requires c", "}"]
    assert same(found, "\n".join(lines) + "\n")


@pytest.mark.parametrize(
    "kind, keys, sizes",
    [
        (2, {}, [100, 100]), (2, {"all_gather_size": "whole"}, [50, 50]), (7, {}, [50, 50]), (6, {}, [50, 50]),
        (0, {}, [100, 100]), (9, {}, [1, 1]), (5, {"broadcast": "expand"}, [100]),
    ],
)  # fmt: skip
def test_sizes_of_collectives_of_two(tmp_path: Path, kind: int, keys: dict[str, str], sizes: list[int]) -> None:
    found = read(tmp_path, *[[collective(0, kind, size=100)]] * 2, **keys)
    assert found.size[found.kind == 1].tolist() == sizes
    assert found.size[found.kind == 2].tolist() == sizes


def test_a_broadcast_takes_the_time_of_the_trace(tmp_path: Path) -> None:
    nodes = [collective(0, 5, size=100)]
    nodes[0].micros = 7
    found = read(tmp_path, nodes, nodes)
    assert (found.kind.tolist(), found.size.tolist(), found.cpu.tolist()) == ([CALC] * 2, [7000] * 2, [2, 2])


def test_every_collective_has_tags_of_its_own(tmp_path: Path) -> None:
    nodes = [collective(0, 9), collective(1, 9), node(2, SEND, comm_dst=0, comm_tag=6, comm_size=1)]
    peer = [collective(4, 9, 5), collective(5, 9), node(6, SEND, comm_dst=0, comm_tag=6, comm_size=1)]
    found = read(tmp_path, nodes, peer)
    messages = found.kind != CALC
    # rank 1 reaches its node 5 before node 4
    rows = list(
        zip(found.rank[messages].tolist(), found.node[messages].tolist(), found.tag[messages].tolist(), strict=True)
    )
    tags = {(rank, number): tag for rank, number, tag in rows}
    assert tags == {(0, 0): 7, (0, 1): 8, (0, 2): 6, (1, 4): 8, (1, 5): 7, (1, 6): 6}


def test_process_groups(tmp_path: Path) -> None:
    def peers(schedule: Schedule) -> list[tuple[int, int]]:
        sends = schedule.kind == 1
        return sorted(zip(schedule.rank[sends].tolist(), schedule.peer[sends].tolist(), strict=True))

    pairs = [(0, 2), (1, 3), (2, 0), (3, 1)]
    named = [[collective(0, 9, pg_name=str(rank % 2 + 1))] for rank in range(4)]
    (tmp_path / "g.json").write_text(json.dumps({"1": [0, 2], "2": [3, 1]}))
    assert peers(read(tmp_path, *named, process_groups=tmp_path / "g.json")) == pairs
    (tmp_path / "t.json").write_text(json.dumps({"1": [0, 2], "2": [3, 1]}))  # beside the files
    assert peers(read(tmp_path, *named)) == pairs
    (tmp_path / "t.json").unlink()
    with pytest.raises(ChakraError, match=r"t\.0\.et: node 0: process group '1' is told by no JSON file"):
        read(tmp_path, *named)
    # the dimensions of synthetic traces: the second of 2 × 2 takes part
    by_dimension = [[collective(0, 9, involved_dim=[0, 1])]] * 4
    assert peers(read(tmp_path, *by_dimension, dimensions=(2, 2))) == pairs
    with pytest.raises(ChakraError, match=r"workload\.dimensions has 0"):
        read(tmp_path, *by_dimension)
    with pytest.raises(ChakraError, match=r"workload\.dimensions: 2 × 3 must be the number of ranks, 4"):
        read(tmp_path, *by_dimension, dimensions=(2, 3))
    assert len(peers(read(tmp_path, *[[collective(0, 9, involved_dim=[1])]] * 4))) == 8


@pytest.mark.parametrize("wrapped", [False, True])
def test_process_groups_of_metadata(tmp_path: Path, wrapped: bool) -> None:
    groups = json.dumps([{"pg_name": "7", "ranks": [0, 1]}, {"pg_name": "0", "ranks": [], "group_size": 2}])
    values = (json.dumps([groups]) if wrapped else groups).encode()
    inputs = b"\x0a" + bytes([len(values) & 127 | 128, len(values) >> 7]) + values
    body = bytes.fromhex("1801") + b"\x42" + bytes([len(inputs) & 127 | 128, len(inputs) >> 7]) + inputs
    told = bytes([len(body) & 127 | 128, len(body) >> 7]) + body
    prefix = traces(tmp_path, *[[collective(1, 9, pg_name="7"), collective(2, 9, pg_name="0")]] * 2)
    for rank in range(2):
        place = tmp_path / f"t.{rank}.et"
        place.write_bytes(place.read_bytes() + told)
    assert (read_chakra(ChakraWorkload(kind="chakra", file=prefix)).kind == 1).sum() == 4


def test_written_and_read_again(tmp_path: Path) -> None:
    goal = """num_ranks 2
        rank 0 {
        a: calc 701
        b: send 20b to 1 tag 3
        b irequires a
        c: calc 0 cpu 7
        c requires b
        d: recv 5b from -1 tag -1 cpu 1 nic 2
        }
        rank 1 {
        a: send 5b to 0 nic 2 cpu 2
        b: recv 20b from 0 tag 3 cpu 2
        c: calc 1500 cpu 1
        c requires a
        c irequires b
        }
        """
    schedule = parse_goal("x", "x", goal)
    write_chakra(schedule, tmp_path / "new")
    again = read_chakra(ChakraWorkload(kind="chakra", file=tmp_path / "new" / "trace"))
    assert text(again) == text(schedule)
    with pytest.raises(ChakraError, match="new: exists already"):
        write_chakra(schedule, tmp_path / "new")
    # others find whole µs
    nodes = parse_nodes((tmp_path / "new" / "trace.1.et").read_bytes())
    assert [(each.kind, each.micros) for each in nodes] == [(SEND, 0), (RECEIVE, 0), (COMPUTE, 2)]


# ---- mistakes ------------------------------------------------------------------------------------------------------

ONE = collective(4, 0, size=8)
MISTAKES = [
    ([[node(3, COMPUTE, 1, 8)]], {},
     "t.0.et: node 3 waits for node 1 (data_deps), which never appears (and 1 more such)"),
    ([[node(3, COMPUTE, ctrl=(7,))]], {"honour_ctrl_deps": True}, "t.0.et: node 3 waits for node 7 (ctrl_deps)"),
    ([[node(3, COMPUTE), node(3, COMPUTE)]], {}, "t.0.et: node 3 stands there twice"),
    ([[node(1, COMPUTE, 2), node(2, COMPUTE, 1)]], {},
     "t.0.et: node 1: rank 0 has operations that wait for each other"),
    ([[node(1, COMPUTE, 1)]], {}, "t.0.et: node 1: rank 0 has operations that wait for each other"),
    ([[node(1, 9), node(2, 8)]], {}, "t.0.et: node 1: unknown type 9; of all ranks 2 such nodes"),
    ([[collective(4, 3)]], {}, "t.0.et: node 4: gather: no collective that is simulated (all-reduce, all-gather, "),
    ([[collective(4, 77)]], {}, "node 4: comm_type 77: no collective"),
    ([[node(4, COLLECTIVE)]], {}, "node 4: has no comm_type"),
    ([[node(4, COLLECTIVE, comm_type=0)]], {}, "node 4: all-reduce has no comm_size"),
    ([[ONE], [collective(2, 0, size=9)]], {},
     "t.1.et: node 2: all-reduce of 9 bytes on rank 1, but rank 0 has all-reduce of 8 bytes there (node 4)"),
    ([[ONE], [collective(2, 9)]], {}, "node 2: barrier on rank 1, but rank 0 has all-reduce of 8 bytes there (node 4)"),
    ([[ONE], []], {}, "t.0.et: node 4: is collective 0 (from 0) of all ranks on rank 0, but rank 1 has only 0"),
    ([[node(1, SEND, comm_dst=1, comm_size=1)]], {}, "t.0.et: node 1: comm_dst must be from 0 to 0, not 1"),
    ([[node(1, SEND, comm_size=1)]], {}, "node 1: has no comm_dst"),
    ([[node(1, SEND, comm_dst=0)]], {}, "node 1: has no comm_size"),
    ([[node(1, SEND, comm_dst=0, comm_src=3, comm_size=1)]], {}, "node 1: comm_src must be the own rank 0, not 3"),
    ([[node(1, SEND, comm_dst=0, comm_size=1, comm_tag=-1)]], {}, "comm_tag must be from 0 to 4294967294, not -1"),
    ([[node(1, RECEIVE, comm_src=0, comm_size="x")]], {}, "comm_size must be a whole number, not 'x'"),
    ([[node(1, COMPUTE, micros=1 << 63)]], {}, "node 1: lasts 9223372036854775808 µs; at most"),
    ([[collective(1, 5, size=1, comm_src=4)]], {"broadcast": "expand"}, "comm_src 4 is not in its process group"),
    ([[collective(0, 0, size=1), node(1, SEND, comm_dst=0, comm_size=1, comm_tag=(1 << 32) - 2)]] * 2, {},
     "t: messages and rounds of collectives need 4294967296 tags"),
]  # fmt: skip


@pytest.mark.parametrize("ranks, keys, message", MISTAKES)
def test_mistakes(tmp_path: Path, ranks: list[list[Node]], keys: dict[str, object], message: str) -> None:
    with pytest.raises(GoalError, match=re.escape(message)) as caught:
        read(tmp_path, *ranks, **keys)
    assert "\n" not in str(caught.value)


def test_unknown_types_can_be_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [node(1, COMPUTE), node(2, 9, 1), node(3, COMPUTE, 2)]
    found = read(tmp_path, nodes, unknown_nodes="skip")
    assert (found.cpu.tolist(), found.at_end.next.tolist()) == ([0, 3, 0], [1, 2])
    assert "1 node of an unknown type takes no time" in capsys.readouterr().err


def test_files_that_are_missing_or_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(message: str, file: str = "t") -> None:
        with pytest.raises(ChakraError, match=message):
            read_chakra(ChakraWorkload(kind="chakra", file=tmp_path / file))

    refused(r"t: there is neither t\.0\.et nor t\.0\.et\.gz$")
    refused(r"name what stands before \.RANK\.et", "t.0.et")
    refused(r"none/t: there is neither t\.0\.et nor t\.0\.et\.gz$", "none/t")
    (tmp_path / "plain").touch()
    refused("cannot be listed: Not a directory", "plain/t")
    traces(tmp_path, [node(0, COMPUTE)], [node(0, COMPUTE)], [node(0, COMPUTE)])
    (tmp_path / "t.1.et").rename(tmp_path / "t.1")
    refused(r"t\.1\.et: rank 1 is missing; the highest is rank 2")
    good = (tmp_path / "t.1").read_bytes()
    (tmp_path / "t.1.et").write_bytes(good[:-1])
    refused(r"t\.1\.et: byte 8: truncated")
    (tmp_path / "t.1.et").write_bytes(gzip.compress(good)[:-4])
    refused(r"t\.1\.et: truncated: the gzip archive of \d+ bytes has no end")
    (tmp_path / "t.1.et").write_bytes(b"\x1f\x8bno archive")
    refused(r"t\.1\.et: damaged gzip archive")
    monkeypatch.setenv("HOPFORGE_INPUT_MIB", "1")
    (tmp_path / "t.1.et").write_bytes(gzip.compress(bytes((1 << 20) + 1)))
    refused(r"t\.1\.et: holds, unpacked, more than 1 MiB")
    (tmp_path / "t.1.et.gz").write_bytes(b"")
    refused(r"t: rank 1 has two files, t\.1\.et and t\.1\.et\.gz")


@pytest.mark.parametrize(
    "content, message",
    [
        ("[1]", "must be an object of groups"), ("{", "t.json:1: no JSON"),
        ('{"1": [0, 9]}', "9 is none of the 1 ranks"),
        ('{"1": [0, 0]}', "'1' holds a rank twice"), ('{"1": 5}', "'1' must be a list of ranks, not 5"),
        ('{"1": []}', "must be a list of ranks"), ("[" * 100000, "no JSON"),
    ],
)  # fmt: skip
def test_process_groups_that_are_none(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "t.json").write_text(content)
    with pytest.raises(ChakraError, match=re.escape(message)):
        read(tmp_path, [node(0, COMPUTE)])


def test_the_roofline_needs_its_numbers() -> None:
    base = "name: x\ntopology: {kind: mesh, radices: [2, 2]}\nworkload: {kind: chakra, file: t, "
    with pytest.raises(ConfigError, match=r"peak_gflops: missing; durations=roofline needs it"):
        parse_config(base + "durations: roofline}\n")
    with pytest.raises(ConfigError, match=r"peak_gflops: is for durations=roofline only, not durations=replay"):
        parse_config(base + "peak_gflops: 3}\n")

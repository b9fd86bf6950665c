"""GOAL as text and binary: what is taken and what is refused, round trips, programs as schedules, shared references."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge.model.config.workload import CollectivesConfig
from hopforge.model.workload.compiled_program import compile_program
from hopforge.model.workload.goal_binary import goal_bytes, parse_binary_goal
from hopforge.model.workload.goal_files import is_goal, read_goal, write_goal
from hopforge.model.workload.goal_text import goal_lines, parse_goal
from hopforge.model.workload.program_schedule import program_schedule
from hopforge.model.workload.read_trace import read_trace
from hopforge.model.workload.schedule import ANY, CALC, RECV, SEND, GoalError, Schedule

_SHARED = [folder / "shared" / "goal" for folder in Path(__file__).parents]
SHARED = next((place for place in _SHARED if (place / "syntax.csv").is_file()), None)
needs_shared = pytest.mark.skipif(SHARED is None, reason="no shared/goal beside this checkout")


def read(text: str) -> Schedule:
    return parse_goal("x", "x.goal", text)


def one(*lines: str, ranks: int = 1) -> str:
    return "\n".join([f"num_ranks {ranks}", "rank 0 {", *lines, "}\n"])


def pairs(schedule: Schedule) -> list[list[tuple[int, int]]]:
    edges = (schedule.at_end, schedule.at_start)
    return [list(zip(e.before.tolist(), e.next.tolist(), strict=True)) for e in edges]


TAKEN = {
    "brace on the next line": "num_ranks 1\nrank 0\n{\nl1: calc 5\n}\n",
    "indented": one("  l1: calc 5"),
    "returns": one("l1: calc 5").replace("\n", "\r\n"),
    "comments": one("// one", "/* two", "lines */", "l1: calc 5 // behind", "/**/"),
    "no labels": one("calc 5"),
    "no last newline": "num_ranks 1\nrank 0 {\nl1: calc 5\n}",
    "before num_ranks": "// text\n" + one("l1: calc 5"),
    "leading zeros": one("l1: calc 0000000000000000000000000000005"),
}


@pytest.mark.parametrize("name", TAKEN)
def test_taken(name: str) -> None:
    found = read(TAKEN[name])
    assert (found.kind.tolist(), found.size.tolist()) == ([CALC], [5])


def test_tokens_need_no_space_and_options_no_order() -> None:
    found = read("num_ranks2\nrank0{\nl1 :  send 5 b to 1 nic 2 tag 7\nl2:recv 5bfrom-1tag-1cpu3\n}\n")
    assert found.kind.tolist() == [SEND, RECV]
    assert (found.peer.tolist(), found.tag.tolist()) == ([1, ANY], [7, ANY])
    assert (found.cpu.tolist(), found.nic.tolist()) == ([0, 3], [2, 0])


def test_ranks_in_any_order_and_missing_ones_are_empty() -> None:
    found = read("num_ranks 4\nrank 2 {\nrecv 5b from 0\n}\nrank 0 {\nsend 5b to 2\ncalc 3\n}\n")
    assert found.first.tolist() == [0, 2, 2, 3, 3]
    assert found.kind.tolist() == [SEND, CALC, RECV]
    assert [found.where(n) for n in range(3)] == ["x.goal:6", "x.goal:7", "x.goal:3"]


def test_labels_are_of_their_rank_and_may_stand_below() -> None:
    found = read(
        "num_ranks 2\nrank 0 {\nb requires to\nto: calc 4\nb: calc 5\n}\n"
        "rank 1 {\nto: calc 1\nc: calc 2\nc irequires to\n}\n"
    )
    assert pairs(found) == [[(0, 1)], [(2, 3)]]


REFUSED = {
    one("l1: calc 5;"): "x.goal:3: a line of GOAL has no semicolon",
    one("l1: calc 1", "l1 requires l9"): "x.goal:4: rank 0 has no label l9",
    one("calc 5 nic 1"): "x.goal:3: calc takes only cpu, not nic",
    one("calc 5 cpu 256"): "x.goal:3: cpu must be at most 255, not 256",
    one("send 5b to 0 tag -1"): "x.goal:3: a send needs a tag of its own: tag -1 (any) is for recv",
    one("send 5b to 0 tag 4294967295"): "x.goal:3: tag must be at most 4294967294, not 4294967295",
    one("send 5b to 0 tag 1 tag 2"): "x.goal:3: tag stands here twice",
    one("send 5b to 7"): "x.goal:3: to must be at most 0, the last of num_ranks 1, not 7",
    one("send 5b to -1"): "x.goal:3: to must be a whole number from 0, not -1",
    one("send 5b from 0"): "x.goal:3: send has to, not from",
    one("send 5 to 0"): "x.goal:3: send 5: a size ends with b (bytes), as in 5b",
    one("send 5b to 0 speed 3"): "x.goal:3: expected tag, cpu or nic, not speed",
    one("calc -5"): "x.goal:3: calc must be a whole number from 0, not -5",
    one("calc 18446744073709551616"): "x.goal:3: calc must be at most 18446744073709551615, not 18446744073709551616",
    one("l1: calc 5", "l1: calc 7"): "x.goal:4: label l1 stands in line 3 already",
    one("send: calc 5"): "x.goal:3: send is no label: send, recv, calc, rank, num_ranks are reserved",
    one("a: calc 1", "b: calc 1", "b requires a a"): "x.goal:5: a dependency names one label a line: b requires a a",
    one("sleep 3"): (
        "x.goal:3: expected an operation (calc, send, recv) or a dependency (requires, irequires), not sleep 3"
    ),
    one("rank 1 {"): "x.goal:3: expected } before rank 1 {",
    "num_ranks 1\nrank 1 {\n}\n": "x.goal:2: rank must be at most 0, the last of num_ranks 1, not 1",
    "num_ranks 1\nrank 0 {\n}\nrank 0 {\n}\n": "x.goal:4: rank 0 stands in line 2 already",
    "num_ranks 1\nrank 0 {\ncalc 1\n": "x.goal:2: rank 0 has no closing }",
    "num_ranks 1\nrank 0\ncalc 1\n": "x.goal:3: expected { behind rank 0 (line 2), not calc 1",
    "num_ranks 0\n": "x.goal:1: num_ranks must be at least 1, not 0",
    "num_ranks 1048577\n": "x.goal:1: num_ranks must be at most 1048576, not 1048577",
    "rank 0 {\ncalc 5\n}\n": "x.goal:1: expected num_ranks NUMBER, not rank 0 {",
    "": "x.goal: holds no schedule: num_ranks is missing",
    "num_ranks 1\n/* rank\n": "x.goal:2: this comment has no end (*/)",
    one("a: calc 1", "b: calc 2", "a requires b", "b irequires a"): (
        "x.goal:3: rank 0 has operations that wait for each other in a circle: calc 1 (x.goal:3) before calc 2"
        " (x.goal:4) before calc 1"
    ),
    one("a: calc 1", "a requires a"): "in a circle: calc 1 (x.goal:3) before calc 1",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused_with_file_and_line(text: str) -> None:
    with pytest.raises(GoalError, match=re.escape(REFUSED[text]) + "$"):
        read(text)


def test_a_long_circle_is_cut() -> None:
    lines = [f"l{n}: calc {n}" for n in range(40)] + [f"l{(n + 1) % 40} requires l{n}" for n in range(40)]
    with pytest.raises(GoalError, match=r"calc 6 \(x.goal:9\) before … 32 more … before calc 39 \(x.g"):
        read(one(*lines))


# ---- round trips ---------------------------------------------------------------------------------------------------


@st.composite
def schedules(draw: st.DrawFn) -> str:
    ranks = draw(st.integers(1, 4))
    lines = [f"num_ranks {ranks}"]
    for rank in draw(st.permutations(range(ranks))):
        lines.append(f"rank {rank} {{")
        count = draw(st.integers(0, 6))
        order = draw(st.permutations(range(count)))
        for n in range(count):
            kind = draw(st.sampled_from([
                "calc {size}", "send {size}b to {peer} tag {tag}", "recv {size}b from {any} tag {tag}"
            ]))
            lines.append(f"l{n}: " + kind.format(
                size=draw(st.integers(0, (1 << 64) - 1)), peer=draw(st.integers(0, ranks - 1)),
                any=draw(st.integers(-1, ranks - 1)), tag=draw(st.integers(0, (1 << 32) - 2)),
            ) + f" cpu {draw(st.integers(0, 255))}")
        for a in range(count):
            for b in range(a):
                if draw(st.booleans()):
                    lines.append(f"l{order[a]} {draw(st.sampled_from(['requires', 'irequires']))} l{order[b]}")
        lines.append("}")
    return "\n".join(lines) + "\n"


@given(schedules())
@settings(max_examples=60, deadline=None)
def test_text_and_binary_hold_the_same(text: str) -> None:
    found = read(text)
    binary = parse_binary_goal("x", "x.bin", goal_bytes(found))
    again = read("".join(goal_lines(binary)))
    for other in (binary, again):
        for key in ("first", "kind", "peer", "size", "tag", "cpu", "nic"):
            assert np.array_equal(getattr(other, key), getattr(found, key)), key
        assert [sorted(part) for part in pairs(other)] == [sorted(part) for part in pairs(found)]


BINARY = goal_bytes(read(
    "num_ranks 2\nrank 0 {\na: calc 5\nb: send 9b to 1\nb requires a\n}\nrank 1 {\nrecv 9b from 0\n}\n"
))
_RANKS, _RECORD = 14 + 2 * 16, 39  # where the block of rank 0 begins; bytes of a record


def test_every_truncation_is_told() -> None:
    assert len(BINARY) > 100
    for size in range(len(BINARY)):
        with pytest.raises(GoalError, match="truncated") if size >= 8 else pytest.raises(GoalError):
            parse_binary_goal("x", "x.bin", BINARY[:size])


@pytest.mark.parametrize(
    ("at", "value", "words"),
    [
        (0, b"\x26\x09", "was spoilt by a run in its place"),
        (8, b"\0", "has 0 ranks"),
        (_RANKS + 8 + 4 + 4, b"\4", "rank 0, operation 0: kind 4 is none of 1 (send), 2 (recv), 3 (calc)"),
        (_RANKS + 8 + 4, b"\1", "waits for 1 dependencies by its own count, but 0 lead to it"),
        (_RANKS + 8, b"\1", "rank 0: its list of roots is not that of the operations without dependency"),
        (_RANKS + 8 + 4 + _RECORD + 5, b"\2", "rank 0, operation 1: peer 2 is beyond the last rank 1"),
        (_RANKS + 8 + 4 + 21, b"\1", "rank 0, operation 0: cpu 1 is beyond the highest of the header, 0"),
        (_RANKS + 8 + 4 + 2 * _RECORD, b"\2", "rank 0: operation 2 is named, the last one is 1"),
        (_RANKS + 8 + 4 + 23, b"\2", "rank 0, operation 0: its successors end at entry 2, the list has 1"),
        (14, b"\x27", "rank 0 lies from 39 to"),
    ],
)
def test_a_binary_that_contradicts_itself(at: int, value: bytes, words: str) -> None:
    spoilt = BINARY[:at] + value + BINARY[at + len(value) :]
    with pytest.raises(GoalError, match=re.escape(words)):
        parse_binary_goal("x", "x.bin", spoilt)


def test_what_stands_behind_the_last_rank_is_refused() -> None:
    with pytest.raises(GoalError, match="but the last rank ends at"):
        parse_binary_goal("x", "x.bin", BINARY + b"\0")


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = read(one("a: calc 5"))
    for form, name in (("goal", "a.goal"), ("goal-binary", "a.bin"), ("goal", "text"), ("goal-binary", "binary")):
        write_goal(schedule, tmp_path / name, form)
        assert is_goal(tmp_path / name)
        assert read_goal(tmp_path / name).size.tolist() == [5]
    with pytest.raises(GoalError, match=r"a\.goal: exists already"):
        write_goal(schedule, tmp_path / "a.goal")
    (tmp_path / "trace.txt").write_text("0 init\n0 finalize\n")
    assert not is_goal(tmp_path / "trace.txt")
    assert not is_goal("shipped:is.A.64")
    (tmp_path / "short.bin").write_bytes(b"\x7f\x10\0")
    with pytest.raises(GoalError, match=r"short\.bin: neither a text \(byte 0x00\) nor a binary schedule"):
        read_goal(tmp_path / "short.bin")
    with pytest.raises(GoalError, match=r"none\.goal: cannot be read: No such file"):
        read_goal(tmp_path / "none.goal")
    monkeypatch.setenv("HOPFORGE_INPUT_MIB", "1")
    (tmp_path / "large.goal").write_bytes(b"\n" * (1 << 20) + b"\n")
    with pytest.raises(GoalError, match="holds more than 1 MiB"):
        read_goal(tmp_path / "large.goal")


# ---- programs as schedules -----------------------------------------------------------------------------------------


def scheduled(tmp_path: Path, programs: list[list[str]], gflops: float | None = 2.0) -> str:
    (tmp_path / "t.txt").write_text("".join(f"{rank} {line}\n" for rank, part in enumerate(programs) for line in part))
    trace = read_trace(tmp_path / "t.txt")
    return "".join(goal_lines(program_schedule("t", compile_program(trace, CollectivesConfig()), gflops)))


def test_a_program_as_a_schedule(tmp_path: Path) -> None:
    text = scheduled(tmp_path, [
        ["init", "isend 1 7 100 6", "compute 5000", "wait 0 1 7", "compute 100", "finalize"],
        ["init", "irecv 0 7 100 6", "sleep 1e-6", "wait 0 1 7", "finalize"],
    ])
    assert text == (
        "num_ranks 2\n"
        "\nrank 0 {\nl1: send 100b to 1\nl2: calc 2500\nl2 irequires l1\nl3: calc 50\nl3 requires l1\n"
        "l3 requires l2\n}\n"
        "\nrank 1 {\nl1: recv 100b from 0\nl2: calc 1000\nl2 irequires l1\n}\n"
    )


def test_messages_of_a_pair_are_told_apart_and_computing_may_take_no_time(tmp_path: Path) -> None:
    text = scheduled(tmp_path, [["send 1 7 0 6", "compute 9", "send 1 8 4 6"], ["recv 0 8 4 6", "recv 0 7 0 6"]], None)
    assert text == (
        "num_ranks 2\n"
        "\nrank 0 {\nl1: send 1b to 1\nl2: send 4b to 1 tag 1\nl2 requires l1\n}\n"
        "\nrank 1 {\nl1: recv 4b from 0 tag 1\nl2: recv 1b from 0\nl2 requires l1\n}\n"
    )


def test_receives_from_anywhere_stand_beside_everything(tmp_path: Path) -> None:
    text = scheduled(tmp_path, [["recv -555 -444 -1 6", "compute 2", "recv -555 -444 -1 6", "compute 4"],
                                ["send 0 1 5 6"], ["send 0 1 6 6"]])
    assert text.startswith(
        "num_ranks 3\n\nrank 0 {\nl1: calc 1\nl2: calc 2\nl2 requires l1\nl3: recv 5b from 1\nl4: recv 6b from 2\n}\n"
    )


# ---- shared references ---------------------------------------------------------------------------------------------


@needs_shared
def test_the_shared_texts_are_judged_as_recommended() -> None:
    assert SHARED is not None
    with (SHARED / "syntax.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 30
    for row in rows:
        text = row["text"].encode().decode("unicode_escape")
        if row["recommended"] == "accept":
            assert parse_goal("x", "x", text).ranks
        else:
            with pytest.raises(GoalError, match=r"^x:\d+: "):
                parse_goal("x", "x", text)


@needs_shared
def test_the_shared_binaries_are_what_we_write() -> None:
    assert SHARED is not None
    found = sorted((SHARED / "schedules").glob("*.bin"))
    assert len(found) > 30
    for place in found:
        schedule = read_goal(place.with_suffix(".goal"))
        assert goal_bytes(schedule) == place.read_bytes(), place.name
        assert goal_bytes(read_goal(place)) == place.read_bytes(), place.name

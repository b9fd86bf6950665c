"""Calls in communicators of a program's own, and ranks that disagree: what a trace says, and what it cannot tell."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config.workload import CollectivesConfig
from hopforge.model.workload.compiled_program import compile_program
from hopforge.model.workload.packet_order import interleave
from hopforge.model.workload.program import Program
from hopforge.model.workload.read_trace import read_trace, write_trace
from hopforge.model.workload.trace import TraceError

#: every block goes straight to its place, so that a list of messages is easy to write down
STRAIGHT = CollectivesConfig(
    bcast="linear", reduce="linear", gather="linear", scatter="linear", alltoall="linear", reduce_scatter="pairwise",
    allgather="ring", scan="linear",
)  # fmt: skip


def write(folder: Path, programs: Sequence[Sequence[str]]) -> Path:
    folder.mkdir(exist_ok=True)
    for rank, lines in enumerate(programs):
        (folder / f"rank-{rank + 1}.txt").write_text("".join(f"{rank} {line}\n" for line in ["init", *lines]))
    return folder


def compiled(folder: Path, programs: Sequence[Sequence[str]], collectives: CollectivesConfig = STRAIGHT) -> Program:
    return compile_program(read_trace(write(folder, programs)), collectives)


def messages(program: Program) -> Counter[tuple[int, int, int]]:
    columns = program.source.tolist(), program.destination.tolist(), program.size_bytes.tolist()
    return Counter(zip(*columns, strict=True))


def test_a_broadcast_in_halves_is_two(tmp_path: Path) -> None:
    odd, even = "communicator 2 3 1", "communicator 1 2 0"
    program = compiled(
        tmp_path / "t", [[even, "bcast@1 10 0"], [odd, "bcast@2 30 1"], [even, "bcast@1 10 0"], [odd, "bcast@2 30 1"]]
    )
    assert messages(program) == {(2, 0, 10): 1, (1, 3, 30): 1}
    trace = read_trace(tmp_path / "t")
    assert dict(trace.communicators) == {1: (2, 0), 2: (3, 1)}
    write_trace(trace, tmp_path / "again")
    again = read_trace(tmp_path / "again")
    assert again.actions == trace.actions
    assert messages(compile_program(again, STRAIGHT)) == messages(program)


def test_counts_and_order_are_by_rank_in_the_communicator(tmp_path: Path) -> None:
    lines = [
        [],
        ["communicator 7 3 1", "alltoallv@7 3 1 2 3 10 20 6 6", "bcast 5", "allgatherv@7 20 10 20 6 6"],
        [],
        ["communicator 7 3 1", "alltoallv@7 11 1 10 11 1 1 6 6", "bcast 5", "allgatherv@7 10 10 20 6 6"],
    ]
    for rank in (0, 2):
        lines[rank] = ["bcast 5"]
    found = messages(compiled(tmp_path / "t", lines))
    assert found == {(1, 3, 1): 1, (3, 1, 10): 2, (1, 3, 20): 1, (0, 1, 5): 1, (0, 2, 5): 1, (0, 3, 5): 1}


OF_TWO = "communicator 1 0 1"


@pytest.mark.parametrize(("programs", "message"), [
    ([["bcast@1 5"], [], []], r"rank-1.txt:2: bcast: no line says which ranks communicator '1' has"),
    ([["bcast@x 5"], [], []], r"rank-1.txt:2: bcast: no line says which ranks communicator 'x' has"),
    ([[OF_TWO, "bcast@1 5"], ["bcast@1 5"], ["compute 1", "bcast@1 5"]],
     r"rank-3.txt:3: rank 2 calls bcast in communicator 1, which has the ranks 0, 1$"),
    ([[OF_TWO], ["communicator 1 1 0"], []], r"rank-2.txt:2: communicator 1 has other ranks in 'communicator 1 0 1'"),
    ([["communicator 1 0 3"], [], []], r"rank-1.txt:2: rank 3 is not one of the 3 ranks"),
    ([["communicator 1 0 0"], [], []], r"rank-1.txt:2: communicator 1 holds a rank twice"),
    ([["communicator 0 0 1"], [], []], r"rank-1.txt:2: communicator 0 is MPI_COMM_WORLD; others begin at 1"),
    ([["communicator 1"], [], []], r"rank-1.txt:2: communicator needs a number and the ranks in it"),
    ([["communicator 1 -1"], [], []], r"rank-1.txt:2: communicator needs whole numbers, not '-1'"),
    ([[OF_TWO, "send@1 0 0 5"], [], []], r"rank-1.txt:3: send has no communicator: collectives have"),
    ([[OF_TWO, "bcast@1 5 2"], [], []], r"rank-1.txt:3: root 2 is not one of the 2 ranks"),
    ([[OF_TWO, "reducescatter@1 1 2 3 0 9"], [], []], r"rank-1.txt:3: reducescatter needs 3 to 4 arguments on 2 ranks"),
    ([[OF_TWO, "bcast@1 5"], [], []],
     r"rank-2.txt: rank 1 calls 0 collectives of communicator 1, rank 0 calls 1; not all call bcast of rank 0 \(.*:3"),
])  # fmt: skip
def test_mistakes(tmp_path: Path, programs: list[list[str]], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        compiled(tmp_path / "t", programs)


@pytest.mark.parametrize(("lines", "message"), [
    # two halves that broadcast other sizes, or with other calls, roots, numbers of calls: no broadcast of the world
    (["bcast 5", "bcast 5", "bcast 9", "bcast 9"], r"rank-3.txt:2: rank 2 calls bcast with 9 bytes where rank 0 has 5"),
    (["bcast 5 0 0", "bcast 5 0 1"], r"rank-2.txt:2: rank 1 calls bcast with 20 bytes where rank 0 has 40"),
    (["reduce 5 0", "reduce 4 0"], r"rank-2.txt:2: rank 1 calls reduce with 4 bytes where rank 0 has 5"),
    (["allreduce 5 0", "allreduce 4 0"], r"rank-2.txt:2: rank 1 calls allreduce with 4 bytes where rank 0 has 5"),
    (["scan 5 0", "scan 4 0"], r"rank-2.txt:2: rank 1 calls scan with 4 bytes where rank 0 has 5"),
    (["gather 5 5", "gather 6 6"], r"rank-2.txt:2: rank 1 calls gather with 6 bytes where rank 0 has 5"),
    (["gatherv 5 5 5", "gatherv 6 0 0"], r"rank-2.txt:2: rank 1 calls gatherv with 6 bytes where rank 0 has 5"),
    (["scatter 5 5", "scatter 6 6"], r"rank-2.txt:2: rank 1 calls scatter with 6 bytes where rank 0 has 5"),
    (["scatterv 5 5 5", "scatterv 0 0 6"], r"rank-2.txt:2: rank 1 calls scatterv with 6 bytes where rank 0 has 5"),
    (["allgather 5 5", "allgather 6 5"], r"rank-2.txt:2: rank 1 calls allgather with 6 bytes where rank 0 has 5"),
    (["allgatherv 5 5 5", "allgatherv 5 4 5"],
     r"rank-1.txt:2: rank 0 calls allgatherv with 5 bytes where rank 1 has 4"),
    (["alltoall 5 5", "alltoall 6 6"], r"rank-2.txt:2: rank 1 calls alltoall with 6 bytes where rank 0 has 5"),
    (["alltoallv 2 1 1 2 1 1", "alltoallv 2 1 1 2 2 1"],
     r"rank-1.txt:2: rank 0 calls alltoallv with 1 bytes where rank 1 has 2"),
    (["reducescatter 5 5 0", "reducescatter 5 6 0"],
     r"rank-2.txt:2: rank 1 calls reducescatter with 6 bytes where rank 0 has 5"),
    (["bcast 5 1", "bcast 5 0"], r"rank-2.txt:2: rank 1 calls bcast with root 0, rank 0 with root 1"),
])  # fmt: skip
def test_what_cannot_be_one_call_of_all_ranks_is_refused(tmp_path: Path, lines: list[str], message: str) -> None:
    expected = rf"{message} \(.*rank-\d.txt:2\); are these calls in communicators of the program's own, which this"
    with pytest.raises(TraceError, match=expected):
        compiled(tmp_path / "t", [[line] for line in lines])


def test_an_earlier_contradiction_is_told_before_a_missing_call(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"rank-2.txt:2: rank 1 calls allreduce where rank 0 calls bcast"):
        compiled(tmp_path / "t", [["bcast 5", "barrier"], ["allreduce 5 0"]])


def test_sizes_that_a_trace_does_not_know_are_no_contradiction(tmp_path: Path) -> None:
    for programs, size in (
        ([["bcast 5 0 -1"], ["bcast 7 0 6"]], 0),  # a datatype without a size
        ([["gather 0 5 0 6 6"], ["gather 5 0 6 6"]], 5),  # the root's own part is in place
        ([["bcast 10 0 1"], ["bcast 5 0 0"]], 40),  # the same bytes
    ):
        assert sorted(compiled(tmp_path / "t", programs).size_bytes.tolist()) == [size]


# ---- the net: random programs in random communicators, against what MPI says ----------------------------------------


def drawn_call(rng: np.random.Generator, members: Sequence[int], at: str) -> tuple[list[str], Counter]:
    """Draw one collective: the line of each member, and the messages between ranks of the world."""
    p = len(members)
    name = str(rng.choice(["bcast", "reduce", "gather", "gatherv", "scatter", "scatterv", "alltoall", "alltoallv"]))
    size, root = int(rng.integers(1, 50)), int(rng.integers(p))
    sizes = rng.integers(0, 50, (p, p))
    own = sizes[0]
    found: Counter[tuple[int, int, int]] = Counter()
    for s in range(p):
        for d in range(p):
            sent = {
                "bcast": size if s == root else None, "reduce": size if d == root else None,
                "gather": size if d == root else None, "gatherv": int(own[s]) if d == root else None,
                "scatter": size if s == root else None, "scatterv": int(own[d]) if s == root else None,
                "alltoall": size, "alltoallv": int(sizes[s, d]),
            }[name]  # fmt: skip
            if s != d and sent is not None:
                found[members[s], members[d], sent] += 1

    def line(me: int) -> str:
        mine = " ".join(map(str, own))
        return {
            "bcast": f"{size} {root}", "reduce": f"{size} 0 {root}", "gather": f"{size} {size} {root} 6 6",
            "gatherv": f"{own[me]} {mine} {root} 6 6", "scatter": f"{size} {size} {root} 6 6",
            "scatterv": f"{mine} {own[me]} {root} 6 6", "alltoall": f"{size} {size} 6 6",
            "alltoallv": f"0 {' '.join(map(str, sizes[me]))} 0 {' '.join(map(str, sizes[:, me]))} 6 6",
        }[name]  # fmt: skip

    return [f"{name}{at} {line(me)}" for me in range(p)], found


def drawn_program(rng: np.random.Generator, told: bool) -> tuple[list[list[str]], Counter]:
    """Draw a program of splits: in each step all ranks, divided anew, call something in their part."""
    ranks = int(rng.integers(2, 9))
    programs: list[list[str]] = [[] for _ in range(ranks)]
    expected: Counter[tuple[int, int, int]] = Counter()
    numbers: dict[tuple[int, ...], int] = {tuple(range(ranks)): 0}
    for _ in range(int(rng.integers(1, 8 if told else 3))):
        colour = rng.integers(0, int(rng.integers(1, 4)), ranks)
        for each in np.unique(colour):
            members = tuple(rng.permutation(np.flatnonzero(colour == each)).tolist())
            if rng.random() < 0.3:
                members = tuple(sorted(members))
            if told and members not in numbers:
                numbers[members] = len(numbers)
                for rank in members:
                    programs[rank].append(f"communicator {numbers[members]} {' '.join(map(str, members))}")
            number = numbers.get(members, 0)
            lines, found = drawn_call(rng, members, f"@{number}" if number else "")
            expected += found
            for rank, line in zip(members, lines, strict=True):
                programs[rank].append(line)
        if rng.random() < 0.5:
            a, b = rng.choice(ranks, 2, replace=False).tolist()
            programs[a].append(f"send {b} 0 77")
            programs[b].append(f"recv {a} 0 77")
            expected[a, b, 77] += 1
    return programs, expected


@pytest.mark.parametrize("seed", range(60))
def test_random_splits_send_what_mpi_says(tmp_path: Path, seed: int) -> None:
    programs, expected = drawn_program(np.random.default_rng(seed), told=True)
    found = compiled(tmp_path / "t", programs)
    assert messages(found) == expected
    trace = read_trace(tmp_path / "t")
    interleave(found, np.arange(found.ranks), 64, trace)  # comes to its end
    for rank in range(found.ranks):  # calls in the order of the trace
        assert (np.diff(found.action[found.first[rank] : found.first[rank + 1]]) >= 0).all()


def one_call_of_the_world(lines: Sequence[str]) -> bool:
    """Whether lines can be one call of all ranks: as MPI says, from the texts alone."""
    words = [line.split() for line in lines]
    name, p = words[0][0], len(lines)
    if any(each[0] != name or len(each) != len(words[0]) for each in words):
        return False
    values = [[int(word) for word in each[1:]] for each in words]
    roots = {"bcast": 1, "reduce": 2, "gather": 2, "gatherv": 1 + p, "scatter": 2, "scatterv": 1 + p}
    if name in roots:
        if any(len(each) <= roots[name] for each in values) or len({each[roots[name]] for each in values}) > 1:
            return False
        root = values[0][roots[name]]
        if root >= p:
            return False
    if name in ("bcast", "reduce"):
        return len({each[0] for each in values}) == 1
    if name in ("gather", "scatter"):
        mine = 0 if name == "gather" else 1
        return all(each[mine] == values[root][1 - mine] for k, each in enumerate(values) if k != root)
    if name == "gatherv":
        return all(each[0] == values[root][1 + k] for k, each in enumerate(values) if k != root)
    if name == "scatterv":
        return all(each[p] == values[root][k] for k, each in enumerate(values) if k != root)
    if name == "alltoall":
        return len({number for each in values for number in each[:2]}) == 1
    return len(values[0]) == 2 * p + 4 and all(
        values[s][1 + d] == values[d][2 + p + s] for s in range(p) for d in range(p) if s != d
    )


@pytest.mark.parametrize("seed", range(100))
def test_random_splits_without_communicators_are_refused_or_one_call(tmp_path: Path, seed: int) -> None:
    """As SimGrid records them: what cannot be calls of the world is refused, with a file and a line."""
    rng = np.random.default_rng(1000 + seed)
    programs, _ = drawn_program(rng, told=False)
    calls = [[line for line in program if line.split()[0] not in ("send", "recv")] for program in programs]
    possible = len({len(each) for each in calls}) == 1 and all(map(one_call_of_the_world, zip(*calls, strict=True)))
    if possible:
        assert compiled(tmp_path / "t", programs).ranks == len(programs)
    else:
        with pytest.raises(TraceError, match=r"rank-\d.txt:\d+"):
            compiled(tmp_path / "t", programs)


def test_the_nets_see_both_sides() -> None:
    drawn = [drawn_program(np.random.default_rng(1000 + seed), told=False)[0] for seed in range(100)]
    possible = 0
    for programs in drawn:
        calls = [[line for line in program if line.split()[0] not in ("send", "recv")] for program in programs]
        possible += len({len(e) for e in calls}) == 1 and all(map(one_call_of_the_world, zip(*calls, strict=True)))
    assert 5 < possible < 95

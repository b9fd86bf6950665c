"""Communicators of compiled programs: what the library notes goes into the trace, or it is told why not."""

import shutil
import stat
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.workload.compiled_program import compile_program
from hopforge.model.workload.read_trace import read_trace
from hopforge.sim.programs.application import run_app
from hopforge.sim.programs.record_communicators import CommunicatorError, add_communicators, recorder
from hopforge.sim.programs.smpi_execution import execution_rows, run_executable, write_execution

simgrid = pytest.mark.skipif(shutil.which("smpirun") is None, reason="SimGrid is not installed")

STRAIGHT = "{bcast: linear, reduce: linear, gather: linear, scatter: linear, alltoall: linear, allgather: ring}"
CONFIG = (
    "name: t\ntopology: {kind: torus, radices: [4, 3]}\n"
    f"workload: {{kind: collective, operation: barrier, collectives: {STRAIGHT}}}\n"
)


def write(folder: Path, texts: dict[str, str]) -> Path:
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


def test_what_was_noted_goes_into_the_trace(tmp_path: Path) -> None:
    trace = write(tmp_path / "t", {
        "1_rank-0.txt": "0 init\n0 bcast 5 1 6\n0 barrier\n0 bcast 5 1 6\n",
        "1_rank-1.txt": "1 init\n1 barrier\n",
        "1_rank-2.txt": "2 init\n2 bcast 5 1 6\n2 barrier\n2 bcast 5 1 6\n",
    })  # fmt: skip
    half = "bcast 2 0\nbarrier\nbcast 2 0\n"
    add_communicators(trace, write(tmp_path / "n", {"0": half, "1": "barrier\n", "2": half}))
    text = (trace / "1_rank-2.txt").read_text()
    assert text == "2 init\n2 communicator 1 2 0\n2 bcast@1 5 1 6\n2 barrier\n2 bcast@1 5 1 6\n"
    found = compile_program(read_trace(trace), parse_config(CONFIG).workload.collectives)
    pairs = Counter(zip(found.source.tolist(), found.destination.tolist(), found.size_bytes.tolist(), strict=True))
    assert pairs[0, 2, 5] == 2
    assert sum(count for (_, _, size), count in pairs.items() if size) == 2


@pytest.mark.parametrize(("noted", "message"), [
    ("bcast 2 0\n", r"rank 0 calls barrier in the trace where nothing was noted"),
    ("barrier\nbcast 2 0\n", r"rank 0 calls bcast in the trace where barrier was noted"),
])
def test_other_calls_than_those_of_the_trace(tmp_path: Path, noted: str, message: str) -> None:
    content = "0 init\n0 bcast 5 1 6\n0 barrier\n"
    trace = write(tmp_path / "t", {"rank-0.txt": content})
    with pytest.raises(CommunicatorError, match=message):
        add_communicators(trace, write(tmp_path / "n", {"0": noted}))
    assert (trace / "rank-0.txt").read_text() == content


def test_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CommunicatorError, match=r"^smpicc is not installed$"):
        recorder(tmp_path)
    (tmp_path / "smpicc").write_text("#!/bin/sh\necho first >&2\necho no header >&2\nexit 1\n")
    (tmp_path / "smpicc").chmod(stat.S_IRWXU)
    with pytest.raises(CommunicatorError, match=r"^smpicc failed: no header$"):
        recorder(tmp_path)
    (tmp_path / "a b").mkdir()
    with pytest.raises(CommunicatorError, match=r"a b holds a space, which smpirun -wrapper cannot pass on$"):
        recorder(tmp_path / "a b")


# ---- with SimGrid ----------------------------------------------------------------------------------------------------

HEAD = """#include <mpi.h>
#include <stdlib.h>
int main(int c, char **v) {
    int rank; MPI_Comm part;
    char *out = calloc(1, 1 << 16), *in = calloc(1, 1 << 16);
    MPI_Init(&c, &v); MPI_Comm_rank(MPI_COMM_WORLD, &rank);
"""
CALLS = {
    "bcast": "MPI_Bcast(out, {size}, MPI_CHAR, {root}, part);",
    "reduce": "MPI_Reduce(out, in, {size}, MPI_CHAR, MPI_MAX, {root}, part);",
    "gather": "MPI_Gather(out, {size}, MPI_CHAR, in, {size}, MPI_CHAR, {root}, part);",
    "scatter": "MPI_Scatter(out, {size}, MPI_CHAR, in, {size}, MPI_CHAR, {root}, part);",
    "alltoall": "MPI_Alltoall(out, {size}, MPI_CHAR, in, {size}, MPI_CHAR, part);",
}


def drawn(rng: np.random.Generator, ranks: int) -> tuple[str, Counter[tuple[int, int, int]]]:
    """Draw a program in C that divides its ranks anew in each step, and what its calls send."""
    text, expected = HEAD, Counter[tuple[int, int, int]]()
    for _ in range(4):
        colour, key = rng.integers(0, int(rng.integers(1, 4)), ranks), rng.permutation(ranks)
        array = "(int[]){{{}}}[rank]".format
        text += (
            f"    MPI_Comm_split(MPI_COMM_WORLD, {array(', '.join(map(str, colour)))},"
            f" {array(', '.join(map(str, key)))}, &part);\n"
        )
        for each in np.unique(colour).tolist():
            members = sorted(np.flatnonzero(colour == each).tolist(), key=lambda rank: key[rank])
            name, size = str(rng.choice(list(CALLS))), int(rng.integers(1, 99))
            root = int(rng.integers(len(members)))
            text += f"    if ({array(', '.join(map(str, colour)))} == {each}) {{"
            text += f" {CALLS[name].format(size=size, root=root)} }}\n"
            for s in members:
                for d in members:
                    first = members[root] in ((s,) if name in ("bcast", "scatter") else (d,)) or name == "alltoall"
                    if s != d and first:
                        expected[s, d, size] += 1
        text += "    MPI_Comm_free(&part);\n"
    return f"{text}    MPI_Finalize(); return 0;\n}}\n", expected


@simgrid
@pytest.mark.parametrize("seed", range(3))
def test_random_splits_are_recorded(tmp_path: Path, seed: int) -> None:
    text, expected = drawn(np.random.default_rng(seed), 7)
    (tmp_path / "program.c").write_text(text)
    subprocess.run(["smpicc", "-o", tmp_path / "program", tmp_path / "program.c"], check=True, capture_output=True)
    config = parse_config(CONFIG)
    run = run_executable(config, tmp_path / "program", 7)
    assert (run.untold, run.unmatched) == ("", "")
    assert "communicators" not in dict(execution_rows(run))
    found = compile_program(run.trace, config.workload.collectives)
    pairs = zip(found.source.tolist(), found.destination.tolist(), found.size_bytes.tolist(), strict=True)
    assert Counter(pairs) == expected
    assert run.found.messages == sum(expected.values())
    write_execution(config, run, tmp_path / "out")
    for backend in ("embedded", "simgrid"):  # what was recorded runs in both
        file = f"kind: trace, file: {tmp_path / 'out' / 'trace'}"
        replay = CONFIG.replace("kind: collective, operation: barrier", file)
        assert run_app(parse_config(f"{replay}app: {{backend: {backend}}}\n")).found.messages == sum(expected.values())


@simgrid
def test_without_a_recorder_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, _ = drawn(np.random.default_rng(1), 4)
    (tmp_path / "program.c").write_text(text)
    subprocess.run(["smpicc", "-o", tmp_path / "program", tmp_path / "program.c"], check=True, capture_output=True)

    def none(folder: Path) -> list[str]:
        raise CommunicatorError("smpicc is not installed")

    monkeypatch.setattr("hopforge.sim.programs.smpi_execution.recorder", none)
    run = run_executable(parse_config(CONFIG), tmp_path / "program", 4)
    assert dict(execution_rows(run))["communicators"].endswith("of MPI_COMM_WORLD: smpicc is not installed")

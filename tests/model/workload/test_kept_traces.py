"""Parsed traces that are kept: the same as a fresh read, and never more than that."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from hopforge.model import input_file
from hopforge.model.workload import kept_traces
from hopforge.model.workload.kept_traces import kept_trace
from hopforge.model.workload.read_trace import read_trace
from hopforge.model.workload.trace import Trace, TraceError

RANKS, LINES = 3, 9000


@pytest.fixture
def reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Use a cache of the test's own; return a list of the sources that are really read."""
    found: list[str] = []

    def counted(source: str | Path) -> Trace:
        found.append(str(source))
        return read_trace(source)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_traces, "read_trace", counted)
    return found


def write(folder: Path, seed: int = 1, first: str = "init") -> Path:
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(seed)
    calls = ["compute {}", "send 1 0 {}", "bcast {} 0 1", "communicator 3 2 0", "bcast@3 {} 1"]
    for rank in range(RANKS):
        rows = [f"{rank} {calls[k].format(n)}\n" for k, n in rng.integers(0, (5, 200), (LINES, 2)).tolist()]
        (folder / f"rank-{rank}.txt").write_text(f"{rank} {first}\n" + "".join(rows))
    return folder


def packed(folder: Path) -> Path:
    with tarfile.open(folder.with_suffix(".tar.gz"), "w:gz", compresslevel=1) as archive:
        archive.add(folder, arcname=folder.name)
    return folder.with_suffix(".tar.gz")


def in_one(folder: Path) -> Path:
    """Write all ranks in one text, line by line, with remarks and empty lines between."""
    columns = zip(*(item.read_text().splitlines() for item in sorted(folder.iterdir())), strict=True)
    path = folder.with_suffix(".trace")
    path.write_text("# all\n\n" + "\n # and\n".join("\n".join(rows) for rows in columns))
    return path


def kept(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "hopforge" / "traces").glob("*"))


def assert_same(one: Trace, other: Trace) -> None:
    assert (one.name, one.actions, one.files) == (other.name, other.actions, other.files)
    assert [lines.tolist() for lines in one.lines] == [lines.tolist() for lines in other.lines]
    assert dict(one.communicators) == dict(other.communicators)


@pytest.mark.parametrize("form", [Path, packed, in_one])
def test_a_second_read_takes_what_is_kept(tmp_path: Path, reads: list[str], form) -> None:
    source = form(write(tmp_path / "t"))
    fresh = read_trace(source)
    assert_same(kept_trace(source), fresh)
    assert reads == [str(source)]
    assert_same(kept_trace(source), fresh)
    assert reads == [str(source)]
    assert [item.suffix for item in kept(tmp_path)] == [".npz"]
    assert fresh.where(2, 5).startswith(str(source))


def test_what_counts_is_the_contents(tmp_path: Path, reads: list[str]) -> None:
    first, second = write(tmp_path / "a"), write(tmp_path / "b")
    kept_trace(first)
    found = kept_trace(second)
    assert reads == [str(first)]
    assert_same(found, read_trace(second))  # with the files of the second
    with (second / "rank-0.txt").open("a") as file:
        file.write("0 finalize\n")
    assert kept_trace(second).action(0, -1).name == "finalize"
    (first / "rank-2.txt").rename(first / "rank-9.txt")
    assert kept_trace(first).files[2].endswith("rank-9.txt")
    assert reads == [str(first), str(second), str(first)]


def test_what_was_not_read_is_an_input_all_the_same(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results must not replace it (`model.output.destination`)."""
    source = write(tmp_path / "t")
    kept_trace(source)
    monkeypatch.setattr(input_file, "_known", {})
    kept_trace(source)
    assert len(reads) == 1
    assert input_file.input_at(source / "rank-1.txt") == source / "rank-1.txt"


def test_another_parser_reads_again(tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    source = write(tmp_path / "t")
    kept_trace(source)
    monkeypatch.setattr(kept_traces, "_parser", lambda: b"of another version")
    kept_trace(source)
    assert len(reads) == 2


@pytest.mark.parametrize("harm", ["cut", "flip", "pickle", "wrong", "empty"])
def test_a_damaged_one_is_read_anew(tmp_path: Path, reads: list[str], harm: str) -> None:
    source = write(tmp_path / "t")
    fresh = kept_trace(source)
    (place,) = kept(tmp_path)
    content = bytearray(place.read_bytes())
    if harm == "cut":
        place.write_bytes(content[: len(content) // 2])
    elif harm == "flip":
        for at in range(100, len(content), 97):
            content[at] ^= 1
        place.write_bytes(content)
    elif harm == "empty":
        place.write_bytes(b"")
    else:
        with np.load(place) as arrays:
            held = {name: arrays[name] for name in arrays.files}
        if harm == "pickle":
            held["first"] = np.array([print], dtype=object)
        else:
            held["numbers"] = held["numbers"] + np.uint8(200)
        with place.open("wb") as file:
            np.savez(file, **held)
    assert_same(kept_trace(source), fresh)
    assert_same(kept_trace(source), fresh)
    assert len(reads) == 2


def test_all_together_stay_below_a_limit(tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [write(tmp_path / f"t{seed}", seed) for seed in range(4)]
    kept_trace(sources[0])
    (first,) = kept(tmp_path)
    os.utime(first, (1, 1))
    monkeypatch.setattr(kept_traces, "KEPT_BYTES", int(2.5 * first.stat().st_size))
    for source in sources[1:]:
        kept_trace(source)
    assert len(kept(tmp_path)) == 2
    kept_trace(sources[3])
    assert len(reads) == 4
    kept_trace(sources[0])  # the oldest was deleted
    assert len(reads) == 5


def test_mistakes_are_told_as_without(tmp_path: Path, reads: list[str]) -> None:
    source = write(tmp_path / "t")
    with (source / "rank-1.txt").open("a") as file:
        file.write("1 compute 5\n1 sned 0\n")
    for _ in range(2):
        with pytest.raises(TraceError, match=rf"rank-1.txt:{LINES + 3}: unknown action 'sned'"):
            kept_trace(source)
    assert kept(tmp_path) == []
    with pytest.raises(TraceError, match=r"none: cannot be read: No such file"):
        kept_trace(tmp_path / "none")


def test_small_ones_and_those_without_a_folder_are_not_kept(tmp_path: Path, reads: list[str]) -> None:
    small = tmp_path / "small.trace"
    small.write_text("0 init\n")
    kept_trace(small)
    kept_trace("shipped:ft.A.64")
    assert kept(tmp_path) == []
    (tmp_path / "cache" / "hopforge" / "traces").rmdir()
    (tmp_path / "cache" / "hopforge" / "traces").write_text("no folder")
    source = write(tmp_path / "t")
    kept_trace(source)
    kept_trace(source)
    assert reads[-2:] == [str(source)] * 2


def spent(source: Path, cache: Path) -> tuple[float, float]:
    """Seconds of the processor and MB that a process of its own takes to read a trace."""
    text = (
        "import resource, sys, time; from hopforge.model.workload.kept_traces import kept_trace;"
        "begin = time.process_time(); kept_trace(sys.argv[1]); end = time.process_time();"
        "print(end - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", text, source], check=True, capture_output=True, text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
    )  # fmt: skip
    seconds, megabytes = map(float, done.stdout.split())
    return seconds, megabytes


def write_many(folder: Path, ranks: int, lines: int) -> Path:
    """Write as many lines as a recording has: calls repeat, computing takes thousands of different amounts."""
    folder.mkdir()
    rng = np.random.default_rng(3)
    for rank in range(ranks):
        rows = [f"{rank} send {(rank + 1) % ranks} {k} {1000 + k} 0\n" for k in range(40)]
        rows += [f"{rank} compute {100 * k}\n" for k in range(1, 5000)]
        every = rng.integers(0, 80, lines)
        every = np.where(every < 40, every, 40 + rng.integers(0, 4999, lines))
        (folder / f"rank-{rank + 1}.txt").write_text("".join(rows[k] for k in every.tolist()))
    return folder


def test_memory_of_a_read(tmp_path: Path) -> None:
    """Half a million lines: 100 bytes a line at most above what Python and numpy take (before: 160)."""
    source = write_many(tmp_path / "t", 4, 125_000)
    base = spent(write(tmp_path / "small"), tmp_path / "none")[1]
    fresh, again = (spent(source, tmp_path / "cache") for _ in range(2))
    assert max(fresh[1], again[1]) - base < 50


@pytest.mark.study
def test_eight_million_lines(tmp_path: Path) -> None:
    source = write_many(tmp_path / "t", 64, 125_000)
    fresh, again = (spent(source, tmp_path / "cache") for _ in range(2))
    assert fresh[0] < 10  # 3 s on a quiet machine
    assert again[0] < 2
    assert max(fresh[1], again[1]) < 500


def test_files_of_the_folder_that_one_is_in(tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "t")
    monkeypatch.chdir(folder)
    for source in (".", ".", str(folder), "../t/"):
        assert kept_trace(source).files == read_trace(source).files
    assert reads == ["."], "the others are kept"

"""Reading, writing and refusing traces; the shipped ones against facts that awk can count."""

import io
import tarfile

import numpy as np
import pytest

from hopforge.model.workload.read_trace import read_trace, write_trace
from hopforge.model.workload.trace import DATATYPES, Action, TraceError
from hopforge.model.workload.trace_files import shipped_traces
from hopforge.model.workload.trace_line import _LAYOUT, _TEXT, format_action

EVERY_ACTION = [  # as SimGrid 3.32 writes them, on 3 ranks
    ("init", Action("init")),
    ("init 1", Action("init", text="1")),
    ("comm_size 3", Action("comm_size", text="3")),
    ("comm_split 3 0 1", Action("comm_split", text="3 0 1")),
    ("comm_dup", Action("comm_dup")),
    ("communicator 1 2 0", Action("communicator", text="1 2 0")),
    ("send 1 7 1750 0", Action("send", peer=1, tag=7, count=1750, datatype=0)),
    ("isend 1 7 5e3", Action("isend", peer=1, tag=7, count=5000)),
    ("recv 2 7 1750 0", Action("recv", peer=2, tag=7, count=1750, datatype=0)),
    ("recv -555 -444 -1 6", Action("recv", peer=-555, tag=-444, count=-1, datatype=6)),
    ("irecv 2 7 10 43", Action("irecv", peer=2, tag=7, count=10, datatype=43)),
    ("sendRecv 5 1 6 2 1 1", Action("sendRecv", count=5, peer=1, recv_count=6, source=2, datatype=1, recv_datatype=1)),
    ("wait 2 0 7", Action("wait", source=2, peer=0, tag=7)),
    ("test 2 0 7", Action("test", source=2, peer=0, tag=7)),
    ("waitall 4", Action("waitall", text="4")),
    ("waitall", Action("waitall")),
    ("barrier", Action("barrier")),
    ("bcast 100 2 1", Action("bcast", count=100, root=2, datatype=1)),
    ("bcast 100", Action("bcast", count=100)),
    ("reduce 1 0 2 43", Action("reduce", count=1, root=2, datatype=43)),
    ("allreduce 1029 250.5 1", Action("allreduce", count=1029, amount=250.5, datatype=1)),
    ("alltoall 8 9 1 2", Action("alltoall", count=8, recv_count=9, datatype=1, recv_datatype=2)),
    (
        "alltoallv 100 1 7 10 90 5 6 7 1 1",
        Action(
            "alltoallv", count=100, counts=(1, 7, 10), recv_count=90, recv_counts=(5, 6, 7), datatype=1, recv_datatype=1
        ),
    ),
    ("gather 68 68 1 0 0", Action("gather", count=68, recv_count=68, root=1, datatype=0, recv_datatype=0)),
    ("gather 68 1 0 2", Action("gather", count=68, recv_count=0, root=1, datatype=0, recv_datatype=2)),
    ("gatherv 68 5 6 7 1 0 2", Action("gatherv", count=68, recv_counts=(5, 6, 7), root=1, datatype=0, recv_datatype=2)),
    ("scatter 68 68 1 0 0", Action("scatter", count=68, recv_count=68, root=1, datatype=0, recv_datatype=0)),
    (
        "scatterv 5 6 7 68 1 0 2",
        Action("scatterv", counts=(5, 6, 7), recv_count=68, root=1, datatype=0, recv_datatype=2),
    ),
    ("allgather 5 6 0 2", Action("allgather", count=5, recv_count=6, datatype=0, recv_datatype=2)),
    ("allgatherv 5 5 6 7 0 2", Action("allgatherv", count=5, recv_counts=(5, 6, 7), datatype=0, recv_datatype=2)),
    ("reducescatter 5 6 7 1.5 2", Action("reducescatter", counts=(5, 6, 7), amount=1.5, datatype=2)),
    ("scan 5 0 2", Action("scan", count=5, datatype=2)),
    ("exscan 5 0 2", Action("exscan", count=5, datatype=2)),
    ("compute 2.08392e+07", Action("compute", amount=2.08392e7)),
    ("sleep 0.25", Action("sleep", amount=0.25)),
    ("location src/main.c 12", Action("location", text="src/main.c 12")),
    ("finalize", Action("finalize")),
]


def write_ranks(folder, *programs):
    folder.mkdir(exist_ok=True)
    for rank, lines in enumerate(programs):
        (folder / f"rank-{rank + 1}.txt").write_text("".join(f"{rank} {line}\n" for line in lines))
    return folder


def test_every_action_is_covered_by_the_examples():
    assert {action.name for _, action in EVERY_ACTION} == set(_LAYOUT) | set(_TEXT)


@pytest.mark.parametrize(("line", "action"), EVERY_ACTION, ids=[line.replace(" ", "_") for line, _ in EVERY_ACTION])
def test_line_by_line(tmp_path, line, action):
    trace = read_trace(write_ranks(tmp_path / "t", [line], ["init"], ["init"]))
    assert trace.actions[0] == (action,)
    again = read_trace(write_ranks(tmp_path / "u", [format_action(action)], ["init"], ["init"]))
    assert again.actions[0] == (action,)


def test_displacements_after_allgatherv_are_taken(tmp_path):
    trace = read_trace(write_ranks(tmp_path / "t", ["allgatherv 5 5 6 7 0 2 0 5 11"], ["init"], ["init"]))
    assert trace.actions[0][0].recv_counts == (5, 6, 7)


def test_write_then_read(tmp_path):
    trace = read_trace("shipped:is.A.64")
    write_trace(trace, tmp_path / "deep" / "copy")
    again = read_trace(tmp_path / "deep" / "copy")
    assert again.actions == trace.actions
    assert again.ranks == 64
    with pytest.raises(TraceError, match=r"copy: exists already"):
        write_trace(trace, tmp_path / "deep" / "copy")
    assert [item.name for item in (tmp_path / "deep").iterdir()] == ["copy"]


def test_shipped_traces():
    assert shipped_traces() == ("ft.A.64", "is.A.64")
    names = [action.name for action in read_trace("shipped:is.A.64").actions[0]]
    assert (names.count("alltoallv"), names.count("allreduce"), names.count("reduce")) == (11, 11, 2)
    ft = read_trace("shipped:ft.A.64")
    assert [a for a in ft.actions[63] if a.name == "alltoall"] == [
        Action("alltoall", count=2048, recv_count=2048, datatype=43, recv_datatype=43)
    ] * 8
    with pytest.raises(TraceError, match=r"shipped:lu: hopforge comes with shipped:ft.A.64, shipped:is.A.64"):
        read_trace("shipped:lu")


def test_sources_of_one_program_agree(tmp_path):
    programs = [["init", "send 1 0 10", "finalize"], ["init", "recv 0 0 10", "finalize"]]
    folder = write_ranks(tmp_path / "folder", *programs)
    for suffix, mode in ((".tar", "w"), (".tar.gz", "w:gz"), (".tar.xz", "w:xz")):
        with tarfile.open(tmp_path / f"prog{suffix}", mode) as archive:
            archive.add(folder, arcname="prog")
        assert read_trace(tmp_path / f"prog{suffix}").actions == read_trace(folder).actions
        assert read_trace(tmp_path / f"prog{suffix}").name == "prog"
    mixed = tmp_path / "all.txt"
    mixed.write_text("# both\n0 init\n1 init\n0 send 1 0 10\n1 recv 0 0 10\n\n1 finalize\n0 finalize\n")
    trace = read_trace(mixed)
    assert trace.actions == read_trace(folder).actions
    assert trace.where(1, 1) == f"{mixed}:5"


def test_default_datatype_is_that_of_init(tmp_path):
    trace = read_trace(write_ranks(tmp_path / "t", ["init"], ["init 1"]))
    assert [DATATYPES[trace.default_datatype(rank)] for rank in (0, 1)] == [("BYTE", 1), ("DOUBLE", 8)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("sned 1 0 10", r"unknown action 'sned' \(known: allgather, "),
        ("send 1 0", r"send needs 3 to 4 arguments on 2 ranks, not 2"),
        ("send 1 0 ten", r"count must be a number, not 'ten'"),
        ("send 1 0 nan", r"count must be finite, not 'nan'"),
        ("send 1 0 -5", r"count must not be negative, not -5"),
        ("send 1 0 10 77", r"unknown datatype 77 \(SimGrid numbers them -1 to 59\)"),
        ("send 2 0 10", r"rank 2 is not one of the 2 ranks"),
        ("send one 0 10", r"peer must be a whole number, not 'one'"),
        ("bcast 10 2", r"root 2 is not one of the 2 ranks"),
        ("alltoallv 10 1 2 10 3 4 5 6 7", r"alltoallv needs 6 to 8 arguments on 2 ranks, not 9"),
        ("compute", r"compute needs 1 arguments on 2 ranks, not 0"),
        ("location here", r"location needs 2 arguments, not 1"),
        ("", r"expected an action after the rank"),
        ("send 1 0 1e300 6", r"count must be at most 281474976710656, not 1e300"),
        ("recv 1 0 1e300", r"count must be at most 281474976710656, not 1e300"),
        ("recv 1 99999999999999999999 1", r"tag must be from -2147483648 to 2147483647, not '99999999999999999999'"),
        ("alltoallv 1 1 281474976710657 1 1 1", r"counts must be at most 281474976710656, not 281474976710657"),
        ("compute -5", r"amount must not be negative, not -5"),
        ("sleep -0.1", r"amount must not be negative, not -0.1"),
    ],
)
def test_malformed_lines_are_told_by_file_and_line(tmp_path, line, message):
    folder = write_ranks(tmp_path / "t", ["init", "compute 5", line], ["init"])
    with pytest.raises(TraceError, match=rf"rank-1\.txt:3: {message}"):
        read_trace(folder)


@pytest.mark.parametrize("behind", ["compute 5", "finalize", "init"])
def test_nothing_stands_behind_finalize(tmp_path, behind):
    folder = write_ranks(tmp_path, ["init", "finalize"], ["init", "barrier", "finalize", behind])
    with pytest.raises(TraceError, match=rf"rank-2\.txt:4: {behind.split()[0]} stands behind finalize \(line 3\)"):
        read_trace(folder)


def test_bad_files(tmp_path):
    with pytest.raises(TraceError, match=r"none: cannot be read: No such file"):
        read_trace(tmp_path / "none")
    folder = write_ranks(tmp_path / "t", ["init"], ["init"], ["init"], ["init"])
    (folder / "rank-2.txt").unlink()
    with pytest.raises(TraceError, match=r"t: rank 1 is missing; the highest rank is 3"):
        read_trace(folder)
    (folder / "rank-3.txt").unlink()
    with pytest.raises(TraceError, match=r"t: rank 1 is missing \(and 1 more\); the highest rank is 3"):
        read_trace(folder)
    (folder / "rank-2.txt").write_text("0 init\n")
    with pytest.raises(TraceError, match=r"rank-2.txt:1: rank 0 has lines in .*rank-1.txt already"):
        read_trace(folder)
    (folder / "rank-2.txt").write_text("x init\n")
    with pytest.raises(TraceError, match=r"rank-2.txt:1: expected a rank, not 'x'"):
        read_trace(folder)
    for letter in "x7":
        (folder / "rank-2.txt").write_text(letter * 5000)
        with pytest.raises(TraceError, match=rf"rank-2.txt:1: expected a rank, not '{letter * 40}…'$"):
            read_trace(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceError, match=r"empty: holds no trace"):
        read_trace(tmp_path / "empty")
    (tmp_path / "noise.tar.xz").write_bytes(bytes(range(256)) * 4)
    with pytest.raises(TraceError, match=r"noise.tar.xz: is neither a text nor a tar archive"):
        read_trace(tmp_path / "noise.tar.xz")


@pytest.mark.parametrize("kind", ["xz", "gz", "bz2"])
def test_archive_with_changed_bytes(tmp_path, kind):
    rng = np.random.default_rng(7)
    folder = write_ranks(tmp_path / "t", *[[f"compute {n}" for n in rng.integers(0, 2**40, 2000)]] * 2)
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=f"w:{kind}") as archive:
        archive.add(folder, arcname="t")
    damaged = bytearray(data.getvalue())
    for place in range(len(damaged) // 2, len(damaged) // 2 + 64):
        damaged[place] ^= 0xFF
    (tmp_path / f"t.tar.{kind}").write_bytes(damaged)
    with pytest.raises(TraceError, match=rf"t.tar.{kind}[:/]"):
        read_trace(tmp_path / f"t.tar.{kind}")


def test_a_rank_that_is_not_text_is_named(tmp_path):
    folder = write_ranks(tmp_path / "t", ["init"], ["init"])
    (folder / "rank-1.txt").write_bytes(b"1 init\n\xff\n")
    with pytest.raises(TraceError, match=r"t/rank-1.txt: not UTF-8 text \(byte 0xff\)$"):
        read_trace(folder)
    with tarfile.open(tmp_path / "t.tar.xz", "w:xz") as archive:
        archive.add(folder, arcname="t")
    with pytest.raises(TraceError, match=r"t.tar.xz/t/rank-1.txt: not UTF-8 text \(byte 0xff\)$"):
        read_trace(tmp_path / "t.tar.xz")


def test_cut_archive(tmp_path):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        archive.add(write_ranks(tmp_path / "t", *[[f"compute {i}" for i in range(2000)]] * 20), arcname="t")
    (tmp_path / "cut.tar.gz").write_bytes(data.getvalue()[: len(data.getvalue()) // 2])
    with pytest.raises(TraceError, match=r"cut.tar.gz: damaged archive"):
        read_trace(tmp_path / "cut.tar.gz")

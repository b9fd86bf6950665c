"""Results replace no input, no file of another kind and no special file."""

import os
import subprocess
import sys
from contextvars import copy_context
from pathlib import Path

import pytest

from hopforge import cli
from hopforge.model.input_file import read_input, remember_input
from hopforge.model.output.destination import (
    ResultError,
    check_destination,
    clear_folder,
    kind_of,
    one_file,
    replace_anything,
)
from hopforge.model.output.results import staged, write_text

GOOD = "name: good\ntopology: {kind: torus, radices: [4, 4]}\n"
PNG = b"\x89PNG\r\n\x1a\n"


def hopforge(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "hopforge", *words], cwd=folder, capture_output=True, timeout=120, check=False
    )


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (PNG, "a PNG picture"),
        (b"PAR1....", "a Parquet table"),
        (b"# my switch\nname: x\n", "YAML"),
        (b"\xef\xbb\xbfname: x\n", "YAML"),
        (b"# ring\n0 1\n1 2\n", "a network"),
        (b"router 0 node 0 router 1\n", "a network"),
        (b"import numpy as np\n", "Python"),
        (b'{"a": 1}', "JSON"),
        (b"<?xml version='1.0'?>", "XML"),
        (b"<html><body>", "an HTML page"),
        (b'<!doctype html>\n<meta name="generator" content="hopforge">', "a page of hopforge"),
        (b"port,hits\n0,1\n", "text"),
        ("größe".encode()[:3], "text"),  # cut in the middle of a character
        (b"\x00\x01", "binary data"),
        (b"\xff" * 9, "binary data"),
    ],
)
def test_kinds(head: bytes, kind: str) -> None:
    assert kind_of(head) == kind


def test_an_input_is_not_overwritten_by_any_name(tmp_path: Path) -> None:
    read = tmp_path / "table.csv"
    read.write_text("1,2\n")
    read_input(read)
    (tmp_path / "link.csv").symlink_to(read)
    os.link(read, tmp_path / "twin.csv")
    for name in ("table.csv", "link.csv", "twin.csv"):
        with pytest.raises(ResultError, match=rf"{name}: is an input.*--force"):
            write_text(tmp_path / name, "3,4\n")
    with pytest.raises(ResultError, match=r"table.csv: is an input"), staged(tmp_path) as scratch:
        (scratch / "a.txt").write_text("new")
        (scratch / "table.csv").write_text("3,4\n")
    assert read.read_text() == "1,2\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.csv", "table.csv", "twin.csv"]
    replace_anything(True)
    try:
        write_text(read, "3,4\n")
    finally:
        replace_anything(False)
    assert read.read_text() == "3,4\n"


def test_a_new_file_with_the_number_of_a_deleted_input_is_none(tmp_path: Path) -> None:
    read = tmp_path / "read.csv"
    read.write_text("1\n")
    remember_input(read)
    read.rename(tmp_path / "other.csv")  # the same number, and nobody's input any more
    write_text(tmp_path / "other.csv", "2\n")
    assert (tmp_path / "other.csv").read_text() == "2\n"


def test_another_kind_is_not_overwritten(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    for content, kind in ((b"name: x\n", "a network"), (PNG, "text"), (b"notes of mine", "a network")):
        mine.write_bytes(content)
        with pytest.raises(ResultError, match=rf"mine: holds .*, not {kind}, and is not overwritten"):
            check_destination(mine, kind, named=True)
    mine.write_bytes(PNG)
    with pytest.raises(ResultError, match="mine: holds a PNG picture, not text"), staged(tmp_path) as scratch:
        (scratch / "mine").write_text("port,hits\n")
    mine.write_bytes(b"a,b\n")
    with staged(tmp_path) as scratch:  # tables of earlier runs may have begun in another way
        (scratch / "mine").write_text("0 1\n")
    mine.write_bytes(b"")
    check_destination(mine, "a network", named=True)
    mine.write_bytes(b"\0 half a result")
    write_text(mine, "{}")  # a file of our own, damaged
    assert mine.read_text() == "{}"


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "x.txt").write_text("old")
    (tmp_path / "x.txt").symlink_to(Path("disk") / "x.txt")
    write_text(tmp_path / "x.txt", "new")
    assert (tmp_path / "x.txt").is_symlink()
    assert (tmp_path / "disk" / "x.txt").read_text() == "new"
    (tmp_path / "new.txt").symlink_to("disk/none.txt")
    write_text(tmp_path / "new.txt", "newer")
    assert (tmp_path / "disk" / "none.txt").read_text() == "newer"
    assert sorted(path.name for path in (tmp_path / "disk").iterdir()) == ["none.txt", "x.txt"]


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        write_text(pipe, "through\n", "text")
        assert reader.communicate(timeout=30)[0] == b"through\n"
    assert pipe.is_fifo()


def test_a_pipe_without_a_reader_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hopforge.model.output.destination._PIPE_WAIT_S", 0.1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="is there a reader"):
        write_text(tmp_path / "pipe", "x", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_device_is_written_to() -> None:
    write_text(Path("/dev/null"), "x", "text")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(OSError, match="No space left on device"):
        write_text(Path("/dev/full"), "x", "text")


def test_a_folder_and_a_socket_are_refused(tmp_path: Path) -> None:
    import socket

    with pytest.raises(ResultError, match="is a folder; name a file"):
        write_text(tmp_path, "x")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "s"))
        with pytest.raises(ResultError, match="is a socket; not written"):
            write_text(tmp_path / "s", "x")
    with pytest.raises(ResultError, match="null byte; no file has such a name"):
        write_text(tmp_path / "a\0b", "x")


def test_a_failure_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), one_file(tmp_path / "a" / "b" / "x.txt") as part:
        part.write_text("half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_a_working_folder_with_an_input_is_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "x.yml").write_text("a: 1")
    read_input(tmp_path / "work" / "x.yml")
    with pytest.raises(ResultError, match=r"work: is a working folder that is deleted, and the input .*x.yml lies"):
        clear_folder(tmp_path / "work")
    (tmp_path / "work" / "x.yml").unlink()
    clear_folder(tmp_path / "work")
    assert not (tmp_path / "work").exists()


def in_this_process(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], folder: Path, *words: str
) -> tuple[int, str, str]:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["hopforge", *words])
    capfd.readouterr()
    with pytest.raises(SystemExit) as ended:
        copy_context().run(cli.main)  # whether something may be replaced is known in this context only
    return int(ended.value.code or 0), *capfd.readouterr()


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """The input as the output, the input of another key, a device, stdout, force."""
    (tmp_path / "good.yml").write_text(GOOD)
    (tmp_path / "ring.txt").write_text("0 1\n1 2\n2 0\n")
    (tmp_path / "own.yml").write_text("name: own\ntopology: {kind: edge_list, file: ring.txt}\n")
    for output, file in (("good.yml", "good.yml"), ("ring.txt", "own.yml"), ("own.yml", "good.yml")):
        before = (tmp_path / output).read_bytes()
        form = "edges" if output == "ring.txt" else "png"
        words = ["topology", file, "--export", form, "-o", output]
        if output == "own.yml":  # refused by what it holds: this process has read it before
            run = hopforge(tmp_path, *words)
            status, said, told = run.returncode, run.stdout.decode(), run.stderr.decode()
        else:
            status, said, told = in_this_process(monkeypatch, capfd, tmp_path, *words)
        assert (status, said) == (2, "")
        key = "own.yml:2: topology.file: " if output == "ring.txt" else ""  # what makes it an input
        assert told.startswith(f"hopforge: {key}{output}: ")
        assert told.count("\n") == 1
        assert (tmp_path / output).read_bytes() == before
    run = hopforge(tmp_path, "topology", "own.yml", "--export", "edges", "-o", "/dev/stdout")
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout.endswith(b"0 1\n0 2\n1 2\n")
    assert run.stdout.count(b"\n") == 4
    words = ["topology", "own.yml", "--export", "png", "-o", "own.yml", "--force"]
    assert in_this_process(monkeypatch, capfd, tmp_path, *words)[0] == 0
    assert (tmp_path / "own.yml").read_bytes().startswith(PNG)


def test_stdout_that_is_a_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "good.yml").write_text(GOOD)
    with (tmp_path / "out").open("wb") as out:
        subprocess.run(
            [sys.executable, "-m", "hopforge", "topology", "good.yml", "--export", "edges", "-o", "/dev/stdout"],
            cwd=tmp_path, stdout=out, timeout=120, check=True,
        )  # fmt: skip
        assert os.path.samestat(os.fstat(out.fileno()), (tmp_path / "out").stat())
    assert (tmp_path / "out").read_text().startswith("# 4x4 torus\n0 1\n")

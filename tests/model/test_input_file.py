"""Inputs are regular files of a limited size, whoever reads them."""

import ast
import bz2
import errno
import gzip
import io
import lzma
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hopforge.gen.synth.cells import read_library
from hopforge.model.config import load_config, parse_config
from hopforge.model.errors import UserError
from hopforge.model.input_file import open_input, read_input, read_input_text
from hopforge.model.irregular.files import read_layers, read_next_hops
from hopforge.model.lookup.handle_tag_file import read_handle_tag
from hopforge.model.routing.contract.user import load_user_file
from hopforge.model.topology import build
from hopforge.model.topology.graph_file import READERS
from hopforge.model.workload.read_trace import read_trace
from hopforge.model.workload.trace import TraceError
from hopforge.sim.traffic.rank_hosts import map_ranks

ROOT = Path(__file__).parents[2]
CONFIG = parse_config("name: x\ntopology: {kind: mesh, radices: [2, 2]}\n")


def _mapping(path: Path) -> object:
    section = "name: x\ntopology: {kind: mesh, radices: [2, 2]}\nworkload: {kind: trace, file: 'x', mapping: "
    config = parse_config(f"{section}{{kind: file, file: '{path}'}}}}\n")
    assert config.workload is not None
    return map_ranks(config.workload.mapping, 4, build(config.topology, config.address), 1)  # type: ignore[union-attr]


#: what reads a file that a user names
READ: dict[str, Callable[[Path], object]] = {
    "configuration": load_config,
    **{f"graph {name}": reader for name, reader in READERS.items()},
    "trace": read_trace,
    "handle and tag": read_handle_tag,
    "next hops": lambda path: read_next_hops(path, 4),
    "layers": lambda path: read_layers(path, np.zeros(17, np.int64)),
    "mapping": _mapping,
    "liberty": read_library,
    "Python": lambda path: load_user_file(path, "prepare", "routing.algorithm"),
}


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("kind", ["a device", "a pipe", "more than"])
def test_only_regular_files_of_a_limited_size(name: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    if kind == "a device":
        path = Path("/dev/zero")
    elif kind == "a pipe":
        os.mkfifo(path)  # who opens it without care waits for ever
    else:
        with path.open("wb") as file:
            file.truncate(1 << 40)  # holds nothing: 1 TiB of zeros
    with pytest.raises(UserError, match=kind) as caught:
        READ[name](path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert kind != "more than" or "(HOPFORGE_INPUT_MIB sets another limit)" in str(caught.value)


def test_the_limit_can_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"a" * (2 << 20))
    assert len(read_input(path)) == 2 << 20
    monkeypatch.setenv("HOPFORGE_INPUT_MIB", "1")
    with pytest.raises(OSError, match="holds more than 1 MiB"):
        read_input(path)
    monkeypatch.setenv("HOPFORGE_INPUT_MIB", "3")
    assert len(read_input(path, 1)) == 2 << 20
    for wrong in ("0", "x", "-1", "1" * 99):
        monkeypatch.setenv("HOPFORGE_INPUT_MIB", wrong)
        with pytest.raises(OSError, match="HOPFORGE_INPUT_MIB must be a whole number of MiB from 1, not"):
            read_input(path)


def test_names_and_texts(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="cannot hold this character") as caught:
        open_input(Path("a\0b"))
    assert caught.value.errno == errno.EINVAL
    path = tmp_path / "x.txt"
    path.write_bytes(b"\xef\xbb\xbf0 1\r\n")
    assert read_input_text(path) == "0 1\r\n"
    path.write_bytes(b"0 1\n\0")
    with pytest.raises(UnicodeDecodeError):
        read_input_text(path)


def _tar(members: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_archives(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "two.tar"
    path.write_bytes(pack(_tar({"a/rank-1.txt": b"0 compute 5\n", "a/rank-2.txt": b"1 compute 6\n", "b": b"?"})))
    trace = read_trace(path)
    assert (trace.name, trace.ranks, trace.actions[1][0].amount) == ("two", 2, 6.0)


@pytest.mark.parametrize("name", ["rank-1.txt", "skipped"])
def test_a_bomb_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOPFORGE_INPUT_MIB", "4")
    path = tmp_path / "bomb.tar.gz"
    path.write_bytes(gzip.compress(_tar({name: bytes(8 << 20)})))
    assert path.stat().st_size < 20_000
    with pytest.raises(TraceError, match=r"bomb.tar.gz: unpacked it is more than 4 MiB \(HOPFORGE_INPUT_MIB"):
        read_trace(path)
    library = tmp_path / "cells.lib.gz"
    library.write_bytes(gzip.compress(bytes(8 << 20)))
    with pytest.raises(UserError, match="unpacked it is more than 4 MiB"):
        read_library(library)


def test_holes_of_an_archive_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sparse member takes some bytes of the archive and becomes as large as it says."""
    monkeypatch.setenv("HOPFORGE_INPUT_MIB", "4")
    header = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(1 << 33)}
    member = tarfile.TarInfo("rank-1.txt")
    member.size, member.pax_headers = 512, {**header, "GNU.sparse.name": "rank-1.txt"}
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(member, io.BytesIO(f"1\n{1 << 33}\n0\n".encode().ljust(512, b"\0")))
    (tmp_path / "sparse.tar").write_bytes(made.getvalue())
    with pytest.raises(TraceError, match="more than 4 MiB"):
        read_trace(tmp_path / "sparse.tar")


def test_all_files_of_a_folder_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOPFORGE_INPUT_MIB", "1")
    for rank in range(3):
        (tmp_path / f"rank-{rank}.txt").write_bytes(b"#" * (400 << 10))
    with pytest.raises(TraceError, match="its files are more than 1 MiB"):
        read_trace(tmp_path)


#: files that may open files by themselves, and why; all others read through `model.input_file`
OWN_FILES = {
    "model/input_file.py": "the one place",
    "model/free_memory.py": "/proc and control groups",
    "model/kernel/program_cache.py": "the program itself",
    "model/kernel/index_lock.py": "its own lock",
    "model/config/translated_file.py": "what was written before, to see whether it was changed",
    "model/output/column_notes.py": "what columns mean, a table that comes with hopforge",
    "model/output/program_digest.py": "the program itself, and what it imports",
    "model/output/destination.py": "the first bytes of what would be replaced",
    "model/output/results.py": "a folder, for its lock",
    "model/workload/collective_rules.py": "rules that come with hopforge",
    "model/apps/language_models.py": "models that come with hopforge",
    "model/workload/kept_traces.py": "parsed traces, in the cache",
    "sim/programs/record_communicators.py": "what the recorder wrote, in a temporary folder",
    "model/workload/trace_files.py": "traces that come with hopforge",
    "sim/pages/find.py": "results, checked there: what cannot be read is named on the page",
    "sim/pages/report.py": "templates that come with hopforge",
    "sim/reproduce/pages.py": "results of ours in docs/results/data",
    "sim/reproduce/origins.py": "results of ours in docs/results/data",
    "sim/reproduce/booksim/comparison.py": "configurations of a study, read by load_config before",
    "sim/reproduce/booksim/reference.py": "a table of runs, checked by open_input",
    "sim/run/kept_file.py": "kept results of ours",
    "sim/run/wanted_result.py": "digests of files, whatever is in them",
    "sim/drive/runner.py": "what a simulator of ours wrote",
    "sim/start/new_file.py": "templates that come with hopforge",
    "sim/cosim/router.py": "what a simulator of ours wrote",
    "gen/mutation/mutate.py": "what a tool wrote",
    "gen/mutation/and_graph.py": "what a tool wrote",
    "gen/mutation/unreachable_fault.py": "what a tool wrote",
    "gen/verilog/writer.py": "what a tool wrote",
    "gen/synth/area_and_delay.py": "what a tool wrote",
    "gen/synth/timing.py": "what a tool wrote",
    "gen/synth/package_timing.py": "what a tool wrote",
    "model/output/run_files.py": "metadata of ours",
    "gen/fpga/tools.py": "what a tool wrote",
    "sim/cosim/gate_report.py": "what a tool wrote",
    "sim/cosim/gate_run.py": "what a simulator of ours wrote",
    "sim/cosim/lookup_variants.py": "what finished runs of ours left",
    "gen/tools/processor_time.py": "/proc",
    "sim/cosim/mutation_race.py": "the C++ beside it",
    "gen/synth/cells.py": "bytes that were read before",
    "model/workload/job_log.py": "bytes that were read before",
}
_READERS = {"read_text", "read_bytes", "open", "read_csv", "read_parquet", "loadtxt", "genfromtxt", "fromfile"}


def _readers(text: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        method, given = isinstance(node.func, ast.Attribute), [*node.args, *(word.value for word in node.keywords)]
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        words = [word.value for word in given if isinstance(word, ast.Constant)]
        writes = any(isinstance(word, str) and len(word) < 4 and set(word) & set("wax") for word in words)
        if name in _READERS and not writes and (method or name == "open"):
            found.append(ast.unparse(node)[:80])
    return found


def test_nothing_is_read_past_the_one_place() -> None:
    layers = ("model", "hw", "gen", "sim", "src/hopforge/commands")
    files = [path for layer in layers for path in (ROOT / layer).rglob("*.py")]
    assert len(files) > 200
    found = {path.relative_to(ROOT).as_posix(): _readers(path.read_text()) for path in files}
    assert {name: calls for name, calls in found.items() if calls and name not in OWN_FILES} == {}
    assert [name for name in OWN_FILES if not found[name]] == []

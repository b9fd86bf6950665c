"""Parsed traces, kept between runs by the contents of what they were read from.

They lie in the cache folder of the user (`XDG_CACHE_HOME`, else ``~/.cache``), below ``hopforge/traces``: arrays, no
Python objects. The least recently used go when all together are larger than `KEPT_BYTES`. To lose them, or to have no
folder for them, costs time only.
"""

import hashlib
import os
import tempfile
import zipfile
import zlib
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hopforge.model.config.base import SHIPPED
from hopforge.model.input_file import largest_bytes, open_input
from hopforge.model.kernel.user_folders import user_folder
from hopforge.model.workload import read_trace as reader
from hopforge.model.workload import trace as trace_module
from hopforge.model.workload import trace_files, trace_line
from hopforge.model.workload.read_trace import parsed, read_trace
from hopforge.model.workload.trace import Trace, TraceError
from hopforge.model.workload.trace_line import format_action

#: smaller traces are read again
LEAST_BYTES = 1 << 16
#: of all traces together
KEPT_BYTES = 1 << 30
_SEPARATOR = "\0"
_DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, TraceError)


def kept_trace(source: str | Path) -> Trace:
    """Read a trace as `read_trace` does, or take what an earlier read of the same contents has kept.

    Raises
    ------
    TraceError
        As `read_trace`.
    """
    path = Path(source)
    folder = None if str(source).startswith(SHIPPED) else user_folder("traces")
    if folder is None:
        return read_trace(source)
    try:
        before = _stamps(path)
        if not LEAST_BYTES <= sum(size for _, size, _ in before) <= largest_bytes():
            return read_trace(source)
        place = folder / f"{_digest(path, [name for name, _, _ in before])}.npz"
    except OSError:
        return read_trace(source)
    found = _load(place, source)
    if found is None:
        found = read_trace(source)
        with suppress(OSError):
            if _stamps(path) == before:
                _save(place, found, source)
    return found


def _stamps(path: Path) -> list[tuple[str, int, int]]:
    """Name below `path`, size and time of the files of a trace; none if it is neither a folder nor a file."""
    if path.is_dir():
        files = sorted(item for item in path.iterdir() if item.suffix == ".txt" and item.is_file())
    else:
        files = [path] if path.is_file() else []
    found = []
    for file in files:
        status = file.stat()
        found.append((file.name if path.is_dir() else "", status.st_size, status.st_mtime_ns))
    return found


def _digest(path: Path, names: list[str]) -> str:
    text = hashlib.sha256(_parser())
    for name in names:
        with open_input(path / name if name else path) as opened:
            file: Any = opened  # typeshed has another name for what file_digest reads
            text.update(f"{name}{_SEPARATOR}".encode() + hashlib.file_digest(file, "sha256").digest())
    return text.hexdigest()


@cache
def _parser() -> bytes:
    """Digest of the program that parses and keeps."""
    modules = (trace_module, trace_line, trace_files, reader)
    files = (*(Path(str(module.__file__)) for module in modules), Path(__file__))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()


def _letters(texts: list[str]) -> Any:
    return np.frombuffer(_SEPARATOR.join(texts).encode(), np.uint8)


def _save(place: Path, trace: Trace, source: str | Path) -> None:
    folder, begin = Path(source).is_dir(), len(str(source))
    counts = [len(numbers) for numbers in trace.numbers]
    plain = all((lines == np.arange(1, len(lines) + 1)).all() for lines in trace.lines)
    kind = np.min_scalar_type(len(trace.calls))
    arrays = {
        "texts": _letters([format_action(action) for action in trace.calls]),
        "files": _letters([Path(file).name if folder else file[begin:] for file in trace.files]),
        "first": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        "numbers": np.concatenate([numbers.astype(kind) for numbers in trace.numbers]),
        "lines": np.empty(0, np.int32) if plain else np.concatenate(trace.lines),
    }
    handle, name = tempfile.mkstemp(suffix=".tmp", dir=place.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)
        Path(name).replace(place)
    finally:
        Path(name).unlink(missing_ok=True)
    _bound(place.parent)


def _bound(folder: Path) -> None:
    """Delete what was used least recently, if all is too large."""
    left = KEPT_BYTES
    found = [(item.stat().st_mtime_ns, item) for item in folder.iterdir() if item.suffix in (".npz", ".tmp")]
    for _, item in sorted(found, reverse=True):
        left -= item.stat().st_size
        if left < 0:
            item.unlink(missing_ok=True)


def _load(place: Path, source: str | Path) -> Trace | None:
    """Return what is kept; None if there is nothing, or nothing that can be right."""
    if not place.is_file():
        return None
    try:
        with place.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            arrays = {name: kept[name] for name in ("texts", "files", "first", "numbers", "lines")}
        found = _restored(arrays, source)
        os.utime(place)
    except _DAMAGED:
        with suppress(OSError):
            place.unlink(missing_ok=True)
        return None
    return found


def _restored(arrays: dict[str, Any], source: str | Path) -> Trace:
    texts, files = (bytes(arrays[name]).decode().split(_SEPARATOR) for name in ("texts", "files"))
    first, numbers, lines = arrays["first"], arrays["numbers"], arrays["lines"]
    steps = np.diff(first)
    if not (
        len(files) == len(steps) and first[0] == 0 and first[-1] == len(numbers) and (steps > 0).all()
        and numbers.dtype.kind == "u" and int(numbers.max(initial=0)) < len(texts) and lines.dtype == np.int32
        and len(lines) in (0, len(numbers))
    ):  # fmt: skip
        raise ValueError("not what was kept")
    path = Path(source)
    members = any(files)
    name = path.name if path.is_dir() else path.name.partition(".tar")[0] if members else path.stem
    ranks = range(len(steps))
    return parsed(
        name, texts, tuple(numbers[first[rank] : first[rank + 1]].astype(np.int32) for rank in ranks),
        tuple(str(path / file) if path.is_dir() else f"{source}{file}" for file in files),
        tuple(
            lines[first[rank] : first[rank + 1]] if len(lines) else np.arange(1, steps[rank] + 1, dtype=np.int32)
            for rank in ranks
        ),
    )  # fmt: skip

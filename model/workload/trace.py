"""Time-independent traces of MPI programs, as SimGrid 3.32 records and replays them.

A trace is one text per rank; a line is ``<rank> <action> <arguments>``. Sizes count elements of a datatype whose number
stands at the end of the line. Like SimGrid's replay, everything happens in MPI_COMM_WORLD.
"""

import io
import lzma
import math
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.base import SHIPPED
from hopforge.model.errors import UserError

ANY_SOURCE, ANY_TAG, PROC_NULL = -555, -444, -666  # SimGrid's mpi.h
MAX_RANKS = 1 << 20
#: most elements of a message
MAX_COUNT = 1 << 48
#: most characters of a bad word that an error shows
_SHOWN = 40

#: size in bytes of SimGrid's datatype numbers (id → MPI name, bytes), x86-64
DATATYPES: dict[int, tuple[str, int]] = {
    -1: ("DATATYPE_NULL", 0), 0: ("DOUBLE", 8), 1: ("INT", 4), 2: ("CHAR", 1), 3: ("SHORT", 2), 4: ("LONG", 8),
    5: ("FLOAT", 4), 6: ("BYTE", 1), 7: ("LONG_LONG", 8), 8: ("SIGNED_CHAR", 1), 9: ("UNSIGNED_CHAR", 1),
    10: ("UNSIGNED_SHORT", 2), 11: ("UNSIGNED", 4), 12: ("UNSIGNED_LONG", 8), 13: ("UNSIGNED_LONG_LONG", 8),
    14: ("LONG_DOUBLE", 16), 15: ("WCHAR", 4), 16: ("C_BOOL", 1), 17: ("INT8_T", 1), 18: ("INT16_T", 2),
    19: ("INT32_T", 4), 20: ("INT64_T", 8), 21: ("UINT8_T", 1), 22: ("UINT16_T", 2), 23: ("UINT32_T", 4),
    24: ("UINT64_T", 8), 25: ("C_FLOAT_COMPLEX", 8), 26: ("C_DOUBLE_COMPLEX", 16), 27: ("C_LONG_DOUBLE_COMPLEX", 32),
    28: ("AINT", 8), 29: ("OFFSET", 8), 30: ("FLOAT_INT", 8), 31: ("LONG_INT", 16), 32: ("DOUBLE_INT", 16),
    33: ("SHORT_INT", 8), 34: ("2INT", 8), 35: ("2FLOAT", 8), 36: ("2DOUBLE", 16), 37: ("2LONG", 16), 38: ("REAL", 4),
    39: ("REAL4", 4), 40: ("REAL8", 8), 41: ("REAL16", 16), 42: ("COMPLEX8", 8), 43: ("COMPLEX16", 16),
    44: ("COMPLEX32", 16), 45: ("INTEGER1", 4), 46: ("INTEGER2", 2), 47: ("INTEGER4", 4), 48: ("INTEGER8", 8),
    49: ("INTEGER16", 16), 50: ("LONG_DOUBLE_INT", 32), 51: ("CXX_BOOL", 1), 52: ("CXX_FLOAT_COMPLEX", 8),
    53: ("CXX_DOUBLE_COMPLEX", 16), 54: ("CXX_LONG_DOUBLE_COMPLEX", 32), 55: ("UB", 0), 56: ("LB", 0),
    57: ("PACKED", 1), 58: ("PTR", 8), 59: ("COUNT", 8),
}
_DOUBLE, _BYTE = 0, 6


class TraceError(UserError, ValueError):
    """A trace that cannot be read: the message starts with file and line."""


@dataclass(frozen=True, slots=True)
class Action:
    """One line of a trace; fields that an action does not have keep their defaults.

    Attributes
    ----------
    name : str
        As in the file.
    peer, tag : int
        Other rank and tag of send, isend, recv, irecv; destination of sendRecv. `peer` of wait and test is the
        request's destination.
    source : int
        Source of sendRecv, wait and test.
    count, recv_count : int
        Elements sent and received (of `datatype`, `recv_datatype`).
    counts, recv_counts : tuple of int
        Elements per rank of the v-collectives and of reducescatter (`counts`).
    root : int
        Root rank.
    amount : float
        Flops of compute and of the reductions, seconds of sleep.
    datatype, recv_datatype : int
        Datatype number; -2: not written, the default of `init` holds.
    text : str
        What is kept as it stands (location, comm_*, init, waitall).
    """

    name: str
    peer: int = -1
    tag: int = 0
    source: int = -1
    count: int = 0
    recv_count: int = 0
    counts: tuple[int, ...] = ()
    recv_counts: tuple[int, ...] = ()
    root: int = 0
    amount: float = 0.0
    datatype: int = -2
    recv_datatype: int = -2
    text: str = ""


@dataclass(frozen=True, eq=False)
class Trace:
    """A recorded program.

    Attributes
    ----------
    name : str
        Name for reports, for example ``is.A.64``.
    actions : tuple
        ``actions[rank]`` is the rank's program.
    files : tuple of str
        ``files[rank]``: the file a rank was read from (for messages).
    lines : tuple of ndarray
        ``lines[rank][i]``: line of action i in its file.
    """

    name: str
    actions: tuple[tuple[Action, ...], ...]
    files: tuple[str, ...]
    lines: tuple[NDArray[np.int32], ...]

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.actions)

    def where(self, rank: int, index: int) -> str:
        """Return ``file:line`` of an action."""
        return f"{self.files[rank]}:{self.lines[rank][index]}"

    def default_datatype(self, rank: int) -> int:
        """Return the datatype of actions that name none: BYTE, or DOUBLE if `init` has an argument."""
        first = self.actions[rank][0] if self.actions[rank] else None
        return _DOUBLE if first is not None and first.name == "init" and first.text else _BYTE


# Fields of each action in the order of the line, mandatory and optional; a trailing * is one number per rank.
_LAYOUT: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "send": (("peer", "tag", "count"), ("datatype",)),
    "isend": (("peer", "tag", "count"), ("datatype",)),
    "recv": (("peer", "tag", "count"), ("datatype",)),
    "irecv": (("peer", "tag", "count"), ("datatype",)),
    "sendRecv": (("count", "peer", "recv_count", "source"), ("datatype", "recv_datatype")),
    "wait": (("source", "peer", "tag"), ()),
    "test": (("source", "peer", "tag"), ()),
    "barrier": ((), ()),
    "bcast": (("count",), ("root", "datatype")),
    "reduce": (("count", "amount"), ("root", "datatype")),
    "allreduce": (("count", "amount"), ("datatype",)),
    "alltoall": (("count", "recv_count"), ("datatype", "recv_datatype")),
    "alltoallv": (("count", "counts*", "recv_count", "recv_counts*"), ("datatype", "recv_datatype")),
    "gather": (("count", "recv_count"), ("root", "datatype", "recv_datatype")),
    "gatherv": (("count", "recv_counts*"), ("root", "datatype", "recv_datatype")),
    "scatter": (("count", "recv_count"), ("root", "datatype", "recv_datatype")),
    "scatterv": (("counts*", "recv_count"), ("root", "datatype", "recv_datatype")),
    "allgather": (("count", "recv_count"), ("datatype", "recv_datatype")),
    "allgatherv": (("count", "recv_counts*"), ("datatype", "recv_datatype")),
    "reducescatter": (("counts*", "amount"), ("datatype",)),
    "scan": (("count", "amount"), ("datatype",)),
    "exscan": (("count", "amount"), ("datatype",)),
    "compute": (("amount",), ()),
    "sleep": (("amount",), ()),
    "finalize": ((), ()),
}
_TEXT = {
    "init": (0, 1), "comm_size": (0, 9), "comm_split": (0, 9), "comm_dup": (0, 9), "waitall": (0, 1),
    "location": (2, 2),
}
COLLECTIVES = frozenset({
    "barrier", "bcast", "reduce", "allreduce", "alltoall", "alltoallv", "gather", "gatherv", "scatter", "scatterv",
    "allgather", "allgatherv", "reducescatter", "scan", "exscan",
})


def read_trace(source: str | Path) -> Trace:
    """Read a trace.

    Parameters
    ----------
    source : str or Path
        A folder with a text per rank, a tar archive (.tar, .tar.gz, .tar.xz) of one, a single text with the lines of
        all ranks, or ``shipped:NAME`` for one that comes with hopforge (``shipped:is.A.64``, ``shipped:ft.A.64``).

    Returns
    -------
    Trace

    Raises
    ------
    TraceError
        Unreadable file, malformed line (file and line), missing rank, rank beyond the number of ranks.
    """
    name, texts = _open(str(source))
    rows: dict[int, list[str]] = {}
    numbers: dict[int, list[int]] = {}
    files: dict[int, str] = {}
    for file, text in texts:
        for number, line in enumerate(text.split("\n"), start=1):
            head, _, rest = line.strip().partition(" ")
            if not head or head.startswith("#"):
                continue
            if not (head.isascii() and head.isdigit() and len(head) <= _SHOWN):
                shown = head if len(head) <= _SHOWN else f"{head[:_SHOWN]}…"
                raise TraceError(f"{file}:{number}: expected a rank, not {shown!r}")
            rank = int(head)
            if files.setdefault(rank, file) != file:
                raise TraceError(f"{file}:{number}: rank {rank} has lines in {files[rank]} already")
            rows.setdefault(rank, []).append(rest)
            numbers.setdefault(rank, []).append(number)
    if not rows:
        raise TraceError(f"{source}: holds no trace")
    ranks = max(rows) + 1
    if ranks > MAX_RANKS:
        raise TraceError(f"{source}: rank {ranks - 1} is beyond the largest, {MAX_RANKS - 1}")
    missing = [rank for rank in range(ranks) if rank not in rows]
    if missing:
        more = "" if len(missing) == 1 else f" (and {len(missing) - 1} more)"
        raise TraceError(f"{source}: rank {missing[0]} is missing{more}; the highest rank is {ranks - 1}")
    actions = tuple(_parse(rows[rank], numbers[rank], files[rank], ranks) for rank in range(ranks))
    return Trace(
        name=name, actions=actions, files=tuple(files[rank] for rank in range(ranks)),
        lines=tuple(np.array(numbers[rank], dtype=np.int32) for rank in range(ranks)),
    )


def write_trace(trace: Trace, folder: str | Path) -> None:
    """Write a trace as a folder of ``rank-K.txt`` (K from 1), which appears only when it is complete.

    Raises
    ------
    TraceError
        The folder exists or cannot be written.
    """
    target = Path(folder)
    if target.exists():
        raise TraceError(f"{target}: exists already")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise TraceError(f"{target}: {error.strerror}") from error
    try:
        lines: dict[int, str] = {}  # most calls of a program repeat: write each distinct object once
        for rank, actions in enumerate(trace.actions):
            for action in {id(action): action for action in actions}.values():
                lines.setdefault(id(action), format_action(action))
            text = "".join(f"{rank} {lines[id(action)]}\n" for action in actions)
            (scratch / f"rank-{rank + 1}.txt").write_text(text, encoding="utf-8")
        scratch.chmod(0o755)
        scratch.rename(target)
    except OSError as error:
        raise TraceError(f"{target}: {error.strerror}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def format_action(action: Action) -> str:
    """Return the line of an action without its rank; reading it gives the action again."""
    if action.name in _TEXT:
        return f"{action.name} {action.text}".rstrip()
    mandatory, optional = _LAYOUT[action.name]
    words = [action.name]
    for key in mandatory:
        value = getattr(action, key.rstrip("*"))
        words += map(str, value) if key.endswith("*") else [_number(value)]
    tail = [getattr(action, key) for key in optional]
    while tail and tail[-1] == -2:
        tail.pop()
    return " ".join(words + [str(value) for value in tail])


def shipped_traces() -> tuple[str, ...]:
    """Return the names of the traces that come with hopforge."""
    folder = resources.files("hopforge.model") / "data" / "traces"
    names = (item.name for item in folder.iterdir())
    return tuple(sorted(name.removesuffix(".tar.xz") for name in names if name.endswith(".tar.xz")))


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


# tarfile lets through what the decompressors of .xz and .gz raise in the middle of an archive
_DAMAGED = (tarfile.TarError, EOFError, lzma.LZMAError, zlib.error)


def _open(source: str) -> tuple[str, Iterable[tuple[str, str]]]:
    """Return name and (file label, text) pairs of a trace."""
    if source.startswith(SHIPPED):
        name = source.removeprefix(SHIPPED)
        if name not in shipped_traces():
            known = ", ".join(SHIPPED + item for item in shipped_traces())
            raise TraceError(f"{source}: hopforge comes with {known}")
        data = (resources.files("hopforge.model") / "data" / "traces" / f"{name}.tar.xz").read_bytes()
        return name, list(_members(source, tarfile.open(fileobj=io.BytesIO(data))))
    path = Path(source)
    try:
        if path.is_dir():
            found = sorted(item for item in path.iterdir() if item.suffix == ".txt" and item.is_file())
            return path.name, [(str(item), _text(str(item), item.read_bytes())) for item in found]
        if path.is_file() and tarfile.is_tarfile(path):
            with tarfile.open(path) as archive:
                return path.name.partition(".tar")[0], list(_members(source, archive))
        return path.stem, [(source, path.read_text(encoding="utf-8"))]
    except OSError as error:
        raise TraceError(f"{error.filename or source}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise TraceError(f"{source}: is neither a text nor a tar archive") from error
    except _DAMAGED as error:
        raise TraceError(f"{source}: damaged archive: {error}") from error


def _text(label: str, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TraceError(f"{label}: not UTF-8 text (byte 0x{content[error.start]:02x})") from error


def _members(label: str, archive: tarfile.TarFile) -> Iterator[tuple[str, str]]:
    try:
        for member in archive:
            if member.isfile() and member.name.endswith(".txt"):
                content = archive.extractfile(member)
                assert content is not None
                yield f"{label}/{member.name}", _text(f"{label}/{member.name}", content.read())
    except (*_DAMAGED, OSError) as error:
        raise TraceError(f"{label}: damaged archive: {error}") from error


def _parse(rows: list[str], numbers: list[int], file: str, ranks: int) -> tuple[Action, ...]:
    # most lines of a program repeat: parse each distinct text once
    known: dict[str, Action] = {}
    actions = []
    for row, number in zip(rows, numbers, strict=True):
        action = known.get(row)
        if action is None:
            try:
                action = known[row] = _action(row.split(), ranks)
            except ValueError as error:
                raise TraceError(f"{file}:{number}: {error}") from None
        actions.append(action)
    return tuple(actions)


def _action(words: list[str], ranks: int) -> Action:
    if not words:
        raise ValueError("expected an action after the rank")
    name, arguments = words[0], words[1:]
    if name in _TEXT:
        low, high = _TEXT[name]
        if not low <= len(arguments) <= high:
            raise ValueError(f"{name} needs {_range(low, high)} arguments, not {len(arguments)}")
        return Action(name, text=" ".join(arguments))
    if name not in _LAYOUT:
        raise ValueError(f"unknown action {name!r} (known: {', '.join(sorted((*_LAYOUT, *_TEXT)))})")
    mandatory, optional = _LAYOUT[name]
    need = sum(ranks if key.endswith("*") else 1 for key in mandatory)
    most = need + len(optional) + (ranks if name == "allgatherv" else 0)  # displacements may follow
    if not need <= len(arguments) <= most:
        raise ValueError(f"{name} needs {_range(need, most)} arguments on {ranks} ranks, not {len(arguments)}")
    if name in ("gather", "scatter") and len(arguments) == 4:
        arguments = [arguments[0], "0", *arguments[1:]]  # SimGrid leaves out a receive count of 0
    fields: dict[str, Any] = {}
    at = 0
    for key in mandatory:
        if key.endswith("*"):
            fields[key[:-1]] = tuple(_count(key[:-1], word) for word in arguments[at:at + ranks])
            at += ranks
        else:
            fields[key] = _field(key, arguments[at], ranks, name)
            at += 1
    for key, word in zip(optional, arguments[at:], strict=False):
        fields[key] = _field(key, word, ranks, name)
    return Action(name, **fields)


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _float(key: str, word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        raise ValueError(f"{key} must be a number, not {word!r}") from None
    if not math.isfinite(value):
        raise ValueError(f"{key} must be finite, not {word!r}")
    return value


def _count(key: str, word: str) -> int:
    value = int(word) if word.isdigit() else math.trunc(_float(key, word))  # SimGrid takes 5e8 too
    if value < 0:
        raise ValueError(f"{key} must not be negative, not {word}")
    if value > MAX_COUNT:
        raise ValueError(f"{key} must be at most {MAX_COUNT}, not {word}")
    return value


def _amount(word: str, name: str) -> float:
    value = _float("amount", word)
    if value < 0 and name in ("compute", "sleep"):
        raise ValueError(f"amount must not be negative, not {word}")
    return value


def _field(key: str, word: str, ranks: int, name: str) -> int | float:
    if key == "amount":
        return _amount(word, name)
    if key in ("count", "recv_count"):
        # a receive may have a negative size: unknown to the receiver
        return math.trunc(_float(key, word)) if name in ("recv", "irecv") else _count(key, word)
    try:
        value = int(word)
    except ValueError:
        raise ValueError(f"{key} must be a whole number, not {word!r}") from None
    if key in ("datatype", "recv_datatype"):
        if value not in DATATYPES:
            raise ValueError(f"unknown datatype {value} (SimGrid numbers them -1 to {max(DATATYPES)})")
    elif key == "root":
        if not 0 <= value < ranks:
            raise ValueError(f"root {value} is not one of the {ranks} ranks")
    elif key in ("peer", "source"):
        wild = (ANY_SOURCE, PROC_NULL) if name in ("recv", "irecv", "wait", "test", "sendRecv") else (PROC_NULL,)
        if not 0 <= value < ranks and value not in wild:
            raise ValueError(f"rank {value} is not one of the {ranks} ranks")
    return value

"""Time-independent traces of MPI programs, as SimGrid 3.32 records and replays them.

A trace is one text per rank; a line is ``<rank> <action> <arguments>``. Sizes count elements of a datatype whose number
stands at the end of the line. Like in SimGrid's replay, everything happens in MPI_COMM_WORLD, except what hopforge
records: ``communicator 1 4 2 0`` says that communicator 1 has the ranks 4, 2 and 0, ``bcast@1 …`` is a call in it, with
root and counts by rank in it.
"""

import bz2
import gzip
import io
import lzma
import math
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.base import SHIPPED
from hopforge.model.errors import UserError
from hopforge.model.input_file import largest_bytes, read_input, too_large

ANY_SOURCE, ANY_TAG, PROC_NULL = -555, -444, -666  # SimGrid's mpi.h
_UNDEFINED = -333  # what SimGrid writes for any source of a communicator of the program's own
MAX_RANKS = 1 << 20
#: most elements of a message
MAX_COUNT = 1 << 48
#: most characters of a bad word that an error shows
_SHOWN = 40
#: least characters of the pieces in which a text is read
_PIECE = 1 << 22

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
        What is kept as it stands (location, comm_*, init, waitall, communicator).
    communicator : int
        Number of the communicator of a collective; 0: MPI_COMM_WORLD. `root` and counts are by rank in it.
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
    communicator: int = 0


@dataclass(frozen=True, eq=False)
class Trace:
    """A recorded program.

    Attributes
    ----------
    name : str
        Name for reports, for example ``is.A.64``.
    calls : tuple of Action
        The different calls.
    numbers : tuple of ndarray
        ``numbers[rank][i]``: which of `calls` action i of a rank is.
    files : tuple of str
        ``files[rank]``: the file a rank was read from (for messages).
    lines : tuple of ndarray
        ``lines[rank][i]``: line of action i in its file.
    communicators : mapping
        Number → ranks in their order, for those of the program's own.
    """

    name: str
    calls: tuple[Action, ...]
    numbers: tuple[NDArray[np.int32], ...]
    files: tuple[str, ...]
    lines: tuple[NDArray[np.int32], ...]
    communicators: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, name: str, programs: Sequence[Sequence[Action]], files: tuple[str, ...],
        lines: tuple[NDArray[np.int32], ...], communicators: Mapping[int, tuple[int, ...]] | None = None,
    ) -> "Trace":
        """Return the trace of the ranks that call ``programs[rank]``. A call that repeats is best the same object."""
        known: dict[int, int] = {}
        calls: list[Action] = []
        for program in {id(program): program for program in programs}.values():
            for action in {id(action): action for action in program}.values():
                if known.setdefault(id(action), len(calls)) == len(calls):
                    calls.append(action)
        numbers: dict[int, NDArray[np.int32]] = {}
        for program in programs:
            if id(program) not in numbers:
                each = map(known.__getitem__, map(id, program))
                numbers[id(program)] = np.fromiter(each, np.int32, len(program))
        return cls(
            name, tuple(calls), tuple(numbers[id(program)] for program in programs), files, lines, communicators or {}
        )

    @property
    def actions(self) -> tuple[tuple[Action, ...], ...]:
        """``actions[rank]`` is the rank's program, call by call: long for a long trace."""
        return tuple(tuple(self.calls[number] for number in numbers.tolist()) for numbers in self.numbers)

    def action(self, rank: int, index: int) -> Action:
        """Return an action of a rank."""
        return self.calls[self.numbers[rank][index]]

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.numbers)

    def where(self, rank: int, index: int) -> str:
        """Return ``file:line`` of an action."""
        return f"{self.files[rank]}:{self.lines[rank][index]}"

    def default_datatype(self, rank: int) -> int:
        """Return the datatype of actions that name none: BYTE, or DOUBLE if `init` has an argument."""
        first = self.action(rank, 0) if len(self.numbers[rank]) else None
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
    "location": (2, 2), "communicator": (2, 1 + MAX_RANKS),
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
    reader = _Reader(str(source))
    try:
        name, texts = _open(str(source))
        for file, text in texts:
            reader.add(file, text)
    except OSError as error:
        raise TraceError(f"{error.filename or source}: cannot be read: {error.strerror or error}") from error
    return reader.finish(name)


class _Rows(dict[str, int]):
    """Row → rank · 2³² + number of its text without the rank, and -1 for a row without a call, as they are met."""

    def __init__(self, texts: dict[str, int]) -> None:
        super().__init__()
        self._texts = texts

    def __missing__(self, row: str) -> int:
        head, _, rest = row.strip().partition(" ")
        code = -1
        if head and not head.startswith("#"):
            if not (head.isascii() and head.isdigit() and len(head) <= _SHOWN):
                shown = head if len(head) <= _SHOWN else f"{head[:_SHOWN]}…"
                raise TraceError(f"expected a rank, not {shown!r}")
            if int(head) >= MAX_RANKS:
                raise TraceError(f"rank {int(head)} is beyond the largest, {MAX_RANKS - 1}")
            code = int(head) << 32 | self._texts.setdefault(rest, len(self._texts))
        self[row] = code
        return code


class _Reader:
    """Collects the rows of all texts: most repeat, so each different one is looked at once."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._texts: dict[str, int] = {}
        self._files: dict[int, str] = {}
        self._numbers: dict[int, NDArray[np.int32]] = {}
        self._lines: dict[int, NDArray[np.int32]] = {}

    def add(self, file: str, text: str) -> None:
        """Read one text."""
        rows, parts, line, start = _Rows(self._texts), [np.empty(0, np.int64)], 1, 0
        while start <= len(text):
            end = text.find("\n", start + _PIECE)
            piece = text[start : len(text) if end < 0 else end].split("\n")
            try:
                parts.append(np.fromiter(map(rows.__getitem__, piece), np.int64, len(piece)))
            except TraceError as error:
                bad = next(index for index, row in enumerate(piece) if _is_bad(rows, row))
                raise TraceError(f"{file}:{line + bad}: {error}") from None
            line += len(piece)
            start = len(text) + 1 if end < 0 else end + 1
        codes = np.concatenate(parts)
        lines = np.flatnonzero(codes >= 0)
        codes = codes[lines]
        ranks = codes >> 32
        if not len(ranks):
            return
        single = bool(ranks[0] == ranks[-1]) and not (ranks != ranks[0]).any()
        for rank in [int(ranks[0])] if single else np.unique(ranks).tolist():
            own = slice(None) if single else np.flatnonzero(ranks == rank)
            if rank in self._files:
                first = lines[0] if single else lines[own][0]
                raise TraceError(f"{file}:{first + 1}: rank {rank} has lines in {self._files[rank]} already")
            self._files[rank] = file
            self._numbers[rank] = (codes[own] & 0xFFFFFFFF).astype(np.int32)
            self._lines[rank] = (lines[own] + 1).astype(np.int32)

    def finish(self, name: str) -> Trace:
        """Return the trace."""
        if not self._files:
            raise TraceError(f"{self._source}: holds no trace")
        ranks = max(self._files) + 1
        missing = [rank for rank in range(ranks) if rank not in self._files]
        if missing:
            more = "" if len(missing) == 1 else f" (and {len(missing) - 1} more)"
            raise TraceError(f"{self._source}: rank {missing[0]} is missing{more}; the highest rank is {ranks - 1}")
        numbers, lines, files = (
            tuple(kept[rank] for rank in range(ranks)) for kept in (self._numbers, self._lines, self._files)
        )
        return parsed(name, list(self._texts), numbers, files, lines)


def _is_bad(rows: _Rows, row: str) -> bool:
    try:
        return rows[row] < -1
    except TraceError:
        return True


def parsed(
    name: str, texts: Sequence[str], numbers: tuple[Any, ...], files: tuple[Any, ...], lines: tuple[Any, ...]
) -> Trace:
    """Return a trace of which action i of a rank is ``texts[numbers[rank][i]]``.

    Raises
    ------
    TraceError
        A bad one of them: its first place in the lowest rank that has one.
    """
    ranks = len(numbers)
    calls: list[Action] = []
    bad: dict[int, str] = {}
    communicators: dict[int, tuple[int, ...]] = {}
    first: dict[int, int] = {}  # the call that said so
    words = [text.split() for text in texts]
    for number, each in enumerate(words):
        if each[:1] == ["communicator"]:
            try:
                key, members = _communicator(each, ranks)
                if communicators.setdefault(key, members) != members:
                    raise ValueError(f"communicator {key} has other ranks in {texts[first[key]]!r}")
                first.setdefault(key, number)
            except ValueError as error:
                bad[number] = str(error)
    for number, each in enumerate(words):
        action = Action("init")
        if number not in bad:
            try:
                action = _action(each, ranks, communicators)
            except ValueError as error:
                bad[number] = str(error)
        calls.append(action)
    if bad:
        for rank in range(ranks):
            found = np.flatnonzero(np.isin(numbers[rank], list(bad)))
            if len(found):
                where = f"{files[rank]}:{lines[rank][found[0]]}"
                raise TraceError(f"{where}: {bad[int(numbers[rank][found[0]])]}")
    return Trace(name, tuple(calls), numbers, files, lines, communicators)


def _communicator(words: Sequence[str], ranks: int) -> tuple[int, tuple[int, ...]]:
    """Return number and ranks of ``communicator NUMBER RANK …``."""
    if len(words) < 3:
        raise ValueError(f"communicator needs a number and the ranks in it, not {len(words) - 1} arguments")
    for word in words[1:]:
        if not (word.isascii() and word.isdigit() and len(word) <= _SHOWN):
            raise ValueError(f"communicator needs whole numbers, not {_shown(word)}")
    number, *members = map(int, words[1:])
    if number == 0:
        raise ValueError("communicator 0 is MPI_COMM_WORLD; others begin at 1")
    for member in members:
        if member >= ranks:
            raise ValueError(f"rank {member} is not one of the {ranks} ranks")
    if len(set(members)) != len(members):
        raise ValueError(f"communicator {number} holds a rank twice")
    return number, tuple(members)


def _shown(word: str) -> str:
    return repr(word if len(word) <= _SHOWN else f"{word[:_SHOWN]}…")


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
        lines = [format_action(action) for action in trace.calls]
        for rank, numbers in enumerate(trace.numbers):
            text = "".join(f"{rank} {lines[number]}\n" for number in numbers.tolist())
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
    words = [action.name + (f"@{action.communicator}" if action.communicator else "")]
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
_PACKED: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": gzip.open, b"\xfd7zXZ\0": lzma.open, b"BZh": bz2.open,
}
_BLOCK_BYTES = 1 << 18


def _open(source: str) -> tuple[str, Iterable[tuple[str, str]]]:
    """Return name and (file label, text) pairs of a trace."""
    if source.startswith(SHIPPED):
        name = source.removeprefix(SHIPPED)
        if name not in shipped_traces():
            known = ", ".join(SHIPPED + item for item in shipped_traces())
            raise TraceError(f"{source}: hopforge comes with {known}")
        data = (resources.files("hopforge.model") / "data" / "traces" / f"{name}.tar.xz").read_bytes()
        return name, _members(source, lzma.open(io.BytesIO(data)))
    path = Path(source)
    if path.is_dir():
        return path.name, _files(path)
    content = read_input(path)
    packed = _archive(content)
    if packed is not None:
        return path.name.partition(".tar")[0], _members(source, packed)
    return path.stem, [(source, _text(source, content, "is neither a text nor a tar archive"))]


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    left = largest_bytes()
    for item in sorted(item for item in folder.iterdir() if item.suffix == ".txt" and item.is_file()):
        content = read_input(item)
        left -= len(content)
        if left < 0:
            raise TraceError(f"{folder}: its files are {too_large(largest_bytes())}")
        yield str(item), _text(str(item), content)


def _text(label: str, content: bytes, otherwise: str = "") -> str:
    try:
        if b"\0" not in content:
            return content.decode("utf-8-sig")
        place = content.find(b"\0")
    except UnicodeDecodeError as error:
        place = error.start
    raise TraceError(f"{label}: {otherwise or f'not UTF-8 text (byte 0x{content[place]:02x})'}")


def _archive(content: bytes) -> BinaryIO | None:
    """Return what unpacks a tar archive while it is read; None: it is none."""
    for start, unpack in _PACKED.items():
        if content.startswith(start):
            return unpack(io.BytesIO(content))
    try:
        tarfile.TarInfo.frombuf(content[: tarfile.BLOCKSIZE], tarfile.ENCODING, "surrogateescape")
    except tarfile.HeaderError:
        return None
    return io.BytesIO(content)


class _Bounded:
    """The bytes of an archive, up to a limit: some kilobytes can unpack to terabytes."""

    def __init__(self, label: str, packed: Any) -> None:
        self._label, self._packed, self._left = label, packed, largest_bytes()

    def read(self, count: int) -> bytes:
        found: bytes = self._packed.read(count)
        self.take(len(found))
        return found

    def take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise TraceError(f"{self._label}: unpacked it is {too_large(largest_bytes())}")


def _members(label: str, packed: Any) -> Iterator[tuple[str, str]]:
    bounded: Any = _Bounded(label, packed)
    try:
        with tarfile.open(fileobj=bounded, mode="r|", bufsize=_BLOCK_BYTES) as archive:
            for member in archive:
                if member.isfile() and member.name.endswith(".txt"):
                    if member.issparse():  # holes are not read, but filled
                        bounded.take(member.size)
                    content = archive.extractfile(member)
                    assert content is not None
                    yield f"{label}/{member.name}", _text(f"{label}/{member.name}", content.read())
    except (*_DAMAGED, OSError) as error:
        raise TraceError(f"{label}: damaged archive: {error}") from error


def _action(words: list[str], ranks: int, communicators: Mapping[int, tuple[int, ...]]) -> Action:
    if not words:
        raise ValueError("expected an action after the rank")
    name, arguments = words[0], words[1:]
    if name in _TEXT:
        low, high = _TEXT[name]
        if not low <= len(arguments) <= high:
            raise ValueError(f"{name} needs {_range(low, high)} arguments, not {len(arguments)}")
        return Action(name, text=" ".join(arguments))
    name, at_sign, place = name.partition("@")
    if name not in _LAYOUT:
        raise ValueError(f"unknown action {_shown(name)} (known: {', '.join(sorted((*_LAYOUT, *_TEXT)))})")
    number = 0
    if at_sign:
        if name not in COLLECTIVES:
            raise ValueError(f"{name} has no communicator: collectives have")
        number = int(place) if place.isascii() and place.isdigit() and len(place) <= _SHOWN else 0
        if number not in communicators:
            raise ValueError(f"{name}: no line says which ranks communicator {_shown(place)} has")
        ranks = len(communicators[number])
    mandatory, optional = _LAYOUT[name]
    need = sum(ranks if key.endswith("*") else 1 for key in mandatory)
    most = need + len(optional) + (ranks if name == "allgatherv" else 0)  # displacements may follow
    if not need <= len(arguments) <= most:
        raise ValueError(f"{name} needs {_range(need, most)} arguments on {ranks} ranks, not {len(arguments)}")
    if name in ("gather", "scatter") and len(arguments) == 4:
        arguments = [arguments[0], "0", *arguments[1:]]  # SimGrid leaves out a receive count of 0
    fields: dict[str, Any] = {"communicator": number}
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
        return math.trunc(_float(key, word)) if name in ("recv", "irecv") and word[:1] == "-" else _count(key, word)
    try:
        value = int(word)
    except ValueError:
        raise ValueError(f"{key} must be a whole number, not {word!r}") from None
    if key in ("datatype", "recv_datatype"):
        if value not in DATATYPES:
            raise ValueError(f"unknown datatype {value} (SimGrid numbers them -1 to {max(DATATYPES)})")
    elif key == "tag":
        if not -(1 << 31) <= value < 1 << 31:
            raise ValueError(f"tag must be from -2147483648 to 2147483647, not {_shown(word)}")
    elif key == "root":
        if not 0 <= value < ranks:
            raise ValueError(f"root {value} is not one of the {ranks} ranks")
    elif key in ("peer", "source"):
        if value == _UNDEFINED and name in ("recv", "irecv", "wait", "test", "sendRecv"):
            value = ANY_SOURCE
        wild = (ANY_SOURCE, PROC_NULL) if name in ("recv", "irecv", "wait", "test", "sendRecv") else (PROC_NULL,)
        if not 0 <= value < ranks and value not in wild:
            raise ValueError(f"rank {value} is not one of the {ranks} ranks")
    return value

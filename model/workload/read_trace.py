"""Reading and writing of traces."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.output.destination import may_replace
from hopforge.model.workload.trace import Action, Trace, TraceError
from hopforge.model.workload.trace_files import open_trace
from hopforge.model.workload.trace_line import (
    MAX_RANKS,
    MAX_WORD,
    format_action,
    parse_action,
    parse_communicator,
    shown,
)

#: least characters of the pieces in which a text is read
_PIECE = 1 << 22


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
        name, texts = open_trace(str(source))
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
            if not (head.isascii() and head.isdigit() and len(head) <= MAX_WORD):
                raise TraceError(f"expected a rank, not {shown(head)}")
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
                key, members = parse_communicator(each, ranks)
                if communicators.setdefault(key, members) != members:
                    raise ValueError(f"communicator {key} has other ranks in {texts[first[key]]!r}")
                first.setdefault(key, number)
            except ValueError as error:
                bad[number] = str(error)
    for number, each in enumerate(words):
        action = Action("init")
        if number not in bad:
            try:
                action = parse_action(each, ranks, communicators)
            except ValueError as error:
                bad[number] = str(error)
        calls.append(action)
    if bad:
        for rank in range(ranks):
            found = np.flatnonzero(np.isin(numbers[rank], list(bad)))
            if len(found):
                where = f"{files[rank]}:{lines[rank][found[0]]}"
                raise TraceError(f"{where}: {bad[int(numbers[rank][found[0]])]}")
    _check_ends(calls, numbers, files, lines)
    return Trace(name, tuple(calls), numbers, files, lines, communicators)


def _check_ends(calls: Sequence[Action], numbers: tuple[Any, ...], files: tuple[Any, ...], lines: Any) -> None:
    """Refuse a rank that goes on behind its `finalize`: two recordings in one file."""
    ends = [number for number, call in enumerate(calls) if call.name == "finalize"]
    for rank, own in enumerate(numbers):
        for end in ends:
            found = np.flatnonzero(own[:-1] == end)
            if len(found):
                after, behind = calls[own[found[0] + 1]].name, lines[rank][found[0]]
                where = f"{files[rank]}:{lines[rank][found[0] + 1]}"
                raise TraceError(f"{where}: {after} stands behind finalize (line {behind})")


def write_trace(trace: Trace, folder: str | Path) -> None:
    """Write a trace as a folder of ``rank-K.txt`` (K from 1), which appears only when it is complete.

    With ``--force`` the files of that name in a folder that is there are replaced; others stay.

    Raises
    ------
    TraceError
        The folder exists or cannot be written.
    """
    target = Path(folder)
    if not may_replace(target):
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
        if target.exists():
            for old in target.glob("rank-*.txt"):
                old.unlink()
            for new in scratch.iterdir():
                new.rename(target / new.name)
        else:
            scratch.chmod(0o755)
            scratch.rename(target)
    except OSError as error:
        raise TraceError(f"{target}: {error.strerror}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)

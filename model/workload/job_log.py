"""Job logs in the Standard Workload Format 2.2 (``.swf``, ``.swf.gz``): read and written.

Source: Chapin et al., "Benchmarks and standards for the evaluation of parallel job schedulers" (1999), and the field
list of the Parallel Workloads Archive. What the format leaves open is decided in docs/definitions/jobs.md.
"""

import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.input_file import largest_bytes, read_input, too_large

__all__ = ["FIELDS", "JobLog", "JobLogError", "log_text", "parse_log", "read_log"]

FIELDS = (
    "job", "submit", "wait", "run", "processors", "cpu_time", "memory", "requested_processors", "requested_time",
    "requested_memory", "status", "user", "group", "application", "queue", "partition", "preceding_job", "think_time",
)  # fmt: skip
"""Names of the 18 fields; -1 in a field: not known."""

#: fields that a schedule takes as whole numbers
_WHOLE = ("job", "processors", "requested_processors", "status")
#: largest amount in a field: above it a sum of seconds is not exact any more
MAX_VALUE = 1 << 53
_MAX_WORD = 40
_HEADER = re.compile(r";\s*([^\s:]+)\s*:\s*(.*)")
_ODD = re.compile(r"[^0-9+\-.eE\s]")  # float() would take more: nan, inf, 1_000


class JobLogError(UserError, ValueError):
    """A log that cannot be read: the message starts with file and line."""


@dataclass(frozen=True, eq=False)
class JobLog:
    """Lines of a log.

    Attributes
    ----------
    name : str
        Of the file, for messages.
    header : dict of str to list of str
        Label → its values, in the order of the file.
    records : ndarray
        float64[line, field] in the order of `FIELDS`; times in seconds.
    """

    name: str
    header: Mapping[str, Sequence[str]]
    records: NDArray[np.float64]

    def field(self, name: str) -> NDArray[np.float64]:
        """Return one field of every line."""
        found: NDArray[np.float64] = self.records[:, FIELDS.index(name)]
        return found


def read_log(path: Path) -> JobLog:
    """Read a log; a file packed by gzip is known by its first bytes, whatever its name.

    Raises
    ------
    JobLogError
        A line that is none of the format, damaged gzip, no text, more bytes than the limit.
    OSError
        The file cannot be read (`model.input_file`).
    """
    content = read_input(path)
    if content.startswith(b"\x1f\x8b"):
        content = _unpacked(str(path), content)
    place = content.find(b"\0")
    try:
        if place < 0:
            return parse_log(content.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError:  # names of people in comments are Latin-1 in old logs
        return parse_log(content.decode("latin-1"), str(path))
    raise JobLogError(f"{path}: not a text (byte 0x00 at {place})")


def _unpacked(label: str, content: bytes) -> bytes:
    most = largest_bytes()
    try:
        with gzip.open(io.BytesIO(content)) as packed:
            found = packed.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise JobLogError(f"{label}: damaged gzip file: {error}") from error
    if len(found) > most:
        raise JobLogError(f"{label}: unpacked it is {too_large(most)}")
    return found


def parse_log(text: str, name: str = "log") -> JobLog:
    r"""Read the text of a log.

    Blank lines and lines that begin with ``;`` are no jobs. ``; Label: value`` before the first job is a header. Fields
    that a line does not have are -1.

    Raises
    ------
    JobLogError
        More than 18 fields, or one that is no number.

    Examples
    --------
    >>> log = parse_log("; MaxNodes: 4\n1 0 0 5.5 2\n")
    >>> log.header, log.field("run").tolist(), log.field("status").tolist()
    ({'MaxNodes': ['4']}, [5.5], [-1.0])
    """
    header: dict[str, list[str]] = {}
    rows: list[list[float]] = []
    for number, line in _lines(text):
        if line.startswith(";"):
            found = None if rows else _HEADER.fullmatch(line)
            if found:
                header.setdefault(found[1], []).append(found[2])
        else:
            rows.append(_record(line, f"{name}:{number}"))
    records = np.array(rows, dtype=np.float64).reshape(len(rows), len(FIELDS))
    return JobLog(name, header, records)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(io.StringIO(text, newline=None), 1):
        bare = line.strip()
        if bare:
            yield number, bare


def _record(line: str, place: str) -> list[float]:
    words = line.split()
    if len(words) > len(FIELDS):
        raise JobLogError(f"{place}: {len(words)} fields; a job has at most {len(FIELDS)}")
    try:
        if _ODD.search(line):
            raise ValueError
        values = [float(word) for word in words]
    except ValueError:
        mistake = _mistake(words, place)
        assert mistake is not None
        raise mistake from None
    values += [-1.0] * (len(FIELDS) - len(values))
    if max(map(abs, values)) >= MAX_VALUE or any(not values[FIELDS.index(name)].is_integer() for name in _WHOLE):
        mistake = _mistake(words, place)
        if mistake is not None:
            raise mistake
    return values


def _mistake(words: list[str], place: str) -> JobLogError | None:
    """Return what is wrong with a line: its first bad field; None if nothing is."""
    for index, word in enumerate(words):
        shown = ascii(word if len(word) <= _MAX_WORD else word[:_MAX_WORD] + "...")
        field = f"{place}: field {index + 1} ({FIELDS[index]})"
        try:
            if _ODD.search(word):
                raise ValueError
            value = float(word)
        except ValueError:
            return JobLogError(f"{field}: {shown} is not a number")
        # 2^53 + 1 is 2^53 in floating point
        if abs(value) > MAX_VALUE or (abs(value) == MAX_VALUE and abs(Decimal(word)) > MAX_VALUE):
            return JobLogError(f"{field}: {shown} must be from -2^53 to 2^53")
        if FIELDS[index] in _WHOLE and not value.is_integer():
            return JobLogError(f"{field}: {shown} must be a whole number")
    return None


def log_text(log: JobLog) -> str:
    """Return a log as text; reading it gives the same header and records."""
    lines = [f"; {label}: {value}" for label, values in log.header.items() for value in values]
    lines += [" ".join(map(_number, row)) for row in log.records.tolist()]
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)

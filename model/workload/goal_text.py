"""The text form of GOAL: reading and writing (docs/definitions/goal.md)."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hopforge.model.workload.schedule import (
    ANY,
    CALC,
    MAX_OPERATIONS,
    MAX_RANKS,
    RECV,
    SEND,
    Edges,
    GoalError,
    Schedule,
)

RESERVED = ("send", "recv", "calc", "rank", "num_ranks")
_KINDS = {"send": SEND, "recv": RECV, "calc": CALC}
_LABEL = r"[A-Za-z][A-Za-z0-9_]*"
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_OPERATION = re.compile(
    rf"(?:({_LABEL})\s*:)?\s*(?:(calc)\s*(-?\d+)|(send|recv)\s*(-?\d+)\s*(b?)\s*(to|from)\s*(-?\d+))((?:\s*[a-z]+\s*-?\d+)*)\s*"
)
_OPTION = re.compile(r"([a-z]+)\s*(-?\d+)")
_DEPENDENCY = re.compile(rf"({_LABEL})\s+(i?requires)\s+({_LABEL})\s*")
_RANK = re.compile(r"rank\s*(-?\d+)\s*(\{?)\s*")
_RANKS = re.compile(r"num_ranks\s*(-?\d+)\s*")
#: option → largest value, in words the bits of its field
_OPTIONS = {"tag": ANY - 1, "cpu": 255, "nic": 255}
_LARGEST = {"size": (1 << 64) - 1, "peer": MAX_RANKS - 1, **_OPTIONS}
#: characters of a bad line that an error shows
_SHOWN = 60


def parse_goal(name: str, file: str, text: str) -> Schedule:
    """Read a schedule from its text.

    Parameters
    ----------
    name, file : str
        For reports, and for messages.
    text : str
        All of it.

    Raises
    ------
    GoalError
        The first line that is wrong, with file and number; then a circle of dependencies.
    """
    reader = _Reader(name, file)
    if "/" in text:
        text = _without_comments(file, text)
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.strip()
        if words:
            try:
                reader.take(number, words)
            except GoalError:
                raise
            except ValueError as error:
                raise GoalError(f"{file}:{number}: {error}") from None
    schedule = reader.finish()
    schedule.check_order()
    return schedule


def _without_comments(file: str, text: str) -> str:
    def blank(found: re.Match[str]) -> str:
        comment = found.group()
        if comment.startswith("/*") and (not comment.endswith("*/") or len(comment) < 4):
            line = text.count("\n", 0, found.start()) + 1
            raise GoalError(f"{file}:{line}: this comment has no end (*/)")
        return "\n" * comment.count("\n") or " "

    return _COMMENT.sub(blank, text)


class _Part(NamedTuple):
    """What a rank's block holds: a row for each operation, and its dependencies by number in the rank."""

    rows: list[tuple[int, int, int, int, int, int, int]]  # kind, peer, size, tag, cpu, nic, line
    pairs: tuple[list[tuple[int, int]], list[tuple[int, int]]]  # before, after: at_end, at_start


class _Reader:
    """Reads line by line: before `num_ranks`, between ranks, inside one."""

    def __init__(self, name: str, file: str) -> None:
        self._name, self._file = name, file
        self._ranks = 0
        self._blocks: dict[int, tuple[int, _Part]] = {}  # rank → its line and contents
        self._rank, self._line = -1, 0  # the block that is open, and where it begins
        self._brace = False
        self._operations = 0

    def take(self, number: int, words: str) -> None:
        """Read a line that is not empty; ValueError says what is wrong with it."""
        if not self._ranks:
            self._ranks = _ranks(words)
        elif self._rank < 0:
            self._open(number, words)
        elif not self._brace:
            if words != "{":
                raise ValueError(f"expected {{ behind rank {self._rank} (line {self._line}), not {_shown(words)}")
            self._brace = True
        elif words == "}":
            self._close()
        else:
            self._item(number, words)

    def _open(self, number: int, words: str) -> None:
        found = _RANK.fullmatch(words)
        if found is None:
            raise ValueError(f"expected rank NUMBER {{, not {_shown(words)}")
        rank = _number("rank", found[1], self._ranks - 1, f"the last of num_ranks {self._ranks}")
        if rank in self._blocks:
            raise ValueError(f"rank {rank} stands in line {self._blocks[rank][0]} already")
        self._rank, self._line, self._brace = rank, number, bool(found[2])
        self._part = _Part([], ([], []))
        self._labels: dict[str, tuple[int, int]] = {}  # operation, line
        self._waiting: list[tuple[int, str, str, str]] = []  # line, label, word, label

    def _item(self, number: int, words: str) -> None:
        found = _OPERATION.fullmatch(words)
        if found is None:
            dependency = _DEPENDENCY.fullmatch(words)
            if dependency is None:
                raise ValueError(_reason(words))
            self._waiting.append((number, dependency[1], dependency[2], dependency[3]))
            return
        label, calc, time, verb, size, unit, way, peer, options = found.groups()
        if label is not None:
            self._name_operation(label, number)
        chosen = {"tag": 0, "cpu": 0, "nic": 0}
        if options:
            chosen |= _options(calc or verb, options)
        message = None if calc else self._message(verb, size, unit, way, peer)
        row = message or (CALC, 0, _number("calc", time, _LARGEST["size"]))
        self._part.rows.append((*row, chosen["tag"], chosen["cpu"], chosen["nic"], number))
        self._operations += 1
        if self._operations > MAX_OPERATIONS:
            raise ValueError(f"more than {MAX_OPERATIONS} operations")

    def _message(self, verb: str, size: str, unit: str, way: str, peer: str) -> tuple[int, int, int]:
        if not unit:
            raise ValueError(f"{verb} {size}: a size ends with b (bytes), as in {size}b")
        if way != ("to" if verb == "send" else "from"):
            raise ValueError(f"{verb} has {'to' if verb == 'send' else 'from'}, not {way}")
        if verb == "recv" and peer == "-1":
            other = ANY
        else:
            other = _number(way, peer, self._ranks - 1, f"the last of num_ranks {self._ranks}")
        return _KINDS[verb], other, _number(verb, size, _LARGEST["size"])

    def _name_operation(self, label: str, number: int) -> None:
        if label in RESERVED:
            raise ValueError(f"{label} is no label: {', '.join(RESERVED)} are reserved")
        if label in self._labels:
            raise ValueError(f"label {label} stands in line {self._labels[label][1]} already")
        self._labels[label] = len(self._part.rows), number

    def _close(self) -> None:
        for number, after, word, before in self._waiting:
            for label in (after, before):
                if label not in self._labels:
                    raise GoalError(f"{self._file}:{number}: rank {self._rank} has no label {label}")
            pair = self._labels[before][0], self._labels[after][0]
            self._part.pairs[word == "irequires"].append(pair)
        self._blocks[self._rank] = self._line, self._part
        self._rank = -1

    def finish(self) -> Schedule:
        """Put the ranks together."""
        if not self._ranks:
            raise GoalError(f"{self._file}: holds no schedule: num_ranks is missing")
        if self._rank >= 0:
            raise GoalError(f"{self._file}:{self._line}: rank {self._rank} has no closing }}")
        parts = [self._blocks[rank][1] if rank in self._blocks else None for rank in range(self._ranks)]
        first = np.concatenate([[0], np.cumsum([len(part.rows) if part else 0 for part in parts])]).astype(np.int64)
        rows = [row for part in parts if part for row in part.rows]
        kind, peer, size, tag, cpu, nic, line = zip(*rows, strict=True) if rows else ((),) * 7
        edges = []
        for which in (0, 1):
            shifted = [
                np.array(part.pairs[which], np.int64).reshape(-1, 2) + first[rank]
                for rank, part in enumerate(parts)
                if part and part.pairs[which]
            ]
            pairs = np.concatenate([np.empty((0, 2), np.int64), *shifted])
            edges.append(Edges.of(len(rows), pairs[:, 0], pairs[:, 1]))
        return Schedule(
            self._name, self._file, first, np.array(kind, np.uint8), np.array(peer, np.uint32),
            np.array(size, np.uint64), np.array(tag, np.uint32), np.array(cpu, np.uint8), np.array(nic, np.uint8),
            edges[0], edges[1], np.array(line, np.int64),
        )  # fmt: skip


def _ranks(words: str) -> int:
    found = _RANKS.fullmatch(words)
    if found is None:
        raise ValueError(f"expected num_ranks NUMBER, not {_shown(words)}")
    ranks = _number("num_ranks", found[1], MAX_RANKS)
    if not ranks:
        raise ValueError("num_ranks must be at least 1, not 0")
    return ranks


def _options(verb: str, text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for word, value in _OPTION.findall(text):
        if word not in _OPTIONS:
            raise ValueError(f"expected {'cpu' if verb == 'calc' else 'tag, cpu or nic'}, not {word}")
        if verb == "calc" and word != "cpu":
            raise ValueError(f"calc takes only cpu, not {word}")
        if word in found:
            raise ValueError(f"{word} stands here twice")
        if word == "tag" and value == "-1":
            if verb == "send":
                raise ValueError("a send needs a tag of its own: tag -1 (any) is for recv")
            found[word] = ANY
        else:
            found[word] = _number(word, value, _OPTIONS[word])
    return found


def _number(key: str, digits: str, largest: int, why: str = "") -> int:
    if digits.startswith("-") or not digits.isascii():
        raise ValueError(f"{key} must be a whole number from 0, not {digits}")
    short = digits.lstrip("0") or "0"
    if len(short) > 20 or int(short) > largest:
        reason = f", {why}" if why else ""
        raise ValueError(f"{key} must be at most {largest}{reason}, not {_shown(short)}")
    return int(short)


def _shown(words: str) -> str:
    return words if len(words) <= _SHOWN else words[:_SHOWN] + "…"


def _reason(words: str) -> str:
    """Say what is wrong with a line inside a rank."""
    if ";" in words:
        return "a line of GOAL has no semicolon"
    if re.fullmatch(rf"{_LABEL}\s+i?requires\s+{_LABEL}\s.*", words):
        return f"a dependency names one label a line: {_shown(words)}"
    if re.match(r"(rank|num_ranks)\b", words):
        return f"expected }} before {_shown(words)}"
    return f"expected an operation (calc, send, recv) or a dependency (requires, irequires), not {_shown(words)}"


def goal_lines(schedule: Schedule) -> Iterator[str]:
    """Yield the text of a schedule in pieces; labels are ``l1``, ``l2``, … in each rank."""
    yield f"num_ranks {schedule.ranks}\n"
    pairs: list[tuple[int, int, str, int]] = []
    for word, edges in (("requires", schedule.at_end), ("irequires", schedule.at_start)):
        before, after = edges.before, edges.next
        # a dependency stands behind the later one of its operations, as the published converter wants it
        pairs += [(int(max(b, a)), int(a), word, int(b)) for b, a in zip(before, after, strict=True)]
    pairs.sort(key=lambda pair: pair[0])
    place = 0
    for rank in range(schedule.ranks):
        start, end = int(schedule.first[rank]), int(schedule.first[rank + 1])
        lines = [f"\nrank {rank} {{"]
        for operation in range(start, end):
            lines.append(f"l{operation - start + 1}: {schedule.words(operation)}")
            while place < len(pairs) and pairs[place][0] == operation:
                _, waiting, word, awaited = pairs[place]
                lines.append(f"l{waiting - start + 1} {word} l{awaited - start + 1}")
                place += 1
        yield "\n".join([*lines, "}\n"])

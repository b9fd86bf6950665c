"""The binary form of GOAL: reading and writing (docs/definitions/goal.md)."""

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.workload.schedule import (
    ANY,
    CALC,
    KIND_NAMES,
    MAX_OPERATIONS,
    MAX_RANKS,
    RECV,
    SEND,
    Edges,
    GoalError,
    Schedule,
    in_degrees,
)

MAGIC = 4223
#: of a schedule that the simulator of the authors has run in its place
SPOILT = 2342
_HEADER = struct.Struct("<IBB")
_BLOCK = struct.Struct("<II")
#: offsets are counted from behind the magic number
_BASE = 8
_RECORD = np.dtype([
    ("waits", "<u4"), ("kind", "u1"), ("peer", "<u4"), ("size", "<u8"), ("tag", "<u4"), ("cpu", "u1"), ("nic", "u1"),
    ("ends", "<u4"), ("first_end", "<u4"), ("starts", "<u4"), ("first_start", "<u4"),
])  # fmt: skip
_SPAN = np.dtype([("start", "<u8"), ("end", "<u8")])


def is_binary_goal(content: bytes) -> bool:
    """Tell whether a file is a schedule in binary form, spoilt or not."""
    return len(content) >= _BASE and int.from_bytes(content[:_BASE], "little") in (MAGIC, SPOILT)


def parse_binary_goal(name: str, file: str, content: bytes) -> Schedule:
    """Read a schedule from its binary form.

    Parameters
    ----------
    name, file : str
        For reports, and for messages.
    content : bytes
        All of it.

    Raises
    ------
    GoalError
        Truncated, spoilt, or numbers that contradict each other: names file, rank and operation.
    """
    if int.from_bytes(content[:_BASE], "little") == SPOILT:
        raise GoalError(f"{file}: this schedule was spoilt by a run in its place (magic {SPOILT}); convert it again")
    ranks, cpu, nic, spans = _table(file, content)
    blocks = [_Block(file, rank, content, *spans[rank].tolist()) for rank in range(ranks)]
    total = sum(len(block.records) for block in blocks)
    if total > MAX_OPERATIONS:
        raise GoalError(f"{file}: {total} operations are more than {MAX_OPERATIONS}")
    records = np.concatenate([block.records for block in blocks])
    first = np.concatenate([[0], np.cumsum([len(block.records) for block in blocks])]).astype(np.int64)
    kind, peer, size, tag, cpu_number, nic_number = (
        records[key].copy() for key in ("kind", "peer", "size", "tag", "cpu", "nic")
    )
    schedule = Schedule(
        name, file, first, kind, peer, size, tag, cpu_number, nic_number,
        _edges(blocks, first, "ends", "first_end"), _edges(blocks, first, "starts", "first_start"),
    )  # fmt: skip
    _check_fields(schedule, cpu, nic)
    waits = in_degrees(schedule)
    wrong = np.flatnonzero(waits != records["waits"])
    if len(wrong):
        raise GoalError(
            f"{schedule.where(wrong[0])}: waits for {records['waits'][wrong[0]]} dependencies by its own count, but"
            f" {waits[wrong[0]]} lead to it"
        )
    for rank, block in enumerate(blocks):
        free = np.flatnonzero(waits[first[rank] : first[rank + 1]] == 0)
        if not np.array_equal(np.sort(block.roots), free):
            raise GoalError(f"{file}: rank {rank}: its list of roots is not that of the operations without dependency")
    schedule.check_order()
    return schedule


def _table(file: str, content: bytes) -> tuple[int, int, int, NDArray[np.void]]:
    """Return ranks, highest cpu and nic, and where the block of each rank lies."""
    if len(content) < _BASE + _HEADER.size:
        raise GoalError(f"{file}: truncated: {len(content)} bytes, the header has {_BASE + _HEADER.size}")
    ranks, cpu, nic = _HEADER.unpack_from(content, _BASE)
    if not 1 <= ranks <= MAX_RANKS:
        raise GoalError(f"{file}: has {ranks} ranks; 1 to {MAX_RANKS} can be read")
    needed = _BASE + _HEADER.size + ranks * _SPAN.itemsize
    if len(content) < needed:
        raise GoalError(f"{file}: truncated: {len(content)} bytes, the table of {ranks} ranks ends at {needed}")
    spans = np.frombuffer(content, _SPAN, ranks, _BASE + _HEADER.size)
    expected = np.uint64(needed - _BASE)
    for rank, (start, end) in enumerate(spans.tolist()):
        if end + _BASE > len(content):
            raise GoalError(f"{file}: truncated: {len(content)} bytes, rank {rank} ends at {end + _BASE}")
        if start != expected or end < start:
            raise GoalError(f"{file}: rank {rank} lies from {start} to {end}; it must begin at {expected}")
        expected = end
    if int(expected) + _BASE != len(content):
        raise GoalError(f"{file}: {len(content)} bytes, but the last rank ends at {int(expected) + _BASE}")
    return ranks, cpu, nic, spans


class _Block:
    """The block of a rank: records, roots, and the appendix of successors."""

    def __init__(self, file: str, rank: int, content: bytes, start: int, end: int) -> None:
        where, at = f"{file}: rank {rank}", start + _BASE
        if end - start < _BLOCK.size:
            raise GoalError(f"{where}: truncated: its block has {end - start} bytes")
        count, roots = _BLOCK.unpack_from(content, at)
        rest = end - start - _BLOCK.size - 4 * roots - count * _RECORD.itemsize
        if rest < 0 or rest % 4:
            raise GoalError(
                f"{where}: truncated: {count} operations and {roots} roots do not fit into {end - start} bytes"
            )
        at += _BLOCK.size
        self.roots = np.frombuffer(content, "<u4", roots, at)
        at += 4 * roots
        self.records: Any = np.frombuffer(content, _RECORD, count, at)
        self.successors = np.frombuffer(content, "<u4", rest // 4, at + count * _RECORD.itemsize)
        for key, begin in (("ends", "first_end"), ("starts", "first_start")):
            some = self.records[key] > 0
            last = self.records[begin].astype(np.int64) + self.records[key]
            beyond = np.flatnonzero(some & (last > len(self.successors)))
            if len(beyond):
                raise GoalError(
                    f"{where}, operation {beyond[0]}: its successors end at entry {last[beyond[0]]}, the list has"
                    f" {len(self.successors)}"
                )
        if len(self.successors) and int(self.successors.max()) >= count:
            raise GoalError(f"{where}: operation {self.successors.max()} is named, the last one is {count - 1}")


def _edges(blocks: list[_Block], first: NDArray[np.int64], key: str, begin: str) -> Edges:
    befores, afters = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for rank, block in enumerate(blocks):
        counts = block.records[key].astype(np.int64)
        total = int(counts.sum())
        if total:
            before = np.repeat(np.arange(len(counts)), counts)
            inside = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
            places = block.records[begin].astype(np.int64)[before] + inside
            befores.append(before + first[rank])
            afters.append(block.successors[places].astype(np.int64) + first[rank])
    return Edges.of(int(first[-1]), np.concatenate(befores), np.concatenate(afters))


def _check_fields(schedule: Schedule, cpu: int, nic: int) -> None:
    kind, peer, message = schedule.kind, schedule.peer, schedule.kind != CALC
    checks = [
        (~np.isin(kind, list(KIND_NAMES)), lambda at: f"kind {kind[at]} is none of 1 (send), 2 (recv), 3 (calc)"),
        (message & (peer >= schedule.ranks) & ~((kind == RECV) & (peer == ANY)),
         lambda at: f"peer {peer[at]} is beyond the last rank {schedule.ranks - 1}"),
        ((kind == SEND) & (schedule.tag == ANY), lambda at: "a send needs a tag of its own, not any"),
        (schedule.cpu > cpu, lambda at: f"cpu {schedule.cpu[at]} is beyond the highest of the header, {cpu}"),
        (schedule.nic > nic, lambda at: f"nic {schedule.nic[at]} is beyond the highest of the header, {nic}"),
    ]  # fmt: skip
    for wrong, words in checks:
        found = np.flatnonzero(wrong)
        if len(found):
            raise GoalError(f"{schedule.where(found[0])}: {words(found[0])}")


def goal_bytes(schedule: Schedule) -> bytes:
    """Return a schedule in binary form."""
    waits = in_degrees(schedule)
    blocks = []
    for rank in range(schedule.ranks):
        start, end = int(schedule.first[rank]), int(schedule.first[rank + 1])
        records: Any = np.zeros(end - start, _RECORD)
        records["waits"] = waits[start:end]
        for key in ("kind", "peer", "size", "tag", "cpu", "nic"):
            records[key] = getattr(schedule, key)[start:end]
        ends, starts = (edges.first[start : end + 1] for edges in (schedule.at_end, schedule.at_start))
        records["ends"], records["starts"] = np.diff(ends), np.diff(starts)
        # the list holds operation by operation what may start at its end, then at its start
        records["first_end"] = (ends - ends[0] + starts - starts[0])[:-1]
        records["first_start"] = records["first_end"] + records["ends"]
        successors = np.empty(int(ends[-1] - ends[0] + starts[-1] - starts[0]), "<u4")
        for edges, key, begin in (
            (schedule.at_end, "ends", "first_end"), (schedule.at_start, "starts", "first_start"),
        ):  # fmt: skip
            counts = records[key].astype(np.int64)
            inside = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
            places = np.repeat(records[begin].astype(np.int64), counts) + inside
            successors[places] = edges.next[edges.first[start] : edges.first[end]] - start
        roots = np.flatnonzero(waits[start:end] == 0).astype("<u4")
        blocks.append(
            _BLOCK.pack(end - start, len(roots)) + roots.tobytes() + records.tobytes() + successors.tobytes()
        )
    spans = np.zeros(schedule.ranks, _SPAN)
    ends_at = np.cumsum([len(block) for block in blocks]) + _HEADER.size + schedule.ranks * _SPAN.itemsize
    spans["end"] = ends_at
    spans["start"] = ends_at - [len(block) for block in blocks]
    highest = int(schedule.cpu.max(initial=0)), int(schedule.nic.max(initial=0))
    header = MAGIC.to_bytes(_BASE, "little") + _HEADER.pack(schedule.ranks, *highest)
    return b"".join([header, spans.tobytes(), *blocks])

"""Files of Chakra: finding those of all ranks, reading them as a schedule, writing a schedule as such files."""

import contextlib
import os
import re
import sys
import zlib
from collections.abc import Iterator
from math import prod
from pathlib import Path

import numpy as np

from hopforge.model.config.workload import ChakraWorkload
from hopforge.model.input_file import largest_bytes, read_input, too_large
from hopforge.model.output.destination import may_replace
from hopforge.model.output.results import staged
from hopforge.model.workload.chakra_groups import ChakraError, GroupFinder, Groups, groups_of, read_groups
from hopforge.model.workload.chakra_matching import Found, find_collectives
from hopforge.model.workload.chakra_nodes import (
    COMPUTE,
    CPU,
    NIC,
    RECEIVE,
    SEND,
    STARTED,
    TYPES,
    UNITS,
    Node,
    Value,
    nodes_bytes,
    parse_nodes,
)
from hopforge.model.workload.chakra_rank import RankNodes
from hopforge.model.workload.chakra_schedule import DEVICE, HOST, MESSAGES, chakra_schedule
from hopforge.model.workload.protobuf import WireError
from hopforge.model.workload.schedule import ANY, CALC, MAX_RANKS, Edges, Schedule
from hopforge.model.workload.schedule import SEND as SENDS

#: what the names of the files that we write begin with
PREFIX = "trace"
_GZIP = b"\x1f\x8b"
_WINDOW = 31  # of zlib: a gzip header, and the largest window


def read_chakra(config: ChakraWorkload) -> Schedule:
    """Read the traces of all ranks as a schedule; its unit is the nanosecond.

    Raises
    ------
    ChakraError
        Files that are missing, cannot be read or are too large, or what is wrong in them, with byte or node.
    """
    prefix = Path(config.file)
    files = _files(prefix)
    if config.dimensions and prod(config.dimensions) != len(files):
        sizes = " × ".join(map(str, config.dimensions))
        raise ChakraError(f"workload.dimensions: {sizes} must be the number of ranks, {len(files)}")
    finder = GroupFinder(len(files), config.dimensions, _shared_groups(config, prefix, len(files)))
    ranks: list[RankNodes] = []
    collectives: list[Found] = []
    unknown: list[tuple[int, Node]] = []
    for rank, path in enumerate(files):
        try:
            nodes = parse_nodes(_content(path))
            own = groups_of(nodes, len(files))
            part = RankNodes(rank, nodes, config.honour_ctrl_deps)
            collectives.append(find_collectives(part, own, finder, config))
        except WireError as error:
            raise ChakraError(f"{path}: {error}") from None
        ranks.append(part)
        unknown += [(rank, node) for node in part.nodes if not 0 <= node.kind < len(TYPES)]
    if unknown and config.unknown_nodes == "refuse":
        rank, node = unknown[0]
        raise ChakraError(
            f"{files[rank]}: node {node.id}: unknown type {node.kind}; of all ranks {len(unknown)} such nodes"
            f" (known: 0 to {len(TYPES) - 1}; workload.unknown_nodes: skip lets them take no time)"
        )
    if unknown:
        what = "node of an unknown type takes" if len(unknown) == 1 else "nodes of unknown types take"
        sys.stderr.write(f"hopforge: {prefix}: {len(unknown)} {what} no time\n")
    return chakra_schedule(prefix.name, str(prefix), ranks, collectives, config)


def _files(prefix: Path) -> list[Path]:
    """Return the file of each rank, PREFIX.RANK.et or PREFIX.RANK.et.gz."""
    pattern = re.compile(re.escape(prefix.name) + r"\.(0|[1-9][0-9]{0,6})\.et(?:\.gz)?")
    found: dict[int, Path] = {}
    try:
        with contextlib.suppress(FileNotFoundError), os.scandir(prefix.parent) as entries:
            for entry in entries:
                match = pattern.fullmatch(entry.name)
                if match is None:
                    continue
                rank = int(match[1])
                if rank in found:
                    one, other = sorted((found[rank].name, entry.name))
                    raise ChakraError(f"{prefix}: rank {rank} has two files, {one} and {other}")
                found[rank] = prefix.parent / entry.name
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ChakraError(f"{prefix}: files beside it cannot be listed: {reason}") from error
    if not found:
        hint = "; name what stands before .RANK.et" if re.search(r"\.et(\.gz)?$", prefix.name) else ""
        raise ChakraError(f"{prefix}: there is neither {prefix.name}.0.et nor {prefix.name}.0.et.gz{hint}")
    if len(found) > MAX_RANKS:
        raise ChakraError(f"{prefix}: {len(found)} ranks are more than {MAX_RANKS}")
    for rank in range(len(found)):
        if rank not in found:
            raise ChakraError(f"{prefix}.{rank}.et: rank {rank} is missing; the highest is rank {max(found)}")
    return [found[rank] for rank in range(len(found))]


def _content(path: Path) -> bytes:
    try:
        content = read_input(path)
        most = largest_bytes()
    except OSError as error:
        raise ChakraError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not content.startswith(_GZIP):
        return content
    parts, left = [], most
    try:
        while content:  # a gzip file may have several members
            unpack = zlib.decompressobj(_WINDOW)
            parts.append(unpack.decompress(content, left + 1))
            left -= len(parts[-1])
            if left < 0:
                raise ChakraError(f"{path}: holds, unpacked, {too_large(most)}")
            if not unpack.eof:
                raise ChakraError(f"{path}: truncated: the gzip archive of {len(content)} bytes has no end")
            content = unpack.unused_data
    except zlib.error as error:
        raise ChakraError(f"{path}: damaged gzip archive: {error}") from None
    return b"".join(parts)


def _shared_groups(config: ChakraWorkload, prefix: Path, ranks: int) -> Groups:
    if config.process_groups is not None:
        return read_groups(config.process_groups, ranks)
    beside = prefix.with_name(f"{prefix.name}.json")
    return read_groups(beside, ranks) if beside.exists() else {}


# ---- writing -------------------------------------------------------------------------------------------------------


def write_chakra(schedule: Schedule, folder: str | Path) -> None:
    """Write a schedule as ``trace.RANK.et`` in a new folder, which appears only when it is complete.

    With ``--force`` the files of that name in a folder that is there are replaced; others stay.

    Raises
    ------
    ChakraError
        The folder exists.
    ResultError
        It cannot be written.
    """
    target = Path(folder)
    if not may_replace(target):
        raise ChakraError(f"{target}: exists already")
    with staged(target) as scratch:
        for rank, nodes in enumerate(_nodes(schedule)):
            with (scratch / f"{PREFIX}.{rank}.et").open("wb") as file:
                for piece in nodes_bytes(nodes):
                    file.write(piece)
    for old in target.glob(f"{PREFIX}.*.et"):  # of more ranks than this schedule has
        if not old.name.removeprefix(f"{PREFIX}.").removesuffix(".et").isdecimal():
            continue
        if int(old.name.split(".")[1]) >= schedule.ranks:
            old.unlink()


def _nodes(schedule: Schedule) -> Iterator[list[Node]]:
    """Yield the nodes of each rank; numbers begin at 0 in each."""
    ends, starts = (Edges.of(schedule.operations, edges.next, edges.before) for edges in
                    (schedule.at_end, schedule.at_start))  # fmt: skip
    for rank in range(schedule.ranks):
        first, last = int(schedule.first[rank]), int(schedule.first[rank + 1])
        nodes = []
        for operation in range(first, last):
            node = _written(schedule, operation, rank)
            node.id = operation - first
            node.data = (_awaited(ends, operation) - first).astype(np.uint64)
            started = _awaited(starts, operation) - first
            if len(started):
                node.attributes[STARTED] = started.tolist()
            nodes.append(node)
        yield nodes


def _awaited(edges: Edges, operation: int) -> np.ndarray:
    return edges.next[edges.first[operation] : edges.first[operation + 1]]


def _written(schedule: Schedule, operation: int, rank: int) -> Node:
    """Return a node without number and dependencies; times are whole µs for others, exact for us."""
    kind, size = int(schedule.kind[operation]), int(schedule.size[operation])
    cpu, nic = int(schedule.cpu[operation]), int(schedule.nic[operation])
    name = schedule.words(operation)
    attributes: dict[str, Value]
    if kind == CALC:
        attributes = {"is_cpu_op": int(cpu == HOST), UNITS: size}
        if cpu not in (DEVICE, HOST):
            attributes[CPU] = cpu
        return Node(kind=COMPUTE, name=name, micros=-(-size // 1000), attributes=attributes)
    numbers = int(schedule.peer[operation]), int(schedule.tag[operation])
    peer, tag = (-1 if number == ANY else number for number in numbers)
    ends = (rank, peer) if kind == SENDS else (peer, rank)
    attributes = {"comm_size": size, "comm_src": ends[0], "comm_dst": ends[1], "comm_tag": tag}
    if cpu != MESSAGES:
        attributes[CPU] = cpu
    if nic:
        attributes[NIC] = nic
    return Node(kind=SEND if kind == SENDS else RECEIVE, name=name, attributes=attributes)

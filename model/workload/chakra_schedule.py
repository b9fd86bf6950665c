"""Nodes of Chakra as a schedule: computations, messages, and collectives as messages (docs/definitions/chakra.md)."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.workload import ChakraWorkload
from hopforge.model.workload.chakra_collectives import Collective, Template
from hopforge.model.workload.chakra_groups import ChakraError
from hopforge.model.workload.chakra_matching import Found, matched
from hopforge.model.workload.chakra_nodes import (
    COLLECTIVE,
    COMPUTE,
    CPU,
    LOAD,
    NIC,
    RECEIVE,
    SEND,
    STORE,
    UNITS,
    Node,
)
from hopforge.model.workload.chakra_rank import Pairs, RankNodes
from hopforge.model.workload.protobuf import WireError
from hopforge.model.workload.schedule import ANY, CALC, MAX_OPERATIONS, RECV, Edges, Schedule
from hopforge.model.workload.schedule import SEND as SENDS

#: streams of a rank: computations of device and host, messages, what takes no time
DEVICE, HOST, MESSAGES, NO_TIME = range(4)
_COMPUTES = (LOAD, STORE, COMPUTE)
_MOST = (1 << 63) - 1


class Row(NamedTuple):
    """An operation: fields of `Schedule`."""

    kind: int
    peer: int
    size: int
    tag: int
    cpu: int
    nic: int


def chakra_schedule(
    name: str, file: str, ranks: Sequence[RankNodes], collectives: Sequence[Found], config: ChakraWorkload
) -> Schedule:
    """Put the nodes of all ranks together; the unit is the nanosecond.

    Parameters
    ----------
    name, file : str
        For reports, and what the names of the files begin with.
    ranks : sequence of RankNodes
        The nodes.
    collectives : sequence of dict
        Of `find_collectives`, for each rank.
    config : ChakraWorkload
        How they are taken.

    Raises
    ------
    ChakraError
        A node that cannot be, with file and number; then a circle of dependencies.
    """
    rows, largest = [], -1
    for part, found in zip(ranks, collectives, strict=True):
        rows.append(_rows(file, part, found, config, len(ranks)))
        largest = max([largest, *(row.tag for row in rows[-1] if row.kind != CALC and row.tag != ANY)])
    tags = matched(file, ranks, collectives, config, largest + 1)
    parts, total = [], 0
    for part, found, lines in zip(ranks, collectives, rows, strict=True):
        made = _RankOperations(part, found, tags[part.rank], lines, config)
        total += len(made.kind)
        if total > MAX_OPERATIONS:
            raise ChakraError(f"{file}: more than {MAX_OPERATIONS} operations")
        parts.append(made)
    schedule = _joined(name, file, parts)
    schedule.check_order()
    return schedule


def _rows(
    file: str, part: RankNodes, collectives: Found, config: ChakraWorkload, ranks: int
) -> list[Row]:
    rows = []
    for place, node in enumerate(part.nodes):
        try:
            rows.append(_row(node, part.rank, ranks, config, place in collectives))
        except WireError as error:
            raise ChakraError(f"{file}.{part.rank}.et: node {node.id}: {error}") from None
    return rows


def _row(node: Node, rank: int, ranks: int, config: ChakraWorkload, expanded: bool) -> Row:
    """Return the operation of a node; of a collective that is expanded what stands at its end."""
    cpu, nic = (_least(node, key, 255) for key in (CPU, NIC))
    if node.kind in (SEND, RECEIVE):
        peer = _peer(node, rank, ranks)
        tag = _least(node, "comm_tag", ANY - 1, any_too=node.kind == RECEIVE) or 0
        size = _least(node, "comm_size", _MOST)
        if size is None:
            raise WireError("has no comm_size")
        kind = SENDS if node.kind == SEND else RECV
        return Row(kind, peer, size, tag, MESSAGES if cpu is None else cpu, nic or 0)
    if node.kind in _COMPUTES:
        units = _least(node, UNITS, _MOST)
        stream = HOST if _least(node, "is_cpu_op", 1) else DEVICE
        time = _time(node, config) if units is None else units
        return Row(CALC, 0, time, 0, stream if cpu is None else cpu, 0)
    if node.kind == COLLECTIVE and not expanded:
        return Row(CALC, 0, _replayed(node), 0, MESSAGES, 0)
    return Row(CALC, 0, 0, 0, NO_TIME, 0)


def _least(node: Node, name: str, most: int, *, any_too: bool = False) -> int | None:
    """Return an attribute that counts from 0; -1 means any if `any_too`."""
    value = node.number(name)
    if value is None or 0 <= value <= most:
        return value
    if any_too and value in (-1, ANY):
        return ANY
    raise WireError(f"{name} must be from 0 to {most}, not {value}")


def _peer(node: Node, rank: int, ranks: int) -> int:
    own, other = ("comm_src", "comm_dst") if node.kind == SEND else ("comm_dst", "comm_src")
    here, peer = node.number(own), _least(node, other, ranks - 1, any_too=node.kind == RECEIVE)
    if here not in (None, rank):
        raise WireError(f"{own} must be the own rank {rank}, not {here}")
    if peer is None:
        raise WireError(f"has no {other}")
    return peer


def _time(node: Node, config: ChakraWorkload) -> int:
    """Return whole nanoseconds of a computation, at least 1."""
    flops, size = (_least(node, key, _MOST) for key in ("num_ops", "tensor_size"))
    if config.durations == "replay" or (flops is None and size is None):
        return _replayed(node)
    assert config.peak_gflops is not None, "checked by model.config"
    assert config.memory_gigabytes_per_s is not None, "checked by model.config"
    time = max((flops or 0) / config.peak_gflops, (size or 0) / config.memory_gigabytes_per_s)
    if time > _MOST:
        raise WireError(f"lasts {time:.6g} ns; at most {_MOST} can be counted")
    return max(1, math.ceil(time))


def _replayed(node: Node) -> int:
    if node.micros * 1000 > _MOST:
        raise WireError(f"lasts {node.micros} µs; at most {_MOST // 1000} can be counted")
    return max(1, node.micros * 1000)


class _RankOperations:
    """The operations of a rank: one for a node, but of a collective a begin, its messages and an end."""

    def __init__(
        self, part: RankNodes, collectives: Found, tags: dict[int, int], rows: list[Row],
        config: ChakraWorkload,
    ) -> None:
        counts = np.ones(len(rows), np.int64)
        templates: dict[int, tuple[Template, int, NDArray[np.int64]]] = {}  # place → it, own place in it, bytes
        for place, (_, found) in collectives.items():
            (steps, sizes), own = found.messages(config), found.members.index(part.rank)
            first, end = int(steps.first[own]), int(steps.first[own + 1])
            inside = end - first
            if inside:
                templates[place] = steps, own, sizes[steps.transfer[first:end]]
                counts[place] = inside + 2
        self.first = np.cumsum(counts) - counts
        self.last = self.first + counts - 1
        total = int(counts.sum())
        self.kind, self.cpu = np.full(total, CALC, np.uint8), np.full(total, NO_TIME, np.uint8)
        self.nic, self.size = np.zeros(total, np.uint8), np.zeros(total, np.uint64)
        self.peer, self.tag = np.zeros(total, np.uint32), np.zeros(total, np.uint32)
        self.node = np.repeat(part.ids, counts)
        for key, values in zip(Row._fields, zip(*rows, strict=True), strict=False):
            array = getattr(self, key)
            array[self.last] = np.array(values, array.dtype)
        before, after = part.waits
        self._pairs = [(self.last[before], self.first[after])]
        self.starts: Pairs = self.first[part.starts[0]], self.first[part.starts[1]]
        for place, (steps, own, sizes) in templates.items():
            self._expand(place, steps, own, collectives[place][1], tags[place], sizes)
        self.ends: Pairs = (
            np.concatenate([pair[0] for pair in self._pairs]), np.concatenate([pair[1] for pair in self._pairs])
        )  # fmt: skip

    def _expand(
        self, place: int, steps: Template, own: int, found: Collective, tag: int, sizes: NDArray[np.int64]
    ) -> None:
        begin, end = int(self.first[place]), int(self.last[place])
        inside = slice(int(steps.first[own]), int(steps.first[own + 1]))
        here, at = slice(begin + 1, end), begin + 1
        self.kind[here] = steps.kind[inside]
        self.peer[here] = np.array(found.members)[steps.peer[inside]]
        self.size[here] = sizes
        self.tag[here] = tag + steps.round[inside]
        self.cpu[here] = MESSAGES
        heads, tails = (np.flatnonzero(which[inside]) + at for which in (steps.head, steps.tail))
        pairs = slice(int(steps.first_pair[own]), int(steps.first_pair[own + 1]))
        shift = at - inside.start
        self._pairs += [
            (np.full(len(heads), begin), heads), (steps.before[pairs] + shift, steps.after[pairs] + shift),
            (tails, np.full(len(tails), end)),
        ]  # fmt: skip


def _joined(name: str, file: str, parts: list[_RankOperations]) -> Schedule:
    first = np.concatenate([[0], np.cumsum([len(part.kind) for part in parts])]).astype(np.int64)
    edges = []
    for which in ("ends", "starts"):
        pairs = [getattr(part, which) for part in parts]
        before, after = (
            np.concatenate([pair[side] + start for pair, start in zip(pairs, first[:-1], strict=True)])
            for side in (0, 1)
        )
        edges.append(Edges.of(int(first[-1]), before, after))
    kind, peer, size, tag, cpu, nic, node = (
        np.concatenate([getattr(part, key) for part in parts]) for key in (*Row._fields, "node")
    )
    return Schedule(name, file, first, kind, peer, size, tag, cpu, nic, edges[0], edges[1], node=node)

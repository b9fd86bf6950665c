"""A program as a graph: per rank computations, sends and receives, and which waits for which (GOAL's schedules).

docs/definitions/goal.md is the definition. A time-independent trace is one after the other; a schedule need not be.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.kernel.compile import kernel

#: kinds of operations, as in the binary form
SEND, RECV, CALC = 1, 2, 3
KIND_NAMES = {SEND: "send", RECV: "recv", CALC: "calc"}
#: of a receive: any source, any tag
ANY = (1 << 32) - 1
#: most ranks, as of traces; most operations
MAX_RANKS = 1 << 20
MAX_OPERATIONS = (1 << 31) - 1
#: operations of a cycle, and others, that an error names
NAMED = 8


class GoalError(UserError, ValueError):
    """A schedule that cannot be read or run: the message starts with file and line, or file, rank and operation."""


class Edges(NamedTuple):
    """Dependencies in the order of their first operations: compressed rows.

    Attributes
    ----------
    first : ndarray, int64[operation + 1]
        Where those of an operation begin.
    next : ndarray, int32[...]
        Operations that wait for it.
    """

    first: NDArray[np.int64]
    next: NDArray[np.int32]

    @classmethod
    def of(cls, operations: int, before: NDArray[np.integer], after: NDArray[np.integer]) -> "Edges":
        """Sort pairs of which ``after[i]`` waits for ``before[i]``; those of one operation keep their order."""
        order = np.argsort(before, kind="stable")
        counts = np.bincount(before, minlength=operations) if len(before) else np.zeros(operations, np.int64)
        return cls(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), after[order].astype(np.int32))

    @property
    def before(self) -> NDArray[np.int32]:
        """int32[...]: the operation that each entry of `next` waits for."""
        return np.repeat(np.arange(len(self.first) - 1, dtype=np.int32), np.diff(self.first))


@dataclass(frozen=True, eq=False)
class Schedule:
    """A schedule; operations are numbered through all ranks.

    Attributes
    ----------
    name : str
        For reports.
    file : str
        Where it was read; empty: nowhere.
    first : ndarray, int64[rank + 1]
        Where the operations of a rank begin.
    kind : ndarray, uint8[operation]
        SEND, RECV or CALC.
    peer, tag : ndarray, uint32[operation]
        Other rank and tag; of a receive perhaps ANY; 0 of CALC.
    size : ndarray, uint64[operation]
        Bytes; of CALC its time, in the unit of the schedule.
    cpu, nic : ndarray, uint8[operation]
        Streams.
    at_end, at_start : Edges
        What may start when an operation is complete (`requires`), and when it has started (`irequires`).
    line : ndarray, int64[operation], optional
        Lines in a text.
    node : ndarray, uint64[operation], optional
        Nodes of execution traces that they come from: `file` is what the names of the traces begin with.
    streams : tuple of str
        What the cpus are for, if that is known.
    """

    name: str
    file: str
    first: NDArray[np.int64]
    kind: NDArray[np.uint8]
    peer: NDArray[np.uint32]
    size: NDArray[np.uint64]
    tag: NDArray[np.uint32]
    cpu: NDArray[np.uint8]
    nic: NDArray[np.uint8]
    at_end: Edges
    at_start: Edges
    line: NDArray[np.int64] | None = None
    node: NDArray[np.uint64] | None = None
    streams: tuple[str, ...] = ()

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.first) - 1

    @property
    def operations(self) -> int:
        """Number of operations."""
        return len(self.kind)

    @property
    def rank(self) -> NDArray[np.int32]:
        """int32[operation]: whose it is."""
        return np.repeat(np.arange(self.ranks, dtype=np.int32), np.diff(self.first))

    def rank_of(self, operation: int) -> int:
        """Return whose operation it is."""
        return int(np.searchsorted(self.first, operation, side="right")) - 1

    def where(self, operation: int) -> str:
        """Return ``FILE:LINE`` of an operation; without lines its place in its rank, from 0."""
        if self.line is not None:
            return f"{self.file}:{self.line[operation]}"
        rank = self.rank_of(operation)
        if self.node is not None:
            return f"{self.file}.{rank}.et: node {self.node[operation]}"
        inside = f"rank {rank}, operation {operation - int(self.first[rank])}"
        return f"{self.file}: {inside}" if self.file else inside

    def words(self, operation: int) -> str:
        """Say what an operation is, as in the text form: ``send 5b to 1 tag 3``."""
        kind, size, cpu = int(self.kind[operation]), int(self.size[operation]), int(self.cpu[operation])
        stream = f" cpu {cpu}" if cpu else ""
        if kind == CALC:
            return f"calc {size}{stream}"
        way = "to" if kind == SEND else "from"
        peer, tag = (_or_any(int(values[operation])) for values in (self.peer, self.tag))
        port = f" nic {self.nic[operation]}" if self.nic[operation] else ""
        return f"{KIND_NAMES[kind]} {size}b {way} {peer}{f' tag {tag}' if tag else ''}{stream}{port}"

    def check_order(self) -> None:
        """Refuse operations that wait for each other in a circle.

        Raises
        ------
        GoalError
            Names the circle.
        """
        edges = Edges.of(
            self.operations,
            np.concatenate([self.at_end.before, self.at_start.before]),
            np.concatenate([self.at_end.next, self.at_start.next]),
        )
        left = _left_over(edges.first, edges.next)
        if not left.any():
            return
        circle = _circle(edges, left)
        shown = circle if len(circle) <= NAMED else [*circle[: NAMED - 1], circle[-1]]
        parts = [f"{self.words(each)} ({self.where(each)})" for each in shown]
        if len(shown) < len(circle):
            parts.insert(NAMED - 1, f"… {len(circle) - len(shown)} more …")
        raise GoalError(
            f"{self.where(circle[0])}: rank {self.rank_of(circle[0])} has operations that wait for each other in a"
            f" circle: {' before '.join(parts)} before {self.words(circle[0])}"
        )


def _or_any(value: int) -> int:
    return -1 if value == ANY else value


@kernel
def _left_over(first, following):  # type: ignore[no-untyped-def]
    """Return bool[operation]: never free, for it waits in a circle or for one."""
    count = len(first) - 1
    waits = np.zeros(count, np.int64)
    for entry in range(len(following)):
        waits[following[entry]] += 1
    free = np.empty(count, np.int64)
    size = 0
    for node in range(count):
        if waits[node] == 0:
            free[size] = node
            size += 1
    done = 0
    while done < size:
        node = free[done]
        done += 1
        for entry in range(first[node], first[node + 1]):
            waits[following[entry]] -= 1
            if waits[following[entry]] == 0:
                free[size] = following[entry]
                size += 1
    return waits > 0


def _circle(edges: Edges, left: NDArray[np.bool_]) -> list[int]:
    """Return a circle among the operations that are left: each has one before it that is left, too."""
    inside = left[edges.before] & left[edges.next]
    before = {int(after): int(node) for node, after in zip(edges.before[inside], edges.next[inside], strict=True)}
    node = int(np.flatnonzero(left)[0])
    seen: dict[int, int] = {}
    while node not in seen:
        seen[node] = len(seen)
        node = before[node]
    circle = list(seen)[seen[node] :][::-1]
    start = circle.index(min(circle))
    return circle[start:] + circle[:start]


def in_degrees(schedule: Schedule) -> NDArray[np.int64]:
    """Return int64[operation]: how many dependencies it waits for."""
    following = np.concatenate([schedule.at_end.next, schedule.at_start.next])
    return np.bincount(following, minlength=schedule.operations).astype(np.int64)

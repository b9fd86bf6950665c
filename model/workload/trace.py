"""Time-independent traces of MPI programs, as SimGrid 3.32 records and replays them.

A trace is one text per rank; a line is ``<rank> <action> <arguments>``. Sizes count elements of a datatype whose number
stands at the end of the line. Like in SimGrid's replay, everything happens in MPI_COMM_WORLD, except what hopforge
records: ``communicator 1 4 2 0`` says that communicator 1 has the ranks 4, 2 and 0, ``bcast@1 …`` is a call in it, with
root and counts by rank in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError

ANY_SOURCE, ANY_TAG, PROC_NULL = -555, -444, -666  # SimGrid's mpi.h

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
COLLECTIVES = frozenset({
    "barrier", "bcast", "reduce", "allreduce", "alltoall", "alltoallv", "gather", "gatherv", "scatter", "scatterv",
    "allgather", "allgatherv", "reducescatter", "scan", "exscan",
})


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

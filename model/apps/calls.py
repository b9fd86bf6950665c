"""The calls of the ranks of a generated program, written one after the other."""

from collections.abc import Callable, Iterable

import numpy as np

from hopforge.model.errors import UserError
from hopforge.model.workload.trace import Action, Trace

#: SimGrid's datatype numbers of what programs send
DOUBLE, INT, LONG, FLOAT, BYTE, LOGICAL, COMPLEX16 = 0, 1, 4, 5, 6, 23, 43


class AppError(UserError, ValueError):
    """A program that cannot run so: the message names key, what is allowed, and value."""


class Calls:
    """What one rank calls, in order.

    Equal actions of a program are one object, so that programs of millions of calls fit in memory.

    Parameters
    ----------
    rank : int
        The rank that calls.
    known : dict
        Actions that the program has already, shared by its ranks.
    most_iterations : int, optional
        Stop after so many iterations (default: as many as the program's definition says).
    """

    def __init__(self, rank: int, known: dict[Action, Action], most_iterations: int | None = None) -> None:
        self.rank = rank
        self.actions: list[Action] = []
        self._known = known
        self._most_iterations = most_iterations

    def iterations(self, defined: int) -> int:
        """Return how many iterations to write of those that the program's definition says."""
        return defined if self._most_iterations is None else min(defined, self._most_iterations)

    def add(self, action: Action) -> None:
        """Append any call."""
        self.actions.append(self._known.setdefault(action, action))

    def part(self) -> "Calls":
        """Return an empty list of calls of the same rank, to be used with `extend`."""
        return Calls(self.rank, self._known, self._most_iterations)

    def extend(self, part: "Calls", times: int = 1) -> None:
        """Append the calls of `part`, `times` times."""
        self.actions += part.actions * times

    def send(self, to: int, tag: int, count: int, datatype: int = DOUBLE) -> None:
        """MPI_Send."""
        self.add(Action("send", peer=to, tag=tag, count=count, datatype=datatype))

    def isend(self, to: int, tag: int, count: int, datatype: int = DOUBLE) -> None:
        """MPI_Isend."""
        self.add(Action("isend", peer=to, tag=tag, count=count, datatype=datatype))

    def recv(self, source: int, tag: int, count: int, datatype: int = DOUBLE) -> None:
        """MPI_Recv."""
        self.add(Action("recv", peer=source, tag=tag, count=count, datatype=datatype))

    def irecv(self, source: int, tag: int, count: int, datatype: int = DOUBLE) -> None:
        """MPI_Irecv."""
        self.add(Action("irecv", peer=source, tag=tag, count=count, datatype=datatype))

    def wait_received(self, source: int, tag: int) -> None:
        """MPI_Wait for the oldest `irecv` of this source and tag."""
        self.add(Action("wait", source=source, peer=self.rank, tag=tag))

    def wait_sent(self, to: int, tag: int) -> None:
        """MPI_Wait for the oldest `isend` of this destination and tag."""
        self.add(Action("wait", source=self.rank, peer=to, tag=tag))

    def waitall(self, requests: int) -> None:
        """MPI_Waitall."""
        self.add(Action("waitall", text=str(requests)))

    def exchange(self, to: int, count: int, source: int, recv_count: int, datatype: int = DOUBLE) -> None:
        """MPI_Sendrecv."""
        self.add(Action(
            "sendRecv", count=count, peer=to, recv_count=recv_count, source=source, datatype=datatype,
            recv_datatype=datatype,
        ))

    def barrier(self) -> None:
        """MPI_Barrier."""
        self.add(Action("barrier"))

    def bcast(self, count: int, datatype: int = DOUBLE, root: int = 0) -> None:
        """MPI_Bcast."""
        self.add(Action("bcast", count=count, root=root, datatype=datatype))

    def reduce(self, count: int, datatype: int = DOUBLE, root: int = 0) -> None:
        """MPI_Reduce."""
        self.add(Action("reduce", count=count, root=root, datatype=datatype))

    def allreduce(self, count: int, datatype: int = DOUBLE) -> None:
        """MPI_Allreduce."""
        self.add(Action("allreduce", count=count, datatype=datatype))

    def alltoall(self, count: int, datatype: int = DOUBLE) -> None:
        """MPI_Alltoall."""
        self.add(Action(
            "alltoall", count=count, recv_count=count, datatype=datatype, recv_datatype=datatype
        ))

    def alltoallv(self, counts: tuple[int, ...], recv_counts: tuple[int, ...], datatype: int = DOUBLE) -> None:
        """MPI_Alltoallv."""
        self.add(Action(
            "alltoallv", count=sum(counts), counts=counts, recv_count=sum(recv_counts), recv_counts=recv_counts,
            datatype=datatype, recv_datatype=datatype,
        ))

    def compute(self, flops: float) -> None:
        """Calculate for so many operations; nothing is written for none."""
        if flops > 0:
            self.add(Action("compute", amount=float(flops)))


def written_program(
    name: str, ranks: int, write: Callable[[Calls], None], most_iterations: int | None = None
) -> Trace:
    """Return the program of which `write` appends the calls of one rank; `init` and `finalize` stand around them.

    Parameters
    ----------
    name : str
        Name for reports, for example ``cg.A.64``.
    ranks : int
        Number of ranks.
    write : callable
        Called once for each rank.
    most_iterations : int, optional
        Iterations after which a program that asks for them stops.
    """
    known: dict[Action, Action] = {}
    programs = []
    for rank in range(ranks):
        calls = Calls(rank, known, most_iterations)
        calls.add(Action("init"))
        write(calls)
        calls.add(Action("finalize"))
        programs.append(tuple(calls.actions))
    files = tuple(f"{name}, rank {rank}, call" for rank in range(ranks))
    lines = tuple(np.arange(1, len(program) + 1, dtype=np.int32) for program in programs)
    return Trace.of(name, programs, files, lines)


def listed(numbers: Iterable[int], most: int = 12) -> str:
    """Join numbers for an error message, the first `most` of them."""
    found = list(numbers)
    more = ", …" if len(found) > most else ""
    return ", ".join(map(str, found[:most])) + more

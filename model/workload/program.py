"""A recorded MPI program as messages between ranks.

The network simulator runs the operations by the times at which messages arrive (`model.network.parts.programs`), the
replay through caches in an order without times (`model.workload.packet_order`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.workload.expanded_collectives import Transfers, alike_operations
from hopforge.model.workload.operations import COMPUTE, JOIN, RECEIVE
from hopforge.model.workload.trace import Trace
from hopforge.model.workload.unit_calls import UnitCalls

#: ranks that wait for ever which an error names
NAMED_RANKS = 8


@dataclass(frozen=True, eq=False)
class Program:
    """What every rank does, in its order.

    Attributes
    ----------
    ranks : int
        Number of ranks.
    first : ndarray, int64[rank + 1]
        Where the operations of a rank start.
    kind : ndarray, int8[operation]
        SEND, WAIT_SENT, POST, RECEIVE, COMPUTE, SLEEP or JOIN (`model.workload.operations`).
    operand : ndarray, int64[operation]
        Number of the message; of COMPUTE and SLEEP: of the amount.
    action : ndarray, int32[operation]
        Action of the rank's trace that the operation belongs to.
    amount : ndarray, float64[...]
        Flops of COMPUTE, seconds of SLEEP.
    source, destination : ndarray, int32[message]
        Ranks.
    size_bytes : ndarray, int64[message]
        Payload.
    units : UnitCalls, optional
        Collectives that collective units do; the operand of JOIN is a part of them.
    """

    ranks: int
    first: NDArray[np.int64]
    kind: NDArray[np.int8]
    operand: NDArray[np.int64]
    action: NDArray[np.int32]
    amount: NDArray[np.float64]
    source: NDArray[np.int32]
    destination: NDArray[np.int32]
    size_bytes: NDArray[np.int64]
    units: UnitCalls | None = None

    @property
    def messages(self) -> int:
        """Number of messages, those of a rank to itself included."""
        return len(self.source)

    @property
    def flops(self) -> float:
        """Operations of all computations."""
        if not len(self.amount):  # so that operations that are made when they are asked for are not
            return 0.0
        return float(self.amount[self.operand[self.kind == COMPUTE]].sum())


class RegularProgram(Program):
    """One collective in whose rounds every rank sends one message and receives one, and nothing else.

    In a round a rank posts its receive, sends, waits for what it receives and until what it sent has left. What rank r
    sends in round i is message i · ranks + r. `kind` and `operand`, most of the memory, are made when they are asked
    for.

    Attributes
    ----------
    in_rounds : bool
        Whether that still holds: not of one that `dataclasses.replace` makes.
    """

    in_rounds = False

    @classmethod
    def of(
        cls, ranks: int, transfers: Transfers, size_bytes: NDArray[np.int64], call: NDArray[np.int32]
    ) -> "RegularProgram":
        """Return the program of transfers of `REGULAR`.

        Parameters
        ----------
        ranks : int
            Number of ranks.
        transfers : Transfers
            Its messages.
        size_bytes : ndarray, int64[message]
            Payload.
        call : ndarray, int32[rank]
            Where each rank calls it in its trace.
        """
        operations = 4 * len(transfers.source)
        each = operations // ranks
        found = cls.__new__(cls)
        alike = bool((call == call[0]).all())
        vars(found).update(
            ranks=ranks, first=np.arange(ranks + 1, dtype=np.int64) * each,
            action=np.broadcast_to(call[0], operations) if alike else np.repeat(call, each), amount=np.empty(0),
            source=transfers.source, destination=transfers.destination, size_bytes=size_bytes, units=None,
            in_rounds=True,
        )  # fmt: skip
        return found

    def __getattr__(self, name: str) -> NDArray[Any]:
        """Make the operations."""
        if name not in ("kind", "operand") or "destination" not in vars(self):
            raise AttributeError(name)
        kind, operand = alike_operations(self.ranks, self.destination)
        vars(self).update(kind=kind, operand=operand)
        return kind if name == "kind" else operand


def waiting_text(program: Program, trace: Trace, waiting: NDArray[np.integer], at: NDArray[np.integer]) -> str:
    """Say which ranks wait for what: ``2 of 4 ranks wait: rank 0 waits for …``.

    Parameters
    ----------
    program, trace : Program, Trace
        What they run, and where that stands.
    waiting : ndarray, int[...]
        The ranks.
    at : ndarray, int[rank]
        The operation at which each rank is.
    """
    parts = []
    for rank in waiting[:NAMED_RANKS].tolist():
        m, action = int(program.operand[at[rank]]), int(program.action[at[rank]])
        if program.kind[at[rank]] == JOIN:
            what = "for the other ranks"
        elif program.kind[at[rank]] == RECEIVE:
            what = f"for a message from rank {program.source[m]}"
        else:
            what = f"until rank {program.destination[m]} takes its message"
        parts.append(f"rank {rank} waits {what} ({trace.action(rank, action).name}, {trace.where(rank, action)})")
    more = f"; and {len(waiting) - NAMED_RANKS} more ranks" if len(waiting) > NAMED_RANKS else ""
    return f"{len(waiting)} of {program.ranks} ranks wait: {'; '.join(parts)}{more}"

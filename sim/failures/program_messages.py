"""Messages of programs that lose packets: which they are, and when their senders are rid of them."""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.network.core.kinds import DATA, PROGRAM
from hopforge.model.network.core.state import NetState
from hopforge.model.topology.failed import FailureError
from hopforge.model.workload.program import Program
from hopforge.sim.failures.epochs import Epoch
from hopforge.sim.failures.record import counted
from hopforge.sim.traffic.placed import PlacedProgram

#: lost messages that an error names
_NAMED = 4


class LostMessages:
    """Messages of the program of a network that have lost a packet and so never arrive.

    Attributes
    ----------
    numbers : set of int
        Which they are; empty without a program.
    """

    def __init__(self, state: NetState) -> None:
        self.state = state
        self.numbers: set[int] = set()

    @property
    def of_program(self) -> bool:
        """Whether hosts run a program."""
        return int(self.state["source_kind"]) == PROGRAM

    def lose(self, gone: NDArray[np.bool_]) -> int:
        """Note that packets (bool[pool]; no acknowledges) are about to be lost; returns how many messages that costs.

        A message whose last packet is cut while it leaves its host has left it: its sender goes on.
        """
        if not self.of_program:
            return 0
        state, before = self.state, len(self.numbers)
        of_packet = state["packet_message"]
        self.numbers.update(message_of(int(of_packet[p])) for p in np.flatnonzero(gone).tolist())
        for p in state["host"]["packet"][state["host"]["sent"] > 0].tolist():
            if p < 0 or not gone[p] or of_packet[p] < 0:
                continue
            m = int(of_packet[p])
            if state["message"]["stage"][m] == DATA and state["message"]["to_send"][m] == 0:
                state["departed"][int(state["departed_count"])] = m
                state.record["departed_count"] += 1
        return len(self.numbers) - before

    def send_again(self, packet: int) -> None:
        """Mark a packet that has left its host before, and leaves another one now: its message has left long ago."""
        if self.of_program and self.state["packet_message"][packet] >= 0:
            self.state["packet_message"][packet] = -1 - self.state["packet_message"][packet]


def message_of(number: int) -> int:
    """Return the message of a packet, marked or not.

    Examples
    --------
    >>> message_of(3), message_of(-1 - 3)
    (3, 3)
    """
    return number if number >= 0 else -1 - number


def lost_text(program: Program, numbers: set[int]) -> str:
    """Say which messages failures have cost: ``; failures lost 2 messages: rank 0 → rank 3 (64 bytes), …``."""
    if not numbers:
        return ""
    named = [
        f"rank {program.source[m]} → rank {program.destination[m]} ({counted(int(program.size_bytes[m]), 'byte')})"
        for m in sorted(numbers)[:_NAMED]
    ]
    more = ", …" if len(numbers) > _NAMED else ""
    return f"; failures lost {counted(len(numbers), 'message')}: {', '.join(named)}{more}"


def refuse_failed_ranks(failed: NDArray[np.bool_], placed: PlacedProgram) -> None:
    """Refuse ranks at hosts (bool[host]) of switches that do not work from the begin on (section `failed`).

    Raises
    ------
    FailureError
        Names a rank and its host.
    """
    if found := _rank_at(failed, placed):
        rank, host = found
        raise FailureError(
            f"failed: the switch of host {host} has failed, and rank {rank} is there; hosts of ranks must work "
            "(workload.mapping places ranks)"
        )


def refuse_failing_ranks(epochs: list[Epoch], placed: PlacedProgram) -> None:
    """Refuse failures of switches at which ranks run: a rank cannot fail.

    Raises
    ------
    FailureError
        Names the failure, a rank and its host.
    """
    for epoch in epochs:
        if found := _rank_at(epoch.hosts, placed):
            rank, host = found
            raise FailureError(
                f"simulation.failures: {epoch.what} and takes host {host} of rank {rank} along; hosts of ranks must "
                "work"
            )


def _rank_at(hosts: NDArray[np.bool_], placed: PlacedProgram) -> tuple[int, int] | None:
    """Return a rank at one of some hosts (bool[host]), or with a message over it, and which host that is."""
    program, sender = placed.program, placed.sender
    ranks = program.ranks if sender is None else program.ranks - program.messages
    for rank, host in (
        (np.arange(ranks), placed.host[:ranks]), (program.source if sender is None else sender, placed.source_host),
        (program.destination, placed.destination_host),
    ):  # fmt: skip
        there = np.flatnonzero(hosts[host])
        if len(there):
            return int(rank[there[0]]), int(host[there[0]])
    return None

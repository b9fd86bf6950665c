"""A program and the hosts of its ranks as arrays for the kernel."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.network.core.kinds import MATCHED, PROGRAM, RANK_BITS, RENDEZVOUS
from hopforge.model.network.core.layouts import MESSAGE, RANK
from hopforge.model.network.core.state import NetState
from hopforge.model.network.parts.messages import grow_messages
from hopforge.model.network.parts.programs import run_ranks
from hopforge.model.workload.operations import COMPUTE, JOIN, POST, SLEEP
from hopforge.model.workload.program import Program

#: of a computation, and of a run: times of ranks are kept with their numbers in 63 bits
MAX_CYCLES = 1 << (62 - RANK_BITS)

MOST_PACKET_FLITS = 1 << 20
"""Flits of a packet of a program; proofs look at each length that there can be."""


class ProgramError(UserError, ValueError):
    """A program that cannot be run, or cannot end."""


@dataclass(frozen=True, eq=False)
class ProgramSource:
    """Ranks that run a program on the hosts.

    Attributes
    ----------
    program : Program
        Operations of all ranks.
    source_host, destination_host : ndarray, int32[message]
        Hosts at both ends of each message; the same one: it does not enter the network.
    mtu_bytes : int
        Most payload of a packet.
    flit_bytes : int
        Payload of a flit.
    rendezvous_bytes : int, optional
        Messages of more bytes are sent when their receive is posted, which they ask for (None: none asks).
    matched_bytes : int, optional
        Of the others, those of so many bytes and more, too, without asking (None: all others are sent at once).
    interleaved : bool
        A host sends packets of its messages in turn, not one message after the other.
    eager_bytes : int
        A sender does not wait until a smaller message has left its host.
    cycles_per_flop, cycles_per_second : float
        Cycles that computing and sleeping take.
    mtu_key : str
        Key of the configuration that `mtu_bytes` comes from, for errors.
    """

    program: Program
    source_host: NDArray[np.int32]
    destination_host: NDArray[np.int32]
    mtu_bytes: int
    flit_bytes: int
    rendezvous_bytes: int | None = None
    matched_bytes: int | None = None
    interleaved: bool = False
    eager_bytes: int = 0
    cycles_per_flop: float = 0.0
    cycles_per_second: float = 0.0
    mtu_key: str = "workload.mtu_bytes"

    @property
    def full_flits(self) -> int:
        """Flits of a packet of `mtu_bytes`."""
        return -(-self.mtu_bytes // self.flit_bytes)

    def packets(self) -> NDArray[np.int64]:
        """Packets of each message, int64[message]; a message of 0 bytes is one packet."""
        return np.maximum(1, -(-self.program.size_bytes // self.mtu_bytes))

    def local(self) -> NDArray[np.bool_]:
        """Whether a message stays within a host, bool[message]."""
        return self.source_host == self.destination_host


def put_program(state: NetState, source: ProgramSource) -> None:
    """Give a network the ranks, operations and messages of a program; every rank starts in cycle 0.

    Raises
    ------
    ProgramError
        As of `program_arrays`.
    """
    hosts = int(state["hosts"])
    for name, array in program_arrays(source).items():
        state.put(name, array)
    state.put("packet_message", np.zeros(len(state["packet"]), np.int32))
    state.put("arrived", np.zeros(max(hosts, 1), np.int32))
    state.put("departed", np.zeros(max(hosts, 1), np.int32))
    s = state.record
    s["source_kind"], s["full_flits"] = PROGRAM, source.full_flits
    s["interleaved"] = source.interleaved
    s["timers"] = s["ranks_running"] = source.program.ranks
    state.put_function("messages", run_ranks)
    state.follow_pool(grow_messages)


def program_arrays(source: ProgramSource) -> dict[str, NDArray[Any]]:
    """Return ranks, operations, messages and timers of a program by their names in the records of kernels.

    Raises
    ------
    ProgramError
        More messages than 2³¹, or packets of one, a packet of more than `MOST_PACKET_FLITS` flits, or a computation
        beyond 2⁴² cycles.
    """
    if source.full_flits > MOST_PACKET_FLITS:
        most = MOST_PACKET_FLITS * source.flit_bytes
        raise ProgramError(
            f"{source.mtu_key}: must be at most {most}, {MOST_PACKET_FLITS} flits of {source.flit_bytes} bytes, not "
            f"{source.mtu_bytes}"
        )
    program, packets = source.program, source.packets()
    ranks = program.ranks
    if program.messages >= 1 << 31:
        raise ProgramError(f"workload: {program.messages} messages are more than {(1 << 31) - 1}")
    if packets.max(initial=0) >= 1 << 31:
        largest = int(program.size_bytes.max())
        raise ProgramError(
            f"workload: a message of {largest} bytes is {int(packets.max())} packets of {source.mtu_bytes} bytes; the "
            f"simulator counts {(1 << 31) - 1} ({source.mtu_key}, or app.engine: flow)"
        )
    units = program.units
    parts, calls = (0, 0) if units is None else (units.parts, len(units.calls))
    # a rank's part of a collective of units: called in `started`, goes on in `arrived`, `next` is its call, `posted`:
    # the result waits for it; a call: `left` parts that it waits for, `next` the one before in `calls_ready`
    message = np.zeros(max(program.messages + parts + calls, 1), MESSAGE)
    view = message[: program.messages]
    view["source"], view["target"] = source.source_host, source.destination_host
    view["sender"], view["receiver"] = program.source, program.destination
    view["to_send"] = packets
    rest = program.size_bytes - (packets - 1) * source.mtu_bytes
    view["last_flits"] = np.maximum(1, -(-rest // source.flit_bytes))
    view["started"] = view["arrived"] = view["next"] = -1
    view["departed"] = program.size_bytes < source.eager_bytes
    # which message a wild receive gets is not recorded: such messages have no receive to wait for
    has_receive = np.zeros(program.messages, bool)
    has_receive[program.operand[program.kind == POST]] = True
    if source.matched_bytes is not None:
        view["start"][(program.size_bytes >= source.matched_bytes) & has_receive] = MATCHED
    if source.rendezvous_bytes is not None:
        view["start"][(program.size_bytes > source.rendezvous_bytes) & has_receive] = RENDEZVOUS
    if units is not None:
        view = message[program.messages : program.messages + parts]
        view["started"] = view["arrived"] = -1
        view["next"], view["posted"] = program.messages + parts + units.call, units.sends
        message["left"][program.messages + parts :] = np.bincount(units.call, units.sends, calls)
    rank = np.zeros(max(ranks, 1), RANK)
    rank["at"][:ranks], rank["last"][:ranks] = program.first[:-1], program.first[1:]
    rank["waits"] = rank["since"] = rank["finished"] = -1
    return {
        "message": message,
        "rank": rank,
        "program_kind": np.where(program.kind == SLEEP, COMPUTE, program.kind).astype(np.uint8),
        "program_operand": _operands(source),
        "timer": np.arange(max(ranks, 1), dtype=np.int64),  # time 0, ranks in order: a heap
    }


def refuse_long_run(cycles: int) -> None:
    """Refuse a run of so many cycles.

    Raises
    ------
    ProgramError
        More than the simulator counts: later times of ranks would be wrong.
    """
    if cycles >= MAX_CYCLES:
        raise ProgramError(
            f"workload: the program takes more than {MAX_CYCLES:,} cycles, which the simulator counts "
            "(app.engine: flow)"
        )


def _operands(source: ProgramSource) -> NDArray[np.int64]:
    """Operand of each operation: its message, or its cycles."""
    program = source.program
    operand = np.array(program.operand, np.int64)
    for kind, scale, word in (
        (COMPUTE, source.cycles_per_flop, "computing"), (SLEEP, source.cycles_per_second, "sleeping")
    ):
        chosen = program.kind == kind
        with np.errstate(over="ignore", invalid="ignore"):
            cycles = np.rint(program.amount[operand[chosen]] * scale)
        if not cycles.max(initial=0) < MAX_CYCLES:
            raise ProgramError(f"workload: {cycles.max():.3g} cycles of {word} are more than {MAX_CYCLES:,}")
        operand[chosen] = cycles.astype(np.int64)
    operand[program.kind == JOIN] += program.messages
    return operand if len(operand) else np.zeros(1, np.int64)

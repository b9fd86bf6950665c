"""The order in which the packets of a program enter a network without times.

The replay through caches has none; its order (guides/workloads.md): time goes in turns. In each turn every rank, in
increasing number, sends one packet of the message it is at; a rank that waits for a message waits until all packets of
that message have been sent, and sends nothing until then. Sending never waits. Computation takes no time.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import kernel
from hopforge.model.workload.operations import RECEIVE, SEND
from hopforge.model.workload.program import Program, waiting_text
from hopforge.model.workload.trace import Trace, TraceError

__all__ = ["MAX_PACKETS", "RankPackets", "interleave"]

MAX_PACKETS = 1 << 30


@kernel
def _interleave(first, kind, operand, source, destination, packets, local, at, out_src, out_dst):  # type: ignore[no-untyped-def]
    ranks = len(first) - 1
    left = np.zeros(ranks, np.int64)
    sent = np.zeros(len(source), np.bool_)
    written = 0
    while True:
        moved = False
        running = False
        for rank in range(ranks):
            if left[rank] == 0:
                while at[rank] < first[rank + 1]:
                    number = operand[at[rank]]
                    if kind[at[rank]] == RECEIVE:
                        if not sent[number]:
                            break
                    elif kind[at[rank]] == SEND:
                        if not local[number]:
                            left[rank] = packets[number]
                            break
                        sent[number] = True
                    at[rank] += 1
                    moved = True
            if at[rank] < first[rank + 1]:
                running = True
            if left[rank] > 0:
                number = operand[at[rank]]
                out_src[written] = source[number]
                out_dst[written] = destination[number]
                written += 1
                left[rank] -= 1
                moved = True
                if left[rank] == 0:
                    sent[number] = True
                    at[rank] += 1
        if not running:
            return True
        if not moved:
            return False


class RankPackets(NamedTuple):
    """Packets in the order in which they enter the network.

    Attributes
    ----------
    source, destination : ndarray, int32[packet]
        Ranks.
    local_messages : int
        Messages between ranks of one host, which never enter the network.
    """

    source: NDArray[np.int32]
    destination: NDArray[np.int32]
    local_messages: int


def interleave(
    program: Program, host: NDArray[np.integer], mtu_bytes: int, trace: Trace,
    ends: tuple[NDArray[np.int32], NDArray[np.int32]] | None = None,
) -> RankPackets:
    """Run all ranks and record the order of their packets (see the module's text).

    Parameters
    ----------
    program : Program
        What to run.
    host : ndarray, int[rank]
        Host of each rank; messages between ranks of one host make no packets.
    mtu_bytes : int
        Payload of a packet; a message of 0 bytes is one packet.
    trace : Trace
        Where the operations stand.
    ends : tuple of (ndarray, int32[message]), optional
        Hosts at both ends of each message, in place of `host`; packets are then between them, not between ranks.

    Raises
    ------
    TraceError
        Ranks that wait for each other for ever (which, for what, and where that stands), or more than `MAX_PACKETS`
        packets.
    """
    packets = np.maximum(1, -(-program.size_bytes // mtu_bytes))
    source, destination = (program.source, program.destination) if ends is None else ends
    local = host[source] == host[destination] if ends is None else source == destination
    total = int(packets[~local].sum())
    if total > MAX_PACKETS:
        raise TraceError(f"workload.mtu_bytes: {mtu_bytes} makes {total} packets, more than {MAX_PACKETS}")
    out_src, out_dst = np.empty(total, np.int32), np.empty(total, np.int32)
    at = program.first[:-1].copy()
    ended = _interleave(
        program.first, program.kind, program.operand, source, destination, packets, local, at, out_src, out_dst,
    )
    if not ended:
        waiting = np.flatnonzero(at < program.first[1:])
        raise TraceError(f"workload: the program cannot end: {waiting_text(program, trace, waiting, at)}")
    return RankPackets(out_src, out_dst, int(local.sum()))

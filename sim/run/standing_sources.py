"""Hosts that stand still: sources `interval` and `rounds` make no packet while the queue of their NIC is full."""

import math

import numpy as np
from numpy.typing import NDArray

from hopforge.sim.queued.build import QueuedState
from hopforge.sim.queued.records import INTERVAL, INTERVAL_BITS

__all__ = ["STANDING_SHARE", "stand_still"]

#: share of the packets that hosts were to make, beyond which a run counts as saturated
STANDING_SHARE = 0.02


def stand_still(state: QueuedState, packets: int, cycles: int) -> bool:
    """Whether hosts have made too few packets.

    Parameters
    ----------
    state : QueuedState
        The network at the end of a measurement.
    packets : int
        That hosts have sent in it.
    cycles : int
        How long it was. Of what each host was to make a part of one does not count, and of rounds neither those under
        way.
    """
    if int(state["source_kind"]) != INTERVAL:
        return False
    sizes, asked = _round_sizes(state), math.floor(_packets_to_make(state, cycles))
    longest = int(sizes[-1])
    hosts = int((state.senders["stopped"] == 0).sum())
    return packets < hosts * ((1 - STANDING_SHARE) * asked - (1 if longest == 1 else 2 * longest))


def _round_sizes(state: QueuedState) -> NDArray[np.int64]:
    """Packets of a round: each size is as frequent."""
    queues = state.queue_record[0]
    return int(queues["round_low"]) + np.arange(int(queues["round_span"]))


def _packets_to_make(state: QueuedState, cycles: int) -> float:
    """Packets that a host makes whose NIC sends one in each packet time.

    The interval counts from the last packet of a round, which of a long one has a place once so many have left.
    """
    queues, sizes = state.queue_record[0], _round_sizes(state)
    late = np.maximum(sizes - 1 - int(queues["nic_depth"]), 0).mean() * int(queues["packet_cycles"])
    return float(sizes.mean()) * cycles / (int(queues["interval"]) / 2**INTERVAL_BITS + float(late))

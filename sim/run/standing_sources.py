"""Hosts that stand still: sources `interval` and `rounds` make no packet while the queue of their NIC is full."""

import math

import numpy as np
from numpy.typing import NDArray

from hopforge.sim.queued.build import QueuedState
from hopforge.sim.queued.records import INTERVAL, INTERVAL_BITS

__all__ = ["STANDING_SHARE", "stand_still"]

#: share of the packets that hosts were to make, beyond which a run counts as saturated
STANDING_SHARE = 0.02
#: standard deviations of the packets of all rounds, where their sizes are drawn, that are put down to chance
DEVIATIONS = 4.0


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
    chance = DEVIATIONS * float(sizes.std()) * math.sqrt(hosts * asked / float(sizes.mean()))
    return packets < hosts * ((1 - STANDING_SHARE) * asked - (1 if longest == 1 else 2 * longest)) - chance


def _round_sizes(state: QueuedState) -> NDArray[np.int64]:
    """Packets of a round: each size is as frequent."""
    queues = state.queue_record[0]
    return int(queues["round_low"]) + np.arange(int(queues["round_span"]))


def _packets_to_make(state: QueuedState, cycles: int) -> float:
    """Packets that a host makes in a network without others.

    The interval counts from the last packet of a round, which of a long one has a place once so many have left.
    """
    queues, sizes = state.queue_record[0], _round_sizes(state)
    late = np.maximum(sizes - 1 - int(queues["nic_depth"]), 0).mean() * _cycles_of_packet(state)
    return float(sizes.mean()) * cycles / (int(queues["interval"]) / 2**INTERVAL_BITS + float(late))


def _cycles_of_packet(state: QueuedState) -> float:
    """Cycles between two packets of a NIC whose router takes each at once: those of a packet, or of its credits."""
    queues, lines, nic = state.queue_record[0], state.queues["packet_line"], state.queues["nic"]
    flight = int(lines["delay"][nic["packet_line"]].max())
    return max(int(queues["packet_cycles"]), (2 * flight + int(queues["match_cycles"])) / int(queues["input_depth"]))

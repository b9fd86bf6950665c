"""Hosts that stand still: sources `interval` and `rounds` make no packet while the queue of their NIC is full."""

import math

from hopforge.sim.queued.build import QueuedState
from hopforge.sim.queued.records import INTERVAL

__all__ = ["STANDING_SHARE", "stand_still"]

#: share of the packets that hosts were to make, beyond which a run counts as saturated
STANDING_SHARE = 0.02


def stand_still(state: QueuedState, packets: int, asked: float) -> bool:
    """Whether hosts have made too few packets.

    Parameters
    ----------
    state : QueuedState
        The network at the end of a measurement.
    packets : int
        That hosts have sent in it.
    asked : float
        That each of them was to make; a part of one does not count, and of rounds neither those under way.
    """
    if int(state["source_kind"]) != INTERVAL:
        return False
    longest = int(state.queue_record["round_low"][0] + state.queue_record["round_span"][0]) - 1
    hosts = int((state.senders["stopped"] == 0).sum())
    return packets < hosts * ((1 - STANDING_SHARE) * math.floor(asked) - (1 if longest == 1 else 2 * longest))

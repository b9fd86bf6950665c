"""What waits in the source queues of hosts that stop: it is created and never sent."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hopforge.model.network.core.kinds import BERNOULLI, ON_OFF
from hopforge.model.network.core.state import NetState
from hopforge.sim.failures.purge import free_records
from hopforge.sim.queued.records import INTERVAL

__all__ = ["abandon_created"]


def abandon_created(state: NetState, hosts: NDArray[np.bool_], take: Callable[[int], int]) -> int:
    """Take up and lose all packets that `hosts` have created up to now; returns how many.

    Sources with a load draw a packet when it is taken up, with the time of its creation: so these are the packets that
    would have been sent, the rest of a message among them.

    Parameters
    ----------
    state : NetState
        Between two cycles.
    hosts : ndarray, bool[host]
        That have failed just now.
    take : callable
        Takes up the next packet of a host if it was due before this cycle: its record, or −1.
    """
    if int(state["source_kind"]) not in (BERNOULLI, ON_OFF, INTERVAL):
        return 0
    count = 0
    for h in np.flatnonzero(hosts & (state.senders["stopped"] == 0)).tolist():
        while True:
            if int(state["free_packets"]) == 0:
                state.grow_packets()
            packet = take(h)
            if packet < 0:
                break
            free_records(state, np.array([packet]))
            count += 1
    return count

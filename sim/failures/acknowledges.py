"""Acknowledges in a network that fails: which are lost, and what becomes of their places (docs/definitions/dqn.md).

All functions work between two cycles of the kernel. Acknowledges are packets to service hosts, which send them from
queues of their own (`model.network.parts.second_sender`).
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hopforge.model.dqn.tables import COUNTERS
from hopforge.model.network.core.state import NetState

__all__ = ["acknowledges_of", "lose_acknowledges", "sent_by_service_hosts", "waiting_acknowledges"]

Bools = NDArray[np.bool_]
_LOST = COUNTERS.index("acks_lost")


def acknowledges_of(state: NetState, gone: Bools) -> Bools:
    """Return those of the packets `gone` that are acknowledges: bool[pool]."""
    if not state["acks"]:
        return np.zeros_like(gone)
    found: Bools = gone & (state["packet"]["dst"] >= int(state["hosts"]))
    return found


def _queue(state: NetState, h: int) -> Iterator[int]:
    """Acknowledges that wait in a service host, the first one first."""
    p = int(state["replier"]["first"][h])
    while p >= 0:
        yield p
        p = int(state["packet"]["via"][p])


def sent_by_service_hosts(state: NetState) -> NDArray[np.int64]:
    """Acknowledge that each host is sending: int64[host]; −1: none."""
    if not state["acks"]:
        return np.full(len(state["host"]), -1, np.int64)
    return state["replier"]["packet"].astype(np.int64)


def waiting_acknowledges(state: NetState, leaving: Bools, switches: Bools) -> Bools:
    """Return acknowledges in service hosts that are to leave by some ports, or wait in some switches: bool[pool].

    Parameters
    ----------
    leaving : ndarray, bool[router, port]
    switches : ndarray, bool[router]
        Here also those that are being sent.
    """
    found = np.zeros(len(state["packet"]), bool)
    if not state["acks"]:
        return found
    for router in range(int(state["routers"])):
        h = int(state["hosts"]) + router
        for p in _queue(state, h):
            found[p] = switches[router] or leaving[router, int(state["packet"]["part"][p])]
        if switches[router] and state["replier"]["packet"][h] >= 0:
            found[state["replier"]["packet"][h]] = True
    return found


def lose_acknowledges(state: NetState, gone: Bools) -> list[tuple[int, int]]:
    """Take acknowledges out of the service hosts and count them; returns host and VC of those that were being sent."""
    lost = acknowledges_of(state, gone)
    if not lost.any():
        return []
    state.record["acks_alive"] -= int(lost.sum())
    state["trail_counts"][_LOST] += int(lost.sum())
    cut, replier, via = [], state["replier"], state["packet"]["via"]
    for router in range(int(state["routers"])):
        h = int(state["hosts"]) + router
        left, waited = [], list(_queue(state, h))
        sent = int(replier["packet"][h])
        if sent >= 0 and lost[sent]:
            cut.append((h, int(replier["vc"][h])))
            replier["packet"][h] = -1
            waited.append(sent)
        for p in waited:
            if lost[p]:
                state["trail_waiting" if state["trail"]["kept"][p] else "trail_own"][router] -= 1
            else:
                left.append(p)
        replier["first"][h], replier["last"][h] = (left[0], left[-1]) if left else (-1, -1)
        via[left] = [*left[1:], -1] if left else []
    return cut

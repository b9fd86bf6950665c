"""Acknowledges, as arrays for the kernel (docs/definitions/acknowledges.md)."""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.histogram import HISTOGRAM_BINS
from hopforge.model.network.core.layouts import CLASS_COUNT, CLASSES, REPLIER, TRAIL
from hopforge.model.network.core.sources import NEVER
from hopforge.model.network.core.state import NetState
from hopforge.model.network.parts.acknowledges import follow_trails
from hopforge.model.network.parts.trail_tables import Acknowledges, put_trail


def put_acknowledges(state: NetState, home: NDArray[np.int32], mask: int, found: Acknowledges) -> None:
    """Let the routers of a network acknowledge packets.

    Parameters
    ----------
    state : NetState
        A network with service hosts behind its hosts.
    home : ndarray, int32[host]
        Router of each host.
    mask : int
        VCs of acknowledges.
    found : Acknowledges
        Settings.
    """
    routers, hosts, s = int(state["routers"]), int(state["hosts"]), state.record
    replier = np.zeros(hosts + routers, REPLIER)
    replier["first"] = replier["last"] = replier["packet"] = -1
    state.put("replier", replier)
    state.put("class_count", np.zeros(CLASSES, CLASS_COUNT))
    state.put("class_histogram", np.zeros(CLASSES * HISTOGRAM_BINS, np.int64))
    state.put("trail", np.zeros(len(state["packet"]), TRAIL))
    state.follow_pool(_grow_trail)
    state.put("trail_home", np.ascontiguousarray(home, np.int32))
    state.put("trail_head", np.zeros(2 * routers * int(state["ports"]), np.int64))
    state.put("trail_taken", np.zeros(hosts + routers, np.int64))
    put_trail(state, found)
    service = state["host"][hosts:]
    service["inject_mask"], service["reply_mask"] = 0, mask
    service["next_time"], service["stopped"] = NEVER, 1
    state["host_wake"][hosts:] = NEVER
    s["ack_flits"], s["ack_delay"], s["ack_mask"] = found.flits, found.delay_cycles, mask
    state.put_function("acks", follow_trails)


def _grow_trail(state: NetState, pool: int) -> None:
    trail = np.zeros(pool, TRAIL)
    trail[: len(state["trail"])] = state["trail"]
    state.put("trail", trail)

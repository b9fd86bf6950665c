"""Links of the flow engine that change their rates while messages move (section `degraded`)."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.kernel.compile import WITHOUT_COUNTS, kernel
from hopforge.model.topology import Topology
from hopforge.sim.programs.flow_events import drop, put
from hopforge.sim.programs.flow_network import link_capacity
from hopforge.sim.programs.flow_sharing import advance_clock, insert, link_item, share
from hopforge.sim.programs.flow_state import (
    ALONE,
    BASE,
    DIRTY,
    FREE,
    FRESH,
    LATENCY,
    LEAST_BYTES,
    LINKS,
    MOVING,
)

__all__ = ["Change", "alter", "changes", "first_rates"]

_jit: Any = kernel(error_model="numpy", **WITHOUT_COUNTS)


class Change(NamedTuple):
    """New rates of links.

    Attributes
    ----------
    time_s : float
        From here on.
    capacity : ndarray, float64[link]
        Bytes per second of all links of the network (`FlowNetwork`).
    """

    time_s: float
    capacity: NDArray[np.float64]


def first_rates(config: Config, topology: Topology) -> Topology:
    """Return the network as it is at time 0: links that are slow later are fast."""
    return replace(topology, rate_share=None) if config.degraded.timed and config.degraded.from_us else topology


def changes(config: Config, topology: Topology) -> list[Change]:
    """Return what changes after time 0, the first first; `topology` has the slow links."""
    degraded, found = config.degraded, []
    if degraded.timed and degraded.from_us:
        found.append(Change(degraded.from_us * 1e-6, link_capacity(config, topology)))
    if degraded.timed and degraded.until_us is not None:
        fast = link_capacity(config, replace(topology, rate_share=None))
        found.append(Change(degraded.until_us * 1e-6, fast))
    return found


@_jit
def alter(s, hops, capacity):  # type: ignore[no-untyped-def]
    """Give the links of the network new capacities now, and all messages under way new rates.

    What they have left stays. No host may hold messages that leave one after the other.
    """
    now, base, links = s.clock[0], s.numbers[BASE], s.numbers[LINKS]
    s.flows[:] = 1
    for i in range(s.numbers[FREE]):
        s.flows[s.free[i]] = 0
    for slot in range(len(s.flow)):
        if s.flows[slot] == 0:
            continue
        m = s.flow[slot].message
        route = s.message[m].route
        if s.message[m].phase == MOVING:
            link = s.flow[slot].link
            advance_clock(s, link)
            s.flow[slot].finish = max(s.flow[slot].finish - s.link[link].clock, 0.0)
        elif s.message[m].phase == ALONE:
            until, whole = s.heap[s.place[base + slot]].key, s.size[m] + s.clock[1]
            left, weight = (until - now) * s.route[route].rate, s.route[route].weight
            s.flow[slot].weight, s.flow[slot].held = weight, 0.0
            s.flow[slot].finish = min(max(left, LEAST_BYTES), whole) / weight
            s.route[route].busy += 1
            if s.route[route].alone == slot:
                s.route[route].alone = -1
            drop(s, base + slot)
            if left >= whole:  # its first byte is on its way
                s.message[m].phase = LATENCY
                put(s, base + slot, until - whole / s.route[route].rate)
                continue
            s.message[m].phase = MOVING
            count = s.route[route].last - s.route[route].first
            for h in range(count):
                s.way[slot * hops + h] = s.route_link[s.route[route].first + h]
            if s.route[route].bound < np.inf:
                s.link[links + slot].capacity = s.route[route].bound
                s.way[slot * hops + count] = links + slot
                count += 1
            s.flow[slot].count = count
    for link in range(len(s.link)):
        if s.link[link].group > 0:
            drop(s, link_item(s, link))
        if link < links:
            s.link[link].capacity = capacity[link]
        s.link[link].hard = link >= links
        s.link[link].head, s.link[link].group, s.link[link].reserved, s.link[link].level = -1, 0, 0.0, 0.0
        s.link[link].dirty = False
    for r in range(len(s.route)):
        narrow = s.route_link[s.route[r].first]
        for e in range(s.route[r].first, s.route[r].last):
            if capacity[s.route_link[e]] < capacity[narrow]:
                narrow = s.route_link[e]
        s.route[r].narrow, s.route[r].rate = narrow, min(capacity[narrow], s.route[r].bound)
    s.numbers[DIRTY] = s.numbers[FRESH] = 0
    for slot in range(len(s.flow)):
        if s.flows[slot] != 0 and s.message[s.flow[slot].message].phase == MOVING:
            insert(s, slot, hops)
    share(s, hops)

"""The event loop of the flow engine: ranks run their operations, messages share links (docs/definitions/engines.md).

Times are seconds. A message that starts waits for the latency of its route and then moves its bytes at a rate that
changes whenever a flow begins or ends on a link of the same connected part of the network. The rates are weighted
max-min fair: they grow in proportion to 1/penalty until a link is full or a flow is at its bound; what that stops
stays, the rest grows on (Bertsekas and Gallager, "Data Networks", 1992, section 6.5.2).
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hopforge.model.kernel.compile import kernel
from hopforge.model.workload.operations import POST, RECEIVE, SEND, WAIT_SENT

#: phases of a message
IDLE, SENT, POSTED, LATENCY, MOVING, ARRIVED = range(6)
#: why `advance` returned
SLICE, FINISHED, STUCK, FULL = range(4)
#: events closer than this happen at once (a byte at 1.6 Tbit/s takes 5 ps)
SAME_TIME = 1e-12
#: least part of a message that keeps its host: none, but not 0, which says that it has left
LEAST_BYTES = 1e-6
# places in `numbers`
EVENTS, FREE, READY, CHANGED, EPOCH, DONE = range(6)


MESSAGE = np.dtype([
    ("remaining", "f8"), ("rate", "f8"), ("touched", "f8"), ("began", "f8"), ("arrived", "f8"), ("route", "i4"),
    ("source", "i4"), ("destination", "i4"), ("slot", "i4"), ("next", "i4"), ("held", "f8"), ("phase", "i1"),
    ("early", "?"), ("eager", "?"),
], align=True)
"""A message: bytes left and rate when last looked at, and that time; when it was sent and arrived; its route (−1: both
ranks on one host); ranks; its slot while it moves (else −1); the next in the queue of its host; when so many bytes are
left it has left its host (0: it has, or nobody asks); phase; whether it starts when it is sent (early), and whether
nobody waits for it to leave (eager)."""
RANK = np.dtype([
    ("at", "i8"), ("last", "i8"), ("since", "f8"), ("waited", "f8"), ("computed", "f8"), ("finished", "f8"),
    ("blocked", "?"),
], align=True)
"""A rank: next operation, and where they end; since when it waits; seconds waited and computed; end (−1: not yet)."""
ROUTE = np.dtype([
    ("first", "i8"), ("last", "i8"), ("latency", "f8"), ("weight", "f8"), ("bound", "f8"), ("inside", "f8"),
    ("host", "i4"),
], align=True)
"""A route: its entries in `route_link`; seconds before the first byte; 1/penalty; highest rate (inf: only links set
one); seconds that a byte is on its way behind the first switch if all buffers are full; where it begins."""
HOST = np.dtype([("began", "f8"), ("buffer", "f8"), ("first", "i4"), ("last", "i4"), ("sends", "i4")], align=True)
"""A host that sends messages one after the other: when the one that leaves began; bytes of it that its buffer at the
switch holds; first and last that wait, and the one that leaves (−1: none)."""
LINK = np.dtype([
    ("capacity", "f8"), ("left", "f8"), ("load", "f8"), ("mark", "i8"), ("users", "i4"), ("head", "i4")
], align=True)
"""A link: bytes per second; of the sharing: rate and weight that are left, mark, open flows; first entry of its list of
messages (slot · hops + place; −1: none)."""
ITEM = np.dtype([("key", "f8"), ("place", "i8")], align=True)
"""Something that may have an event, messages and then ranks: its time and place in the heap (−1: none)."""


class FlowState(NamedTuple):
    """Arrays of a run.

    Attributes
    ----------
    kind, operand : ndarray
        Operations of all ranks, as in `Program`.
    size : ndarray, float64[message]
        Bytes.
    duration : ndarray, float64[...]
        Seconds of each amount.
    message, rank, route, link, item : ndarray
        Records `MESSAGE`, `RANK`, `ROUTE`, `LINK`, `ITEM`.
    route_link : ndarray, int32[...]
        Links of the routes.
    holder, slot_mark : ndarray, int64[slot]
        Message in a slot; mark of the sharing.
    free, flows : ndarray, int32[slot]
        Stack of free slots; scratch of the sharing.
    near : ndarray, int32[slot · hops, 2]
        Following and preceding entry in the lists of messages of each link.
    changed, links : ndarray, int32
        Links on which a message began or ended; scratch of the sharing.
    heap : ndarray, int64[item]
        Binary heap of items with an event.
    host : ndarray
        Records `HOST` where messages of a host leave one after the other; else empty.
    ready : ndarray, int32[rank]
        Ranks to be run.
    numbers : ndarray, int64[6]
        Numbers of events, free slots, ready ranks, changed links; last mark; messages that arrived.
    clock : ndarray, float64[1]
        Now.
    """

    kind: NDArray[np.int8]
    operand: NDArray[np.int64]
    size: NDArray[np.float64]
    duration: NDArray[np.float64]
    message: NDArray[np.void]
    rank: NDArray[np.void]
    route: NDArray[np.void]
    link: NDArray[np.void]
    item: NDArray[np.void]
    route_link: NDArray[np.int32]
    holder: NDArray[np.int64]
    slot_mark: NDArray[np.int64]
    free: NDArray[np.int32]
    flows: NDArray[np.int32]
    near: NDArray[np.int32]
    changed: NDArray[np.int32]
    links: NDArray[np.int32]
    heap: NDArray[np.int64]
    host: NDArray[np.void]
    ready: NDArray[np.int32]
    numbers: NDArray[np.int64]
    clock: NDArray[np.float64]


_jit: Any = kernel(error_model="numpy")
# handing the arrays of `s` from one compiled function to the next would take a third of the time
_inline: Any = njit(error_model="numpy", forceinline=True)


# ---- events ---------------------------------------------------------------------------------------------------------


@_inline
def _up(s, at):  # type: ignore[no-untyped-def]
    item = s.heap[at]
    while at > 0:
        parent = (at - 1) >> 1
        if s.item[s.heap[parent]].key <= s.item[item].key:
            break
        s.heap[at] = s.heap[parent]
        s.item[s.heap[at]].place = at
        at = parent
    s.heap[at] = item
    s.item[item].place = at


@_inline
def _down(s, at):  # type: ignore[no-untyped-def]
    item = s.heap[at]
    size = s.numbers[EVENTS]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and s.item[s.heap[child + 1]].key < s.item[s.heap[child]].key:
            child += 1
        if s.item[item].key <= s.item[s.heap[child]].key:
            break
        s.heap[at] = s.heap[child]
        s.item[s.heap[at]].place = at
        at = child
    s.heap[at] = item
    s.item[item].place = at


@_inline
def _at(s, item, time):  # type: ignore[no-untyped-def]
    """Let an event of `item` happen at `time`, instead of the one that it has, if any."""
    at = s.item[item].place
    if at < 0:
        at = s.numbers[EVENTS]
        s.numbers[EVENTS] += 1
        s.heap[at] = item
        s.item[item].key = time
        _up(s, at)
    elif time < s.item[item].key:
        s.item[item].key = time
        _up(s, at)
    elif time > s.item[item].key:
        s.item[item].key = time
        _down(s, at)


@_inline
def take_first(s):  # type: ignore[no-untyped-def]
    """Take the item whose event is next."""
    item = s.heap[0]
    s.item[item].place = -1
    s.numbers[EVENTS] -= 1
    size = s.numbers[EVENTS]
    if size > 0:
        s.heap[0] = s.heap[size]
        _down(s, 0)
    return item


# ---- messages -------------------------------------------------------------------------------------------------------


@_inline
def _touch_links(s, m):  # type: ignore[no-untyped-def]
    for entry in range(s.route[s.message[m].route].first, s.route[s.message[m].route].last):
        link = s.route_link[entry]
        s.changed[s.numbers[CHANGED]] = link
        s.numbers[CHANGED] += 1


@_inline
def _wake(s, rank):  # type: ignore[no-untyped-def]
    if s.rank[rank].blocked:
        s.rank[rank].blocked = False
        s.rank[rank].waited += s.clock[0] - s.rank[rank].since
        s.ready[s.numbers[READY]] = rank
        s.numbers[READY] += 1


@_inline
def arrive(s, m, hops):  # type: ignore[no-untyped-def]
    """Let a message be there, and leave its links."""
    if s.message[m].slot >= 0:
        slot = s.message[m].slot
        base = s.route[s.message[m].route].first
        for h in range(s.route[s.message[m].route].last - base):
            entry = slot * hops + h
            before, after = s.near[entry, 1], s.near[entry, 0]
            if before >= 0:
                s.near[before, 0] = after
            else:
                s.link[s.route_link[base + h]].head = after
            if after >= 0:
                s.near[after, 1] = before
        _touch_links(s, m)
        s.message[m].slot = -1
        s.free[s.numbers[FREE]] = slot
        s.numbers[FREE] += 1
    s.message[m].phase = ARRIVED
    s.message[m].arrived = s.clock[0]
    s.numbers[DONE] += 1
    for rank in (s.message[m].destination, s.message[m].source):
        if s.rank[rank].blocked and s.operand[s.rank[rank].at] == m:
            _wake(s, rank)


@_inline
def move(s, m, hops):  # type: ignore[no-untyped-def]
    """Let a message whose latency is over take its share of the links."""
    if s.message[m].remaining <= 0:
        arrive(s, m, hops)
        return
    s.numbers[FREE] -= 1
    slot = s.free[s.numbers[FREE]]
    s.message[m].slot, s.holder[slot] = slot, m
    s.message[m].phase, s.message[m].rate, s.message[m].touched = MOVING, 0.0, s.clock[0]
    base = s.route[s.message[m].route].first
    for h in range(s.route[s.message[m].route].last - base):
        link = s.route_link[base + h]
        entry = slot * hops + h
        s.near[entry, 1] = -1
        s.near[entry, 0] = s.link[link].head
        if s.link[link].head >= 0:
            s.near[s.link[link].head, 1] = entry
        s.link[link].head = entry
    _touch_links(s, m)


@_inline
def start_message(s, m):  # type: ignore[no-untyped-def]
    """Let a message wait for the latency of its route, or for its turn on the link of its host."""
    s.message[m].phase = LATENCY
    if len(s.host) == 0:
        _at(s, m, s.clock[0] + s.route[s.message[m].route].latency)
        return
    host = s.route[s.message[m].route].host
    s.message[m].next = -1
    if s.host[host].sends < 0:
        _inject(s, m, host)
        return
    if s.host[host].last < 0:
        s.host[host].first = m
    else:
        s.message[s.host[host].last].next = m
    s.host[host].last = m


@_inline
def _inject(s, m, host):  # type: ignore[no-untyped-def]
    """Let a message take the link of its host, until buffers and cables hold what is left of it.

    The buffer of its host at the first switch is its own; behind it, it has as much of the buffers and cables as of the
    bandwidth: its rate times the time inside (Little's law).
    """
    route = s.message[m].route
    s.host[host].sends, s.host[host].began = m, s.clock[0]
    _at(s, m, s.clock[0] + s.route[route].latency)
    if s.message[m].remaining > s.host[host].buffer:
        s.message[m].held = LEAST_BYTES  # until it has a rate
    else:
        _at(s, len(s.message) + len(s.rank) + host, s.clock[0] + s.message[m].remaining / s.link[host].capacity)


@_inline
def let_host_go(s, m, total):  # type: ignore[no-untyped-def]
    """Note that the rest of a message fits into the network; it has left its host not before its link could do it."""
    host = s.route[s.message[m].route].host
    s.message[m].remaining -= s.message[m].rate * (s.clock[0] - s.message[m].touched)
    s.message[m].touched, s.message[m].held = s.clock[0], 0.0
    leaves = max(s.clock[0], s.host[host].began + total / s.link[host].capacity)
    _at(s, len(s.message) + len(s.rank) + host, leaves)
    _at(s, m, s.clock[0] + s.message[m].remaining / s.message[m].rate)


@_inline
def next_of_host(s, host):  # type: ignore[no-untyped-def]
    """Let the next message of a host take its link."""
    m = s.host[host].first
    s.host[host].sends = -1
    if m >= 0:
        s.host[host].first = s.message[m].next
        if s.host[host].first < 0:
            s.host[host].last = -1
        _inject(s, m, host)


@_inline
def _run_rank(s, rank, hops):  # type: ignore[no-untyped-def]
    """Run operations until one waits or takes time."""
    while s.rank[rank].at < s.rank[rank].last:
        at = s.rank[rank].at
        kind, m = s.kind[at], s.operand[at]
        if kind == SEND:
            s.message[m].began = s.clock[0]
            s.rank[rank].at += 1
            if s.message[m].route < 0:
                arrive(s, m, hops)
            elif s.message[m].early or s.message[m].phase == POSTED:
                start_message(s, m)
            else:
                s.message[m].phase = SENT
        elif kind == POST:
            s.rank[rank].at += 1
            if s.message[m].phase == SENT:
                start_message(s, m)
            elif s.message[m].phase == IDLE:
                s.message[m].phase = POSTED
        elif kind in (RECEIVE, WAIT_SENT):
            if s.message[m].phase != ARRIVED and not (kind == WAIT_SENT and s.message[m].eager):
                s.rank[rank].blocked, s.rank[rank].since = True, s.clock[0]
                return
            s.rank[rank].at += 1
        else:  # COMPUTE, SLEEP
            s.rank[rank].at += 1
            if s.duration[m] > 0:
                s.rank[rank].computed += s.duration[m]
                _at(s, len(s.message) + rank, s.clock[0] + s.duration[m])
                return
    s.rank[rank].finished = s.clock[0]


# ---- sharing --------------------------------------------------------------------------------------------------------


@_inline
def _collect(s, hops):  # type: ignore[no-untyped-def]
    """Find everything that shares links, directly or not, with what changed; return numbers of flows, links, bounds."""
    s.numbers[EPOCH] += 1
    epoch = s.numbers[EPOCH]
    links = 0
    for i in range(s.numbers[CHANGED]):
        link = s.changed[i]
        if s.link[link].mark != epoch and s.link[link].head >= 0:
            s.link[link].mark = epoch
            s.links[links] = link
            links += 1
    s.numbers[CHANGED] = 0
    flows, bounded, done = 0, 0, 0
    while done < links:
        link = s.links[done]
        done += 1
        s.link[link].left, s.link[link].load, s.link[link].users = s.link[link].capacity, 0.0, 0
        entry = s.link[link].head
        while entry >= 0:
            slot = entry // hops
            route = s.message[s.holder[slot]].route
            s.link[link].load += s.route[route].weight
            s.link[link].users += 1
            if s.slot_mark[slot] != epoch:
                s.slot_mark[slot] = epoch
                s.flows[flows] = slot
                flows += 1
                if s.route[route].bound < np.inf:
                    bounded += 1
                for e in range(s.route[route].first, s.route[route].last):
                    other = s.route_link[e]
                    if s.link[other].mark != epoch:
                        s.link[other].mark = epoch
                        s.links[links] = other
                        links += 1
            entry = s.near[entry, 0]
    return flows, links, bounded


@_inline
def _fix(s, m, level, hops):  # type: ignore[no-untyped-def]
    """Settle a flow's rate and take it from its links."""
    route = s.message[m].route
    rate = level * s.route[route].weight
    s.slot_mark[s.message[m].slot] = -1
    s.message[m].remaining -= s.message[m].rate * (s.clock[0] - s.message[m].touched)
    s.message[m].touched, s.message[m].rate = s.clock[0], rate
    if s.message[m].held > 0:
        s.message[m].held = max(s.host[s.route[route].host].buffer + rate * s.route[route].inside, LEAST_BYTES)
    for e in range(s.route[route].first, s.route[route].last):
        link = s.route_link[e]
        s.link[link].left -= rate
        s.link[link].load -= s.route[route].weight
        s.link[link].users -= 1
    _at(s, m, s.clock[0] + max(s.message[m].remaining - s.message[m].held, 0.0) / rate)


@_inline
def share(s, hops):  # type: ignore[no-untyped-def]
    """Give every flow of the changed part of the network its max-min fair rate."""
    flows, links, bounded = _collect(s, hops)
    epoch = s.numbers[EPOCH]
    left_open = flows
    level = 0.0
    while left_open > 0:
        lowest = np.inf
        kept = 0
        for i in range(links):  # forget links without open flows
            link = s.links[i]
            if s.link[link].users > 0:
                s.links[kept] = link
                kept += 1
                lowest = min(lowest, s.link[link].left / s.link[link].load)
        links = kept
        stop = np.inf
        if bounded > 0:
            for i in range(flows):
                slot = s.flows[i]
                if s.slot_mark[slot] == epoch:
                    route = s.message[s.holder[slot]].route
                    stop = min(stop, s.route[route].bound / s.route[route].weight)
        level = max(level, min(lowest, stop))  # it never falls but by rounding
        same = level * (1 + 1e-12)
        if stop < lowest:
            for i in range(flows):
                slot = s.flows[i]
                if s.slot_mark[slot] == epoch:
                    m = s.holder[slot]
                    if s.route[s.message[m].route].bound <= same * s.route[s.message[m].route].weight:
                        _fix(s, m, level, hops)
                        left_open -= 1
            continue
        for i in range(links):
            link = s.links[i]
            if s.link[link].users > 0 and s.link[link].left <= same * s.link[link].load:
                entry = s.link[link].head
                while entry >= 0:
                    slot = entry // hops
                    if s.slot_mark[slot] == epoch:
                        _fix(s, s.holder[slot], level, hops)
                        left_open -= 1
                    entry = s.near[entry, 0]


# ---- loop -----------------------------------------------------------------------------------------------------------


@_inline
def _run_ready(s, hops):  # type: ignore[no-untyped-def]
    while s.numbers[READY] > 0:
        s.numbers[READY] -= 1
        _run_rank(s, s.ready[s.numbers[READY]], hops)


@_jit
def begin(s, hops):  # type: ignore[no-untyped-def]
    """Start all ranks at time 0."""
    for rank in range(len(s.rank) - 1, -1, -1):
        s.ready[s.numbers[READY]] = rank
        s.numbers[READY] += 1
    _run_ready(s, hops)


@_jit
def advance(s, hops, events):  # type: ignore[no-untyped-def]
    """Let up to `events` points in time pass; return SLICE, FINISHED, STUCK or FULL (more slots are needed)."""
    messages = len(s.message)
    for _ in range(events):
        if s.numbers[EVENTS] == 0:
            for rank in range(len(s.rank)):
                if s.rank[rank].finished < 0:
                    return STUCK
            return FINISHED
        now = s.item[s.heap[0]].key
        s.clock[0] = now
        while s.numbers[EVENTS] > 0 and s.item[s.heap[0]].key <= now + SAME_TIME:
            if s.numbers[FREE] == 0 and s.heap[0] < messages and s.message[s.heap[0]].phase == LATENCY:
                return FULL
            item = take_first(s)
            if item >= messages + len(s.rank):
                next_of_host(s, item - messages - len(s.rank))
            elif item >= messages:
                s.ready[s.numbers[READY]] = item - messages
                s.numbers[READY] += 1
            elif s.message[item].phase == LATENCY:
                move(s, item, hops)
            elif s.message[item].held > 0:
                let_host_go(s, item, s.size[item])
            else:
                arrive(s, item, hops)
            if s.numbers[EVENTS] == 0 or s.item[s.heap[0]].key > now + SAME_TIME:
                _run_ready(s, hops)
            if s.numbers[CHANGED] + 2 * hops > len(s.changed):
                share(s, hops)
        if s.numbers[CHANGED] > 0:
            share(s, hops)
    return SLICE

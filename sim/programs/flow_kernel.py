"""The event loop of the flow engine: ranks run their operations, messages share links (docs/definitions/engines.md).

Times are seconds. A message that starts waits for the latency of its route and then moves its bytes at a rate that
changes as other messages begin and end (`flow_sharing`). A message on a route whose links are nobody else's is not
looked at again before it arrives, unless a second one catches up with it.
"""

from typing import Any

from hopforge.model.kernel.compile import WITHOUT_COUNTS, inlined, kernel
from hopforge.model.workload.operations import JOIN, POST, RECEIVE, SEND, WAIT_SENT
from hopforge.sim.programs.flow_events import drop, put, take_first
from hopforge.sim.programs.flow_sharing import advance_clock, insert, remove, renew_event, share
from hopforge.sim.programs.flow_state import (
    ALONE,
    ARRIVED,
    BASE,
    CALLED,
    DIRTY,
    DONE,
    EVENTS,
    FREE,
    FRESH,
    IDLE,
    LATENCY,
    LEAST_BYTES,
    LINKS,
    MOVING,
    NEWS,
    POSTED,
    READY,
    SAME_TIME,
    SENT,
)

#: why `advance` returned
SLICE, FINISHED, STUCK, FULL, UNITS, CHANGE = range(6)

_jit: Any = kernel(error_model="numpy", **WITHOUT_COUNTS)


# ---- messages -------------------------------------------------------------------------------------------------------


@inlined
def _bytes(s, m):  # type: ignore[no-untyped-def]
    return s.size[m] + s.clock[1]


@inlined
def _wake(s, rank, m):  # type: ignore[no-untyped-def]
    if s.rank[rank].waits == m:
        s.rank[rank].waits = -1
        s.rank[rank].waited += s.clock[0] - s.rank[rank].since
        s.ready[s.numbers[READY]] = rank
        s.numbers[READY] += 1


@inlined
def note_arrival(s, m):  # type: ignore[no-untyped-def]
    """Note that a message is there, and wake who waits for it."""
    s.message[m].phase = ARRIVED
    s.message[m].arrived = s.clock[0]
    s.numbers[DONE] += 1
    _wake(s, s.destination[m], m)
    if s.source[m] != s.destination[m]:
        _wake(s, s.source[m], m)


@inlined
def _arrive(s, slot):  # type: ignore[no-untyped-def]
    """Let a message that has left its links be there."""
    m = s.flow[slot].message
    s.free[s.numbers[FREE]] = slot
    s.numbers[FREE] += 1
    s.news[s.numbers[NEWS]] = m
    s.numbers[NEWS] += 1
    note_arrival(s, m)


@inlined
def _move(s, slot, hops):  # type: ignore[no-untyped-def]
    """Let a message whose latency is over take its share of the links."""
    m = s.flow[slot].message
    route = s.message[m].route
    if s.flow[slot].finish <= 0:
        s.route[route].busy -= 1
        _arrive(s, slot)
        return
    s.message[m].phase = MOVING
    count = s.route[route].last - s.route[route].first
    for h in range(count):
        s.way[slot * hops + h] = s.route_link[s.route[route].first + h]
    if s.route[route].bound < float("inf"):
        link = s.numbers[LINKS] + slot
        s.link[link].capacity = s.route[route].bound
        s.way[slot * hops + count] = link
        count += 1
    s.flow[slot].count = count
    insert(s, slot, hops)


@inlined
def _meet(s, slot, now, hops):  # type: ignore[no-untyped-def]
    """Look again at a message that was alone: another one catches up with it."""
    m = s.flow[slot].message
    route = s.message[m].route
    s.route[route].alone = -1
    s.route[route].busy += 1
    left = (s.route[route].until - now) * s.route[route].rate
    whole = _bytes(s, m)
    s.flow[slot].weight, s.flow[slot].finish = s.route[route].weight, whole / s.route[route].weight
    if left >= whole:  # its first byte is on its way
        s.message[m].phase = LATENCY
        put(s, s.numbers[BASE] + slot, s.route[route].until - whole / s.route[route].rate)
    else:
        drop(s, s.numbers[BASE] + slot)
        s.flow[slot].finish = left / s.route[route].weight
        _move(s, slot, hops)


@inlined
def _depart(s, m, slot, hops):  # type: ignore[no-untyped-def]
    """Let a message wait for the latency of its route, and share bandwidth then."""
    now, route = s.clock[0], s.message[m].route
    s.flow[slot].message, s.flow[slot].held = m, 0.0
    if s.route[route].private and s.route[route].busy == 0:
        if s.route[route].alone < 0 or now + s.route[route].latency >= s.route[route].until:
            s.message[m].phase = ALONE
            s.route[route].alone = slot
            s.route[route].until = now + s.route[route].latency + _bytes(s, m) / s.route[route].rate
            put(s, s.numbers[BASE] + slot, s.route[route].until)
            return
        _meet(s, s.route[route].alone, now, hops)
    s.message[m].phase = LATENCY
    s.route[route].busy += 1
    s.flow[slot].weight = s.route[route].weight
    s.flow[slot].finish = _bytes(s, m) / s.route[route].weight
    put(s, s.numbers[BASE] + slot, now + s.route[route].latency)


@inlined
def start_message(s, m, hops):  # type: ignore[no-untyped-def]
    """Let a message wait for the latency of its route, or for its turn on the link of its host; a slot must be free."""
    if len(s.host) == 0:
        s.numbers[FREE] -= 1
        _depart(s, m, s.free[s.numbers[FREE]], hops)
        return
    host = s.route[s.message[m].route].host
    s.message[m].phase, s.next[m] = LATENCY, -1
    if s.host[host].sends < 0:
        _inject(s, m, host, hops)
        return
    if s.host[host].last < 0:
        s.host[host].first = m
    else:
        s.next[s.host[host].last] = m
    s.host[host].last = m


@inlined
def _inject(s, m, host, hops):  # type: ignore[no-untyped-def]
    """Let a message take the link of its host, until buffers and cables hold what is left of it.

    The buffer of its host at the first switch is its own; behind it, it has as much of the buffers and cables as of the
    bandwidth: its rate times the time inside (Little's law).
    """
    s.host[host].sends, s.host[host].began = m, s.clock[0]
    s.numbers[FREE] -= 1
    slot = s.free[s.numbers[FREE]]
    _depart(s, m, slot, hops)
    if _bytes(s, m) > s.host[host].buffer:
        s.flow[slot].held = LEAST_BYTES  # until it has a rate
    else:
        put(s, len(s.rank) + host, s.clock[0] + _bytes(s, m) / s.link[host].capacity)


@inlined
def _let_host_go(s, slot, hops):  # type: ignore[no-untyped-def]
    """Note that the rest of a message fits into the network; it has left its host not before its link could do it."""
    m, link = s.flow[slot].message, s.flow[slot].link
    host = s.route[s.message[m].route].host
    s.flow[slot].held = 0.0
    s.link[link].held -= 1
    leaves = max(s.clock[0], s.host[host].began + _bytes(s, m) / s.link[host].capacity)
    put(s, len(s.rank) + host, leaves)
    advance_clock(s, link)
    renew_event(s, link, hops)


@inlined
def _next_of_host(s, host, hops):  # type: ignore[no-untyped-def]
    """Let the next message of a host take its link."""
    m = s.host[host].first
    s.host[host].sends = -1
    if m >= 0:
        s.host[host].first = s.next[m]
        if s.host[host].first < 0:
            s.host[host].last = -1
        _inject(s, m, host, hops)


@inlined
def _end_flows(s, link, hops):  # type: ignore[no-untyped-def]
    """Let the flows of a group that end now arrive."""
    advance_clock(s, link)
    ends = max(s.link[link].first, s.link[link].clock + s.link[link].level * SAME_TIME)
    entry = s.link[link].head
    while entry >= 0:
        slot = entry // hops
        entry = s.near[entry, 0]
        if s.flow[slot].link == link and s.flow[slot].held == 0 and s.flow[slot].finish <= ends:
            remove(s, slot, hops)
            s.route[s.message[s.flow[slot].message].route].busy -= 1
            _arrive(s, slot)


@inlined
def run_event(s, item, hops):  # type: ignore[no-untyped-def]
    """Let the event of an item happen that is no rank."""
    hosts, base = len(s.rank), s.numbers[BASE]
    links = base - s.numbers[LINKS]
    if item < links:
        _next_of_host(s, item - hosts, hops)
        return
    if item < base:
        _end_flows(s, item - links, hops)
        return
    slot = item - base
    m = s.flow[slot].message
    phase = s.message[m].phase
    if phase == ALONE:
        route = s.message[m].route
        if s.route[route].alone == slot:
            s.route[route].alone = -1
        _arrive(s, slot)
    elif phase == LATENCY:
        _move(s, slot, hops)
    elif s.flow[slot].held > 0:
        _let_host_go(s, slot, hops)
    else:
        _end_flows(s, s.numbers[LINKS] + slot, hops)


# ---- ranks ----------------------------------------------------------------------------------------------------------


@inlined
def _join(s, rank, part):  # type: ignore[no-untyped-def]
    """Take part in a collective of units; return whether its result is there."""
    arrived, now = s.message[part].arrived, s.clock[0]
    if s.rank[rank].waits != part:
        s.rank[rank].since = now
        s.rank[rank].waits = part
        s.message[part].began = now
        if arrived < 0:
            call = s.message[part].route
            if s.message[part].early:
                s.message[call].route -= 1
                if s.message[call].route == 0:
                    s.message[call].route, s.numbers[CALLED] = s.numbers[CALLED], call
            return False
        if arrived > now + SAME_TIME:
            put(s, rank, arrived)
            return False
    s.rank[rank].waited += now - s.rank[rank].since
    s.rank[rank].waits = -1
    return True


@_jit
def let_go(s, ranks, first, finish):  # type: ignore[no-untyped-def]
    """Tell the members of a call of units when they go on: `ranks`, whose parts begin at `first`, at `finish`."""
    for i in range(len(ranks)):
        s.message[first + i].arrived = finish[i]
        if s.message[first + i].began >= 0:
            put(s, ranks[i], finish[i])


@inlined
def _run_rank(s, rank, hops):  # type: ignore[no-untyped-def]
    """Run operations until one waits or takes time; return whether there are slots for its messages."""
    at, last = s.rank[rank].at, s.rank[rank].last
    while at < last:
        kind, m = s.kind[at], s.operand[at]
        if kind in (SEND, POST):
            phase, starts = s.message[m].phase, False
            if kind == POST:
                starts = phase == SENT
            elif s.message[m].route >= 0:
                starts = s.message[m].early or phase == POSTED
            if starts and s.numbers[FREE] == 0:
                s.rank[rank].at = at
                s.ready[s.numbers[READY]] = rank
                s.numbers[READY] += 1
                return False
            if kind == SEND:
                s.message[m].began = s.clock[0]
                if s.message[m].route < 0:
                    note_arrival(s, m)
                elif not starts:
                    s.message[m].phase = SENT
            elif phase == IDLE:
                s.message[m].phase = POSTED
            if starts:
                start_message(s, m, hops)
        elif kind in (RECEIVE, WAIT_SENT):
            if s.message[m].phase != ARRIVED and not (kind == WAIT_SENT and s.message[m].eager):
                s.rank[rank].at, s.rank[rank].waits, s.rank[rank].since = at, m, s.clock[0]
                return True
        elif kind == JOIN:
            if not _join(s, rank, m):
                s.rank[rank].at = at
                return True
        elif s.duration[m] > 0:  # COMPUTE, SLEEP
            s.rank[rank].at = at + 1
            s.rank[rank].computed += s.duration[m]
            put(s, rank, s.clock[0] + s.duration[m])
            return True
        at += 1
    s.rank[rank].at = at
    s.rank[rank].finished = s.clock[0]
    return True


@inlined
def _run_ready(s, hops):  # type: ignore[no-untyped-def]
    """Run all ranks that can; return whether there are slots for their messages."""
    while s.numbers[READY] > 0:
        s.numbers[READY] -= 1
        if not _run_rank(s, s.ready[s.numbers[READY]], hops):
            return False
    return True


# ---- loop -----------------------------------------------------------------------------------------------------------


@_jit
def begin(s):  # type: ignore[no-untyped-def]
    """Let all ranks be ready at time 0."""
    for rank in range(len(s.rank) - 1, -1, -1):
        s.ready[s.numbers[READY]] = rank
        s.numbers[READY] += 1


@_jit
def advance(s, hops, events):  # type: ignore[no-untyped-def]
    """Let up to `events` points in time pass.

    Returns
    -------
    int
        SLICE, FINISHED, STUCK, FULL (more slots are needed), UNITS (calls of units are complete) or CHANGE (links
        change their rates now).
    """
    ranks = len(s.rank)
    until = s.clock[0] + SAME_TIME  # what is left of the present
    for _ in range(events):
        while True:
            s.numbers[NEWS] = 0
            if s.numbers[EVENTS] == 0 or s.heap[0].key > until:
                if s.numbers[READY] == 0:
                    break
                if not _run_ready(s, hops):
                    return FULL
                continue
            if s.numbers[FREE] == 0 and s.heap[0].item >= ranks and s.heap[0].item < ranks + len(s.host):
                return FULL
            item = take_first(s)
            if item < ranks:
                s.ready[s.numbers[READY]] = item
                s.numbers[READY] += 1
            else:
                run_event(s, item, hops)
        if s.numbers[CALLED] > 0:
            return UNITS
        if s.numbers[DIRTY] + s.numbers[FRESH] > 0:
            share(s, hops)
            continue
        if s.numbers[EVENTS] == 0:
            for rank in range(ranks):
                if s.rank[rank].finished < 0:
                    return STUCK
            return FINISHED
        s.clock[0] = min(s.heap[0].key, s.clock[2])
        until = s.clock[0] + SAME_TIME
        if s.heap[0].key > s.clock[2]:
            return CHANGE
    return SLICE

"""The event loop of the LogGOPS engine, by the rules called clean (docs/definitions/goal.md#loggops).

Everything that can happen waits in one heap, ordered by time, then by the time since which it is ready, then messages
before operations, then by the number of the operation. What finds its cpu or nic busy waits in the queue of that; when
the cpu or nic is free, the first of its queue is put into the heap. So every instant looks at what is ready in the
order of the definition, however much waits.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.array_record import ArrayRecord
from hopforge.model.kernel.compile import WITHOUT_COUNTS, inner, kernel
from hopforge.model.workload.schedule import ANY, RECV, SEND

#: why `run` returned
SLICE, FINISHED, DISAGREE = range(3)
#: what an event is: an operation that tries to start, a receive that tries to be carried out, a message that tries to
#: be taken in, one that has arrived, a cpu or nic that is free
START, CARRY, INTAKE, ARRIVE, FREED = range(5)
#: states of an operation
WAITING, STARTED, DONE = range(3)
NONE = -1
# places in `numbers`
EVENTS, COMPLETE, ONE, OTHER = range(4)
# places in `settings`: L, o, g, G, O
LATENCY, OVERHEAD, GAP, GAP_PER_BYTE, OVERHEAD_PER_BYTE = range(5)
#: of an event: messages go before operations that have been ready as long
_FREED_CLASS, MESSAGE_CLASS, _OPERATION_CLASS = range(3)

EVENT = np.dtype([("time", "f8"), ("ready", "f8"), ("order", "i8"), ("who", "i4"), ("what", "i4")], align=True)
"""Something that happens: when; since when it is ready; class and number, by which equals go; operation or place; which
kind of event."""
OPERATION = np.dtype([
    ("size", "f8"), ("ready", "f8"), ("start", "f8"), ("end", "f8"), ("rank", "i4"), ("peer", "i4"), ("cpu", "i4"),
    ("nic", "i4"), ("queue", "i4"), ("waits", "i4"), ("next", "i4"), ("partner", "i4"),
    ("child", "i4"), ("sibling", "i4"), ("tag", "i8"), ("kind", "i1"), ("state", "i1"), ("eager", "?"),
], align=True)
"""An operation: bytes (at least 1) or time; since when what it does next is ready; start; end; ranks; its cpu and its
sending nic among all; where its message and receive meet; dependencies that it still waits for; the next in that
place; the other side of its message (of a send before they meet: the nic that takes it in); links in the queue of a cpu
or nic; tag; kind; state; whether it is eager."""
PLACE = np.dtype([("free", "f8"), ("root", "i4"), ("awake", "?")], align=True)
"""A cpu, or a nic for sending or receiving: when it is free; first of its queue (−1: none); whether an event of its
freedom waits."""
RANK = np.dtype([("computed", "f8"), ("busy", "f8"), ("until", "f8")], align=True)
"""A rank: time in computations, of all cpus together; time in which any cpu was busy; until when one is."""
MEETING = np.dtype([("posted", "i4"), ("posted_last", "i4"), ("come", "i4"), ("come_last", "i4")], align=True)
"""Where messages meet receives: oldest and youngest receive that is posted, oldest and youngest message that has
come."""


class LoggopsState(ArrayRecord):
    """Arrays of a run.

    Attributes
    ----------
    operation, place, meeting : ndarray
        Records `OPERATION`, `PLACE` (cpus, nics for sending, nics for receiving), `MEETING`.
    end_first, end_next, start_first, start_next : ndarray
        Dependencies, as in `Schedule`.
    event : ndarray
        Records `EVENT`: a binary heap.
    numbers : ndarray, int64[4]
        Events; operations that are complete; two operations whose sizes disagree.
    settings : ndarray, float64[5]
        L, o, g, G, O.
    rank : ndarray
        Records `RANK`.
    clock : ndarray, float64[1]
        Now.
    nics : ndarray, int64[2]
        Places before the sending nics; how many nics all ranks have.
    """

    operation: NDArray[np.void]
    place: NDArray[np.void]
    meeting: NDArray[np.void]
    end_first: NDArray[np.int64]
    end_next: NDArray[np.int32]
    start_first: NDArray[np.int64]
    start_next: NDArray[np.int32]
    event: NDArray[np.void]
    numbers: NDArray[np.int64]
    settings: NDArray[np.float64]
    rank: NDArray[np.void]
    clock: NDArray[np.float64]
    nics: NDArray[np.int64]


_jit: Any = kernel(error_model="numpy", **WITHOUT_COUNTS)


# ---- the heap of events ---------------------------------------------------------------------------------------------


@inner
def _before(a, b):  # type: ignore[no-untyped-def]
    if a.time != b.time:
        return a.time < b.time
    if a.ready != b.ready:
        return a.ready < b.ready
    return a.order < b.order


@inner
def push(s, time, ready, rank_of_kind, who, what):  # type: ignore[no-untyped-def]
    """Let something happen at a time, ready since another."""
    at = s.numbers[EVENTS]
    s.numbers[EVENTS] += 1
    order = np.int64(rank_of_kind) << 40 | who
    while at > 0:
        parent = (at - 1) >> 1
        up = s.event[parent]
        if up.time < time or (up.time == time and (up.ready < ready or (up.ready == ready and up.order <= order))):
            break
        s.event[at] = up
        at = parent
    new = s.event[at]
    new.time, new.ready, new.order, new.who, new.what = time, ready, order, who, what


@inner
def drop_first(s):  # type: ignore[no-untyped-def]
    """Take the next event out of the heap."""
    s.numbers[EVENTS] -= 1
    size = s.numbers[EVENTS]
    if size == 0:
        return
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _before(s.event[child + 1], s.event[child]):
            child += 1
        if not _before(s.event[child], s.event[size]):
            break
        s.event[at] = s.event[child]
        at = child
    s.event[at] = s.event[size]


# ---- queues of cpus and nics: pairing heaps by (ready, number) ------------------------------------------------------


@inner
def _merge(s, a, b):  # type: ignore[no-untyped-def]
    if a < 0:
        return b
    if b < 0:
        return a
    first, second = s.operation[a], s.operation[b]
    if second.ready < first.ready or (second.ready == first.ready and b < a):
        a, b = b, a
    s.operation[b].sibling = s.operation[a].child
    s.operation[a].child = b
    return a


@inner
def _wait_for(s, place, n):  # type: ignore[no-untyped-def]
    """Let operation n wait until a place is free, which it is not."""
    s.operation[n].child = NONE
    s.operation[n].sibling = NONE
    s.place[place].root = _merge(s, s.place[place].root, n)
    if not s.place[place].awake:
        s.place[place].awake = True
        push(s, s.place[place].free, -1.0, _FREED_CLASS, place, FREED)


@inner
def _take_waiting(s, place):  # type: ignore[no-untyped-def]
    """Take the first of the queue of a place."""
    first = s.place[place].root
    merged, node = NONE, s.operation[first].child
    while node >= 0:  # pair by pair, kept in a list by their siblings
        other = s.operation[node].sibling
        following = NONE if other < 0 else s.operation[other].sibling
        s.operation[node].sibling = NONE
        if other >= 0:
            s.operation[other].sibling = NONE
        pair = _merge(s, node, other)
        s.operation[pair].sibling = merged
        merged, node = pair, following
    root = NONE
    while merged >= 0:
        following = s.operation[merged].sibling
        s.operation[merged].sibling = NONE
        root = _merge(s, root, merged)
        merged = following
    s.place[place].root = root
    return first


@inner
def _wake(s, place, now):  # type: ignore[no-untyped-def]
    """Let the first that waits for a free place try."""
    if s.place[place].root < 0:
        return
    n = _take_waiting(s, place)
    one = s.operation[n]
    if one.kind == RECV:
        push(s, now, one.ready, _OPERATION_CLASS, n, CARRY)
    elif one.state == WAITING:
        push(s, now, one.ready, _OPERATION_CLASS, n, START)
    else:
        push(s, now, one.ready, MESSAGE_CLASS, n, INTAKE)


@inner
def _occupy(s, place, until, now):  # type: ignore[no-untyped-def]
    """Take a place that is free; those that wait for it try again when it is free again."""
    s.place[place].free = until
    if until <= now:
        _wake(s, place, now)
    elif s.place[place].root >= 0 and not s.place[place].awake:
        s.place[place].awake = True
        push(s, until, -1.0, _FREED_CLASS, place, FREED)


@inner
def _work(s, n, until, now):  # type: ignore[no-untyped-def]
    """Let the cpu of operation n, which is free, be busy."""
    rank = s.rank[s.operation[n].rank]
    if until > rank.until:  # cpus begin in the order of time
        rank.busy += until - max(now, rank.until)
        rank.until = until
    _occupy(s, s.operation[n].cpu, until, now)


# ---- dependencies ---------------------------------------------------------------------------------------------------


@inner
def _release(s, n, time):  # type: ignore[no-untyped-def]
    one = s.operation[n]
    one.waits -= 1
    one.ready = max(one.ready, time)
    if one.waits == 0:
        push(s, one.ready, one.ready, _OPERATION_CLASS, n, START)


@inner
def _started(s, n, time):  # type: ignore[no-untyped-def]
    s.operation[n].state = STARTED
    s.operation[n].start = time
    for entry in range(s.start_first[n], s.start_first[n + 1]):
        _release(s, s.start_next[entry], time)


@inner
def _completed(s, n, time):  # type: ignore[no-untyped-def]
    s.operation[n].state = DONE
    s.operation[n].end = time
    s.numbers[COMPLETE] += 1
    for entry in range(s.end_first[n], s.end_first[n + 1]):
        _release(s, s.end_next[entry], time)


# ---- messages meet receives -----------------------------------------------------------------------------------------


@inner
def _fits(s, receive, message):  # type: ignore[no-untyped-def]
    r, m = s.operation[receive], s.operation[message]
    return (r.peer < 0 or r.peer == m.rank) and (r.tag == m.tag or r.tag == ANY)  # noqa: PLR1714  compiled


@inner
def _meet(s, receive, message, now):  # type: ignore[no-untyped-def]
    r, m = s.operation[receive], s.operation[message]
    r.partner, m.partner = message, receive
    if r.size != m.size and s.numbers[ONE] < 0:
        s.numbers[ONE], s.numbers[OTHER] = message, receive
    r.ready = now
    push(s, now, now, _OPERATION_CLASS, receive, CARRY)


@inner
def _post(s, receive, now):  # type: ignore[no-untyped-def]
    queue = s.meeting[s.operation[receive].queue]
    before, n = NONE, queue.come
    while n >= 0 and not _fits(s, receive, n):
        before, n = n, s.operation[n].next
    if n >= 0:
        following = s.operation[n].next
        if before < 0:
            queue.come = following
        else:
            s.operation[before].next = following
        if queue.come_last == n:
            queue.come_last = before
        _meet(s, receive, n, now)
        return
    s.operation[receive].next = NONE
    if queue.posted_last >= 0:
        s.operation[queue.posted_last].next = receive
    else:
        queue.posted = receive
    queue.posted_last = receive


@inner
def _come(s, message, now):  # type: ignore[no-untyped-def]
    queue = s.meeting[s.operation[message].queue]
    before, n = NONE, queue.posted
    while n >= 0 and not _fits(s, n, message):
        before, n = n, s.operation[n].next
    if n >= 0:
        following = s.operation[n].next
        if before < 0:
            queue.posted = following
        else:
            s.operation[before].next = following
        if queue.posted_last == n:
            queue.posted_last = before
        _meet(s, n, message, now)
        return
    s.operation[message].next = NONE
    if queue.come_last >= 0:
        s.operation[queue.come_last].next = message
    else:
        queue.come = message
    queue.come_last = message


# ---- operations -----------------------------------------------------------------------------------------------------


@inner
def _try_calc(s, n, now):  # type: ignore[no-untyped-def]
    one = s.operation[n]
    if s.place[one.cpu].free > now:
        _wait_for(s, one.cpu, n)
        return
    s.rank[one.rank].computed += one.size
    _started(s, n, now)
    _completed(s, n, now + one.size)
    _work(s, n, now + one.size, now)


@inner
def _try_send(s, n, now):  # type: ignore[no-untyped-def]
    """C3."""
    one = s.operation[n]
    nic = s.nics[0] + one.nic
    cpu = one.cpu
    if s.place[nic].free > now:
        _wait_for(s, nic, n)
        if s.place[cpu].free <= now:
            _wake(s, cpu, now)
        return
    if s.place[cpu].free > now:
        _wait_for(s, cpu, n)
        _wake(s, nic, now)
        return
    wire = np.floor((one.size - 1) * s.settings[GAP_PER_BYTE])
    end = now + s.settings[OVERHEAD] + (one.size - 1) * s.settings[OVERHEAD_PER_BYTE]
    _started(s, n, now)
    one.ready = end + s.settings[LATENCY]
    push(s, one.ready, one.ready, MESSAGE_CLASS, n, INTAKE)
    if one.eager:
        _completed(s, n, end)
    _work(s, n, end, now)
    _occupy(s, nic, now + s.settings[GAP] + wire, now)


@inner
def _try_intake(s, n, now):  # type: ignore[no-untyped-def]
    """C4: the nic of the receiver that has the number of the send."""
    one = s.operation[n]
    nic = s.nics[0] + s.nics[1] + one.partner  # until it meets a receive, `partner` is this nic
    if s.place[nic].free > now:
        _wait_for(s, nic, n)
        return
    wire = np.floor((one.size - 1) * s.settings[GAP_PER_BYTE])
    push(s, now + wire, now + wire, MESSAGE_CLASS, n, ARRIVE)
    _occupy(s, nic, now + s.settings[GAP] + wire, now)


@inner
def _try_carry(s, n, now):  # type: ignore[no-untyped-def]
    """C6."""
    one = s.operation[n]
    if s.place[one.cpu].free > now:
        _wait_for(s, one.cpu, n)
        return
    end = now + s.settings[OVERHEAD] + (one.size - 1) * s.settings[OVERHEAD_PER_BYTE]
    _completed(s, n, end)
    if not s.operation[one.partner].eager:
        _completed(s, one.partner, end)
    _work(s, n, end, now)


@_jit
def begin(s):  # type: ignore[no-untyped-def]
    """Make everything ready that waits for nothing."""
    for n in range(len(s.operation)):
        if s.operation[n].waits == 0:
            push(s, 0.0, 0.0, _OPERATION_CLASS, n, START)


@_jit
def begin_later(s, start):  # type: ignore[no-untyped-def]
    """Make everything ready that waits for nothing, of each rank at its own time: `start`, float64[rank]."""
    for n in range(len(s.operation)):
        if s.operation[n].waits == 0:
            at = start[s.operation[n].rank]
            s.operation[n].ready = at
            push(s, at, at, _OPERATION_CLASS, n, START)


@inner
def happen(s, now, n, what):  # type: ignore[no-untyped-def]
    """Let an event happen that has been taken from the heap."""
    if what == FREED:
        if s.place[n].free > now:  # somebody was faster
            push(s, s.place[n].free, -1.0, _FREED_CLASS, n, FREED)
        else:
            s.place[n].awake = False
            _wake(s, n, now)
    elif what == CARRY:
        _try_carry(s, n, now)
    elif what == INTAKE:
        _try_intake(s, n, now)
    elif what == ARRIVE:
        _come(s, n, now)
    elif s.operation[n].kind == RECV:
        _started(s, n, now)
        _post(s, n, now)
    elif s.operation[n].kind == SEND:
        _try_send(s, n, now)
    else:
        _try_calc(s, n, now)


@_jit
def advance(s, most):  # type: ignore[no-untyped-def]
    """Let at most so many events happen; return SLICE, FINISHED (nothing is left to happen) or DISAGREE."""
    for _ in range(most):
        if s.numbers[EVENTS] == 0:
            return FINISHED
        now, n, what = s.event[0].time, s.event[0].who, s.event[0].what
        drop_first(s)
        s.clock[0] = now
        happen(s, now, n, what)
        if s.numbers[ONE] >= 0:
            return DISAGREE
    return SLICE


@_jit
def run_until(s, limit, local, handed):  # type: ignore[no-untyped-def]
    """Let everything happen that is before a time, but what a network does.

    Parameters
    ----------
    s : LoggopsState
        Without latency and time per byte.
    limit : float
        That time.
    local : ndarray, bool[operation]
        Sends whose messages need no network.
    handed : ndarray, int32[...]
        Filled with the sends whose message the network gets, in order.

    Returns
    -------
    int
        How many these are; −1: two sizes disagree.
    """
    count = 0
    while s.numbers[EVENTS] > 0 and s.event[0].time < limit:
        now, n, what = s.event[0].time, s.event[0].who, s.event[0].what
        drop_first(s)
        s.clock[0] = now
        if what != INTAKE:
            happen(s, now, n, what)
        elif local[n]:
            push(s, now, now, MESSAGE_CLASS, n, ARRIVE)
        else:
            handed[count] = n
            count += 1
        if s.numbers[ONE] >= 0:
            return -1
    return count


@_jit
def come_in(s, time, n):  # type: ignore[no-untyped-def]
    """Let the message of send n arrive from the network."""
    push(s, time, time, MESSAGE_CLASS, n, ARRIVE)

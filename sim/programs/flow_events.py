"""Events of the flow engine: a heap with four entries below each, so that these are one line of the cache."""

from hopforge.model.kernel.compile import inlined
from hopforge.sim.programs.flow_state import EVENTS


@inlined
def _up(s, at, key, item):  # type: ignore[no-untyped-def]
    while at > 0:
        parent = (at - 1) >> 2
        if s.heap[parent].key <= key:
            break
        s.heap[at].key, s.heap[at].item = s.heap[parent].key, s.heap[parent].item
        s.place[s.heap[at].item] = at
        at = parent
    s.heap[at].key, s.heap[at].item = key, item
    s.place[item] = at


@inlined
def _down(s, at, key, item):  # type: ignore[no-untyped-def]
    size = s.numbers[EVENTS]
    while True:
        child = 4 * at + 1
        if child >= size:
            break
        least = s.heap[child].key
        for other in range(child + 1, min(child + 4, size)):
            if s.heap[other].key < least:
                child, least = other, s.heap[other].key
        if key <= least:
            break
        s.heap[at].key, s.heap[at].item = least, s.heap[child].item
        s.place[s.heap[at].item] = at
        at = child
    s.heap[at].key, s.heap[at].item = key, item
    s.place[item] = at


@inlined
def put(s, item, time):  # type: ignore[no-untyped-def]
    """Let an event of `item` happen at `time`, instead of the one that it has, if any."""
    at = s.place[item]
    if at < 0:
        at = s.numbers[EVENTS]
        s.numbers[EVENTS] += 1
        _up(s, at, time, item)
    elif time < s.heap[at].key:
        _up(s, at, time, item)
    else:
        _down(s, at, time, item)


@inlined
def drop(s, item):  # type: ignore[no-untyped-def]
    """Let `item` have no event."""
    at = s.place[item]
    if at < 0:
        return
    s.place[item] = -1
    s.numbers[EVENTS] -= 1
    size = s.numbers[EVENTS]
    if at == size:
        return
    key, moved = s.heap[size].key, s.heap[size].item
    if at > 0 and s.heap[(at - 1) >> 2].key > key:
        _up(s, at, key, moved)
    else:
        _down(s, at, key, moved)


@inlined
def take_first(s):  # type: ignore[no-untyped-def]
    """Take the item whose event is next."""
    item = s.heap[0].item
    s.place[item] = -1
    s.numbers[EVENTS] -= 1
    size = s.numbers[EVENTS]
    if size > 0:
        _down(s, 0, s.heap[size].key, s.heap[size].item)
    return item

"""Delay lines: what is sent into one comes out its delay later, in the order in which it was sent."""

from numba import int64

from hopforge.model.kernel.compile import inlined, inner
from hopforge.model.kernel.memory import int32s, int64s
from hopforge.sim.queued.records import Line, Queues, line_at, note_at


@inlined
def put(line: Line, now: int, what: int) -> int:
    """Put an entry into a delay line, or into its inbox if it may come from another part; returns its place there."""
    if line.far != 0:
        place = int64(line.waiting)
        line.waiting = place + 1
        int32s(line.sent)[place] = now
    else:
        place = line.last & line.mask
        line.last += 1
        int32s(line.counts)[(now + line.delay) & line.count_mask] += 1
    int64s(line.put_entries)[place] = what
    return place


@inlined
def due(line: Line, now: int) -> int:
    """Count the entries of a delay line that come out in cycle `now` (asked once)."""
    slot = now & line.count_mask
    count = int64(int32s(line.counts)[slot])
    if count != 0:
        int32s(line.counts)[slot] = 0
    return count


@inner
def deliver(queues: Queues, line: Line, first: int, cycles: int) -> None:
    """Move the inbox of a line, filled in `cycles` cycles from `first` on, into it: by time, then as it stands."""
    count = line.waiting
    if count == 0:
        return
    if line.first == line.last:  # stay where memory is warm
        line.first = line.last = 0
    places, sent = int64s(queues.places), int32s(line.sent)
    for c in range(cycles):
        places[c] = 0
    for k in range(count):
        places[(sent[k] - first) & 0xFFFFFFFF] += 1
    place = int64(line.last)
    for c in range(cycles):
        if places[c] != 0:
            int32s(line.counts)[(first + c + line.delay) & line.count_mask] = places[c]
        place += places[c]
        places[c] = place - places[c]
    for k in range(count):
        entry = int64s(line.put_entries)[k]
        c = (sent[k] - first) & 0xFFFFFFFF
        at = places[c] & line.mask
        places[c] += 1
        int64s(line.entries)[at] = entry
        if entry & 1 != 0 and line.notes != 0:
            note, kept = note_at(line.put_notes, k), note_at(line.notes, at)
            kept.key, kept.value = note.key, note.value
    line.last = place
    line.waiting = 0


@inner
def deliver_all(queues: Queues, first: int, cycles: int) -> None:
    """Move what parts have sent to each other in `cycles` cycles from `first` on into the lines of the receivers."""
    for k in range(queues.parts * queues.lines):
        deliver(queues, line_at(queues.packet_line, k), first, cycles)
        deliver(queues, line_at(queues.credit_line, k), first, cycles)

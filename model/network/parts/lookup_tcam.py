"""Requests on their way through the TCAM of a network's lookup engine, which takes one per cycle."""

from numba import int64, uint8

from hopforge.model.kernel.compile import inner
from hopforge.model.network.core.lookup_state import Lookups, engine_at, mshr_at


@inner
def ask_tcam(lookups: Lookups, e: int, i: int, due: int) -> None:
    """Send the request of MSHR `i`; its answer is there in cycle `due`."""
    engine, mshrs = engine_at(lookups, e), lookups.mshrs
    mshr_at(lookups, e, i).due = due
    place = int64(engine.queue_head) + int64(engine.queued)
    mshr_at(lookups, e, place if place < mshrs else place - mshrs).queue = uint8(i)
    engine.queued += uint8(1)


@inner
def tcam_says(lookups: Lookups, e: int, now: int) -> int:
    """Take the answer of this cycle; returns the MSHR, -1: none."""
    engine = engine_at(lookups, e)
    if engine.queued == 0:
        return -1
    first = int64(mshr_at(lookups, e, int64(engine.queue_head)).queue)
    if mshr_at(lookups, e, first).due != now:
        return -1
    engine.queue_head = uint8(engine.queue_head + 1 if engine.queue_head + 1 < lookups.mshrs else 0)
    engine.queued -= uint8(1)
    return first

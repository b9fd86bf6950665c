"""When lookup engines work: those that wait for a TCAM alone sleep until its answer is due."""

from numba import int64, uint64

from hopforge.model.kernel.compile import inlined
from hopforge.model.kernel.memory import int32s, words
from hopforge.model.network.core.lookup_state import Lookups, engine_at, mshr_at

__all__ = ["sleep_until_answer", "wake_engines"]


@inlined
def sleep_until_answer(lookups: Lookups, e: int) -> None:
    """Let engine `e` be woken when the first answer that it waits for is due."""
    engine = engine_at(lookups, e)
    if engine.queued > 0:
        first = int64(mshr_at(lookups, e, int64(engine.queue_head)).queue)
        due = int64(mshr_at(lookups, e, first).due)
        if engine.wake != due:
            engine.wake = due
            slot = due & lookups.wake_mask
            int32s(lookups.wake_event)[slot * lookups.engines + int32s(lookups.wake_events)[slot]] = e
            int32s(lookups.wake_events)[slot] += 1


@inlined
def wake_engines(lookups: Lookups, now: int) -> None:
    """Wake the engines whose answers are due in cycle `now`."""
    slot = now & lookups.wake_mask
    for k in range(int32s(lookups.wake_events)[slot]):
        e = int64(int32s(lookups.wake_event)[slot * lookups.engines + k])
        words(lookups.active)[e >> 6] |= uint64(1) << uint64(e & 63)
    int32s(lookups.wake_events)[slot] = 0

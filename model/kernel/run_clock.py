"""Processor time of a run: that of the process, without what the compiler takes in between."""

import threading
import time

from numba.core import event

__all__ = ["run_seconds"]


class _Compiler(event.Listener):  # type: ignore[misc]
    """Adds up the processor time in which numba compiles functions, or reads their machine code from disk.

    It is that of the thread that compiles: others may run at the same time, or wait until it has ended.
    """

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}
        self._thread = threading.local()

    @property
    def seconds(self) -> float:
        """Of all threads."""
        return sum(list(self._seconds.values()))

    def on_start(self, _: object) -> None:
        """Note when the outermost of several begins."""
        within = getattr(self._thread, "within", 0)
        if within == 0:
            self._thread.began = time.thread_time()
        self._thread.within = within + 1

    def on_end(self, _: object) -> None:
        """Add what it has taken; of one that was under way before this was here nothing is known."""
        within = getattr(self._thread, "within", 0)
        self._thread.within = max(within - 1, 0)
        if within == 1:
            taken, thread = time.thread_time() - self._thread.began, threading.get_ident()
            self._seconds[thread] = self._seconds.get(thread, 0.0) + taken


_COMPILER = _Compiler()
event.register("numba:compiler_lock", _COMPILER)


def run_seconds() -> float:
    """Processor time of this process in seconds, all threads, but for compiling; only differences have a meaning."""
    return time.process_time() - _COMPILER.seconds

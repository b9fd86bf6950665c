"""Processor time of a run: that of the process, without what the compiler takes in between."""

import time

from numba.core import event

__all__ = ["run_seconds"]


class _Compiler(event.Listener):  # type: ignore[misc]
    """Adds up the processor time in which numba compiles functions, or reads their machine code from disk."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began, self._within = 0.0, 0

    def on_start(self, _: object) -> None:
        """Note when the outermost of several begins."""
        if self._within == 0:
            self._began = time.process_time()
        self._within += 1

    def on_end(self, _: object) -> None:
        """Add what it has taken."""
        self._within -= 1
        if self._within == 0:
            self.seconds += time.process_time() - self._began


_COMPILER = _Compiler()
event.register("numba:compiler_lock", _COMPILER)


def run_seconds() -> float:
    """Processor time of this process in seconds, all threads, but for compiling; only differences have a meaning."""
    return time.process_time() - _COMPILER.seconds

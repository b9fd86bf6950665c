"""Ctrl-C, SIGTERM and SIGHUP end a command alike: what is finished is kept, what is half done goes, one line is said.

Imports only what Python has loaded anyway, and is imported before everything else.
"""

import os
import signal
import sys
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: signals that end a command
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
#: a second signal within so many seconds of the first is the same one: it does not cut short the tidying up
AGAIN_S = 1.0


class _Received:
    """Which signal came last, and when."""

    number = 0
    at = 0.0


def words() -> str:
    """Say what has ended the command."""
    number = _Received.number or signal.SIGINT
    return "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"


def exit_status() -> int:
    """128 and the number of the signal that came, or of SIGINT."""
    return 128 + (_Received.number or signal.SIGINT)


def received() -> bool:
    """Tell whether a signal came since the command began."""
    return _Received.number != 0


def is_command() -> bool:
    """Tell whether this process was started as ``hopforge`` or ``python -m hopforge``, and has just begun."""
    name = sys.argv[0] if sys.argv else ""
    return name.rpartition(os.sep)[2] == "hopforge" or (name == "-m" and "hopforge" in sys.orig_argv)


def _take(handler: "Callable[..., Any]") -> "dict[int, Any]":
    """Let `handler` take the signals, but for those that are ignored (nohup, a job in the background)."""
    taken = {}
    for number in SIGNALS:
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            taken[number] = signal.signal(number, handler)
    return taken


def _end(number: int, _frame: object) -> None:
    _Received.number = number
    os.write(2, f"hopforge: {words()}\n".encode())
    os._exit(exit_status())


def end_at_once() -> None:
    """Let a signal end the process on the spot: while modules are loaded there is nothing to tidy up."""
    _take(_end)


def ignore() -> None:
    """Let the process come to its end: all is done, and no traceback is wanted from the way out."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def leave(status: object) -> None:
    """Let the process come to its end undisturbed; where a signal has ended the command, end it with that status.

    Python ends itself by SIGINT, whatever the exit status, if a ``KeyboardInterrupt`` has once passed through ``exec``
    of a text, as named tuples and data classes have it.
    """
    ignore()
    if not received() or status != exit_status():
        return
    sys.unraisablehook = _nothing
    import atexit  # noqa: PLC0415 - only now

    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except (OSError, ValueError):  # the terminal may be gone
        return
    os._exit(exit_status())


def _nothing(_unraisable: object) -> None:
    """Say nothing of what a destructor raises: the signal came while its object was made."""


def _raise(number: int, _frame: object) -> None:
    if _Received.number and monotonic() - _Received.at < AGAIN_S:
        return
    _Received.number, _Received.at = number, monotonic()
    raise KeyboardInterrupt


class raised:  # noqa: N801 - a context manager
    """Raise ``KeyboardInterrupt`` at each of the signals in this block (in the main thread of Python)."""

    def __enter__(self) -> None:
        _Received.number = 0
        self._hook, sys.unraisablehook = sys.unraisablehook, self._again
        self._before = _take(_raise)

    def __exit__(self, *_: object) -> None:
        sys.unraisablehook = self._hook
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _again(self, unraisable: "Any") -> None:
        """Send the signal once more where Python throws the exception away (in a callback or a destructor).

        What else a destructor raises once a signal has come is the signal's doing: it left an object half made.
        """
        if not _Received.number:
            self._hook(unraisable)
        elif isinstance(unraisable.exc_value, KeyboardInterrupt):
            import threading  # noqa: PLC0415 - hardly ever

            _Received.at = float("-inf")
            threading.Timer(0.02, os.kill, (os.getpid(), _Received.number)).start()

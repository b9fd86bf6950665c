"""Processes that do jobs side by side. One that is killed is noticed, and its job given to another one, once."""

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn, TypeVar

#: processes that one job may end
ATTEMPTS = 2
#: time for a process to tidy up before it is killed
PATIENCE_S = 2.0
#: time until SIGTERM is sent again where Python threw away what it raised
_AGAIN_S = 0.02
_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

Job = TypeVar("Job")


def done_by_processes(
    work: Callable[[Job], Any],
    jobs: Sequence[Job],
    count: int,
    died: Callable[[int, str, bool], None],
) -> Iterator[tuple[int, Any]]:
    """Yield number and result of every job as it is finished. When the block ends, however it ends, no process is left.

    Parameters
    ----------
    work : callable
        Does a job; what it raises is raised here.
    jobs : sequence
        What is to be done.
    count : int
        Processes.
    died : callable
        Called with the number of a job whose process ended, how (``killed by SIGKILL``), and whether it is done again.
    """
    resource_tracker.ensure_running()  # it would unblock the signals that _held holds back
    left, deaths = deque(range(len(jobs))), Counter[int]()
    processes: list[_Process] = []
    try:
        while left or any(process.job is not None for process in processes):
            while left and (free := _free(processes, work, count)) is not None:
                k = left.popleft()
                free.give(k, jobs[k])
            for process in _answering(processes):
                k, answer = process.take()
                if answer is not None:
                    yield k, _opened(answer)
                    continue
                processes.remove(process)
                deaths[k] += 1
                again = deaths[k] < ATTEMPTS
                died(k, process.end, again)
                if again:  # when the others are done: they may have left it no memory
                    left.append(k)
    finally:
        _end(processes)


class _Process:
    """A process here, and the job that it does."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        context = multiprocessing.get_context("spawn")
        self.answers, there = context.Pipe()
        self.process = context.Process(target=_serve, args=(there, work), daemon=True)
        self.job: int | None = None
        with there, suppress(BrokenPipeError):  # killed before it has read what to do: told as of its first job
            self.process.start()

    def give(self, number: int, job: Any) -> None:
        """Let it do a job."""
        self.job = number
        with suppress(BrokenPipeError):  # `take` tells
            self.answers.send(job)

    def take(self) -> tuple[int, Any]:
        """Return the number of its job and the answer, None if it has ended."""
        number, self.job = self.job, None
        assert number is not None, "it has a job"
        try:
            return number, self.answers.recv()
        except (EOFError, OSError):
            return number, None

    @property
    def end(self) -> str:
        """How it ended."""
        self.process.join(PATIENCE_S)
        code = self.process.exitcode
        if code is not None and code < 0:
            return f"killed by {signal.Signals(-code).name}"
        return "lost" if code is None else f"ended with exit status {code}"


def _free(processes: list[_Process], work: Callable[[Any], Any], count: int) -> _Process | None:
    """Return a process without a job, a new one if there may be one more."""
    for process in processes:
        if process.job is None:
            return process
    if len(processes) == count:
        return None
    with _held():
        processes.append(_Process(work))
    return processes[-1]


@contextmanager
def _held() -> Iterator[None]:
    """Hold signals back while a process begins: it inherits that, and none is lost here."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _answering(processes: Sequence[_Process]) -> list[_Process]:
    """Wait for processes that have done their job, or have ended."""
    ready = wait([process.answers for process in processes if process.job is not None])
    return [process for process in processes if process.answers in ready]


def _opened(answer: tuple[bool, Any]) -> Any:
    whole, found = answer
    if not whole:
        raise found
    return found


def _end(processes: Sequence[_Process]) -> None:
    for process in processes:
        process.answers.close()
        process.process.terminate()
    last = time.monotonic() + PATIENCE_S
    for process in processes:
        process.process.join(max(last - time.monotonic(), 0))
        process.process.kill()
        process.process.join()


# --- in such a process


def _serve(answers: Connection, work: Callable[[Any], Any]) -> None:
    """Do jobs until there are no more, or the other side has gone."""
    for number in _ENDING:  # Ctrl-C and the end of a terminal reach all processes; only the parent decides what to do
        signal.signal(number, _leave if number == signal.SIGTERM else signal.SIG_IGN)
    sys.unraisablehook = _leave_again
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    answer: tuple[bool, Any]
    with suppress(EOFError, OSError):
        while True:
            job = answers.recv()
            try:
                answer = True, work(job)
            except Exception as error:
                answer = False, _portable(error)
            answers.send(answer)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


class _LeavingError(SystemExit):
    """Ends the process; raised by SIGTERM."""

    raised = False


def _leave(number: int, _frame: object) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # on its way out
    _LeavingError.raised = True
    raise _LeavingError(0)


def _leave_again(unraisable: Any) -> None:
    """Send SIGTERM once more where Python throws the exception away: in a destructor, or a callback of a weakref.

    What else a destructor raises after SIGTERM is its doing: it left an object half made. Nothing is said of that.
    """
    if not isinstance(unraisable.exc_value, _LeavingError):
        if not _LeavingError.raised:
            sys.__unraisablehook__(unraisable)
        return
    signal.signal(signal.SIGTERM, _leave)
    threading.Timer(_AGAIN_S, os.kill, (os.getpid(), signal.SIGTERM)).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "this is a child"
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE_S)
    os._exit(1)


def _portable(error: Exception) -> Exception:
    """Return an error that another process can read."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error

"""The LogGOPS engine: a schedule by the rules called clean, from its begin to its end (docs/definitions/goal.md)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.run_clock import run_seconds
from hopforge.model.workload.schedule import ANY, CALC, NAMED, RECV, SEND, GoalError, Schedule, in_degrees
from hopforge.sim.programs.loggops_kernel import (
    COMPLETE,
    DONE,
    EVENT,
    MEETING,
    NONE,
    ONE,
    OPERATION,
    OTHER,
    PLACE,
    RANK,
    SLICE,
    WAITING,
    LoggopsState,
    advance,
    begin,
)

#: events between two looks at the keyboard
SLICE_EVENTS = 1 << 18
#: whole times beyond are not all told apart by a float64
LARGEST_TIME = float(1 << 53)


class LoggopsSettings(NamedTuple):
    """The parameters of LogGOPS, in the unit of the schedule.

    Attributes
    ----------
    L : float
        Latency.
    o, O : float
        Time of the cpu for a message at either end, and for each byte after the first.
    g, G : float
        Time of a nic between messages, and for each byte after the first.
    S : int
        Largest message that is sent eagerly.
    """

    L: float
    o: float
    g: float
    G: float
    O: float  # noqa: E741  the letter of the literature
    S: int


@dataclass(frozen=True, eq=False)
class LoggopsTimes:
    """What a run found, in the unit of the schedule.

    Attributes
    ----------
    start, end : ndarray, float64[operation]
        Of each operation.
    finish : ndarray, float64[rank]
        Latest end of its operations; 0 without any.
    computed, busy : ndarray, float64[rank]
        Sum of its computations; how long any of its cpus was busy.
    partner : ndarray, int32[operation]
        Of a send the receive that took its message, of a receive the send.
    cpu_seconds : float
        Processor time of the run.
    """

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    finish: NDArray[np.float64]
    computed: NDArray[np.float64]
    busy: NDArray[np.float64]
    partner: NDArray[np.int32]
    cpu_seconds: float

    def scaled(self, factor: float) -> Self:
        """Return the same times in another unit."""
        times = {key: getattr(self, key) * factor for key in ("start", "end", "finish", "computed", "busy")}
        return replace(self, **times)


def run_loggops(
    schedule: Schedule, settings: LoggopsSettings, progress: Callable[[int, int], None] | None = None
) -> LoggopsTimes:
    """Run a schedule to its end.

    Parameters
    ----------
    schedule : Schedule
        What to run.
    settings : LoggopsSettings
        The machine.
    progress : callable, optional
        Called with the operations that are complete, and all.

    Raises
    ------
    GoalError
        Operations that never run, messages that nobody receives, a message and its receive with different sizes, times
        that float64 cannot count.
    """
    state = rank_state(schedule, settings)
    begin(state)
    code = advance(state, 0)  # compiles, which is no part of a run's processor time
    started = run_seconds()
    while code == SLICE:
        code = advance(state, SLICE_EVENTS)
        if progress is not None:
            progress(int(state.numbers[COMPLETE]), schedule.operations)
    return found_times(schedule, state, run_seconds() - started)


def found_times(schedule: Schedule, state: LoggopsState, cpu_seconds: float, unit: float = 1.0) -> LoggopsTimes:
    """Return the times of a run that nothing is left of; `unit`: how long one of the schedule is in that of the run.

    Raises
    ------
    GoalError
        As `run_loggops`: what cannot end, sizes that disagree, and times that float64 cannot count.
    """
    operation = state.operation
    if state.numbers[ONE] >= 0:
        message, receive = int(state.numbers[ONE]), int(state.numbers[OTHER])
        raise GoalError(
            f"{schedule.where(receive)}: rank {schedule.rank_of(receive)} receives {schedule.size[receive]} bytes"
            f" ({schedule.words(receive)}), but the message from rank {schedule.rank_of(message)} has"
            f" {schedule.size[message]} ({schedule.words(message)}, {schedule.where(message)})"
        )
    _check_end(schedule, state)
    finish = np.zeros(schedule.ranks)
    np.maximum.at(finish, operation["rank"], operation["end"])
    longest = float(finish.max(initial=0.0)) / unit
    if longest > LARGEST_TIME:
        raise GoalError(f"{schedule.file or schedule.name}: ends at {longest:.6g}; times beyond 2^53 are not exact")
    rank = state.rank
    return LoggopsTimes(
        operation["start"].copy(), operation["end"].copy(), finish, rank["computed"].copy(), rank["busy"].copy(),
        operation["partner"].copy(), cpu_seconds,
    )  # fmt: skip


def rank_state(schedule: Schedule, settings: LoggopsSettings, unit: float = 1.0) -> LoggopsState:
    """Return a run at its begin; `unit`: how long a unit of the schedule's computations is in that of the settings."""
    count, ranks, rank = schedule.operations, schedule.ranks, schedule.rank
    cpus, nics = int(schedule.cpu.max(initial=0)) + 1, int(schedule.nic.max(initial=0)) + 1
    message = schedule.kind != CALC
    operation = np.zeros(count, OPERATION)
    operation["kind"], operation["rank"], operation["tag"] = schedule.kind, rank, schedule.tag
    operation["peer"] = np.where(schedule.peer == ANY, -1, schedule.peer.astype(np.int64))
    operation["size"] = np.where(message, np.maximum(schedule.size, 1), schedule.size * unit)
    operation["cpu"] = rank.astype(np.int64) * cpus + schedule.cpu
    operation["nic"] = rank.astype(np.int64) * nics + schedule.nic
    operation["waits"] = in_degrees(schedule)
    operation["eager"] = operation["size"] <= settings.S
    for key in ("next", "partner", "child", "sibling"):
        operation[key] = NONE
    sends = schedule.kind == SEND
    operation["partner"][sends] = schedule.peer[sends].astype(np.int64) * nics + schedule.nic[sends]
    operation["queue"], queues = _meetings(schedule, rank)
    meeting = np.zeros(queues, MEETING)
    for key in MEETING.names or ():
        meeting[key] = NONE
    place = np.zeros(ranks * (cpus + 2 * nics), PLACE)
    place["root"] = NONE
    numbers = np.zeros(4, np.int64)
    numbers[[ONE, OTHER]] = NONE
    return LoggopsState(
        operation=operation, place=place, meeting=meeting,
        end_first=np.ascontiguousarray(schedule.at_end.first), end_next=np.ascontiguousarray(schedule.at_end.next),
        start_first=np.ascontiguousarray(schedule.at_start.first),
        start_next=np.ascontiguousarray(schedule.at_start.next),
        event=np.zeros(2 * count + len(place) + 1, EVENT), numbers=numbers,
        settings=np.array(settings[:5], np.float64), rank=np.zeros(ranks, RANK), clock=np.zeros(1),
        nics=np.array([ranks * cpus, ranks * nics], np.int64),
    )  # fmt: skip


def _meetings(schedule: Schedule, rank: NDArray[np.int32]) -> tuple[NDArray[np.int32], int]:
    """Return where each operation's messages and receives meet, and how many such places there are.

    A place is a (destination, source, tag), so that the oldest of it always fits; ranks that receive from anywhere, or
    with any tag, have one place for all.
    """
    queue = np.zeros(schedule.operations, np.int32)
    message = schedule.kind != CALC
    receives = schedule.kind == RECV
    wild = np.zeros(schedule.ranks, np.bool_)
    wild[rank[receives & ((schedule.peer == ANY) | (schedule.tag == ANY))]] = True
    own, peer = rank[message].astype(np.int64), schedule.peer[message].astype(np.int64)
    to = np.where(receives[message], own, peer)
    source = np.where(wild[to], 0, np.where(receives[message], peer, own))
    tag = np.where(wild[to], 0, schedule.tag[message].astype(np.int64))
    pair = np.unique(to * schedule.ranks + source, return_inverse=True)[1]
    tags, kind = np.unique(tag, return_inverse=True)
    places, number = np.unique(pair * max(len(tags), 1) + kind, return_inverse=True)
    queue[message] = number
    return queue, len(places)


def _check_end(schedule: Schedule, state: LoggopsState) -> None:
    """Refuse a run that has left something over: operations that never ran, messages that nobody received."""
    left = np.flatnonzero(state.operation["state"] != DONE)
    come = _listed(state, "come")
    if not len(left) and not len(come):
        return
    waiting = state.operation["state"][left] == WAITING
    parts = []
    if len(come):
        many = "s are" if len(come) > 1 else " is"
        parts.append(f"{len(come)} message{many} never received: {_names(schedule, come)}")
    posted = _listed(state, "posted")
    if len(posted):
        many = "s wait" if len(posted) > 1 else " waits"
        parts.append(f"{len(posted)} receive{many} for a message that never comes: {_names(schedule, posted)}")
    if waiting.any():
        many = "s" if waiting.sum() > 1 else ""
        parts.append(f"{waiting.sum()} operation{many} never ran: {_names(schedule, left[waiting])}")
    start = schedule.file or schedule.name
    raise GoalError(f"{start}: the schedule cannot end: {'; '.join(parts)}")


def _listed(state: LoggopsState, key: str) -> NDArray[np.int64]:
    """Return the operations that are left in the lists of the places where messages meet receives."""
    following = state.operation["next"]
    now = state.meeting[key].astype(np.int64)
    now, found = now[now >= 0], [np.empty(0, np.int64)]
    while len(now):
        found.append(now)
        now = following[now].astype(np.int64)
        now = now[now >= 0]
    return np.sort(np.concatenate(found))


def _names(schedule: Schedule, operations: NDArray[np.int64]) -> str:
    first = operations[:NAMED].tolist()
    shown = ", ".join(f"rank {schedule.rank_of(n)} {_full(schedule, n)} ({schedule.where(n)})" for n in first)
    return shown + (f" and {len(operations) - NAMED} more" if len(operations) > NAMED else "")


def _full(schedule: Schedule, operation: int) -> str:
    """Say what an operation is, with its tag even if that is 0."""
    words = schedule.words(operation)
    return words if schedule.kind[operation] == CALC or " tag " in words else f"{words} tag 0"

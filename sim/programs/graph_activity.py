"""What the ranks of a graph do when: compute, have messages under way that no computing hides, or wait.

docs/definitions/measures.md#graphs has the definitions.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hopforge.model.workload.schedule import ANY, CALC, SEND, Schedule
from hopforge.sim.programs.loggops_engine import LoggopsTimes

#: parts of the makespan of which the timeline tells what each rank did
BINS = 200
Times = NDArray[np.float64]


class Spans(NamedTuple):
    """Intervals that do not touch, in order: begin and end, float64[...]."""

    begin: Times
    end: Times

    @property
    def length(self) -> float:
        """Sum of all."""
        return float((self.end - self.begin).sum())

    def until(self, times: Times) -> Times:
        """Return how much of each [0, t] they cover, float64[time]."""
        if not len(self.begin):
            return np.zeros(len(times))
        at = np.stack([self.begin, self.end], axis=1).ravel()
        known = np.concatenate([[0.0], np.cumsum(self.end - self.begin)])
        covered = np.stack([known[:-1], known[1:]], axis=1).ravel()
        found: Times = np.interp(times, at, covered)
        return found


def united(begin: Times, end: Times) -> Spans:
    """Return the union of intervals; those without length count nothing.

    Examples
    --------
    >>> united(np.array([5.0, 0.0, 1.0]), np.array([6.0, 2.0, 3.0]))
    Spans(begin=array([0., 5.]), end=array([3., 6.]))
    """
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], np.maximum.accumulate(end[order])
    new = np.ones(len(begin), np.bool_)
    new[1:] = begin[1:] > end[:-1]
    last = np.append(np.flatnonzero(new)[1:] - 1, len(begin) - 1) if len(begin) else np.empty(0, np.int64)
    return Spans(begin[new], end[last])


@dataclass(frozen=True, eq=False)
class GraphActivity:
    """What ranks did.

    Attributes
    ----------
    ranks : DataFrame
        Of each rank: rank, computing_s, exposed_s, idle_s, which make up the makespan together.
    timeline : DataFrame
        Of each rank and part of the makespan: rank, begin_s, shares computing, exposed and idle, and of each stream the
        share in which a message of it was under way (`stream_NAME`).
    makespan_s : float
        When the last rank was at its end.
    """

    ranks: pd.DataFrame
    timeline: pd.DataFrame
    makespan_s: float

    @property
    def exposed_share(self) -> float:
        """Mean share of the makespan with messages under way and no computing."""
        return self._share("exposed_s")

    @property
    def idle_share(self) -> float:
        """Mean share of the makespan with neither."""
        return self._share("idle_s")

    @property
    def computing_share(self) -> float:
        """Mean share of the makespan with computing."""
        return self._share("computing_s")

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables to be written, by name."""
        return {"activity": self.ranks, **({"timeline": self.timeline} if len(self.timeline) else {})}

    def _share(self, column: str) -> float:
        return float(self.ranks[column].mean()) / self.makespan_s if self.makespan_s > 0 and len(self.ranks) else 0.0


def graph_activity(schedule: Schedule, times: LoggopsTimes, unit_s: float = 1.0) -> GraphActivity:
    """Return what the ranks of a finished run did.

    Parameters
    ----------
    schedule : Schedule
        What ran.
    times : LoggopsTimes
        When.
    unit_s : float
        Seconds of a unit of the times.
    """
    start, end = times.start * unit_s, times.end * unit_s
    makespan = float(times.finish.max(initial=0.0)) * unit_s
    rank = schedule.rank
    computing = np.flatnonzero((schedule.kind == CALC) & (end > start))
    sends, arrived = _messages(schedule, times, unit_s)
    # a message is of both its ranks
    both = np.concatenate([rank[sends], schedule.peer[sends].astype(np.int32)])
    stream, begin, there = (np.tile(each, 2) for each in (schedule.cpu[sends], start[sends], arrived))
    streams = [int(each) for each in np.unique(stream)]
    edges = np.linspace(0.0, makespan, BINS + 1)
    width = makespan / BINS if makespan > 0 else 1.0
    of_rank, of_message = _by_rank(rank[computing], schedule.ranks), _by_rank(both, schedule.ranks)
    rows, parts = [], []
    for number in range(schedule.ranks):
        own, messages = computing[of_rank[number]], of_message[number]
        busy = united(start[own], end[own])
        together = united(np.concatenate([start[own], begin[messages]]), np.concatenate([end[own], there[messages]]))
        rows.append((number, busy.length, together.length - busy.length, makespan - together.length))
        covered, all_covered = np.diff(busy.until(edges)) / width, np.diff(together.until(edges)) / width
        shares = {"computing": covered, "exposed": all_covered - covered, "idle": 1 - all_covered}
        for each in streams:
            chosen = messages[stream[messages] == each]
            shares[_stream_name(schedule, each)] = np.diff(united(begin[chosen], there[chosen]).until(edges)) / width
        parts.append(pd.DataFrame({"rank": number, "begin_s": edges[:-1], **shares}))
    ranks = pd.DataFrame(rows, columns=["rank", "computing_s", "exposed_s", "idle_s"])
    ranks[["exposed_s", "idle_s"]] = ranks[["exposed_s", "idle_s"]].clip(lower=0.0)  # roundings
    timeline = pd.concat(parts, ignore_index=True) if parts and makespan > 0 else pd.DataFrame()
    if len(timeline):
        shown = timeline.columns[2:]
        timeline[shown] = timeline[shown].clip(0.0, 1.0).round(4)
    return GraphActivity(ranks, timeline, makespan)


def activity_rows(activity: GraphActivity | None) -> list[tuple[str, str]]:
    """Say what the ranks did: subject and words."""
    if activity is None:
        return []
    return [(
        "of the makespan",
        f"computing {activity.computing_share:.1%}, exposed communication {activity.exposed_share:.1%},"
        f" neither {activity.idle_share:.1%} (mean of ranks)",
    )]


def _stream_name(schedule: Schedule, cpu: int) -> str:
    known = schedule.streams
    return f"stream_{known[cpu] if cpu < len(known) else f'cpu{cpu}'}"


def _by_rank(rank: NDArray[np.integer], ranks: int) -> list[NDArray[np.int64]]:
    """Return for each rank which entries are its own."""
    order = np.argsort(rank, kind="stable")
    return np.split(order, np.searchsorted(rank[order], np.arange(1, ranks)))


def _messages(schedule: Schedule, times: LoggopsTimes, unit_s: float) -> tuple[NDArray[np.int64], Times]:
    """Return the sends, and when the receive of each was complete: that which took its message in this run.

    One that a receive from anywhere took ends when it is complete itself.
    """
    sends = np.flatnonzero(schedule.kind == SEND)
    receive = times.partner[sends]
    last = np.where(schedule.peer[receive] == ANY, sends, receive)
    return sends, np.maximum(times.end[sends], times.end[last]) * unit_s

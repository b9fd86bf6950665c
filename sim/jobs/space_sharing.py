"""When the jobs of a log start on a machine that they share node by node: first come first served, and EASY.

Definition: docs/definitions/jobs.md. Source of EASY: Lifka, "The ANL/IBM SP scheduling system" (1995).
"""

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hopforge.model.workload.jobs import Jobs
from hopforge.sim.jobs.placement import PLACEMENTS, Place, Placement, group_problem

__all__ = ["SCHEDULERS", "Schedule", "schedule"]

Free = NDArray[np.bool_]

SHORTEST_S = 10.0
"""Run time below which the bounded slowdown takes a job as this long."""

#: most units of time of a schedule whose sums and differences are right to the unit after a division
_MOST_UNITS = float(1 << 50)


@dataclass(frozen=True, eq=False)
class Schedule:
    """When and where every job ran.

    Attributes
    ----------
    jobs : Jobs
        What was scheduled.
    dims : tuple of int
        Of the machine.
    start : ndarray
        float64[job] in seconds.
    used : list of ndarray
        Of each job int32[rank]: its nodes.
    per_second : float
        Units of a second in which all times are whole numbers (a power of ten), so that equal instants are equal;
        0 if none is known.
    """

    jobs: Jobs
    dims: tuple[int, ...]
    start: NDArray[np.float64]
    used: list[NDArray[np.int32]]
    per_second: float = 0.0

    def in_units(self, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return times in units of `per_second`, whole numbers; in seconds if no unit is known."""
        return np.rint(seconds * self.per_second) if self.per_second else seconds

    def _rounded(self, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.in_units(seconds) / (self.per_second or 1.0)

    @property
    def wait(self) -> NDArray[np.float64]:
        """float64[job], seconds from submit to start."""
        return self._rounded(self.start - self.jobs.submit)

    @property
    def end(self) -> NDArray[np.float64]:
        """float64[job], seconds."""
        return self._rounded(self.start + self.jobs.run)

    @property
    def bounded_slowdown(self) -> NDArray[np.float64]:
        """float64[job], (wait + run) / max(run, 10 s), at least 1."""
        run = self.jobs.run
        return np.maximum(1.0, (self.wait + run) / np.maximum(run, SHORTEST_S))

    @property
    def makespan(self) -> float:
        """Seconds from the first submit to the last end; 0 without jobs."""
        return float(self._rounded(self.end.max() - self.jobs.submit.min())) if len(self.jobs) else 0.0

    @property
    def utilisation(self) -> float:
        """Share of the node-seconds of the makespan in which nodes ran jobs; NaN if it is 0."""
        work = float((self.jobs.run * self.jobs.nodes).sum())
        return work / (math.prod(self.dims) * self.makespan) if self.makespan else math.nan


def schedule(
    jobs: Jobs,
    dims: Sequence[int],
    *,
    scheduler: str = "easy",
    placement: str = "linear",
    seed: int = 1,
    groups: Sequence[int] = (),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Schedule:
    """Run jobs on a machine.

    At every instant jobs end, then jobs arrive, then the scheduler makes one pass over its queue. A job of run time 0
    ends at the instant of its start, and another pass follows.

    Parameters
    ----------
    jobs : Jobs
        In the order of their submit times; none larger than the machine.
    dims : sequence of int
        Lengths of the machine's dimensions.
    scheduler : str
        A name of `SCHEDULERS`.
    placement : str
        A name of `hopforge.sim.jobs.placement.PLACEMENTS`.
    seed : int
        Of the random placement.
    groups : sequence of int
        Nodes of the nested groups of the machine, the smallest first (placements group and subtree).
    progress : callable
        Called with (jobs started, jobs in all).

    Raises
    ------
    ValueError
        An unknown name, or a job that is larger than the machine.
    """
    for kind, name, known in (("scheduler", scheduler, SCHEDULERS), ("placement", placement, PLACEMENTS)):
        if name not in known:
            raise ValueError(f"{kind} must be one of {', '.join(known)}, not {name}")
    largest = int(jobs.nodes.max(initial=0))
    if largest > math.prod(dims):
        raise ValueError(f"jobs must have at most {math.prod(dims)} nodes, not {largest}")
    if problem := group_problem(groups, math.prod(dims)):
        raise ValueError(problem)
    placing = PLACEMENTS[placement](dims, np.random.default_rng(seed), groups)
    per_second = _units_per_second(jobs)
    given, jobs = jobs, _in_units(jobs, per_second)
    machine = _Machine(jobs, math.prod(dims), placing)
    run_pass = SCHEDULERS[scheduler]
    arrived = 0
    while arrived < len(jobs) or machine.running:
        now = min(machine.next_end, float(jobs.submit[arrived]) if arrived < len(jobs) else math.inf)
        machine.release(now)
        after = int(np.searchsorted(jobs.submit, now, side="right"))
        machine.queue = np.concatenate([machine.queue, np.arange(arrived, after)])
        arrived = after
        run_pass(machine, now)
        while machine.next_end <= now:  # jobs without run time
            machine.release(now)
            run_pass(machine, now)
        progress(machine.started, len(jobs))
    return Schedule(given, tuple(dims), machine.start / (per_second or 1.0), machine.used, per_second)


def _units_per_second(jobs: Jobs) -> float:
    """Return the fewest units of a second (1, 10, 100, ...) in which all times are whole; 0 if there are none.

    0.1 + 0.2 is not 0.3 in floating point: in seconds a job would not end when another one arrives.
    """
    times = np.concatenate([jobs.submit, jobs.run, jobs.estimate])
    longest = float(jobs.submit.max(initial=0) + jobs.estimate.sum())
    units = 1.0
    while max(longest, 1.0) * units <= _MOST_UNITS:
        if (np.rint(times * units) / units == times).all():
            return units
        units *= 10
    return 0.0


def _in_units(jobs: Jobs, per_second: float) -> Jobs:
    if not per_second:
        return jobs
    return replace(
        jobs, submit=np.rint(jobs.submit * per_second), run=np.rint(jobs.run * per_second),
        estimate=np.rint(jobs.estimate * per_second),
    )  # fmt: skip


class _Machine:
    """Nodes, the queue, and the jobs that run."""

    def __init__(self, jobs: Jobs, nodes: int, placing: Placement) -> None:
        self.jobs, self.placing = jobs, placing
        self.free = np.ones(nodes, bool)
        self.free_count = nodes
        self.queue = np.zeros(0, np.int64)
        self.running: list[tuple[float, int]] = []  # a heap of (end, job)
        self.taken: dict[int, NDArray[np.int64]] = {}
        self.start = np.full(len(jobs), np.nan)
        self.used: list[NDArray[np.int32]] = [np.zeros(0, np.int32)] * len(jobs)
        self.started = 0
        self._failed: set[int] = set()  # sizes that cannot be placed until a job ends

    @property
    def next_end(self) -> float:
        return self.running[0][0] if self.running else math.inf

    def release(self, now: float) -> None:
        """End the jobs whose time has come."""
        while self.next_end <= now:
            taken = self.taken.pop(heapq.heappop(self.running)[1])
            self.free[taken] = True
            self.free_count += len(taken)
            self._failed.clear()

    def fits(self, job: int) -> bool:
        """Tell whether a job can be placed now."""
        count = int(self.jobs.nodes[job])
        if count > self.free_count or count in self._failed:
            return False
        if self.placing.fits(self.free, count):
            return True
        self._failed.add(count)
        return False

    def place(self, job: int) -> Place:
        """Return the nodes of a job that `fits`."""
        place = self.placing.place(self.free, int(self.jobs.nodes[job]))
        assert place is not None
        return place

    def begin(self, job: int, place: Place, now: float) -> None:
        """Start a job."""
        self.free[place.taken] = False
        self.free_count -= len(place.taken)
        self.taken[job] = place.taken
        self.used[job] = place.used.astype(np.int32)  # a copy: what it is cut from is as long as the machine
        self.start[job] = now
        self.started += 1
        heapq.heappush(self.running, (now + float(self.jobs.run[job]), job))


def _first_come(machine: _Machine, now: float) -> None:
    """Start jobs from the head of the queue while they can be placed."""
    count = 0
    while count < len(machine.queue) and machine.fits(int(machine.queue[count])):
        job = int(machine.queue[count])
        machine.begin(job, machine.place(job), now)
        count += 1
    machine.queue = machine.queue[count:]


def _easy(machine: _Machine, now: float) -> None:
    """As `_first_come`; then start later jobs that do not delay the head, by the estimates of all run times."""
    _first_come(machine, now)
    if len(machine.queue) < 2 or not machine.free_count:
        return
    jobs, head = machine.jobs, int(machine.jobs.nodes[machine.queue[0]])
    shadow, then = _shadow(machine, head)
    later = machine.queue[1:]
    in_time = now + jobs.estimate[later] <= shadow
    spare = int(np.count_nonzero(then)) - head
    # what these say no to cannot start in this pass: nodes only become fewer
    possible = (jobs.nodes[later] <= machine.free_count) & (in_time | (jobs.nodes[later] <= spare))
    begun = []
    for index in np.flatnonzero(possible).tolist():
        job = int(later[index])
        if not machine.fits(job):
            continue
        place = machine.place(job)
        if not in_time[index]:
            left = then.copy()
            left[place.taken] = False
            if not machine.placing.fits(left, head):
                continue
            then = left
        machine.begin(job, place, now)
        begun.append(index + 1)
    machine.queue = np.delete(machine.queue, begun)


def _shadow(machine: _Machine, head: int) -> tuple[float, Free]:
    """Return the earliest estimated end at which the head can be placed, and the nodes that are free then.

    More free nodes never take a place away, so that the ends can be halved.
    """
    running = np.array([job for _, job in machine.running])
    ends = machine.start[running] + machine.jobs.estimate[running]
    order = np.argsort(ends, kind="stable")
    running, ends = running[order], ends[order]
    instants = np.unique(ends)
    low, high = 0, len(instants) - 1

    def free_at(instant: float) -> Free:
        free = machine.free.copy()
        for job in running[: np.searchsorted(ends, instant, side="right")].tolist():
            free[machine.taken[job]] = True
        return free

    while low < high:
        middle = (low + high) // 2
        if machine.placing.fits(free_at(instants[middle]), head):
            high = middle
        else:
            low = middle + 1
    return float(instants[low]), free_at(instants[low])


SCHEDULERS: dict[str, Callable[[_Machine, float], None]] = {"fcfs": _first_come, "easy": _easy}
"""Name → one pass over the queue."""

"""Several programs at once on one network: each beside a run alone, with the same engine on the same hosts.

Definition: docs/definitions/jobs.md#programs-at-once.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hopforge.model.network.parts.program_arrays import ProgramError
from hopforge.model.topology.degraded import mean_rates
from hopforge.model.workload.program import Program
from hopforge.model.workload.schedule import GoalError
from hopforge.sim.jobs.placed_jobs import JobsTogether, PlacedJob, together
from hopforge.sim.jobs.prepared import JobsError
from hopforge.sim.programs.app_result import AppMeasurement, AppRun, app_result
from hopforge.sim.programs.app_setup import AppSetup
from hopforge.sim.programs.cache_delays import cache_use
from hopforge.sim.programs.graph_activity import graph_activity
from hopforge.sim.programs.job_links import JobLinks, job_links
from hopforge.sim.programs.link_bytes import link_bytes
from hopforge.sim.programs.loggops_engine import LoggopsTimes
from hopforge.sim.programs.program_routers import cycle_ns
from hopforge.sim.programs.rank_times import makespan, mean_share
from hopforge.sim.traffic.program_traffic import switch_visits

__all__ = ["JobsMeasurement", "job_lines", "job_rows", "run_jobs"]

_SHARES = (("waiting", "waiting_s"), ("computing", "compute_s"))

Progress = Callable[[int, int], None]
RunOne = Callable[[AppSetup, Progress | None], AppRun]


@dataclass(frozen=True)
class JobsMeasurement(AppMeasurement):
    """Results of several programs together.

    Attributes
    ----------
    jobs : int
        How many.
    mean_slowdown, max_slowdown : float
        Of the jobs: makespan over makespan alone.
    utilisation : float
        Share of the host-seconds of the makespan, from 0 on, in which hosts had a job that had begun and not ended.
    link_share : float
        Mean share of the makespan in which a link between routers was busy.
    """

    jobs: int
    mean_slowdown: float
    max_slowdown: float
    utilisation: float
    link_share: float


class _Bar:
    """Progress of runs after each other, by messages."""

    def __init__(self, progress: Progress | None, messages: int) -> None:
        self._progress, self._all, self._before = progress, messages, 0

    def run(self, run_one: RunOne, setup: AppSetup) -> AppRun:
        """Run something and go on behind it."""
        found = run_one(setup, None if self._progress is None else self._advance)
        self._before += setup.placed.program.messages
        self._advance(0, 0)
        return found

    def _advance(self, done: int, _all: int) -> None:
        if self._progress is not None:
            self._progress(min(self._before + done, self._all), self._all)


def run_jobs(setup: AppSetup, run_one: RunOne, progress: Progress | None = None) -> AppRun:
    """Run jobs alone and together.

    With engine flow, jobs that share no link with each other, directly or through others, run apart: nothing is
    between them.

    Parameters
    ----------
    setup : AppSetup
        All jobs.
    run_one : callable
        Runs a setup to its end, whatever its jobs.
    progress : callable, optional
        Called with messages that have arrived in all runs, and all.

    Raises
    ------
    JobsError
        A program cannot end; begins with the key of its job.
    """
    jobs = setup.jobs
    assert jobs is not None, "prepared with jobs"
    flow = setup.simulation is None
    links = job_links(setup) if flow else None
    groups = [list(range(len(jobs.jobs)))] if links is None else links.groups
    in_caches = flow and setup.config.app.lookup == "cache"
    use = cache_use(setup.config, setup.topology, setup.placed, setup.caches) if in_caches else None
    own = setup.placed.program.messages
    bar = _Bar(progress, own * (1 + (len(jobs.jobs) > 1)))
    alone: list[AppRun] = []
    shared: list[tuple[list[int], AppRun]] = []
    for number in range(len(jobs.jobs) if len(jobs.jobs) > 1 else 0):
        alone.append(_alone(setup, number, run_one, bar))
    for group in groups:
        if len(group) == 1 and alone and flow and not in_caches:
            shared.append((group, alone[group[0]]))
            continue
        whole = len(group) == len(jobs.jobs)
        here = replace(setup, use=use) if whole else setup.part(together([jobs.jobs[n] for n in group]), use)
        try:
            shared.append((group, bar.run(run_one, here)))
        except (ProgramError, GoalError) as error:
            words = "workload.jobs together" if alone else "workload.jobs[0]"
            raise JobsError(f"{words}: {str(error).removeprefix('workload: ')}") from error
    return _result(replace(setup, use=use), alone or [shared[0][1]], shared, links)


def _alone(setup: AppSetup, number: int, run_one: RunOne, bar: _Bar) -> AppRun:
    assert setup.jobs is not None, "prepared with jobs"
    try:
        return bar.run(run_one, setup.part(together([setup.jobs.jobs[number]])))
    except (ProgramError, GoalError) as error:
        raise JobsError(f"workload.jobs[{number}]: {str(error).removeprefix('workload: ')}") from error


def _result(
    setup: AppSetup, alone: Sequence[AppRun], shared: Sequence[tuple[list[int], AppRun]], links: JobLinks | None
) -> AppRun:
    jobs = setup.jobs
    assert jobs is not None, "prepared with jobs"
    run = shared[0][1] if len(shared) == 1 else _merged(setup, jobs, shared)
    start = _begins(setup, jobs)
    ranks = run.ranks.copy()
    waits = "compute_s" if setup.schedule is None else "waiting_s"  # until its start a rank sleeps, or has nothing
    ranks[waits] = np.where(start > 0, np.maximum(ranks[waits] - start, 0.0), ranks[waits])
    ranks.insert(1, "job", np.array([job.name for job in jobs.jobs], dtype=object)[jobs.job_of_rank])
    table = _job_table(jobs, ranks, start, alone, setup, links)
    if setup.simulation is None:
        assert setup.routes is not None, "made by prepare_app"
        rate = setup.config.timing.link_gbps
        rates = mean_rates(setup.topology, setup.config.degraded, run.found.makespan_s)
        carried = link_bytes(rates, setup.placed, setup.routes, rate, run.found.makespan_s)
        run = replace(run, links=carried, link_share=carried.mean_share(len(setup.topology.channels().src_router)))
    whole = run.found.makespan_s
    hosts = setup.topology.hosts // setup.topology.host_links
    busy = float(sum(_hosts(job) * seconds for job, seconds in zip(jobs.jobs, table["makespan_s"], strict=True)))
    shares = {f"{kind}_share": mean_share(ranks[column].to_numpy(), whole) for kind, column in _SHARES}
    found = JobsMeasurement(
        **asdict(run.found) | shares,
        jobs=len(jobs.jobs), mean_slowdown=float(table["slowdown"].mean()), max_slowdown=float(table["slowdown"].max()),
        utilisation=busy / (hosts * whole) if whole > 0 else 0.0, link_share=run.link_share or 0.0,
    )  # fmt: skip
    return replace(run, found=found, ranks=ranks, jobs=table)


def _hosts(job: PlacedJob) -> int:
    return len(np.unique(job.placed.host))


def _begins(setup: AppSetup, jobs: JobsTogether) -> NDArray[np.float64]:
    """Return when each rank begins in its engine, in seconds: of programs in router simulations in whole cycles."""
    start = jobs.start_s
    if setup.simulation is None or setup.schedule is not None:
        return start
    cycle = cycle_ns(setup.config)
    return np.asarray(np.rint(start * (1e9 / cycle)) * (cycle * 1e-9))


def _merged(setup: AppSetup, jobs: JobsTogether, shared: Sequence[tuple[list[int], AppRun]]) -> AppRun:
    """Put runs of jobs that share nothing together."""
    times = {name: np.zeros(setup.placed.program.ranks) for name in ("finish_s", "waiting_s", "compute_s")}
    latency, remote, missed, cpu = 0.0, 0, 0.0, 0.0
    for group, run in shared:
        chosen = np.concatenate([np.arange(jobs.first[n], jobs.first[n + 1]) for n in group])
        for name, values in times.items():
            values[chosen] = run.ranks[name]
        through = run.found.messages - run.found.local_messages
        latency, remote = latency + (run.found.message_latency_s or 0.0) * through, remote + through
        missed, cpu = run.found.miss_share, cpu + run.found.cpu_seconds  # of all lookups in every one of them
    assert setup.routes is not None, "of engine flow"
    found = app_result(
        setup, backend="embedded", message_latency_s=latency / remote if remote else 0.0, cpu=cpu, miss_share=missed,
        tcam_share=None if setup.use is None else setup.use.tcam_share,
        finish=times["finish_s"], waiting=times["waiting_s"], computing=times["compute_s"],
        visits=switch_visits(setup.config, setup.topology, setup.placed, setup.routes),
    )  # fmt: skip
    if setup.schedule is None:
        return found
    merged = _merged_times(jobs, shared, times["finish_s"])
    return replace(found, activity=graph_activity(setup.schedule, merged), times=merged)


def _merged_times(
    jobs: JobsTogether, shared: Sequence[tuple[list[int], AppRun]], finish: NDArray[np.float64]
) -> LoggopsTimes:
    parts: dict[int, tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int32]]] = {}
    before = np.cumsum([0, *(job.schedule.operations for job in jobs.jobs if job.schedule is not None)])
    for group, run in shared:
        assert run.times is not None, "of a schedule"
        at = 0
        for n in group:
            schedule = jobs.jobs[n].schedule
            assert schedule is not None, "all are graphs"
            here = slice(at, at + schedule.operations)
            partner = run.times.partner[here]
            moved = np.where(partner >= 0, partner - at + int(before[n]), partner).astype(np.int32)
            parts[n] = run.times.start[here], run.times.end[here], moved
            at += schedule.operations
    listed = [parts[n] for n in range(len(jobs.jobs))]
    start, end, partner = (np.concatenate(each) for each in zip(*listed, strict=True))
    nothing = np.zeros(len(finish))
    return LoggopsTimes(start, end, finish, nothing, nothing, partner, 0.0)


def _job_table(
    jobs: JobsTogether, ranks: pd.DataFrame, start: NDArray[np.float64], alone: Sequence[AppRun], setup: AppSetup,
    links: JobLinks | None,
) -> pd.DataFrame:  # fmt: skip
    rows = []
    for number, job in enumerate(jobs.jobs):
        own = ranks.iloc[jobs.first[number] : jobs.first[number + 1]]
        begin = start[jobs.first[number]] if len(own) else job.start_s
        span = _span(begin, makespan(own["finish_s"].to_numpy()))
        # of one job alone the run together is the one alone
        single = span if len(jobs.jobs) == 1 else _span(begin, alone[number].found.makespan_s)
        program: Program = job.placed.program
        rows.append({
            "job": job.name, "program": job.placed.trace.name, "ranks": program.ranks, "placement": job.placement,
            "first_host": int(job.placed.host.min(initial=setup.topology.hosts)),
            "last_host": int(job.placed.host.max(initial=0)), "start_s": begin, "makespan_s": span, "alone_s": single,
            "slowdown": span / single if single > 0 else 1.0, "messages": program.messages,
            "local_messages": int(job.placed.local.sum()), "payload_bytes": int(program.size_bytes.sum()),
            "waiting_share": float(own["waiting_s"].mean()) / span if span > 0 else 0.0,
            "computing_share": float(own["compute_s"].mean()) / span if span > 0 else 0.0,
            **({} if links is None else {"links": links.used[number], "shared_links": links.shared[number]}),
        })  # fmt: skip
    return pd.DataFrame(rows)


def _span(begin: float, end: float) -> float:
    """Return how long something took; nothing, if only rounding tells begin and end apart."""
    return end - begin if end > begin + 4 * np.spacing(begin) else 0.0


def job_rows(run: AppRun) -> list[tuple[str, str]]:
    """Say what `hopforge app` shows of several jobs: subject and words."""
    found = run.found
    if not isinstance(found, JobsMeasurement):
        return []
    assert run.jobs is not None, "made with it"
    worst = str(run.jobs["job"].iloc[int(run.jobs["slowdown"].to_numpy().argmax())])
    return [
        ("jobs", f"{found.jobs}; slowdown mean {found.mean_slowdown:.4g}, largest {found.max_slowdown:.4g} ({worst})"),
        ("utilisation", f"hosts {found.utilisation:.1%}, links between routers {found.link_share:.1%}"),
    ]


def job_lines(run: AppRun) -> list[list[str]]:
    """Return headings and a row for each job; nothing without several programs."""
    if run.jobs is None:
        return []
    lines = [["job", "program", "ranks", "placement", "start", "makespan", "alone", "slowdown"]]
    for row in run.jobs.to_dict("records"):
        times = [f"{1e6 * row[key]:.6g} µs" for key in ("start_s", "makespan_s", "alone_s")]
        words = [str(row[key]) for key in ("job", "program", "ranks", "placement")]
        lines.append([*words, *times, f"{row['slowdown']:.4f}"])
    return lines

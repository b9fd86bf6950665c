"""Several programs at once on one network: their hosts, and what they are together (`workload.kind: jobs`).

Definition: docs/definitions/jobs.md#programs-at-once.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.jobs import JobConfig, JobsWorkload
from hopforge.model.config.topology import TopologyConfig
from hopforge.model.config.workload import ProgramWorkload
from hopforge.model.errors import UserError
from hopforge.model.topology import Topology
from hopforge.model.workload.joined import joined_program, joined_schedule, joined_trace, later
from hopforge.model.workload.program_schedule import program_schedule
from hopforge.model.workload.schedule import Schedule
from hopforge.sim.jobs.network_groups import nested_groups, network_dims
from hopforge.sim.jobs.placement import GROUPED, PLACEMENTS, group_problem
from hopforge.sim.jobs.prepared import JobsError
from hopforge.sim.traffic.placed import PlacedProgram, check_computing, program_on
from hopforge.sim.traffic.rank_hosts import map_ranks
from hopforge.sim.traffic.scheduled import is_schedule, place_schedule, workload_schedule

__all__ = ["JobsTogether", "PlacedJob", "place_jobs", "together"]

Hosts = NDArray[np.int32]
Find = Callable[[int], Hosts]


@dataclass(frozen=True, eq=False)
class PlacedJob:
    """A program on its hosts.

    Attributes
    ----------
    name : str
        Of the job.
    placement : str
        How its hosts were chosen.
    start_s : float
        When its ranks begin.
    placed : PlacedProgram
        Its messages and the hosts of its ranks; without a schedule every rank sleeps until the start.
    schedule : Schedule, optional
        What its ranks do, if one of the jobs is a graph; it begins at 0.
    """

    name: str
    placement: str
    start_s: float
    placed: PlacedProgram
    schedule: Schedule | None = None


@dataclass(frozen=True, eq=False)
class JobsTogether:
    """Jobs as one program.

    Attributes
    ----------
    jobs : tuple of PlacedJob
        Which.
    placed : PlacedProgram
        All of them; of one job its own.
    schedule : Schedule, optional
        What their ranks do, if they are graphs.
    first : ndarray, int64[job + 1]
        Where the ranks of each job begin.
    """

    jobs: tuple[PlacedJob, ...]
    placed: PlacedProgram
    schedule: Schedule | None
    first: NDArray[np.int64]

    @property
    def job_of_rank(self) -> NDArray[np.int64]:
        """int64[rank]: number of its job."""
        return np.repeat(np.arange(len(self.jobs)), np.diff(self.first))

    @property
    def start_s(self) -> NDArray[np.float64]:
        """float64[rank]: when it begins."""
        return np.array([job.start_s for job in self.jobs])[self.job_of_rank]


def together(jobs: Sequence[PlacedJob]) -> JobsTogether:
    """Put jobs together.

    Raises
    ------
    GoalError
        Too many operations.
    """
    parts = [job.placed for job in jobs]
    ends = None
    if parts[0].ends is not None:
        pairs = [part.ends for part in parts if part.ends is not None]
        ends = np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])
    placed = parts[0] if len(parts) == 1 else PlacedProgram(
        joined_trace([part.trace for part in parts]), joined_program([part.program for part in parts]),
        np.concatenate([part.host for part in parts]), ends,
    )  # fmt: skip
    schedules = [job.schedule for job in jobs if job.schedule is not None]
    first = np.concatenate([[0], np.cumsum([part.program.ranks for part in parts])]).astype(np.int64)
    return JobsTogether(tuple(jobs), placed, joined_schedule(schedules) if schedules else None, first)


def place_jobs(
    config: JobsWorkload, section: TopologyConfig, topology: Topology, seed: int, *, host_gflops: float | None = None,
    timed: bool = False,
) -> JobsTogether:
    """Read or write the programs of all jobs, and place them one after the other.

    Job number i draws with `seed` + i.

    Parameters
    ----------
    config : JobsWorkload
        The section.
    section : TopologyConfig
        The network as the file has it.
    topology : Topology
        The network.
    seed : int
        Of random placement, generated programs and noise.
    host_gflops : float, optional
        Speed of a rank, of graphs that count operations and of programs that become graphs.
    timed : bool
        Jobs run in time, not in turns: they may be graphs, and if one is, all others become graphs, too.

    Raises
    ------
    UserError
        A program that cannot be read, does not fit, or would have hosts that another one has; it begins with the key of
        the job.
    """
    graphs = timed and any(is_schedule(job.program) for job in config.jobs)
    machine = _Machine(config, section, topology)
    found = []
    for number, job in enumerate(config.jobs):
        with _named(number, job):
            program, own = job.sized_program(), seed + number
            find = machine.finder(number, job, own)
            if timed and not is_schedule(program):
                check_computing(program, host_gflops, "app.host_gflops")
            start_s, schedule = job.start_us / 1e6, None
            if graphs:
                schedule = _schedule(program, topology, own, host_gflops, find)
                placed = place_schedule(schedule, program, topology, own, find(schedule.ranks))
            else:
                placed = program_on(program, topology, own, find)
                placed = replace(placed, program=later(placed.program, start_s))
            found.append(PlacedJob(config.names[number], _placement(job), start_s, placed, schedule))
    return together(found)


def _schedule(
    program: ProgramWorkload, topology: Topology, seed: int, host_gflops: float | None, find: Find
) -> Schedule:
    """Return the graph of a program, or a program as a graph."""
    if is_schedule(program):
        return workload_schedule(program, topology, seed, host_gflops, find)
    calls = program_on(program, topology, seed, find)
    return program_schedule(calls.trace.name, calls.program, host_gflops)


def _placement(job: JobConfig) -> str:
    return job.placement or ("mapping" if job.has_mapping else "linear")


class _Machine:
    """The hosts, and who has them."""

    def __init__(self, config: JobsWorkload, section: TopologyConfig, topology: Topology) -> None:
        self._topology, self._names = topology, config.names
        machines = topology.hosts // topology.host_links
        self._dims = network_dims(section, machines)
        self._owner = np.full(machines, -1, np.int64)
        self._groups: tuple[int, ...] = ()
        wanting = [number for number, job in enumerate(config.jobs) if job.placement in GROUPED]
        if wanting:
            self._groups = config.groups or nested_groups(section, self._dims)
            if not self._groups:
                name = config.jobs[wanting[0]].placement
                raise JobsError(f"workload.groups: missing; placement={name} needs it on the {topology.name}")
            if problem := group_problem(self._groups, machines):
                raise JobsError(f"workload.{problem}")

    def finder(self, number: int, job: JobConfig, seed: int) -> Find:
        """Return what finds the hosts of a job, the same ones whenever it is asked."""
        known: list[Hosts] = []

        def find(ranks: int) -> Hosts:
            if not known:
                if job.ranks is not None and ranks != job.ranks:
                    raise JobsError(f"workload.ranks: the program has {ranks} ranks, not {job.ranks}")
                known.append(self._take(number, job, ranks, seed))
            return known[0]

        return find

    def _take(self, number: int, job: JobConfig, ranks: int, seed: int) -> Hosts:
        links, name = self._topology.host_links, _placement(job)
        if name == "mapping":
            hosts = map_ranks(job.program.mapping, ranks, self._topology, seed)
            taken = np.unique(hosts // links).astype(np.int64)
            others = taken[self._owner[taken] >= 0]
            if len(others):
                more = f" ({len(others)} hosts in all)" if len(others) > 1 else ""
                raise JobsError(
                    f"workload.mapping: host {others[0]} belongs to job {self._names[self._owner[others[0]]]}"
                    f" already{more}"
                )
        else:
            place = PLACEMENTS[name](self._dims, np.random.default_rng([seed, 1]), self._groups)
            free = self._owner < 0
            found = place.place(free, ranks) if ranks <= len(free) else None
            if found is None:
                raise JobsError(
                    f"workload: {ranks} ranks do not fit: placement={name} finds no hosts for them among the"
                    f" {int(free.sum())} free of the {len(free)} of the {self._topology.name}"
                )
            hosts, taken = (found.used * links).astype(np.int32), found.taken
        self._owner[taken] = number
        return hosts


@contextmanager
def _named(number: int, job: JobConfig) -> Iterator[None]:
    """Let errors name the key of a job in place of that of a single program."""
    key = f"workload.jobs[{number}]"
    own = () if job.ranks is None else ("ranks",)
    try:
        yield
    except UserError as error:
        lines = str(error).split("\n")
        raise JobsError("\n".join(_of_job(line, key, own) for line in lines)) from error


def _of_job(line: str, key: str, own: Collection[str]) -> str:
    """Return a line of an error with the key of a job; `own`: keys of the job, not of its program."""
    found = re.match(r"workload(?:\.(\w+))?", line)
    if found is None:
        return f"{key}: {line}"
    return line.replace("workload", key if found[1] is None or found[1] in own else f"{key}.program", 1)

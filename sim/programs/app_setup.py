"""What a program needs before it runs on the network: its ranks on hosts, flits, buffers and times of the routers."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.config.jobs import JobsWorkload
from hopforge.model.config.workload import ChakraWorkload, ProgramWorkload
from hopforge.model.irregular.table_routes import configured_routes
from hopforge.model.lookup.lid_routes import KnownRoutes
from hopforge.model.topology import Topology, build
from hopforge.model.topology.degraded import MICROSECONDS, DegradedError, with_degraded
from hopforge.model.topology.failed import failed_hosts, refuse_failed, without_failed
from hopforge.model.topology.spread import refuse_spread
from hopforge.model.topology.tiers import refuse_speeds
from hopforge.model.workload.schedule import Schedule
from hopforge.model.workload.trace import Trace
from hopforge.sim.failures.program_messages import refuse_failed_ranks
from hopforge.sim.hits.replay import Replay
from hopforge.sim.jobs.placed_jobs import JobsTogether, place_jobs
from hopforge.sim.programs.cache_delays import CacheUse
from hopforge.sim.programs.loggops_setup import ScheduleSetup, prepare_loggops
from hopforge.sim.programs.program_routers import (
    ApplicationError,
    packet_config,
    packet_router_config,
    sized_router,
    timed_router,
)
from hopforge.sim.programs.simgrid import MAX_FULL_HOSTS
from hopforge.sim.programs.smpi_command import check_simgrid, several_links
from hopforge.sim.run.jobs import Job, try_variants
from hopforge.sim.run.router_models import router_model
from hopforge.sim.run.unit_times import UnitTimes, placed_with_units, unit_groups, unit_times
from hopforge.sim.traffic.placed import PlacedProgram, check_computing, place_program, program_trace
from hopforge.sim.traffic.scheduled import counts_operations, is_schedule, place_schedule, workload_schedule

if TYPE_CHECKING:  # each engine loads its own kernel
    from hopforge.sim.packet.program_network import ProgramNetwork
    from hopforge.sim.run.simulation import Simulation

@dataclass(frozen=True, eq=False)
class AppSetup:
    """A program that is ready to run.

    Attributes
    ----------
    config : Config
        With the flits and buffers of `sized_router`.
    topology : Topology
        The network.
    placed : PlacedProgram
        The program on its hosts.
    backend : str
        Of engine flow: embedded or simgrid.
    routes : Routes, optional
        Of engine flow: the ways of its packets.
    caches : Replay, optional
        Of engine flow with ``app.lookup: cache``: empty ones.
    simulation : Simulation, optional
        Of engine packet, at cycle 0.
    packets : ProgramNetwork, optional
        The same with ``router.model: packet``.
    schedule : Schedule, optional
        What the ranks do, if that is a graph; `placed` then has its messages.
    jobs : JobsTogether, optional
        The programs that `placed` and `schedule` are made of, if there are several.
    use : CacheUse, optional
        Of engine flow: what lookups find, if that is known already.
    units : UnitTimes, optional
        Collective units that do collectives of the program.
    """

    config: Config
    topology: Topology
    placed: PlacedProgram
    backend: str = ""
    routes: KnownRoutes | None = None
    caches: Replay | None = None
    simulation: "Simulation | None" = None
    packets: "ProgramNetwork | None" = None
    schedule: Schedule | None = None
    jobs: JobsTogether | None = None
    use: CacheUse | None = None
    units: UnitTimes | None = None

    @property
    def start_s(self) -> NDArray[np.float64] | None:
        """float64[rank]: when each rank begins; None: all at 0."""
        return None if self.jobs is None else self.jobs.start_s

    def part(self, jobs: JobsTogether, use: CacheUse | None = None) -> "AppSetup":
        """Return the same with other jobs on the same network, which is empty again."""
        caches = None if self.caches is None or use is not None else Replay(self.config, self.topology)
        found = replace(
            self, placed=jobs.placed, schedule=jobs.schedule, jobs=jobs, caches=caches, use=use, simulation=None
        )
        return found if self.simulation is None else replace(found, simulation=_simulation(self.config, jobs))


def prepare_app(config: Config) -> AppSetup | ScheduleSetup:
    """Make the program of section `workload` ready for the engine of section `app`.

    Raises
    ------
    ApplicationError
        Section `workload` is missing, or holds no program.
    UserError
        The program does not fit the network, the network cannot be simulated so, or has no such routes, or SimGrid is
        wanted and not here.
    """
    if not isinstance(config.workload, JobsWorkload):
        program_workload(config)
    return ENGINES[config.app.engine](sized_router(config))


def prepare_programs(jobs: Sequence[Job]) -> None:
    """Make the first run of every variant of a sweep ready."""
    try_variants(jobs, lambda job: prepare_app(job.config))


def _prepare_flow(config: Config) -> AppSetup:
    topology = _flow_network(config)
    setup = _prepare_flow_on(config, topology)
    refuse_failed_ranks(failed_hosts(topology, config.failed), setup.placed)
    return setup


def _prepare_flow_on(config: Config, topology: Topology) -> AppSetup:
    if config.app.injection == "queued":
        refuse_speeds(topology, "app.injection: queued in engine flow")
    if isinstance(config.workload, JobsWorkload):
        return _prepare_jobs_flow(config, topology)
    workload = program_workload(config)
    if is_schedule(workload):
        _check_schedule(config)
        schedule = _schedule(config, workload, topology)
        placed = place_schedule(schedule, workload, topology, config.seed)
        routes = configured_routes(config, topology)
        return AppSetup(config, topology, placed, "embedded", routes, schedule=schedule)
    check_computing(workload, config.app.host_gflops, "app.host_gflops")
    placed = place_program(workload, topology, config.seed, unit_groups(config, topology))
    if placed.program.units is not None and config.app.lookup == "cache":
        raise ApplicationError(
            "app.lookup: must be hit, miss or conventional in engine flow with workload.collectives: in_network, not "
            "cache"
        )
    used = len(np.unique(placed.host))
    backend = flow_backend(config, used)
    if backend == "simgrid":
        if workload.collectives.in_network:
            raise ApplicationError(
                "app.backend: must be embedded or auto with workload.collectives: in_network, not simgrid"
            )
        if not workload.computing.is_even:
            raise ApplicationError(
                "workload.computing: SimGrid replays what was recorded; app.backend: embedded has it"
            )
        check_simgrid(config, used)
    caches = _caches(config, topology)
    routes = configured_routes(config, topology) if caches is None else caches.routes
    units = _units(config, placed)
    return AppSetup(config, topology, placed, backend, routes, caches, units=units)


def _flow_network(config: Config) -> Topology:
    """Build the network with its slow links, and without what has failed where tables find the ways round it."""
    if config.routing.algorithm != "tables":
        refuse_failed(config.failed, f"app.engine: flow with routing.algorithm={config.routing.algorithm}")
    whole = build(config.topology, config.address)
    slow = with_degraded(whole, config.degraded, config.seed, times=MICROSECONDS)
    return without_failed(slow, config.failed)


def _caches(config: Config, topology: Topology) -> Replay | None:
    """Return the routing caches of ``app.lookup: cache``, whose packets take the ways of the flows."""
    if config.app.lookup != "cache":
        return None
    if config.routing.spread != "flow":
        refuse_spread(config.routing.spread, "engine: flow")
    if config.lookup.lag.members > 1:
        raise ApplicationError(
            f"lookup.lag.members: must be 1 with app.lookup: cache in engine flow, whose links are single, not "
            f"{config.lookup.lag.members}"
        )
    return Replay(config, topology)


def _units(config: Config, placed: PlacedProgram) -> UnitTimes | None:
    """Return the units that do collectives of a program, their links as long as those of the routers."""
    if placed.program.units is None:
        return None
    return unit_times(config.model_copy(update={"router": timed_router(config)}), placed)


def _prepare_jobs_flow(config: Config, topology: Topology) -> AppSetup:
    if config.app.backend == "simgrid":
        raise ApplicationError("app.backend: must be embedded or auto with several jobs, not simgrid")
    jobs = _jobs(config, topology)
    caches = _caches(config, topology)
    routes = configured_routes(config, topology) if caches is None else caches.routes
    return AppSetup(config, topology, jobs.placed, "embedded", routes, caches, schedule=jobs.schedule, jobs=jobs)


def _jobs(config: Config, topology: Topology) -> JobsTogether:
    """Place the jobs of a file; if one of them is a graph, all are."""
    workload = config.workload
    assert isinstance(workload, JobsWorkload), "asked before"
    graphs = [is_schedule(job.program) for job in workload.jobs]
    if any(graphs):
        _check_schedule(config)
        unit_ns = config.app.loggops.unit_ns
        if not all(graphs) and unit_ns != 1:
            raise ApplicationError(
                f"app.loggops.unit_ns: must be 1, not {unit_ns:.10g}: workload.jobs[{graphs.index(False)}] is no graph"
                f" and becomes one in nanoseconds, because workload.jobs[{graphs.index(True)}] is one"
            )
    return place_jobs(
        workload, config.topology, topology, config.seed, host_gflops=config.app.host_gflops, timed=True
    )


#: key of `app` that a schedule has no use for → why
_HAS_TIMES = {"host_gflops": "it has times, in units of app.loggops.unit_ns"}
_NOT_OF_SCHEDULES = {
    "eager_bytes": "app.loggops.S says which messages a sender waits for",
    "buffered_bytes": "messages start when the cpu is done with them (app.loggops.o)",
}


def _refuse_keys(config: Config, keys: dict[str, str]) -> None:
    for key, instead in keys.items():
        if key in config.app.model_fields_set:
            raise ApplicationError(f"app.{key}: is not for {_named(config)}: {instead}")


def _named(config: Config) -> str:
    if isinstance(config.workload, JobsWorkload):
        return "jobs of which one is a graph"
    if isinstance(config.workload, ChakraWorkload):
        return "traces of Chakra"
    return "training as a graph" if counts_operations(program_workload(config)) else "a schedule of GOAL"


def _schedule(config: Config, workload: ProgramWorkload, topology: Topology) -> Schedule:
    speed = config.app.host_gflops if counts_operations(workload) else None
    return workload_schedule(workload, topology, config.seed, speed)


def _check_schedule(config: Config) -> None:
    """Refuse keys of `app` that a schedule on the network has no use for, by name."""
    if isinstance(config.workload, JobsWorkload):
        programs = [job.program for job in config.workload.jobs]
        has_times = all(is_schedule(each) and not counts_operations(each) for each in programs)
    else:
        has_times = not counts_operations(program_workload(config))
    _refuse_keys(config, _NOT_OF_SCHEDULES | (_HAS_TIMES if has_times else {}))
    if config.app.backend == "simgrid":
        raise ApplicationError(f"app.backend: must be embedded or auto with {_named(config)}, not simgrid")
    if config.app.lookup == "cache":
        raise ApplicationError(f"app.lookup: must be hit, miss or conventional with {_named(config)}, not cache")


def _prepare_packet(config: Config) -> AppSetup:
    from hopforge.sim.run.simulation import Simulation  # noqa: PLC0415 - each engine loads its own kernel

    packets = router_model(config, "app").name == "packet"
    if isinstance(config.workload, JobsWorkload):
        if packets:
            raise ApplicationError(
                "router.model: must be input_queued or input_output_queued with workload.jobs in engine packet, not "
                "packet (or app.engine: flow)"
            )
        jobs = _jobs(config, build(config.topology, config.address))
        run = _simulation(config, jobs)
        return AppSetup(config, run.topology, jobs.placed, simulation=run, schedule=jobs.schedule, jobs=jobs)
    workload = program_workload(config)
    if packets:
        return _prepare_packet_routers(config, workload)
    if is_schedule(workload):
        from hopforge.sim.programs.schedule_packet import sending_program  # noqa: PLC0415  as above

        _check_schedule(config)
        topology = build(config.topology, config.address)
        schedule = _schedule(config, workload, topology)
        placed = place_schedule(schedule, workload, topology, config.seed)
        run = Simulation(
            packet_config(config), config.simulation.load, config.seed, placed=sending_program(placed)
        )
        return AppSetup(config, run.topology, placed, simulation=run, schedule=schedule)
    check_computing(workload, config.app.host_gflops, "app.host_gflops")
    timed = packet_config(config)
    run = Simulation(timed, config.simulation.load, config.seed, placed=placed_with_units(timed, config.seed))
    assert run.placed is not None, "traffic.source is program"
    return AppSetup(config, run.topology, run.placed, simulation=run, units=unit_times(timed, run.placed))


def _prepare_packet_routers(config: Config, workload: ProgramWorkload) -> AppSetup:
    from hopforge.sim.packet.program_network import ProgramNetwork  # noqa: PLC0415  as above

    if is_schedule(workload):
        from hopforge.sim.programs.schedule_packet import sending_program  # noqa: PLC0415  as above

        _check_schedule(config)
        topology = build(config.topology, config.address)
        schedule = _schedule(config, workload, topology)
        placed = place_schedule(schedule, workload, topology, config.seed)
        network = ProgramNetwork(packet_router_config(config), config.seed, placed=sending_program(placed))
        return AppSetup(config, network.topology, placed, packets=network, schedule=schedule)
    check_computing(workload, config.app.host_gflops, "app.host_gflops")
    network = ProgramNetwork(packet_router_config(config), config.seed)
    return AppSetup(config, network.topology, network.placed, packets=network)


def _simulation(config: Config, jobs: JobsTogether) -> "Simulation":
    """Return the router simulator at cycle 0, with the messages of jobs."""
    from hopforge.sim.programs.schedule_packet import sending_program  # noqa: PLC0415  as above
    from hopforge.sim.run.simulation import Simulation  # noqa: PLC0415  as above

    placed = jobs.placed if jobs.schedule is None else sending_program(jobs.placed)
    return Simulation(packet_config(config), config.simulation.load, config.seed, placed=placed)


def _prepare_loggops(config: Config) -> ScheduleSetup:
    if isinstance(config.workload, JobsWorkload):
        raise ApplicationError(
            "app.engine: loggops has no network that jobs could share; flow and packet have one"
        )
    workload = program_workload(config)
    if is_schedule(workload) and not counts_operations(workload):
        _refuse_keys(config, _HAS_TIMES)
    return prepare_loggops(config, workload)


ENGINES: dict[str, Callable[[Config], AppSetup | ScheduleSetup]] = {
    "flow": _prepare_flow, "packet": _prepare_packet, "loggops": _prepare_loggops,
}  # fmt: skip


def checked_program(config: Config, form: str = "trace") -> Trace | Schedule:
    """Return the calls of the program of section `workload`, or its schedule.

    Parameters
    ----------
    config : Config
        The file.
    form : str
        trace, or a form of a schedule; a file of GOAL and traces of Chakra are a schedule in any case.

    Raises
    ------
    ApplicationError
        There is none.
    UserError
        A bad file, or a program that does not run so.
    """
    topology, workload = build(config.topology, config.address), program_workload(config)
    if form == "trace" and not is_schedule(workload):
        return program_trace(workload, topology.hosts // topology.host_links, config.seed)
    return workload_schedule(workload, topology, config.seed, config.app.host_gflops)


def program_workload(config: Config) -> ProgramWorkload:
    """Return section `workload`, which must be a program.

    Raises
    ------
    ApplicationError
        It is none.
    """
    if isinstance(config.workload, JobsWorkload):
        raise ApplicationError("workload.kind: jobs holds several programs; one is needed")
    if not isinstance(config.workload, ProgramWorkload):
        raise ApplicationError(
            "workload: a program is needed "
            "(kind: npb, matrix_product, bfs, himeno, dpsnn, training, collective, trace or chakra; "
            "hopforge app and sweep also run several: jobs)"
        )
    return config.workload


def flow_backend(config: Config, hosts: int) -> str:
    """Return what runs engine flow on so many hosts: ``app.backend``, or what ``auto`` means on this machine."""
    if config.app.backend != "auto":
        if config.app.backend == "simgrid" and config.degraded.timed:
            raise DegradedError(
                f"degraded.{config.degraded.timed}: SimGrid has slow links from begin to end; app.backend: embedded "
                "has times"
            )
        return config.app.backend
    workload = config.workload
    even = not isinstance(workload, ProgramWorkload) or (
        workload.computing.is_even and not workload.collectives.in_network
    )
    even = even and not config.degraded.timed
    can = even and not config.app.embedded_only and hosts <= MAX_FULL_HOSTS and not several_links(config)
    return "simgrid" if can and shutil.which("smpirun") is not None else "embedded"

"""`hopforge app`: a program on the network, timed by the flow engine, SimGrid, the router simulator or LogGOPS."""

import resource
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hopforge.model.config import Config
from hopforge.model.config.workload import ProgramWorkload
from hopforge.model.network.parts.program_arrays import ProgramError
from hopforge.model.output.results import MEASURED, run_metadata, staged, write_metadata, write_tables
from hopforge.model.workload.program import waiting_text
from hopforge.model.workload.schedule import CALC, KIND_NAMES, SEND, Schedule
from hopforge.model.workload.trace import Trace
from hopforge.sim.hits.energy import Traffic, energy_rows, shape_of
from hopforge.sim.programs.app_setup import (
    AppSetup,
    cycle_ns,
    prepare_app,
)
from hopforge.sim.programs.graph_activity import GraphActivity, activity_rows, graph_activity
from hopforge.sim.programs.link_bytes import LinkBytes, link_bytes, link_rows
from hopforge.sim.programs.loggops_engine import LARGEST_TIME
from hopforge.sim.programs.loggops_run import LoggopsRun, ScheduleSetup, run_schedule
from hopforge.sim.programs.rank_times import ProgramMeasurement, makespan, mean_share, rank_table
from hopforge.sim.run.lookup_measures import lookup_totals
from hopforge.sim.run.reordering import Reordering, reordering
from hopforge.sim.traffic.program_traffic import switch_visits
from hopforge.sim.traffic.scheduled import is_schedule

if TYPE_CHECKING:  # each engine loads its own kernel
    from hopforge.sim.packet.program_network import ProgramNetwork
    from hopforge.sim.run.simulation import Simulation

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class AppMeasurement(ProgramMeasurement):
    """Results of a program; times in seconds.

    Attributes
    ----------
    messages, local_messages : int
        All messages, and those between ranks of one host.
    message_latency_s : float, optional
        Mean time from the call that sends a message to its arrival, messages through the network only; SimGrid does
        not tell.
    waiting_share, computing_share : float
        Mean shares of the makespan in which a rank waited for messages, and computed.
    miss_share : float
        Share of the lookups that miss.
    energy_j, conventional_energy_j : float
        Of all switches, and of switches without caches for the same packets in the same time (docs/guides/energy.md).
    cpu_seconds : float
        Processor time of the engine.
    """

    messages: int
    local_messages: int
    payload_bytes: int
    message_latency_s: float | None
    waiting_share: float
    computing_share: float
    miss_share: float
    energy_j: float
    conventional_energy_j: float
    cpu_seconds: float


@dataclass(frozen=True, eq=False)
class AppRun:
    """A finished run.

    Attributes
    ----------
    config : Config
        What ran: the configuration with the flits and buffers of `sized_router`.
    found : AppMeasurement
        The whole program.
    ranks : DataFrame
        Of each rank: rank, host, finish_s, waiting_s, compute_s, sent_messages, sent_bytes.
    energy : DataFrame
        Of each part of the switches: part, J and nJ per packet and switch, with caches and without.
    activity : GraphActivity, optional
        What ranks of a schedule did when.
    links : LinkBytes, optional
        What links carry, of a schedule with engine flow.
    reordering : Reordering, optional
        Order of packets, with engine packet and ``traffic.reorder``.
    """

    config: Config
    found: AppMeasurement
    ranks: pd.DataFrame
    energy: pd.DataFrame
    activity: GraphActivity | None = None
    links: LinkBytes | None = None
    reordering: Reordering | None = None

    def row(self) -> dict[str, Any]:
        """As a row of a table."""
        return asdict(self.found) | ({} if self.reordering is None else self.reordering.columns())


def run_app(
    config: Config, progress: Progress | None = None, setup: AppSetup | ScheduleSetup | None = None
) -> AppRun | LoggopsRun:
    """Run the program of section `workload` by the engine of section `app`.

    Parameters
    ----------
    config : Config
        Checked configuration.
    progress : callable, optional
        Called with the messages that have arrived, and all.
    setup : AppSetup or ScheduleSetup, optional
        What `prepare_app` has made of the configuration.

    Raises
    ------
    ApplicationError
        Section `workload` is missing, or holds no program.
    ProgramError
        The program cannot end: names the ranks that wait, and for what.
    UserError
        The program does not fit the network.
    """
    ready = prepare_app(config) if setup is None else setup
    if isinstance(ready, ScheduleSetup):
        return run_schedule(ready, progress)
    if ready.packets is not None:
        return _run_packet_routers(ready, ready.packets, progress)
    return (_run_flow if ready.simulation is None else _run_packet)(ready, progress)


def _run_flow(setup: AppSetup, progress: Progress | None) -> AppRun:
    if setup.schedule is not None:
        return _run_schedule_flow(setup, setup.schedule, progress)
    return (_run_simgrid if setup.backend == "simgrid" else _run_embedded)(setup, progress)


def _run_simgrid(setup: AppSetup, progress: Progress | None) -> AppRun:
    from hopforge.sim.programs.smpi_replay import computed_seconds, replayed  # noqa: PLC0415  as below

    config, placed = setup.config, setup.placed
    started = _children_seconds()
    try:
        finish = replayed(config, setup.topology, placed, progress)
    except ProgramError:
        _run_embedded(setup, None)  # tells, beside the ranks, what they wait for and where
        raise
    _refuse_long(float(finish.max(initial=0.0)))
    computing = computed_seconds(placed.program, config.app.host_gflops)
    return _result(
        setup, backend="simgrid", latency=None, miss_share=float(config.app.lookup != "hit"),
        cpu=_children_seconds() - started, finish=finish,
        waiting=np.maximum(finish - computing, 0.0), computing=computing, visits=_visits(setup),
    )


def _refuse_long(seconds: float) -> None:
    """Refuse a run whose times are no longer exact to a nanosecond."""
    if seconds * 1e9 > LARGEST_TIME:
        raise ProgramError(f"workload: the program ends at {seconds:.6g} s; times beyond 2^53 ns are not exact to a ns")


def _children_seconds() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _run_embedded(setup: AppSetup, progress: Progress | None) -> AppRun:
    from hopforge.sim.programs.cache_delays import cache_use  # noqa: PLC0415  each engine compiles its own kernel
    from hopforge.sim.programs.flow_engine import FlowRun  # noqa: PLC0415

    config, topology, placed = setup.config, setup.topology, setup.placed
    started = time.process_time()
    use = cache_use(config, topology, placed, setup.caches)
    run = FlowRun(config, topology, placed, use, setup.routes)
    ended = run.run(progress)
    cpu = time.process_time() - started
    rank, message = run.state.rank, run.state.message
    if not ended:
        waiting = np.flatnonzero(rank["finished"] < 0)
        raise ProgramError(
            f"workload: the program cannot end: after {run.state.clock[0]:.6g} s nothing is under way and"
            f" {waiting_text(placed.program, placed.trace, waiting, rank['at'])}"
        )
    _refuse_long(float(rank["finished"].max(initial=0.0)))
    latency = message["arrived"] - message["began"]
    if not (remote := run.remote).all():
        latency = latency[remote]
    return _result(
        setup, backend="embedded", latency=latency, cpu=cpu, finish=rank["finished"], waiting=rank["waited"],
        computing=rank["computed"], miss_share=run.cache_use.miss_share, visits=_visits(setup),
    )


def _run_schedule_flow(setup: AppSetup, schedule: Schedule, progress: Progress | None) -> AppRun:
    from hopforge.sim.programs.cache_delays import cache_use  # noqa: PLC0415  as above
    from hopforge.sim.programs.schedule_flow import ScheduleFlow  # noqa: PLC0415

    use = cache_use(setup.config, setup.topology, setup.placed)
    run = ScheduleFlow(setup.config, setup.topology, setup.placed, schedule, use, setup.routes)
    times = run.run_schedule(progress)
    found = _result(
        setup, backend="embedded", latency=run.latency, cpu=times.cpu_seconds, finish=times.finish,
        waiting=times.finish - times.busy, computing=times.computed, miss_share=use.miss_share, visits=_visits(setup),
    )
    assert setup.routes is not None, "made by prepare_app"
    links = link_bytes(
        setup.topology, setup.placed, setup.routes, setup.config.timing.link_gbps, found.found.makespan_s
    )
    return replace(found, activity=graph_activity(schedule, times), links=links)


def _visits(setup: AppSetup) -> tuple[int, int]:
    assert setup.routes is not None, "made by prepare_app"
    return switch_visits(setup.config, setup.topology, setup.placed, setup.routes)


def _run_packet(setup: AppSetup, progress: Progress | None) -> AppRun:
    from hopforge.sim.run.program_run import run_program  # noqa: PLC0415  as above

    config, run, placed = setup.config, setup.simulation, setup.placed
    assert run is not None, "made by prepare_app"
    if setup.schedule is not None:
        return _run_schedule_packet(setup, run, setup.schedule, progress)
    done = run_program(run, progress)
    second = cycle_ns(config) * 1e-9
    ranks = run.state["rank"][: placed.program.ranks]
    message = run.state["message"][: placed.program.messages]
    remote = ~placed.local
    lookups = lookup_totals(run.state.lookup)
    found = _result(
        setup, cpu=done.cpu_seconds,
        latency=(message["arrived"] - message["started"])[remote] * second,
        finish=ranks["finished"] * second, waiting=ranks["waited"] * second, computing=ranks["computed"] * second,
        miss_share=1 - lookups["hit_rate"] if lookups["lookups"] else float(config.app.lookup != "hit"),
        visits=(int(run.state["hops_sum"]), int(run.state["output_port"]["flits"].sum())),
    )
    return replace(found, reordering=done.reordering)


def _run_packet_routers(setup: AppSetup, network: "ProgramNetwork", progress: Progress | None) -> AppRun:
    from hopforge.sim.packet.program_run import run_packet_program  # noqa: PLC0415  as above

    done = run_packet_program(network, progress)
    second, ranks, message = done.cycle_ns * 1e-9, network.ranks, network.messages
    counters, config = network.counters, setup.config
    flits = -(-config.packet.packet_bytes // config.traffic.flit_bytes)
    packets = int(counters["delivered"])
    return _result(
        setup,
        cpu=done.cpu_seconds,
        latency=(message["arrived"] - message["started"])[~setup.placed.local] * second,
        finish=ranks["finished"] * second,
        waiting=ranks["waited"] * second,
        computing=ranks["computed"] * second,
        miss_share=0.0,
        # packets that are sent back have taken their way through the switch, too
        visits=(int(counters["hops_sum"]) + packets, (int(counters["sent"]) + packets) * flits),
    )


def _run_schedule_packet(
    setup: AppSetup, run: "Simulation", schedule: Schedule, progress: Progress | None
) -> AppRun:
    from hopforge.sim.programs.schedule_packet import SchedulePacket  # noqa: PLC0415  as above

    cycle = cycle_ns(setup.config)
    times = SchedulePacket(setup.config, run, setup.placed, schedule, cycle).run_schedule(progress)
    program = setup.placed.program
    message = run.state["message"][: program.messages]
    remote = ~setup.placed.local
    found = _result(
        setup, cpu=times.cpu_seconds, latency=(message["arrived"] - message["started"])[remote] * cycle * 1e-9,
        finish=times.finish, waiting=times.finish - times.busy, computing=times.computed,
        miss_share=float(setup.config.app.lookup != "hit"),
        visits=(int(run.state["hops_sum"]), int(run.state["output_port"]["flits"].sum())),
    )
    return replace(found, activity=graph_activity(schedule, times), reordering=reordering(run.state))


def _result(
    setup: AppSetup,
    *,
    latency: Any,
    cpu: float,
    finish: Any,
    waiting: Any,
    computing: Any,
    miss_share: float,
    visits: tuple[int, int],
    backend: str = "",
) -> AppRun:
    config, topology, placed = setup.config, setup.topology, setup.placed
    program = placed.program
    local = placed.local
    table = rank_table(program, placed.host, finish=finish, waiting=waiting, computing=computing)
    packets, flits = visits
    shape = shape_of(config, topology.max_ports, 8 * config.traffic.flit_bytes)
    energy = pd.DataFrame(
        energy_rows(config, shape, topology.routers, Traffic(makespan(finish), packets, flits, miss_share))
    )
    found = AppMeasurement(
        program=placed.trace.name, engine=config.app.engine, backend=backend, seed=config.seed, ranks=program.ranks,
        makespan_s=makespan(finish), messages=program.messages, local_messages=int(local.sum()),
        payload_bytes=int(program.size_bytes.sum()),
        message_latency_s=None if latency is None else float(latency.mean()) if len(latency) else 0.0,
        waiting_share=mean_share(waiting, finish), computing_share=mean_share(computing, finish),
        miss_share=miss_share, energy_j=float(energy["cache_j"].iloc[-1]),
        conventional_energy_j=float(energy["conventional_j"].iloc[-1]), cpu_seconds=cpu,
    )
    return AppRun(config, found, table, energy)


def app_rows(run: AppRun | LoggopsRun) -> list[tuple[str, str]]:
    """Say what `hopforge app` shows: subject and words."""
    if isinstance(run, LoggopsRun):
        return run.rows()
    found = run.found
    latency = []
    if found.message_latency_s is not None:
        latency.append(("message latency", f"{found.message_latency_s * 1e6:.4g} µs (mean)"))
    local = f", {found.local_messages:,} of them within a host" if found.local_messages else ""
    return [
        ("program", f"{found.program}, {found.ranks} ranks"),
        ("engine", found.engine + (f" ({found.backend})" if found.backend else "")),
        *_overheads(run.config),
        ("makespan", f"{found.makespan_s:.6g} s"),
        ("a rank", f"waits {found.waiting_share:.1%} of it, computes {found.computing_share:.1%}"),
        *activity_rows(run.activity),
        *link_rows(run.links),
        ("messages", f"{found.messages:,} with {found.payload_bytes:,} bytes{local}"),
        *latency,
        *([] if run.reordering is None else run.reordering.rows()),
        ("lookups", _lookups_text(run)),
        ("energy", f"{found.energy_j:.4g} J in all switches; without caches {found.conventional_energy_j:.4g} J"),
        ("processor time", f"{found.cpu_seconds:.2f} s"),
    ]


def _overheads(config: Config) -> list[tuple[str, str]]:
    """Say what a message costs its ranks, where a schedule runs on the network."""
    if not (isinstance(config.workload, ProgramWorkload) and is_schedule(config.workload)):
        return []
    _, o, g, _, per_byte, eager = config.app.loggops.settings
    unit = config.app.loggops.unit_ns
    return [("a message", f"o {o:.10g} g {g:.10g} O {per_byte:.10g} S {eager} in units of {unit:.10g} ns")]


def _lookups_text(run: AppRun) -> str:
    """Say which share of the lookups missed; without caches to look in, what was taken instead."""
    app, found = run.config.app, run.found
    if app.lookup != "cache" and (found.engine == "flow" or run.config.router.route_computation != "lookup"):
        time = {"hit": "that hits", "miss": "that misses", "conventional": "without caches"}[app.lookup]
        return f"nothing was looked up: every switch takes the time of one {time} (app.lookup: {app.lookup})"
    if found.messages == found.local_messages:
        return "nothing was looked up: no message entered the network"
    return f"{found.miss_share:.3%} miss"


def trace_rows(trace: Trace | Schedule) -> list[tuple[str, str]]:
    """Say what `hopforge workload` shows: subject and words."""
    if isinstance(trace, Schedule):
        return schedule_rows(trace)
    calls: Counter[str] = Counter()
    flops = 0.0
    for numbers in trace.numbers:
        used, first, counts = np.unique(numbers, return_index=True, return_counts=True)
        for at in np.argsort(first).tolist():
            action = trace.calls[used[at]]
            calls[action.name] += int(counts[at])
            flops += action.amount * int(counts[at]) if action.name == "compute" else 0.0
    return [
        ("program", f"{trace.name}, {trace.ranks} ranks"),
        ("calls", ", ".join(f"{count:,} {name}" for name, count in calls.most_common())),
        ("operations", f"{flops:.6g}"),
    ]


def schedule_rows(schedule: Schedule) -> list[tuple[str, str]]:
    """Say what a schedule holds: subject and words."""
    kinds = np.bincount(schedule.kind, minlength=max(KIND_NAMES) + 1)
    names = ", ".join(f"{kinds[kind]:,} {name}" for kind, name in KIND_NAMES.items() if kinds[kind])
    sent = schedule.size[schedule.kind == SEND].sum()
    streams = int(schedule.cpu.max(initial=0)) + 1
    if not kinds[CALC] and not schedule.file:
        names += "; computing takes no time (app.host_gflops is missing, or nothing computes)"
    return [
        ("program", f"{schedule.name}, {schedule.ranks} ranks, {streams} cpu{'s' if streams > 1 else ''} each"),
        ("operations", names or "none"),
        ("dependencies", f"{len(schedule.at_end.next):,} on an end, {len(schedule.at_start.next):,} on a start"),
        ("sent", f"{sent:,} bytes{_by_stream(schedule)}"),
    ]


def _by_stream(schedule: Schedule) -> str:
    """Say how much of what is sent belongs to each stream, if these have names."""
    sends = schedule.kind == SEND
    if not schedule.streams or not sends.any():
        return ""
    found = np.bincount(schedule.cpu[sends], schedule.size[sends].astype(np.float64), len(schedule.streams))
    parts = [f"{name} {size:.4g}" for name, size in zip(schedule.streams, found, strict=True) if size]
    return f" ({', '.join(parts)})"


def write_app(run: AppRun | LoggopsRun, folder: Path) -> None:
    """Write the measurement and the times of the ranks (CSV, Parquet), and the metadata to repeat it (JSON)."""
    if isinstance(run, LoggopsRun):
        run.write(folder)
        return
    with staged(folder) as scratch:
        write_tables(scratch, {
            "app": pd.DataFrame([run.row()]), "ranks": run.ranks, "energy": run.energy,
            **({} if run.activity is None else run.activity.tables()),
            **({} if run.links is None else {"links": run.links.table}),
        })
        found = {key: value for key, value in asdict(run.found).items() if key not in MEASURED}
        write_metadata(scratch, {**run_metadata(run.config), "found": found})

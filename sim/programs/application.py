"""`hopforge app`: a program on the network, timed by the flow engine, SimGrid, the router simulator or LogGOPS."""

import resource
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.config.jobs import JobsWorkload
from hopforge.model.config.simulation import describe_failed
from hopforge.model.config.workload import ProgramWorkload
from hopforge.model.kernel.run_clock import run_seconds
from hopforge.model.network.parts.program_arrays import ProgramError
from hopforge.model.output.results import MEASURED, run_metadata, staged, write_metadata, write_tables
from hopforge.model.output.times import time_words
from hopforge.model.topology.degraded import mean_rates
from hopforge.model.workload.program import waiting_text
from hopforge.model.workload.schedule import CALC, KIND_NAMES, SEND, Schedule
from hopforge.model.workload.trace import Trace
from hopforge.sim.failures.report import failures_found
from hopforge.sim.hits.energy import guessed_allocators
from hopforge.sim.programs.app_result import AppRun, app_result
from hopforge.sim.programs.app_setup import AppSetup, prepare_app
from hopforge.sim.programs.graph_activity import activity_rows, graph_activity
from hopforge.sim.programs.jobs_run import job_rows, run_jobs
from hopforge.sim.programs.link_bytes import link_bytes, link_rows
from hopforge.sim.programs.loggops_engine import LARGEST_TIME
from hopforge.sim.programs.loggops_run import LoggopsRun, run_schedule
from hopforge.sim.programs.loggops_setup import ScheduleSetup
from hopforge.sim.programs.program_routers import cycle_ns
from hopforge.sim.programs.rank_times import makespan
from hopforge.sim.run.lookup_measures import lookup_totals, tcam_share
from hopforge.sim.run.reordering import reordering
from hopforge.sim.traffic.host_pairs import HostPairs
from hopforge.sim.traffic.program_traffic import switch_visits
from hopforge.sim.traffic.scheduled import is_schedule

if TYPE_CHECKING:  # each engine loads its own kernel
    from hopforge.sim.packet.program_network import ProgramNetwork
    from hopforge.sim.run.simulation import Simulation

Progress = Callable[[int, int], None]


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
    if ready.jobs is not None:
        return run_jobs(ready, _run_one, progress)
    return _run_one(ready, progress)


def _run_one(setup: AppSetup, progress: Progress | None) -> AppRun:
    if setup.packets is not None:
        return _run_packet_routers(setup, setup.packets, progress)
    return (_run_flow if setup.simulation is None else _run_packet)(setup, progress)


def _mean(latency: NDArray[np.floating[Any]]) -> float:
    return float(latency.mean()) if len(latency) else 0.0


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
    return app_result(
        setup, backend="simgrid", message_latency_s=None, miss_share=float(config.app.lookup != "hit"),
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
    from hopforge.sim.programs.flow_change import changes  # noqa: PLC0415
    from hopforge.sim.programs.flow_engine import FlowRun  # noqa: PLC0415
    from hopforge.sim.programs.flow_rounds import round_times  # noqa: PLC0415
    from hopforge.sim.programs.flow_ways import flow_ways  # noqa: PLC0415

    config, topology, placed = setup.config, setup.topology, setup.placed
    started = run_seconds()
    use = cache_use(config, topology, placed, setup.caches) if setup.use is None else setup.use
    ways = flow_ways(config, topology, placed, use, setup.routes)
    rounds = None if changes(config, topology) else round_times(config, placed.program, ways)
    if rounds is not None:
        if progress is not None:
            progress(placed.program.messages, placed.program.messages)
        _refuse_long(makespan(rounds.finish))
        return app_result(
            setup, backend="embedded", message_latency_s=rounds.latency_s, cpu=run_seconds() - started,
            finish=rounds.finish, waiting=rounds.waited, computing=np.zeros(placed.program.ranks),
            miss_share=use.miss_share, tcam_share=use.tcam_share, visits=_visits(setup, ways.pairs),
        )
    run = FlowRun(
        config, topology, placed, use, setup.routes, setup.units, cycle_ns(config) * 1e-9, ways
    )
    ended = run.run(progress)
    cpu = run_seconds() - started
    rank, message = run.state.rank, run.messages
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
    return app_result(
        setup, backend="embedded", message_latency_s=_mean(latency), cpu=cpu, finish=rank["finished"],
        waiting=rank["waited"], computing=rank["computed"], miss_share=use.miss_share, tcam_share=use.tcam_share,
        visits=_visits(setup, ways.pairs),
    )


def _run_schedule_flow(setup: AppSetup, schedule: Schedule, progress: Progress | None) -> AppRun:
    from hopforge.sim.programs.cache_delays import cache_use  # noqa: PLC0415  as above
    from hopforge.sim.programs.schedule_flow import ScheduleFlow  # noqa: PLC0415

    use = cache_use(setup.config, setup.topology, setup.placed)
    run = ScheduleFlow(setup.config, setup.topology, setup.placed, schedule, use, setup.routes)
    times = run.run_schedule(progress, setup.start_s)
    found = app_result(
        setup, backend="embedded", message_latency_s=_mean(run.latency), cpu=times.cpu_seconds, finish=times.finish,
        waiting=times.finish - times.busy, computing=times.computed, miss_share=use.miss_share, visits=_visits(setup),
    )
    assert setup.routes is not None, "made by prepare_app"
    rates = mean_rates(setup.topology, setup.config.degraded, found.found.makespan_s)
    links = link_bytes(rates, setup.placed, setup.routes, setup.config.timing.link_gbps, found.found.makespan_s)
    return replace(found, activity=graph_activity(schedule, times), links=links, times=times)


def _visits(setup: AppSetup, pairs: HostPairs | None = None) -> tuple[int, int]:
    assert setup.routes is not None, "made by prepare_app"
    return switch_visits(setup.config, setup.topology, setup.placed, setup.routes, pairs)


def _run_packet(setup: AppSetup, progress: Progress | None) -> AppRun:
    from hopforge.sim.run.program_run import message_latencies, run_program  # noqa: PLC0415  as above

    config, run, placed = setup.config, setup.simulation, setup.placed
    assert run is not None, "made by prepare_app"
    if setup.schedule is not None:
        return _run_schedule_packet(setup, run, setup.schedule, progress)
    done = run_program(run, progress, setup.units)
    second = cycle_ns(config) * 1e-9
    ranks = run.state["rank"][: placed.program.ranks]
    message = run.state["message"][: placed.program.messages]
    lookups = lookup_totals(run.state.lookup)
    found = app_result(
        setup, cpu=done.cpu_seconds,
        message_latency_s=_mean(message_latencies(message, placed.local) * second),
        finish=ranks["finished"] * second, waiting=ranks["waited"] * second, computing=ranks["computed"] * second,
        miss_share=1 - lookups["hit_rate"] if lookups["lookups"] else float(config.app.lookup != "hit"),
        tcam_share=tcam_share(run.state.lookup),
        visits=_flit_visits(run),
    )
    return replace(
        found, link_share=_link_share(setup, run, found.found.makespan_s), reordering=done.reordering,
        failures=failures_found(run.reconfiguration, cycle_ns(config)),
    )  # fmt: skip


def _link_share(setup: AppSetup, run: "Simulation", makespan_s: float) -> float:
    """Return the mean share of the run in which a link between routers is busy.

    A slow link takes longer for a flit: by its mean rate over the run, whenever the flits passed.
    """
    from hopforge.sim.run.measurement import channel_columns  # noqa: PLC0415  as above

    channels = channel_columns(run, max(int(run.state["cycle"]), 1))
    load = np.asarray(channels["load"])
    rates = mean_rates(run.topology, setup.config.degraded, makespan_s).rate_share
    if rates is not None:
        load = load / rates[np.asarray(channels["router"]), np.asarray(channels["port"])]
    return float(load.mean()) if len(load) else 0.0


def _run_packet_routers(setup: AppSetup, network: "ProgramNetwork", progress: Progress | None) -> AppRun:
    from hopforge.sim.packet.program_run import run_packet_program  # noqa: PLC0415  as above

    if setup.schedule is not None:
        return _run_schedule_routers(setup, network, setup.schedule, progress)
    done = run_packet_program(network, progress)
    second, ranks = done.cycle_ns * 1e-9, network.ranks
    found = app_result(
        setup, cpu=done.cpu_seconds, message_latency_s=_packet_latency(setup, network),
        finish=ranks["finished"] * second, waiting=ranks["waited"] * second, computing=ranks["computed"] * second,
        miss_share=0.0, visits=_packet_visits(setup.config, network),
    )  # fmt: skip
    return replace(found, failures=failures_found(network.failures, done.cycle_ns))


def _packet_latency(setup: AppSetup, network: "ProgramNetwork") -> float:
    from hopforge.sim.run.program_run import message_latencies  # noqa: PLC0415  as above

    return _mean(message_latencies(network.messages, setup.placed.local) * (network.settings.cycle_ns * 1e-9))


def _flit_visits(run: "Simulation") -> tuple[int, int]:
    """Return visits of packets and flits, with those of packets that failures cost or turned to a host on their way."""
    state = run.state
    return int(state["hops_sum"]) + int(state["lost_hops"]), int(state["output_port"]["flits"].sum())


def _packet_visits(config: Config, network: "ProgramNetwork") -> tuple[int, int]:
    """Return visits of packets and flits; packets that are sent back have taken their way through the switch, too."""
    counters, flits = network.counters, -(-config.packet.packet_bytes // config.traffic.flit_bytes)
    packets = int(counters["delivered"])
    lost = 0 if network.failures is None else network.failures.lost_visits
    return int(counters["hops_sum"]) + packets + lost, (int(counters["sent"]) + packets) * flits


def _run_schedule_routers(
    setup: AppSetup, network: "ProgramNetwork", schedule: Schedule, progress: Progress | None
) -> AppRun:
    from hopforge.sim.programs.schedule_routers import ScheduleRouters  # noqa: PLC0415  as above

    run = ScheduleRouters(setup.config, network, setup.placed, schedule, network.settings.cycle_ns)
    times = run.run_schedule(progress)
    found = app_result(
        setup, cpu=times.cpu_seconds, message_latency_s=_packet_latency(setup, network), finish=times.finish,
        waiting=times.finish - times.busy, computing=times.computed, miss_share=0.0,
        visits=_packet_visits(setup.config, network),
    )
    failures = failures_found(network.failures, network.settings.cycle_ns)
    return replace(found, activity=graph_activity(schedule, times), times=times, failures=failures)


def _run_schedule_packet(
    setup: AppSetup, run: "Simulation", schedule: Schedule, progress: Progress | None
) -> AppRun:
    from hopforge.sim.programs.schedule_packet import SchedulePacket  # noqa: PLC0415  as above

    cycle = cycle_ns(setup.config)
    times = SchedulePacket(setup.config, run, setup.placed, schedule, cycle).run_schedule(progress, setup.start_s)
    program = setup.placed.program
    message = run.state["message"][: program.messages]
    remote = ~setup.placed.local
    found = app_result(
        setup, cpu=times.cpu_seconds,
        message_latency_s=_mean((message["arrived"] - message["started"])[remote] * cycle * 1e-9),
        finish=times.finish, waiting=times.finish - times.busy, computing=times.computed,
        miss_share=float(setup.config.app.lookup != "hit"),
        visits=_flit_visits(run),
    )
    return replace(
        found, activity=graph_activity(schedule, times), times=times,
        link_share=_link_share(setup, run, found.found.makespan_s), reordering=reordering(run.state),
        failures=failures_found(run.reconfiguration, cycle),
    )  # fmt: skip


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
        *job_rows(run),
        ("engine", found.engine + (f" ({found.backend})" if found.backend else "")),
        *([] if run.config.failed.none else [("failed", describe_failed(run.config.failed))]),
        *_overheads(run.config),
        ("makespan", time_words(found.makespan_s, 6)),
        ("a rank", f"waits {found.waiting_share:.1%} of it, computes {found.computing_share:.1%}"),
        *run.untimed,
        *activity_rows(run.activity),
        *link_rows(run.links),
        ("messages", f"{found.messages:,} with {found.payload_bytes:,} bytes{local}"),
        *latency,
        *([] if run.units is None else run.units.rows()),
        *([] if run.reordering is None else run.reordering.rows()),
        *([] if run.failures is None else run.failures.rows),
        ("lookups", _lookups_text(run)),
        ("energy", _energy_text(run)),
        ("processor time", f"{found.cpu_seconds:.2f} s"),
    ]


def _overheads(config: Config) -> list[tuple[str, str]]:
    """Say what a message costs its ranks, where a schedule runs on the network."""
    workload = config.workload
    programs = [job.program for job in workload.jobs] if isinstance(workload, JobsWorkload) else [workload]
    if not any(isinstance(each, ProgramWorkload) and is_schedule(each) for each in programs):
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


def _energy_text(run: AppRun) -> str:
    """Say what the switches take; those of ``app.lookup: conventional`` have no caches."""
    found, guessed = run.found, guessed_allocators(run.config)
    if run.config.app.lookup == "conventional":
        return f"{found.conventional_energy_j:.4g} J in all switches, which have no caches{guessed}"
    return f"{found.energy_j:.4g} J in all switches; without caches {found.conventional_energy_j:.4g} J{guessed}"


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
        ("operations", f"{flops:,.0f}"),
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
            **({} if run.jobs is None else {"job_runs": run.jobs}),
            **({} if run.failures is None else {"failures": run.failures.table}),
        })
        found = {key: value for key, value in asdict(run.found).items() if key not in MEASURED}
        write_metadata(scratch, {**run_metadata(run.config), "found": found})

"""`hopforge app`: a program on the network, timed by the flow engine, by SimGrid or by the router simulator."""

import resource
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import ceil, log2
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hopforge.model.config import Config
from hopforge.model.config.workload import ProgramWorkload
from hopforge.model.errors import UserError
from hopforge.model.network.parts.program_arrays import ProgramError
from hopforge.model.output.results import run_metadata, staged, write_metadata, write_tables
from hopforge.model.topology import Topology, build
from hopforge.model.topology.failed import refuse_failed
from hopforge.model.topology.link_times import queued_cycle_ns
from hopforge.model.workload.program import waiting_text
from hopforge.model.workload.trace import Trace
from hopforge.sim.hits.energy import Traffic, energy_rows, shape_of
from hopforge.sim.programs.flow_network import switch_ns
from hopforge.sim.programs.rank_times import ProgramMeasurement, makespan, mean_share, rank_table
from hopforge.sim.programs.simgrid import MAX_FULL_HOSTS
from hopforge.sim.run.lookup_measures import lookup_totals
from hopforge.sim.traffic.placed import PlacedProgram, place_program, program_trace
from hopforge.sim.traffic.program_traffic import switch_visits

Progress = Callable[[int, int], None]


#: cycles that a miss takes in the lookup engine beside those of the TCAM (docs/definitions/lookup-engine.md)
MISS_CYCLES = 3
#: flits of a file that does not say
FLIT_BYTES = 64
#: most flits of a buffer
MOST_FLITS = 65535


class ApplicationError(UserError, ValueError):
    """A configuration without a program."""


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
    """

    config: Config
    found: AppMeasurement
    ranks: pd.DataFrame
    energy: pd.DataFrame


def run_app(config: Config, progress: Progress | None = None) -> AppRun:
    """Run the program of section `workload` by the engine of section `app`.

    Parameters
    ----------
    config : Config
        Checked configuration.
    progress : callable, optional
        Called with the messages that have arrived, and all.

    Raises
    ------
    ApplicationError
        Section `workload` is missing, or holds no program.
    ProgramError
        The program cannot end: names the ranks that wait, and for what.
    UserError
        The program does not fit the network.
    """
    _program_workload(config)
    return ENGINES[config.app.engine](sized_router(config), progress)


def checked_program(config: Config) -> Trace:
    """Return the calls of the program of section `workload`.

    Raises
    ------
    ApplicationError
        There is none.
    UserError
        A bad file, or a program that does not run so.
    """
    hosts = build(config.topology, config.address).hosts
    return program_trace(_program_workload(config), hosts, config.seed)


def _program_workload(config: Config) -> ProgramWorkload:
    if not isinstance(config.workload, ProgramWorkload):
        raise ApplicationError(
            "workload: a program is needed (kind: npb, matrix_product, bfs, himeno, training, collective or trace)"
        )
    return config.workload


def _run_flow(config: Config, progress: Progress | None) -> AppRun:
    refuse_failed(config.failed, "engine: flow")
    topology = build(config.topology, config.address)
    placed = place_program(_program_workload(config), topology, config.seed)
    run = _run_simgrid if flow_backend(config, len(np.unique(placed.host))) == "simgrid" else _run_embedded
    return run(config, topology, placed, progress)


def flow_backend(config: Config, hosts: int) -> str:
    """Return what runs engine flow on so many hosts: ``app.backend``, or what ``auto`` means on this machine."""
    if config.app.backend != "auto":
        return config.app.backend
    can = not config.app.embedded_only and hosts <= MAX_FULL_HOSTS and shutil.which("smpirun") is not None
    return "simgrid" if can else "embedded"


def _run_simgrid(config: Config, topology: Topology, placed: PlacedProgram, progress: Progress | None) -> AppRun:
    from hopforge.sim.programs.smpi_replay import computed_seconds, replayed  # noqa: PLC0415  as below

    started = _children_seconds()
    try:
        finish = replayed(config, topology, placed, progress)
    except ProgramError:
        _run_embedded(config, topology, placed, None)  # tells, beside the ranks, what they wait for and where
        raise
    computing = computed_seconds(placed.program, config.app.host_gflops)
    return _result(
        config, topology, placed, backend="simgrid", latency=None, miss_share=float(config.app.lookup != "hit"),
        cpu=_children_seconds() - started, finish=finish,
        waiting=np.maximum(finish - computing, 0.0), computing=computing,
    )


def _children_seconds() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _run_embedded(config: Config, topology: Topology, placed: PlacedProgram, progress: Progress | None) -> AppRun:
    from hopforge.sim.programs.flow_engine import FlowRun  # noqa: PLC0415  each engine compiles its own kernel

    started = time.process_time()
    run = FlowRun(config, topology, placed)
    ended = run.run(progress)
    cpu = time.process_time() - started
    rank, message = run.state.rank, run.state.message
    if not ended:
        waiting = np.flatnonzero(rank["finished"] < 0)
        raise ProgramError(
            f"workload: the program cannot end: after {run.state.clock[0]:.6g} s nothing is under way and"
            f" {waiting_text(placed.program, placed.trace, waiting, rank['at'])}"
        )
    latency = (message["arrived"] - message["began"])[run.remote]
    return _result(
        config, topology, placed, backend="embedded", latency=latency, cpu=cpu, finish=rank["finished"],
        waiting=rank["waited"], computing=rank["computed"], miss_share=run.cache_use.miss_share,
    )


def _run_packet(config: Config, progress: Progress | None) -> AppRun:
    from hopforge.sim.run.program_run import run_program  # noqa: PLC0415  as above
    from hopforge.sim.run.simulation import Simulation  # noqa: PLC0415

    run = Simulation(packet_config(config), config.simulation.load, config.seed)
    done = run_program(run, progress)
    placed = run.placed
    assert placed is not None, "traffic.source is program"
    second = cycle_ns(config) * 1e-9
    ranks = run.state["rank"][: placed.program.ranks]
    message = run.state["message"][: placed.program.messages]
    remote = placed.host[placed.program.source] != placed.host[placed.program.destination]
    lookups = lookup_totals(run.state.lookup)
    return _result(
        config, run.topology, placed, cpu=done.cpu_seconds,
        latency=(message["arrived"] - message["started"])[remote] * second,
        finish=ranks["finished"] * second, waiting=ranks["waited"] * second, computing=ranks["computed"] * second,
        miss_share=1 - lookups["hit_rate"] if lookups["lookups"] else float(config.app.lookup != "hit"),
        visits=(int(run.state["hops_sum"]), int(run.state["output_port"]["flits"].sum())),
    )


ENGINES: dict[str, Callable[[Config, Progress | None], AppRun]] = {"flow": _run_flow, "packet": _run_packet}


def cycle_ns(config: Config) -> float:
    """Return the length of a cycle of the router simulator: a flit at the rate of a link, or that of the router."""
    if config.router.model == "input_output_queued":
        return queued_cycle_ns(config.router)
    return config.traffic.flit_bytes * 8 / config.timing.link_gbps


def sized_router(config: Config) -> Config:
    """Return the configuration with flits and buffers that keep links busy, where the file leaves them open.

    ``traffic.flit_bytes``: 64. ``router.buffer_flits``: the next power of two to what a link carries while a flit goes
    to the next router and its credit comes back, twice a switch and a cable.
    """
    if "flit_bytes" not in config.traffic.model_fields_set:
        traffic = config.traffic.model_copy(update={"flit_bytes": FLIT_BYTES})
        config = config.model_copy(update={"traffic": traffic})
    if "buffer_flits" not in config.router.model_fields_set:
        flits = 2 * (switch_ns(config) + config.timing.cable_ns) / cycle_ns(config)
        router = config.router.model_copy(update={"buffer_flits": min(1 << ceil(log2(max(flits, 1.0))), MOST_FLITS)})
        config = config.model_copy(update={"router": router})
    return config


def packet_config(config: Config) -> Config:
    """Return the configuration with which the router simulator runs the program in the times of `timing` and `app`.

    A hop takes 3 + rc_cycles + L cycles and a host link L' (router.md): L and L' are chosen so that a route through n
    routers takes n switches and n + 1 cables, to the nearest cycle and at least one cycle a link. Input-output-queued
    routers keep the times in ns of section `router`.

    Raises
    ------
    ApplicationError
        Input-output-queued routers with another `lookup` than `hit`: they have no lookup engines.
    """
    cycle, timing, app = cycle_ns(config), config.timing, config.app
    queued = config.router.model == "input_output_queued"
    if queued and app.lookup != "hit":
        raise ApplicationError(f"app.lookup: must be hit with router.model=input_output_queued, not {app.lookup}")
    in_caches = app.lookup == "cache"
    route = config.lookup.pipeline_depth + 1 if in_caches else config.router.rc_cycles
    inside = 3 + route
    hop = (switch_ns(config) + timing.cable_ns) / cycle
    ends = (switch_ns(config) + 2 * timing.cable_ns) / cycle
    traffic = config.traffic.model_copy(update={
        "source": "program",
        "matched_bytes": app.buffered_bytes,
        "injection": "messages" if app.injection == "queued" else "packets",
        "eager_bytes": app.eager_bytes,
        "cycles_per_flop": 0.0 if app.host_gflops is None else 1 / (app.host_gflops * cycle),
        "cycles_per_second": 1e9 / cycle,
    })
    lookup = config.lookup
    if in_caches:
        cycles = max(1, round(timing.miss_penalty_ns / cycle) - MISS_CYCLES)
        tcam = lookup.tcam.model_copy(update={"latency_cycles": cycles})
        lookup = lookup.model_copy(update={"tcam": tcam})
    router = config.router if queued else config.router.model_copy(update={
        "route_computation": "lookup" if in_caches else config.router.route_computation,
        "rc_cycles": 0 if in_caches else config.router.rc_cycles,
        "link_latency_cycles": max(1, round(hop) - inside),
        "global_latency_cycles": None,
        "host_latency_cycles": max(1, round((ends - inside - 1) / 2)),
    })
    routing = config.routing
    if config.topology.kind == "torus" and routing.algorithm == "dor":  # the routes of engine flow
        routing = routing.model_copy(update={"ties": "key"})
    sections = {"traffic": traffic, "router": router, "routing": routing, "lookup": lookup}
    return config.model_copy(update=sections)


def _result(
    config: Config,
    topology: Topology,
    placed: PlacedProgram,
    *,
    latency: Any,
    cpu: float,
    finish: Any,
    waiting: Any,
    computing: Any,
    miss_share: float,
    backend: str = "",
    visits: tuple[int, int] | None = None,
) -> AppRun:
    program = placed.program
    local = placed.host[program.source] == placed.host[program.destination]
    table = rank_table(program, placed.host, finish=finish, waiting=waiting, computing=computing)
    packets, flits = switch_visits(config, topology, placed) if visits is None else visits
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


def app_rows(run: AppRun) -> list[tuple[str, str]]:
    """Say what `hopforge app` shows: subject and words."""
    found = run.found
    latency = []
    if found.message_latency_s is not None:
        latency.append(("message latency", f"{found.message_latency_s * 1e6:.4g} µs (mean)"))
    local = f", {found.local_messages:,} of them within a host" if found.local_messages else ""
    return [
        ("program", f"{found.program}, {found.ranks} ranks"),
        ("engine", found.engine + (f" ({found.backend})" if found.backend else "")),
        ("makespan", f"{found.makespan_s:.6g} s"),
        ("a rank", f"waits {found.waiting_share:.1%} of it, computes {found.computing_share:.1%}"),
        ("messages", f"{found.messages:,} with {found.payload_bytes:,} bytes{local}"),
        *latency,
        ("lookups", f"{found.miss_share:.3%} miss"),
        ("energy", f"{found.energy_j:.4g} J in all switches; without caches {found.conventional_energy_j:.4g} J"),
        ("processor time", f"{found.cpu_seconds:.2f} s"),
    ]


def trace_rows(trace: Trace) -> list[tuple[str, str]]:
    """Say what `hopforge workload` shows: subject and words."""
    calls = Counter(action.name for program in trace.actions for action in program)
    flops = sum(action.amount for program in trace.actions for action in program if action.name == "compute")
    return [
        ("program", f"{trace.name}, {trace.ranks} ranks"),
        ("calls", ", ".join(f"{count:,} {name}" for name, count in calls.most_common())),
        ("operations", f"{flops:.6g}"),
    ]


def write_app(run: AppRun, folder: Path) -> None:
    """Write the measurement and the times of the ranks (CSV, Parquet), and the metadata to repeat it (JSON)."""
    with staged(folder) as scratch:
        write_tables(scratch, {
            "app": pd.DataFrame([asdict(run.found)]), "ranks": run.ranks, "energy": run.energy,
        })
        write_metadata(scratch, {**run_metadata(run.config), "found": asdict(run.found)})

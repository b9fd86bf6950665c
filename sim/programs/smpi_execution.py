"""Compiled MPI programs, run by SimGrid on the network of a configuration, and what they called."""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from hopforge.model.config import Config
from hopforge.model.config.workload import CollectivesConfig, MappingConfig, ProgramWorkload
from hopforge.model.output.results import run_metadata, staged, write_metadata, write_tables
from hopforge.model.output.times import time_words
from hopforge.model.topology import build
from hopforge.model.topology.degraded import with_degraded
from hopforge.model.topology.failed import refuse_failed
from hopforge.model.workload.compiled_program import compile_program
from hopforge.model.workload.program import Program
from hopforge.model.workload.read_trace import read_trace, write_trace
from hopforge.model.workload.trace import Trace, TraceError
from hopforge.sim.programs.rank_times import ProgramMeasurement, makespan, mean_share, rank_table
from hopforge.sim.programs.record_communicators import CommunicatorError, add_communicators, recorder
from hopforge.sim.programs.smpi_command import Progress, SmpiError, run_smpi, settings, smpirun_path
from hopforge.sim.programs.smpi_replay import computed_seconds, own_names, write_platform
from hopforge.sim.traffic.rank_hosts import map_ranks


@dataclass(frozen=True)
class ExecutionMeasurement(ProgramMeasurement):
    """Results of a compiled program. None: its calls cannot be matched.

    Attributes
    ----------
    status : int
        Exit status of the program.
    """

    messages: int | None
    payload_bytes: int | None
    waiting_share: float | None
    computing_share: float | None
    status: int


@dataclass(frozen=True, eq=False)
class Execution:
    """A finished program.

    Attributes
    ----------
    found : ExecutionMeasurement
        The whole program.
    ranks : DataFrame
        Of each rank: rank, host, finish_s and, if its calls can be matched, waiting_s, compute_s, sent_messages,
        sent_bytes.
    trace : Trace
        What the ranks called.
    unmatched : str
        Why the calls cannot be matched; empty if they can.
    untold : str
        Why the communicators of the calls are not recorded; empty if they are.
    """

    found: ExecutionMeasurement
    ranks: pd.DataFrame
    trace: Trace
    unmatched: str
    untold: str = ""


def run_executable(
    config: Config, executable: Path, ranks: int | None = None, arguments: Sequence[str] = (),
    progress: Progress | None = None,
) -> Execution:
    """Run a program that `smpicc` or `smpif90` compiled, and record what its ranks call.

    Computing takes what it takes here times ``app.machine_gflops`` / ``app.host_gflops``; nothing without
    `host_gflops`. What the ranks print goes to the terminal.

    Parameters
    ----------
    config : Config
        Sections `app` and `timing`, and what decides on routes; of `workload`, if it is a program, `mapping` and
        `collectives`.
    executable : Path
        The program.
    ranks : int, optional
        How many (default: one for each host).
    arguments : sequence of str
        Of the program.
    progress : callable, optional
        Called with the ranks that are at their end, and all.

    Raises
    ------
    SmpiError
        No such program, SimGrid is missing, or it failed: its own message.
    FailureError
        Parts of the network have failed.
    ProgramError
        Ranks wait for each other for ever.
    WorkloadError
        More ranks than hosts.
    """
    if not (executable.is_file() and os.access(executable, os.X_OK)):
        raise SmpiError(f"--program: {executable} is no program that can be run")
    refuse_failed(config.failed, "hopforge app --program")
    topology = with_degraded(build(config.topology, config.address), config.degraded, config.seed)
    workload = config.workload if isinstance(config.workload, ProgramWorkload) else None
    mapping, collectives = MappingConfig(), CollectivesConfig()
    if workload is not None:
        mapping, collectives = workload.mapping, workload.collectives
    count = topology.hosts if ranks is None else ranks
    host = map_ranks(mapping, count, topology, config.seed)
    smpirun_path()
    chosen = [*settings(config), *_speed(config), *own_names(count, collectives)]
    with tempfile.TemporaryDirectory(prefix="hopforge-smpi-") as name:
        folder = Path(name)
        write_platform(folder, config, topology, host)
        files = ["-hostfile", str(folder / "hosts"), "-platform", str(folder / "platform.xml"), "-trace-ti"]
        chosen.append(f"tracing/filename:{folder / 'trace'}")
        untold, options = "", list[str]()
        try:
            options = recorder(folder)
        except CommunicatorError as error:
            untold = str(error)
        words = [*options, *files, *(f"--cfg={item}" for item in chosen), str(executable.resolve()), *arguments]
        ended, status = run_smpi(words, count, Path.cwd(), progress, show=True)
        if not untold:
            try:
                add_communicators(folder / "trace_files", folder / "communicators")
            except CommunicatorError as error:
                untold = str(error)
        trace = read_trace(folder / "trace_files")
    trace = replace(trace, name=executable.name)
    table = pd.DataFrame({"rank": np.arange(count), "host": host, "finish_s": ended})
    found = ExecutionMeasurement(
        program=executable.name, engine="flow", backend="simgrid", seed=config.seed, ranks=count,
        makespan_s=makespan(ended), messages=None, payload_bytes=None, waiting_share=None, computing_share=None,
        status=status,
    )
    try:
        program = compile_program(trace, collectives)
    except TraceError as error:
        return Execution(found, table, trace, str(error), untold)
    return _with_messages(Execution(found, table, trace, "", untold), program, config)


def _speed(config: Config) -> list[str]:
    """Return the settings for computing: by the clock of this machine, or not at all."""
    app = config.app
    if app.host_gflops is None:
        return ["smpi/simulate-computation:no"]
    return [f"smpi/host-speed:{(app.machine_gflops or app.host_gflops) !r}Gf"]


def _with_messages(run: Execution, program: Program, config: Config) -> Execution:
    finish = run.ranks["finish_s"].to_numpy()
    computing = computed_seconds(program, config.app.host_gflops)
    waiting = np.maximum(finish - computing, 0.0)
    found = replace(
        run.found, messages=program.messages, payload_bytes=int(program.size_bytes.sum()),
        waiting_share=mean_share(waiting, finish), computing_share=mean_share(computing, finish),
    )
    table = rank_table(program, run.ranks["host"].to_numpy(), finish=finish, waiting=waiting, computing=computing)
    return replace(run, found=found, ranks=table)


def execution_rows(run: Execution) -> list[tuple[str, str]]:
    """Say what `hopforge app --program` shows: subject and words."""
    found = run.found
    rows = [
        ("program", f"{found.program}, {found.ranks} ranks"),
        ("engine", "flow (simgrid)"),
        ("makespan", time_words(found.makespan_s, 6)),
    ]
    if found.messages is None:
        rows.append(("messages", f"not counted: {run.unmatched}"))
    else:
        rows.append(("a rank", f"waits {found.waiting_share:.1%} of it, computes {found.computing_share:.1%}"))
        rows.append(("messages", f"{found.messages:,} with {found.payload_bytes:,} bytes"))
    if run.untold:
        rows.append(("communicators", f"not recorded, all calls count as of MPI_COMM_WORLD: {run.untold}"))
    if found.status:
        rows.append(("exit status", f"{found.status} (all ranks came to their end)"))
    return rows


def write_execution(config: Config, run: Execution, folder: Path) -> None:
    """Write measurement and ranks (CSV, Parquet), the metadata to repeat it (JSON), and the calls (folder trace)."""
    with staged(folder) as scratch:
        write_tables(scratch, {"app": pd.DataFrame([asdict(run.found)]), "ranks": run.ranks})
        write_trace(run.trace, scratch / "trace")
        write_metadata(scratch, {**run_metadata(config), "found": asdict(run.found)})

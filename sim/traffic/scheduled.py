"""Programs as graphs: a schedule of GOAL or traces of Chakra that are read, training, or any other program as one."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hopforge.model.apps.training_graph import training_schedule
from hopforge.model.config.workload import ChakraWorkload, ProgramWorkload, TraceWorkload, TrainingWorkload
from hopforge.model.shared import once
from hopforge.model.topology import Topology
from hopforge.model.workload.chakra_files import read_chakra
from hopforge.model.workload.compiled_program import compile_program
from hopforge.model.workload.goal_files import is_goal, read_goal
from hopforge.model.workload.program import Program
from hopforge.model.workload.program_schedule import program_schedule
from hopforge.model.workload.schedule import CALC, SEND, Schedule
from hopforge.model.workload.slow_ranks import slowed_schedule
from hopforge.model.workload.trace import Trace
from hopforge.model.workload.trace_line import MAX_COUNT
from hopforge.sim.traffic.packet_stream import WorkloadError
from hopforge.sim.traffic.placed import PlacedProgram, check_computing, link_ends, program_trace, slowed
from hopforge.sim.traffic.rank_hosts import map_ranks


def workload_schedule(
    config: ProgramWorkload, topology: Topology, seed: int, host_gflops: float | None,
    find: Callable[[int], NDArray[np.int32]] | None = None,
) -> Schedule:
    """Read the schedule of a workload, or write its program as one.

    Parameters
    ----------
    config : ProgramWorkload
        Section `workload`.
    topology : Topology
        The network: its hosts are the number of ranks if `config` does not say.
    seed : int
        Of generated graphs.
    host_gflops : float, optional
        Speed of a rank; of programs that count operations.
    find : callable, optional
        Number of ranks → their hosts, where that is not as `config.mapping` says.

    Raises
    ------
    GoalError, WorkloadError, TraceError, AppError
        A bad file, or a program that does not run so.
    """
    if config.collectives.in_network:
        raise WorkloadError(
            f"workload.collectives.{config.collectives.in_network[0]}: in_network is not for graphs "
            "(GOAL, Chakra, training with model or sizes) nor for what becomes one; name an algorithm of hosts"
        )
    if isinstance(config, ChakraWorkload):
        return slowed_schedule(once(("chakra", config), lambda: read_chakra(config)), config.computing, seed)
    if isinstance(config, TraceWorkload) and is_goal(config.file):
        read = once(("goal", config.file), lambda: read_goal(config.file))
        return slowed_schedule(read, config.computing, seed)
    check_computing(config, host_gflops, "app.host_gflops")
    if isinstance(config, TrainingWorkload) and config.is_graph:
        if find is not None:
            made = training_schedule(config, topology, find, seed, host_gflops)
        else:
            made = once(
                ("training", config, topology, seed, host_gflops),
                lambda: _training(config, topology, seed, host_gflops),
            )
        return slowed_schedule(made, config.computing, seed)
    trace = program_trace(config, topology.hosts // topology.host_links, seed)
    program = slowed(compile_program(trace, config.collectives), config, seed)
    return program_schedule(trace.name, program, host_gflops)


def _training(config: TrainingWorkload, topology: Topology, seed: int, host_gflops: float | None) -> Schedule:
    def place(ranks: int) -> NDArray[np.int32]:
        return map_ranks(config.mapping, ranks, topology, seed)

    return training_schedule(config, topology, place, seed, host_gflops)


def place_schedule(
    schedule: Schedule, config: ProgramWorkload, topology: Topology, seed: int, host: NDArray[np.int32] | None = None
) -> PlacedProgram:
    """Place the ranks of a schedule on hosts; its program has the messages of the sends, and no calls.

    `host`: where they are, if that is not as `config.mapping` says.

    Raises
    ------
    WorkloadError
        More ranks than hosts, a bad file, or a message of more than 2⁴⁸ bytes.
    """
    sends = np.flatnonzero(schedule.kind == SEND)
    size = np.maximum(schedule.size[sends], 1)
    largest = int(size.max(initial=0))
    if largest > MAX_COUNT:
        at = schedule.where(int(sends[size.argmax()]))
        raise WorkloadError(f"{at}: a message of {largest} bytes is larger than {MAX_COUNT}")
    ranks, nothing = schedule.ranks, np.empty(0, np.int64)
    program = Program(
        ranks=ranks, first=np.zeros(ranks + 1, np.int64), kind=nothing.astype(np.int8), operand=nothing,
        action=nothing.astype(np.int32), amount=nothing.astype(np.float64), source=schedule.rank[sends],
        destination=schedule.peer[sends].astype(np.int32), size_bytes=size.astype(np.int64),
    )
    empty = (nothing.astype(np.int32),) * ranks
    trace = Trace(schedule.name, (), empty, (schedule.file,) * ranks, empty)
    host = map_ranks(config.mapping, ranks, topology, seed) if host is None else host
    return PlacedProgram(trace, program, host, link_ends(program, host, topology, config.mapping))


def is_schedule(config: ProgramWorkload) -> bool:
    """Tell whether a workload is a schedule already: a file of GOAL, traces of Chakra, or training of a transformer."""
    if isinstance(config, TraceWorkload):
        return is_goal(config.file)
    return isinstance(config, ChakraWorkload) or counts_operations(config)


def untimed_schedule_rows(schedule: Schedule, host_gflops: float | None) -> list[tuple[str, str]]:
    """As `placed.untimed_rows`, of a schedule that was not read: what takes no time is no operation of it."""
    if host_gflops or schedule.file or bool((schedule.kind == CALC).any()):
        return []
    return [("computing", "takes no time without app.host_gflops, if anything computes")]


def counts_operations(config: ProgramWorkload) -> bool:
    """Tell whether a workload is a schedule whose times are operations over `app.host_gflops`."""
    return isinstance(config, TrainingWorkload) and config.is_graph

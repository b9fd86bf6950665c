"""Programs as graphs: a schedule of GOAL that is read, or any other program written as one."""

from hopforge.model.config.workload import ProgramWorkload, TraceWorkload
from hopforge.model.shared import once
from hopforge.model.workload.goal_files import is_goal, read_goal
from hopforge.model.workload.program import compile_program
from hopforge.model.workload.program_schedule import program_schedule
from hopforge.model.workload.schedule import Schedule
from hopforge.sim.traffic.placed import program_trace


def workload_schedule(config: ProgramWorkload, hosts: int, seed: int, host_gflops: float | None) -> Schedule:
    """Read the schedule of a workload, or write its program as one.

    Parameters
    ----------
    config : ProgramWorkload
        Section `workload`.
    hosts : int
        Hosts of the network, the number of ranks if `config` does not say.
    seed : int
        Of generated graphs.
    host_gflops : float, optional
        Speed of a rank; of programs that count operations.

    Raises
    ------
    GoalError, WorkloadError, TraceError, AppError
        A bad file, or a program that does not run so.
    """
    if is_schedule(config):
        assert isinstance(config, TraceWorkload), "only those are read"
        return once(("goal", config.file), lambda: read_goal(config.file))
    trace = program_trace(config, hosts, seed)
    return program_schedule(trace.name, compile_program(trace, config.collectives), host_gflops)


def is_schedule(config: ProgramWorkload) -> bool:
    """Tell whether a workload is a schedule already: a file of GOAL."""
    return isinstance(config, TraceWorkload) and is_goal(config.file)

"""A program made ready for the model LogGOPS; `hopforge check` asks here, so nothing slow is imported."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.config.workload import ProgramWorkload
from hopforge.model.topology import build
from hopforge.model.workload.schedule import Schedule
from hopforge.sim.traffic.rank_hosts import map_ranks
from hopforge.sim.traffic.scheduled import workload_schedule


@dataclass(frozen=True, eq=False)
class ScheduleSetup:
    """A schedule that is ready to run.

    Attributes
    ----------
    config : Config
        The file.
    schedule : Schedule
        What to run.
    host : ndarray, int32[rank]
        Host of each rank.
    """

    config: Config
    schedule: Schedule
    host: NDArray[np.int32]


def prepare_loggops(config: Config, workload: ProgramWorkload) -> ScheduleSetup:
    """Make a program ready for the engine loggops; ranks need hosts, though nothing runs on the network.

    Raises
    ------
    GoalError, WorkloadError, TraceError, AppError
        A bad file, a program that does not run so, or more ranks than hosts.
    """
    topology = build(config.topology, config.address)
    schedule = workload_schedule(workload, topology, config.seed, config.app.host_gflops)
    return ScheduleSetup(config, schedule, map_ranks(workload.mapping, schedule.ranks, topology, config.seed))

"""A program by the model LogGOPS: its run and what that tells."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from hopforge.model.config import Config
from hopforge.model.output.results import MEASURED, run_metadata, staged, write_metadata, write_tables
from hopforge.model.output.times import time_words
from hopforge.model.workload.schedule import SEND
from hopforge.sim.programs.graph_activity import GraphActivity, activity_rows, graph_activity
from hopforge.sim.programs.loggops_engine import LoggopsSettings, run_loggops
from hopforge.sim.programs.loggops_setup import ScheduleSetup
from hopforge.sim.programs.rank_times import ProgramMeasurement, mean_share
from hopforge.sim.traffic.scheduled import untimed_schedule_rows


@dataclass(frozen=True)
class LoggopsMeasurement(ProgramMeasurement):
    """Results of a schedule.

    Attributes
    ----------
    makespan : float
        When the last rank was at its end, in the unit of the schedule.
    operations, messages, payload_bytes : int
        All of it; what is sent.
    waiting_share : float
        Mean share of the makespan, until its own end, in which no cpu of a rank is busy.
    computing_share : float
        Mean share of the makespan that a rank computes, all its cpus together: up to their number.
    cpu_seconds : float
        Processor time of the engine.
    """

    makespan: float
    operations: int
    messages: int
    payload_bytes: int
    waiting_share: float
    computing_share: float
    cpu_seconds: float


@dataclass(frozen=True, eq=False)
class LoggopsRun:
    """A finished run.

    Attributes
    ----------
    config : Config
        What ran.
    found : LoggopsMeasurement
        The whole schedule.
    ranks : DataFrame
        Of each rank: rank, host, finish (in the unit of the schedule), finish_s, waiting_s, compute_s, sent_messages,
        sent_bytes.
    activity : GraphActivity
        What ranks did when.
    untimed : tuple of (str, str)
        What is said of computations that take no time.
    """

    config: Config
    found: LoggopsMeasurement
    ranks: pd.DataFrame
    activity: GraphActivity
    untimed: tuple[tuple[str, str], ...] = ()

    def rows(self) -> list[tuple[str, str]]:
        """Say what `hopforge app` shows: subject and words."""
        found, settings = self.found, self.config.app.loggops.settings
        values = " ".join(f"{letter} {value:.10g}" for letter, value in zip("LogGOS", settings, strict=True))
        return [
            ("program", f"{found.program}, {found.ranks} ranks"),
            ("engine", f"loggops: {values}"),
            ("makespan", f"{found.makespan:.12g} units, {time_words(found.makespan_s, 6)}"),
            ("a rank", f"waits {found.waiting_share:.1%} of it, computes {found.computing_share:.1%}"),
            *self.untimed,
            *activity_rows(self.activity),
            ("operations", f"{found.operations:,}; {found.messages:,} messages with {found.payload_bytes:,} bytes"),
            ("processor time", f"{found.cpu_seconds:.2f} s"),
        ]

    def write(self, folder: Path) -> None:
        """Write the measurement and the times of the ranks (CSV, Parquet), and the metadata to repeat it (JSON)."""
        with staged(folder) as scratch:
            write_tables(scratch, {
                "app": pd.DataFrame([asdict(self.found)]), "ranks": self.ranks, **self.activity.tables(),
            })
            found = {key: value for key, value in asdict(self.found).items() if key not in MEASURED}
            write_metadata(scratch, {**run_metadata(self.config), "found": found})


def run_schedule(setup: ScheduleSetup, progress: Callable[[int, int], None] | None = None) -> LoggopsRun:
    """Run a schedule by LogGOPS.

    Raises
    ------
    GoalError
        It cannot end.
    """
    config, schedule, loggops = setup.config, setup.schedule, setup.config.app.loggops
    times = run_loggops(schedule, LoggopsSettings(*loggops.settings), progress)
    seconds, rank = loggops.unit_ns * 1e-9, schedule.rank
    sends = schedule.kind == SEND
    sent = np.bincount(rank[sends], schedule.size[sends].astype(np.float64), schedule.ranks).astype(np.int64)
    makespan = float(times.finish.max(initial=0.0))
    ranks = pd.DataFrame({
        "rank": np.arange(schedule.ranks), "host": setup.host, "finish": times.finish,
        "finish_s": times.finish * seconds,
        "waiting_s": (times.finish - times.busy) * seconds, "compute_s": times.computed * seconds,
        "sent_messages": np.bincount(rank[sends], minlength=schedule.ranks), "sent_bytes": sent,
    })
    found = LoggopsMeasurement(
        program=schedule.name, engine="loggops", backend="", seed=config.seed, ranks=schedule.ranks,
        makespan_s=makespan * seconds, makespan=makespan, operations=schedule.operations, messages=int(sends.sum()),
        payload_bytes=int(sent.sum()), waiting_share=mean_share(times.finish - times.busy, times.finish),
        computing_share=mean_share(times.computed, times.finish), cpu_seconds=times.cpu_seconds,
    )  # fmt: skip
    untimed = tuple(untimed_schedule_rows(schedule, config.app.host_gflops))
    return LoggopsRun(config, found, ranks, graph_activity(schedule, times, seconds), untimed)

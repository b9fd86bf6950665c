"""What the commands run with routers that move flits: one load, a program, a series in bins of time, a sweep."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.topology import Topology
from hopforge.sim.failures.report import failure_rows
from hopforge.sim.run.first_runs import prepare_job
from hopforge.sim.run.jobs import Job, try_variants
from hopforge.sim.run.measurement import Measurement, measurement_rows, write_measurement
from hopforge.sim.run.model_runs import NetRun, Progress
from hopforge.sim.run.program_run import ProgramMeasurement, program_rows, run_program, write_program
from hopforge.sim.run.rate_time import rate_time
from hopforge.sim.run.run_lengths import run_lengths
from hopforge.sim.run.series_limits import series_cycles
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.run.unit_times import UnitTimes, placed_with_units, unit_times
from hopforge.sim.traffic.placed import untimed_rows

if TYPE_CHECKING:  # both load pandas
    from hopforge.sim.run.sweep import Sweep
    from hopforge.sim.run.time_series import TimeSeries


def refuse_diverged(run: Simulation) -> None:
    """Raise `DivergedError` if a run had agents whose training gave no numbers."""
    if run.agents is not None:
        run.agents.raise_if_diverged()


def agent_words(run: Simulation) -> str:
    """Say how the agents of a run are doing, if it has some."""
    return "" if run.agents is None else run.agents.words()


class LoadRun:
    """A run at one load."""

    unit = "cycles"

    def __init__(self, run: Simulation) -> None:
        self._run = run
        self._found: Measurement
        #: how its network was proved free of deadlock, for people
        self.proof = run.proof
        self.threads = run.threads.words

    def run(self, progress: Progress) -> None:
        """Warm up and measure."""
        warmup, _, most = run_lengths(self._run.config, self._run.built)
        self._found = self._run.run(lambda cycles: progress(min(cycles, warmup + most), warmup + most))

    def words(self) -> str:
        """How its agents are doing."""
        return agent_words(self._run)

    def values(self) -> dict[str, Any]:
        """Return the only row of its first table."""
        return self._found.row()

    def rows(self) -> list[tuple[str, str]]:
        """Latency, throughput, hops, channel loads, and what failed."""
        failures, agents = self._run.reconfiguration, self._run.agents
        rows = [("classes", self._run.plan.advice)] if self._run.plan.advice else []
        rows += measurement_rows(self._found, rate_time(self._run.config))
        rows += [] if failures is None else failure_rows(failures)
        starvation = self._run.starvation
        if starvation is not None and starvation.some:
            rows.append(("STARVED", starvation.words()))
        return rows + ([] if agents is None else agents.rows())

    def write(self, folder: Path, *, plots: bool = False) -> None:
        """Write the measurement and the loads of all channels."""
        write_measurement(self._run, self._found, folder, plots=plots)

    def refuse(self) -> None:
        """Raise `DivergedError`, after the results are kept, for agents whose training gave no numbers."""
        refuse_diverged(self._run)


class ProgramRun:
    """A run of the program of section `workload`, from begin to end."""

    unit = "messages"

    def __init__(self, run: Simulation, units: UnitTimes | None = None) -> None:
        self._run, self._units = run, units
        self._found: ProgramMeasurement
        #: as of `LoadRun`
        self.proof = run.proof
        self.threads = run.threads.words

    def run(self, progress: Progress) -> None:
        """Run until all ranks have ended."""
        self._found = run_program(self._run, progress, self._units)

    def words(self) -> str:
        """As of `LoadRun`."""
        return agent_words(self._run)

    def values(self) -> dict[str, Any]:
        """Return the only row of its first table."""
        return self._found.row()

    def rows(self) -> list[tuple[str, str]]:
        """Makespan and times of the ranks."""
        failures, agents = self._run.reconfiguration, self._run.agents
        assert self._run.placed is not None, "it is a program's"
        config = self._run.config
        rows = program_rows(self._found, rate_time(config))
        rows += untimed_rows(self._run.placed.program, config.traffic.cycles_per_flop, "traffic.cycles_per_flop")
        rows += [] if failures is None else failure_rows(failures)
        return rows + ([] if agents is None else agents.rows())

    def write(self, folder: Path, *, plots: bool = False) -> None:
        """Write makespan, ranks and the loads of all channels."""
        write_program(self._run, self._found, folder, plots=plots)

    def refuse(self) -> None:
        """As of `LoadRun`."""
        refuse_diverged(self._run)


class SeriesRun:
    """A run in bins of time."""

    def __init__(self, run: Simulation) -> None:
        series_cycles(run)
        self._run = run

    def run(self, progress: Progress, *, channels: bool = False) -> "tuple[TimeSeries, Topology]":
        """Run all bins."""
        from hopforge.sim.run.time_series import run_series  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

        return run_series(self._run, progress, channels=channels), self._run.topology

    def words(self) -> str:
        """As of `LoadRun`."""
        return agent_words(self._run)


class FlitRuns:
    """The runs of ``router.model`` input_queued and input_output_queued."""

    @property
    def sweep(self) -> "Sweep":
        """Variants × loads × seeds."""
        from hopforge.sim.run.flit_sweep import FLIT_SWEEP  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

        return FLIT_SWEEP

    def net(self, config: Config, load: float | None, seed: int | None, threads: int | None = 1) -> NetRun:
        """Make a run at one load ready, or one of the program of section `workload`.

        Raises
        ------
        UserError
            A load for a program, or a network that cannot be simulated so.
        """
        if load is not None and config.traffic.source == "program":
            raise UserError("--load is for sources with a load, not for traffic.source: program")
        drawn = config.seed if seed is None else seed
        placed = placed_with_units(config, drawn) if config.traffic.source == "program" else None
        offered = config.simulation.load if load is None else load
        run = Simulation(config, offered, drawn, placed=placed, threads=threads)
        if run.placed is not None:
            return ProgramRun(run, unit_times(config, run.placed))
        run_lengths(run.config, run.built)
        return LoadRun(run)

    def series(self, config: Config, load: float, seed: int) -> SeriesRun:
        """Make a run in bins of time ready."""
        return SeriesRun(Simulation(config, load, seed))

    def prepare_sweep(self, jobs: Sequence[Job]) -> None:
        """Make the first run of every variant ready: mistakes, proof of deadlock freedom."""
        try_variants(jobs, prepare_job)


FLIT_RUNS = FlitRuns()

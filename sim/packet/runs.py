"""What the commands run with ``router.model: packet``: one load, a series in bins of time, a sweep."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.topology import Topology
from hopforge.sim.failures.report import failure_rows
from hopforge.sim.packet.network import PacketNetwork
from hopforge.sim.packet.prepared import prepare_jobs, series_network
from hopforge.sim.packet.program_network import ProgramNetwork
from hopforge.sim.packet.program_run import (
    PacketProgramMeasurement,
    packet_program_rows,
    run_packet_program,
    write_packet_program,
)
from hopforge.sim.packet.simulation import PacketMeasurement, measurement_rows, run_packets, write_packets
from hopforge.sim.run.jobs import Job
from hopforge.sim.run.model_runs import NetRun, Progress
from hopforge.sim.traffic.placed import untimed_rows

if TYPE_CHECKING:  # both load pandas
    from hopforge.sim.run.sweep import Sweep
    from hopforge.sim.run.time_series import TimeSeries


class PacketRun:
    """A run until all messages have arrived."""

    unit = "packets"

    def __init__(self, network: PacketNetwork, threads: str = "") -> None:
        self._network, self.threads = network, threads
        self._found: PacketMeasurement

    def run(self, progress: Progress) -> None:
        """Run."""
        self._found = run_packets(self._network, progress)

    def values(self) -> dict[str, Any]:
        """Return the only row of its first table."""
        return self._found.row()

    def rows(self) -> list[tuple[str, str]]:
        """Lifetimes, throughput, detours, failures."""
        failures = self._network.failures
        if failures is not None:
            failures.note()
        return measurement_rows(self._found) + ([] if failures is None else failure_rows(failures))

    def write(self, folder: Path, *, plots: bool = False) -> None:
        """Write the measurement and the lifetimes by message."""
        write_packets(self._network.config, self._network, self._found, folder, plots=plots)

    def refuse(self) -> None:
        """Nothing learns here that could go wrong."""

    def words(self) -> str:
        """Nothing beside the progress: nothing learns here."""
        return ""


class PacketProgramRun:
    """A run of the program of section `workload`, from begin to end."""

    unit = "messages"

    def __init__(self, network: ProgramNetwork, threads: str = "") -> None:
        self._network, self.threads = network, threads
        self._found: PacketProgramMeasurement

    def run(self, progress: Progress) -> None:
        """Run until all ranks have ended."""
        self._found = run_packet_program(self._network, progress)

    def values(self) -> dict[str, Any]:
        """Return the only row of its first table."""
        return self._found.row()

    def rows(self) -> list[tuple[str, str]]:
        """Makespan, messages, lifetimes, detours, failures."""
        failures = self._network.failures
        speed, program = self._network.config.traffic.cycles_per_flop, self._network.placed.program
        rows = packet_program_rows(self._found) + untimed_rows(program, speed, "traffic.cycles_per_flop")
        return rows + ([] if failures is None else failure_rows(failures))

    def write(self, folder: Path, *, plots: bool = False) -> None:
        """Write the measurement and the times of the ranks; there is no picture of them."""
        write_packet_program(self._network, self._found, folder)

    def refuse(self) -> None:
        """As of `PacketRun`."""

    def words(self) -> str:
        """As of `PacketRun`."""
        return ""


class PacketSeriesRun:
    """A run in bins of time."""

    def __init__(self, network: PacketNetwork) -> None:
        self._network = network

    def run(self, progress: Progress, *, channels: bool = False) -> "tuple[TimeSeries, Topology]":
        """Run all bins; the loads of the channels are always kept."""
        from hopforge.sim.packet.series import run_packet_series  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

        return run_packet_series(self._network, progress), self._network.topology

    def words(self) -> str:
        """As of `PacketRun`."""
        return ""


class PacketRuns:
    """The runs of ``router.model: packet``."""

    @property
    def sweep(self) -> "Sweep":
        """Variants × loads × seeds."""
        from hopforge.sim.packet.sweep import PACKET_SWEEP  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

        return PACKET_SWEEP

    def net(self, config: Config, load: float | None, seed: int | None, threads: int | None = 1) -> NetRun:
        """Make a run at one load ready, or one of the program of section `workload`.

        Raises
        ------
        UserError
            A load for a program, or a network that cannot be simulated so.
        """
        chosen = config.seed if seed is None else seed
        alone = "" if threads in (None, 1) else "1: router.model is packet"
        if config.traffic.source == "program":
            if load is not None:
                raise UserError("--load is for sources with a load, not for traffic.source: program")
            return PacketProgramRun(ProgramNetwork(config, chosen), alone)
        return PacketRun(PacketNetwork(config, config.simulation.load if load is None else load, chosen), alone)

    def series(self, config: Config, load: float, seed: int) -> PacketSeriesRun:
        """Make a run in bins of time ready."""
        return PacketSeriesRun(series_network(config, load, seed))

    def prepare_sweep(self, jobs: Sequence[Job]) -> None:
        """Make the first run of every variant ready."""
        prepare_jobs(jobs)


PACKET_RUNS = PacketRuns()

"""Co-simulation of the generated table of Q-adaptive with its golden model: `hopforge cosim --part q_table`."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hopforge.gen.packages.q_table import q_table_name
from hopforge.gen.verilog.writer import to_verilog
from hopforge.hw.agents.q_table import QTable
from hopforge.model.config import Config
from hopforge.model.router.q_table import QTableParams
from hopforge.sim.benches.q_table import QTableTraffic, q_table_replay
from hopforge.sim.cosim.run import chosen_simulator, play, report_in
from hopforge.sim.drive.replay import Progress, ReplayResult
from hopforge.sim.drive.runner import SimulatorName

__all__ = ["QTableReport", "cosim_q_table"]

_LEAST_CYCLES = 2000


@dataclass(frozen=True)
class QTableReport:
    """What a co-simulation found.

    Attributes
    ----------
    name, simulator : str
        Top module and the simulator that ran it.
    params : QTableParams
        The table.
    seed, answers, detours, updates : int
        Of the traffic: answers compared, those that took another port than the minimal one, updates accepted.
    result : ReplayResult
        Cycles compared, cycles that differ, the first difference.
    """

    name: str
    simulator: SimulatorName
    params: QTableParams
    seed: int
    answers: int
    detours: int
    updates: int
    result: ReplayResult

    @property
    def passed(self) -> bool:
        """Whether every output was as expected in every cycle."""
        return self.result.mismatches == 0

    def rows(self) -> Iterator[tuple[str, str]]:
        """Return the report as (subject, words) for a table."""
        p, result = self.params, self.result
        yield "table", f"{self.name} on {self.simulator}, seed {self.seed}"
        yield "size", f"{p.rows} rows of {p.columns} estimates of {p.value_bits} bits"
        yield "cycles", f"{result.cycles}, every output compared in each"
        yield "answers", f"{self.answers}, {self.detours} of them another port than the minimal one"
        yield "updates", str(self.updates)
        yield "mismatches", result.words


def cosim_q_table(
    config: Config,
    *,
    simulator: SimulatorName | None = None,
    cycles: int | None = None,
    seed: int | None = None,
    waves: bool = False,
    output: Path,
    progress: Progress | None = None,
) -> QTableReport:
    """Compare the Verilog of the configured table with the golden table, every output in every cycle.

    Parameters
    ----------
    config : Config
        A dragonfly.
    cycles : int, optional
        With queries and updates; by default those of the configuration (``cosim.cycles``), at least 2000.
    simulator, seed, waves, output, progress
        As in `hopforge.sim.cosim.lookup.cosim`.

    Raises
    ------
    UserError
        A configuration that has no such table, or a tool that is missing or fails.
    """
    params, top = QTableParams.from_config(config), q_table_name(config)
    chosen = chosen_simulator(config, simulator)
    folder = output
    traffic = QTableTraffic(
        cycles=cycles or max(config.cosim.cycles, _LEAST_CYCLES), seed=config.seed if seed is None else seed
    )
    replay = q_table_replay(params, traffic)
    expected = {output.name: replay.expected[:, column] for column, output in enumerate(replay.outputs)}
    asked = replay.driven[:, replay.inputs.index("upd_valid")]
    verilog = to_verilog(QTable(params=params), top)
    with report_in(folder, config) as facts:
        run = play(chosen, verilog, top, replay, folder / chosen, waves=waves, progress=progress)
        report = QTableReport(
            top, chosen, params, traffic.seed, int(expected["resp_valid"].sum()), int(expected["resp_detour"].sum()),
            int((expected["upd_ready"] * asked).sum()), run.result,
        )  # fmt: skip
        facts.update(dict(report.rows()))
        facts["cycles"], facts["mismatches"] = run.result.cycles, run.result.mismatches
    return report

"""Co-simulation of the generated table of Q-adaptive with its golden model: `hopforge cosim --part q_table`."""

from pathlib import Path

from hopforge.gen.packages.q_table import q_table_name
from hopforge.hw.agents.q_table import QTable
from hopforge.model.config import Config
from hopforge.model.router.q_table import QTableParams
from hopforge.sim.benches.q_table import QTableTraffic, q_table_replay
from hopforge.sim.cosim.block import BlockReport, compare_block
from hopforge.sim.cosim.run import chosen_simulator
from hopforge.sim.drive.replay import Progress
from hopforge.sim.drive.runner import SimulatorName

__all__ = ["cosim_q_table"]

_LEAST_CYCLES = 2000


def cosim_q_table(
    config: Config,
    *,
    simulator: SimulatorName | None = None,
    cycles: int | None = None,
    seed: int | None = None,
    waves: bool = False,
    output: Path,
    progress: Progress | None = None,
) -> BlockReport:
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
    traffic = QTableTraffic(
        cycles=cycles or max(config.cosim.cycles, _LEAST_CYCLES), seed=config.seed if seed is None else seed
    )
    replay = q_table_replay(params, traffic)
    expected = {signal.name: replay.expected[:, column] for column, signal in enumerate(replay.outputs)}
    asked = replay.driven[:, replay.inputs.index("upd_valid")]
    answers, detours = int(expected["resp_valid"].sum()), int(expected["resp_detour"].sum())
    words = (
        ("size", f"{params.rows} rows of {params.columns} estimates of {params.value_bits} bits"),
        ("answers", f"{answers}, {detours} of them another port than the minimal one"),
        ("updates", str(int((expected["upd_ready"] * asked).sum()))),
    )
    return compare_block(
        config, "table", QTable(params=params), top, replay, words,
        simulator=chosen, seed=traffic.seed, waves=waves, output=output, progress=progress,
    )  # fmt: skip

"""What every co-simulation does alike: choose the simulator, play, write the report."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hopforge.gen.verilog.writer import tool_versions
from hopforge.model.config import Config
from hopforge.model.output.results import command_facts, staged
from hopforge.sim.drive.replay import Progress, Replay
from hopforge.sim.drive.runner import SimulatorName, SimulatorRun, check_simulator, replay_cocotb, replay_verilator

__all__ = ["chosen_simulator", "play", "report_in"]


def chosen_simulator(config: Config, simulator: SimulatorName | None) -> SimulatorName:
    """Return `simulator`, or the configured one, if all that it needs is here.

    Raises
    ------
    SimulatorError
        Naming the first tool that is missing and how to get it.
    """
    chosen = simulator or config.cosim.simulator
    check_simulator(chosen, cocotb=chosen == "icarus")
    return chosen


def play(
    simulator: SimulatorName,
    verilog: str,
    top: str,
    replay: Replay,
    folder: Path,
    *,
    blocks: Sequence[str] = (),
    waves: bool = False,
    progress: Progress | None = None,
) -> SimulatorRun:
    """Play on Icarus with cocotb, or on Verilator with a loop in C++; parameters as in `sim.drive.runner`."""
    if simulator == "verilator":
        return replay_verilator(verilog, top, replay, folder, blocks=blocks, waves=waves, progress=progress)
    return replay_cocotb(verilog, top, replay, folder, simulator="icarus", waves=waves, progress=progress)


@contextlib.contextmanager
def report_in(folder: Path, config: Config, name: str = "cosim.json") -> Iterator[dict[str, Any]]:
    """Yield what `name` in `folder` will hold: to it come the versions of our tools and the configuration.

    Nothing is written if the body fails.

    Raises
    ------
    ResultError
        The folder cannot be written, when the body begins or within it.
    """
    facts: dict[str, Any] = {}
    with staged(folder) as scratch:
        yield facts
        content = {
            **command_facts(),
            **facts,
            "versions": tool_versions(),
            **({"not_used": list(config.unused)} if config.unused else {}),
            "config": config.model_dump(mode="json"),
        }
        (scratch / name).write_text(json.dumps(content, indent=2) + "\n")

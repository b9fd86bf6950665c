"""Co-simulation of a block that needs no set-up: its Verilog plays what its golden model recorded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from amaranth.lib.wiring import Component

from hopforge.gen.verilog.writer import to_verilog
from hopforge.model.config import Config
from hopforge.sim.cosim.run import play, report_in
from hopforge.sim.drive.replay import Progress, Replay, ReplayResult
from hopforge.sim.drive.runner import SimulatorName

__all__ = ["BlockReport", "compare_block"]


@dataclass(frozen=True)
class BlockReport:
    """What the co-simulation of a block found.

    Attributes
    ----------
    block, name, simulator : str
        What it is, its top module, and the simulator that ran it.
    seed : int
        Of the traffic.
    words : tuple of (str, str)
        Size of the block and what the traffic did, as (subject, words).
    result : ReplayResult
        Cycles compared, cycles that differ, the first difference.
    waves : Path or None
        Waveforms, if wanted.
    """

    block: str
    name: str
    simulator: SimulatorName
    seed: int
    words: tuple[tuple[str, str], ...]
    result: ReplayResult
    waves: Path | None

    @property
    def passed(self) -> bool:
        """Whether every output was as expected in every cycle."""
        return self.result.mismatches == 0

    def rows(self) -> Iterator[tuple[str, str]]:
        """Return the report as (subject, words) for a table."""
        yield self.block, f"{self.name} on {self.simulator}, seed {self.seed}"
        yield from self.words
        yield "cycles", f"{self.result.cycles}, every output compared in each"
        if self.waves is not None:
            yield "waves", str(self.waves)
        yield "mismatches", self.result.words


def compare_block(
    config: Config,
    block: str,
    component: Component,
    top: str,
    replay: Replay,
    words: Sequence[tuple[str, str]],
    *,
    simulator: SimulatorName,
    seed: int,
    waves: bool,
    output: Path,
    progress: Progress | None,
) -> BlockReport:
    """Play `replay` to the Verilog of `component`, and write ``cosim.json`` in the folder `output`.

    Parameters
    ----------
    component : Component
        What becomes module `top`.
    block, words, seed
        As in `BlockReport`.
    simulator, waves, output, progress
        As in `hopforge.sim.cosim.lookup.cosim`.

    Raises
    ------
    UserError
        A tool that fails, or a folder that cannot be written.
    """
    verilog = to_verilog(component, top)
    with report_in(output, config) as facts:
        run = play(simulator, verilog, top, replay, output / simulator, waves=waves, progress=progress)
        report = BlockReport(block, top, simulator, seed, tuple(words), run.result, run.waves)
        first = run.result.first
        facts.update(
            top=top, simulator=simulator, seed=seed, **dict(words), cycles=run.result.cycles,
            mismatches=run.result.mismatches, first_mismatch=None if first is None else first._asdict(),
        )  # fmt: skip
    return report

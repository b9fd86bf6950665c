"""`hopforge fpga`: a bitstream for a board, and a report of what it takes."""

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hopforge.gen.fpga.board_design import BoardDesign, board_design
from hopforge.gen.fpga.boards import FpgaBoard
from hopforge.gen.fpga.tools import Placed, place_again, placed, run_tools, tool_commands
from hopforge.gen.fpga.top import FpgaTop
from hopforge.gen.fpga.vivado import vivado_files
from hopforge.model.board.registers import DesignKind
from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.output.destination import clear_folder
from hopforge.model.output.results import staged, write_text
from hopforge.model.progress import tell

__all__ = ["BuildOptions", "BuildReport", "build_for_board"]

_BITSTREAM = {"ecp5": ".bit", "ice40": ".bin"}


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """What is built.

    Parameters
    ----------
    design : str
        ``engine`` or ``network``.
    mhz : float, optional
        Clock; that of the board and the design by default.
    baud : int
        Rate of the serial line.
    seed : int
        Of placement.
    tries : int
        Placements at most, with seeds one after the other, until one keeps the clock; the fastest is kept.
    """

    design: DesignKind
    mhz: float | None = None
    baud: int = 115_200
    seed: int = 1
    tries: int = 4


@dataclass(frozen=True)
class BuildReport:
    """What a build gave.

    Attributes
    ----------
    board, design : str
        Board and name of the design.
    clock_mhz : float
        The clock that was wanted.
    placed : Placed, optional
        What the open tools made of it; None: a project for Vivado.
    files : tuple of str
        What to program, or the project.
    seconds : float
        Wall-clock time of the tools.
    notes : tuple of str
        What is not as the configuration says.
    tried : dict of float
        Highest clock (MHz) by seed of placement, in the order of the tries.
    """

    board: str
    design: str
    clock_mhz: float
    placed: Placed | None
    files: tuple[str, ...]
    seconds: float
    notes: tuple[str, ...] = ()
    tried: Mapping[int, float] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether the design keeps its clock."""
        return self.placed is None or self.placed.fmax_mhz >= self.clock_mhz

    @property
    def problem(self) -> str:
        """Say by how much the design misses its clock, and where; empty if it keeps it."""
        if self.placed is None or self.passed:
            return ""
        found = self.placed
        path = f"; worst path {found.path_ns:.1f} ns: {found.path[0]} -> {found.path[-1]}" if found.path else ""
        return f"{self.design} does not keep {self.clock_mhz:g} MHz, but {found.fmax_mhz:.1f} MHz{path}"

    def rows(self) -> Iterator[tuple[str, str]]:
        """Return the report as (subject, words)."""
        yield "design", f"{self.design} on {self.board}"
        for note in self.notes:
            yield "note", note
        if self.placed is not None:
            found = self.placed
            yield "clock", f"{self.clock_mhz:g} MHz wanted, {found.fmax_mhz:.1f} MHz reached"
            if len(self.tried) > 1:
                yield "placements", ", ".join(f"seed {seed}: {mhz:.1f} MHz" for seed, mhz in self.tried.items())
            for kind, used in found.used.items():
                if used:
                    yield kind, f"{used} of {found.available[kind]} ({100 * used / found.available[kind]:.0f} %)"
            yield "worst path", f"{found.path_ns:.1f} ns: {found.path[0]} -> {found.path[-1]}" if found.path else "none"
            yield "time", f"{self.seconds:.0f} s"
        yield "files", ", ".join(self.files)


def build_for_board(config: Config, board: FpgaBoard, options: BuildOptions, *, output: Path) -> BuildReport:
    """Build the design of a configuration for a board; ``fpga.json`` is the report.

    Raises
    ------
    UserError
        No such design, a tool is missing or fails, the design does not fit; options of placement with Vivado.
    """
    if board.tools == "vivado" and (options.seed, options.tries) != (BuildOptions.seed, BuildOptions.tries):
        raise UserError(f"--seed and --tries are for open tools; {board.title} is built by Vivado")
    hz = board.clock_hz(options.design, options.mhz)
    design = board_design(config, options.design, clock_hz=hz, baud=options.baud)
    if board.tools == "vivado":
        files = vivado_files(board, design)
        for name, text in files.items():
            write_text(output / name, text)
        report = BuildReport(board.title, design.name, hz / 1e6, None, tuple(files), 0.0, design.notes)
    else:
        report = _with_open_tools(board, design, options, output)
    facts = asdict(report) | {"passed": report.passed, "placed": report.placed and report.placed._asdict()}
    write_text(output / "fpga.json", json.dumps(facts, indent=2) + "\n")
    return report


def _with_open_tools(board: FpgaBoard, design: BoardDesign, options: BuildOptions, output: Path) -> BuildReport:
    tools = tool_commands(board)
    platform = board.make_platform()
    name = design.name
    plan = platform.prepare(
        FpgaTop(board=board, design=design.component), name,
        nextpnr_opts=f"--report {name}.json.report --timing-allow-fail --seed {options.seed}",
    )  # fmt: skip
    bitstream, work = f"{name}{_BITSTREAM[board.tools]}", output / "work"
    clear_folder(work)
    plan.extract(str(work))
    start, wanted_mhz = time.perf_counter(), design.identity.clock_hz / 1e6
    tried: dict[int, float] = {}
    best: Placed | None = None
    failed: list[str] = []
    for seed in range(options.seed, options.seed + options.tries):
        steps = "synthesis and placement" if best is None else "placement"
        tell(f"{name} for {board.title}: {steps}, seed {seed}, try {seed - options.seed + 1} of {options.tries}")
        if best is not None:
            place_again(plan.script, work, seed)
        try:
            run_tools(plan.script, work, tools, name=name, board=board)
        except UserError:
            if best is None:
                raise
            failed.append(f"the tools fail with seed {seed}")  # such a placement cannot be routed; one before can
            continue
        found = placed(work / f"{name}.json.report")
        tried[seed] = found.fmax_mhz
        if best is None or found.fmax_mhz > best.fmax_mhz:
            best = found
            shutil.copyfile(work / bitstream, work / f"best{_BITSTREAM[board.tools]}")
        if found.fmax_mhz >= wanted_mhz:
            break
    with staged(output) as made:
        shutil.copyfile(work / f"best{_BITSTREAM[board.tools]}", made / bitstream)
    seconds = time.perf_counter() - start
    return BuildReport(board.title, name, wanted_mhz, best, (bitstream,), seconds, (*design.notes, *failed), tried)

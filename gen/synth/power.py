"""Energy of a mapped netlist in a cycle, as OpenSTA estimates it from the cells and an activity of the inputs."""

import re
import shutil
import subprocess
from pathlib import Path

from hopforge.gen.synth.cells import Library

__all__ = ["cycle_energy_pj"]

_TIMEOUT_S = 300


def cycle_energy_pj(
    netlist: Path, top: str, library: Library, period_ns: float, folder: Path, *, activity: float = 0.5
) -> float | None:
    """Return the energy of a clock cycle in pJ; None if there is no OpenSTA or it finds none.

    Cells and their leakage, without wires and clock tree; activities are propagated from the inputs, not simulated.

    Parameters
    ----------
    netlist : Path
        Verilog of cells of the library.
    top : str
        Its module, with the clock ``clk``.
    library : Library
        The cells.
    period_ns : float
        Clock period.
    folder : Path
        For the files of the run.
    activity : float
        Changes of each input per cycle.
    """
    program = shutil.which("sta")
    if program is None:
        return None
    (folder / "cells.lib").write_text(library.text)
    (folder / "power.tcl").write_text(
        f"read_liberty cells.lib\nread_verilog {netlist.resolve()}\nlink_design {top}\n"
        f"create_clock -name clk -period {period_ns} [get_ports clk]\n"
        f"set_power_activity -input -activity {activity}\nreport_power\nexit\n"
    )
    try:
        done = subprocess.run(
            [program, "-no_splash", "-exit", "power.tcl"], cwd=folder, capture_output=True, text=True,
            timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    return energy_of(done.stdout, period_ns)


def energy_of(report: str, period_ns: float) -> float | None:
    """Return pJ per cycle from a report of power in W."""
    total = re.search(r"^Total\s+\S+\s+\S+\s+\S+\s+([\d.eE+-]+)", report, re.MULTILINE)
    return None if total is None else float(total[1]) * period_ns * 1000

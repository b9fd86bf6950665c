"""The solver abc, which comes with pyosys, in a process of its own, and what yosys writes for it."""

import subprocess
from pathlib import Path

import pyosys

from hopforge.gen.tools.processor_time import run_within
from hopforge.gen.tools.yosys import YosysError, yosys_version

__all__ = ["run_abc", "to_gates"]

_PROGRAM = Path(pyosys.__file__).with_name("yosys-abc")


def run_abc(commands: str, folder: Path, *, timeout_s: float) -> str | None:
    """Run commands, separated by semicolons, with `folder` as working directory and return what abc says.

    Parameters
    ----------
    commands : str
        Of abc.
    folder : Path
        Files are relative to it.
    timeout_s : float
        Limit of processor time in seconds.

    Returns
    -------
    str or None
        None: it takes longer, or ends with an error.

    Raises
    ------
    YosysError
        It is not there.
    """
    if not _PROGRAM.exists():
        raise YosysError(f"pyosys {yosys_version()} has no {_PROGRAM.name} beside it")
    try:
        done = run_within([str(_PROGRAM), "-q", commands], folder, timeout_s)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None


def to_gates(write: str) -> list[str]:
    """Return commands of yosys that make AND gates of a flattened module without memories, and `write` it.

    What is not defined is 0.
    """
    return ["techmap", "dffunmap", "setundef -zero", "simplemap", "aigmap", "opt_clean", write]

"""Yosys scripts, each in a process of its own.

pyosys prints to the standard output of its process and ends it on an error, so that a script never runs in ours.
"""

import importlib.metadata
import re
import shlex
import subprocess
import sys
from pathlib import Path

from hopforge.gen.tools.processor_time import run_within
from hopforge.model.errors import UserError

__all__ = ["YosysError", "run_yosys", "yosys_program", "yosys_version"]

_RUNNER = "import sys; from pyosys import libyosys; libyosys.run_pass('script ' + sys.argv[1])"
#: called as yosys is: options, -l LOG, SCRIPT
_PROGRAM = """\
#!/bin/sh
log=yosys.log
while [ $# -gt 1 ]; do [ "$1" != -l ] || log=$2; shift; done
{python} -c {runner} "$1" >"$log" 2>&1 && exit
grep -a ERROR: "$log" || tail -n 5 "$log"
exit 1
"""


class YosysError(UserError):
    """A script failed; the message is the error line of yosys."""


def yosys_version() -> str:
    """Version of the installed pyosys."""
    return importlib.metadata.version("pyosys")


def run_yosys(script: str, folder: Path, *, name: str = "script", timeout_s: float = 600) -> str:
    """Run a script with `folder` as working directory and return its log.

    Parameters
    ----------
    script : str
        Yosys commands, one per line; file names relative to `folder`.
    folder : Path
        Receives ``<name>.ys`` and what the script writes.
    name : str
        Stem of the script file.
    timeout_s : float
        Limit of processor time in seconds.

    Raises
    ------
    YosysError
        If yosys reports an error, dies, or takes longer than `timeout_s`.
    """
    file = folder / f"{name}.ys"
    file.write_text(script)
    try:
        done = run_within([sys.executable, "-c", _RUNNER, file.name], folder, timeout_s)
    except subprocess.TimeoutExpired:
        raise YosysError(f"yosys: {name} took longer than {timeout_s:g} s of processor time") from None
    if done.returncode:
        lines = re.findall(r"^(?:ERROR|.*\bERROR): (.*)$", done.stdout + done.stderr, re.MULTILINE)
        reason = lines[-1] if lines else f"exit status {done.returncode}"
        raise YosysError(f"yosys: {name}: {reason}")
    return done.stdout


def yosys_program(folder: Path) -> Path:
    """Write a program to `folder` that is called as yosys is, ``… -l LOG SCRIPT``, and return its path."""
    file = folder / "yosys"
    file.write_text(_PROGRAM.format(python=shlex.quote(sys.executable), runner=shlex.quote(_RUNNER)))
    file.chmod(0o755)
    return file

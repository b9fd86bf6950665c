"""What slang says about Verilog: the strictest reader of the standard, as a Python package."""

import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from hopforge.gen.tools.processor_time import run_within
from hopforge.model.errors import UserError
from hopforge.model.requirements import pip_command

__all__ = ["missing_slang", "slang_findings"]

# In a process of its own: slang prints to the standard output of its process, and its driver exists once in each.
_RUNNER = """
import sys
from pyslang.driver import Driver
driver = Driver()
driver.addStandardArgs()
sound = driver.parseCommandLine(" ".join(["slang", *sys.argv[1:]])) and driver.processOptions()
sound = sound and driver.parseAllSources()  # what it says about a bad text comes with the rest
sys.exit(0 if driver.runFullCompilation(quiet=True) and sound else 1)
"""
_MESSAGE = re.compile(r"^\S+?:(\d+):\d+: (error|warning): (.*)$", re.MULTILINE)


def missing_slang() -> str | None:
    """Return how to get slang; None if it is there."""
    return None if importlib.util.find_spec("pyslang") else pip_command("pyslang")


def slang_findings(text: str, top: str, *, timeout_s: float = 300) -> tuple[str, ...]:
    """Elaborate and analyse Verilog as the driver of slang does, with its default warnings.

    Parameters
    ----------
    text : str
        SystemVerilog.
    top : str
        Name of the top module.
    timeout_s : float
        Limit of processor time in seconds.

    Returns
    -------
    tuple of str
        ``slang error: LINE: …`` and warnings, in the order of slang; empty for clean text.

    Raises
    ------
    UserError
        If slang is missing or takes too long.
    """
    missing = missing_slang()
    if missing:
        raise UserError(f"slang is missing: {missing}")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / f"{top}.sv").write_text(text, encoding="utf-8")
        options = ["--top", top, "--error-limit=0", "--color-diagnostics=false", f"{top}.sv"]
        try:
            done = run_within([sys.executable, "-c", _RUNNER, *options], Path(folder), timeout_s)
        except subprocess.TimeoutExpired:
            raise UserError(f"slang took longer than {timeout_s:g} s of processor time") from None
    said = done.stdout + done.stderr
    found = tuple(f"slang {kind}: line {line}: {message}" for line, kind, message in _MESSAGE.findall(said))
    if done.returncode and not found:
        return (f"slang: exit status {done.returncode}: {said.strip()[-200:]}",)
    return found

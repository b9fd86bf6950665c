"""Where machine code is kept on disk: one folder for each state of the program, so that none of it is ever stale.

numba looks at the file of a kernel only, not at those whose functions and constants went into its machine code. So the
name of the folder is the digest of all files that kernels are made of: `model` and `sim` (`hw` and `gen` hold no
kernels, nor does a kernel use anything of theirs). Where the files lie does not count (`program_locator`). For a
function of another file, such as a user's routing algorithm, all loaded modules count too that are not installed
packages.

A folder that no process uses is deleted when `KEPT` newer ones exist.
"""

import atexit
import hashlib
import multiprocessing
import os
import shutil
import site
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import config
from numba.core.compiler_lock import global_compiler_lock

from hopforge.model.kernel.index_lock import lock_indices
from hopforge.model.kernel.user_folders import usable, user_cache

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

#: folders that stay, whether they are used or not
KEPT = 8
#: a folder whose users are unknown (a file system without locks) stays for so long
UNLOCKED_S = 7 * 24 * 3600.0
#: packages whose files decide about machine code
PACKAGES = ("model", "sim")

_ROOT = Path(__file__).parents[2]
#: numba's settings (NUMBA_OPT=0) that change machine code
_CODE_SETTINGS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")
#: where installed packages and the standard library lie
_INSTALLED = tuple(
    f"{path}{os.sep}"
    for path in {
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib", "scripts")),
        *site.getsitepackages(),
        site.getusersitepackages(),
    }
    if path
)
_LOCK_FILE = "in-use"
_LOCATOR = "hopforge.model.kernel.program_locator.ProgramLocator"


def program_root() -> Path:
    """Return the folder of the package hopforge."""
    return _ROOT


class Program:
    """The files of the program as they were when they were read.

    Parameters
    ----------
    root : Path
        Folder of the package hopforge.
    """

    def __init__(self, root: Path = _ROOT) -> None:
        self._files: dict[str, tuple[tuple[int, int, int], bytes]] = {}
        for package in PACKAGES:
            for path in _python_files(str(root / package)):
                self._files[path] = _read(path)
        asked = [getattr(config, name, None) for name in _CODE_SETTINGS]
        versions = f"{sys.version} {numba.__version__} {llvmlite.__version__} {np.__version__} {asked}"
        text = hashlib.sha256(versions.encode())
        for path, (_, content) in self._files.items():
            text.update(f"{Path(path).relative_to(root).as_posix()}\0".encode() + content)
        #: SHA-256, hexadecimal; empty where there are no files to read (a zipped package)
        self.digest = text.hexdigest() if self._files else ""
        self._prefixes = tuple(f"{root / package}{os.sep}" for package in PACKAGES)
        self._checked: set[str] = set()
        self._loaded = 0
        self._unchanged = True

    def holds(self, file: str) -> bool:
        """Whether a file is one of the program's."""
        return file.startswith(self._prefixes)

    def unchanged(self) -> bool:
        """Whether the modules loaded so far came from files with the contents that the digest tells.

        Somebody may edit the program while it runs; what it loads afterwards would not belong to the digest.
        """
        if self._unchanged and len(sys.modules) != self._loaded:
            self._loaded = len(sys.modules)
            for name, module in list(sys.modules.items()):
                if name in self._checked:
                    continue
                self._checked.add(name)
                file = _file_of(module)
                if self.holds(file) and not self._same(file):
                    self._unchanged = False
                    sys.stderr.write(f"hopforge: {file} has changed since the start: kernels are not kept on disk\n")
                    break
        return self._unchanged

    def _same(self, file: str) -> bool:
        known = self._files.get(file)
        if known is None:
            return False
        return known[0] == _stamp(Path(file).stat()) or known[1] == _read(file)[1]


def _python_files(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _python_files(entry.path)
        elif entry.name.endswith(".py"):
            yield entry.path


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size


def _read(path: str) -> tuple[tuple[int, int, int], bytes]:
    """Stamp and digest of a file."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - pathlib would take half of the time
        return _stamp(os.fstat(file.fileno())), hashlib.sha256(file.read()).digest()


def _file_of(module: Any) -> str:
    file = getattr(module, "__dict__", {}).get("__file__")
    return file if isinstance(file, str) else ""


class UserModules:
    """Modules that belong neither to hopforge nor to an installed package, and the digests of their files."""

    def __init__(self) -> None:
        # a module counts with the contents that were loaded; one that is loaded anew has another specification
        self._digests: dict[str, tuple[object, bytes]] = {}

    def digest(self, program: Program, own_file: str) -> str:
        """Digest of the program and of all such modules that are loaded now, with `own_file`."""
        text = hashlib.sha256(program.digest.encode())
        files = set()
        for name, module in sorted(sys.modules.items()):
            file = _file_of(module)
            if not file or file.startswith((*_INSTALLED, f"{_ROOT}{os.sep}")) or "dist-packages" in Path(file).parts:
                continue
            loaded = getattr(module, "__spec__", None) or module
            known = self._digests.get(name)
            if known is None or known[0] is not loaded:
                known = self._digests[name] = loaded, _content(file)
            text.update(f"{name}\0".encode() + known[1])
            text.update(_plain_values(module))
            files.add(file)
        if own_file not in files:
            text.update(_content(own_file))
        return text.hexdigest()


def _plain_values(module: Any) -> bytes:
    """Digest of the numbers, texts and arrays that a module holds now: numba writes them into machine code."""
    text = hashlib.sha256()
    for name, value in sorted(vars(module).items()):
        if not name.startswith("__"):
            text.update(_plain_value(name, value))
    return text.digest()


def _plain_value(name: str, value: Any) -> bytes:
    if isinstance(value, tuple):
        return b"".join(_plain_value(f"{name}[{place}]", one) for place, one in enumerate(value))
    if isinstance(value, np.ndarray):
        return f"{name} {value.dtype} {value.shape}\0".encode() + value.tobytes()
    if isinstance(value, int | float | complex | str | bytes | np.generic):
        return f"{name} {value!r}\0".encode()
    return b""


def _content(file: str) -> bytes:
    try:
        return _read(file)[1]
    except OSError:
        return b""


#: the program as it was read when the first kernel was declared
program = cache(Program)
_user_modules = UserModules()


@contextmanager
def cache_folder(function: Callable[..., Any]) -> Iterator[bool]:
    """Let numba keep the machine code of kernels that are declared meanwhile in the folder that fits `function`.

    One thread at a time: the folder is a setting of the process. (Two at once left machine code in the working folder.)

    Yields
    ------
    bool
        Whether it may be kept at all.
    """
    folder = folder_of(function)
    if folder is None:
        yield False
        return
    # numba would otherwise go on to its own folders where ours cannot be written (a full disk)
    ours = program().holds(function.__code__.co_filename)
    wanted = {"CACHE_DIR": str(folder), "CACHE_LOCATOR_CLASSES": _LOCATOR if ours else "UserProvidedCacheLocator"}
    with global_compiler_lock:  # numba's, which declared kernels may need: a lock of ours could wait for it forever
        before = {name: getattr(config, name) for name in wanted if hasattr(config, name)}
        for name in before:
            setattr(config, name, wanted[name])
        try:
            yield True
        finally:
            for name, value in before.items():
                setattr(config, name, value)


def folder_of(function: Callable[..., Any]) -> Path | None:
    """Folder for the machine code of `function`; None: it must not be kept."""
    known = program()
    if not known.digest or not known.unchanged():
        return None
    file = function.__code__.co_filename
    if known.holds(file):
        return _folder(known.digest[:32])
    return _folder(_user_modules.digest(known, file)[:32]) if Path(file).is_file() else None


@cache
def _base() -> tuple[Path, bool]:
    """Return the folder of all folders, and whether it lives as long as this process only."""
    candidates = []
    chosen = str(vars(config)["CACHE_DIR"])  # NUMBA_CACHE_DIR
    if chosen:
        candidates.append((Path(chosen) / "hopforge", False))
    with suppress(RuntimeError):  # nobody's home
        candidates.append((user_cache() / "hopforge" / "kernels", True))
    candidates.append((_ROOT / "__pycache__" / "kernels", False))
    for path, private in candidates:
        if usable(path, private):
            return path, False
    user = os.getuid() if hasattr(os, "getuid") else 0
    path = Path(tempfile.gettempdir()) / f"hopforge-kernels-{user}"
    kept = usable(path, private=True)
    if not kept:
        path = Path(tempfile.mkdtemp(prefix="hopforge-kernels-"))
        atexit.register(shutil.rmtree, path, ignore_errors=True)
    if multiprocessing.parent_process() is None:
        tried = " nor ".join(str(candidate) for candidate, _ in candidates)
        sys.stderr.write(f"hopforge: kernels are kept in {path}: neither {tried} can be written\n")
    return path, not kept


@cache
def _folder(name: str) -> Path | None:
    """Make a folder, or take the one that is there, and hold it until the process ends."""
    base, passing = _base()
    folder = base / name
    new = not folder.is_dir()
    try:
        _hold(folder)
    except OSError:  # a full disk
        return None
    if new and not passing:
        delete_unused(base)
    return folder


def _hold(folder: Path) -> None:
    """Mark a folder as in use as long as this process, or a child, has its lock file open."""
    for _ in range(100):
        folder.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):  # deleted meanwhile by another process
            lock = os.open(folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)  # never closed
            if fcntl is not None:
                with suppress(OSError):  # a file system without locks
                    fcntl.flock(lock, fcntl.LOCK_SH)
            os.utime(folder)
            if (folder / _LOCK_FILE).stat().st_ino == os.fstat(lock).st_ino:
                return
            os.close(lock)
    raise OSError(f"{folder} vanishes again and again")


def delete_unused(base: Path) -> None:
    """Delete the folders below `base` that no process uses, but for the `KEPT` newest."""
    found = []
    for folder in base.iterdir():
        with suppress(OSError):
            if (folder / _LOCK_FILE).is_file():  # one of ours
                found.append((folder.stat().st_mtime, folder))
    for used, folder in sorted(found, reverse=True)[KEPT:]:
        with suppress(OSError), (folder / _LOCK_FILE).open("ab") as lock:
            if fcntl is not None:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                except OSError:  # a file system without locks
                    if time.time() - used < UNLOCKED_S:
                        continue
            elif time.time() - used < UNLOCKED_S:
                continue
            shutil.rmtree(folder, ignore_errors=True)


lock_indices(lambda folder: _base()[0] in folder.parents)

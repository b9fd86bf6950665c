"""Folders in which hopforge keeps what it can make again: compiled kernels, traces, graphs."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def user_cache() -> Path:
    """Return the folder in which programs of this user keep what they can make again.

    Raises
    ------
    RuntimeError
        Nobody's home.
    """
    named = os.environ.get("XDG_CACHE_HOME", "")
    return Path(named) if Path(named).is_absolute() else Path.home() / ".cache"


def user_folder(name: str) -> Path | None:
    """Return a folder of the user's own that outlives the process; None if there is none that can be written."""
    with suppress(RuntimeError):  # nobody's home
        path = user_cache() / "hopforge" / name
        if usable(path, private=True):
            return path
    return None


def usable(path: Path, private: bool) -> bool:
    """Tell whether a folder is there, or can be made, and written; a private one must be nobody else's.

    numba unpickles what it finds there.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat() if private else path.stat()
        if private and hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
            return False
        tempfile.TemporaryFile(dir=path).close()
    except OSError:
        return False
    return path.is_dir() and not (private and path.is_symlink())

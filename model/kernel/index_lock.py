"""One process at a time adds machine code to the index of a function.

numba keeps the code of each signature in a numbered file, and takes the next number from the index as it read it. Two
processes that compile two signatures of one function at once took the same number: from then on one of the signatures
found the other's machine code.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numba.core.caching import IndexDataCacheFile

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

LOCK_FILE = "index-lock"


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Wait until no other process writes in `folder`, and keep others from it."""
    if fcntl is None:
        yield
        return
    lock = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def lock_indices(ours: Callable[[Path], bool]) -> None:
    """Let numba add to an index in a folder of `ours` only while no other process does; others are left alone."""
    save = IndexDataCacheFile.save

    def save_alone(self: Any, key: Any, data: Any) -> None:
        folder = Path(self._cache_path)
        if not ours(folder):
            save(self, key, data)
            return
        with writing(folder):
            save(self, key, data)

    IndexDataCacheFile.save = save_alone  # type: ignore[method-assign]

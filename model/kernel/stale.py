"""Keeps numba's disk cache honest: a cached kernel also depends on the kernels of other files that it calls."""

import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any


def forget_stale(kernel: Callable[..., Any], *modules: ModuleType) -> None:
    """Drop the cached machine code of a file if a module whose kernels or constants it uses is newer.

    numba looks at a kernel's own file only, and would go on with old code of the others.

    Parameters
    ----------
    kernel : numba dispatcher
        Any kernel of the file, compiled with ``cache=True``; none of them called yet.
    modules : module
        What its kernels use; a package stands for all its files.
    """
    changed = max(path.stat().st_mtime for module in modules for path in _files(module))
    stem = Path(inspect.getfile(inspect.unwrap(kernel))).stem
    for index in Path(kernel.stats.cache_path).glob(f"{stem}.*.nbi"):  # type: ignore[attr-defined]
        try:
            if index.stat().st_mtime < changed:
                index.unlink()
        except FileNotFoundError:
            pass  # another process was faster


def _files(module: ModuleType) -> list[Path]:
    path = Path(str(module.__file__))
    return list(path.parent.glob("*.py")) if hasattr(module, "__path__") else [path]

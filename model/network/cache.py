"""Compile an entry point of the kernels once and keep it on disk, also when a file that it calls into changes.

numba's cache looks at the file of the cached function only. An entry point made by `compile_cached` carries the digest
of all files of this package as a closure variable, which is a part of numba's cache key; the small functions it calls
are not cached themselves.
"""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import cfunc, njit


@cache
def source_digest() -> str:
    """SHA-256 over the Python files of this package."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def compile_cached(make: Callable[[str], Callable[..., Any]], signature: Any) -> Any:
    """Jit ``make(digest)`` with numba's disk cache; `make` returns a closure that mentions the digest."""
    return njit(signature, cache=True)(make(source_digest()))


def compile_function(make: Callable[[str], Callable[..., Any]], signature: Any) -> Any:
    """As `compile_cached`, for a function that the kernel calls by its address (`memory.function_at`)."""
    return cfunc(signature, cache=True)(make(source_digest()))

"""numba's disk cache for this package, whose kernel also depends on the files of `model.network`."""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit

from hopforge.model.network.cache import source_digest as network_digest


@cache
def source_digest() -> str:
    """SHA-256 over the Python files of this package and of `model.network`."""
    digest = hashlib.sha256(network_digest().encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def compile_cached(make: Callable[[str], Callable[..., Any]], signature: Any) -> Any:
    """Jit ``make(digest)`` with numba's disk cache; `make` returns a closure that mentions the digest."""
    return njit(signature, cache=True)(make(source_digest()))

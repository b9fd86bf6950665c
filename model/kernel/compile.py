"""How kernels are compiled: their entry points once and kept on disk, also when a file that they call into changes.

numba's cache looks at the file of the cached function only. An entry point that is a `CachedKernel` carries the digest
of all files of this package, and of its own if that is another one, as a closure variable, which is a part of numba's
cache key; the small functions it calls are not cached themselves.
"""

import gc
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from numba import cfunc, njit, types
from numba.extending import typeof_impl

from hopforge.model.kernel.part_compiler import PartCompiler

#: numpy's rules of division: no exception, which kernels could not handle
_OPTIONS: dict[str, Any] = {"error_model": "numpy"}
_INNER = {
    **_OPTIONS,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "_nrt": False,  # nothing is allocated
    "pipeline_class": PartCompiler,
}
#: decorators of functions that only kernels call, Python cannot
inner = njit(**_INNER)
inlined = njit(forceinline=True, **_INNER)


@cache
def source_digest(package: str = __package__) -> str:
    """SHA-256 over the Python files of this package and of `package` (dotted name)."""
    digest = hashlib.sha256()
    for name in sorted({__package__, package}):
        for path in sorted(Path(str(import_module(name).__file__)).parent.glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Compile without the garbage collector: a tenth of the time went into looking through the compiler's objects."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class CachedKernel:
    """An entry point of a kernel, compiled or read from numba's disk cache when first called.

    Parameters
    ----------
    make : callable
        Gets the digest of this package and of `package`; returns a closure that mentions it.
    signature : numba signature
        What the function takes.
    package : str
        Package whose files the function uses, too.
    """

    def __init__(self, make: Callable[[str], Callable[..., Any]], signature: Any, package: str = __package__) -> None:
        self._make, self._signature, self._package = make, signature, package

    @cached_property
    def compiled(self) -> Any:
        """The dispatcher."""
        with _no_collection():
            return njit(self._signature, cache=True, **_OPTIONS)(self._make(source_digest(self._package)))

    def __call__(self, *arguments: Any) -> Any:
        """Run it."""
        return self.compiled(*arguments)


@typeof_impl.register(CachedKernel)
def _type_of_kernel(kernel: CachedKernel, _: Any) -> types.Type:
    """Compiled functions call it as any other."""
    return types.Dispatcher(kernel.compiled)


def compile_function(make: Callable[[str], Callable[..., Any]], signature: Any) -> Any:
    """As `CachedKernel`, for a function that the kernel calls by its address (`memory.function_at`)."""
    with _no_collection():
        return cfunc(signature, cache=True, **_OPTIONS)(make(source_digest()))

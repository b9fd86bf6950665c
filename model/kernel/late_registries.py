"""Loading numba's compiler when something is compiled, not when machine code is read from disk.

Before it reads the first kernel from disk, numba loads all that it can compile, with scipy's linear algebra (to see
whether it is there), which brings a Fortran reader and a test framework along: a fifth of the time of a short command.
What is compiled loads it as before.
"""

from functools import cache
from importlib import import_module
from typing import Any

from llvmlite import binding
from numba.core.caching import Cache
from numba.core.cpu import CPUContext
from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]

from hopforge.model.kernel.program_locator import ProgramLocator

# another numba without these is an AttributeError, on which it goes its own way (model.kernel.compile)
_read = Cache.load_overload
_read_only = Cache._load_overload
_HELPERS = _nrt_python.c_helpers
_load_registries = CPUContext.load_additional_registries


def load_registries_late() -> None:
    """Let the program's machine code be read without the compiler, and load that without linear algebra."""
    Cache.load_overload = _without_registries  # type: ignore[method-assign]
    CPUContext.load_additional_registries = _without_linear_algebra  # type: ignore[method-assign]


def _without_registries(kept: Any, signature: Any, context: Any) -> Any:
    """Read a function of the program; one of a user may need more (numba's hashes of texts)."""
    if not isinstance(kept._impl.locator, ProgramLocator):
        return _read(kept, signature, context)
    _name_memory_functions()
    return _read_only(kept, signature, context)


@cache
def _name_memory_functions() -> None:
    """Tell the linker where C functions lie that allocate memory; numba compiles those that count references, too."""
    for name, address in _HELPERS.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


def _without_linear_algebra(context: Any) -> None:
    """Load what numba can compile; whoever multiplies matrices imports linear algebra when it is compiled or runs."""
    linalg: Any = import_module("numba.np.linalg")
    checked = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        import_module("numba.np.arraymath")  # looks once, while it is imported
    finally:
        linalg.ensure_blas = checked
    _load_registries(context)

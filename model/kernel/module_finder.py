"""Finding the module that the linker asks for: LLVM's Python layer looks through all of them.

For each kernel that is compiled or read from disk it is asked a few times which module lies at an address, and compares
the address with those of all modules of the process: in one with thousands of kernels that took longer than to compile.
The answers here are the same.
"""

from ctypes import c_void_p, cast
from typing import Any
from weakref import WeakValueDictionary

from llvmlite.binding.executionengine import ExecutionEngine

# another llvmlite without these is an AttributeError, on which it goes its own way (model.kernel.compile)
_search, _add = ExecutionEngine._find_module_ptr, ExecutionEngine.add_module


def find_modules_quickly() -> None:
    """Let an execution engine remember where its modules lie."""
    ExecutionEngine.add_module = _add_and_remember  # type: ignore[method-assign]
    ExecutionEngine._find_module_ptr = _find  # type: ignore[method-assign]


def _known(engine: Any) -> Any:
    """Return address → module, as long as the module lives."""
    return vars(engine).setdefault("_module_at", WeakValueDictionary())


def _address(pointer: Any) -> int | None:
    return cast(pointer, c_void_p).value


def _add_and_remember(engine: Any, module: Any) -> None:
    _add(engine, module)
    _known(engine)[_address(module._ptr)] = module


def _find(engine: Any, pointer: Any) -> Any:
    module = _known(engine).get(_address(pointer))
    # the first module of an engine comes another way, and one that was removed may still live
    return module if module is not None and module in engine._modules else _search(engine, pointer)

"""Functions around others on disk: what a function of the program is called whose closure holds compiled functions.

numba's key of such a function holds a number of the others that is drawn in each process, so that machine code kept on
disk is never found again. Here the others are named by their modules, and by what their own closures hold.
"""

import hashlib
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

from numba.core.caching import Cache
from numba.core.dispatcher import Dispatcher

from hopforge.model.kernel.program_cache import program

# another numba without it is an AttributeError, on which it goes its own way (model.kernel.compile)
_numbas_key = Cache._index_key


def name_closures() -> None:
    """Let machine code of functions around others of the program be found again; all else goes numba's way."""
    Cache._index_key = _key  # type: ignore[method-assign]


def name_of(function: Callable[..., Any]) -> str | None:
    """Name a function by what decides about its machine code, beside the program: the same in every process.

    Parameters
    ----------
    function : function
        Of any module.

    Returns
    -------
    str or None
        None: it is none of the program's, or its closure holds something else than numbers, texts, and compiled
        functions that have a name.

    Examples
    --------
    >>> name_of(name_closures)
    'hopforge.model.kernel.named_closures.name_closures()'
    """
    module = sys.modules.get(function.__module__)
    ours = isinstance(function, FunctionType) and program().holds(function.__code__.co_filename)
    # a copy with other globals (a guard of a user's function) would be another function of the same name
    if not ours or function.__globals__ is not getattr(module, "__dict__", None):
        return None
    cells = function.__closure__ or ()
    if not cells and not _stands_in(module, function):
        return None
    held = [_name_of_value(cell.cell_contents) for cell in cells]
    if None in held:
        return None
    line = f":{function.__code__.co_firstlineno}" if cells else ""
    return f"{function.__module__}.{function.__qualname__}{line}({', '.join(map(str, held))})"


def _stands_in(module: Any, function: Callable[..., Any]) -> bool:
    """Whether a module has the function, or what was compiled of it, under its name."""
    found = getattr(module, function.__name__, None)
    return found is function or getattr(found, "py_func", None) is function


def _name_of_value(value: Any) -> str | None:
    if isinstance(value, Dispatcher):
        name, options = name_of(value.py_func), sorted(value.targetoptions.items())
        return None if name is None else f"{name} {options}"
    if isinstance(value, tuple):
        parts = [_name_of_value(one) for one in value]
        return None if None in parts else f"({', '.join(map(str, parts))})"
    return repr(value) if type(value) in {bool, int, float, str} else None


def _key(kept: Any, signature: Any, codegen: Any) -> Any:
    function = kept._py_func
    around = any(isinstance(cell.cell_contents, Dispatcher) for cell in function.__closure__ or ())
    name = name_of(function) if around else None
    if name is None:
        return _numbas_key(kept, signature, codegen)
    digests = tuple(hashlib.sha256(part).hexdigest() for part in (function.__code__.co_code, name.encode()))
    return signature, codegen.magic_tuple(), digests

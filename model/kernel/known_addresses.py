"""Addresses of functions that kernels are given: numba looks for them anew at each call.

It links the machine code of a routing function and of a pattern again to find where it begins: a quarter of a
millisecond, which is most of what a call for one cycle of a small network takes. The answers here are the same.
"""

from collections.abc import Callable
from typing import Any

from numba.core.ccallback import CFunc
from numba.core.dispatcher import Dispatcher
from numba.experimental import function_type

#: what numba asks, by name; another numba without them is an AttributeError, on which it goes its own way
#: (model.kernel.compile)
_FINDERS: dict[str, Callable[[Any, Any], int]] = {
    name: getattr(function_type, name) for name in ("_get_wrapper_address", "_get_jit_address")
}


def remember_addresses() -> None:
    """Let compiled functions remember where their machine code begins; all else goes numba's way."""
    for name, found_by in _FINDERS.items():
        setattr(function_type, name, _remembering(found_by))


def _remembering(found_by: Callable[[Any, Any], int]) -> Callable[[Any, Any], int]:
    def address(function: Any, signature: Any = None) -> int:
        if signature is None:  # a signal's handler has raised (`compile.raise_signal`): nothing may be called here
            return 0
        if not isinstance(function, Dispatcher | CFunc):
            return found_by(function, signature)
        # numba hands over the same signature at each call; to hash or compare it takes longer than to find an address
        known = vars(function).setdefault("_known_addresses", {})
        key = found_by, id(signature)
        if key not in known:
            known[key] = found_by(function, signature), signature
        return int(known[key][0])

    return address

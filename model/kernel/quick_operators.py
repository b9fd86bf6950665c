"""Types of operators quickly: numba works out anew at each ``a[b]`` and ``a + b`` of a function what type it has.

It goes through all its ways of doing so, which for an index into an array are dozens that fail with an error message:
a quarter of the time in which a kernel is compiled. Some hundred combinations of an operator and types are all that
kernels have. The answers here are the same.
"""

from typing import Any

from numba.core.types.functions import BaseFunction, Function

if not {"get_call_type", "get_impl_key"} <= vars(BaseFunction).keys() or "get_call_type" in vars(Function):
    # another numba: it goes its own way (model.kernel.compile)
    raise ImportError("numba works out types of operators elsewhere")


def remember_operators() -> None:
    """Let operators remember the signatures that numba found for types; functions that numba compiles are not among."""
    find = BaseFunction.get_call_type

    def signature(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws:
            return find(self, context, args, kws)
        known, key = vars(self).setdefault("_known_signatures", {}), (context, tuple(args))
        found = known.get(key)
        if found is None:
            found = find(self, context, args, kws)
            if self.get_impl_key(found) is self.typing_key:  # else it was compiled for the flags of this function
                known[key] = found
        return found

    Function.get_call_type = signature  # type: ignore[method-assign]

"""Comparing numba's compiler flags quickly: numba looks up with them every function that a kernel calls.

numba compares two sets of flags option by option, and works out the hash of one from the names of all options again and
again: a tenth of the time in which a kernel is compiled. The answers here are the same.
"""

from functools import cache
from typing import Any

from numba.core.targetconfig import TargetConfig

if "_values" not in vars(TargetConfig):  # another numba: it goes its own way (model.kernel.compile)
    raise ImportError("numba keeps the values of its compiler flags elsewhere")


@cache
def _hash_of(kind: type[Any]) -> int:
    """Hash of all flags of a class, which numba makes of the names of the options."""
    return hash(tuple(sorted(kind.options)))


def compare_quickly() -> None:
    """Let flags that were given the same values be equal at once; all else goes numba's way."""
    by_options = TargetConfig.__eq__

    def equal(self: Any, other: Any) -> Any:
        if type(self) is not type(other):
            return by_options(self, other)
        ours, others, options = self._values, other._values, self.options
        return ours == others or all(
            ours.get(name, options[name].default) == others.get(name, options[name].default)
            for name in ours.keys() | others.keys()
        )

    TargetConfig.__eq__ = equal  # type: ignore[method-assign]
    TargetConfig.__hash__ = lambda self: _hash_of(type(self))  # type: ignore[method-assign]

"""A record type with fields that no kernel changes: the compiler may keep them in registers.

The kernels get the state of a network as addresses (`model.kernel.memory`), so the compiler takes every store for a
possible change of every setting and of every address, and loads them again. Loads of constant fields are marked as
invariant; a kernel that writes one is refused when it is compiled. Python may change the fields between two calls of a
kernel. Where numba lacks the inner parts that this takes, the record is a plain one: the same results, more slowly.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numba
import numpy as np

try:
    from hopforge.model.kernel.constant_type import constant_type
except (ImportError, AttributeError):
    constant_type = None  # type: ignore[assignment]


def constant_record(
    dtype: np.dtype[Any],
    constant: Iterable[str],
    visible: frozenset[str] | None = None,
    known: Mapping[str, int] = MappingProxyType({}),
) -> Any:
    """Return numba's type; kernels whose argument it is take a numpy record of `dtype`.

    Parameters
    ----------
    dtype : dtype
        The record.
    constant : iterable of str
        Its constant fields.
    visible : frozenset of str, optional
        Fields that exist for what is compiled for this type; by default all.
    known : mapping, optional
        Constant fields → the values that they have in all records that are given to what is compiled for this type:
        whoever calls it makes sure of that.

    Raises
    ------
    ValueError
        A constant field that `dtype` does not have, or a known one that is not constant.
    """
    names = frozenset(constant)
    for unknown in sorted(names - set(dtype.names or ())):
        raise ValueError(f"record has no field {unknown!r} to be constant")
    for unknown in sorted(known.keys() - names):
        raise ValueError(f"field {unknown!r} is known but not constant")
    return numba.from_dtype(dtype) if constant_type is None else constant_type(dtype, names, visible, known)

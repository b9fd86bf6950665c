"""A record type with fields that no kernel changes: the compiler may keep them in registers.

The kernels get the state of a network as addresses (`model.kernel.memory`), so the compiler takes every store for a
possible change of every setting and of every address, and loads them again. Loads of constant fields are marked as
invariant; a kernel that writes one is refused when it is compiled. Python may change the fields between two calls of a
kernel. Where numba lacks the inner parts that this takes, the record is a plain one: the same results, more slowly.
"""

from collections.abc import Iterable
from typing import Any

import numba
import numpy as np

try:
    from hopforge.model.kernel.constant_type import constant_type
except (ImportError, AttributeError):
    constant_type = None  # type: ignore[assignment]


def constant_record(dtype: np.dtype[Any], constant: Iterable[str], visible: frozenset[str] | None = None) -> Any:
    """Return numba's type; kernels whose argument it is take a numpy record of `dtype`.

    Parameters
    ----------
    dtype : dtype
        The record.
    constant : iterable of str
        Its constant fields.
    visible : frozenset of str, optional
        Fields that exist for what is compiled for this type; by default all.

    Raises
    ------
    ValueError
        A constant field that `dtype` does not have.
    """
    names = frozenset(constant)
    unknown = sorted(names - set(dtype.names or ()))
    if unknown:
        raise ValueError(f"record has no field {unknown[0]!r} to be constant")
    return numba.from_dtype(dtype) if constant_type is None else constant_type(dtype, names, visible)

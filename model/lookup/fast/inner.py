"""How functions are compiled that only kernels call: without an entry for Python, and without counting references.

They allocate nothing. Each gets the whole `EngineState`; to count the arrays in it at every call would take longer than
most of them do.
"""

from typing import Any

from numba import njit

from hopforge.model.kernel.compile import WITHOUT_COUNTS

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner = njit(**_OPTIONS, **WITHOUT_COUNTS)

"""How functions are compiled that only kernels call: without an entry for Python, which takes less time."""

from typing import Any

from numba import njit

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner = njit(**_OPTIONS)

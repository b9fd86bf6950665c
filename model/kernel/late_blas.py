"""Loading scipy's linear algebra late: numba imports it with its first kernel, only to see whether it is there.

With what it imports in turn (a Fortran reader, a test framework) that is a tenth of the time of a short command. A
kernel that multiplies matrices imports it when it is compiled or when it runs, as before.
"""

from importlib import import_module

from numba.np import linalg

#: another numba without it is an AttributeError, on which it goes its own way (model.kernel.compile)
_CHECKED = linalg.ensure_blas


def import_without_blas() -> None:
    """Import the module of numba that looks for linear algebra, and let it believe that it is there: scipy is."""
    linalg.ensure_blas = lambda: None
    try:
        import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = _CHECKED

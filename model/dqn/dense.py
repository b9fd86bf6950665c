"""Matrix products and layers in loops of our own.

Every sum has one order, so results are the same bits for any number of threads and workers; a BLAS shares the work as
it likes. The innermost loops run along a row and add eight products at once: the compiler makes vector code of them.
"""

import math
from typing import Any

from hopforge.model.kernel.compile import both, inner_views

__all__ = ["add_bias", "add_product", "compiled", "hyperbolic", "part", "rectified", "transpose"]

#: how all kernels of the agent are compiled, those that Python calls and those that only kernels call. A product and a
#: sum are never one instruction: which of two products it is for would be left to the compiler, and copies of one
#: function in several kernels would differ in the last bit
compiled, part = both(no_cfunc_wrapper=True), inner_views


@part
def _add_eight(a: Any, i: int, k: int, b: Any, c: Any) -> None:
    """Add the products of eight columns of row `i` of a with eight rows of b."""
    a0, a1, a2, a3 = a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3]
    a4, a5, a6, a7 = a[i, k + 4], a[i, k + 5], a[i, k + 6], a[i, k + 7]
    for j in range(b.shape[1]):
        c[i, j] += ((a0 * b[k, j] + a1 * b[k + 1, j]) + (a2 * b[k + 2, j] + a3 * b[k + 3, j])) + (
            (a4 * b[k + 4, j] + a5 * b[k + 5, j]) + (a6 * b[k + 6, j] + a7 * b[k + 7, j])
        )


@part
def _add_one(a: Any, i: int, k: int, b: Any, c: Any) -> None:
    a0 = a[i, k]
    for j in range(b.shape[1]):
        c[i, j] += a0 * b[k, j]


@part
def add_product(a: Any, b: Any, c: Any) -> None:
    """Add a · b to c; the smaller of the two factors stays in the first cache."""
    rows, inner = a.shape
    whole = inner - inner % 8
    if inner > rows:
        for k in range(0, whole, 8):
            for i in range(rows):
                _add_eight(a, i, k, b, c)
        for k in range(whole, inner):
            for i in range(rows):
                _add_one(a, i, k, b, c)
    else:
        for i in range(rows):
            for k in range(0, whole, 8):
                _add_eight(a, i, k, b, c)
            for k in range(whole, inner):
                _add_one(a, i, k, b, c)


@part
def add_bias(bias: Any, c: Any) -> None:
    """Let every row of c begin with the bias."""
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = bias[j]


@part
def transpose(a: Any, b: Any) -> None:
    """Put the transpose of a into b, in blocks of 16 × 16."""
    for i0 in range(0, a.shape[0], 16):
        for j0 in range(0, a.shape[1], 16):
            for i in range(i0, min(i0 + 16, a.shape[0])):
                for j in range(j0, min(j0 + 16, a.shape[1])):
                    b[j, i] = a[i, j]


@part
def hyperbolic(c: Any) -> None:
    """Hyperbolic tangent of every entry."""
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = math.tanh(c[i, j])


@part
def rectified(c: Any) -> None:
    """Zero in place of every negative entry."""
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = c[i, j] if c[i, j] > 0 else 0 * c[i, j]

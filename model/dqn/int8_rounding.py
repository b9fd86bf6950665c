"""Weights of a layer in whole numbers so that its sums stay as they were (docs/definitions/dqn-inference.md#rounding).

A weight is rounded after those that see more of the given observations, and makes up for what these have lost: the
nearest-plane method of Babai (1986), known from GPTQ (Frantar et al., 2022). Sums of products only, without a BLAS: the
result is the same for any number of threads.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["product", "rounded_layer"]

Floats = NDArray[np.floating[Any]]
#: what is added to the squares of all inputs, as a share of their mean: weights of inputs that are never there stay
_RIDGE = 1e-3


def product(a: Floats, b: Floats) -> NDArray[np.float64]:
    """Return the matrix product, summed in the same order on any number of threads."""
    found: NDArray[np.float64] = np.einsum("ij,jk->ik", a, b)
    return found


def rounded_layer(
    exact: Floats, seen: Floats, matrix: Floats, bias: Floats, *, scale: float, largest: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return whole weights, in units of 1/`scale`, and the bias with which the mean sums are the exact ones.

    Parameters
    ----------
    exact, seen : float[row, in]
        Inputs for the given observations, as floats have them and as they are in whole numbers.
    matrix, bias : float[in, out], float[out]
        Of the layer.
    scale : float
        Units in 1.
    largest : int
        Of a weight, in units.

    Returns
    -------
    tuple
        Weights int64[in, out], bias float64[out].
    """
    sums = product(exact, matrix) + bias
    mean, middle = sums.mean(axis=0), seen.mean(axis=0)
    moved = seen - middle
    squares = product(moved.T, moved) / len(seen)
    ridge = _RIDGE * float(np.trace(squares)) / len(squares) or 1.0
    squares[np.diag_indices_from(squares)] += ridge
    order = np.argsort(np.diag(squares), kind="stable")
    root = _root(squares[np.ix_(order, order)])
    wanted = product(moved.T, sums - mean) / len(seen) + ridge * matrix
    target = _solved(root, wanted[order])
    whole = np.zeros(matrix.shape, np.int64)
    lost = np.zeros(matrix.shape)
    for row in range(len(order) - 1, -1, -1):
        after = slice(row + 1, None)
        ideal = target[row] + np.einsum("j,jk->k", root[row, after], lost[after]) / root[row, row]
        units = np.clip(np.floor(ideal * scale + 0.5), -largest, largest)
        whole[order[row]] = units.astype(np.int64)
        lost[row] = target[row] - units / scale
    return whole, mean - np.einsum("j,jk->k", middle, whole / scale)


def _root(squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the upper triangle R with RᵀR = `squares` (Cholesky)."""
    root = np.zeros_like(squares)
    for row in range(len(squares)):
        above = root[:row, row:]
        rest = squares[row, row:] - np.einsum("j,jk->k", above[:, 0], above)
        root[row, row:] = rest / np.sqrt(rest[0])
    return root


def _solved(root: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve RᵀR x = `wanted`."""
    found = wanted.copy()
    for row in range(len(root)):
        found[row] = (found[row] - np.einsum("j,jk->k", root[:row, row], found[:row])) / root[row, row]
    for row in range(len(root) - 1, -1, -1):
        after = slice(row + 1, None)
        found[row] = (found[row] - np.einsum("j,jk->k", root[row, after], found[after])) / root[row, row]
    return found

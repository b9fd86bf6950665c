"""The network of an agent in whole numbers, as hardware computes it (docs/definitions/dqn-inference.md).

Only the advantages: the value and their mean are the same for all actions, so they don't change which one is best.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.dqn.int8_table import FRACTION_BITS, LARGEST, LARGEST_INDEX, tanh_table
from hopforge.model.dqn.shape import NetworkShape

__all__ = ["HEAD", "LAYERS", "Int8Network", "quantised", "whole_observations"]

#: matrix and bias of each layer
LAYERS = (("W1", "b1"), ("W2", "b2"), ("WA1", "bA1"), ("WA2", "bA2"))
HEAD = 2
MOST_SHIFT = 24
#: a bias and 4096 products of 127 · 127 fit into the 32 bits of a sum
MOST_BIAS = 1 << 30


@dataclass(frozen=True)
class Int8Network:
    """Weights and shifts of a quantised network.

    Attributes
    ----------
    matrices : tuple of int8[in, out]
        −127 … 127.
    biases : tuple of int32[out]
        In units of the sums.
    shifts : tuple of int
        Bits by which the sums of the three hidden layers are shifted to the right, rounded (half up).
    """

    matrices: tuple[NDArray[np.int8], ...]
    biases: tuple[NDArray[np.int32], ...]
    shifts: tuple[int, int, int]

    def advantages(self, whole: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the sums of the last layer: int64[row, action] of int8[row, input]."""
        h = whole.astype(np.int64)
        for layer, (matrix, bias) in enumerate(zip(self.matrices, self.biases, strict=True)):
            sums = h @ matrix.astype(np.int64) + bias
            if layer == len(LAYERS) - 1:
                return sums
            h = _relu(sums, self.shifts[layer]) if layer == HEAD else _tanh(sums, self.shifts[layer])
        raise AssertionError

    def actions(self, whole: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the best action of each row; the lowest number wins a tie."""
        return np.argmax(self.advantages(whole), axis=1)


def _rounded(sums: NDArray[np.int64], shift: int) -> NDArray[np.int64]:
    return (sums + ((1 << shift) >> 1)) >> shift


def _tanh(sums: NDArray[np.int64], shift: int) -> NDArray[np.int64]:
    index = np.clip(_rounded(sums, shift), -LARGEST_INDEX, LARGEST_INDEX)
    return np.sign(index) * np.array(tanh_table())[np.abs(index)]


def _relu(sums: NDArray[np.int64], shift: int) -> NDArray[np.int64]:
    return np.clip(_rounded(sums, shift), 0, LARGEST)


def whole_observations(observations: NDArray[np.floating[Any]]) -> NDArray[np.int8]:
    """Return scaled observations (0 … 1) as 0 … 127."""
    return np.clip(np.floor(observations.astype(np.float64) * LARGEST + 0.5), 0, LARGEST).astype(np.int8)


def quantised(
    shape: NetworkShape, weights: NDArray[np.floating[Any]], observations: NDArray[np.floating[Any]]
) -> Int8Network:
    """Return the network in whole numbers.

    Parameters
    ----------
    shape, weights
        Of the trained network.
    observations : float[row, input]
        Scaled ones, for the range of the head's hidden layer.

    Raises
    ------
    ValueError
        Weights that are no numbers or too large, or observations that are not scaled.
    """
    if not observations.size or not ((observations >= 0) & (observations <= 1)).all():
        raise ValueError("observations must be scaled, 0 … 1, and there must be some")
    part = {name: value.astype(np.float64) for name, value in shape.split(weights).items()}
    part["W1"] = part["W1"] * ((1 << FRACTION_BITS) / LARGEST)  # inputs of 1 are 127, not 128
    bits, matrices = [], []
    for name, bias in LAYERS:
        bits.append(_scale_bits(name, part[name], part[bias]))
        matrices.append(np.floor(part[name] * 2.0 ** bits[-1] + 0.5).astype(np.int8))
    head_bits = _head_bits(part, observations)
    fractions = [FRACTION_BITS, FRACTION_BITS, FRACTION_BITS, head_bits]  # of the inputs of each layer
    units = [bit + fraction for bit, fraction in zip(bits, fractions, strict=True)]
    biases = tuple(
        np.floor(part[bias] * 2.0**unit + 0.5).astype(np.int32) for (_, bias), unit in zip(LAYERS, units, strict=True)
    )
    return Int8Network(tuple(matrices), biases, (bits[0], bits[1], units[HEAD] - head_bits))


def _scale_bits(name: str, matrix: NDArray[np.float64], bias: NDArray[np.float64]) -> int:
    """Bits behind the binary point of the weights of a matrix: as many as weights and biases have room for."""
    largest, offset = float(np.abs(matrix).max()), float(np.abs(bias).max())
    if not np.isfinite(largest + offset):
        raise ValueError(f"{name} or its bias has entries that are no numbers")
    bits = MOST_SHIFT - FRACTION_BITS
    while bits >= 0 and (largest * 2.0**bits > LARGEST or offset * 2.0 ** (bits + FRACTION_BITS) >= MOST_BIAS):
        bits -= 1
    if bits < 0:
        raise ValueError(
            f"{name} has weights up to {largest:g}, its bias up to {offset:g}; int8 takes {LARGEST} and "
            f"{MOST_BIAS >> FRACTION_BITS}"
        )
    return bits


def _head_bits(part: dict[str, NDArray[np.float64]], observations: NDArray[np.floating[Any]]) -> int:
    """Bits behind the binary point of the head's hidden layer: the largest value of the observations fits."""
    h = np.tanh(observations @ (part["W1"] * LARGEST / (1 << FRACTION_BITS)) + part["b1"])
    h = np.tanh(h @ part["W2"] + part["b2"])
    largest = float((h @ part["WA1"] + part["bA1"]).max())
    bits = FRACTION_BITS
    while bits > 0 and largest * 2.0**bits > LARGEST:
        bits -= 1
    return bits

"""The network of an agent in whole numbers, as hardware computes it (docs/definitions/dqn-inference.md).

Only the advantages: the value and their mean are the same for all actions, so they don't change which one is best.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.dqn.int8_table import LEAST_ACTIVATION_BITS, MOST_ACTIVATION_BITS, TABLE_BITS, TABLE_END, tanh_table
from hopforge.model.dqn.shape import NetworkShape

__all__ = ["HEAD", "LAYERS", "Int8Network", "quantised", "whole_observations"]

#: matrix and bias of each layer
LAYERS = (("W1", "b1"), ("W2", "b2"), ("WA1", "bA1"), ("WA2", "bA2"))
HEAD = 2
LARGEST_WEIGHT = 127
MOST_SHIFT = 24
#: a bias and 4096 products of 127 · 2047 fit into the 32 bits of a sum
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
    activation_bits : int
        Of an activation, one of them for the sign.
    """

    matrices: tuple[NDArray[np.int8], ...]
    biases: tuple[NDArray[np.int32], ...]
    shifts: tuple[int, int, int]
    activation_bits: int = LEAST_ACTIVATION_BITS

    @property
    def fraction_bits(self) -> int:
        """Bits of an activation behind the binary point."""
        return self.activation_bits - 1

    def whole(self, observations: NDArray[np.floating[Any]]) -> NDArray[np.int16]:
        """Return scaled observations (0 … 1) as whole numbers."""
        return whole_observations(observations, self.activation_bits)

    def advantages(self, whole: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the sums of the last layer: int64[row, action] of int16[row, input]."""
        h = whole.astype(np.int64)
        for layer, (matrix, bias) in enumerate(zip(self.matrices, self.biases, strict=True)):
            sums = h @ matrix.astype(np.int64) + bias
            if layer == len(LAYERS) - 1:
                return sums
            rounded = _rounded(sums, self.shifts[layer])
            h = np.clip(rounded, 0, (1 << self.fraction_bits) - 1) if layer == HEAD else self._tanh(rounded)
        raise AssertionError

    def actions(self, whole: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the best action of each row; the lowest number wins a tie."""
        return np.argmax(self.advantages(whole), axis=1)

    def _tanh(self, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        """Look up tanh, and draw a straight line from one place of the table to the next."""
        between = self.fraction_bits - TABLE_BITS
        size = np.minimum(np.abs(sums), (TABLE_END << between) - 1)
        table, place, rest = np.array(tanh_table(self.fraction_bits)), size >> between, size & (1 << between) - 1
        steps = (table[place + 1] - table[place]) * rest
        return np.sign(sums) * (table[place] + _rounded(steps, between))


def _rounded(sums: NDArray[np.int64], shift: int) -> NDArray[np.int64]:
    return (sums + ((1 << shift) >> 1)) >> shift


def whole_observations(
    observations: NDArray[np.floating[Any]], activation_bits: int = LEAST_ACTIVATION_BITS
) -> NDArray[np.int16]:
    """Return scaled observations (0 … 1) as 0 … 127, or to what more bits can hold."""
    largest = (1 << activation_bits - 1) - 1
    return np.clip(np.floor(observations.astype(np.float64) * largest + 0.5), 0, largest).astype(np.int16)


def quantised(
    shape: NetworkShape, weights: NDArray[np.floating[Any]], observations: NDArray[np.floating[Any]],
    activation_bits: int = LEAST_ACTIVATION_BITS,
) -> Int8Network:  # fmt: skip
    """Return the network in whole numbers.

    Parameters
    ----------
    shape, weights
        Of the trained network.
    observations : float[row, input]
        Scaled ones, for the range of the head's hidden layer.
    activation_bits : int
        8 … 12.

    Raises
    ------
    ValueError
        Weights that are no numbers or too large, observations that are not scaled, or a number of bits beyond the
        limits.
    """
    if not LEAST_ACTIVATION_BITS <= activation_bits <= MOST_ACTIVATION_BITS:
        limits = f"{LEAST_ACTIVATION_BITS} … {MOST_ACTIVATION_BITS}"
        raise ValueError(f"activation_bits must be {limits}, not {activation_bits}")
    if not observations.size or not ((observations >= 0) & (observations <= 1)).all():
        raise ValueError("observations must be scaled, 0 … 1, and there must be some")
    part = {name: value.astype(np.float64) for name, value in shape.split(weights).items()}
    fraction = activation_bits - 1
    part["W1"] = part["W1"] * ((1 << fraction) / ((1 << fraction) - 1))  # inputs of 1 are 127, not 128
    bits, matrices = [], []
    for name, bias in LAYERS:
        bits.append(_scale_bits(name, part[name], part[bias], fraction))
        matrices.append(np.floor(part[name] * 2.0 ** bits[-1] + 0.5).astype(np.int8))
    head_bits = _head_bits(part, observations, fraction)
    units = [bit + of for bit, of in zip(bits, [fraction, fraction, fraction, head_bits], strict=True)]
    biases = tuple(
        np.floor(part[bias] * 2.0**unit + 0.5).astype(np.int32) for (_, bias), unit in zip(LAYERS, units, strict=True)
    )
    return Int8Network(tuple(matrices), biases, (bits[0], bits[1], units[HEAD] - head_bits), activation_bits)


def _scale_bits(name: str, matrix: NDArray[np.float64], bias: NDArray[np.float64], fraction: int) -> int:
    """Bits behind the binary point of the weights of a matrix: as many as weights and biases have room for."""
    largest, offset = float(np.abs(matrix).max()), float(np.abs(bias).max())
    if not np.isfinite(largest + offset):
        raise ValueError(f"{name} or its bias has entries that are no numbers")
    bits = MOST_SHIFT - fraction
    while bits >= 0 and (largest * 2.0**bits > LARGEST_WEIGHT or offset * 2.0 ** (bits + fraction) >= MOST_BIAS):
        bits -= 1
    if bits < 0:
        raise ValueError(
            f"{name} has weights up to {largest:g}, its bias up to {offset:g}; int8 takes {LARGEST_WEIGHT} and "
            f"{MOST_BIAS >> fraction}"
        )
    return bits


def _head_bits(
    part: dict[str, NDArray[np.float64]], observations: NDArray[np.floating[Any]], fraction: int
) -> int:  # fmt: skip
    """Bits behind the binary point of the head's hidden layer: the largest value of the observations fits."""
    most = (1 << fraction) - 1
    h = np.tanh(observations @ (part["W1"] * most / (1 << fraction)) + part["b1"])
    h = np.tanh(h @ part["W2"] + part["b2"])
    largest = float((h @ part["WA1"] + part["bA1"]).max())
    bits = fraction
    while bits > 0 and largest * 2.0**bits > most:
        bits -= 1
    return bits

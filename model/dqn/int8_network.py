"""The network of an agent in whole numbers, as hardware computes it (docs/definitions/dqn-inference.md).

Only the advantages: the value and their mean are the same for all actions, so they don't change which one is best.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.dqn.int8_rounding import product, rounded_layer
from hopforge.model.dqn.int8_table import LEAST_ACTIVATION_BITS, MOST_ACTIVATION_BITS, TABLE_BITS, TABLE_END, tanh_table
from hopforge.model.dqn.shape import NetworkShape

__all__ = ["HEAD", "LAYERS", "LOCAL_RANGE", "Int8Network", "given_observations", "quantised", "whole_observations"]

#: matrix and bias of each layer
LAYERS = (("W1", "b1"), ("W2", "b2"), ("WA1", "bA1"), ("WA2", "bA2"))
HEAD = 2
#: flits that wait here come from several buffers: 2 is their largest scaled number, 1 that of the others
LOCAL_RANGE = 2
LARGEST_WEIGHT = 127
MOST_SHIFT = 24
#: bits of the sums of the last layer behind the binary point, which nothing shifts: below this it is as good as zero
_MOST_POINT = 128
#: beyond a sum
SUM_END = 1 << 31
#: the largest value of a unit of the head is made as large as that of the largest, at most by this factor
_MOST_EQUAL = 2
#: what a unit of the head reaches for the given observations: the rest is room for others
_UNIT_END = 7 / 8
#: the head's sums are shifted by a bit less
_LEAST_BITS = 1
_GIVEN_ROWS, _GIVEN_SEED = 1024, 0x44514E08


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
        """Bits of an activation of the tanh layers behind the binary point."""
        return self.activation_bits - 1

    def whole(self, observations: NDArray[np.floating[Any]]) -> NDArray[np.int16]:
        """Return scaled observations as whole numbers."""
        return whole_observations(observations, self.matrices[-1].shape[1], self.activation_bits)

    def advantages(self, whole: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the sums of the last layer: int64[row, action] of int16[row, input]."""
        h = whole.astype(np.int64)
        for layer, (matrix, bias) in enumerate(zip(self.matrices, self.biases, strict=True)):
            sums = h @ matrix.astype(np.int64) + bias
            if layer == len(LAYERS) - 1:
                return sums
            h = _activations(layer, sums, self.shifts[layer], self.fraction_bits)
        raise AssertionError

    def actions(self, whole: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the best action of each row; the lowest number wins a tie."""
        return np.argmax(self.advantages(whole), axis=1)


def _activations(layer: int, sums: NDArray[np.int64], shift: int, fraction: int) -> NDArray[np.int64]:
    """Return what a hidden layer hands on."""
    rounded = _rounded(sums, shift)
    if layer == HEAD:
        return np.clip(rounded, 0, (2 << fraction) - 1) - (1 << fraction)
    return _tanh(rounded, fraction)


def _tanh(sums: NDArray[np.int64], fraction: int) -> NDArray[np.int64]:
    """Look up tanh, and draw a straight line from one place of the table to the next."""
    between = fraction - TABLE_BITS
    size = np.minimum(np.abs(sums), (TABLE_END << between) - 1)
    table, place, rest = np.array(tanh_table(fraction)), size >> between, size & (1 << between) - 1
    steps = (table[place + 1] - table[place]) * rest
    return np.sign(sums) * (table[place] + _rounded(steps, between))


def _rounded(sums: NDArray[np.int64], shift: int) -> NDArray[np.int64]:
    return (sums + ((1 << shift) >> 1)) >> shift


def _ranges(inputs: int, actions: int) -> NDArray[np.float64]:
    """Largest number of each input: the local ones are those before the last `actions`."""
    ranges = np.ones(inputs)
    ranges[max(inputs - 2 * actions, 0) : max(inputs - actions, 0)] = LOCAL_RANGE
    return ranges


def whole_observations(
    observations: NDArray[np.floating[Any]], actions: int, activation_bits: int = LEAST_ACTIVATION_BITS
) -> NDArray[np.int16]:
    """Return scaled observations as −128 … 127, or as what more bits can hold.

    Parameters
    ----------
    observations : float[row, input]
        The last 2 · `actions` of an observation are flits that wait here, and flits in the buffers behind.
    actions : int
        Of the agent.
    activation_bits : int
        8 … 12.
    """
    largest, middle = (1 << activation_bits) - 1, 1 << activation_bits - 1
    shares = observations.astype(np.float64) / _ranges(observations.shape[1], actions)
    return (np.clip(np.floor(shares * largest + 0.5), 0, largest) - middle).astype(np.int16)


def given_observations(shape: NetworkShape) -> NDArray[np.float64]:
    """Return the observations for which networks are rounded: float[1024, input], the same in each run.

    Queues are mostly short: numbers of flits are the fourth power of a uniform number of 0 … 1, the others uniform, and
    in every second observation 0 or 1, for routers and destinations at the edges.
    """
    given = np.random.Generator(np.random.PCG64(_GIVEN_SEED)).random((_GIVEN_ROWS, shape.inputs))
    flits = max(shape.inputs - 2 * shape.actions, 0)
    given[:, flits:] **= 4
    given[::2, :flits] = np.floor(given[::2, :flits] + 0.5)
    return given


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
        Scaled ones, for which sums and ranges of units are kept (`given_observations`).
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
    for name, bias in LAYERS:
        if not np.isfinite(np.abs(part[name]).max() + np.abs(part[bias]).max()):
            raise ValueError(f"{name} or its bias has entries that are no numbers")
    fraction = activation_bits - 1
    ranges = _ranges(shape.inputs, shape.actions)
    exact = observations / ranges * (((2 << fraction) - 1) / (1 << fraction))  # as many units as the largest
    part["W1"] = part["W1"] * (ranges / (((2 << fraction) - 1) / (1 << fraction)))[:, None]
    _equalise(part, exact)
    whole = whole_observations(observations, shape.actions, activation_bits).astype(np.int64)
    matrices, biases, shifts = [], [], []
    for layer, (name, bias) in enumerate(LAYERS):
        shifted = layer in (0, len(LAYERS) - 1)  # inputs that are never negative are stored less the middle
        unit = fraction + (layer == len(LAYERS) - 1)  # bits behind the binary point of the inputs
        middle = 1 << fraction if shifted else 0
        seen = (whole + middle) / 2.0**unit
        bits = _scale_bits(name, part[name], part[bias], unit, activation_bits)
        matrix, sums_offset = _whole_layer(exact, seen, part[name], part[bias], bits=bits, unit=unit, middle=middle)
        while _largest_sum(matrix, sums_offset, fraction) >= SUM_END and bits > _LEAST_BITS:
            bits -= 1
            matrix, sums_offset = _whole_layer(exact, seen, part[name], part[bias], bits=bits, unit=unit, middle=middle)
        if (most := _largest_sum(matrix, sums_offset, fraction)) >= SUM_END:
            raise ValueError(f"{name} and its bias make sums up to {most}; int8 takes less than {SUM_END}")
        matrices.append(matrix.astype(np.int8))
        biases.append(sums_offset.astype(np.int32))
        if layer == len(LAYERS) - 1:
            break
        exact = product(exact, part[name]) + part[bias]
        exact = np.maximum(exact, 0) if layer == HEAD else np.tanh(exact)
        shifts.append(bits - (layer == HEAD))
        whole = _activations(layer, whole @ matrix + sums_offset, shifts[-1], fraction)
    return Int8Network(tuple(matrices), tuple(biases), (shifts[0], shifts[1], shifts[2]), activation_bits)


def _whole_layer(
    exact: NDArray[np.float64], seen: NDArray[np.float64], matrix: NDArray[np.float64], bias: NDArray[np.float64], *,
    bits: int, unit: int, middle: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:  # fmt: skip
    """Return weights with `bits` behind the point, and biases for inputs that are stored less `middle`."""
    whole, offset = rounded_layer(exact, seen, matrix, bias, scale=2.0**bits, largest=LARGEST_WEIGHT)
    sums_offset = np.floor(offset * 2.0 ** (bits + unit) + 0.5).astype(np.int64)
    return whole, sums_offset + middle * whole.sum(axis=0)


def _largest_sum(matrix: NDArray[np.int64], bias: NDArray[np.int64], fraction: int) -> int:
    """Size of the largest sum that any inputs can make, after any of them."""
    return int((np.abs(bias) + (np.abs(matrix).sum(axis=0) << fraction)).max())


def _equalise(part: dict[str, NDArray[np.float64]], exact: NDArray[np.float64]) -> None:
    """Let the units of the head's hidden layer reach nearly 1; the last layer makes up for it.

    Each unit is multiplied so that its largest value is that of the largest unit, at most by 2 (a layer of max(0, x)
    may be: Nagel et al., 2019).
    """
    h = np.tanh(product(np.tanh(product(exact, part["W1"]) + part["b1"]), part["W2"]) + part["b2"])
    largest = np.maximum(product(h, part["WA1"]) + part["bA1"], 0).max(axis=0)
    most = float(largest.max())
    if most == 0:
        return
    factors = _UNIT_END / np.maximum(largest, most / _MOST_EQUAL)
    part["WA1"], part["bA1"] = part["WA1"] * factors, part["bA1"] * factors
    part["WA2"] = part["WA2"] / factors[:, None]


def _scale_bits(
    name: str, matrix: NDArray[np.float64], bias: NDArray[np.float64], unit: int, activation_bits: int
) -> int:
    """Bits behind the binary point of the weights of a matrix: as many as weights and sums have room for."""
    largest, offset = float(np.abs(matrix).max()), np.abs(bias)
    bits = (_MOST_POINT if name == LAYERS[-1][0] else MOST_SHIFT) - unit
    while bits >= _LEAST_BITS:
        sums = (np.abs(matrix) * 2.0**bits + 1).sum(axis=0) * 2.0**activation_bits + offset * 2.0 ** (bits + unit)
        if largest * 2.0**bits <= LARGEST_WEIGHT and float(sums.max()) < SUM_END:
            return bits
        bits -= 1
    raise ValueError(
        f"{name} has weights up to {largest:g}, its bias up to {float(offset.max()):g}; int8 takes "
        f"{LARGEST_WEIGHT >> _LEAST_BITS}, and sums of 32 bits"
    )

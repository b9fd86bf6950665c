"""The network in whole numbers (`int8_network.py`) inside compiled kernels: the same sums, the same action."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.dqn.dense import compiled
from hopforge.model.dqn.int8_network import HEAD, LAYERS, LOCAL_RANGE, Int8Network
from hopforge.model.dqn.int8_table import TABLE_BITS, TABLE_END, tanh_table

__all__ = ["Int8Agents", "int8_agents", "int8_sums"]

_LAST = len(LAYERS) - 1


class Int8Agents(NamedTuple):
    """Networks of all agents: arrays only, for the kernels.

    Attributes
    ----------
    int8_weights, int8_biases : int32[agent, number]
        Of the layers, one after another, row by row.
    int8_shifts : int32[agent, 4]
        Of the hidden layers; then the bits of an activation behind the binary point.
    int8_tanh : int32[513]
        The table.
    int8_work : int32[2, unit]
        Scratch: activations and sums of a layer.
    """

    int8_weights: NDArray[np.int32]
    int8_biases: NDArray[np.int32]
    int8_shifts: NDArray[np.int32]
    int8_tanh: NDArray[np.int32]
    int8_work: NDArray[np.int32]


def int8_agents(networks: Sequence[Int8Network]) -> Int8Agents:
    """Return the networks of agents, of the same widths, for the kernels."""
    widest = max(max(matrix.shape) for matrix in networks[0].matrices)
    return Int8Agents(
        np.array([np.concatenate([m.ravel() for m in one.matrices]) for one in networks], np.int32),
        np.array([np.concatenate(one.biases) for one in networks], np.int32),
        np.array([(*one.shifts, one.fraction_bits) for one in networks], np.int32),
        np.array(tanh_table(networks[0].fraction_bits), np.int32),
        np.zeros((2, widest), np.int32),
    )


@compiled
def _tanh(table: Any, size: int, between: int) -> int:
    """Look up tanh, and draw a straight line from one place of the table to the next."""
    place = size >> between
    steps = (np.int64(table[place + 1]) - table[place]) * (size & ((1 << between) - 1))
    return int(table[place] + ((steps + ((1 << between) >> 1)) >> between))


@compiled
def int8_sums(int8: Int8Agents, agent: int, widths: Any, observation: Any) -> Any:
    """Return the sums of the last layer of an agent: int32[action] of the scaled observation[input]."""
    weights, biases = int8.int8_weights[agent], int8.int8_biases[agent]
    h, sums, fraction = int8.int8_work[0], int8.int8_work[1], int(int8.int8_shifts[agent, _LAST])
    largest, middle, between = (2 << fraction) - 1, 1 << fraction, fraction - TABLE_BITS
    behind = widths[0] - widths[_LAST + 1]  # numbers of flits: here, then behind
    for k in range(widths[0]):
        share = np.float64(observation[k])
        if behind - widths[_LAST + 1] <= k < behind:
            share /= LOCAL_RANGE
        h[k] = min(max(int(np.floor(share * largest + 0.5)), 0), largest) - middle
    weight, bias = 0, 0
    for layer in range(_LAST + 1):
        inputs, outputs = widths[layer], widths[layer + 1]
        for j in range(outputs):
            sums[j] = biases[bias + j]
        bias += outputs
        for k in range(inputs):
            x, row = h[k], weights[weight : weight + outputs]
            weight += outputs
            for j in range(outputs):
                sums[j] += x * row[j]
        if layer == _LAST:
            break
        shift = np.int64(int8.int8_shifts[agent, layer])
        half = (1 << shift) >> 1
        for j in range(outputs):
            shifted = int((np.int64(sums[j]) + half) >> shift)
            if layer == HEAD:
                h[j] = min(max(shifted, 0), largest) - middle
            else:
                value = _tanh(int8.int8_tanh, min(abs(shifted), (TABLE_END << between) - 1), between)
                h[j] = value if shifted >= 0 else -value
    return sums[: widths[_LAST + 1]]

"""The network in whole numbers (`int8_network.py`) inside compiled kernels: the same sums, the same action."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.dqn.dense import compiled
from hopforge.model.dqn.int8_network import HEAD, LAYERS, Int8Network
from hopforge.model.dqn.int8_table import LARGEST, LARGEST_INDEX, tanh_table

__all__ = ["Int8Agents", "int8_agents", "int8_sums"]

_LAST = len(LAYERS) - 1


class Int8Agents(NamedTuple):
    """Networks of all agents: arrays only, for the kernels.

    Attributes
    ----------
    int8_weights, int8_biases : int32[agent, number]
        Of the layers, one after another, row by row.
    int8_shifts : int32[agent, 3]
        Of the hidden layers.
    int8_tanh : int32[512]
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
        np.array([one.shifts for one in networks], np.int32),
        np.array(tanh_table(), np.int32),
        np.zeros((2, widest), np.int32),
    )


@compiled
def int8_sums(int8: Int8Agents, agent: int, widths: Any, observation: Any) -> Any:
    """Return the sums of the last layer of an agent: int32[action] of the scaled observation[input]."""
    weights, biases = int8.int8_weights[agent], int8.int8_biases[agent]
    h, sums = int8.int8_work[0], int8.int8_work[1]
    for k in range(widths[0]):
        h[k] = min(max(int(np.floor(np.float64(observation[k]) * LARGEST + 0.5)), 0), LARGEST)
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
            shifted = (np.int64(sums[j]) + half) >> shift
            if layer == HEAD:
                h[j] = min(max(shifted, 0), LARGEST)
            else:
                place = abs(shifted)
                looked_up = int8.int8_tanh[place if place < LARGEST_INDEX else LARGEST_INDEX]
                h[j] = looked_up if shifted >= 0 else -looked_up
    return sums[: widths[_LAST + 1]]

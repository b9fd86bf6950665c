"""Decisions of a quantised agent as a replay of its inference block.

Expected is what the network in whole numbers says, in the cycles that docs/definitions/dqn-inference.md names.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.hw.agents.dqn_inference import SHIFT_BITS, WEIGHT_BITS, DqnInference
from hopforge.model.dqn.int8_network import Int8Network
from hopforge.sim.drive.replay import WORD_BITS, Output, Replay, as_words
from hopforge.sim.drive.wide_columns import words_of

__all__ = ["inference_replay", "memory_rows"]

_OUTPUTS = ("busy", "done", "advantage_valid", "action")


def memory_rows(block: DqnInference, network: Int8Network) -> tuple[list[int], list[int]]:
    """Return the rows of the memories of weights and of biases."""
    weights, biases = [], []
    for matrix, bias in zip(network.matrices, network.biases, strict=True):
        for begin in range(0, matrix.shape[1], block.lanes):
            lanes = slice(begin, begin + block.lanes)
            weights += [_packed(row, WEIGHT_BITS) for row in matrix[:, lanes]]
            biases.append(_packed(bias[lanes], block.sum_bits))
    return weights, biases


def _packed(values: NDArray[np.integer[Any]], bits: int) -> int:
    return sum((int(value) & ((1 << bits) - 1)) << (bits * place) for place, value in enumerate(values))


def inference_replay(
    block: DqnInference, network: Int8Network, observations: NDArray[np.int16], rng: np.random.Generator
) -> Replay:
    """Return what is written and what comes out while observations are decided, one after another.

    Parameters
    ----------
    block : DqnInference
        Its last layer is one block: no more actions than multipliers.
    network : Int8Network
        Of its widths.
    observations : ndarray
        int16[row, input].
    rng : Generator
        Draws ``start`` while the block is busy, which must be ignored, and pauses.

    Raises
    ------
    ValueError
        More actions than multipliers.
    """
    if block.widths[-1] > block.lanes:
        raise ValueError(f"actions must be at most lanes={block.lanes}, not {block.widths[-1]}")
    columns = {name: -(-len(getattr(block, name)) // WORD_BITS) for name in ("w_data", "b_data")}
    singles = ("start", "x_en", "x_addr", "x_data", "w_en", "w_addr", "b_en", "b_addr", "shifts")
    inputs = (*singles, *(name for name, words in columns.items() for _ in range(words)))
    shifts = sum(shift << (SHIFT_BITS * number) for number, shift in enumerate(network.shifts))
    driven: list[list[int]] = []
    expected: list[tuple[int, ...]] = []
    for given, seen in _cycles(block, network, observations, rng):
        row = [given.get(name, shifts if name == "shifts" else 0) for name in singles]
        for name, words in columns.items():
            row += words_of(given.get(name, 0), words)
        driven.append(row)
        expected.append(seen)
    names = (*(Output(name) for name in _OUTPUTS), Output("advantage", "advantage_valid"))
    return Replay(inputs, names, as_words(driven), as_words(expected))


def _cycles(
    block: DqnInference, network: Int8Network, observations: NDArray[np.int16], rng: np.random.Generator
) -> Iterator[tuple[dict[str, int], tuple[int, ...]]]:
    """Yield inputs and outputs (`_OUTPUTS`, then the advantage) of each cycle."""
    action = 0
    for name, rows in zip("wb", memory_rows(block, network), strict=True):
        for address, word in enumerate(rows):
            yield {f"{name}_en": 1, f"{name}_addr": address, f"{name}_data": word}, (0, 0, 0, action, 0)
    for observation, advantages in zip(observations, network.advantages(observations).tolist(), strict=True):
        for place, value in enumerate(observation.tolist()):
            yield {"x_en": 1, "x_addr": place, "x_data": value & (1 << block.activation_bits) - 1}, (0, 0, 0, action, 0)
        for _ in range(int(rng.integers(3))):
            yield {}, (0, 0, 0, action, 0)
        yield {"start": 1}, (0, 0, 0, action, 0)
        first = block.cycles - 1 - len(advantages)  # cycles after `start` in which the first of them leaves
        for cycle in range(1, block.cycles):
            number = cycle - first
            leaves = 0 <= number < len(advantages)
            total = advantages[number] if leaves else 0
            seen = (1, int(cycle == block.cycles - 1), int(leaves), action, total & ((1 << block.sum_bits) - 1))
            yield {"start": int(rng.integers(2)) if cycle < block.cycles - 1 else 0}, seen
            if leaves:
                action = _best(advantages[: number + 1])


def _best(advantages: Sequence[int]) -> int:
    """Return the number of the largest, the lowest of equal ones."""
    return int(np.argmax(advantages))

"""Addresses of up to 128 bits as two words of 64, left-aligned: how kernels of prefixes see them.

Bit 0 of an address, the highest, is bit 63 of the high word. Arrays of addresses are int64[address] for up to
`NARROW_WIDTH` bits, else uint64[address, 2]: high word and low word, left-aligned.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import kernel

__all__ = ["NARROW_WIDTH", "WORD_BITS", "as_addresses", "as_numbers", "as_words", "cut", "same", "shift_of"]

NARROW_WIDTH = 62
"""Bits of an address that stands in an int64."""

WORD_BITS = 64
_LOW = (1 << WORD_BITS) - 1
_ALL, _NONE = np.uint64(_LOW), np.uint64(0)


def as_addresses(numbers: Sequence[int], width: int) -> NDArray[Any]:
    """Return addresses of `width` bits as an array: int64[address], or uint64[address, 2].

    Examples
    --------
    >>> as_addresses([5], 62).tolist(), as_addresses([5], 126).tolist()
    ([5], [[0, 20]])
    """
    if width <= NARROW_WIDTH:
        return np.array(numbers, np.int64)
    aligned = [int(number) << (2 * WORD_BITS - width) for number in numbers]
    rows = [(number >> WORD_BITS, number & _LOW) for number in aligned]
    return np.array(rows, np.uint64).reshape(-1, 2)


def as_numbers(addresses: NDArray[Any], width: int) -> list[int]:
    """Return the addresses of an array as numbers.

    Examples
    --------
    >>> as_numbers(as_addresses([3 << 100, 7], 128), 128) == [3 << 100, 7]
    True
    """
    if addresses.ndim == 1:
        numbers: list[int] = addresses.tolist()
        return numbers
    return [(high << WORD_BITS | low) >> (2 * WORD_BITS - width) for high, low in addresses.tolist()]


def as_words(addresses: NDArray[Any]) -> NDArray[np.uint64]:
    """Return addresses as uint64[address, 1 or 2], without a copy."""
    words: NDArray[np.uint64] = np.ascontiguousarray(addresses).view(np.uint64)
    return words.reshape(-1, 1) if words.ndim == 1 else words


def shift_of(width: int) -> np.uint64:
    """Return by how much the words of an array must be shifted to be left-aligned."""
    return np.uint64(WORD_BITS - width if width <= NARROW_WIDTH else 0)


@kernel
def cut(high, low, length):  # type: ignore[no-untyped-def]
    """Return the words of a prefix: the bits behind `length` are 0."""
    if length <= 0:
        return _NONE, _NONE
    if length >= 128:
        return high, low
    if length <= 64:
        return high & (_ALL << np.uint64(64 - length)), _NONE
    return high, low & (_ALL << np.uint64(128 - length))


@kernel
def same(high, low, other_high, other_low, length):  # type: ignore[no-untyped-def]
    """Tell whether two addresses agree in their highest `length` bits."""
    high, low = cut(high ^ other_high, low ^ other_low, length)
    return high == 0 and low == 0

"""The table of tanh that the quantised network and its hardware share: 10-bit input, 8-bit output."""

import math

__all__ = ["FRACTION_BITS", "LARGEST", "LARGEST_INDEX", "tanh_table"]

#: bits behind the binary point of activations and of the table's input
FRACTION_BITS = 7
LARGEST_INDEX = 511
LARGEST = 127


def tanh_table() -> tuple[int, ...]:
    """Return round(128 · tanh(k / 128)) for k = 0 … 511, at most 127; tanh(−x) = −tanh(x)."""
    one = 1 << FRACTION_BITS
    return tuple(min(math.floor(one * math.tanh(k / one) + 0.5), LARGEST) for k in range(LARGEST_INDEX + 1))

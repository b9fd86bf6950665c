"""The table of tanh that the quantised network and its hardware share, and the numbers of activations."""

import math

__all__ = ["LEAST_ACTIVATION_BITS", "MOST_ACTIVATION_BITS", "TABLE_BITS", "TABLE_END", "tanh_table"]

#: with more than 12 bits the sums of 4096 inputs would not fit into 32 bits
LEAST_ACTIVATION_BITS, MOST_ACTIVATION_BITS = 8, 12
#: bits behind the binary point of the places of the table, and its last place
TABLE_BITS = 7
TABLE_END = 512


def tanh_table(fraction_bits: int = TABLE_BITS) -> tuple[int, ...]:
    """Return round(2^f · tanh(k / 128)) for k = 0 … 512, at most 2^f − 1; tanh(−x) = −tanh(x)."""
    one = 1 << fraction_bits
    return tuple(
        min(math.floor(one * math.tanh(k / (1 << TABLE_BITS)) + 0.5), one - 1) for k in range(TABLE_END + 1)
    )

"""Check bits of a stored word: parity, or a code that corrects one wrong bit and finds two (SECDED)."""

from functools import lru_cache
from itertools import combinations
from typing import Literal

__all__ = ["PROTECTIONS", "Protection", "check_bits", "code_columns", "code_masks", "word_parts"]

Protection = Literal["parity", "secded"]
PROTECTIONS: tuple[Protection, ...] = ("parity", "secded")


_WORD_MOST = 64


def word_parts(data_bits: int) -> tuple[int, ...]:
    """Return the widths of the code words that a flit of `data_bits` is cut into, the lowest bits first.

    Examples
    --------
    >>> word_parts(150)
    (64, 64, 22)
    """
    return tuple(min(_WORD_MOST, data_bits - first) for first in range(0, data_bits, _WORD_MOST))


def check_bits(data_bits: int, protection: Protection) -> int:
    """Return how many check bits a word needs.

    Raises
    ------
    ValueError
        No data bits.

    Examples
    --------
    >>> [check_bits(bits, "secded") for bits in (4, 26, 53, 57, 58)]
    [4, 6, 7, 7, 8]
    """
    if data_bits < 1:
        raise ValueError(f"data_bits must be at least 1, not {data_bits}")
    if protection == "parity":
        return 1
    bits = 4
    while (1 << bits - 1) - bits < data_bits:  # odd columns of more than one bit
        bits += 1
    return bits


@lru_cache
def code_columns(data_bits: int, protection: Protection) -> tuple[int, ...]:
    """Return the check bits that each data bit counts in (docs/definitions/protection.md).

    Parity: the one there is. SECDED: columns of three, five … bits, no two alike (Hsiao's code); of those with as many
    bits the next is the one that leaves the fullest check bit least full, then the smallest.

    Returns
    -------
    tuple of int
        ``[data bit]``: mask of check bits.
    """
    bits = check_bits(data_bits, protection)
    if protection == "parity":
        return (1,) * data_bits
    columns: list[int] = []
    filled = [0] * bits
    for weight in range(3, bits + 1, 2):
        left = [sum(1 << bit for bit in chosen) for chosen in combinations(range(bits), weight)]
        while left and len(columns) < data_bits:
            best = min(left, key=lambda column: (_counts(filled, column), column))
            left.remove(best)
            columns.append(best)
            filled = [count + (best >> bit & 1) for bit, count in enumerate(filled)]
    return tuple(columns)


def _counts(filled: list[int], column: int) -> list[int]:
    """Return how many data bits all check bits would have with one more column, the fullest first."""
    return sorted((count + (column >> bit & 1) for bit, count in enumerate(filled)), reverse=True)


def code_masks(data_bits: int, protection: Protection) -> tuple[int, ...]:
    """Return the data bits of which each check bit is the parity.

    Examples
    --------
    >>> code_masks(3, "parity")
    (7,)
    """
    columns = code_columns(data_bits, protection)
    return tuple(
        sum(1 << data for data, column in enumerate(columns) if column >> check & 1)
        for check in range(check_bits(data_bits, protection))
    )

"""Random words of the traffic on a board: xorshift32."""

__all__ = ["SHIFTS", "SPREAD", "first_word", "host_seed", "next_word"]

SHIFTS = (13, -17, 5)
"""Left, right (negative), left: each XORs the word with itself shifted."""

_WORD = (1 << 32) - 1
SPREAD = 0x9E3779B9
"""What the beginnings of hosts differ by, times their numbers."""


def first_word(seed: int) -> int:
    """Return where a beginning really begins: 0 would stay 0."""
    return seed or 1


def host_seed(seed: int, host: int) -> int:
    """Return the beginning of a host of a network."""
    return first_word(seed ^ (host * SPREAD & _WORD))


def next_word(word: int) -> int:
    """Return the word after `word`.

    Examples
    --------
    The first words after 1, as in Marsaglia's "Xorshift RNGs" with (13, 17, 5):

    >>> first = next_word(1)
    >>> first, next_word(first)
    (270369, 67634689)
    """
    word ^= word << 13 & _WORD
    word ^= word >> 17
    return word ^ (word << 5 & _WORD)

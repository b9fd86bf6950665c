"""The routing cache, functionally: which lookups hit, what is evicted, and why a lookup misses."""

from collections.abc import Iterator

_WORD = (1 << 64) - 1


def _splitmix(seed: int) -> Iterator[int]:
    """Numbers of 64 bits from `seed` (SplitMix64; Steele, Lea, Flood, 2014): the same on every machine and version."""
    state = seed & _WORD
    while True:
        state = (state + 0x9E3779B97F4A7C15) & _WORD
        word = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & _WORD
        word = ((word ^ word >> 27) * 0x94D049BB133111EB) & _WORD
        yield word ^ word >> 31


def _rank(rows: list[int]) -> int:
    """Rank over GF(2) of rows given as integers."""
    basis: list[int] = []
    for row in rows:
        for known in basis:
            row = min(row, row ^ known)
        if row:
            basis.append(row)
    return len(basis)


def skew_matrices(width_bits: int, row_bits: int, ways: int, seed: int = 1) -> tuple[tuple[int, ...], ...]:
    """Return the index functions of the ways of a skewed cache, as matrices over GF(2).

    Every matrix has full rank, so that keys spread evenly over each way, and so have any two of them together, so that
    keys which collide in one way spread evenly over every other.

    Parameters
    ----------
    width_bits : int
        Bits of the payload of a key.
    row_bits : int
        Bits of a row number, at most `width_bits`.
    ways : int
        Number of matrices.
    seed : int
        Another seed gives other matrices; the same one always the same.

    Returns
    -------
    tuple of tuple of int
        ``[way][bit]``: bit of the row number = parity of ``payload & mask``.

    Raises
    ------
    ValueError
        If `row_bits` is beyond `width_bits`, or there are too few bits for so many different ways.
    """
    if not 0 <= row_bits <= width_bits:
        raise ValueError(f"row_bits must be 0 to width_bits={width_bits}, not {row_bits}")
    numbers = _splitmix(seed)
    together = min(2 * row_bits, width_bits)
    matrices: list[tuple[int, ...]] = []
    for _ in range(1000 * ways):
        if len(matrices) == ways:
            return tuple(matrices)
        rows = [next(numbers) >> (64 - width_bits) for _ in range(row_bits)]
        if _rank(rows) == row_bits and all(_rank([*rows, *other]) == together for other in matrices):
            matrices.append(tuple(rows))
    if len(matrices) == ways:
        return tuple(matrices)
    raise ValueError(f"ways must be fewer for matrices of {row_bits} x {width_bits} bits, not {ways}")

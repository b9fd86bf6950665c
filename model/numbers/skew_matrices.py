"""Index functions of the ways of a skewed cache, as matrices over GF(2)."""

from collections.abc import Iterator

__all__ = ["skew_matrices"]

_WORD = (1 << 64) - 1
_CANDIDATES = 16


def skew_matrices(width_bits: int, row_bits: int, ways: int, seed: int = 1) -> tuple[tuple[int, ...], ...]:
    """Return the index functions of the ways of a skewed cache, as matrices over GF(2).

    Every matrix has full rank, so that keys spread evenly over each way. Of several candidates for a way the one is
    taken whose rank together with each earlier matrix is largest, so that keys which collide in one way spread over
    every other; with few ways that is full rank, too.

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
        If `row_bits` is beyond `width_bits`, or `width_bits` is beyond 64.
    """
    if not 0 <= row_bits <= width_bits <= _WORD.bit_length():
        raise ValueError(f"row_bits must be 0 to width_bits={width_bits} and that at most 64, not {row_bits}")
    numbers = _splitmix(seed)
    matrices: list[tuple[int, ...]] = []
    for _ in range(ways):
        candidates = [_full_rank(numbers, row_bits, width_bits) for _ in range(_CANDIDATES)]
        matrices.append(max(candidates, key=lambda rows: sorted(_rank([*rows, *other]) for other in matrices)))
    return tuple(matrices)


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
        rest = row
        for known in basis:
            rest = min(rest, rest ^ known)
        if rest:
            basis.append(rest)
    return len(basis)


def _full_rank(numbers: Iterator[int], row_bits: int, width_bits: int) -> tuple[int, ...]:
    while True:
        rows = [next(numbers) >> (64 - width_bits) for _ in range(row_bits)]
        if _rank(rows) == row_bits:
            return tuple(rows)

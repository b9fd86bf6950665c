import pytest

from hopforge.model.numbers.skew_matrices import skew_matrices


def test_skew_matrices() -> None:
    def rank(rows: tuple[int, ...]) -> int:
        span = {0}
        for row in rows:
            span |= {row ^ other for other in span}
        return len(span).bit_length() - 1

    matrices = skew_matrices(24, 5, 4)
    assert matrices == skew_matrices(24, 5, 4) != skew_matrices(24, 5, 4, seed=2)
    assert len(matrices) == 4 and all(len(rows) == 5 for rows in matrices)
    assert all(0 <= row < 1 << 24 for rows in matrices for row in rows)
    assert all(rank(rows) == 5 for rows in matrices)
    assert all(rank((*one, *other)) == 10 for one in matrices for other in matrices if one != other)
    assert skew_matrices(24, 0, 3) == ((), (), ())
    assert all(rank(rows) == 7 for rows in skew_matrices(8, 7, 3))
    with pytest.raises(ValueError, match="row_bits must be 0 to width_bits=8 and that at most 64, not 9"):
        skew_matrices(8, 9, 2)

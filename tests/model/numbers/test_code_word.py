"""What parity and SECDED find and correct, for every pair of bits."""

from itertools import combinations

import pytest

from hopforge.model.numbers.code_word import check_bits, code_columns, code_masks


@pytest.mark.parametrize(("data_bits", "bits"), [(1, 4), (4, 4), (5, 5), (11, 5), (12, 6), (26, 6), (57, 7), (64, 8)])
def test_no_two_changes_look_like_one(data_bits: int, bits: int) -> None:
    """As for every (extended) Hamming code: 4, 11, 26, 57 data bits at most with 4, 5, 6, 7 check bits."""
    assert check_bits(data_bits, "secded") == bits
    columns = (*code_columns(data_bits, "secded"), *(1 << check for check in range(bits)))
    assert len(set(columns)) == data_bits + bits
    assert 0 not in columns
    pairs = {first ^ second for first, second in combinations(columns, 2)}
    assert not pairs & {0, *columns}


def test_check_bits_are_evenly_filled() -> None:
    filled = [mask.bit_count() for mask in code_masks(53, "secded")]
    assert max(filled) - min(filled) <= 1
    assert code_masks(5, "parity") == (0b11111,)


def test_a_word_has_data() -> None:
    with pytest.raises(ValueError, match="data_bits must be at least 1, not 0"):
        check_bits(0, "parity")

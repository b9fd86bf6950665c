"""Digits of addresses, one at a time and over arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopforge.model.numbers.address import AddressFormat


@st.composite
def cases(draw: st.DrawFn) -> tuple[AddressFormat, list[int], list[list[int]]]:
    chunk_bits = draw(st.integers(1, 8))
    address = AddressFormat(draw(st.integers(chunk_bits, 60)), chunk_bits)
    radices = draw(st.lists(st.integers(1, 1 << chunk_bits), min_size=1, max_size=address.most_digits))
    digits = st.tuples(*(st.integers(0, radix - 1) for radix in radices)).map(list)
    return address, radices, draw(st.lists(digits, min_size=1, max_size=5))


@given(cases())
def test_digits_there_and_back(case: tuple[AddressFormat, list[int], list[list[int]]]) -> None:
    address, radices, many = case
    for digits in many:
        # from the definition, by strings of bits: digit 0 is the rightmost
        bits = "".join(f"{digit:0{address.chunk_bits}b}" for digit in reversed(digits))
        assert address.join(digits, radices) == address.join(digits) == int(bits, 2)
        assert address.split(int(bits, 2), len(radices)) == tuple(digits)
        address.check_network(int(bits, 2), radices)
    address.check_network_many(np.array([address.join(digits) for digits in many]), radices)


def test_digits_beyond_the_address_are_zero() -> None:
    address = AddressFormat(7, 3)
    assert address.split(0x7F, 4) == (7, 7, 1, 0)
    assert AddressFormat(60, 8).split(1, 12) == (1, *[0] * 11)


@pytest.mark.parametrize(
    ("width_bits", "chunk_bits", "message"),
    [
        (0, 1, "width_bits must be 1 to 60, not 0"),
        (61, 4, "width_bits must be 1 to 60, not 61"),
        (24, 0, "chunk_bits must be 1 to width_bits=24, not 0"),
        (4, 6, "chunk_bits must be 1 to width_bits=4, not 6"),
    ],
)
def test_bad_widths(width_bits: int, chunk_bits: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AddressFormat(width_bits, chunk_bits)


def test_radix_beyond_its_chunk() -> None:
    address = AddressFormat(24, 3)
    with pytest.raises(ValueError, match=r"radices\[1\] must be 1 to 8 \(chunk_bits=3\), not 9"):
        address.check_radices((5, 9))
    with pytest.raises(ValueError, match=r"radices\[0\] must be 1 to 8 \(chunk_bits=3\), not 0"):
        address.check_radices((0,))
    with pytest.raises(ValueError, match=r"radices must be at most 8 \(width_bits=24, chunk_bits=3\), not 9"):
        address.check_radices((2,) * 9)


def test_address_beyond_the_network() -> None:
    address = AddressFormat(24, 3)
    with pytest.raises(ValueError, match=r"digits\[1\] must be 0 to 4, not 5"):
        address.join([0, 5], [5, 5])
    for value, message in (
        (0o51, "address 0x29 is beyond the network: digit 1 must be less than 5, not 5"),
        (0o100, r"address must be less than 2\^6 \(2 digits of 3 bits\), not 0x40"),
        (1 << 24, r"address must be less than 2\^24 \(width_bits=24\), not 0x1000000"),
    ):
        with pytest.raises(ValueError, match=message):
            address.check_network(value, [5, 5])
        with pytest.raises(ValueError, match=message):
            address.check_network_many(np.array([0, value]), [5, 5])
    with pytest.raises(ValueError, match=r"address must be less than .*, not -0x1"):
        address.split(-1, 2)


def test_number_of_digits() -> None:
    address = AddressFormat(24, 4)
    with pytest.raises(ValueError, match=r"digits must be as many as radices=\(2, 2\), not 1"):
        address.join([1], [2, 2])

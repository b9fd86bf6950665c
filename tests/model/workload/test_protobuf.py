"""The wire format: bytes by hand, cut off, and written and read again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopforge.model.workload.protobuf import (
    Field,
    WireError,
    bytes_field,
    fields,
    number_field,
    numbers,
    packed,
    signed,
    varint,
    varints,
    zigzag,
)


def test_the_examples_of_the_documentation() -> None:
    # "Encoding": field 1 with 150; field 2 with the text testing; field 6, packed 3, 270, 86942
    assert list(fields(bytes.fromhex("089601"), 0, 3)) == [Field(1, 0, 150, 3)]
    text = bytes.fromhex("120774657374696e67")
    (found,) = fields(text, 0, len(text))
    assert text[found.value : found.end] == b"testing"
    repeated = bytes.fromhex("3206038e029ea705")
    (found,) = fields(repeated, 0, len(repeated))
    assert numbers(repeated, found).tolist() == [3, 270, 86942]
    minus_two = bytes.fromhex("feffffffffffffffff01")
    assert signed(varint(minus_two, 0, 10)[0]) == -2
    assert [zigzag(n) for n in (0, 1, 2, 3, 0xFFFFFFFE, 0xFFFFFFFF)] == [0, -1, 1, -2, 0x7FFFFFFF, -0x80000000]
    fixed = bytes.fromhex("0d01000080110200000000000080")
    assert [(each.number, each.value) for each in fields(fixed, 0, len(fixed))] == [
        (1, 0x80000001),
        (2, 0x8000000000000002),
    ]


@pytest.mark.parametrize(
    "octets, message",
    [
        ("80", "byte 0: truncated: a number goes on beyond byte 1"),
        ("0880", "byte 1: truncated: a number goes on beyond byte 2"),
        ("08ffffffffffffffffff02", "byte 1: a number of more than 64 bits"),
        ("08ffffffffffffffffffff01", "byte 1: a number of more than 64 bits"),
        ("0a05616263", "byte 0: truncated: field 1 has 5 bytes, but only 3 follow"),
        ("08010d0102", "byte 2: truncated: field 1 has 4 bytes, but only 2 follow"),
        ("0affffffffffffffffff01", "byte 0: truncated: field 1 has 18446744073709551615 bytes"),
        ("00", "byte 0: a field cannot have the number 0"),
        ("0b", "byte 0: field 1 has the unknown wire type 3"),
    ],
)
def test_what_is_no_message(octets: str, message: str) -> None:
    content = bytes.fromhex(octets)
    with pytest.raises(WireError, match=message.replace("(", r"\(")):
        list(fields(content, 0, len(content)))


@pytest.mark.parametrize(
    "octets, message",
    [
        ("0180", "byte 2: truncated: the last number"),
        ("01ffffffffffffffffff02", "byte 1: a number of more than 64 bits"),
        ("ffffffffffffffffffff01", "byte 0: a number of more than 64 bits"),
    ],
)
def test_what_is_no_list(octets: str, message: str) -> None:
    with pytest.raises(WireError, match=message):
        varints(bytes.fromhex(octets), 0, len(octets) // 2)


@given(st.lists(st.integers(0, (1 << 64) - 1)))
def test_lists_come_back_packed_and_single(values: list[int]) -> None:
    body = packed(values)
    assert varints(body, 0, len(body)).tolist() == values
    single = b"".join(number_field(5, value) for value in values)
    assert [each.value for each in fields(single, 0, len(single))] == values
    both = bytes_field(5, body)
    (found,) = fields(both, 0, len(both))
    assert np.array_equal(numbers(both, found), np.array(values, np.uint64))

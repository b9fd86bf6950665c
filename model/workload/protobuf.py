"""The wire format of Protocol Buffers, as far as messages of Chakra need it: reading fields, writing them.

Source: "Encoding" of the Protocol Buffers documentation. Fields that a reader does not want are stepped over.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: wire types; 3 and 4 (groups) are of a version that no producer writes
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
#: bytes of a varint of 64 bits
_LONGEST = 10
_ALL = (1 << 64) - 1
_FIXED = {FIXED64: 8, FIXED32: 4}


class WireError(ValueError):
    """Bytes that are no message: says at which byte."""


class Field(NamedTuple):
    """A field of a message.

    Attributes
    ----------
    number, wire : int
        Number and wire type.
    value : int
        Of BYTES where they begin, else the number as 64 or 32 bits without sign.
    end : int
        Of BYTES where they end, else where the field ends.
    """

    number: int
    wire: int
    value: int
    end: int


def varint(content: bytes, at: int, end: int) -> tuple[int, int]:
    """Return a varint as 64 bits without sign, and where it ends.

    Raises
    ------
    WireError
        It goes on beyond `end`, or has more than 64 bits.
    """
    if at < end and content[at] < 128:  # most are
        return content[at], at + 1
    value = shift = 0
    for place in range(at, min(end, at + _LONGEST)):
        byte = content[place]
        value |= (byte & 127) << shift
        if byte < 128:
            if value > _ALL:
                break
            return value, place + 1
        shift += 7
    else:
        if end < at + _LONGEST:
            raise WireError(f"byte {at}: truncated: a number goes on beyond byte {end}")
    raise WireError(f"byte {at}: a number of more than 64 bits")


def fields(content: bytes, at: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message from byte `at` to `end`.

    Raises
    ------
    WireError
        A field goes on beyond `end`, or is none.
    """
    while at < end:
        begin = at
        key, at = varint(content, at, end)
        wire, number = key & 7, key >> 3
        if not 0 < number < 1 << 29:
            raise WireError(f"byte {begin}: a field cannot have the number {number}")
        if wire == VARINT:
            value, at = varint(content, at, end)
            yield Field(number, wire, value, at)
            continue
        if wire == BYTES:
            size, at = varint(content, at, end)
        elif wire in _FIXED:
            size = _FIXED[wire]
        else:
            raise WireError(f"byte {begin}: field {number} has the unknown wire type {wire}")
        if size > end - at:
            raise WireError(
                f"byte {begin}: truncated: field {number} has {size} bytes, but only {end - at} follow"
            )
        value = at if wire == BYTES else int.from_bytes(content[at : at + size], "little")
        at += size
        yield Field(number, wire, value, at)


def varints(content: bytes, at: int, end: int) -> NDArray[np.uint64]:
    """Return the packed varints from byte `at` to `end`.

    Raises
    ------
    WireError
        The last one goes on beyond `end`, or one has more than 64 bits.
    """
    octets = np.frombuffer(content, np.uint8, end - at, at)
    ends = octets < 128
    if ends.all():  # also if there is none
        return octets.astype(np.uint64)
    last = ends.nonzero()[0]
    if octets[-1] >= 128:
        raise WireError(f"byte {end}: truncated: the last number of a list goes on")
    first = np.concatenate([[0], last[:-1] + 1])
    length = last - first + 1
    if length.max() >= _LONGEST:
        wrong = np.flatnonzero((length > _LONGEST) | ((length == _LONGEST) & (octets[last] > 1)))
        if len(wrong):
            raise WireError(f"byte {at + first[wrong[0]]}: a number of more than 64 bits")
    shift = (np.arange(len(octets)) - np.repeat(first, length)) * 7
    return np.bitwise_or.reduceat((octets & 127).astype(np.uint64) << shift.astype(np.uint64), first)


def numbers(content: bytes, field: Field) -> NDArray[np.uint64]:
    """Return what a field of repeated varints holds, packed or single.

    Raises
    ------
    WireError
        It holds none.
    """
    if field.wire == VARINT:
        return np.array([field.value], np.uint64)
    if field.wire != BYTES:
        raise WireError(f"byte {field.end}: field {field.number} holds no varints (wire type {field.wire})")
    return varints(content, field.value, field.end)


def signed(value: int, bits: int = 64) -> int:
    """Return the number with sign whose two's complement has these lowest bits."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def zigzag(value: int) -> int:
    """Return the number with sign that is written in zigzag (0, −1, 1, −2).

    Examples
    --------
    >>> [zigzag(n) for n in range(4)]
    [0, -1, 1, -2]
    """
    return (value >> 1) ^ -(value & 1)


# ---- writing -------------------------------------------------------------------------------------------------------


def varint_bytes(value: int) -> bytes:
    """Return a number as a varint; one below 0 by its 64 bits.

    Examples
    --------
    >>> varint_bytes(300).hex(), len(varint_bytes(-1))
    ('ac02', 10)
    """
    value &= _ALL
    octets = bytearray()
    while value > 127:
        octets.append(value & 127 | 128)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def number_field(number: int, value: int) -> bytes:
    """Return a field that holds a varint."""
    return varint_bytes(number << 3 | VARINT) + varint_bytes(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """Return a field that holds bytes: a text, a message, a packed list."""
    return varint_bytes(number << 3 | BYTES) + varint_bytes(len(value)) + value


def packed(values: Iterable[int]) -> bytes:
    """Return numbers as packed varints."""
    return b"".join(map(varint_bytes, values))

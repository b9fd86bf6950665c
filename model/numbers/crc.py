"""Cyclic redundancy checks as hash functions of addresses, for the golden model and as tables for the hardware.

One definition (`crc`, bit by bit), and faster forms that are tested against it: byte tables (`crc_tables`, in numba
kernels `table_crc`) and the affine map over GF(2) that a CRC of a fixed number of bits is (`crc_matrix`).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.kernel.compile import kernel
from hopforge.model.numbers.crc_catalogue import Crc, crc_spec

__all__ = ["CrcMatrix", "crc", "crc_address", "crc_addresses", "crc_matrix", "crc_tables", "table_crc"]


class CrcMatrix(NamedTuple):
    """A CRC of words of a fixed width as an affine map over GF(2).

    Attributes
    ----------
    masks : tuple of int
        One input mask per output bit, output bit 0 first: the bit is the parity of ``word & mask``.
    constant : int
        Exclusive-ored with the parities: the CRC of word 0.
    """

    masks: tuple[int, ...]
    constant: int


def crc(which: Crc, data: bytes) -> int:
    """Return the CRC of `data`, bit by bit from the definition.

    Examples
    --------
    >>> hex(crc("CRC-32C", b"123456789"))
    '0xe3069283'
    """
    spec = crc_spec(which)
    register = spec.init
    for byte in data:
        for position in range(8):
            bit = byte >> (position if spec.refin else 7 - position) & 1
            carry = register >> (spec.width - 1) ^ bit
            register = register << 1 & (1 << spec.width) - 1
            if carry:
                register ^= spec.poly
    if spec.refout:
        register = int(f"{register:0{spec.width}b}"[::-1], 2)
    return register ^ spec.xorout


def crc_address(which: Crc, address: int, width_bits: int = 24) -> int:
    """Return the CRC of an address of `width_bits` bits, taken as ⌈width_bits/8⌉ big-endian bytes.

    Raises
    ------
    ValueError
        If the address does not fit.

    Examples
    --------
    >>> hex(crc_address("CRC-32C", 0x123456))
    '0x26e9c299'
    """
    if not 0 <= address < 1 << width_bits:
        raise ValueError(f"address must be less than 2^{width_bits} (width_bits={width_bits}), not {address:#x}")
    return crc(which, address.to_bytes(-(-width_bits // 8), "big"))


def crc_matrix(which: Crc, width_bits: int) -> CrcMatrix:
    """Return the CRC of addresses of `width_bits` bits as an affine map over GF(2).

    Examples
    --------
    A CRC of one bit with polynomial 1 is the parity:

    >>> from hopforge.model.numbers.crc_catalogue import CrcSpec
    >>> crc_matrix(CrcSpec(1, 1), 4)
    CrcMatrix(masks=(15,), constant=0)
    """
    spec = crc_spec(which)
    constant = crc_address(spec, 0, width_bits)
    columns = [crc_address(spec, 1 << bit, width_bits) ^ constant for bit in range(width_bits)]
    masks = tuple(
        sum((column >> row & 1) << bit for bit, column in enumerate(columns)) for row in range(spec.width)
    )  # fmt: skip
    return CrcMatrix(masks, constant)


def affine_tables(matrix: CrcMatrix, width_bits: int) -> NDArray[np.uint64]:
    """Return the byte tables of an affine map of `width_bits` bits; see `crc_tables`."""
    columns = [
        sum((mask >> bit & 1) << row for row, mask in enumerate(matrix.masks)) for bit in range(width_bits)
    ]  # fmt: skip
    tables = np.zeros((-(-width_bits // 8), 256), dtype=np.uint64)
    for bit, column in enumerate(columns):
        byte, position = divmod(bit, 8)
        tables[byte, np.arange(256) >> position & 1 == 1] ^= np.uint64(column)
    tables[0] ^= np.uint64(matrix.constant)
    return tables


def crc_tables(which: Crc, width_bits: int) -> NDArray[np.uint64]:
    """Return the byte tables of the CRC of addresses of `width_bits` bits, for `table_crc`.

    Returns
    -------
    ndarray, uint64[byte, 256]
        Byte 0 is the least significant byte of the address; the CRC is the exclusive or of one entry of each row.
    """
    return affine_tables(crc_matrix(which, width_bits), width_bits)


@kernel(inline="always")
def table_crc(tables, word):  # type: ignore[no-untyped-def]
    """CRC of one address from `crc_tables`; for use in kernels.

    Parameters
    ----------
    tables : ndarray, uint64[byte, 256]
    word : int64

    Returns
    -------
    uint64
    """
    result = tables[0, word & 255]
    for byte in range(1, tables.shape[0]):
        result ^= tables[byte, (word >> (8 * byte)) & 255]
    return result


@kernel
def _crc_words(tables, words, result):  # type: ignore[no-untyped-def]
    for index in range(len(words)):
        result[index] = table_crc(tables, words[index])


def crc_addresses(which: Crc, addresses: ArrayLike, width_bits: int = 24) -> NDArray[np.uint64]:
    """Return the CRC of every address, as `crc_address` does for one.

    Parameters
    ----------
    which : str or parameters
        The CRC.
    addresses : array_like of int
        Any shape.
    width_bits : int
        Width of an address, at most 63.

    Returns
    -------
    ndarray, uint64
        Of the same shape.

    Raises
    ------
    ValueError
        If an address does not fit.
    """
    words = np.ascontiguousarray(addresses, dtype=np.int64)
    outside = (words < 0) | (words >> width_bits != 0)
    if outside.any():
        first = int(words[outside][0])
        raise ValueError(f"address must be less than 2^{width_bits} (width_bits={width_bits}), not {first:#x}")
    result = np.empty(words.shape, dtype=np.uint64)
    _crc_words(crc_tables(which, width_bits), words.reshape(-1), result.reshape(-1))
    return result

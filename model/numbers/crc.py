"""Cyclic redundancy checks as hash functions of addresses, for the golden model and as tables for the hardware.

One definition (`crc`, bit by bit), and faster forms that are tested against it: byte tables (`crc_tables`, in numba
kernels `table_crc`) and the affine map over GF(2) that a CRC of a fixed number of bits is (`crc_matrix`).
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.kernel.compile import kernel

__all__ = [
    "CRC", "Crc", "CrcMatrix", "CrcSpec", "crc", "crc_address", "crc_addresses", "crc_matrix", "crc_spec", "crc_tables",
    "table_crc",
]

MAX_WIDTH = 64


class CrcParameters(Protocol):
    """Anything with the parameters of a CRC: a `CrcSpec` or the section `CrcConfig` of a configuration."""

    @property
    def width(self) -> int: ...
    @property
    def poly(self) -> int: ...
    @property
    def init(self) -> int: ...
    @property
    def refin(self) -> bool: ...
    @property
    def refout(self) -> bool: ...
    @property
    def xorout(self) -> int: ...


Crc = str | CrcParameters
"""What names a CRC: an entry of `CRC`, or parameters."""


@dataclass(frozen=True)
class CrcSpec:
    """Parameters of a CRC in the usual notation (Rocksoft; Williams, 1993).

    Parameters
    ----------
    width : int
        Width of the register in bits, 1 to 64.
    poly : int
        Polynomial without its leading 1, highest power in the highest bit, never reflected.
    init : int
        Register at the start (as if nothing were reflected).
    refin : bool
        Take each byte with its lowest bit first.
    refout : bool
        Reflect the register at the end.
    xorout : int
        Combined with the result by exclusive or.

    Raises
    ------
    ValueError
        If the width is outside of 1 to 64, or a value does not fit it.
    """

    width: int
    poly: int
    init: int = 0
    refin: bool = False
    refout: bool = False
    xorout: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.width <= MAX_WIDTH:
            raise ValueError(f"width must be 1 to {MAX_WIDTH}, not {self.width}")
        for name in ("poly", "init", "xorout"):
            value = getattr(self, name)
            if not 0 <= value < 1 << self.width:
                raise ValueError(f"{name} must be less than 2^{self.width} (width={self.width}), not {value:#x}")


CRC: dict[str, CrcSpec] = {
    "CRC-24/OPENPGP": CrcSpec(24, 0x864CFB, 0xB704CE),
    "CRC-24/BLE": CrcSpec(24, 0x00065B, 0x555555, refin=True, refout=True),
    "CRC-24/INTERLAKEN": CrcSpec(24, 0x328B63, 0xFFFFFF, xorout=0xFFFFFF),
    "CRC-32": CrcSpec(32, 0x04C11DB7, 0xFFFFFFFF, refin=True, refout=True, xorout=0xFFFFFFFF),
    "CRC-32C": CrcSpec(32, 0x1EDC6F41, 0xFFFFFFFF, refin=True, refout=True, xorout=0xFFFFFFFF),
    "CRC-32/BZIP2": CrcSpec(32, 0x04C11DB7, 0xFFFFFFFF, xorout=0xFFFFFFFF),
}
"""Catalogue of CRCs by name."""

DEFAULT_CRC = "CRC-32C"


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


def crc_spec(which: Crc) -> CrcSpec:
    """Return the parameters that `which` names or holds.

    Raises
    ------
    ValueError
        For a name that is not in the catalogue; the message lists those that are.
    """
    if isinstance(which, CrcSpec):
        return which
    if not isinstance(which, str):
        return CrcSpec(which.width, which.poly, which.init, which.refin, which.refout, which.xorout)
    if which not in CRC:
        raise ValueError(f"crc must be one of {', '.join(CRC)}, not {which!r}")
    return CRC[which]


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

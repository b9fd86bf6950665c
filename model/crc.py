"""Cyclic redundancy checks: any width, polynomial and reflection; one at a time, over arrays, in kernels, as a matrix.

The message of an address is its ⌈A/8⌉ bytes, most significant first (spec/lookup.md).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.lookup import CrcConfig

F = TypeVar("F", bound=Callable[..., object])
_jit: Callable[[F], F] = numba.njit(cache=True)

_CHECK_MESSAGE = b"123456789"


@dataclass(frozen=True)
class CrcSpec:
    """Parameters of a CRC in the usual (Rocksoft) model.

    Attributes
    ----------
    width : int
        Bits of the register, 1 to 64.
    poly, init, xorout : int
        Generator polynomial without its leading term, start value, and what is XORed to the result.
    refin, refout : bool
        Whether the bits of each message byte, and of the result, are reflected.
    """

    width: int
    poly: int
    init: int = 0
    refin: bool = False
    refout: bool = False
    xorout: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.width <= 64:
            raise ValueError(f"width must be 1 to 64, not {self.width}")
        for name in ("poly", "init", "xorout"):
            value = getattr(self, name)
            if not 0 <= value < 1 << self.width:
                raise ValueError(f"{name} must be at least 0 and fit width={self.width} bits, not {value:#x}")


CRC = {
    "CRC-24/OPENPGP": CrcSpec(24, 0x864CFB, 0xB704CE, False, False, 0),
    "CRC-24/BLE": CrcSpec(24, 0x00065B, 0x555555, True, True, 0),
    "CRC-24/INTERLAKEN": CrcSpec(24, 0x328B63, 0xFFFFFF, False, False, 0xFFFFFF),
    "CRC-32": CrcSpec(32, 0x04C11DB7, 0xFFFFFFFF, True, True, 0xFFFFFFFF),
    "CRC-32C": CrcSpec(32, 0x1EDC6F41, 0xFFFFFFFF, True, True, 0xFFFFFFFF),
    "CRC-32/BZIP2": CrcSpec(32, 0x04C11DB7, 0xFFFFFFFF, False, False, 0xFFFFFFFF),
}
"""The catalogue by name (reveng.sourceforge.io names)."""


def crc_spec(crc: str | CrcConfig | CrcSpec) -> CrcSpec:
    """Return the parameters of a catalogue name, a section of the configuration, or a `CrcSpec` itself.

    Raises
    ------
    ValueError
        An unknown name (the message lists the known ones), or a value that does not fit the width.
    """
    if isinstance(crc, CrcSpec):
        return crc
    if isinstance(crc, CrcConfig):
        return CrcSpec(crc.width, crc.poly, crc.init, crc.refin, crc.refout, crc.xorout)
    if crc not in CRC:
        raise ValueError(f"crc must be one of {', '.join(CRC)}, not {crc!r}")
    return CRC[crc]


def crc(spec: CrcSpec, message: bytes) -> int:
    """Return the CRC of `message`, bit by bit from the definition.

    Examples
    --------
    >>> hex(crc(CRC["CRC-32C"], b"123456789"))
    '0xe3069283'
    """
    top = 1 << spec.width - 1
    register = spec.init
    for byte in message:
        for position in range(8):
            bit = byte >> (position if spec.refin else 7 - position) & 1
            feedback = bool(register & top) ^ bool(bit)
            register = register << 1 & (1 << spec.width) - 1
            if feedback:
                register ^= spec.poly
    if spec.refout:
        register = int(f"{register:0{spec.width}b}"[::-1], 2)
    return register ^ spec.xorout


def check_value(spec: CrcSpec) -> int:
    """Return the CRC of the ASCII digits 1 to 9, by which catalogues identify a CRC."""
    return crc(spec, _CHECK_MESSAGE)


def address_bytes(width_bits: int) -> int:
    """Return the number of message bytes of an address of `width_bits`.

    Raises
    ------
    ValueError
        A width outside 1 to 64.
    """
    if not 1 <= width_bits <= 64:
        raise ValueError(f"width_bits must be 1 to 64, not {width_bits}")
    return -(-width_bits // 8)


def crc_address(spec: CrcSpec, address: int, width_bits: int = 24) -> int:
    """Return the CRC of one address as ⌈width_bits/8⌉ big-endian bytes.

    Raises
    ------
    ValueError
        An address that does not fit `width_bits`.

    Examples
    --------
    >>> hex(crc_address(CRC["CRC-32C"], 0x123456))
    '0x26e9c299'
    """
    length = address_bytes(width_bits)
    if not 0 <= address < 1 << width_bits:
        raise ValueError(f"address must be at least 0 and fit width_bits={width_bits}, not {address:#x}")
    return crc(spec, address.to_bytes(length, "big"))


def crc_matrix(crc: str | CrcConfig | CrcSpec, width_bits: int) -> tuple[tuple[int, ...], int]:
    """Return the CRC of a `width_bits` address as an affine map over GF(2).

    A CRC of messages of one length is linear but for a constant: output bit j is the parity of
    ``address & masks[j]``, inverted where bit j of `constant` is set. The hardware is made of exactly this.

    Returns
    -------
    masks : tuple of int
        Input mask per output bit, output bit 0 first; as many as the CRC is wide.
    constant : int
        The CRC of address 0.
    """
    spec = crc_spec(crc)
    constant = crc_address(spec, 0, width_bits)
    columns = [crc_address(spec, 1 << bit, width_bits) ^ constant for bit in range(width_bits)]
    masks = tuple(sum((column >> row & 1) << bit for bit, column in enumerate(columns)) for row in range(spec.width))
    return masks, constant


def crc_tables(crc: str | CrcConfig | CrcSpec, width_bits: int = 24) -> NDArray[np.uint64]:
    """Return byte tables for `crc_kernel`: ``uint64[byte + 1, 256]``.

    Row b holds the contribution of byte b (0 = least significant); the constant is in entry ``[-1, 0]``.
    """
    spec = crc_spec(crc)
    masks, constant = crc_matrix(spec, width_bits)
    length = address_bytes(width_bits)
    tables = np.zeros((length + 1, 256), dtype=np.uint64)
    words = np.arange(256, dtype=np.uint64)
    for byte in range(length):
        for row, mask in enumerate(masks):
            part = words & np.uint64(mask >> 8 * byte & 0xFF)
            tables[byte] |= (np.bitwise_count(part).astype(np.uint64) & np.uint64(1)) << np.uint64(row)
    tables[length, 0] = constant
    return tables


@_jit
def crc_kernel(tables, address):  # type: ignore[no-untyped-def]
    """CRC of one address inside a kernel; `tables` from `crc_tables`."""
    length = tables.shape[0] - 1
    value = tables[length, 0]
    for byte in range(length):
        value ^= tables[byte, (address >> (8 * byte)) & 255]
    return value


@_jit
def _crc_loop(tables, addresses, values):  # type: ignore[no-untyped-def]
    for i in range(len(addresses)):
        values[i] = crc_kernel(tables, addresses[i])


def crc_addresses(spec: CrcSpec, addresses: NDArray[np.integer], width_bits: int = 24) -> NDArray[np.uint64]:
    """Return the CRCs of many addresses, ``uint64`` in the shape of `addresses`.

    Raises
    ------
    ValueError
        An address that does not fit `width_bits`.
    """
    flat = np.asarray(addresses).reshape(-1)
    if len(flat) and (int(flat.min()) < 0 or int(flat.max()) >> width_bits):
        bad = int(flat.min()) if int(flat.min()) < 0 else int(flat.max())
        raise ValueError(f"addresses must be at least 0 and fit width_bits={width_bits}, not {bad:#x}")
    values = np.empty(flat.shape, dtype=np.uint64)
    _crc_loop(crc_tables(spec, width_bits), flat.astype(np.int64), values)
    return values.reshape(np.shape(addresses))

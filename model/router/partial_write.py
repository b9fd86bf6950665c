"""What a write of some bytes of a word does (docs/definitions/register-buses.md)."""

from hopforge.model.lookup.csr import WORD_BITS, Register
from hopforge.model.router.bus_space import WRITABLE

__all__ = ["BYTES", "byte_mask", "can_be_partial", "writable_bytes"]

BYTES = WORD_BITS // 8
"""Bytes of a word."""


def byte_mask(strobes: int) -> int:
    """Return the bits of the bytes whose strobes are set.

    >>> hex(byte_mask(0b0101))
    '0xff00ff'
    """
    return sum(0xFF << 8 * byte for byte in range(BYTES) if strobes >> byte & 1)


def writable_bytes(register: Register) -> int:
    """Return a bit for each byte of a register that holds a bit of a field that can be written."""
    mask = 0
    for field in register.fields:
        if field.access in WRITABLE:
            mask |= field.mask
    return sum(1 << byte for byte in range(BYTES) if mask >> 8 * byte & 0xFF)


def can_be_partial(register: Register, *, readable: bool) -> bool:
    """Whether some of the writable bytes can be written alone: what is not written must be there to be kept."""
    return readable and not any(field.access == "wo" for field in register.fields)

"""Parameters of cyclic redundancy checks, and the usual ones by name; `crc` computes them."""

from dataclasses import dataclass
from typing import Protocol

__all__ = ["CRC", "DEFAULT_CRC", "Crc", "CrcSpec", "crc_spec"]

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

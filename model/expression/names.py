"""What an expression can name: digits of addresses and constants of a network."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["INPUTS", "LEVELS", "Digit", "Names", "Table"]

Table = tuple["int | Table", ...]
"""A list of numbers, or of such lists."""

INPUTS = ("dst", "own", "level", "terminal", "d", "c")
"""Names that are not constants."""

LEVELS = 32
"""Values of `level`, of a register of 5 bits."""


class Digit(NamedTuple):
    """⌊x / divisor⌋ mod modulus, of an address x."""

    divisor: int
    modulus: int

    def of(self, address: int) -> int:
        """Return the digit of an address."""
        return address // self.divisor % self.modulus


@dataclass(frozen=True)
class Names:
    """Names of a network.

    Attributes
    ----------
    address_bits : int
        Width A of `dst` and `own`.
    d, c : tuple of Digit
        Digits of a destination, and of the own address.
    terminal : Digit, optional
        Digit of the host at its router; None: a router has one.
    constants : Mapping
        Numbers and tables by name; `address_bits` is added.
    """

    address_bits: int
    d: tuple[Digit, ...] = ()
    c: tuple[Digit, ...] = ()
    terminal: Digit | None = None
    constants: Mapping[str, "int | Table"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        constants = {"address_bits": self.address_bits, **self.constants}
        object.__setattr__(self, "constants", constants)

    @property
    def known(self) -> tuple[str, ...]:
        """All names, for messages."""
        digits = [name for name in ("d", "c") if getattr(self, name)]
        return ("dst", "own", "level", "terminal", *digits, *self.constants)

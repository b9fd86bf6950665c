"""What a collective unit is made with, and the flits of its plane (docs/definitions/network-collectives.md)."""

from dataclasses import dataclass
from typing import NamedTuple

from hopforge.model.config import Config

__all__ = ["OPERATIONS", "Flit", "PlaneParams"]

OPERATIONS = ("barrier", "multicast", "sum", "min", "max", "and", "or", "xor")
"""Operations in the order of their codes."""

_OPERATION_BITS = 3


class Flit(NamedTuple):
    """A word on its way.

    Attributes
    ----------
    group : int
        Whose it is.
    operation : int
        Place in `OPERATIONS`.
    sequence : int
        Number of the operation in its group, modulo 2^sequence_bits.
    last : int
        1: last word of the operation.
    error : int
        1: a unit saw that members did not agree.
    word : int
        What it carries.
    """

    group: int
    operation: int
    sequence: int
    last: int
    error: int
    word: int


@dataclass(frozen=True, kw_only=True)
class PlaneParams:
    """All units of a plane have these.

    Parameters
    ----------
    groups : int
        Groups that a unit has buffers for, 1 to 16.
    width_bits : int
        Of a word, 1 to 1024.
    buffer_flits : int
        Flits of a group that an input holds, 1 to 256; also what a host holds.
    sequence_bits : int
        Of the number of an operation, 1 to 16.

    Raises
    ------
    ValueError
        Out of these limits.
    """

    groups: int = 2
    width_bits: int = 32
    buffer_flits: int = 4
    sequence_bits: int = 4

    def __post_init__(self) -> None:
        limits = {"groups": 16, "width_bits": 1024, "buffer_flits": 256, "sequence_bits": 16}
        for name, most in limits.items():
            value = getattr(self, name)
            if not 1 <= value <= most:
                raise ValueError(f"{name} must be 1 to {most}, not {value}")

    @classmethod
    def from_config(cls, config: Config) -> "PlaneParams":
        """Return those of section `collective_plane`."""
        plane = config.collective_plane
        return cls(
            groups=plane.max_groups, width_bits=plane.width_bits, buffer_flits=plane.buffer_flits,
            sequence_bits=plane.sequence_bits,
        )  # fmt: skip

    @property
    def group_bits(self) -> int:
        """Bits of the number of a group, at least 1."""
        return max(1, (self.groups - 1).bit_length())

    @property
    def held_bits(self) -> int:
        """Bits of a flit in a buffer, which knows its group."""
        return self.width_bits + 2 + _OPERATION_BITS + self.sequence_bits

    @property
    def flit_bits(self) -> int:
        """Bits of a flit on a link."""
        return self.held_bits + self.group_bits

    @property
    def fields(self) -> tuple[tuple[str, int], ...]:
        """Name and bits of the fields of a flit, the lowest first."""
        return (
            ("word", self.width_bits), ("last", 1), ("error", 1), ("operation", _OPERATION_BITS),
            ("sequence", self.sequence_bits), ("group", self.group_bits),
        )  # fmt: skip

    def packed(self, flit: Flit) -> int:
        """Return a flit as the number that stands on a link."""
        number, at = 0, 0
        for name, bits in self.fields:
            number |= getattr(flit, name) << at
            at += bits
        return number

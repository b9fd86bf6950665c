"""Destination addresses made of digits (chunks) of equal width, digit 0 in the least significant bits."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import kernel

MAX_WIDTH_BITS = 60  # a key (address + 4 bits) stays a positive int64


@dataclass(frozen=True)
class AddressFormat:
    """Width of an address and of one of its digits.

    Parameters
    ----------
    width_bits : int
        Width of an address.
    chunk_bits : int
        Width of a digit, K; a digit holds 2^K values.

    Raises
    ------
    ValueError
        If a width is below 1, a digit wider than an address, or an address wider than 60 bits.

    Examples
    --------
    >>> address = AddressFormat(24, 4)
    >>> hex(address.join([3, 0, 1]))
    '0x103'
    >>> address.split(0x103, 3)
    (3, 0, 1)
    """

    width_bits: int = 24
    chunk_bits: int = 4

    def __post_init__(self) -> None:
        if not 1 <= self.width_bits <= MAX_WIDTH_BITS:
            raise ValueError(f"width_bits must be 1 to {MAX_WIDTH_BITS}, not {self.width_bits}")
        if not 1 <= self.chunk_bits <= self.width_bits:
            raise ValueError(f"chunk_bits must be 1 to width_bits={self.width_bits}, not {self.chunk_bits}")

    @property
    def most_digits(self) -> int:
        """Whole digits that an address holds."""
        return self.width_bits // self.chunk_bits

    @property
    def digit_values(self) -> int:
        """Values of a digit, 2^chunk_bits."""
        return 1 << self.chunk_bits

    def check_radices(self, radices: Sequence[int]) -> None:
        """Check that a network with `radices` values per digit, digit 0 first, can be addressed.

        Raises
        ------
        ValueError
            If a radix is below 1 or beyond its chunk, or the digits do not fit the address.
        """
        for index, radix in enumerate(radices):
            if not 1 <= radix <= self.digit_values:
                raise ValueError(
                    f"radices[{index}] must be 1 to {self.digit_values} (chunk_bits={self.chunk_bits}), not {radix}"
                )
        if len(radices) > self.most_digits:
            raise ValueError(
                f"radices must be at most {self.most_digits}"
                f" (width_bits={self.width_bits}, chunk_bits={self.chunk_bits}), not {len(radices)}"
            )

    def join(self, digits: Sequence[int], radices: Sequence[int] | None = None) -> int:
        """Return the address with `digits`, digit 0 first.

        Parameters
        ----------
        digits : sequence of int
            Little-endian.
        radices : sequence of int, optional
            Values of each digit in the network; 2^chunk_bits by default.

        Raises
        ------
        ValueError
            If a digit is beyond its radix (an address beyond the network) or a radix beyond its chunk.
        """
        limits = [self.digit_values] * len(digits) if radices is None else list(radices)
        self.check_radices(limits)
        if len(digits) != len(limits):
            raise ValueError(f"digits must be as many as radices={tuple(limits)}, not {len(digits)}")
        for index, (digit, limit) in enumerate(zip(digits, limits, strict=True)):
            if not 0 <= digit < limit:
                raise ValueError(f"digits[{index}] must be 0 to {limit - 1}, not {digit}")
        return sum(digit << index * self.chunk_bits for index, digit in enumerate(digits))

    def split(self, address: int, count: int) -> tuple[int, ...]:
        """Return the lowest `count` digits of an address, digit 0 first; 0 where the address ends before.

        Raises
        ------
        ValueError
            If the address does not fit its width.
        """
        self.check(address)
        return tuple(self.digit(address, index) for index in range(count))

    def digit(self, address: int, index: int) -> int:
        """Return digit `index` of `address`: bits [K·index, K·index + K), 0 where the address ends before."""
        return address >> index * self.chunk_bits & (1 << self.chunk_bits) - 1

    def check(self, address: int) -> None:
        """Check one address.

        Raises
        ------
        ValueError
            If it does not fit `width_bits`.
        """
        if not 0 <= address < 1 << self.width_bits:
            limit = f"2^{self.width_bits} (width_bits={self.width_bits})"
            raise ValueError(f"address must be less than {limit}, not {address:#x}")

    def check_network(self, address: int, radices: Sequence[int]) -> None:
        """Check that an address is one of the network with `radices` values per digit.

        Raises
        ------
        ValueError
            If it does not fit the width, a digit is beyond its radix, or a bit above the last digit is set.
        """
        self.check(address)
        for index, radix in enumerate(radices):
            if self.digit(address, index) >= radix:
                raise ValueError(
                    f"address {address:#x} is beyond the network: digit {index} must be less than {radix},"
                    f" not {self.digit(address, index)}"
                )
        if address >> len(radices) * self.chunk_bits:
            raise ValueError(
                f"address must be less than 2^{len(radices) * self.chunk_bits}"
                f" ({len(radices)} digits of {self.chunk_bits} bits), not {address:#x}"
            )

    def check_many(self, addresses: NDArray[np.int64]) -> None:
        """Check every address, as `check` does for one."""
        outside = addresses >> self.width_bits != 0
        if outside.any():
            self.check(int(addresses[outside][0]))

    def check_network_many(self, addresses: NDArray[np.int64], radices: Sequence[int]) -> None:
        """Check every address, as `check_network` does for one."""
        words = np.ascontiguousarray(addresses, dtype=np.int64).reshape(-1)
        outside = _first_outside(words, self.chunk_bits, np.array(radices, dtype=np.int64))
        if outside >= 0:
            self.check_network(int(words[outside]), radices)


@kernel
def _first_outside(words, chunk_bits, radices):  # type: ignore[no-untyped-def]
    """Return the place of the first address that is not of the network, -1 if all are."""
    mask = (1 << chunk_bits) - 1
    for index in range(len(words)):
        rest = words[index]
        good = True
        for digit in range(len(radices)):
            good &= (rest & mask) < radices[digit]
            rest >>= chunk_bits
        if not (good and rest == 0):
            return index
    return -1

"""Sets of a cube cache: which one an address belongs to, and how wide a cube may be.

The set is a hash of the highest `index_bits` of an address. A cube is cut to these bits if it is wider: so all its
addresses belong to one set, and a lookup needs that one alone. Definition: docs/definitions/rule-caches.md, *Sets*.
"""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.lookup.rules.cubes import prefix_mask
from hopforge.model.numbers.crc import crc_tables
from hopforge.model.numbers.crc_catalogue import Crc

__all__ = ["SET_HASH", "CubeSets", "default_index_bits"]

SET_HASH: Crc = "CRC-32C"
"""Hash of the highest bits; its lowest bits are the set."""


def default_index_bits(policy: str, width: int) -> int:
    """Return how many bits choose the set if nobody says it: all for `exact`, else three quarters, 48 at most.

    Examples
    --------
    >>> default_index_bits("mep", 32), default_index_bits("mep", 128), default_index_bits("exact", 128)
    (24, 48, 128)
    """
    return width if policy == "exact" else max(1, min(width * 3 // 4, 48))


class CubeSets:
    """The sets of a cache.

    Parameters
    ----------
    width : int
        Bits of an address.
    index_bits : int
        Highest bits of an address that are hashed, 1 to `width`; 0 with one set.
    sets : int
        Power of two, at most 2^32.

    Attributes
    ----------
    floor : int
        Mask of the highest `index_bits`: no cube is wider.
    tables : ndarray, int64[byte, 256]
        The hash is the exclusive OR of ``tables[k, byte k of the hashed bits]``, the lowest byte first.

    Examples
    --------
    >>> sets = CubeSets(32, 24, 4)
    >>> sets.number(0x12345678) == sets.number(0x123456FF)
    True
    >>> sets.cut((0x12000000, 0xFF000000), 0x12345678) == (0x12345600, 0xFFFFFF00)
    True
    """

    def __init__(self, width: int, index_bits: int, sets: int) -> None:
        self.width, self.index_bits, self.sets = width, index_bits, sets
        self.floor = prefix_mask(index_bits, width)
        self.tables: NDArray[np.int64] = np.zeros((0, 256), np.int64)
        if sets > 1:
            self.tables = (crc_tables(SET_HASH, index_bits) & np.uint64(sets - 1)).astype(np.int64)
        self._rows: list[list[int]] = self.tables.tolist()

    def number(self, address: int) -> int:
        """Return the set of an address, and of every cube around it that is not wider than `floor`."""
        word, found = address >> (self.width - self.index_bits), 0
        for row in self._rows:
            found ^= row[word & 255]
            word >>= 8
        return found

    def cut(self, cube: tuple[int, int], address: int) -> tuple[int, int]:
        """Return a cube, or if it is wider than `floor` the part of it around an address."""
        mask = cube[1] | self.floor
        return address & mask, mask

"""Values and masks of many cubes in words of `NARROW_WIDTH` bits, so that all of them are asked at once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.lookup.rules.address_words import NARROW_WIDTH

__all__ = ["CubeColumns"]

_WORD = (1 << NARROW_WIDTH) - 1
#: value of a place without a cube: no address has it under mask 0
_NOTHING = -1

Bools = NDArray[np.bool_]


class CubeColumns:
    """Cubes in places from 0 on.

    Parameters
    ----------
    values, masks : sequence of int
        Of each.
    width : int
        Bits of an address.
    """

    def __init__(self, values: Sequence[int], masks: Sequence[int], width: int) -> None:
        self._shifts = tuple(range(0, width, NARROW_WIDTH))
        self._words: NDArray[np.int64] = self._columns(values, masks)

    @classmethod
    def empty(cls, places: int, width: int) -> "CubeColumns":
        """Return places without a cube."""
        found = cls([], [], width)
        found._words = np.zeros((len(found._shifts), 2, places), np.int64)
        found._words[:, 0] = _NOTHING
        return found

    def __len__(self) -> int:
        return self._words.shape[2]

    def _columns(self, values: Sequence[int], masks: Sequence[int]) -> NDArray[np.int64]:
        """Return int64[word, value or mask, cube], the lowest word first."""
        if len(self._shifts) == 1:
            return np.array([[values, masks]], np.int64)
        rows = (values, masks)
        return np.array([[[one >> shift & _WORD for one in row] for row in rows] for shift in self._shifts], np.int64)

    def matching(self, address: int, first: int = 0, last: int | None = None) -> Bools:
        """Tell for each place from `first` to `last` − 1 whether its cube holds an address."""
        values, masks = self._words[0]
        found: Bools = (masks[first:last] & (address & _WORD)) == values[first:last]
        for (values, masks), shift in zip(self._words[1:], self._shifts[1:], strict=True):
            found &= (masks[first:last] & (address >> shift & _WORD)) == values[first:last]
        return found

    def overlapping(self, value: int, mask: int, first: int = 0, last: int | None = None) -> Bools:
        """Tell for each place whether its cube shares an address with another one; one without a cube does."""
        values, masks = self._words[0]
        found: Bools = ((values[first:last] ^ (value & _WORD)) & masks[first:last] & (mask & _WORD)) == 0
        for (values, masks), shift in zip(self._words[1:], self._shifts[1:], strict=True):
            here, cares = value >> shift & _WORD, mask >> shift & _WORD
            found &= ((values[first:last] ^ here) & masks[first:last] & cares) == 0
        return found

    def numbers(self, places: Sequence[int]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return values and masks in some places, int64[cube]; of more than `NARROW_WIDTH` bits as objects."""
        words = self._words[:, :, places]
        if len(self._shifts) == 1:
            return words[0, 0], words[0, 1]
        whole = sum(word.astype(object) << shift for word, shift in zip(words, self._shifts, strict=True))
        assert isinstance(whole, np.ndarray)
        return whole[0], whole[1]

    def insert(self, place: int, value: int, mask: int) -> None:
        """Put a cube before a place; those from there on move up."""
        new = self._columns([value], [mask])
        self._words = np.concatenate([self._words[:, :, :place], new, self._words[:, :, place:]], axis=2)

    def delete(self, place: int) -> None:
        """Take a cube out; those behind it move down."""
        self._words = np.delete(self._words, place, axis=2)

    def put(self, places: Sequence[int], values: Sequence[int], masks: Sequence[int]) -> None:
        """Write cubes into places."""
        self._words[:, :, places] = self._columns(values, masks)

    def clear(self, places: Sequence[int]) -> None:
        """Leave places without a cube."""
        self._words[:, :, places] = [[_NOTHING], [0]]

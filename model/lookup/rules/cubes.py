"""Cubes: sets of addresses that a value and a mask name, ``address & mask == value``."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError

__all__ = ["MOST_PARTS", "overlap", "prefix_mask", "uncovered"]

MOST_PARTS = 1 << 20
"""Parts into which a cube is cut to see whether others cover it."""
#: less than 1 by more than the sum of many parts can be wrong
_ROUNDING = 1e-9


def prefix_mask(length: int, width: int) -> int:
    """Return the mask of a prefix.

    Examples
    --------
    >>> hex(prefix_mask(20, 32))
    '0xfffff000'
    """
    return ((1 << length) - 1) << (width - length)


def overlap(value: int, mask: int, other_value: int, other_mask: int) -> bool:
    """Tell whether two cubes share an address."""
    return (value ^ other_value) & mask & other_mask == 0


def uncovered(value: int, mask: int, values: NDArray[Any], masks: NDArray[Any]) -> bool:
    """Tell whether a cube has an address that none of other cubes holds.

    Others that are too small together leave one; one that holds the whole cube leaves none. Where neither is seen, the
    cube is cut in halves by a bit of the largest of the others.

    Parameters
    ----------
    value, mask : int
        Of the cube.
    values, masks : ndarray, int64[cube] or object[cube]
        Of the others.

    Raises
    ------
    UserError
        More than `MOST_PARTS` parts would have to be looked at.
    """
    parts = 0
    open_ends = [(value, mask, values, masks)]
    while open_ends:
        value, mask, values, masks = open_ends.pop()
        met = ((values ^ value) & masks & mask) == 0
        values, masks = values[met], masks[met]
        more = masks & ~mask
        bits = np.array([int(mask).bit_count() for mask in more]) if more.dtype == object else np.bitwise_count(more)
        if np.exp2(-bits.astype(np.float64)).sum() < 1 - _ROUNDING:
            return True
        if not bits.all():
            continue
        if (parts := parts + 1) > MOST_PARTS:
            raise UserError(f"more than {MOST_PARTS} parts of a rule had to be looked at to see what covers it")
        bit = int(more[np.argmin(bits)])
        bit &= -bit
        open_ends += [(value | half, mask | bit, values, masks) for half in (0, bit)]
    return False

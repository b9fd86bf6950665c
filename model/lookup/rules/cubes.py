"""Cubes: sets of addresses that a value and a mask name, ``address & mask == value``."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["overlap", "prefix_mask", "residual_after"]


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


def residual_after(rest: NDArray[np.int64], value: int, mask: int) -> NDArray[np.int64]:
    """Take a cube away from disjoint cubes.

    Parameters
    ----------
    rest : ndarray, int64[cube, 2]
        Value and mask of each.
    value, mask : int
        Of the cube that is taken away.

    Returns
    -------
    ndarray, int64[cube, 2]
        Disjoint cubes that hold what is left.
    """
    met = ((rest[:, 0] ^ value) & rest[:, 1] & mask) == 0
    if not met.any():
        return rest
    parts, inside = [rest[~met]], rest[met]
    left = mask
    while left:  # one bit of `mask` after the other: what differs there stays, what agrees goes on
        bit = left & -left
        left ^= bit
        free = (inside[:, 1] & bit) == 0
        if free.any():
            pieces = inside[free] + [~value & bit, bit]
            inside[free] += [value & bit, bit]
            parts.append(pieces)
    return np.concatenate(parts)

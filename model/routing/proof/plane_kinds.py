"""Kinds of channels of grids of two dimensions, which two narrow grids stand for.

Definition: docs/definitions/short-proof.md. A kind is ((2 · dimension + direction) · VCs + VC) · stride + coordinate;
coordinate stride − 1 stands for any coordinate of a dimension that is shorter than that of the whole.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["ANY_COORDINATE", "MAX_TURNS", "narrow_sizes", "widen_turns"]

ANY_COORDINATE = -1
"""Place of the coordinate that stands for any, from the stride of kinds."""

MAX_TURNS = 1 << 26
"""Most dependencies between dimensions for which `widen_turns` makes every coordinate follow every other one."""

#: longest dimensions, even and odd, that stand for themselves; they show all that a longer one shows besides places
_SHORT = (6, 5)


def narrow_sizes(radices: tuple[int, int]) -> list[tuple[int, tuple[int, int]]]:
    """Return the narrow grids: which dimension is the short one, and both radices.

    Examples
    --------
    >>> narrow_sizes((64, 9)), narrow_sizes((4, 5))
    ([(1, (64, 5)), (0, (6, 9))], [(1, (4, 5)), (0, (4, 5))])
    """
    short = [min(k, _SHORT[k % 2]) for k in radices]
    return [(1, (radices[0], short[1])), (0, (short[0], radices[1]))]


def widen_turns(
    pairs: NDArray[np.int64], count: int, vcs: int, stride: int, radices: tuple[int, int]
) -> NDArray[np.int64] | None:
    """Dependencies that the whole may have, from those of the narrow grids; None: more than `MAX_TURNS`.

    Within a dimension those of the grid that has it in full. From one dimension to the other: between all coordinates
    of both, for each direction and VC that follow on one another.

    Parameters
    ----------
    pairs : ndarray, int64[pair]
        Dependencies of the narrow grids, kind · count + kind.
    count, vcs, stride : int
        How many kinds there can be; virtual channels; coordinates of a kind.
    radices : tuple of int
        Of the whole.

    Examples
    --------
    A 2×3 mesh with one VC: along dimension 0 upwards, then along dimension 1 downwards, at any coordinates.

    >>> stride = 4
    >>> up, down = 0 * stride, 3 * stride
    >>> found = widen_turns(np.array([(up + 1) * 16 + down + 3]), 16, 1, stride, (2, 3))
    >>> [divmod(int(pair), 16) for pair in found]
    [(0, 12), (0, 13), (0, 14), (1, 12), (1, 13), (1, 14)]
    """
    source, target = np.divmod(pairs, count)
    dimensions = source // (2 * vcs * stride), target // (2 * vcs * stride)
    within = dimensions[0] == dimensions[1]
    known = (source % stride != stride + ANY_COORDINATE) & (target % stride != stride + ANY_COORDINATE)
    turns = np.unique(source[~within] // stride * count + target[~within] // stride)
    if len(turns) * radices[0] * radices[1] > MAX_TURNS:
        return None
    found = [pairs[within & known]]
    for one, other in zip(*np.divmod(turns, count), strict=True):
        first, second = (klass * stride + np.arange(radices[klass // (2 * vcs)]) for klass in (one, other))
        found.append((first[:, None] * count + second).reshape(-1))
    return np.unique(np.concatenate(found))

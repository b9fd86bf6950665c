"""Which send each receive gets: those of the same (source, destination, tag) in order, as MPI promises."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["matched_sends", "numbered"]


def matched_sends(sends: NDArray[np.int64], receives: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[receive], the send it gets: the k-th of its (source, destination, tag); -1 if there is none."""
    both = np.concatenate([sends[:, :3], receives[:, :3]])
    if not len(receives):
        return np.empty(0, np.int64)
    tags, tag = np.unique(both[:, 2], return_inverse=True)
    key = (both[:, 0] << 20 | both[:, 1]) * len(tags) + tag
    code = numbered(key[:len(sends)]), numbered(key[len(sends):])
    order = np.lexsort((code[0], key[:len(sends)]))
    sorted_key, sorted_count = key[:len(sends)][order], code[0][order]
    # sends of one key are neighbours in `order`, numbered 0, 1, …
    start = np.searchsorted(sorted_key, key[len(sends):])
    at = start + code[1]
    inside = at < len(order)
    safe = np.where(inside, at, 0)
    if not len(order):
        return np.full(len(receives), -1, np.int64)
    good = inside & (sorted_key[safe] == key[len(sends):]) & (sorted_count[safe] == code[1])
    return np.where(good, order[safe], -1)


def numbered(key: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count, for each element, how many equal ones stand before it."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))  # keys are not negative
    length = np.diff(np.concatenate([starts, [len(key)]]))
    number = np.empty(len(key), np.int64)
    number[order] = np.arange(len(key)) - np.repeat(starts, length)
    return number

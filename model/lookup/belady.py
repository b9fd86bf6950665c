"""What no replacement policy can beat: misses of Belady's choice, with and without bypass, and of LRU beside them.

``min`` (Belady, "A study of replacement algorithms for a virtual-storage computer", 1966) gives up the line whose key
is asked for last. A miss always fills. ``min_bypass`` may also forward an answer without filling; then it keeps those
`ways` of the set's keys, the missed one among them, that are asked for first. A cache need not fill, so only
``min_bypass`` is a bound. Definition: docs/definitions/replacement.md.

A line is known by the time of its next use (LRU: of its last use): at that time it is the key that is asked for, so no
tags are needed.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.kernel.compile import kernel

__all__ = ["BOUNDS", "KeyStreams", "optimal_misses"]

BOUNDS = ("lru", "min", "min_bypass")
"""Columns of what `optimal_misses` returns."""

_NEVER = np.iinfo(np.int32).max


class KeyStreams(NamedTuple):
    """Streams of lookups, each of a cache of its own.

    Attributes
    ----------
    starts : ndarray, int64[stream + 1]
        ``numbers[starts[i]:starts[i + 1]]`` are the lookups of stream i, in their order.
    numbers : ndarray, int32[lookup]
        Number of the key; a key has one in each stream, which no other stream has.
    keys : ndarray, int64[number]
        Key of a number.
    """

    starts: NDArray[np.int64]
    numbers: NDArray[np.int32]
    keys: NDArray[np.int64]

    @classmethod
    def of_keys(cls, streams: ArrayLike, starts: ArrayLike | None = None) -> "KeyStreams":
        """Give numbers to the keys of streams that lie one after the other (one stream without `starts`)."""
        words = np.ascontiguousarray(streams, dtype=np.int64).reshape(-1)
        bounds = np.asarray([0, len(words)] if starts is None else starts, dtype=np.int64)
        distinct, which = np.unique(words, return_inverse=True)
        stream = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        pairs, numbers = np.unique(stream * max(len(distinct), 1) + which.reshape(-1), return_inverse=True)
        return cls(bounds, numbers.reshape(-1).astype(np.int32), distinct[pairs % max(len(distinct), 1)])


@kernel
def _next_uses(numbers, begin, end, last, following):  # type: ignore[no-untyped-def]
    """Write when the key of each lookup is asked for again, counted from `begin`."""
    for index in range(end - 1, begin - 1, -1):
        following[index - begin] = last[numbers[index]]
        last[numbers[index]] = index - begin


@kernel
def _belady(numbers, begin, end, row, ways, following, lines, bypass):  # type: ignore[no-untyped-def]
    """Misses of a stream; `lines` holds the next use of each line, `_NEVER` at the start."""
    misses = 0
    for index in range(begin, end):
        now, then = index - begin, following[index - begin]
        first = row[numbers[index]] * ways
        found, latest = -1, first
        for line in range(first, first + ways):
            found = line if lines[line] == now else found
            latest = line if lines[line] > lines[latest] else latest
        if found >= 0:
            lines[found] = then
            continue
        misses += 1
        if not bypass or then < lines[latest]:
            lines[latest] = then
    return misses


@kernel
def _lru(numbers, begin, end, row, ways, last, lines):  # type: ignore[no-untyped-def]
    """Misses of a stream; `lines` holds the last use of each line and `last` that of each key, both -1 at the start."""
    misses = 0
    for index in range(begin, end):
        now, number = index - begin, numbers[index]
        before = last[number]
        last[number] = now
        first = row[number] * ways
        found, oldest = -1, first
        for line in range(first, first + ways):
            found = line if lines[line] == before else found
            oldest = line if lines[line] < lines[oldest] else oldest
        if before >= 0 and found >= 0:
            lines[found] = now
        else:
            misses += 1
            lines[oldest] = now
    return misses


@kernel
def _bounds(starts, numbers, row, sets, ways, last, following, lines, misses):  # type: ignore[no-untyped-def]
    for stream in range(len(starts) - 1):
        begin, end = starts[stream], starts[stream + 1]
        if begin == end:
            continue
        _next_uses(numbers, begin, end, last, following)
        for column in range(1, 3):
            lines[:] = _NEVER
            misses[stream, column] = _belady(numbers, begin, end, row, ways, following, lines, column == 2)
        for index in range(begin, end):
            last[numbers[index]] = -1
        lines[:] = -1
        misses[stream, 0] = _lru(numbers, begin, end, row, ways, last, lines)


def optimal_misses(streams: KeyStreams, sets: ArrayLike, *, ways: int, set_count: int) -> NDArray[np.int64]:
    """Return the misses of LRU and of Belady's choice on streams of keys; every stream has an empty cache of its own.

    Parameters
    ----------
    streams : KeyStreams
        The lookups.
    sets : array_like of int [number]
        Set of each key.
    ways, set_count : int
        Lines of a set, and sets of a cache.

    Returns
    -------
    ndarray, int64[stream, 3]
        Misses as `BOUNDS` names them.

    Raises
    ------
    ValueError
        A set beyond `set_count`, a stream of 2^31 lookups or more, or `ways` below 1.

    Examples
    --------
    >>> textbook = KeyStreams.of_keys([1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5])
    >>> optimal_misses(textbook, [0] * 5, ways=3, set_count=1).tolist()
    [[10, 7, 7]]
    """
    row = np.ascontiguousarray(sets, dtype=np.int64)
    longest = int(np.diff(streams.starts).max(initial=0))
    if ways < 1:
        raise ValueError(f"ways must be at least 1, not {ways}")
    if len(row) != len(streams.keys) or (len(row) and not 0 <= row.min() <= row.max() < set_count):
        raise ValueError(f"sets must hold a set below set_count={set_count} for each of {len(streams.keys)} keys")
    if longest >= _NEVER:
        raise ValueError(f"a stream must have less than 2^31 - 1 lookups, not {longest}")
    misses = np.zeros((len(streams.starts) - 1, len(BOUNDS)), np.int64)
    _bounds(
        streams.starts, streams.numbers, row, set_count, ways, np.full(len(streams.keys), _NEVER, np.int32),
        np.empty(longest, np.int32), np.empty(set_count * ways, np.int32), misses,
    )  # fmt: skip
    return misses

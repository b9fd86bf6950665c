"""Misses of LRU caches of all sizes in one pass: how many other keys came since the last use of each.

Source: Mattson, Gecsei, Slutz and Traiger, "Evaluation techniques for storage hierarchies", 1970. A look-up of stack
distance d hits in every LRU cache of at least d lines. Distances are counted in a tree of partial sums (Fenwick) over
the times of last uses, which is packed together when it is full: a look-up takes logarithmic time. With several sets,
every set is a stream of its own (`group_by_set`). Definition: docs/definitions/replacement.md.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.kernel.compile import kernel
from hopforge.model.lookup.belady import KeyStreams

__all__ = ["StackDistances", "group_by_set", "stack_distances"]


class StackDistances(NamedTuple):
    """How far back the last use of a key lies, over all look-ups of all streams.

    Attributes
    ----------
    first : int
        Look-ups of keys that were not asked for before.
    counts : ndarray, int64[distance + 1]
        Look-ups of each distance; 1: the same key again. Index 0 is not used.
    """

    first: int
    counts: NDArray[np.int64]

    def misses(self) -> NDArray[np.int64]:
        """Return the misses of LRU with 0, 1, … lines up to the size from which on there are only first ones."""
        hits = np.cumsum(self.counts)
        found: NDArray[np.int64] = self.first + hits[-1] - hits
        return found


@kernel(inline="always")
def _add(tree, place, value):  # type: ignore[no-untyped-def]
    at = place + 1
    while at <= len(tree):
        tree[at - 1] += value
        at += at & -at


@kernel(inline="always")
def _up_to(tree, place):  # type: ignore[no-untyped-def]
    at, total = place + 1, 0
    while at > 0:
        total += tree[at - 1]
        at &= at - 1
    return total


@kernel
def _pack(tree, owner, where, room):  # type: ignore[no-untyped-def]
    """Move the places in use together, in their order; return how many there are."""
    used = 0
    for place in range(room):
        number = owner[place]
        if number >= 0:
            owner[place] = -1
            owner[used], where[number] = number, used
            used += 1
    for place in range(room):
        tree[place] = 0
    for place in range(used):
        _add(tree[:room], place, 1)
    return used


@kernel
def _distances(starts, numbers, where, tree, owner, counts):  # type: ignore[no-untyped-def]
    first = 0
    for stream in range(len(starts) - 1):
        length = starts[stream + 1] - starts[stream]
        room = min(len(tree), 2 * length)
        keep = tree[:room]
        keep[:] = 0
        owner[:room] = -1
        held = following = 0
        for at in range(starts[stream], starts[stream + 1]):
            number = numbers[at]
            place = where[number]
            if place < 0:
                first += 1
                held += 1
            else:
                counts[held - _up_to(keep, place) + 1] += 1
                if place == following - 1:
                    continue
                _add(keep, place, -1)
                owner[place] = -1
            if following == room:
                following = _pack(tree, owner, where, room)
            _add(keep, following, 1)
            owner[following], where[number] = number, following
            following += 1
    return first


def stack_distances(streams: KeyStreams) -> StackDistances:
    """Return the stack distances of all look-ups, each stream for itself.

    Examples
    --------
    >>> found = stack_distances(KeyStreams.of_keys([1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5]))
    >>> found.first, found.counts.tolist(), found.misses().tolist()
    (5, [0, 0, 0, 2, 2, 3], [12, 12, 12, 10, 8, 5])
    """
    keys = len(streams.keys)
    room = 2 * max(int(_most_keys(streams.starts, streams.numbers, np.full(keys, -1, np.int32))), 1)
    counts = np.zeros(room // 2 + 1, np.int64)
    first = _distances(
        streams.starts, streams.numbers, np.full(keys, -1, np.int32), np.zeros(room, np.int32),
        np.empty(room, np.int32), counts,
    )  # fmt: skip
    last = int(np.flatnonzero(counts).max(initial=0))
    return StackDistances(int(first), counts[: last + 1])


@kernel
def _most_keys(starts, numbers, seen):  # type: ignore[no-untyped-def]
    """Return the largest number of keys of a stream."""
    most = 0
    for stream in range(len(starts) - 1):
        count = 0
        for at in range(starts[stream], starts[stream + 1]):
            if seen[numbers[at]] != stream:
                seen[numbers[at]] = stream
                count += 1
        most = max(most, count)
    return most


@kernel
def _group(starts, numbers, row, sets, place, grouped):  # type: ignore[no-untyped-def]
    for stream in range(len(starts) - 1):
        for at in range(starts[stream], starts[stream + 1]):
            group = stream * sets + row[numbers[at]]
            grouped[place[group]] = numbers[at]
            place[group] += 1


@kernel
def _group_sizes(starts, numbers, row, sets, sizes):  # type: ignore[no-untyped-def]
    for stream in range(len(starts) - 1):
        for at in range(starts[stream], starts[stream + 1]):
            sizes[stream * sets + row[numbers[at]]] += 1


def group_by_set(streams: KeyStreams, sets: ArrayLike, set_count: int) -> KeyStreams:
    """Return a stream for every set of every stream; `sets` is the set of each key, int[number]."""
    row = np.ascontiguousarray(sets, dtype=np.int64)
    sizes = np.zeros((len(streams.starts) - 1) * set_count, np.int64)
    _group_sizes(streams.starts, streams.numbers, row, set_count, sizes)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    grouped = np.empty_like(streams.numbers)
    _group(streams.starts, streams.numbers, row, set_count, starts[:-1].copy(), grouped)
    return KeyStreams(starts, grouped, streams.keys)

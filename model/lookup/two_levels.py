"""Two levels of caches in kernels: what a miss of the first level does to both (docs/definitions/second-level.md).

`model.lookup.golden.two_levels` is written on its own from the same page.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hopforge.model.config.lookup import SECOND_CONTENTS
from hopforge.model.kernel.compile import kernel
from hopforge.model.lookup.cache_lines import EMPTY, CacheState, CacheTables, claim_line, find_line, touch_line
from hopforge.model.lookup.routing_cache import RoutingCache

__all__ = ["EXCLUSIVE", "INCLUSIVE", "NINE", "TwoLevelCounts", "get_line", "put_line", "put_lines", "run_two_levels"]

NINE, INCLUSIVE, EXCLUSIVE = range(len(SECOND_CONTENTS))


@kernel
def get_line(c, sets, s, cache, key, now):  # type: ignore[no-untyped-def]
    """Look `key` up in one of many caches of the kind `c`; return whether it hits."""
    first, last = cache * sets * c.ways, (cache + 1) * sets * c.ways
    line = find_line(c.rows, len(c.rows) > 1, s.tags[first:last], c.ways, key, key & c.payload_mask)
    if line < 0:
        return False
    touch_line(c.policy, c.ways, s.order[first:last], line, now)
    return True


@kernel
def put_line(c, sets, s, cache, key, now):  # type: ignore[no-untyped-def]
    """Fill `key` into one of many caches of the kind `c`; return the key that was written over, or `EMPTY`."""
    first, last = cache * sets * c.ways, (cache + 1) * sets * c.ways
    tags = s.tags[first:last]
    line = claim_line(
        c.rows, c.ways, c.policy, tags, s.order[first:last], s.shift_register[cache:cache + 1],
        key & c.payload_mask, now,
    )  # fmt: skip
    gone = tags[line]
    tags[line] = key
    return gone


@kernel
def _remove_line(c, sets, s, cache, key):  # type: ignore[no-untyped-def]
    """Remove `key` from one of many caches of the kind `c`; return whether it was there."""
    first, last = cache * sets * c.ways, (cache + 1) * sets * c.ways
    line = find_line(c.rows, len(c.rows) > 1, s.tags[first:last], c.ways, key, key & c.payload_mask)
    if line < 0:
        return False
    s.tags[first + line] = EMPTY
    return True


@kernel
def put_lines(content, c1, sets1, s1, c2, sets2, s2, caches, cache, second, key, found, now):  # type: ignore[no-untyped-def]
    """Fill `key` after a miss of the first level.

    Parameters
    ----------
    content : int
        `NINE`, `INCLUSIVE` or `EXCLUSIVE`.
    caches : ndarray, int64[second + 1]
        First-level caches of each second level: a range.
    cache, second : int
        Of the first level, and behind it.
    found : bool
        Whether the second level held it.

    Returns
    -------
    tuple of int
        Key that left the cache of the first level (or `EMPTY`), lines that a second level took away from first ones.
    """
    back = 0
    if content == EXCLUSIVE:
        if found:
            _remove_line(c2, sets2, s2, second, key)
        gone = put_line(c1, sets1, s1, cache, key, now)
        if gone != EMPTY and not get_line(c2, sets2, s2, second, gone, now):
            put_line(c2, sets2, s2, second, gone, now)
        return gone, back
    if not found:
        lost = put_line(c2, sets2, s2, second, key, now)
        if content == INCLUSIVE and lost != EMPTY:
            for other in range(caches[second], caches[second + 1]):
                back += _remove_line(c1, sets1, s1, other, lost)
    return put_line(c1, sets1, s1, cache, key, now), back


class TwoLevelCounts(NamedTuple):
    """What happened in a run.

    Attributes
    ----------
    first_hits, second_hits, tcam : int
        Lookups by where they were answered.
    back : int
        Lines that left a first level because the second level gave up their key.
    """

    first_hits: int
    second_hits: int
    tcam: int
    back: int


def _many(one: RoutingCache, caches: int) -> tuple[CacheTables, CacheState]:
    return one.tables, CacheState(*(np.tile(array, caches) for array in one.state))


def run_two_levels(ports: ArrayLike, keys: ArrayLike, first: RoutingCache, second: RoutingCache, content: str) -> (
    TwoLevelCounts
):  # fmt: skip
    """Look keys up at the ports of one switch, one after the other; a cache at each port, one second level for all.

    Parameters
    ----------
    ports, keys : array_like of int [lookup]
        Where, and what.
    first, second : RoutingCache
        What the caches are like, empty.
    content : str
        ``nine``, ``inclusive`` or ``exclusive``.

    Examples
    --------
    >>> small, large = RoutingCache(entries=1, ways=1), RoutingCache(entries=2, ways=2)
    >>> run_two_levels([0, 1, 1, 1], [7, 7, 8, 7], small, large, "nine")
    TwoLevelCounts(first_hits=0, second_hits=2, tcam=2, back=0)
    """
    at, words = np.asarray(ports, np.int64), np.asarray(keys, np.int64)
    count = int(at.max(initial=0)) + 1
    c1, s1 = _many(first, count)
    c2, s2 = _many(second, 1)
    kind, caches = SECOND_CONTENTS.index(content), np.array([0, count])
    hits = _run(kind, c1, first.sets, s1, c2, second.sets, s2, caches, at, words)
    return TwoLevelCounts(int(hits[0]), int(hits[1]), len(words) - int(hits[0] + hits[1]), int(hits[2]))


@kernel
def _run(content, c1, sets1, s1, c2, sets2, s2, caches, ports, keys):  # type: ignore[no-untyped-def]
    first = second = back = 0
    for now in range(len(keys)):
        if get_line(c1, sets1, s1, ports[now], keys[now], now):
            first += 1
            continue
        found = get_line(c2, sets2, s2, 0, keys[now], now)
        second += found
        _, taken = put_lines(content, c1, sets1, s1, c2, sets2, s2, caches, ports[now], 0, keys[now], found, now)
        back += taken
    return first, second, back

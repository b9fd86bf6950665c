"""Two levels of caches in kernels: what a miss of the first level does to both (docs/definitions/second-level.md).

`model.lookup.golden.two_levels` is written on its own from the same page.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.config.lookup import SECOND_CONTENTS
from hopforge.model.kernel.array_record import ArrayRecord
from hopforge.model.kernel.compile import inner, kernel
from hopforge.model.lookup.cache_lines import EMPTY, CacheState, CacheTables, claim_line, find_line, touch_line
from hopforge.model.lookup.routing_cache import RoutingCache

__all__ = [
    "EXCLUSIVE", "INCLUSIVE", "NINE", "CacheLevels", "TwoLevelCounts", "get_second", "put_first", "put_lines",
    "run_two_levels",
]  # fmt: skip

NINE, INCLUSIVE, EXCLUSIVE = range(len(SECOND_CONTENTS))


class CacheLevels(ArrayRecord):
    """Many first-level caches and the second levels behind them, for kernels.

    Attributes
    ----------
    tables1, tables2 : CacheTables
        What the caches of each level are.
    state1, state2 : CacheState
        What they hold.
    lines1, lines2 : int
        Lines of a cache.
    content : int
        `NINE`, `INCLUSIVE` or `EXCLUSIVE`.
    behind : ndarray, int64[cache]
        Second level of each first-level cache.
    caches : ndarray, int64[second level + 1]
        First-level caches of each second level: a range.
    """

    tables1: CacheTables
    tables2: CacheTables
    state1: CacheState
    state2: CacheState
    lines1: int
    lines2: int
    content: int
    behind: NDArray[np.int64]
    caches: NDArray[np.int64]


@inner
def get_line(c, s, begin, key, now):  # type: ignore[no-untyped-def]
    """Look `key` up in a cache of the kind `c` whose lines begin at `begin`; return whether it hits."""
    line = find_line(c.rows, len(c.rows) > 1, s.tags, begin, c.ways, key, key & c.payload_mask)
    if line < 0:
        return False
    touch_line(c.policy, c.ways, s.order, line, now)
    return True


@inner
def put_line(c, s, cache, begin, key, now):  # type: ignore[no-untyped-def]
    """Fill `key` into a cache of the kind `c`; return the key that was written over, or `EMPTY`."""
    line = claim_line(c, s, cache, begin, key, now)
    gone = s.tags[line]
    s.tags[line] = key
    return gone


@inner
def _remove_line(c, s, begin, key):  # type: ignore[no-untyped-def]
    """Remove `key` from a cache of the kind `c`; return whether it was there."""
    line = find_line(c.rows, len(c.rows) > 1, s.tags, begin, c.ways, key, key & c.payload_mask)
    if line < 0:
        return False
    s.tags[line] = EMPTY
    return True


@inner
def get_second(levels, cache, key, now):  # type: ignore[no-untyped-def]
    """Look `key` up in the second level behind a cache; return whether it hits."""
    return get_line(levels.tables2, levels.state2, levels.behind[cache] * levels.lines2, key, now)


@inner
def put_first(levels, cache, key, now):  # type: ignore[no-untyped-def]
    """Fill `key` into a first-level cache; return the key that was written over, or `EMPTY`."""
    return put_line(levels.tables1, levels.state1, cache, cache * levels.lines1, key, now)


@inner
def put_lines(levels, cache, key, found, now):  # type: ignore[no-untyped-def]
    """Fill `key` after a miss of the first level.

    Parameters
    ----------
    levels : CacheLevels
        The caches.
    cache : int
        Of the first level.
    found : bool
        Whether the second level held it.

    Returns
    -------
    tuple of int
        Key that left the cache of the first level (or `EMPTY`), lines that a second level took away from first ones.
    """
    second, back = levels.behind[cache], 0
    c2, s2, begin = levels.tables2, levels.state2, second * levels.lines2
    if levels.content == EXCLUSIVE:
        if found:
            _remove_line(c2, s2, begin, key)
        gone = put_first(levels, cache, key, now)
        if gone != EMPTY and not get_line(c2, s2, begin, gone, now):
            put_line(c2, s2, second, begin, gone, now)
        return gone, back
    if not found:
        lost = put_line(c2, s2, second, begin, key, now)
        if levels.content == INCLUSIVE and lost != EMPTY:
            for other in range(levels.caches[second], levels.caches[second + 1]):
                back += _remove_line(levels.tables1, levels.state1, other * levels.lines1, lost)
    return put_first(levels, cache, key, now), back


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

    Raises
    ------
    ValueError
        A port below 0, or too few or too many ports; a key that a cache cannot take; another `content`.

    Examples
    --------
    >>> small, large = RoutingCache(entries=1, ways=1), RoutingCache(entries=2, ways=2)
    >>> run_two_levels([0, 1, 1, 1], [7, 7, 8, 7], small, large, "nine")
    TwoLevelCounts(first_hits=0, second_hits=2, tcam=2, back=0)
    """
    if content not in SECOND_CONTENTS:
        raise ValueError(f"content must be one of {', '.join(SECOND_CONTENTS)}, not {content!r}")
    at, words = np.asarray(ports, np.int64).reshape(-1), first.checked(keys, 0)[0]
    second.checked(words, 0)
    if len(at) != len(words):
        raise ValueError(f"ports must be as many as keys={len(words)}, not {len(at)}")
    if at.min(initial=0) < 0:
        raise ValueError(f"ports must be at least 0, not {at.min()}")
    count = int(at.max(initial=0)) + 1
    levels = CacheLevels(
        tables1=first.tables, tables2=second.tables,
        state1=first.state.repeated(count), state2=second.state.repeated(1), lines1=first.entries,
        lines2=second.entries, content=SECOND_CONTENTS.index(content),
        behind=np.zeros(count, np.int64), caches=np.array([0, count]),
    )  # fmt: skip
    hits = _run(levels, at, words)
    return TwoLevelCounts(int(hits[0]), int(hits[1]), len(words) - int(hits[0] + hits[1]), int(hits[2]))


@kernel
def _run(levels, ports, keys):  # type: ignore[no-untyped-def]
    first = second = back = 0
    for now in range(len(keys)):
        cache, key = ports[now], keys[now]
        if get_line(levels.tables1, levels.state1, cache * levels.lines1, key, now):
            first += 1
            continue
        found = get_second(levels, cache, key, now)
        second += found
        _, taken = put_lines(levels, cache, key, found, now)
        back += taken
    return first, second, back

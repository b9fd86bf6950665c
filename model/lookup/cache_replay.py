"""Long runs of lookups at one input port: reduction, hash and cache in one kernel, or streams of keys.

The bodies of long runs exist twice, once with the constants of the default (lru, not skewed), where the compiler then
drops all else; that is three times as fast.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.kernel.compile import inlined, kernel
from hopforge.model.lookup.cache_lines import EMPTY, claim_line, find_line, touch_line
from hopforge.model.lookup.key_kernel import reduce_key
from hopforge.model.lookup.miss_causes import miss_causes
from hopforge.model.lookup.node_reduction import NodeReduction
from hopforge.model.lookup.replacement import LRU
from hopforge.model.lookup.routing_cache import RoutingCache

__all__ = ["ReplayCounts", "replay", "replay_streams"]


@inlined
def _replay_as(policy, skewed, t, own, level, c, s, dst, now):  # type: ignore[no-untyped-def]
    hits = evictions = 0
    for index in range(len(dst)):
        key = reduce_key(t, own, level, dst[index])
        line = find_line(c.rows, skewed, s.tags, 0, c.ways, key, key & c.payload_mask)
        if line >= 0:
            touch_line(policy, c.ways, s.order, line, now + index)
            hits += 1
        else:
            line = claim_line(c, s, 0, 0, key, now + index)
            evictions += s.tags[line] != EMPTY
            s.tags[line] = key
            s.outputs[line] = 0
    return hits, evictions


@kernel
def _replay(t, own, level, c, s, dst, now):  # type: ignore[no-untyped-def]
    """Reduce, hash and look up `dst`; return (hits, evictions)."""
    if c.policy == LRU and len(c.rows) == 1:
        return _replay_as(LRU, False, t, own, level, c, s, dst, now)
    return _replay_as(c.policy, len(c.rows) > 1, t, own, level, c, s, dst, now)


class ReplayCounts(NamedTuple):
    """What happened in a replay.

    Attributes
    ----------
    lookups, hits, evictions : int
        Numbers of events; all misses are filled.
    """

    lookups: int
    hits: int
    evictions: int


def replay(reduction: NodeReduction, router: int, destinations: ArrayLike, cache: RoutingCache) -> ReplayCounts:
    """Look up many destinations at one input port of a switch: reduction, hash and cache in one kernel.

    The fast way where only counts matter: the same as ``cache.run(reduction.keys(router, destinations))``.

    Parameters
    ----------
    reduction : NodeReduction
        The key function.
    router : int
        Number of the switch.
    destinations : array_like of int [lookup]
        Destination addresses.
    cache : RoutingCache
        The port's cache; its contents and counters go on.

    Raises
    ------
    ValueError
        If there is no such switch, an address is beyond the network, or widths differ.
    """
    if reduction.address.width_bits != cache.address_bits:
        limit = f"width_bits={reduction.address.width_bits}"
        raise ValueError(f"address_bits of the cache must be {limit}, not {cache.address_bits}")
    dst = np.ascontiguousarray(destinations, dtype=np.int64).reshape(-1)
    reduction.check_destinations(dst)
    if reduction.mode == "expression":
        run = cache.run(reduction.keys(router, dst))
        return ReplayCounts(len(dst), int(np.count_nonzero(run.hits)), run.evictions)
    place = reduction.switch(router)
    hits = evictions = 0
    if cache.enabled:
        hits, evictions = _replay(
            reduction.tables, place.own, place.level, cache.tables, cache.state, dst, cache.tick(len(dst))
        )
    misses = len(dst) - hits
    cache.count(
        lookups=len(dst), hits=hits, misses=misses, fills=misses if cache.enabled else 0, evictions=evictions
    )
    return ReplayCounts(len(dst), int(hits), int(evictions))


def replay_streams(keys: ArrayLike, starts: ArrayLike, cache: RoutingCache) -> NDArray[np.int64]:
    """Run many streams of keys, each through its own cache that is empty at the start.

    Parameters
    ----------
    keys : array_like of int [lookup]
        Keys of all streams, stream by stream.
    starts : array_like of int [stream + 1]
        ``keys[starts[i]:starts[i + 1]]`` is stream i.
    cache : RoutingCache
        What each cache is like; it is reset before every stream.

    Returns
    -------
    ndarray, int64[stream, 5]
        Hits, compulsory, capacity and conflict misses (as `CAUSES`), evictions.

    Raises
    ------
    ValueError
        If `starts` does not ascend from 0 to the number of keys.

    Examples
    --------
    >>> replay_streams([7, 7, 8, 7], [0, 3, 4], RoutingCache(entries=4, ways=2)).tolist()
    [[1, 2, 0, 0, 0], [0, 1, 0, 0, 0]]
    """
    words, _ = cache.checked(keys, 0)
    bounds = np.asarray(starts, dtype=np.int64)
    if len(bounds) < 1 or bounds[0] != 0 or bounds[-1] != len(words) or (np.diff(bounds) < 0).any():
        raise ValueError(f"starts must ascend from 0 to the number of keys={len(words)}, not {bounds.tolist()[:8]}")
    result = np.zeros((len(bounds) - 1, 5), dtype=np.int64)
    for stream, (start, end) in enumerate(pairwise(bounds)):
        if start == end:
            continue
        enabled = cache.enabled
        cache.reset()
        cache.enabled = enabled
        run = cache.run(words[start:end])
        causes = miss_causes(words[start:end], run.hits, cache.entries)
        result[stream, :4] = np.bincount(causes, minlength=4)
        result[stream, 4] = run.evictions
    return result

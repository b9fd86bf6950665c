"""Caches with prefetch packets and refill, in time: the kernel, for set-associative caches and every policy.

`model.lookup.golden.assisted_cache` is written on its own from the same page, docs/definitions/prefetch.md. Caches are
run one after the other, each with its own clock and its own look-ups in flight.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import kernel
from hopforge.model.lookup.miss_causes import full_lru
from hopforge.model.lookup.replacement import RANDOM, choose_victim, next_random, note_fill, note_use

__all__ = ["ASSISTED", "HARD", "SOFT", "Operations", "detect", "packets_ahead", "run_operations"]

ASSISTED = (
    "demands", "hits", "misses", "late", "merged", "wait", "issued", "redundant", "fills", "useful", "unused",
    "harmful", "ejected", "reads", "evictions", "compulsory", "capacity", "conflict",
)  # fmt: skip
"""Columns of what `run_operations` counts."""

(
    _DEMANDS, _HITS, _MISSES, _LATE, _MERGED, _WAIT, _ISSUED, _REDUNDANT, _FILLS, _USEFUL, _UNUSED, _HARMFUL,
    _EJECTED, _READS, _EVICTIONS, _COMPULSORY, _CAPACITY, _CONFLICT,
) = range(len(ASSISTED))  # fmt: skip
HARD, SOFT = 1, 2
"""How the detector ejects: the line is removed, or becomes the next victim of LRU. 0: not at all."""

_SOURCES, _CONFIDENT = 16, 2
_NEVER = np.iinfo(np.int64).max
_FREE, _USED, _AHEAD = 0, 1, 2  # of a line: empty, filled or used by a demand, prefetched and not used


class Operations(NamedTuple):
    """What reaches caches, cache by cache, in the order in which it happens.

    Attributes
    ----------
    starts : ndarray, int64[cache + 1]
        Where the operations of a cache begin.
    times : ndarray, int64[operation]
        Cycle of the cache.
    numbers : ndarray, int32[operation]
        Number of the key (one in each cache, which no other cache has).
    ahead : ndarray, bool[operation]
        A prefetch packet; otherwise a demand.
    eject, refill : ndarray, int32[operation]
        What the detector ejects and prefetches after a demand; -1: nothing.
    """

    starts: NDArray[np.int64]
    times: NDArray[np.int64]
    numbers: NDArray[np.int32]
    ahead: NDArray[np.bool_]
    eject: NDArray[np.int32]
    refill: NDArray[np.int32]


@kernel
def _detect_one(sources, targets, begin, end, ranks, lead, known, coming, seen, last, up, cross, order):  # type: ignore[no-untyped-def]
    """Run the detector of one port; write whether it is confident and what comes `lead` later (-1: nothing)."""
    held = 0
    width = 1
    while width < ranks:
        width *= 2
    for at in range(begin, end):
        s, d = sources[at], targets[at]
        known[at], coming[at] = False, -1
        row = -1
        for each in range(held):
            if seen[each] == s:
                row = each
        if row < 0:
            if held < _SOURCES:
                row, held = held, held + 1
            else:
                row = 0
                for each in range(1, _SOURCES):
                    if order[each] < order[row]:
                        row = each
            seen[row], last[row], up[row], cross[row], order[row] = s, d, 0, 0, at
            continue
        order[row] = at
        before = last[row]
        if d == before:
            continue
        after = (before + 1) % ranks
        up[row] = up[row] + 1 if d == after or (after == s and d == (before + 2) % ranks) else 0
        cross[row] = cross[row] + 1 if s ^ d == (s ^ before) + 1 else 0
        last[row] = d
        if max(up[row], cross[row]) < _CONFIDENT:
            continue
        known[at] = True
        if lead == 0:
            continue
        if up[row] >= cross[row]:
            if lead <= (s - d) % ranks - 1:
                coming[at] = (d + lead) % ranks
        else:
            step = (s ^ d) + lead
            if step < width and s ^ step < ranks:
                coming[at] = s ^ step


@kernel
def detect(starts, sources, targets, ranks, lead, known, coming):  # type: ignore[no-untyped-def]
    """Run the detector of every port over its demands.

    Parameters
    ----------
    starts : int64[port + 1]
        Where the demands of a port begin.
    sources, targets : int64[demand]
        Ranks that send and receive.
    ranks, lead : int
        How many ranks there are; how far ahead is predicted, 0: not at all.
    known : bool[demand]
        Receives whether the detector is confident.
    coming : int64[demand]
        Receives the predicted rank, -1 if there is none.
    """
    seen, last, order = np.empty(_SOURCES, np.int64), np.empty(_SOURCES, np.int64), np.empty(_SOURCES, np.int64)
    up, cross = np.empty(_SOURCES, np.int64), np.empty(_SOURCES, np.int64)
    for port in range(len(starts) - 1):
        _detect_one(
            sources, targets, starts[port], starts[port + 1], ranks, lead, known, coming, seen, last, up, cross, order
        )


@kernel(inline="always")
def _write(n, number, ahead, row, policy, ways, s, next_use):  # type: ignore[no-untyped-def]
    """Write a line; `s`: key, state and replacement words of each line, line of each key, clock and register."""
    keys, states, order, where, clock = s
    first, line = row[number] * ways, -1
    for way in range(ways - 1, -1, -1):
        line = first + way if states[first + way] == _FREE else line
    clock[0] += 1
    if line < 0:
        line = first + choose_victim(policy, ways, order, first, 1, clock[0], -1, clock[1])
        victim = keys[line]
        n[_UNUSED] += states[line] == _AHEAD
        n[_EVICTIONS] += 1
        n[_HARMFUL] += ahead and next_use[victim] < next_use[number]
        where[victim] = -1
        if policy == RANDOM:
            clock[1] = next_random(clock[1])
    keys[line], where[number] = number, line
    states[line] = _AHEAD if ahead else _USED
    n[_FILLS] += ahead
    if policy != RANDOM:
        note_fill(policy, ways, order, first, 1, line - first, clock[0])


@kernel(inline="always")
def _touch(line, policy, ways, s):  # type: ignore[no-untyped-def]
    clock = s[4]
    clock[0] += 1
    way = line % ways
    note_use(policy, ways, s[2], line - way, 1, way, clock[0])


@kernel
def _land(n, f, until, row, policy, ways, s, next_use):  # type: ignore[no-untyped-def]
    """Write the lines that the TCAM has answered; `f`: keys in flight, when they come, who asked, and their places."""
    flying, due, asked, place, ends = f
    while ends[0] < ends[1]:
        at = ends[0] % len(flying)
        if due[at] > until:
            break
        ends[0] += 1
        number = flying[at]
        place[number] = -1
        _write(n, number, asked[at], row, policy, ways, s, next_use)


@kernel
def _read(n, f, number, now, fill, ahead, row, policy, ways, s, next_use):  # type: ignore[no-untyped-def]
    n[_READS] += 1
    if fill == 0:
        _write(n, number, ahead, row, policy, ways, s, next_use)
        return
    flying, due, asked, place, ends = f
    at = ends[1] % len(flying)
    ends[1] += 1
    flying[at], due[at], asked[at], place[number] = number, now + fill, ahead, at


@kernel
def _prefetch(n, f, number, now, fill, row, policy, ways, s, next_use):  # type: ignore[no-untyped-def]
    n[_ISSUED] += 1
    if s[3][number] >= 0:
        n[_REDUNDANT] += 1
        _touch(s[3][number], policy, ways, s)
    elif f[3][number] >= 0:
        n[_REDUNDANT] += 1
    else:
        _read(n, f, number, now, fill, True, row, policy, ways, s, next_use)


@kernel
def _demand(n, f, number, now, fill, cause, row, policy, ways, s, next_use):  # type: ignore[no-untyped-def]
    n[_DEMANDS] += 1
    line = s[3][number]
    if line >= 0:
        n[_HITS] += 1
        n[_USEFUL] += s[1][line] == _AHEAD
        s[1][line] = _USED
        _touch(line, policy, ways, s)
        return
    n[_MISSES] += 1
    n[_COMPULSORY if cause == 1 else _CAPACITY if cause == 2 else _CONFLICT] += 1
    at = f[3][number]
    if at >= 0:
        n[_LATE if f[2][at] else _MERGED] += 1
        n[_WAIT] += f[1][at] - now
        f[2][at] = False
    else:
        n[_WAIT] += fill
        _read(n, f, number, now, fill, False, row, policy, ways, s, next_use)


@kernel
def _eject(n, number, how, policy, ways, s):  # type: ignore[no-untyped-def]
    _, states, order, where, clock = s
    line = where[number]
    if line < 0:
        return
    n[_EJECTED] += 1
    if how == HARD:
        n[_UNUSED] += states[line] == _AHEAD
        states[line], where[number] = _FREE, -1
    else:
        clock[2] -= 1
        note_use(policy, ways, order, line - line % ways, 1, line % ways, clock[2])


@kernel
def _run_cache(begin, end, o, following, causes, row, c, fill, how, s, f, next_use, n):  # type: ignore[no-untyped-def]
    _, times, numbers, aheads, ejects, refills = o
    policy, ways = c
    for at in range(begin, end):
        number, now = numbers[at], times[at]
        if fill > 0:
            _land(n, f, now, row, policy, ways, s, next_use)
        if aheads[at]:
            _prefetch(n, f, number, now, fill, row, policy, ways, s, next_use)
            continue
        next_use[number] = following[at]
        _demand(n, f, number, now, fill, causes[at], row, policy, ways, s, next_use)
        if how and ejects[at] >= 0:
            _eject(n, ejects[at], how, policy, ways, s)
        if refills[at] >= 0:
            _prefetch(n, f, refills[at], now, fill, row, policy, ways, s, next_use)
    _land(n, f, _NEVER, row, policy, ways, s, next_use)
    n[_UNUSED] += np.sum(s[1] == _AHEAD)


@kernel
def _futures(numbers, ahead, begin, end, following, next_use):  # type: ignore[no-untyped-def]
    """Write when the key of each demand is demanded again, and of each key when it is demanded first."""
    for at in range(end - 1, begin - 1, -1):
        if not ahead[at]:
            following[at] = next_use[numbers[at]]
            next_use[numbers[at]] = at


@kernel
def _run(o, causes, row, lines, c, fill, how, seed, following, next_use, places, counts):  # type: ignore[no-untyped-def]
    starts, numbers, ahead = o[0], o[2], o[3]
    policy, ways = c
    where, place = places
    keys, states, order = np.zeros(lines, np.int32), np.zeros(lines, np.uint8), np.zeros(lines, np.int64)
    most = 1
    for cache in range(len(starts) - 1):
        most = max(most, starts[cache + 1] - starts[cache])
    most = min(2 * most, len(where)) + 1
    f = (np.empty(most, np.int32), np.empty(most, np.int64), np.empty(most, np.bool_), place, np.zeros(2, np.int64))
    clock = np.zeros(3, np.int64)
    for cache in range(len(starts) - 1):
        begin, end = starts[cache], starts[cache + 1]
        _futures(numbers, ahead, begin, end, following, next_use)
        states[:], order[:], f[4][:] = 0, 0, 0
        clock[0], clock[1], clock[2] = 0, seed, 0
        s = (keys, states, order, where, clock)
        _run_cache(begin, end, o, following, causes, row, (policy, ways), fill, how, s, f, next_use, counts[cache])


def run_operations(
    operations: Operations, sets: NDArray[np.int64], *, set_count: int, ways: int, policy: int, fill: int = 0,
    eject: int = 0, seed: int = 0xACE1,
) -> NDArray[np.int64]:
    """Run operations through caches that are empty at the start.

    Parameters
    ----------
    operations : Operations
        What reaches them.
    sets : ndarray, int64[number]
        Set of each key.
    set_count, ways, policy : int
        Geometry of a cache, and index of its policy in `POLICIES`.
    fill : int
        Cycles of a TCAM read; 0: the line is written at once.
    eject : int
        `HARD`, `SOFT` (LRU only) or 0.
    seed : int
        Start of the random policy's register.

    Returns
    -------
    ndarray, int64[cache, 18]
        Counts as `ASSISTED` names them. Causes of misses are those of the demands alone.
    """
    count = len(sets)
    demands = ~operations.ahead
    causes = np.zeros(len(demands), np.uint8)
    causes[demands] = _causes_of(operations, demands, count, set_count * ways)
    counts = np.zeros((len(operations.starts) - 1, len(ASSISTED)), np.int64)
    _run(
        operations, causes, np.ascontiguousarray(sets, np.int64), set_count * ways, (policy, ways), fill, eject, seed,
        np.empty(len(demands), np.int64), np.full(count, _NEVER), (np.full(count, -1), np.full(count, -1)), counts,
    )  # fmt: skip
    return counts


def _causes_of(operations: Operations, demands: NDArray[np.bool_], count: int, entries: int) -> NDArray[np.uint8]:
    """Return what a fully associative LRU cache makes of the demands: 0 hit, 1 compulsory, 2 capacity."""
    passed = np.concatenate([[0], np.cumsum(demands)])
    starts, numbers = passed[operations.starts], operations.numbers[demands].astype(np.int64)
    causes = np.empty(len(numbers), np.uint8)
    seen, newer, older = np.zeros(count, np.uint8), np.empty(count, np.int64), np.empty(count, np.int64)
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        full_lru(numbers[begin:end], entries, seen, newer, older, causes[begin:end])
    return causes


@kernel
def _merge(starts, times, distance, sends, order, ahead):  # type: ignore[no-untyped-def]
    """Put prefetch packets among the demands: write which demand each operation is of, and whether it is a packet."""
    count = 0
    bounds = np.zeros(len(starts), np.int64)
    for cache in range(len(starts) - 1):
        packet, end = starts[cache], starts[cache + 1]
        for demand in range(starts[cache], end):
            while packet < end and max(0, times[packet] - distance) <= times[demand]:
                if sends[packet]:
                    order[count], ahead[count] = packet, True
                    count += 1
                packet += 1
            order[count], ahead[count] = demand, False
            count += 1
        bounds[cache + 1] = count
    return bounds


def packets_ahead(
    starts: NDArray[np.int64], times: NDArray[np.int64], numbers: NDArray[np.int32], sends: NDArray[np.bool_],
    distance: int,
) -> Operations:
    """Return demands with a prefetch packet `distance` cycles ahead of each that `sends` one.

    Parameters
    ----------
    starts : ndarray, int64[cache + 1]
        Where the demands of a cache begin.
    times, numbers, sends : ndarray [demand]
        Cycle, ascending in a cache, and key of a demand; whether a packet goes ahead of it.
    distance : int
        Cycles, at least 1.
    """
    total = len(numbers) + int(np.count_nonzero(sends))
    order, ahead = np.empty(total, np.int64), np.empty(total, np.bool_)
    bounds = _merge(starts, times, distance, sends, order, ahead)
    when = np.where(ahead, np.maximum(times[order] - distance, 0), times[order])
    none = np.full(total, -1, np.int32)
    return Operations(bounds, when, numbers[order], ahead, none, none.copy())

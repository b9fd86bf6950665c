"""Cube caches on prefix tables as a kernel, for long runs: the same counts as `cube_cache`, the golden model.

Every hit is compared with the longest match of that moment. Policies `KERNEL_POLICIES`; cubes are prefixes.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import inner_views, kernel
from hopforge.model.lookup.rules import prefix_entries as entries
from hopforge.model.lookup.rules.address_words import WORD_BITS, as_words, cut, same, shift_of
from hopforge.model.lookup.rules.cube_cache import INVALIDATIONS, CubeCounts, CubeSettings
from hopforge.model.lookup.rules.prefix_entries import (
    AFTER,
    BEFORE,
    ENTRIES,
    IN_SET,
    LENGTH,
    OUT,
    find,
    head_of,
    insert,
    remove,
    touch,
    within,
)
from hopforge.model.lookup.rules.prefix_trie import (
    NO_RULE,
    change,
    has_one_answer,
    longest_match,
    trie_nodes,
)

__all__ = ["KERNEL_POLICIES", "KINDS", "PrefixEvents", "PrefixRules", "run_prefixes"]

KERNEL_POLICIES = ("exact", "host", "mep", "naive")
"""Policies that the kernel has, in the order of its numbers."""

KINDS = ("add", "del", "mod")
"""Updates in the order of their numbers."""

_EXACT, _HOST, _MEP, _NAIVE = range(4)
_OVERLAP, _CHANGED, _FLUSH, _NONE = range(4)
assert INVALIDATIONS == ("overlap", "changed", "flush", "none")
# columns of a fill in flight
_BITS, _ANSWER, _DUE = range(3)
_TOP, _LEFT = np.uint64(63), np.uint64(1)
_ADD, _DEL, _MOD = range(3)
_LOOKUPS, _HITS, _WRONG, _FILLS, _EVICTED, _ABSORBED, _INVALIDATED, _DROPPED, _PEAK = range(9)


class PrefixRules(NamedTuple):
    """A prefix table.

    Attributes
    ----------
    values : ndarray, int64[rule] or uint64[rule, 2]
        Prefixes (`as_addresses`), each one once; bits behind the length are 0.
    lengths : ndarray, int64[rule]
        Of the prefixes, in bits.
    outs : ndarray, int32[rule]
        Answers, from 0.
    width : int
        Bits of an address.
    """

    values: NDArray[Any]
    lengths: NDArray[np.int64]
    outs: NDArray[np.int32]
    width: int


class PrefixEvents(NamedTuple):
    """Lookups, and the updates among them.

    Attributes
    ----------
    addresses : ndarray, int64[lookup] or uint64[lookup, 2]
        In their order (`as_addresses`).
    before : ndarray, int64[update]
        Lookup before which an update falls, ascending; the number of lookups: after the last one.
    kinds : ndarray, int64[update]
        Numbers of `KINDS`.
    values, lengths, outs : ndarray, as `addresses`, int64, int32[update]
        The rule that is added, deleted or changed; `outs` its new answer.
    """

    addresses: NDArray[Any]
    before: NDArray[np.int64]
    kinds: NDArray[np.int64]
    values: NDArray[Any]
    lengths: NDArray[np.int64]
    outs: NDArray[np.int32]


@inner_views
def _cube_length(child, below, high, low, length, policy, width):  # type: ignore[no-untyped-def]
    """Return the length of the prefix that is cached for an address whose rule has `length` (-1: no rule)."""
    if policy == _EXACT or (policy == _NAIVE and length < 0):
        return width
    if policy == _NAIVE:
        return length
    shortest, own = max(length, 0), length >= 0
    node, word = 0, high
    for depth in range(width):
        if depth == 64:
            word = low
        if depth >= shortest:
            if below[node] - (own and depth == length) == 0:
                return depth
            if policy == _HOST:
                return width
        node = child[node, np.int64(word >> _TOP)]
        word <<= _LEFT
        if node == 0:  # no rule further on
            return depth + 1
    return width


@inner_views
def _write(  # type: ignore[no-untyped-def]
    tree, entry, values, state, high, low, length, out, size, ways, tables, index_bits, counts, todo, found
):  # fmt: skip
    inside = within(tree, high, low, length, todo, found, False)
    for place in range(inside):
        remove(tree, entry, state, found[place])
    counts[_ABSORBED] += inside
    head = head_of(tables, high, low, index_bits, size)
    if entry[head, IN_SET] == ways:
        remove(tree, entry, state, entry[head, BEFORE])
        counts[_EVICTED] += 1
    insert(tree, entry, values, state, high, low, length, out, head)
    counts[_FILLS] += 1
    counts[_PEAK] = max(counts[_PEAK], state[ENTRIES])


@inner_views
def _candidates(tree, entry, size, high, low, length, how, test_all, todo, found):  # type: ignore[no-untyped-def]
    """Write the entries that an update of a prefix may drop into `found`; return how many."""
    if how == _NONE:
        return 0
    if how == _FLUSH or (how == _CHANGED and test_all):
        count = 0
        for number in range(len(entry) - size):
            head = size + number if number else 0
            one = entry[head, AFTER]
            while one != head:
                found[count] = one
                count += 1
                one = entry[one, AFTER]
        return count
    return within(tree, high, low, length, todo, found, True)


@inner_views
def _is_stale(  # type: ignore[no-untyped-def]
    child, out, below, cube_high, cube_low, cube_length, answer, high, low, length, how, open_nodes, kept
):  # fmt: skip
    if how == _OVERLAP:
        return same(cube_high, cube_low, high, low, min(cube_length, length))
    if how == _CHANGED:
        return not has_one_answer(child, out, below, cube_high, cube_low, cube_length, answer, open_nodes, kept)
    return how == _FLUSH


@inner_views
def _write_due(  # type: ignore[no-untyped-def]
    flight, words, waiting, now, tree, entry, values, state, size, ways, tables, index_bits, counts, todo, found
):  # fmt: skip
    """Write the fill in flight that is due, one at most, and return how many are left."""
    if waiting == 0 or flight[0, _DUE] > now:
        return waiting
    _write(
        tree, entry, values, state, words[0, 0], words[0, 1], flight[0, _BITS], flight[0, _ANSWER], size, ways, tables,
        index_bits, counts, todo, found,
    )  # fmt: skip
    for place in range(waiting - 1):
        flight[place], words[place] = flight[place + 1], words[place + 1]
    return waiting - 1


@inner_views
def _drop(  # type: ignore[no-untyped-def]
    flight, words, waiting, child, out, below, high, low, length, how, open_nodes, kept
):  # fmt: skip
    """Drop the fills in flight that an update makes stale; return how many are left."""
    left = 0
    for place in range(waiting):
        bits, answer = flight[place, _BITS], flight[place, _ANSWER]
        if not _is_stale(child, out, below, words[place, 0], words[place, 1], bits, answer, high, low, length, how,
                         open_nodes, kept):  # fmt: skip
            flight[left], words[left] = flight[place], words[place]
            left += 1
    return left


@inner_views
def _start_fill(flight, words, waiting, high, low, length, answer, due):  # type: ignore[no-untyped-def]
    """Put a fill in flight unless its prefix is in flight; return how many there are."""
    for place in range(waiting):
        if words[place, 0] == high and words[place, 1] == low and flight[place, _BITS] == length:
            return waiting
    words[waiting, 0], words[waiting, 1], flight[waiting, _BITS] = high, low, length
    flight[waiting, _ANSWER], flight[waiting, _DUE] = answer, due
    return waiting + 1


@kernel
def _run(  # type: ignore[no-untyped-def]
    addresses, shift, before, kinds, u_values, u_lengths, u_outs, child, out, below, used, width, tree, entry, values,
    state,
    size, ways, tables, index_bits, policy, how, fill, guard, counts,
):  # fmt: skip
    waiting = 0  # fills in flight, the oldest first: at most one for each of `fill` lookups
    flight, words = np.empty((fill + 1, 3), np.int64), np.empty((fill + 1, 2), np.uint64)
    todo, found = np.empty(len(tree) + 2, np.int32), np.empty(size + 1, np.int32)
    open_nodes, kept = np.empty(2 * width + 4, np.int32), np.empty(2 * width + 4, np.int32)
    test_all = policy == _NAIVE or not guard
    u = 0
    for t in range(len(addresses) + 1):
        while u < len(before) and before[u] == t:
            if fill == 1:  # before the next event of any kind
                waiting = _write_due(
                    flight, words, waiting, t, tree, entry, values, state, size, ways, tables, index_bits, counts, todo,
                    found,
                )  # fmt: skip
            kind, high, low, length = kinds[u], u_values[u, 0], u_values[u, 1], u_lengths[u]
            answer, step = u_outs[u], 0
            if kind == _ADD:
                step = 1
            elif kind == _DEL:
                answer, step = NO_RULE, -1
            used = change(child, out, below, used, high, low, length, answer, step)
            u += 1
            for place in range(_candidates(tree, entry, size, high, low, length, how, test_all, todo, found)):
                one = found[place]
                if _is_stale(child, out, below, values[one, 0], values[one, 1], entry[one, LENGTH], entry[one, OUT],
                             high, low, length, how, open_nodes, kept):  # fmt: skip
                    remove(tree, entry, state, one)
                    counts[_INVALIDATED] += 1
            if guard:
                left = _drop(flight, words, waiting, child, out, below, high, low, length, how, open_nodes, kept)
                counts[_DROPPED] += waiting - left
                waiting = left
        if t == len(addresses):
            break
        waiting = _write_due(
            flight, words, waiting, t, tree, entry, values, state, size, ways, tables, index_bits, counts, todo, found
        )  # fmt: skip
        high, low = addresses[t, 0] << shift, np.uint64(0)
        if addresses.shape[1] == 2:
            low = addresses[t, 1]
        counts[_LOOKUPS] += 1
        right, right_length = longest_match(child, out, high, low, width)
        one = find(tree, high, low, width)
        if one:
            counts[_HITS] += 1
            counts[_WRONG] += entry[one, OUT] != right
            touch(entry, one)
            continue
        length = max(_cube_length(child, below, high, low, right_length, policy, width), index_bits)
        high, low = cut(high, low, length)
        waiting = _start_fill(flight, words, waiting, high, low, length, right, t + fill)


def run_prefixes(rules: PrefixRules, events: PrefixEvents, settings: CubeSettings) -> CubeCounts:
    """Run lookups and updates through a cube cache before a prefix table.

    Parameters
    ----------
    rules : PrefixRules
        The table at the start.
    events : PrefixEvents
        What comes; the rules that it deletes or changes are there, those that it adds are not.
    settings : CubeSettings
        The cache; its policy is one of `KERNEL_POLICIES`.

    Returns
    -------
    CubeCounts
        As `CubeCache.run`.

    Raises
    ------
    ValueError
        A setting out of range, or a prefix that is there twice.
    """
    settings.check()
    if settings.policy not in KERNEL_POLICIES:
        raise ValueError(f"policy must be one of {', '.join(KERNEL_POLICIES)}, not {settings.policy}")
    child, out, below, used = _trie(rules, events)
    sets = settings.sets(rules.width)
    tree, entry, values, state = entries.new_entries(settings.size, rules.width, sets.sets)
    counts = np.zeros(len(CubeCounts._fields), np.int64)
    _run(
        as_words(events.addresses), shift_of(rules.width), events.before, events.kinds,
        _aligned(events.values, rules.width), events.lengths, events.outs, child, out, below, used,
        rules.width, tree, entry, values, state, settings.size,
        settings.size // sets.sets, sets.tables, sets.index_bits, KERNEL_POLICIES.index(settings.policy),
        INVALIDATIONS.index(settings.invalidation), settings.fill, settings.guard, counts,
    )  # fmt: skip
    return CubeCounts(*counts.tolist())


def _trie(
    rules: PrefixRules, events: PrefixEvents
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], int]:
    """Return the table as arrays of `prefix_trie`, with room for the rules that events add, and the nodes used."""
    values, added = _aligned(rules.values, rules.width), _aligned(events.values, rules.width)
    nodes = trie_nodes(np.concatenate([values, added]), np.concatenate([rules.lengths, events.lengths]))
    child, below = np.zeros((nodes, 2), np.int32), np.zeros(nodes, np.int32)
    out = np.full(nodes, NO_RULE, np.int32)
    used = _build(values, rules.lengths, rules.outs, child, out, below)
    if used < 0:
        place = -1 - used
        value = (int(values[place, 0]) << WORD_BITS | int(values[place, 1])) >> (2 * WORD_BITS - rules.width)
        raise ValueError(f"prefix {value:#x}/{int(rules.lengths[place])} is there twice")
    return child, out, below, used


def _aligned(values: NDArray[Any], width: int) -> NDArray[np.uint64]:
    """Return prefixes as left-aligned words, uint64[prefix, 2]."""
    words = as_words(values)
    if words.shape[1] == 2:
        return words
    return np.hstack([words << shift_of(width), np.zeros_like(words)])


@kernel
def _build(values, lengths, outs, child, out, below):  # type: ignore[no-untyped-def]
    """Write all rules into an empty trie; return the nodes used, or -1 - the place of a rule that is there twice."""
    used = 1
    for place in range(len(values)):
        had = below[0]
        node, word = 0, values[place, 0]
        for depth in range(lengths[place]):
            if depth == 64:
                word = values[place, 1]
            node = child[node, np.int64(word >> _TOP)]
            word <<= _LEFT
            if node == 0:
                break
        if had and (node or lengths[place] == 0) and out[node] != NO_RULE:
            return -1 - place
        used = change(child, out, below, used, values[place, 0], values[place, 1], lengths[place], outs[place], 1)
    return used

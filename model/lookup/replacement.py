"""Replacement of lines inside kernels: which way of a set is given up, and what its use or its fill changes.

Every set has a row of words, one per way, in an array (or behind a pointer) of any type of at least 32 bits; the set's
words begin at `first` and lie `step` apart. All zeros is the state after reset. LRU: time of the last use, by way.
Pseudo-LRU: nodes of the tree, node n (its children are 2n and 2n + 1) at bit n % 32 of word n // 32. FIFO: the pointer,
word 0. Random: one shift register for the whole cache, which the caller keeps. SRRIP: prediction, by way.

Times come from a clock that moves on with every use. They are compared by age, modulo what a word holds: in words of
32 bits a line would seem new after 2³² uses of others.

Definition: docs/definitions/lookup-engine.md, "Replacement". `model.lookup.golden` and `hw.cache.replacement` are
written on their own.
"""

from numba import int64

from hopforge.model.config.lookup import REPLAYED_POLICIES
from hopforge.model.kernel.compile import inlined

__all__ = [
    "FIFO", "LRU", "PLRU", "RANDOM", "SRRIP", "choose_victim", "next_random", "note_fill", "note_use", "random_way",
]  # fmt: skip

LRU, PLRU, FIFO, RANDOM, SRRIP = (REPLAYED_POLICIES.index(name) for name in ("lru", "plru", "fifo", "random", "srrip"))

_LONG, _DISTANT = 2, 3  # predictions of SRRIP: used again in a long time, in a very long one


@inlined
def _tree_of(ways, order, first, step):  # type: ignore[no-untyped-def]
    tree = int64(order[first]) & 0xFFFFFFFF
    return tree | int64(order[first + step]) << 32 if ways > 32 else tree


@inlined
def note_use(policy, ways, order, first, step, way, now):  # type: ignore[no-untyped-def]
    """Note that a line was used: the time of LRU, the path of pseudo-LRU."""
    if policy == LRU:
        order[first + step * way] = now
    elif policy == PLRU:
        tree = _tree_of(ways, order, first, step)
        node = way + ways  # the leaf; its parent is half of it
        while node > 1:
            side, node = node & 1, node >> 1
            tree = (tree & ~(1 << node)) | (side ^ 1) << node
        order[first] = tree & 0xFFFFFFFF
        if ways > 32:
            order[first + step] = tree >> 32 & 0xFFFFFFFF
    elif policy == SRRIP:
        order[first + step * way] = 0


@inlined
def note_fill(policy, ways, order, first, step, way, now):  # type: ignore[no-untyped-def]
    """Note that a line was written: as its use, and the pointer of FIFO moves on if it stood there."""
    if policy == FIFO:
        if order[first] == way:
            order[first] = way + 1 if way + 1 < ways else 0
    elif policy == SRRIP:
        order[first + step * way] = _LONG
    else:
        note_use(policy, ways, order, first, step, way, now)


@inlined
def _age_to_victim(ways, order, first, step):  # type: ignore[no-untyped-def]
    """Return the lowest way with the highest prediction; all of the set rise as far as that one does to `_DISTANT`."""
    oldest = 0
    for way in range(1, ways):
        if order[first + step * way] > order[first + step * oldest]:
            oldest = way
    rise = _DISTANT - order[first + step * oldest]
    for way in range(ways):
        order[first + step * way] += rise
    return oldest


@inlined
def choose_victim(policy, ways, order, first, step, now, age_mask, register):  # type: ignore[no-untyped-def]
    """Return the way that a set gives up whose lines are all live.

    Parameters
    ----------
    policy, ways : int
        `LRU` … `SRRIP`; ways of the set, a power of two for `PLRU`.
    order : array or pointer
        The words.
    first, step : int
        Where the set's words are.
    now : int
        Clock (LRU).
    age_mask : int
        Bits of a word (LRU): ages are compared modulo 2 to the number of these bits.
    register : int
        Shift register (random).
    """
    if policy == RANDOM:
        return random_way(ways, register)
    if policy == FIFO:
        return int64(order[first])
    if policy == PLRU:
        tree = _tree_of(ways, order, first, step)
        node = 1
        while node < ways:
            node = 2 * node + (tree >> node & 1)
        return node - ways
    if policy == SRRIP:
        return _age_to_victim(ways, order, first, step)
    oldest, longest = 0, (now - int64(order[first])) & age_mask
    for way in range(1, ways):
        age = (now - int64(order[first + step * way])) & age_mask
        if age > longest:
            oldest, longest = way, age
    return oldest


@inlined
def random_way(ways, register):  # type: ignore[no-untyped-def]
    """Return the way that the shift register points at."""
    return register * ways >> 16


@inlined
def next_random(register):  # type: ignore[no-untyped-def]
    """Return the shift register (16 bits, taps 16, 15, 13, 4) after one step, which follows an eviction."""
    return (register << 1 & 0xFFFF) | ((register >> 15 ^ register >> 14 ^ register >> 12 ^ register >> 3) & 1)

"""Kernels of a cache of prefixes: a trie of the entries, for each set a list from the most to the least recently used.

Nodes and entries come from pools. ``tree`` is int32[node, 5], ``entry`` int32[entry, 6], both with the columns below,
``value`` uint64[entry, 2] the prefix, left-aligned, ``state`` int64[5]. Node 0 stands for all addresses; entry numbers
are from 1. The list of a set begins and ends at its head: row 0 of ``entry`` for set 0, row `size` + s for set s.
"""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import both, inner

__all__ = ["find", "head_of", "insert", "new_entries", "remove", "touch", "within"]

# columns of a node: children, parent (of a free node: the next free one), entries in the subtree, its own entry
ZERO, ONE, PARENT, COUNT, HELD = range(5)
# columns of an entry: neighbours in the list, node, length of the prefix, answer, head of its list
BEFORE, AFTER, NODE, LENGTH, OUT, HEAD = range(6)
IN_SET = NODE
"""Column of a head: entries of its set."""
_TOP, _ONE, _BYTE = np.uint64(63), np.uint64(1), np.uint64(56)
# of the state: first free node, nodes never used, first free entry, entries never used, entries held
FREE_NODE, NEW_NODE, FREE_ENTRY, NEW_ENTRY, ENTRIES = range(5)


def new_entries(
    size: int, width: int, sets: int = 1
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint64], NDArray[np.int64]]:
    """Return ``tree, entry, value, state`` of an empty cache."""
    state = np.zeros(5, np.int64)
    state[NEW_NODE] = state[NEW_ENTRY] = 1
    entry = np.zeros((size + sets, 6), np.int32)
    heads = np.arange(size + 1, size + sets)
    entry[heads, BEFORE] = entry[heads, AFTER] = heads
    return np.zeros((size * width + 1, 5), np.int32), entry, np.zeros((size + 1, 2), np.uint64), state


@inner
def _byte(high, low, first):  # type: ignore[no-untyped-def]
    """Return eight bits of an address from bit `first` on, the highest bit being 0; what is before that is 0."""
    if first <= 0:
        word = high >> np.uint64(-first)
    elif first < 64:
        word = (high << np.uint64(first)) | (low >> np.uint64(64 - first))
    else:
        word = low << np.uint64(first - 64)
    return np.int64(word >> _BYTE)


@both()
def head_of(tables, high, low, index_bits, size):  # type: ignore[no-untyped-def]
    """Return the head of the set of a prefix; `tables` of `CubeSets`, empty for a single set."""
    number, left = 0, index_bits
    for place in range(len(tables)):  # the lowest byte ends with bit `index_bits`
        first = left - 8
        number ^= tables[place, _byte(high, low, first)]
        left = first
    return size + number if number else 0


@inner
def _unlink(entry, one):  # type: ignore[no-untyped-def]
    entry[entry[one, BEFORE], AFTER] = entry[one, AFTER]
    entry[entry[one, AFTER], BEFORE] = entry[one, BEFORE]


@inner
def _link_first(entry, one, head):  # type: ignore[no-untyped-def]
    first = entry[head, AFTER]
    entry[one, BEFORE], entry[one, AFTER] = head, first
    entry[head, AFTER] = one
    entry[first, BEFORE] = one


@both()
def touch(entry, one):  # type: ignore[no-untyped-def]
    """Make an entry the most recently used of its set."""
    head = entry[one, HEAD]
    if entry[head, AFTER] != one:
        _unlink(entry, one)
        _link_first(entry, one, head)


@both()
def find(tree, high, low, width):  # type: ignore[no-untyped-def]
    """Return the entry of the longest prefix that holds the address; 0: none."""
    node, best, word = 0, 0, high
    for depth in range(width + 1):
        if depth == 64:
            word = low
        if tree[node, HELD]:
            best = tree[node, HELD]
        if depth == width:
            break
        node = tree[node, np.int64(word >> _TOP)]
        word <<= _ONE
        if node == 0:
            break
    return best


@both()
def remove(tree, entry, state, one):  # type: ignore[no-untyped-def]
    """Take an entry out, and the nodes that only led to it."""
    _unlink(entry, one)
    node = entry[one, NODE]
    tree[node, HELD] = 0
    while True:
        tree[node, COUNT] -= 1
        if node == 0:
            break
        parent = tree[node, PARENT]
        if tree[node, COUNT] == 0:
            tree[parent, ZERO if tree[parent, ZERO] == node else ONE] = 0
            tree[node, PARENT] = state[FREE_NODE]
            state[FREE_NODE] = node
        node = parent
    entry[entry[one, HEAD], IN_SET] -= 1
    entry[one, AFTER] = state[FREE_ENTRY]
    state[FREE_ENTRY] = one
    state[ENTRIES] -= 1


@inner
def _new_node(tree, state, parent):  # type: ignore[no-untyped-def]
    node = state[FREE_NODE]
    if node:
        state[FREE_NODE] = tree[node, PARENT]
    else:
        node = state[NEW_NODE]
        state[NEW_NODE] += 1
    tree[node, ZERO] = tree[node, ONE] = tree[node, COUNT] = tree[node, HELD] = 0
    tree[node, PARENT] = parent
    return node


@both()
def insert(tree, entry, values, state, high, low, length, out, head):  # type: ignore[no-untyped-def]
    """Write an entry as the most recently used of its set; there is room, and its prefix is not held."""
    one = state[FREE_ENTRY]
    if one:
        state[FREE_ENTRY] = entry[one, AFTER]
    else:
        one = state[NEW_ENTRY]
        state[NEW_ENTRY] += 1
    node, word = 0, high
    tree[0, COUNT] += 1
    for depth in range(length):
        if depth == 64:
            word = low
        bit = np.int64(word >> _TOP)
        word <<= _ONE
        if tree[node, bit] == 0:
            tree[node, bit] = _new_node(tree, state, node)
        node = tree[node, bit]
        tree[node, COUNT] += 1
    tree[node, HELD] = one
    entry[one, NODE], entry[one, LENGTH], entry[one, OUT] = node, length, out
    values[one, 0], values[one, 1] = high, low
    entry[one, HEAD] = head
    entry[head, IN_SET] += 1
    _link_first(entry, one, head)
    state[ENTRIES] += 1


@both()
def within(tree, high, low, length, todo, found, above):  # type: ignore[no-untyped-def]
    """Write the entries inside a prefix into `found`; with `above` also those that hold it. Return how many."""
    node, count, word = 0, 0, high
    for depth in range(length):
        if depth == 64:
            word = low
        if above and tree[node, HELD]:
            found[count] = tree[node, HELD]
            count += 1
        node = tree[node, np.int64(word >> _TOP)]
        word <<= _ONE
        if node == 0:
            return count
    todo[0], open_ends = node, 1
    while open_ends:
        open_ends -= 1
        node = todo[open_ends]
        if tree[node, HELD]:
            found[count] = tree[node, HELD]
            count += 1
        for bit in range(2):
            if tree[node, bit]:
                todo[open_ends] = tree[node, bit]
                open_ends += 1
    return count

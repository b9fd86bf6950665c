"""Kernels of a table of prefixes as a binary trie: longest match, updates, and whether a prefix has one answer.

A node stands for a prefix; node 0 for all addresses. ``child`` is int32[node, 2] (0: none), ``out`` int32[node]
(`NO_RULE`: no rule ends here), ``below`` int32[node]: rules that end in its subtree, its own among them. Addresses and
prefixes come as two left-aligned words (`address_words`).
"""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import both, inner

__all__ = ["DROP", "NO_RULE", "change", "has_one_answer", "longest_match", "trie_nodes"]

DROP = -1
"""Answer where no rule matches."""

NO_RULE = -2
"""In place of an answer: no rule ends at this node."""

_TOP, _ONE = np.uint64(63), np.uint64(1)


def trie_nodes(values: NDArray[np.uint64], lengths: NDArray[np.int64]) -> int:
    """Return how many nodes a trie of these prefixes has: of each, those that it does not share with one before.

    Parameters
    ----------
    values : ndarray, uint64[prefix, 2]
        Left-aligned words.
    lengths : ndarray, int64[prefix]
        Of the prefixes, in bits.
    """
    if not len(values):
        return 1
    order = np.lexsort((lengths, values[:, 1], values[:, 0]))
    values, lengths = values[order], lengths[order]
    differ = values[1:] ^ values[:-1]
    high, low = (_leading_zeros(differ[:, word]) for word in (0, 1))
    shared = np.where(high < 64, high, 64 + low)
    shared = np.minimum(shared, np.minimum(lengths[1:], lengths[:-1]))
    return 1 + int(lengths.sum() - shared.sum())


def _leading_zeros(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    found = words.copy()
    for step in (1, 2, 4, 8, 16, 32):
        found |= found >> np.uint64(step)
    return 64 - np.bitwise_count(found).astype(np.int64)


@both()
def change(child, out, below, used, high, low, length, answer, step):  # type: ignore[no-untyped-def]
    """Write `answer` at a prefix; `step` is added to the counts on the way. Return the nodes now used."""
    node, word = 0, high
    below[0] += step
    for depth in range(length):
        if depth == 64:
            word = low
        bit = np.int64(word >> _TOP)
        word <<= _ONE
        if child[node, bit] == 0:
            child[node, bit] = used
            used += 1
        node = child[node, bit]
        below[node] += step
    out[node] = answer
    return used


@both()
def longest_match(child, out, high, low, width):  # type: ignore[no-untyped-def]
    """Return answer and length of the longest prefix that matches; without one `DROP` and -1."""
    node, answer, length, word = 0, DROP, -1, high
    for depth in range(width + 1):
        if depth == 64:
            word = low
        if out[node] != NO_RULE:
            answer, length = out[node], depth
        if depth == width:
            break
        node = child[node, np.int64(word >> _TOP)]
        word <<= _ONE
        if node == 0:
            break
    return answer, length


@inner
def _subtree_has(child, out, below, root, inherited, wanted, todo, kept):  # type: ignore[no-untyped-def]
    """Tell whether all below `root` has the answer; `todo`, `kept` hold open nodes and what they inherit."""
    todo[0], kept[0], open_ends = root, inherited, 1
    while open_ends:
        open_ends -= 1
        node, answer = todo[open_ends], kept[open_ends]
        beneath = below[node]
        if out[node] != NO_RULE:
            answer = out[node]
            beneath -= 1
        if beneath == 0:
            if answer != wanted:
                return False
            continue
        for bit in range(2):
            after = child[node, bit]
            if after == 0:
                if answer != wanted:
                    return False
            else:
                todo[open_ends], kept[open_ends] = after, answer
                open_ends += 1
    return True


@both()
def has_one_answer(child, out, below, high, low, length, wanted, todo, kept):  # type: ignore[no-untyped-def]
    """Tell whether every address of a prefix is answered by `wanted`."""
    node, answer, word = 0, DROP, high
    for depth in range(length):
        if depth == 64:
            word = low
        if out[node] != NO_RULE:
            answer = out[node]
        node = child[node, np.int64(word >> _TOP)]
        word <<= _ONE
        if node == 0:
            return answer == wanted
    return _subtree_has(child, out, below, node, answer, wanted, todo, kept)

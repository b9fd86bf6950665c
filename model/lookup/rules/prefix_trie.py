"""Kernels of a table of prefixes as a binary trie: longest match, updates, and whether a prefix has one answer.

A node stands for a prefix; node 0 for all addresses. ``child`` is int32[node, 2] (0: none), ``out`` int32[node]
(`NO_RULE`: no rule ends here), ``below`` int32[node]: rules that end in its subtree, its own among them.
"""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import kernel

__all__ = ["DROP", "NO_RULE", "change", "has_one_answer", "longest_match", "rules_below", "trie_nodes"]

DROP = -1
"""Answer where no rule matches."""

NO_RULE = -2
"""In place of an answer: no rule ends at this node."""


def trie_nodes(values: NDArray[np.int64], lengths: NDArray[np.int64], width: int) -> int:
    """Return how many nodes a trie of these prefixes has."""
    nodes = 1
    for length in range(1, width + 1):
        nodes += len(np.unique(values[lengths >= length] >> (width - length)))
    return nodes


@kernel
def change(child, out, below, used, value, length, answer, step, width):  # type: ignore[no-untyped-def]
    """Write `answer` at a prefix; `step` is added to the counts on the way. Return the nodes now used."""
    node = 0
    below[0] += step
    for depth in range(length):
        bit = (value >> (width - 1 - depth)) & 1
        if child[node, bit] == 0:
            child[node, bit] = used
            used += 1
        node = child[node, bit]
        below[node] += step
    out[node] = answer
    return used


@kernel
def longest_match(child, out, address, width):  # type: ignore[no-untyped-def]
    """Return answer and length of the longest prefix that matches; without one `DROP` and -1."""
    node, answer, length = 0, DROP, -1
    for depth in range(width + 1):
        if out[node] != NO_RULE:
            answer, length = out[node], depth
        if depth == width:
            break
        node = child[node, (address >> (width - 1 - depth)) & 1]
        if node == 0:
            break
    return answer, length


@kernel
def rules_below(child, below, value, length, width):  # type: ignore[no-untyped-def]
    """Return how many rules end at or below a prefix."""
    node = 0
    for depth in range(length):
        node = child[node, (value >> (width - 1 - depth)) & 1]
        if node == 0:
            return 0
    return below[node]


@kernel
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


@kernel
def has_one_answer(child, out, below, value, length, wanted, width, todo, kept):  # type: ignore[no-untyped-def]
    """Tell whether every address of a prefix is answered by `wanted`."""
    node, answer = 0, DROP
    for depth in range(length):
        if out[node] != NO_RULE:
            answer = out[node]
        node = child[node, (value >> (width - 1 - depth)) & 1]
        if node == 0:
            return answer == wanted
    return _subtree_has(child, out, below, node, answer, wanted, todo, kept)

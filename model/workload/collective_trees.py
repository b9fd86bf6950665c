"""Broadcasts and reductions down and up trees, as Open MPI has them.

A tree is a list ``children[rank]``, with the root at 0. A rank sends to all its children in one round, in their order;
a parent receives from all its children in one round.
"""

from hopforge.model.workload.collective_rounds import Schedule, Transfer, rounds_of

Tree = list[list[int]]


def binary_tree(p: int) -> Tree:
    """Return the tree in which rank r of level L has the children r + 2^L and r + 2·2^L."""
    level = [1 << ((rank + 1).bit_length() - 1) for rank in range(p)]
    return [[rank + step * level[rank] for step in (1, 2) if rank + step * level[rank] < p] for rank in range(p)]


def doubling_tree(p: int) -> Tree:
    """Return the tree in which the parent of a rank is the rank without its highest bit, near children first."""
    return [
        [rank + (1 << bit) for bit in range(rank.bit_length(), p.bit_length()) if rank + (1 << bit) < p]
        for rank in range(p)
    ]


def knomial_tree(p: int, radix: int) -> Tree:
    """Return the tree in which the parent of a rank is the rank without its lowest digit, far children first."""
    found: Tree = []
    for rank in range(p):
        step = 1
        while step < p and rank % (radix * step) == 0:
            step *= radix
        children = []
        while step > 1:
            step //= radix
            children += [rank + digit * step for digit in range(1, radix) if rank + digit * step < p]
        found.append(children)
    return found


def in_order_binary_tree(p: int) -> Tree:
    """Return the binary tree whose root is p − 1 and whose ranks, left subtree last, stand in their order.

    Of n ranks the last one is the root, the ⌊n/2⌋ lowest are its second subtree, the rest its first.
    """
    children: Tree = [[] for _ in range(p)]
    parts = [(0, p)]
    while parts:
        low, count = parts.pop()
        if count < 2:
            continue
        top, second = low + count - 1, count // 2
        children[top] = [top - 1]
        parts.append((low + second, count - second - 1))
        if count > 2:
            children[top].append(low + second - 1)
            parts.append((low, second))
    return children


def _levels(tree: Tree, top: int) -> list[list[tuple[int, int]]]:
    """Return the (parent, child) of each level, from the top."""
    levels = []
    here = [top]
    while here:
        pairs = [(rank, child) for rank in here for child in tree[rank]]
        levels.append(pairs)
        here = [child for _, child in pairs]
    return levels


def _down(tree: Tree, root: int) -> Schedule:
    p = len(tree)
    return rounds_of([
        [Transfer((a + root) % p, (b + root) % p, (0,)) for a, b in pairs] for pairs in _levels(tree, 0)
    ])


def _up(tree: Tree, top: int, root: int) -> Schedule:
    p = len(tree)
    return rounds_of([
        [Transfer((b + root) % p, (a + root) % p, (0,), True) for a, b in pairs]
        for pairs in reversed(_levels(tree, top))
    ])


def bcast_binary(p: int, root: int) -> Schedule:
    """Root to all down the binary tree."""
    return _down(binary_tree(p), root)


def bcast_binomial_doubling(p: int, root: int) -> Schedule:
    """Root to all down `doubling_tree`; every rank sends to all its children at once, near ones first."""
    return _down(doubling_tree(p), root)


def bcast_knomial_4(p: int, root: int) -> Schedule:
    """Root to all down the k-nomial tree of radix 4."""
    return _down(knomial_tree(p, 4), root)


def bcast_linear_by_rank(p: int, root: int) -> Schedule:
    """Root sends to every other rank, in the order of ranks, one round."""
    return rounds_of([[Transfer(root, rank, (0,)) for rank in range(p) if rank != root]])


def bcast_split_binary(p: int, root: int) -> Schedule:
    """Each half of the vector goes down one side of the binary tree; then pairs exchange their halves.

    Two pieces. Counted from the root, odd ranks get the first one, even ranks the second, and 2k − 1 exchanges with 2k.
    The last rank of an even number of ranks has no partner and gets the second half from the root.
    """
    rounds = [
        [Transfer((a + root) % p, (b + root) % p, (1 - b % 2,)) for a, b in pairs]
        for pairs in _levels(binary_tree(p), 0)
    ]
    pairs = [(rank, rank + 1 if rank % 2 else rank - 1) for rank in range(1, p - (p % 2 == 0))]
    last = [Transfer(root, (root + p - 1) % p, (1,))] if p % 2 == 0 else []
    rounds.append(last + [Transfer((a + root) % p, (b + root) % p, (1 - a % 2,)) for a, b in pairs])
    return rounds_of(rounds)


def reduce_ring(p: int, root: int) -> Schedule:
    """From neighbour to neighbour down to the root, p − 1 rounds."""
    return rounds_of([[Transfer((root + i) % p, (root + i - 1) % p, (0,), True)] for i in range(p - 1, 0, -1)])


def reduce_binary(p: int, root: int) -> Schedule:
    """All to root up the binary tree."""
    return _up(binary_tree(p), 0, root)


def reduce_in_order_binary(p: int, root: int) -> Schedule:
    """All to rank p − 1 up `in_order_binary_tree`, and from there to the root."""
    rounds = _up(in_order_binary_tree(p), p - 1, 0)
    return rounds if root == p - 1 else (*rounds, (Transfer(p - 1, root, (0,)),))

"""Bytes of the blocks that a collective moves: whole vectors, their pieces, and what each rank contributes or gets."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.workload.collective_rounds import power_below

Sizes = NDArray[np.int64]
#: operations that move one vector
VECTORS = frozenset({"bcast", "reduce", "allreduce", "scan", "barrier"})


class Amount(NamedTuple):
    """What a collective moves.

    Attributes
    ----------
    elements, element_bytes : int
        The vector of bcast, reduce, allreduce and scan; of the other operations all blocks together.
    blocks : ndarray, int64[...]
        Bytes of each block of the other operations (`collectives`); empty for those with a vector.
    """

    elements: int
    element_bytes: int
    blocks: Sizes = np.empty(0, np.int64)

    @property
    def bytes(self) -> int:
        """Of the vector."""
        return self.elements * self.element_bytes


def first_larger(count: int, pieces: int) -> Sizes:
    """Cut `count` in pieces that differ by one at most, the larger ones first."""
    return count // pieces + (np.arange(pieces) < count % pieces).astype(np.int64)


def rounded_up(count: int, pieces: int) -> Sizes:
    """Cut `count` in pieces of ⌈count/pieces⌉, as far as it goes: the last ones may be shorter or empty."""
    size = -(-count // pieces)
    return np.clip(count - size * np.arange(pieces), 0, size).astype(np.int64)


def halved(count: int, pieces: int) -> Sizes:
    """Halve `count` until there are `pieces` (a power of two); of an odd number the second half is larger."""
    sizes = np.array([count], np.int64)
    while len(sizes) < pieces:
        sizes = np.stack([sizes // 2, sizes - sizes // 2], axis=1).reshape(-1)
    return sizes


#: (operation, algorithm) → (pieces of so many ranks, how they are cut)
PIECES: dict[tuple[str, str], tuple[Callable[[int], int], Callable[[int, int], Sizes]]] = {
    ("bcast", "scatter_ring_allgather"): (lambda ranks: ranks, rounded_up),
    ("bcast", "scatter_doubling_allgather"): (lambda ranks: ranks, rounded_up),
    ("bcast", "split_binary"): (lambda ranks: 2, first_larger),
    ("reduce", "rabenseifner"): (power_below, first_larger),
    ("reduce", "rabenseifner_halves"): (power_below, halved),
    ("allreduce", "ring"): (lambda ranks: ranks, first_larger),
    ("allreduce", "halving_doubling"): (lambda ranks: ranks, first_larger),
    ("allreduce", "rabenseifner"): (power_below, first_larger),
    ("allreduce", "rabenseifner_halves"): (power_below, halved),
}


def block_bytes(operation: str, algorithm: str, ranks: int, amount: Amount, *, cut_bytes: bool = False) -> Sizes:
    """Return int64[block], the bytes of the blocks of an algorithm.

    Parameters
    ----------
    operation, algorithm : str
        Keys of `collectives.ALGORITHMS`.
    ranks : int
        Number of ranks.
    amount : Amount
        What is moved.
    cut_bytes : bool
        Pieces of a vector need not be whole elements.
    """
    if operation not in VECTORS:
        return amount.blocks
    if (operation, algorithm) not in PIECES:
        return np.array([amount.bytes], np.int64)
    pieces, cut = PIECES[operation, algorithm]
    if cut_bytes:
        return cut(amount.bytes, pieces(ranks))
    return cut(amount.elements, pieces(ranks)) * amount.element_bytes

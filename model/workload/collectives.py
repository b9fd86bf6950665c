"""Collective operations of MPI as rounds of point-to-point messages, by named algorithm.

A schedule says which *blocks* of data move; what a block is depends on the operation:

============================  =====================================================================
operation                     blocks
============================  =====================================================================
bcast, reduce, allreduce      one, number 0; or pieces of the vector where the algorithm cuts it (`collective_sizes`)
barrier, scan                 one, number 0
gather, allgather             block r = the contribution of rank r
scatter, reduce_scatter       block r = what rank r gets
alltoall                      block s·p + d = from rank s to rank d
============================  =====================================================================

Transfers of one round are independent of each other: each carries what its source had before the round.
"""

from functools import lru_cache

from hopforge.model.workload.collective_cuts import (
    allreduce_rabenseifner,
    allreduce_rabenseifner_halves,
    bcast_scatter_doubling_allgather,
    bcast_scatter_ring_allgather,
    reduce_rabenseifner,
    reduce_rabenseifner_halves,
    reduce_scatter_butterfly,
    reduce_scatter_ring,
)
from hopforge.model.workload.collective_rounds import NOTHING, Algorithm, Schedule, Transfer, rounds_of
from hopforge.model.workload.collective_rounds import binomial_tree as _tree
from hopforge.model.workload.collective_rounds import power_below as _power_below
from hopforge.model.workload.collective_trees import (
    bcast_binary,
    bcast_binomial_doubling,
    bcast_knomial_4,
    bcast_linear_by_rank,
    bcast_split_binary,
    reduce_binary,
    reduce_in_order_binary,
    reduce_ring,
)

_rounds = rounds_of

# ---- one root -------------------------------------------------------------------------------------------------------

def _subtree(p: int, root: int, child: int, size: int) -> tuple[int, ...]:
    start = (child - root) % p
    return tuple((start + step + root) % p for step in range(size))


def bcast_binomial(p: int, root: int) -> Schedule:
    """Root to all down a binomial tree, ⌈log₂ p⌉ rounds."""
    return _rounds([[Transfer(a, b, (0,)) for a, b, _ in part] for part in _tree(p, root)])


def bcast_linear(p: int, root: int) -> Schedule:
    """Root sends to every other rank, one round."""
    return _rounds([[Transfer(root, (root + i) % p, (0,)) for i in range(1, p)]])


def bcast_ring(p: int, root: int) -> Schedule:
    """From neighbour to neighbour around the ring, p − 1 rounds."""
    return _rounds([[Transfer((root + i) % p, (root + i + 1) % p, (0,))] for i in range(p - 1)])


def reduce_binomial(p: int, root: int) -> Schedule:
    """All to root up a binomial tree, ⌈log₂ p⌉ rounds."""
    return _rounds([[Transfer(b, a, (0,), True) for a, b, _ in part] for part in reversed(_tree(p, root))])


def reduce_linear(p: int, root: int) -> Schedule:
    """Every other rank sends to the root, one round."""
    return _rounds([[Transfer((root + i) % p, root, (0,), True) for i in range(1, p)]])


def gather_binomial(p: int, root: int) -> Schedule:
    """Subtrees' blocks move up a binomial tree."""
    return _rounds([
        [Transfer(b, a, _subtree(p, root, b, size)) for a, b, size in part] for part in reversed(_tree(p, root))
    ])


def gather_linear(p: int, root: int) -> Schedule:
    """Every other rank sends its block to the root, one round."""
    return _rounds([[Transfer((root + i) % p, root, ((root + i) % p,)) for i in range(1, p)]])


def scatter_binomial(p: int, root: int) -> Schedule:
    """Subtrees' blocks move down a binomial tree."""
    return _rounds([[Transfer(a, b, _subtree(p, root, b, size)) for a, b, size in part] for part in _tree(p, root)])


def scatter_linear(p: int, root: int) -> Schedule:
    """Root sends every other rank its block, one round."""
    return _rounds([[Transfer(root, (root + i) % p, ((root + i) % p,)) for i in range(1, p)]])


def gather_linear_by_rank(p: int, root: int) -> Schedule:
    """Every other rank that has data sends its block to the root, one round."""
    return _rounds([[Transfer(rank, root, (rank,), optional=True) for rank in range(p) if rank != root]])


def gather_linear_sync(p: int, root: int) -> Schedule:
    """Root asks one rank after the other, which sends its block; empty messages follow (Open MPI without segments)."""
    others = [rank for rank in range(p) if rank != root]
    asked = [part for i in others for part in ([Transfer(root, i, (NOTHING,))], [Transfer(i, root, (i,))])]
    return _rounds([*asked, [Transfer(i, root, (NOTHING,)) for i in others]])


def scatter_linear_by_rank(p: int, root: int) -> Schedule:
    """Root sends every other rank its block if it has one, in the order of ranks, one round."""
    return _rounds([[Transfer(root, rank, (rank,), optional=True) for rank in range(p) if rank != root]])


# ---- all ranks alike ------------------------------------------------------------------------------------------------

def allreduce_recursive_doubling(p: int, root: int = 0) -> Schedule:
    """Exchange with partners at distance 1, 2, 4 and so on.

    If p is no power of two, each of the first 2·(p − 2^k) even ranks first folds into its odd neighbour and gets the
    result from it at the end.
    """
    core = _power_below(p)
    extra = p - core
    members = [2 * i + 1 if i < extra else i + extra for i in range(core)]
    rounds = [[Transfer(2 * i, 2 * i + 1, (0,), True) for i in range(extra)]]
    mask = 1
    while mask < core:
        rounds.append([Transfer(members[i], members[i ^ mask], (0,), True) for i in range(core)])
        mask *= 2
    rounds.append([Transfer(2 * i + 1, 2 * i, (0,)) for i in range(extra)])
    return _rounds(rounds)


def allreduce_ring(p: int, root: int = 0) -> Schedule:
    """Reduce-scatter, then allgather around the ring; the vector is cut in p pieces."""
    rounds = [
        [Transfer(r, (r + 1) % p, ((r - step) % p,), True) for r in range(p)] for step in range(p - 1)
    ] + [
        [Transfer(r, (r + 1) % p, ((r + 1 - step) % p,)) for r in range(p)] for step in range(p - 1)
    ]
    return _rounds(rounds if p > 1 else [])


def allreduce_halving_doubling(p: int, root: int = 0) -> Schedule:
    """Reduce-scatter by recursive halving, then allgather by recursive doubling (Rabenseifner 2004), p pieces."""
    return reduce_scatter_recursive_halving(p) + allgather_recursive_doubling(p)


def allreduce_binomial(p: int, root: int = 0) -> Schedule:
    """Reduce to rank 0 and broadcast, both by binomial tree."""
    return reduce_binomial(p, 0) + bcast_binomial(p, 0)


def allreduce_linear(p: int, root: int = 0) -> Schedule:
    """Reduce to rank 0 and broadcast, both in one round."""
    return reduce_linear(p, 0) + bcast_linear(p, 0)


def alltoall_pairwise(p: int, root: int = 0) -> Schedule:
    """Make p − 1 rounds; partners r xor i if p is a power of two, else to r + i and from r − i."""
    if p & (p - 1):
        return alltoall_ring(p)
    return _rounds([[Transfer(r, r ^ i, (r * p + (r ^ i),)) for r in range(p)] for i in range(1, p)])


def alltoall_ring(p: int, root: int = 0) -> Schedule:
    """Make p − 1 rounds; in round i rank r sends to r + i."""
    return _rounds([[Transfer(r, (r + i) % p, (r * p + (r + i) % p,)) for r in range(p)] for i in range(1, p)])


def alltoall_linear(p: int, root: int = 0) -> Schedule:
    """Everything is sent at once, each rank beginning with its successor."""
    return _rounds([[Transfer(r, (r + i) % p, (r * p + (r + i) % p,)) for i in range(1, p) for r in range(p)]])


def alltoall_linear_backward(p: int, root: int = 0) -> Schedule:
    """Everything is sent at once, each rank beginning with its predecessor."""
    return _rounds([[Transfer(r, (r - i) % p, (r * p + (r - i) % p,)) for r in range(p) for i in range(1, p)]])


def alltoall_linear_by_rank(p: int, root: int = 0) -> Schedule:
    """Everything is sent at once, to rank 0 first."""
    return _rounds([[Transfer(r, d, (r * p + d,)) for r in range(p) for d in range(p) if r != d]])


def alltoall_scattered(p: int, root: int = 0) -> Schedule:
    """As `alltoall_linear_backward`, 32 partners at a time, of which the rank itself is the first (MPICH)."""
    return _rounds([
        [
            Transfer(r, (r - i) % p, (r * p + (r - i) % p,))
            for r in range(p) for i in range(max(low, 1), min(low + 32, p))
        ]
        for low in range(0, p, 32)
    ])


def alltoall_bruck(p: int, root: int = 0) -> Schedule:
    """⌈log₂ p⌉ rounds; in round k rank r sends to r + 2^k all blocks whose remaining way has bit k."""
    rounds = []
    mask = 1
    while mask < p:
        part = []
        for r in range(p):
            # a block with way w = (d - s) mod p sits at s + (lower bits of w) before the round of bit k
            blocks = tuple(
                s * p + (s + way) % p
                for way in range(1, p) if way & mask
                for s in [(r - (way & (mask - 1))) % p]
            )
            part.append(Transfer(r, (r + mask) % p, blocks))
        rounds.append(part)
        mask *= 2
    return _rounds(rounds)


def allgather_ring(p: int, root: int = 0) -> Schedule:
    """Make p − 1 rounds; each rank passes on the block it got last."""
    return _rounds([[Transfer(r, (r + 1) % p, ((r - step) % p,)) for r in range(p)] for step in range(p - 1)])


def allgather_recursive_doubling(p: int, root: int = 0) -> Schedule:
    """Exchange all blocks with partners at distance 1, 2, 4, …; ranks beyond the power of two hand in and get back."""
    core = _power_below(p)
    have: list[tuple[int, ...]] = [(r, r + core) if r + core < p else (r,) for r in range(core)]
    rounds = [[Transfer(r + core, r, (r + core,)) for r in range(p - core)]]
    mask = 1
    while mask < core:
        rounds.append([Transfer(r, r ^ mask, have[r]) for r in range(core)])
        have = [have[r] + have[r ^ mask] for r in range(core)]
        mask *= 2
    rounds.append([Transfer(r, r + core, tuple(b for b in range(p) if b != r + core)) for r in range(p - core)])
    return _rounds(rounds)


def allgather_bruck(p: int, root: int = 0) -> Schedule:
    """⌈log₂ p⌉ rounds; in round k rank r sends up to 2^k blocks to r − 2^k."""
    rounds = []
    mask = 1
    while mask < p:
        size = min(mask, p - mask)
        rounds.append([
            Transfer(r, (r - mask) % p, tuple((r + step) % p for step in range(size))) for r in range(p)
        ])
        mask *= 2
    return _rounds(rounds)


def allgather_neighbour(p: int, root: int = 0) -> Schedule:
    """Exchange with one neighbour and the other in turn, p/2 rounds: one block, then the two that came last.

    Chen and others 2005. An odd number of ranks does `allgather_ring`.
    """
    if p % 2:
        return allgather_ring(p)
    rounds = [[Transfer(r, r ^ 1, (r,)) for r in range(p)]]
    latest = [r & ~1 for r in range(p)]  # first of the two blocks that came last; the first time its own is one of them
    for step in range(1, p // 2):
        partner = [(r + 1 if (r + step) % 2 == 0 else r - 1) % p for r in range(p)]
        rounds.append([Transfer(r, partner[r], (latest[r], latest[r] + 1)) for r in range(p)])
        latest = [latest[partner[r]] for r in range(p)]
    return _rounds(rounds)


def reduce_scatter_pairwise(p: int, root: int = 0) -> Schedule:
    """Make p − 1 rounds; in round i rank r sends rank r + i its contribution to that rank's block."""
    return _rounds([[Transfer(r, (r + i) % p, ((r + i) % p,), True) for r in range(p)] for i in range(1, p)])


def reduce_scatter_recursive_halving(p: int, root: int = 0) -> Schedule:
    """Halve the vector with partners at distance 2^k, …, 2, 1; folding as in `allreduce_recursive_doubling`."""
    core = _power_below(p)
    extra = p - core
    members = [2 * i + 1 if i < extra else i + extra for i in range(core)]
    owned = [(2 * i, 2 * i + 1) if i < extra else (i + extra,) for i in range(core)]
    rounds = [[Transfer(2 * i, 2 * i + 1, tuple(range(p)), True) for i in range(extra)]]
    mask = core >> 1
    while mask:
        part = []
        for i in range(core):
            partner = i ^ mask
            start = partner & ~(mask - 1)
            blocks = tuple(block for other in range(start, start + mask) for block in owned[other])
            part.append(Transfer(members[i], members[partner], blocks, True))
        rounds.append(part)
        mask >>= 1
    rounds.append([Transfer(2 * i + 1, 2 * i, (2 * i,)) for i in range(extra)])
    return _rounds(rounds)


def barrier_bruck(p: int, root: int = 0) -> Schedule:
    """Dissemination: in round k rank r tells r + 2^k."""
    rounds = []
    mask = 1
    while mask < p:
        rounds.append([Transfer(r, (r + mask) % p, (0,), True) for r in range(p)])
        mask *= 2
    return _rounds(rounds)


def barrier_recursive_doubling(p: int, root: int = 0) -> Schedule:
    """As `allreduce_recursive_doubling`, without data."""
    return allreduce_recursive_doubling(p)


def barrier_recursive_doubling_upper(p: int, root: int = 0) -> Schedule:
    """Recursive doubling; the ranks beyond the power of two report to a lower one first and hear from it at the end."""
    core = _power_below(p)
    rounds = [[Transfer(r + core, r, (0,), True) for r in range(p - core)]]
    mask = 1
    while mask < core:
        rounds.append([Transfer(r, r ^ mask, (0,), True) for r in range(core)])
        mask *= 2
    rounds.append([Transfer(r, r + core, (0,), True) for r in range(p - core)])
    return _rounds(rounds)


def barrier_linear(p: int, root: int = 0) -> Schedule:
    """All report to rank 0, which then tells all."""
    return allreduce_linear(p)


def barrier_binomial(p: int, root: int = 0) -> Schedule:
    """Up a binomial tree to rank 0 and down again."""
    return allreduce_binomial(p)


def scan_linear(p: int, root: int = 0) -> Schedule:
    """Rank r waits for r − 1 and passes the sum on to r + 1."""
    return _rounds([[Transfer(r, r + 1, (0,), True)] for r in range(p - 1)])


def scan_recursive_doubling(p: int, root: int = 0) -> Schedule:
    """Exchange sums of aligned groups with partners r xor 2^k where they exist."""
    rounds = []
    mask = 1
    while mask < p:
        rounds.append([Transfer(r, r ^ mask, (0,), True) for r in range(p) if r ^ mask < p])
        mask *= 2
    return _rounds(rounds)


#: operation → name of the algorithm in the configuration → schedule(ranks, root)
ALGORITHMS: dict[str, dict[str, Algorithm]] = {
    "bcast": {
        "binomial": bcast_binomial, "linear": bcast_linear, "ring": bcast_ring,
        "scatter_ring_allgather": bcast_scatter_ring_allgather,
        "scatter_doubling_allgather": bcast_scatter_doubling_allgather, "knomial_4": bcast_knomial_4,
        "binary": bcast_binary, "split_binary": bcast_split_binary, "binomial_doubling": bcast_binomial_doubling,
        "linear_by_rank": bcast_linear_by_rank,
    },
    "reduce": {
        "binomial": reduce_binomial, "linear": reduce_linear, "ring": reduce_ring, "binary": reduce_binary,
        "in_order_binary": reduce_in_order_binary, "rabenseifner": reduce_rabenseifner,
        "rabenseifner_halves": reduce_rabenseifner_halves,
    },
    "allreduce": {
        "recursive_doubling": allreduce_recursive_doubling, "ring": allreduce_ring,
        "halving_doubling": allreduce_halving_doubling, "binomial": allreduce_binomial,
        "rabenseifner": allreduce_rabenseifner, "rabenseifner_halves": allreduce_rabenseifner_halves,
        "linear": allreduce_linear,
    },
    "alltoall": {
        "pairwise": alltoall_pairwise, "bruck": alltoall_bruck, "ring": alltoall_ring, "linear": alltoall_linear,
        "scattered": alltoall_scattered, "linear_backward": alltoall_linear_backward,
        "linear_by_rank": alltoall_linear_by_rank,
    },
    "allgather": {
        "ring": allgather_ring, "recursive_doubling": allgather_recursive_doubling, "bruck": allgather_bruck,
        "neighbour": allgather_neighbour,
    },
    "gather": {
        "binomial": gather_binomial, "linear": gather_linear, "linear_by_rank": gather_linear_by_rank,
        "linear_sync": gather_linear_sync,
    },
    "scatter": {
        "binomial": scatter_binomial, "linear": scatter_linear, "linear_by_rank": scatter_linear_by_rank,
    },
    "reduce_scatter": {
        "pairwise": reduce_scatter_pairwise, "recursive_halving": reduce_scatter_recursive_halving,
        "ring": reduce_scatter_ring, "butterfly": reduce_scatter_butterfly,
    },
    "barrier": {
        "bruck": barrier_bruck, "recursive_doubling": barrier_recursive_doubling,
        "recursive_doubling_upper": barrier_recursive_doubling_upper, "binomial": barrier_binomial,
        "linear": barrier_linear,
    },
    "scan": {"linear": scan_linear, "recursive_doubling": scan_recursive_doubling},
}


@lru_cache(maxsize=256)
def schedule(operation: str, algorithm: str, ranks: int, root: int = 0) -> Schedule:
    """Return the rounds of an operation.

    Parameters
    ----------
    operation, algorithm : str
        Keys of `ALGORITHMS`.
    ranks : int
        Number of ranks, at least 1 (any number, not only powers of two).
    root : int
        Root rank of bcast, reduce, gather and scatter.

    Raises
    ------
    ValueError
        Unknown name, or root outside the ranks.
    """
    if operation not in ALGORITHMS:
        raise ValueError(f"operation must be one of {', '.join(ALGORITHMS)}, not {operation!r}")
    if algorithm not in ALGORITHMS[operation]:
        known = ", ".join(ALGORITHMS[operation])
        raise ValueError(f"algorithm of {operation} must be one of {known}, not {algorithm!r}")
    if not 0 <= root < ranks:
        raise ValueError(f"root must be below ranks={ranks}, not {root}")
    return ALGORITHMS[operation][algorithm](ranks, root)

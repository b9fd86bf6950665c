"""NPB IS, integer sort: buckets of keys change hands in an all-to-all of unequal blocks."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hopforge.model.apps.calls import DOUBLE, INT, Calls
from hopforge.model.apps.npb_random import SEED, random_blocks

#: class → log₂ of keys, of the largest key, of buckets
SIZES = {
    "S": (16, 11, 9), "W": (20, 16, 10), "A": (23, 19, 10), "B": (25, 21, 10), "C": (27, 23, 10), "D": (31, 27, 10),
}
ITERATIONS, TEST_KEYS = 10, 5
#: operations for a key in an iteration: 0.7812e9 for class A, 2²³ keys, 10 iterations ("NAS Parallel
#: Benchmark Results", standard operation counts)
OPERATIONS_PER_KEY = 0.7812e9 / (10 * 2**23)
MOST_RANKS = {"S": 128}  # others 1024


def legal(problem: str, ranks: int) -> bool:
    """Tell whether the benchmark runs on so many ranks."""
    least = 4 if problem == "D" else 1
    return least <= ranks <= MOST_RANKS.get(problem, 1024) and ranks & (ranks - 1) == 0


@lru_cache(maxsize=2)
def _buckets(problem: str, ranks: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return int64[rank, bucket], how many of its keys a rank has in each bucket, and the first keys of rank 0."""
    keys_log, largest_log, buckets_log = SIZES[problem]
    buckets, own = 1 << buckets_log, (1 << keys_log) // ranks
    count = np.zeros(ranks * buckets, np.int64)
    first: list[NDArray[np.int64]] = []
    done = 0
    for block in random_blocks(SEED, 4 << keys_log):  # a key is the sum of four numbers, scaled
        total = block.reshape(-1, 4).sum(axis=1)
        key = (total >> np.uint64(48 - largest_log)).astype(np.int64)
        if done == 0:
            first.append(key[: 2 * ITERATIONS + 1].copy())
        rank = (done + np.arange(len(key))) // own
        low, high = int(rank[0]), int(rank[-1]) + 1
        code = (rank - low) * buckets + (key >> (largest_log - buckets_log))
        count[low * buckets:high * buckets] += np.bincount(code, minlength=(high - low) * buckets)
        done += len(key)
    return count.reshape(ranks, buckets), first[0]


@lru_cache(maxsize=2)
def redistributions(problem: str, ranks: int) -> NDArray[np.int64]:
    """Return int64[call, source, destination]: keys that ranks send each other in the 11 calls of the ranking.

    The keys of consecutive buckets go to rank j until all ranks together have at least (j + 1)·keys/ranks of them. In
    iteration i rank 0 first writes i into its key i and (largest key + 1) − i into its key i + 10.
    """
    keys_log, largest_log, buckets_log = SIZES[problem]
    count, keys = _buckets(problem, ranks)
    count, keys = count.copy(), keys.copy()
    own, shift = (1 << keys_log) // ranks, largest_log - buckets_log
    calls = np.zeros((ITERATIONS + 1, ranks, ranks), np.int64)
    for call, iteration in enumerate([1, *range(1, ITERATIONS + 1)]):
        for index, key in ((iteration, iteration), (iteration + ITERATIONS, (1 << largest_log) - iteration)):
            count[0, keys[index] >> shift] -= 1
            count[0, key >> shift] += 1
            keys[index] = key
        total = np.cumsum(count.sum(axis=0))
        last, rank = [], 0
        for bucket, sofar in enumerate(total.tolist()):
            if sofar >= (rank + 1) * own:
                last.append(bucket)
                rank += 1
        edges = np.array([0, *(bucket + 1 for bucket in last)])
        for rank in range(len(last)):
            calls[call, :, rank] = count[:, edges[rank]:edges[rank + 1]].sum(axis=1)
    return calls


def write(calls: Calls, problem: str, ranks: int) -> None:
    """Append the calls of one rank."""
    keys_log, _, buckets_log = SIZES[problem]
    moves, me = redistributions(problem, ranks), calls.rank
    flops = OPERATIONS_PER_KEY * (1 << keys_log) / ranks
    calls.bcast(1, INT)
    for call in range(calls.iterations(ITERATIONS) + 1):
        calls.compute(flops / 2)  # counting
        calls.allreduce((1 << buckets_log) + TEST_KEYS, INT)
        calls.alltoall(1, INT)
        calls.alltoallv(tuple(moves[call, me].tolist()), tuple(moves[call, :, me].tolist()), INT)
        calls.compute(flops / 2)  # ranking
    calls.reduce(1, DOUBLE)
    if me > 0:
        calls.irecv(me - 1, 1000, 1, INT)
    if me < ranks - 1:
        calls.send(me + 1, 1000, 1, INT)
    if me > 0:
        calls.wait_received(me - 1, 1000)
    calls.reduce(1, INT)

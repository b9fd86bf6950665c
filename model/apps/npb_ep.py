"""NPB EP, embarrassingly parallel: random pairs are counted, and four sums are all that is exchanged."""

from hopforge.model.apps.calls import LOGICAL, Calls

#: class → log₂ of the number of pairs
SIZES = {"S": 24, "W": 25, "A": 28, "B": 30, "C": 32, "D": 36, "E": 40}
BATCH_LOG, RINGS = 16, 10
#: operations for a pair: 26.68e9 for class A ("NAS Parallel Benchmark Results", standard operation counts: 2²⁸ pairs)
OPERATIONS_PER_PAIR = 26.68e9 / 2**28


def legal(problem: str, ranks: int) -> bool:
    """Tell whether the benchmark runs on so many ranks: a batch of 2¹⁶ pairs for each."""
    return 1 <= ranks <= 1 << SIZES[problem] - BATCH_LOG


def write(calls: Calls, problem: str, ranks: int) -> None:
    """Append the calls of one rank."""
    batches = 1 << SIZES[problem] - BATCH_LOG
    own = batches // ranks + (calls.rank < batches % ranks)
    calls.bcast(1, LOGICAL)
    calls.barrier()
    calls.compute(OPERATIONS_PER_PAIR * (own << BATCH_LOG))
    calls.allreduce(1)
    calls.allreduce(1)
    calls.allreduce(RINGS)
    calls.allreduce(1)

"""Every algorithm is run on symbolic data: who holds what at the end follows from MPI's definition."""

import math

import pytest

from hopforge.model.workload.collective_rounds import NOTHING
from hopforge.model.workload.collectives import ALGORITHMS, schedule

RANKS = range(1, 18)


def run(operation, algorithm, p, root, held):
    """Move sets of contributions; held[rank][block] is a set of contributions, a missing block is not held."""
    for part in schedule(operation, algorithm, p, root):
        before = [dict(blocks) for blocks in held]
        for src, dst, blocks, combine, _ in part:
            assert src != dst
            for block in blocks:
                if block == NOTHING:
                    continue
                assert block in before[src], f"rank {src} sends block {block} before it has it"
                if combine:
                    overlap = held[dst].get(block, frozenset()) & before[src][block]
                    assert not overlap or operation == "barrier", "a contribution is added twice"
                    held[dst][block] = held[dst].get(block, frozenset()) | before[src][block]
                else:
                    held[dst][block] = before[src][block]
    return held


def cases(operation):
    found = [(name, p) for name in ALGORITHMS[operation] for p in RANKS]
    assert found
    return found


def pieces_of(operation, name, p):
    """How many pieces an algorithm cuts the vector in, by its description."""
    core = 1 << (p.bit_length() - 1)
    if name in ("rabenseifner", "rabenseifner_halves"):
        return core
    if name == "split_binary":
        return 2
    around = name in ("ring", "halving_doubling") and operation == "allreduce"
    return p if around or name.startswith("scatter_") else 1


def roots(p):
    return sorted({0, 1 % p, p // 2, p - 1})


@pytest.mark.parametrize(("name", "p"), cases("bcast"))
def test_bcast(name, p):
    for root in roots(p):
        whole = dict.fromkeys(range(pieces_of("bcast", name, p)), frozenset([root]))
        held = run("bcast", name, p, root, [dict(whole) if r == root else {} for r in range(p)])
        assert held == [whole] * p
        if len(whole) == 1:
            assert sum(map(len, schedule("bcast", name, p, root))) == p - 1


@pytest.mark.parametrize(("name", "p"), cases("reduce"))
def test_reduce(name, p):
    for root in roots(p):
        pieces = pieces_of("reduce", name, p)
        held = run("reduce", name, p, root, [dict.fromkeys(range(pieces), frozenset([r])) for r in range(p)])
        assert held[root] == dict.fromkeys(range(pieces), frozenset(range(p)))
        if pieces == 1 and name != "in_order_binary":
            assert sum(map(len, schedule("reduce", name, p, root))) == p - 1


@pytest.mark.parametrize(("name", "p"), cases("allreduce"))
def test_allreduce(name, p):
    pieces = pieces_of("allreduce", name, p)
    held = run("allreduce", name, p, 0, [dict.fromkeys(range(pieces), frozenset([r])) for r in range(p)])
    assert held == [dict.fromkeys(range(pieces), frozenset(range(p)))] * p


@pytest.mark.parametrize(("name", "p"), cases("alltoall"))
def test_alltoall(name, p):
    start = [{s * p + d: frozenset([s * p + d]) for d in range(p)} for s in range(p)]
    held = run("alltoall", name, p, 0, start)
    for d in range(p):
        for s in range(p):
            assert held[d][s * p + d] == frozenset([s * p + d])
    if name != "bruck":  # every block travels exactly once
        sent = [block for part in schedule("alltoall", name, p) for t in part for block in t.blocks]
        assert sorted(sent) == [s * p + d for s in range(p) for d in range(p) if s != d]
    else:
        assert len(schedule("alltoall", name, p)) == math.ceil(math.log2(p))


@pytest.mark.parametrize(("name", "p"), cases("allgather"))
def test_allgather(name, p):
    held = run("allgather", name, p, 0, [{r: frozenset([r])} for r in range(p)])
    assert held == [{b: frozenset([b]) for b in range(p)}] * p
    received = [0] * p
    for part in schedule("allgather", name, p):
        for t in part:
            received[t.dst] += len(t.blocks)
    if name != "recursive_doubling":
        assert received == [p - 1] * p  # nothing arrives twice


@pytest.mark.parametrize(("name", "p"), cases("gather"))
def test_gather(name, p):
    for root in roots(p):
        held = run("gather", name, p, root, [{r: frozenset([r])} for r in range(p)])
        assert held[root] == {b: frozenset([b]) for b in range(p)}


@pytest.mark.parametrize(("name", "p"), cases("scatter"))
def test_scatter(name, p):
    for root in roots(p):
        start = [{b: frozenset([b]) for b in range(p)} if r == root else {} for r in range(p)]
        held = run("scatter", name, p, root, start)
        assert all(held[r][r] == frozenset([r]) for r in range(p))


@pytest.mark.parametrize(("name", "p"), cases("reduce_scatter"))
def test_reduce_scatter(name, p):
    held = run("reduce_scatter", name, p, 0, [dict.fromkeys(range(p), frozenset([r])) for r in range(p)])
    assert all(held[r][r] == frozenset(range(p)) for r in range(p))


@pytest.mark.parametrize(("name", "p"), cases("barrier"))
def test_barrier(name, p):
    held = run("barrier", name, p, 0, [{0: frozenset([r])} for r in range(p)])
    assert held == [{0: frozenset(range(p))}] * p  # nobody leaves before everybody came


@pytest.mark.parametrize(("name", "p"), cases("scan"))
def test_scan(name, p):
    # partial: what a rank sends on; result: what came from ranks below
    partial = [frozenset([r]) for r in range(p)]
    result = list(partial)
    for part in schedule("scan", name, p):
        before = list(partial)
        for src, dst, blocks, combine, _ in part:
            assert blocks == (0,)
            assert combine
            assert not partial[dst] & before[src]
            partial[dst] |= before[src]
            if src < dst:
                assert not result[dst] & before[src]
                result[dst] |= before[src]
    assert result == [frozenset(range(r + 1)) for r in range(p)]


@pytest.mark.parametrize("operation", ALGORITHMS)
def test_one_message_per_pair_and_round_and_no_deadlock(operation):
    # every algorithm but those that send to all (or to all children) at once sends at most one per rank and round
    at_once = ("linear", "linear_by_rank", "linear_backward", "scattered", "knomial_4", "binary", "split_binary",
               "binomial_doubling")
    for name in ALGORITHMS[operation]:
        for p in RANKS:
            for part in schedule(operation, name, p):
                pairs = [(t.src, t.dst) for t in part]
                assert len(set(pairs)) == len(pairs)
                if name not in at_once:
                    sources = [t.src for t in part]
                    assert len(set(sources)) == len(sources)


def test_bruck_volume_is_that_of_the_bits():
    # p = 8: three rounds, in each of which every rank sends the 4 blocks whose way has the bit
    for part in schedule("alltoall", "bruck", 8):
        assert [len(t.blocks) for t in part] == [4] * 8


def test_errors_name_the_limit():
    with pytest.raises(ValueError, match=r"algorithm of bcast must be one of binomial, linear, ring, .*, not 'tree'"):
        schedule("bcast", "tree", 4)
    with pytest.raises(ValueError, match=r"root must be below ranks=4, not 4"):
        schedule("bcast", "ring", 4, 4)
    with pytest.raises(ValueError, match=r"operation must be one of bcast, .*, not 'gossip'"):
        schedule("gossip", "ring", 4)

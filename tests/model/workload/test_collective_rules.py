"""Rules of MPI libraries: limits as they stand in the sources, and message lists by hand."""

from importlib import resources

import numpy as np
import pytest

from hopforge.model.config import ConfigError, parse_config
from hopforge.model.config.workload import CollectivesConfig
from hopforge.model.workload.collective_choice import choose
from hopforge.model.workload.collective_rules import LIBRARIES, RulesError, read_rules
from hopforge.model.workload.collective_sizes import Amount, halved, rounded_up
from hopforge.model.workload.collectives import schedule
from hopforge.model.workload.compiled_program import compile_program
from hopforge.model.workload.trace import Action, Trace

BYTE, DOUBLE = 6, 0


def sent(call, ranks, count, datatype=BYTE, root=0, counts=None, **collectives):
    """Return (source, destination, bytes) of every message, in the order of the rounds."""
    files = tuple(f"rank {rank}" for rank in range(ranks))
    programs = tuple(
        (Action(call, count=count, recv_count=count, counts=() if counts is None else tuple(counts[rank]),
                recv_counts=tuple(row[rank] for row in counts) if call == "alltoallv" else (),
                datatype=datatype, recv_datatype=datatype, root=root),)
        for rank in range(ranks)
    )  # fmt: skip
    trace = Trace.of("by hand", programs, files, (np.arange(1, dtype=np.int32),) * ranks)
    found = compile_program(trace, CollectivesConfig(**collectives))
    return list(zip(found.source.tolist(), found.destination.tolist(), found.size_bytes.tolist(), strict=True))


def decided(library, call, ranks, size, elements=None):
    """Return the algorithm for `size` bytes: the vector, or each block, in so many elements (default: bytes)."""
    elements = size if elements is None else elements
    blocks = {"alltoall": ranks * ranks, "alltoallv": ranks * ranks}.get(call, ranks)
    many = np.full(blocks, size) if call not in ("bcast", "reduce", "allreduce", "barrier") else np.empty(0, np.int64)
    amount = Amount(elements, size // elements if elements else 1, many)
    return choose(CollectivesConfig(rules=library), call, ranks, 0, amount).name


# ---- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("call", "ranks", "size", "name"), [
    ("bcast", 7, 1 << 30, "binomial"), ("bcast", 8, 12288, "binomial"),
    ("bcast", 8, 12289, "scatter_doubling_allgather"), ("bcast", 8, 524288, "scatter_doubling_allgather"),
    ("bcast", 8, 524289, "scatter_ring_allgather"), ("bcast", 9, 12288, "binomial"),
    ("bcast", 9, 12289, "scatter_ring_allgather"),
    ("reduce", 5, 2048, "binomial"), ("reduce", 5, 2049, "rabenseifner"),
    ("allreduce", 5, 8, "recursive_doubling"), ("allreduce", 5, 9, "rabenseifner"),
    ("alltoall", 7, 256, "scattered"), ("alltoall", 7, 32768, "scattered"), ("alltoall", 7, 32769, "pairwise"),
    ("alltoall", 8, 256, "bruck"), ("alltoall", 8, 257, "scattered"), ("alltoall", 8, 32768, "scattered"),
    ("alltoall", 8, 32769, "pairwise"), ("alltoallv", 8, 1, "scattered"),
    # totals: 8 · 65535 = 524280, 8 · 65536 = 524288; 5 · 16383 = 81915, 5 · 16384 = 81920
    ("allgather", 8, 65535, "recursive_doubling"), ("allgather", 8, 65536, "ring"),
    ("allgather", 5, 16383, "bruck"), ("allgather", 5, 16384, "ring"), ("allgatherv", 5, 16384, "ring"),
    ("reducescatter", 8, 65535, "recursive_halving"), ("reducescatter", 8, 65536, "pairwise"),
    ("gather", 9, 1 << 20, "binomial"), ("scatter", 9, 1, "binomial"), ("gatherv", 9, 1, "linear_by_rank"),
    ("barrier", 9, 0, "bruck"),
])  # fmt: skip
def test_limits_of_mpich(call, ranks, size, name):
    assert decided("mpich", call, ranks, size) == name


def test_mpich_cuts_no_vector_of_fewer_elements_than_the_power_of_two_below_the_ranks():
    assert decided("mpich", "allreduce", 7, 24, elements=3) == "recursive_doubling"
    assert decided("mpich", "allreduce", 7, 32, elements=4) == "rabenseifner"
    assert decided("mpich", "reduce", 7, 3000, elements=3) == "binomial"
    assert decided("mpich", "reduce", 7, 3000, elements=4) == "rabenseifner"


@pytest.mark.parametrize(("call", "ranks", "size", "name"), [
    ("bcast", 3, 31, "ring"), ("bcast", 3, 32, "binary"), ("bcast", 3, 1023, "knomial_4"),
    ("bcast", 3, 1024, "linear_by_rank"), ("bcast", 3, 32768, "binary"), ("bcast", 3, 131072, "ring"),
    ("bcast", 3, 262144, "linear_by_rank"), ("bcast", 3, 524288, "binomial_doubling"), ("bcast", 3, 1048576, "binary"),
    ("bcast", 4, 63, "binary"), ("bcast", 4, 1048575, "linear_by_rank"), ("bcast", 4, 1048576, "ring"),
    ("bcast", 31, 1048575, "binomial_doubling"), ("bcast", 31, 1048576, "scatter_doubling_allgather"),
    ("bcast", 32, 1048576, "knomial_4"), ("bcast", 300, 16384, "split_binary"), ("bcast", 300, 32768, "knomial_4"),
    ("reduce", 3, 7, "rabenseifner_halves"), ("reduce", 3, 8, "binary"), ("reduce", 3, 16, "ring"),
    ("reduce", 3, 32, "linear"), ("reduce", 300, 8191, "binomial"), ("reduce", 300, 8192, "in_order_binary"),
    ("reduce", 300, 16384, "binomial"),
    ("allreduce", 3, 7, "ring"), ("allreduce", 3, 8, "recursive_doubling"), ("allreduce", 3, 262143, "ring"),
    ("allreduce", 3, 262144, "rabenseifner_halves"), ("allreduce", 8, 8191, "recursive_doubling"),
    ("allreduce", 8, 8192, "rabenseifner_halves"), ("allreduce", 16, 63, "ring"),
    ("allreduce", 300, 4095, "reduce binomial + bcast knomial_4"), ("allreduce", 300, 4096, "rabenseifner_halves"),
    ("alltoall", 2, 1, "ring"), ("alltoall", 2, 2, "linear_backward"), ("alltoall", 3, 524287, "linear_backward"),
    ("alltoall", 3, 524288, "ring"), ("alltoall", 3, 1048576, "linear_backward"),
    ("alltoall", 16, 3, "linear_backward"),
    ("alltoall", 16, 4, "bruck"), ("alltoall", 16, 512, "linear_backward"), ("alltoall", 64, 262144, "ring"),
    ("alltoallv", 3, 1, "ring"), ("alltoallv", 4, 1, "linear_by_rank"), ("alltoallv", 64, 1, "ring"),
    ("allgather", 2, 1, "ring"), ("allgather", 8, 1 << 20, "recursive_doubling"), ("allgather", 9, 1 << 20, "bruck"),
    ("allgather", 32, 1023, "recursive_doubling"), ("allgather", 32, 1024, "neighbour"),
    ("allgather", 32, 65536, "ring"),
    ("allgatherv", 7, 255, "gather linear_by_rank + bcast binary"), ("allgatherv", 7, 256, "neighbour"),
    ("allgatherv", 7, 4096, "ring"), ("allgatherv", 7, 16384, "bruck"), ("allgatherv", 7, 262144, "neighbour"),
    ("gather", 3, 1, "linear_sync"), ("gather", 3, 2, "linear"), ("gather", 3, 4, "binomial"),
    ("gather", 3, 131072, "linear_sync"), ("gather", 8, 1 << 20, "binomial"),
    ("scatter", 3, 1, "linear_by_rank"), ("scatter", 8, 16383, "binomial"), ("scatter", 8, 16384, "linear_by_rank"),
    # totals: 4 · 1 = 4 and 4 · 2 = 8; 4 · 65536 = 262144; 3 · 21846 = 65538
    ("reducescatter", 4, 1, "reduce binary + scatter linear_by_rank"), ("reducescatter", 4, 2, "recursive_halving"),
    ("reducescatter", 4, 65535, "recursive_halving"), ("reducescatter", 4, 65536, "ring"),
    ("reducescatter", 3, 21845, "ring"), ("reducescatter", 3, 21846, "butterfly"),
    ("barrier", 3, 0, "recursive_doubling_upper"), ("barrier", 4, 0, "linear"), ("barrier", 64, 0, "bruck"),
    ("barrier", 256, 0, "binomial"), ("barrier", 512, 0, "bruck"), ("barrier", 1024, 0, "binomial"),
    ("barrier", 4096, 0, "bruck"),
])  # fmt: skip
def test_limits_of_open_mpi(call, ranks, size, name):
    assert decided("open_mpi", call, ranks, size) == name


@pytest.mark.parametrize(("call", "ranks", "size", "elements", "name"), [
    ("bcast", 20, 1 << 20, 16, "linear_by_rank"), ("bcast", 20, 1 << 20, 32, "scatter_doubling_allgather"),
    ("bcast", 300, 16384, 1, "ring"), ("bcast", 300, 16384, 2, "split_binary"),
    ("allreduce", 3, 4096, 2, "recursive_doubling"), ("allreduce", 3, 4098, 3, "ring"),
    ("allreduce", 9, 8192, 4, "linear"), ("allreduce", 9, 8192, 8, "rabenseifner_halves"),
    ("reduce", 3, 4, 1, "linear"), ("reduce", 3, 4, 2, "rabenseifner_halves"),
])  # fmt: skip
def test_open_mpi_takes_another_algorithm_for_few_elements(call, ranks, size, elements, name):
    assert decided("open_mpi", call, ranks, size, elements) == name


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_algorithm_of_a_library_exists_for_every_number_of_ranks(library):
    rules = read_rules(library)
    for ranks in [*range(1, 20), 33, 64]:
        for call in rules.tables:
            for size in (0, 1, 8, 100, 5000, 20000, 100_000, 3_000_000):
                assert decided(library, call.replace("_", ""), ranks, size)


# ---- messages --------------------------------------------------------------------------------------------------------


def test_scatter_ring_allgather_of_three():
    # pieces of 3, 3 and 1 bytes belong to ranks 1, 2 and 0
    assert sent("bcast", 3, 7, root=1, bcast="scatter_ring_allgather") == [
        (1, 0, 1), (1, 2, 3),
        (1, 2, 3), (2, 0, 3), (0, 1, 1),
        (1, 2, 1), (2, 0, 3), (0, 1, 3),
    ]  # fmt: skip


def test_scatter_doubling_allgather_of_four_leaves_out_empty_pieces_while_it_scatters():
    # pieces of 2, 2, 1 and 0 bytes
    assert sent("bcast", 4, 5, bcast="scatter_doubling_allgather") == [
        (0, 2, 1), (0, 1, 2),
        (0, 1, 2), (1, 0, 2), (2, 3, 1), (3, 2, 0),
        (0, 2, 4), (1, 3, 4), (2, 0, 1), (3, 1, 1),
    ]  # fmt: skip


def test_scatter_doubling_allgather_of_three():
    # a byte each; 0 meets 2, and hands its piece on to 1
    assert sent("bcast", 3, 3, bcast="scatter_doubling_allgather") == [
        (0, 2, 1), (0, 1, 1), (0, 1, 1), (1, 0, 1), (0, 2, 2), (2, 0, 1), (0, 1, 1),
    ]  # fmt: skip


def test_mpich_cuts_a_broadcast_at_any_byte_and_open_mpi_at_elements():
    # 12 296 bytes on 9 ranks: pieces of ⌈12296/9⌉ = 1367, the last 1360
    assert sent("bcast", 9, 1537, DOUBLE, rules="mpich")[-1] == (8, 0, 1367)
    assert (0, 8, 1360) in sent("bcast", 9, 1537, DOUBLE, rules="mpich")
    # 1537 elements: pieces of 171 of them, the last 169
    assert (0, 8, 1352) in sent("bcast", 9, 1537, DOUBLE, bcast="scatter_ring_allgather")


def test_rabenseifner_of_three():
    # 5 doubles: pieces of 24 and 16 bytes; rank 0 hands in to 1
    assert sent("allreduce", 3, 5, DOUBLE, allreduce="rabenseifner") == [
        (0, 1, 40), (1, 2, 16), (2, 1, 24), (1, 2, 24), (2, 1, 16), (1, 0, 40),
    ]  # fmt: skip


def test_rabenseifner_of_three_by_halves():
    # 5 doubles: halves of 16 and 24 bytes; ranks 0 and 1 reduce one each, 0 goes on
    assert sent("allreduce", 3, 5, DOUBLE, allreduce="rabenseifner_halves") == [
        (0, 1, 24), (1, 0, 16), (1, 0, 24), (0, 2, 24), (2, 0, 16), (0, 2, 16), (2, 0, 24), (0, 1, 40),
    ]  # fmt: skip


def test_rabenseifner_of_eight_moves_twice_seven_eighths_of_the_vector():
    found = sent("allreduce", 8, 800, allreduce="rabenseifner")
    assert [size for _, _, size in found[::8]] == [400, 200, 100, 100, 200, 400]
    assert [(a, b) for a, b, _ in found[:24:8]] == [(0, 1), (0, 2), (0, 4)]
    assert sum(size for a, _, size in found if a == 0) == 2 * 700


def test_reduce_of_rabenseifner_to_a_folded_root():
    # root 1 hands its part to 0, whose piece it takes over: ranks 0 and 2 are the core
    assert sent("reduce", 3, 4, root=1, reduce="rabenseifner") == [
        (1, 0, 4), (0, 2, 2), (2, 0, 2), (0, 1, 2), (2, 1, 2),
    ]  # fmt: skip


def test_butterfly_of_six():
    # the example of the source: one element each; 0 hands in to 1 and 2 to 3; pieces {0, 1}, {2, 3}, {4}, {5}
    found = [(a, b, blocks) for part in schedule("reduce_scatter", "butterfly", 6) for a, b, blocks, *_ in part]
    whole = (0, 1, 2, 3, 4, 5)
    assert found == [
        (0, 1, whole), (2, 3, whole),
        (1, 3, (4, 5)), (3, 1, (0, 1, 2, 3)), (4, 5, (4, 5)), (5, 4, (0, 1, 2, 3)),
        (1, 4, (2, 3)), (3, 5, (5,)), (4, 1, (0, 1)), (5, 3, (4,)),
        (1, 0, (0,)), (4, 2, (2,)),
        (3, 4, (4,)), (4, 3, (3,)),
    ]  # fmt: skip


def tree(name, ranks, operation="bcast"):
    pairs = [(t.src, t.dst) for part in schedule(operation, name, ranks) for t in part]
    return {a: [d for s, d in pairs if s == a] for a, _ in pairs}


def test_trees():
    assert tree("knomial_4", 10) == {0: [4, 8, 1, 2, 3], 4: [5, 6, 7], 8: [9]}
    assert tree("binomial_doubling", 8) == {0: [1, 2, 4], 1: [3, 5], 2: [6], 3: [7]}
    assert tree("binary", 12) == {0: [1, 2], 1: [3, 5], 2: [4, 6], 3: [7, 11], 4: [8], 5: [9], 6: [10]}
    up = {(t.src, t.dst) for part in schedule("reduce", "in_order_binary", 9, 8) for t in part}
    assert up == {(7, 8), (3, 8), (6, 7), (5, 7), (2, 3), (1, 3), (4, 5), (0, 1)}
    assert [(t.src, t.dst) for t in schedule("reduce", "in_order_binary", 3, 0)[-1]] == [(2, 0)]


def test_halves_down_the_binary_tree():
    # 5 bytes: odd ranks get 3 of them, even ones 2; then 1 and 2 exchange, and 3 has no partner
    assert sent("bcast", 4, 5, bcast="split_binary") == [
        (0, 1, 3), (0, 2, 2), (1, 3, 3), (0, 3, 2), (1, 2, 3), (2, 1, 2),
    ]  # fmt: skip


def test_neighbour_exchange_of_six():
    found = schedule("allgather", "neighbour", 6)
    assert [[(t.src, t.dst, t.blocks) for t in part if t.src < 2] for part in found] == [
        [(0, 1, (0,)), (1, 0, (1,))],
        [(0, 5, (0, 1)), (1, 2, (0, 1))],
        [(0, 1, (4, 5)), (1, 0, (2, 3))],
    ]


def test_scattered_takes_32_partners_at_a_time_itself_included():
    found = schedule("alltoall", "scattered", 40)
    assert [len(part) for part in found] == [40 * 31, 40 * 8]
    assert [t.dst for t in found[0] if t.src == 5][:6] == [4, 3, 2, 1, 0, 39]


def test_who_asks_one_after_the_other():
    assert sent("gather", 3, 5, root=1, gather="linear_sync") == [
        (1, 0, 0), (0, 1, 5), (1, 2, 0), (2, 1, 5), (0, 1, 0), (2, 1, 0),
    ]  # fmt: skip


def test_reduce_and_broadcast_of_open_mpi():
    found = sent("allreduce", 128, 10, rules="open_mpi")
    assert len(found) == 2 * 127
    assert {size for _, _, size in found} == {10}
    assert found[-1][0] != 0  # the tree of the broadcast has several levels


def test_gather_and_broadcast_of_open_mpi():
    # 2 bytes a rank, below 256: to rank 0, then the 8 bytes down the binary tree (below 64)
    assert sent("allgatherv", 4, 2, rules="open_mpi", counts=[[2] * 4] * 4) == [
        (1, 0, 2), (2, 0, 2), (3, 0, 2), (0, 1, 8), (0, 2, 8), (1, 3, 8),
    ]  # fmt: skip


def test_reduce_and_scatterv_of_open_mpi():
    assert sent("reducescatter", 4, 4, counts=[[1, 0, 1, 2]] * 4, rules="open_mpi") == [
        (3, 1, 4), (1, 0, 4), (2, 0, 4), (0, 2, 1), (0, 3, 2),
    ]  # fmt: skip


@pytest.mark.parametrize("library", LIBRARIES)
def test_alltoallv_sends_no_empty_messages(library):
    counts = [[0, 3, 0], [1, 0, 0], [0, 2, 5]]
    assert sorted(sent("alltoallv", 3, 0, counts=counts, rules=library)) == [(0, 1, 3), (1, 0, 1), (2, 1, 2)]


def test_a_key_of_its_own_goes_before_the_rules():
    chosen = CollectivesConfig(rules="mpich", bcast="binomial")
    assert chosen.bcast == "binomial"
    assert chosen.allreduce == "by_rules"
    assert chosen != CollectivesConfig(rules="mpich")
    assert choose(chosen, "bcast", 9, 0, Amount(1 << 20, 1)).name == "binomial"
    assert choose(chosen, "allreduce", 9, 0, Amount(1 << 20, 1)).name == "rabenseifner"


def test_cuts():
    assert halved(5, 4).tolist() == [1, 1, 1, 2]
    assert halved(13, 4).tolist() == [3, 3, 3, 4]
    assert rounded_up(5, 4).tolist() == [2, 2, 1, 0]
    assert rounded_up(0, 3).tolist() == [0, 0, 0]


# ---- files -----------------------------------------------------------------------------------------------------------


def shipped(library):
    return (resources.files("hopforge.model") / "data" / "collectives" / f"{library}.yml").read_text(encoding="utf-8")


def test_a_file_of_ones_own(tmp_path):
    file = tmp_path / "rules.yml"
    old, new = "[[9, recursive_doubling]], use: rabenseifner", "[[99, binomial]], use: ring"
    file.write_text(shipped("mpich").replace(old, new))
    config = CollectivesConfig(rules="file", rules_file=file)
    assert choose(config, "allreduce", 5, 0, Amount(98, 1)).name == "binomial"
    assert choose(config, "allreduce", 5, 0, Amount(99, 1)).name == "ring"


@pytest.mark.parametrize(("old", "new", "message"), [
    ("{below: [[9, recursive_doubling]], use: rabenseifner}", "{below: [[9, tree]], use: rabenseifner}",
     r"rules.yml:\d+: allreduce: algorithm must be one of recursive_doubling, .*, reduce_bcast, not 'tree'"),
    ("[[257, bruck], [32769, scattered]]", "[[257, bruck], [257, scattered]]",
     r"rules.yml:\d+: alltoall.rows\[1\].below: limits must rise; 257 stands after 257"),
    ("    - {below: [[2049, binomial]], use: rabenseifner}", "    - {ranks_below: 9, use: binomial}",
     r"rules.yml:\d+: reduce.rows: the last row must be for any number of ranks"),
    ("counts: total", "counts: all",
     r"rules.yml:\d+: allgather.counts: must be 'own', 'total' or 'average', not 'all'"),
    ("exscan:", "exscann:", r"exscan"),
    ("[[2049, binomial]]", "[[0, binomial]]", r"rules.yml:\d+: reduce.rows\[0\].below\[0\].*at least 1, not 0"),
    ("library: MPICH", "library: [", r"rules.yml:\d+: "),
])  # fmt: skip
def test_bad_files(tmp_path, old, new, message):
    file = tmp_path / "rules.yml"
    assert old in shipped("mpich")
    file.write_text(shipped("mpich").replace(old, new, 1))
    with pytest.raises(RulesError, match=message):
        read_rules("file", file)


def test_no_file(tmp_path):
    with pytest.raises(RulesError, match=r"workload.collectives.rules_file: .*nowhere.yml: No such file"):
        read_rules("file", tmp_path / "nowhere.yml")


@pytest.mark.parametrize(("collectives", "message"), [
    ("{rules: openmpi}", r"must be 'named', 'mpich', 'open_mpi' or 'file', not 'openmpi'"),
    ("{rules: file}", r"rules_file: missing; rules=file needs it"),
    ("{rules_file: x.yml}", r"rules_file: is for rules=file only, not rules=named"),
    ("{bcast: by_rules}", r"bcast: by_rules needs rules=mpich, open_mpi or file, not named"),
])  # fmt: skip
def test_bad_keys(collectives, message):
    with pytest.raises(ConfigError, match=message):
        parse_config(
            "name: x\ntopology: {kind: mesh, radices: [4]}\n"
            f"workload: {{kind: collective, operation: bcast, collectives: {collectives}}}\n"
        )

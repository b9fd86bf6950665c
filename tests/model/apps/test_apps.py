"""Generated programs: NPB against recorded runs, conservation for legal numbers of ranks, and counts by hand."""

import hashlib
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from hopforge.model.apps import npb_cg, npb_dt, npb_is, npb_lu, npb_mg
from hopforge.model.apps.calls import AppError
from hopforge.model.apps.dpsnn import dpsnn_trace, spikes_between
from hopforge.model.apps.graph_search import frontier_messages, graph_search_trace, kronecker_edges
from hopforge.model.apps.himeno import himeno_trace
from hopforge.model.apps.matrix_product import matrix_product_trace
from hopforge.model.apps.npb import BENCHMARKS, npb_trace
from hopforge.model.apps.npb_random import MULTIPLIER, SEED, advanced, random_blocks
from hopforge.model.apps.training import data_parallel_trace, expert_parallel_trace, pipeline_trace
from hopforge.model.config import parse_config
from hopforge.model.config.workload import CollectivesConfig
from hopforge.model.topology import build
from hopforge.model.workload.compiled_program import compile_program
from hopforge.model.workload.read_trace import read_trace
from hopforge.model.workload.trace import Trace
from hopforge.model.workload.trace_line import format_action
from hopforge.sim.traffic.placed import program_trace

#: digests of the calls (compute left out) of runs recorded with SimGrid, made from the recordings
RECORDINGS = json.loads((Path(__file__).parents[2] / "data" / "npb_recordings.json").read_text())


def without_compute(trace: Trace) -> list[list[str]]:
    text = {}
    for program in trace.actions:
        for action in program:
            if id(action) not in text:
                text[id(action)] = format_action(action)
    return [[text[id(action)] for action in program if action.name != "compute"] for program in trace.actions]


def flops(trace: Trace) -> float:
    return sum(action.amount for program in trace.actions for action in program if action.name == "compute")


def check_conservation(trace: Trace) -> None:
    """Every send has its receive, with the same bytes or room for more."""
    sends: dict[tuple[int, int, int], list[int]] = {}
    receives: dict[tuple[int, int, int], list[int]] = {}
    for rank, program in enumerate(trace.actions):
        for action in program:
            if action.name in ("send", "isend", "sendRecv"):
                sends.setdefault((rank, action.peer, action.tag), []).append(action.count)
            if action.name in ("recv", "irecv"):
                receives.setdefault((action.peer, rank, action.tag), []).append(action.count)
            if action.name == "sendRecv":
                receives.setdefault((action.source, rank, action.tag), []).append(action.recv_count)
    assert sends.keys() == receives.keys()
    for key, sizes in sends.items():
        assert len(sizes) == len(receives[key]), key
        assert all(sent <= room for sent, room in zip(sizes, receives[key], strict=True)), key


# ---- against recorded runs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["is.A.64", "ft.A.64"])
def test_the_calls_of_shipped_recordings(name):
    benchmark, problem, ranks = name.split(".")
    made, recorded = npb_trace(benchmark, problem, int(ranks)), read_trace(f"shipped:{name}")
    assert made.name == name
    assert without_compute(made) == without_compute(recorded)


@pytest.mark.parametrize("name", list(RECORDINGS))
def test_the_calls_of_all_recordings(name):
    benchmark, *graph, problem, ranks = name.split(".")
    programs = without_compute(npb_trace(benchmark, problem, int(ranks), *graph))
    known = RECORDINGS[name]
    assert (len(programs), sum(map(len, programs))) == (known["ranks"], known["calls"])
    digest = hashlib.sha256()
    for rank, program in enumerate(programs):
        digest.update("".join(f"{rank} {line}\n" for line in program).encode())
    assert digest.hexdigest() == known["sha256"]


def test_messages_of_transposes_within_rows_and_columns():
    """FT class W on 64 ranks, more than planes: whom each rank sends to, in order, in the collectives of a real run.

    The digest is of lines "rank destination" of all point-to-point messages within MPI_Alltoall, recorded with
    SimGrid (tracing/smpi/internals, smpi/alltoall:pair); the calls are of 256 and 4096 elements of 16 bytes.
    """
    made = npb_trace("ft", "W", 64)
    sent = [[a for a in program if a.name == "sendRecv"] for program in made.actions]
    digest = hashlib.sha256("".join(f"{rank} {a.peer}\n" for rank, own in enumerate(sent) for a in own).encode())
    assert digest.hexdigest() == "1971c16b2f73bd7e00a8b3c3b2f1edf79754fd3c271f8b8b1283ac6bb1bde5a2"
    assert all((a.count, a.recv_count, a.datatype) in ((256, 256, 43), (4096, 4096, 43)) for own in sent for a in own)
    columns = [abs(a.peer - rank) >= 2 for rank, own in enumerate(sent) for a in own]  # 32 × 2 ranks
    assert columns == [a.count == 256 for own in sent for a in own]


# ---- NPB for other numbers of ranks --------------------------------------------------------------------------------

SMALL = [
    (benchmark, ranks)
    for benchmark, rules in BENCHMARKS.items()
    for ranks in ([1, 3, 100] if benchmark == "ep" else range(1, 33))
    if rules.legal("S", ranks)
]


@pytest.mark.parametrize(("benchmark", "ranks"), SMALL)
def test_conservation(benchmark, ranks):
    trace = npb_trace(benchmark, "S", ranks)
    assert trace.ranks == ranks
    check_conservation(trace)
    for program in trace.actions:
        assert (program[0].name, program[-1].name) == ("init", "finalize")


@pytest.mark.parametrize(
    ("benchmark", "ranks"), [("cg", 8), ("mg", 16), ("ft", 128), ("is", 8), ("lu", 6), ("bt", 4), ("sp", 9)]
)
def test_messages_match_and_nobody_waits_for_ever(benchmark, ranks):
    program = compile_program(npb_trace(benchmark, "S", ranks), CollectivesConfig())
    assert program.messages > 0  # compile_program refuses a receive that nobody sends


@pytest.mark.parametrize("graph", npb_dt.GRAPHS)
@pytest.mark.parametrize("problem", ["S", "W", "A"])
def test_data_traffic(problem, graph):
    nodes, arcs = npb_dt.graph_nodes(problem, graph)
    trace = npb_trace("dt", problem, len(nodes) + 2, graph)
    check_conservation(trace)
    data = sum(a.count > 1 for program in trace.actions for a in program if a.name == "send")
    assert data == arcs
    assert [a.name for a in trace.actions[-1]] == ["init", "finalize"]


def test_nodes_of_the_data_traffic_graphs():
    """NPB's README.DT: BH and WH have 5, 11, 21, 43, 85 nodes, SH 12, 32, 80, 192, 448 in classes S, W, A, B, C."""
    for graph, counts in (("BH", [5, 11, 21, 43, 85]), ("WH", [5, 11, 21, 43, 85]), ("SH", [12, 32, 80, 192, 448])):
        assert [len(npb_dt.graph_nodes(problem, graph)[0]) for problem in "SWABC"] == counts


def test_lengths_of_the_data_traffic():
    """What GetFeatureNum and ipowMod of dt.c return for nodes 0 to 5, compiled by gcc (their products overflow)."""
    for problem, deviation, expected in (
        ("S", 128, [194, 221, 160, 128, 181, 0]), ("A", 512, [450, 733, 928, 640, 693, 0])
    ):
        sources = [node for node in npb_dt.graph_nodes(problem, "BH")[0] if node.kind == "source"]
        samples = npb_dt.SIZES[problem][0]
        found = [node.length // 4 - samples + deviation for node in sources[:6]]
        assert found == expected[: len(sources)]


def test_published_operation_counts():
    """The Mop formulas of the benchmarks, plus one untimed iteration where they begin with one."""
    n, iterations = 14000, 15
    per = 2 * n * (3 + 11 * 12 + 25 * (5 + 11 * 12) + 3)
    assert flops(npb_trace("cg", "A", 16)) == pytest.approx(per * (iterations + 1))
    per = 3478.8 * 24**3 - 17655.7 * 24**2 + 28023.7 * 24
    assert flops(npb_trace("bt", "W", 9)) == pytest.approx(per * 201)
    per = 881.174 * 12**3 - 4683.91 * 12**2 + 11484.5 * 12 - 19272.4
    assert flops(npb_trace("sp", "S", 4)) == pytest.approx(per * 101)
    # MG: 58 a point and iteration; two residuals of 15 before the first one and before the timed ones
    assert flops(npb_trace("mg", "S", 8)) == pytest.approx(32**3 * (58 * 5 + 15 * 2))
    assert flops(npb_trace("ep", "S", 7)) == pytest.approx(26.68e9 / 2**28 * 2**24)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("is", "S", 12), r"workload.ranks: IS class S runs on powers of two \(1, 2, 4, 8, 16, 32, 64, 128\), not 12"),
        (("bt", "S", 25), r"BT class S runs on squares with cells of at least 3 points \(1, 4, 9, 16\), not 25"),
        (("lu", "S", 5), r"LU class S runs on rows × columns .* \(1, 2, 4, 6, 8, 9, 12, 16\), not 5"),
        (("cg", "A", 48), r"CG class A runs on powers of two \(1, 2, 4, 8, 16, 32, .*\), not 48"),
        (("ep", "S", 257), r"EP class S runs on any number up to one rank .*, not 257"),
        (("ft", "S", 8192), r"FT class S runs on powers of two that divide the box \(.*\), not 8192"),
        (("dt", "S", 4), r"DT class S needs a rank for each of the 5 nodes of graph BH, not 4"),
        (("is", "E", 4), r"workload.class: IS has the classes S, W, A, B, C, D, not E"),
    ],
)
def test_refused(arguments, message):
    with pytest.raises(AppError, match=message):
        npb_trace(*arguments)


@pytest.mark.parametrize(
    ("benchmark", "ranks", "defined"),
    [("bt", 4, 60), ("cg", 4, 15), ("ft", 4, 6), ("is", 4, 10), ("lu", 4, 50), ("mg", 8, 4), ("sp", 4, 100)],
)
def test_fewer_iterations(benchmark, ranks, defined):
    """Each iteration that is left out leaves out the same messages, down to two."""
    def messages(iterations: int | None) -> int:
        return compile_program(npb_trace(benchmark, "S", ranks, iterations=iterations), CollectivesConfig()).messages

    two, three = messages(2), messages(3)
    assert three > two
    assert messages(None) == messages(1000) == two + (defined - 2) * (three - two)


# ---- parts ---------------------------------------------------------------------------------------------------------


def test_random_numbers_one_by_one():
    value, expected = SEED, []
    for _ in range(1000):
        value = value * MULTIPLIER % 2**46
        expected.append(value)
    assert np.concatenate(list(random_blocks(SEED, 1000))).tolist() == expected
    assert advanced(SEED, 1000) == value
    blocks = list(random_blocks(SEED, 70000))
    assert [len(block) for block in blocks] == [65536, 4464]
    assert int(blocks[1][-1]) == advanced(SEED, 70000)


def test_every_key_of_the_sort_is_sent_once_and_ranks_get_increasing_buckets():
    moves = npb_is.redistributions("S", 8)
    assert moves.shape == (11, 8, 8)
    assert (moves.sum(axis=(1, 2)) == 1 << 16).all()
    assert (moves.sum(axis=2) == 1 << 13).all()  # each rank sends all its keys
    # iteration 1 is run twice and changes the same keys to the same values
    assert (moves[0] == moves[1]).all()


def test_halos_of_the_multigrid_meet():
    """At every level the ranks that have points form a torus, and what one gives another takes."""
    for ranks in (2, 16, 64, 128):
        levels = [npb_mg.levels("S", ranks, rank) for rank in range(ranks)]
        for k in range(1, 6):
            live = [rank for rank in range(ranks) if not levels[rank][k].idle]
            for rank in live:
                for axis in range(3):
                    assert levels[levels[rank][k].ahead[axis]][k].behind[axis] == rank
            points = sum(int(np.prod([size - 2 for size in levels[rank][k].size])) for rank in live)
            assert points == 8**k


def test_grids():
    assert [npb_cg.grid(n) for n in (1, 2, 8, 64)] == [(1, 1), (1, 2), (2, 4), (8, 8)]
    assert [npb_lu.grid(n) for n in (1, 2, 3, 6, 32, 7)] == [(1, 1), (2, 1), None, (3, 2), (8, 4), None]


# ---- others --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [1, 2, 6, 7, 16])
def test_matrix_product(ranks):
    trace = matrix_product_trace(100, 16, ranks)
    check_conservation(trace)
    compile_program(trace, CollectivesConfig())
    assert flops(trace) == 2 * 100**3
    received = sum(a.count for program in trace.actions for a in program if a.name == "recv")
    rows = {1: 1, 2: 1, 6: 2, 7: 1, 16: 4}[ranks]
    assert received == 100 * 100 * (ranks // rows - 1) + 100 * 100 * (rows - 1)  # each block to its row, its column


@pytest.mark.parametrize("ranks", [1, 2, 12, 64])
def test_himeno(ranks):
    trace = himeno_trace("XS", 3, ranks)
    check_conservation(trace)
    compile_program(trace, CollectivesConfig())
    assert flops(trace) == 34 * 64 * 32 * 32 * 3


def test_search_reaches_what_a_plain_search_reaches():
    scale, ranks = 8, 5
    levels = frontier_messages(scale, 16, ranks, seed=3)
    edges = kronecker_edges(scale, 16, np.random.default_rng([3, 3]))
    near: dict[int, list[int]] = {}
    kept = [(a, b) for a, b in edges.T.tolist() if a != b]
    for a, b in kept:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    seen, frontier = {kept[0][0]}, [kept[0][0]]
    for count in levels:
        expected = np.zeros((ranks, ranks), int)
        found = set()
        for v in frontier:
            for w in near[v]:
                expected[v * ranks >> scale, w * ranks >> scale] += 1
                found.add(w)
        assert (count == expected).all()
        frontier = sorted(found - seen)
        seen |= found
    assert not frontier
    compile_program(graph_search_trace(scale, 16, ranks, 3), CollectivesConfig())


def test_spikes_are_as_many_as_poisson_says():
    mean, steps, ranks = 2500 * 0.089, 200, 6
    spikes = spikes_between(89.0, 2500, steps, ranks, seed=1)
    apart = spikes[:, ~np.eye(ranks, dtype=bool)]
    assert (spikes[:, range(ranks), range(ranks)] == 0).all()
    error = np.sqrt(mean / apart.size)  # of the mean; a variance of n numbers is uncertain by √(2/n)
    assert abs(apart.mean() - mean) < 4 * error
    assert abs(apart.var() / mean - 1) < 4 * np.sqrt(2 / apart.size)
    assert (spikes_between(89.0, 2500, steps, ranks, seed=1) == spikes).all()
    assert (spikes_between(89.0, 2500, steps, ranks, seed=2) != spikes).any()


def test_spikes_arrive_and_cost_what_the_file_says():
    trace = dpsnn_trace(
        rate_hz=47.0, neurons=2500, steps=3, spike_bytes=12, flops_per_spike=7.0, ranks=5, seed=4
    )  # fmt: skip
    spikes = spikes_between(47.0, 2500, 3, 5, seed=4)
    program = compile_program(trace, CollectivesConfig(alltoall="pairwise"))
    spike = program.size_bytes >= 12  # the barrier's messages are smaller
    sent = np.zeros((5, 5), int)
    np.add.at(sent, (program.source[spike], program.destination[spike]), program.size_bytes[spike])
    assert (sent == 12 * spikes.sum(axis=0)).all()
    assert flops(trace) == 7 * spikes.sum()
    assert [a.name for a in trace.actions[0]] == ["init", *3 * ["alltoallv", "compute", "barrier"], "finalize"]
    silent = dpsnn_trace(rate_hz=47.0, neurons=2500, steps=3, spike_bytes=12, flops_per_spike=0, ranks=5, seed=4)
    assert flops(silent) == 0
    with pytest.raises(AppError, match=r"workload.steps: 64 ranks can take at most 4096 steps, not 4097"):
        dpsnn_trace(rate_hz=1, neurons=1, steps=4097, spike_bytes=1, flops_per_spike=0, ranks=64, seed=1)


def test_training_steps():
    data = data_parallel_trace(parameters=1000, value_bytes=2, buckets=4, tokens=10, steps=3, ranks=5)
    assert Counter(a.name for a in data.actions[0])["allreduce"] == 12
    assert flops(data) == 6 * 1000 * 10 * 3 * 5
    for algorithm in ("ring", "halving_doubling"):
        # each rank sends and gets 2·(p − 1)/p of the vector: both algorithms move as much on a power of two
        whole = data_parallel_trace(parameters=4096, value_bytes=2, buckets=1, tokens=1, steps=1, ranks=8)
        program = compile_program(whole, CollectivesConfig(allreduce=algorithm))
        sent = np.bincount(program.source, program.size_bytes)
        assert sent.tolist() == [2 * 7 * 8192 / 8] * 8
    experts = expert_parallel_trace(
        parameters=1000, value_bytes=2, layers=3, hidden=64, experts_per_token=2, tokens=32, steps=1, ranks=4
    )
    assert [a.count for a in experts.actions[0] if a.name == "alltoall"] == [16 * 64 * 2] * 12
    for microbatches in (1, 4, 9):
        pipeline = pipeline_trace(
            parameters=400, value_bytes=2, hidden=8, microbatches=microbatches, tokens=16, steps=2, ranks=4
        )
        check_conservation(pipeline)
        compile_program(pipeline, CollectivesConfig())
        assert flops(pipeline) == 6 * 400 * 16 * microbatches * 2
    with pytest.raises(AppError, match=r"workload.tokens: 1 tokens for 2 experts each are fewer than the 4 ranks"):
        expert_parallel_trace(
            parameters=1, value_bytes=2, layers=1, hidden=1, experts_per_token=2, tokens=1, steps=1, ranks=4
        )


@pytest.mark.parametrize(
    ("workload", "name", "ranks"),
    [
        ("{kind: npb, benchmark: cg, class: S, ranks: 8}", "cg.S.8", 8),
        ("{kind: npb, benchmark: ep, class: S}", "ep.S.16", 16),
        ("{kind: npb, benchmark: dt, class: S, graph: SH}", "dt.SH.S.16", 16),
        ("{kind: matrix_product, order: 64}", "matrix_product.64.16", 16),
        ("{kind: bfs, scale: 6}", "bfs.6.16", 16),
        ("{kind: himeno, size: XS, iterations: 1}", "himeno.XS.16", 16),
        ("{kind: dpsnn, steps: 2}", "dpsnn.21.16", 16),
        ("{kind: training, parallelism: data}", "training.data.16", 16),
        ("{kind: training, parallelism: expert}", "training.expert.16", 16),
        ("{kind: training, parallelism: pipeline}", "training.pipeline.16", 16),
    ],
)
def test_from_the_configuration(workload, name, ranks):
    config = parse_config(f"name: x\ntopology: {{kind: torus, radices: [4, 4]}}\nworkload: {workload}\n")
    trace = program_trace(config.workload, build(config.topology, config.address).hosts, config.seed)
    assert (trace.name, trace.ranks) == (name, ranks)
    again = parse_config(f"name: x\ntopology: {{kind: torus, radices: [4, 4]}}\nworkload: {workload}\n")
    assert again.model_dump(mode="json")["workload"]["kind"] == config.workload.kind
    if config.workload.kind == "npb":
        assert config.model_dump(mode="json")["workload"]["class"] == "S"  # as the file says it

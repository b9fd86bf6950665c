"""Critical paths on an ideal network against closed forms, by LogGOPS: pipelines, collectives, overlap."""

import sys
from itertools import pairwise
from math import log2, prod
from pathlib import Path

import numpy as np
import pytest

from hopforge.model.apps.training_levels import level_schedule
from hopforge.model.apps.training_order import ORDERS
from hopforge.model.config import parse_config
from hopforge.model.topology import build
from hopforge.model.workload.schedule import CALC, SEND
from hopforge.sim.programs.loggops_engine import LoggopsSettings, run_loggops

sys.path.insert(0, str(Path(__file__).parent))
from training_cases import SMALL, computed, made, makespan

#: latency 100, 2 a byte
WIRE = LoggopsSettings(100.0, 0.0, 0.0, 2.0, 0.0, 1 << 40)


# ---- pipelines ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize(("stages", "chunks", "microbatches"), [(1, 1, 3), (4, 1, 8), (4, 3, 8), (2, 2, 2), (8, 2, 16)])
def test_every_microbatch_passes_once_each_way(name, stages, chunks, microbatches):
    if name == "interleaved" and stages == 1:
        return
    parts = chunks if name == "interleaved" else 1
    for stage in range(stages):
        order = ORDERS[name](stage, stages, parts, microbatches)
        assert len(order) == len(set(order)) == 2 * parts * microbatches
        for chunk in range(parts):
            for microbatch in range(microbatches):
                assert order.index((True, chunk, microbatch)) < order.index((False, chunk, microbatch))


def test_orders_by_hand():
    """Stage 0 of 2 with two parts each: figure 4 of Narayanan et al. 2021, for two stages."""
    def words(name, stage, stages, chunks, microbatches):
        order = ORDERS[name](stage, stages, chunks, microbatches)
        return " ".join(f"{'F' if forward else 'B'}{'ab'[chunk]}{number}" for forward, chunk, number in order)

    assert words("gpipe", 0, 2, 1, 3) == "Fa0 Fa1 Fa2 Ba2 Ba1 Ba0"
    assert words("1f1b", 0, 3, 1, 4) == "Fa0 Fa1 Fa2 Ba0 Fa3 Ba1 Ba2 Ba3"
    assert words("1f1b", 2, 3, 1, 2) == "Fa0 Ba0 Fa1 Ba1"
    assert words("interleaved", 1, 2, 2, 2) == "Fa0 Fa1 Fb0 Bb0 Fb1 Bb1 Ba0 Ba1"
    assert words("interleaved", 0, 2, 2, 2) == "Fa0 Fa1 Fb0 Fb1 Bb0 Bb1 Ba0 Ba1"


@pytest.mark.parametrize("microbatches", [4, 8, 16])
@pytest.mark.parametrize(("stages", "keys", "chunks"), [
    (4, "{schedule: gpipe}", 1), (4, "{schedule: 1f1b}", 1), (2, "{schedule: 1f1b}", 1),
    (4, "{schedule: interleaved, virtual_stages: 2}", 2), (2, "{schedule: interleaved, virtual_stages: 4}", 4),
    (4, "{schedule: interleaved, virtual_stages: 4}", 4),
])  # fmt: skip
def test_the_bubble_is_p_minus_1_over_v_m(stages, keys, chunks, microbatches):
    """Huang et al. 2019, Narayanan et al. 2021: idle over computing is (p − 1)/m, with v parts (p − 1)/(v m)."""
    schedule = made(
        f"parallel: {{data: 1, pipeline: {stages}}}, stages: {keys}, microbatches: {microbatches}",
        sizes={"layers": 16},
    )
    computing = computed(schedule)
    assert len(set(computing.tolist())) == 1
    assert makespan(schedule) / computing[0] - 1 == pytest.approx((stages - 1) / (chunks * microbatches), rel=1e-12)


def test_steps_follow_each_other():
    one, three = (made(f"parallel: {{data: 1, pipeline: 4}}, steps: {steps}") for steps in (1, 3))
    alone, computing = makespan(one), computed(one)[0]
    # the last stage is first to end its part of a step, the first one last: the bubble is there once a step
    assert makespan(three) == 3 * alone
    assert computed(three)[0] == 3 * computing


# ---- collectives ----------------------------------------------------------------------------------------------------


BYTES = 1 << 17
ONE = {"layers": 1, "width": 64, "heads": 1, "feed_forward": (BYTES // 2 - 4 * 64**2 - 2 * 64) // (2 * 64),
       "gated": False, "vocabulary": 0}  # fmt: skip
"""A model of one layer with so many bytes of gradients."""


def gradients_ns(collectives, ranks, levels="{kind: flat}", zero=0, network=None):
    """Return how long an exchange of `BYTES` of gradients takes with `WIRE` if computing takes no time."""
    keys = {} if network is None else {"network": network}
    schedule = made(
        f"parallel: {{data: {ranks}}}, microbatches: 1, collectives: {{{collectives}}}, levels: {levels},"
        f" gradients: {{zero: {zero}, overlap: false}}", sizes=ONE, gflops=None, **keys,
    )  # fmt: skip
    return makespan(schedule, WIRE)


def message(size):
    """Return the time of a message, latency 100 and 2 for each byte after the first."""
    return 100 + 2 * (size - 1)


def test_one_has_the_bytes_that_it_should_have():
    schedule = made("parallel: {data: 2}, microbatches: 1", sizes=ONE)
    assert schedule.size[schedule.kind == SEND].tolist() == [BYTES // 2] * 4


@pytest.mark.parametrize("n", [2, 4, 8, 32])
def test_an_all_reduce_takes_what_its_algorithm_says(n):
    """Ring: 2 (n − 1) messages of 1/n; recursive doubling: log₂ n of all; a tree: twice that; Rabenseifner: halves."""
    rounds = int(log2(n))
    assert gradients_ns("allreduce: ring", n) == 2 * (n - 1) * message(BYTES // n)
    assert gradients_ns("allreduce: recursive_doubling", n) == rounds * message(BYTES)
    assert gradients_ns("allreduce: binomial", n) == 2 * rounds * message(BYTES)
    halves = sum(message(BYTES >> k) for k in range(1, rounds + 1))
    assert gradients_ns("allreduce: halving_doubling", n) == 2 * halves


@pytest.mark.parametrize("n", [4, 8])
def test_shared_optimizers_scatter_then_gather(n):
    ring = (n - 1) * message(BYTES // n)
    for algorithm in ("ring", "pairwise"):
        assert gradients_ns(f"reduce_scatter: {algorithm}, allgather: ring", n, zero=1) == 2 * ring


@pytest.mark.parametrize(("n", "group"), [(8, 2), (8, 4), (32, 8)])
def test_a_hierarchical_all_reduce_takes_three_phases(n, group):
    """Reduce-scatter inside groups, all-reduce of 1/group between them, all-gather inside."""
    rings = "allreduce: ring, allgather: ring, reduce_scatter: ring"
    others = n // group
    inside, between = (group - 1) * message(BYTES // group), 2 * (others - 1) * message(BYTES // n)
    assert gradients_ns(rings, n, f"{{kind: groups, ranks: {group}}}") == 2 * inside + between
    doubling = "allreduce: recursive_doubling, allgather: ring, reduce_scatter: ring"
    trees = int(log2(others)) * message(BYTES // group)
    assert gradients_ns(doubling, n, f"{{kind: groups, ranks: {group}}}") == 2 * inside + trees
    # groups as large as the collective are one level
    assert gradients_ns(rings, n, f"{{kind: groups, ranks: {n}}}") == gradients_ns(rings, n)


def test_rings_of_a_torus_are_neighbours():
    """4 × 4 × 2 torus: 3, 3 and 1 rounds there, as many back; every message is of neighbours, 2 (n − 1)/n in all."""
    rings = "allreduce: ring, allgather: ring, reduce_scatter: ring"
    network = "{kind: torus, radices: [4, 4, 2]}"
    there = 3 * message(BYTES // 4) + 3 * message(BYTES // 16) + message(BYTES // 32)
    assert gradients_ns(rings, 32, "{kind: torus}", network=network) == 2 * there
    schedule = made(f"parallel: {{data: 32}}, microbatches: 1, collectives: {{{rings}}}, levels: {{kind: torus}}",
                    sizes=ONE, network=network)  # fmt: skip
    config = parse_config(f"name: x\ntopology: {network}\n")
    topology = build(config.topology, config.address)
    sends = schedule.kind == SEND
    for one, other in {*zip(schedule.rank[sends].tolist(), schedule.peer[sends].tolist(), strict=True)}:
        assert other in topology.peer_router[one]
    assert schedule.size[sends].sum() == 32 * 2 * BYTES * 31 // 32
    # tensor groups of 4 fill a line, data groups of 8 a 4 × 2 box
    both = made(f"parallel: {{data: 8, tensor: 4}}, microbatches: 1, collectives: {{{rings}}}, levels: {{kind: torus}}",
                sizes={"heads": 4}, network=network)  # fmt: skip
    sends = both.kind == SEND
    for one, other in {*zip(both.rank[sends].tolist(), both.peer[sends].tolist(), strict=True)}:
        assert other in topology.peer_router[one]


@pytest.mark.parametrize("dims", [(2, 3), (4, 2, 3), (3, 1, 2), (5, 4)])
@pytest.mark.parametrize("scatter", ["pairwise", "recursive_halving", "ring"])
@pytest.mark.parametrize("gather", ["ring", "recursive_doubling", "bruck"])
@pytest.mark.parametrize("reduce", ["ring", "recursive_doubling", "halving_doubling", "binomial"])
def test_levels_move_data_as_mpi_defines_it(dims, scatter, gather, reduce):
    names, members = {"reduce_scatter": scatter, "allgather": gather, "allreduce": reduce}, prod(dims)
    everybody = frozenset(range(members))
    own = [{piece: frozenset([rank]) for piece in range(members)} for rank in range(members)]
    assert moved("allreduce", names, dims, own) == [dict.fromkeys(range(members), everybody)] * members
    scattered = moved("reduce_scatter", names, dims, own)
    assert [each[rank] for rank, each in enumerate(scattered)] == [everybody] * members
    pieces = moved("allgather", names, dims, [{rank: frozenset([rank])} for rank in range(members)])
    assert pieces == [{rank: frozenset([rank]) for rank in range(members)}] * members


def moved(operation, names, dims, held):
    """Move sets of contributions, as the tests of the algorithms do."""
    held = [dict(each) for each in held]
    rounds = level_schedule(operation, names, dims)
    assert rounds
    for part in rounds:
        before = [dict(each) for each in held]
        for source, destination, pieces, combine, _ in part:
            for piece in pieces:
                if combine:
                    assert not held[destination].get(piece, frozenset()) & before[source][piece], "added twice"
                    held[destination][piece] = held[destination].get(piece, frozenset()) | before[source][piece]
                else:
                    held[destination][piece] = before[source][piece]
    return held


# ---- overlap --------------------------------------------------------------------------------------------------------


def test_gradients_are_exchanged_while_the_backward_pass_goes_on():
    """With buckets of a layer only the exchange of the first layer, the last bucket, is left; without overlap all."""
    for overlap, left in (("true", 1), ("false", 4)):
        schedule = made(
            f"parallel: {{data: 4}}, microbatches: 1, gradients: {{overlap: {overlap}}}", gflops=0.01
        )
        sizes = schedule.size[schedule.kind == SEND]
        piece = int(sizes[0])
        assert (sizes == piece).all()
        exchange = 2 * 3 * message(piece)
        assert exchange < computed(schedule)[0] / 12 * 2, "an exchange fits below the backward pass of a layer"
        assert makespan(schedule, WIRE) == computed(schedule)[0] + left * exchange


def test_buckets_follow_each_other():
    """If computing takes no time, all exchanges are one after the other, however many buckets."""
    for layers in (1, 2, 4):
        schedule = made(
            f"parallel: {{data: 4}}, microbatches: 1, gradients: {{bucket_layers: {layers}}}", gflops=None
        )
        sizes = schedule.size[schedule.kind == SEND]
        assert makespan(schedule, WIRE) == 4 // layers * 6 * message(int(sizes[0]))


def test_parameters_are_gathered_while_the_layer_before_computes():
    """FSDP: the first gathering and the last scattering are exposed, if they fit below computing between them."""
    schedule = made("parallel: {data: 4}, microbatches: 1, gradients: {zero: 3}", gflops=0.0001)
    piece = int(schedule.size[schedule.kind == SEND][0])
    assert makespan(schedule, WIRE) == computed(schedule)[0] + (3 + 3) * message(piece)


def test_tensor_collectives_are_exposed():
    schedule = made("parallel: {data: 1, tensor: 4}, microbatches: 2")
    piece = int(schedule.size[schedule.kind == SEND][0])
    exposed = 4 * SMALL["layers"] * 2 * 6 * message(piece)
    assert makespan(schedule, WIRE) == computed(schedule)[0] + exposed


def test_an_all_to_all_waits_for_the_most_wanted_expert():
    """The makespan with skew is that of the busiest rank of each layer, one after the other."""
    sizes = {"experts": 8, "experts_per_token": 2, "expert_feed_forward": 32, "layers": 2}
    schedule = made("parallel: {data: 4, expert: 4}, microbatches: 1, skew: 1", sizes=sizes)
    times = [
        schedule.size[(schedule.kind == CALC) & (schedule.rank == rank) & (schedule.size > 0)].astype(float)
        for rank in range(4)
    ]
    # attention and choice, experts, attention and choice, experts and experts back, …: everybody meets everybody
    assert len({len(each) for each in times}) == 1
    assert makespan(schedule) == np.max(times, axis=0).sum()


def test_operations_of_a_rank_are_in_order():
    schedule = made("parallel: {data: 2, tensor: 2, pipeline: 2}, microbatches: 2")
    times = run_loggops(schedule, WIRE)
    for rank in range(8):
        at = np.flatnonzero((schedule.rank == rank) & (schedule.cpu == 0) & (schedule.size > 0))
        assert all(times.end[one] <= times.start[other] for one, other in pairwise(at))


# ---- together -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
@pytest.mark.parametrize("stages", ["{schedule: gpipe}", "{schedule: 1f1b}",
                                    "{schedule: interleaved, virtual_stages: 2}"])  # fmt: skip
@pytest.mark.parametrize("parallel", [
    "data: 2, pipeline: 2, tensor: 2, context: 2", "data: 4, pipeline: 2, tensor: 2, sequence: true, expert: 2",
    "data: 4, pipeline: 2, context: 2, context_exchange: all_to_all, expert: 4,"
    " order: [data, pipeline, context, tensor]",
])  # fmt: skip
def test_all_kinds_together_come_to_an_end(zero, stages, parallel):
    """Every combination runs through two steps, computes what a single rank computes, and ends no sooner than that."""
    sizes = {"vocabulary": 96, "tied": True}
    if "expert" in parallel:
        sizes |= {"experts": 8, "experts_per_token": 2, "expert_feed_forward": 32, "dense_layers": 1}
    common = "microbatches: 2, steps: 2"
    together = made(
        f"parallel: {{{parallel}}}, stages: {stages}, gradients: {{zero: {zero}}}, levels: {{kind: groups, ranks: 2}},"
        f" {common}, skew: {1.0 if 'expert' in parallel else 0.0}", sizes=sizes,
    )  # fmt: skip
    alone = made(f"parallel: {{data: 1}}, {common}", sizes=sizes)
    copies = int(parallel[len("data: ")])

    assert computed(together).sum() == pytest.approx(copies * computed(alone).sum(), rel=1e-3)
    assert makespan(together, WIRE) > computed(together).max()

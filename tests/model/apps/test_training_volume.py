"""Bytes of each kind of parallelism, and operations, against closed forms."""

import sys
from pathlib import Path

import numpy as np
import pytest

from hopforge.model.apps.language_models import known_models, language_model
from hopforge.model.config.training import SizesConfig

sys.path.insert(0, str(Path(__file__).parent))
from training_cases import SMALL, computed, made, sent

WIDTH, LAYERS, TOKENS = SMALL["width"], SMALL["layers"], SMALL["sequence"]
ACTIVATIONS = 2 * TOKENS * WIDTH
"""Bytes of the activations of a microbatch of one sequence."""
LAYER = 4 * WIDTH**2 + 3 * WIDTH * SMALL["feed_forward"] + 2 * WIDTH
"""Parameters of a layer: attention, gated feed-forward part, two norms."""


@pytest.mark.parametrize(("name", "parameters"), [
    ("gpt2_xl", 1_557_611_200), ("llama2_7b", 6_738_415_616), ("llama2_13b", 13_015_864_320),
    ("llama2_70b", 68_976_648_192), ("llama3_8b", 8_030_261_248), ("llama3_70b", 70_553_706_496),
    ("llama3_405b", 405_853_388_800), ("mixtral_8x7b", 46_702_792_704), ("deepseek_moe_16b", 16_375_728_128),
])  # fmt: skip
def test_parameters_are_those_of_the_published_weights(name, parameters):
    assert known_models()[name].parameters == parameters


def test_gpt3_has_the_175_billion_parameters_of_its_name():
    assert known_models()["gpt3_175b"].parameters == pytest.approx(175e9, rel=0.005)


def test_operations_of_a_step_are_those_of_narayanan_2021():
    """96 B s l h² (1 + s/(6h) + V/(16 l h)), which counts the forward pass twice (recomputation)."""
    vocabulary, batch = 96, 2 * 3
    sizes = {"gated": False, "feed_forward": 4 * WIDTH, "vocabulary": vocabulary, "biases": True}
    schedule = made("parallel: {data: 2}, microbatches: 3, recompute: true", sizes=sizes)
    ratio = 1 + TOKENS / (6 * WIDTH) + vocabulary / (16 * LAYERS * WIDTH)
    assert computed(schedule).sum() == pytest.approx(96 * batch * TOKENS * LAYERS * WIDTH**2 * ratio, abs=0.5)


@pytest.mark.parametrize("parallel", [
    "tensor: 4", "tensor: 4, sequence: true", "pipeline: 4", "context: 4",
    "context: 4, context_exchange: all_to_all", "tensor: 2, pipeline: 2, context: 2, data: 2, sequence: true",
])  # fmt: skip
def test_degrees_divide_the_operations_of_a_copy(parallel):
    alone = computed(made("parallel: {data: 1}, microbatches: 2")).sum()
    schedule = made(f"parallel: {{data: 1, {parallel}}}, microbatches: 2".replace("data: 1, tensor: 2", "tensor: 2"))
    copies = 2 if "data: 2" in parallel else 1
    assert computed(schedule).tolist() == [alone * copies // schedule.ranks] * schedule.ranks


def test_tensor_parallel_volume():
    """Four all-reduces of the activations for a layer and microbatch, 2 (t − 1)/t of them sent by each rank."""
    for sequence in ("false", "true"):
        schedule = made(f"parallel: {{data: 1, tensor: 4, sequence: {sequence}}}, microbatches: 3")
        assert sent(schedule, "tensor").tolist() == [4 * LAYERS * 3 * 2 * 3 * ACTIVATIONS // 4] * 4
    again = made("parallel: {data: 1, tensor: 4}, microbatches: 3, recompute: true")
    assert sent(again, "tensor").tolist() == [6 * LAYERS * 3 * 2 * 3 * ACTIVATIONS // 4] * 4


def test_tensor_parallel_volume_of_embedding_and_output():
    """One all-reduce forwards for the embedding, one backwards for the output."""
    sizes = {"vocabulary": 96, "layers": 1}
    for sequence in ("false", "true"):
        schedule = made(
            f"parallel: {{data: 1, tensor: 2, sequence: {sequence}}}, microbatches: 1", sizes=sizes
        )
        assert sent(schedule, "tensor").tolist() == [(4 + 2) * ACTIVATIONS] * 2


@pytest.mark.parametrize(("zero", "vectors"), [(0, 2), (1, 2), (2, 1 + 3), (3, 3 * 3)])
def test_data_parallel_volume(zero, vectors):
    """ZeRO (Rajbhandari et al. 2020, section 7): 2 Ψ, with parameters shared 3 Ψ; 2 and 3 for each microbatch."""
    schedule = made(f"parallel: {{data: 4}}, gradients: {{zero: {zero}}}, microbatches: 3")
    assert sent(schedule, "data").tolist() == [vectors * 3 * LAYERS * LAYER * 2 // 4] * 4


def test_gradients_may_be_wider_and_shared_with_context():
    schedule = made("parallel: {data: 2, context: 2, tensor: 2}, gradients: {bytes: 4, bucket_layers: 3}")
    assert sent(schedule, "data").tolist() == [2 * 3 * LAYERS * LAYER // 2 * 4 // 4] * 8
    first = made("parallel: {data: 2, context: 2, tensor: 2}, gradients: {zero: 1, bytes: 4}")
    assert sent(first, "data").tolist() == [3 * LAYERS * LAYER // 2 * (4 + 2) // 4] * 8


def test_pipeline_volume():
    schedule = made("parallel: {data: 1, pipeline: 4}, microbatches: 5")
    assert sent(schedule, "pipeline").tolist() == [5 * ACTIVATIONS * n for n in (1, 2, 2, 1)]
    parts = made(
        "parallel: {data: 1, pipeline: 2}, microbatches: 4, stages: {schedule: interleaved, virtual_stages: 2}"
    )
    assert sent(parts, "pipeline").tolist() == [4 * ACTIVATIONS * 3] * 2
    shared = made("parallel: {data: 1, pipeline: 2, tensor: 2, sequence: true}, microbatches: 5")
    assert sent(shared, "pipeline").tolist() == [5 * ACTIVATIONS // 2] * 4


def test_context_parallel_volume():
    """Keys and values gathered, their gradients scattered; or queries, keys, values and output exchanged (Ulysses)."""
    for kv_heads in (8, 2):
        kv = 2 * WIDTH * kv_heads // 8
        sizes = {"kv_heads": kv_heads}
        gathered = made("parallel: {data: 1, context: 4}, microbatches: 1", sizes=sizes)
        assert sent(gathered, "context").tolist() == [2 * LAYERS * 3 * 2 * TOKENS * kv // 4] * 4
        two = "parallel: {data: 1, context: 2, context_exchange: all_to_all}, microbatches: 1"
        exchanged = made(two, sizes=sizes)
        assert sent(exchanged, "context").tolist() == [2 * LAYERS * 2 * TOKENS // 2 * (2 * WIDTH + kv) // 2] * 2


EXPERTS = {"experts": 8, "experts_per_token": 2, "expert_feed_forward": 32}


@pytest.mark.parametrize(("parallel", "share"), [
    ("data: 4, expert: 4", 1), ("data: 4, expert: 4, tensor: 2", 1),
    ("data: 4, expert: 4, tensor: 2, sequence: true", 2),
])  # fmt: skip
def test_expert_parallel_volume(parallel, share):
    """Four all-to-alls for a layer and microbatch, of k copies of each token."""
    schedule = made(f"parallel: {{{parallel}}}, microbatches: 3", sizes=EXPERTS)
    assert sent(schedule, "expert").tolist() == [4 * LAYERS * 3 * 2 * ACTIVATIONS * 3 // 4 // share] * schedule.ranks


def test_experts_with_shared_matrices_gather_what_has_arrived():
    """With sequence: two of the attention and two of the experts, each all-gather and reduce-scatter both ways."""
    schedule = made("parallel: {data: 2, expert: 2, tensor: 2, sequence: true}, microbatches: 1", sizes=EXPERTS)
    assert sent(schedule, "tensor").tolist() == [LAYERS * 4 * (ACTIVATIONS + 2 * ACTIVATIONS) // 2] * 4


def test_gradients_of_experts_go_to_their_copies_only():
    expert = 8 * 3 * WIDTH * 32
    dense = 4 * WIDTH**2 + 8 * WIDTH + 2 * WIDTH
    schedule = made("parallel: {data: 4, expert: 2}, microbatches: 1", sizes=EXPERTS)
    assert sent(schedule, "data").tolist() == [LAYERS * 2 * (2 * dense * 3 // 4 + 2 * expert // 2 // 2)] * 4
    alone = made("parallel: {data: 4, expert: 4}, microbatches: 1", sizes=EXPERTS)
    assert sent(alone, "data").tolist() == [LAYERS * 2 * 2 * dense * 3 // 4] * 4


def test_skew_moves_tokens_and_operations_but_loses_none():
    for workload in ("parallel: {data: 4, expert: 4}", "parallel: {data: 4, expert: 4, tensor: 2, sequence: true}"):
        even, uneven = (
            made(f"{workload}, microbatches: 1, skew: {skew}", sizes={**EXPERTS, "layers": 1}) for skew in (0, 1.5)
        )
        assert computed(even).sum() == computed(uneven).sum()
        assert len(set(computed(even).tolist())) == 1 < len(set(computed(uneven).tolist()))
        # of n^-1.5 the most wanted of 8 experts gets 1 of 1.93
        weights = np.arange(1, 9) ** -1.5
        expert = 3 * 2 * 3 * WIDTH * 32  # operations of a token at an expert, both ways
        copies = 4 * TOKENS * 2
        tensor = 2 if "tensor" in workload else 1
        base = computed(even).min() - copies // 4 * expert // tensor
        assert computed(uneven).max() >= base + int(copies * weights[0] / weights.sum() - 16) * expert // tensor
        assert sent(uneven, "expert").sum() == sent(even, "expert").sum()  # each copy goes out from all but one rank
        assert sent(uneven, "expert").tolist() != sent(even, "expert").tolist()
    again = made("parallel: {data: 4, expert: 4}, microbatches: 1, skew: 1.5", sizes={**EXPERTS, "layers": 1})
    other = made("parallel: {data: 4, expert: 4}, microbatches: 1, skew: 1.5", sizes={**EXPERTS, "layers": 1}, seed=2)
    assert computed(again).tolist() != computed(other).tolist()


def test_a_tied_matrix_is_added_up_between_first_and_last_stage():
    """An all-reduce of two of the matrix, then both are exchanged with their copies."""
    sizes = {"vocabulary": 96, "tied": True, "layers": 2}
    matrix = 2 * 96 * WIDTH
    for pipeline in (1, 2):
        schedule = made(f"parallel: {{data: 2, pipeline: {pipeline}}}, microbatches: 1", sizes=sizes)
        last_norm = 2 * WIDTH
        if pipeline == 1:
            assert sent(schedule, "data").tolist() == [2 * 2 * LAYER + matrix + last_norm] * 2
        else:
            first, last = 2 * LAYER + 2 * matrix, 2 * LAYER + 2 * matrix + last_norm
            assert sent(schedule, "data").tolist() == [first, first, last, last]


def test_the_last_stage_gathers_its_copy_of_a_tied_matrix():
    """ZeRO 3: both copies are gathered forwards and backwards for every microbatch, 2 m V h w (n - 1)/n."""
    own = {}
    for tied in (True, False):
        sizes = {"vocabulary": 96, "tied": tied, "layers": 2}
        schedule = made("parallel: {data: 2, pipeline: 2}, microbatches: 3, gradients: {zero: 3}", sizes=sizes)
        own[tied] = sent(schedule, "data")
    matrix = 2 * 96 * WIDTH
    # untied: gathered 2 x 3 times, gradients scattered 3 times; tied: those once a step, and the all-reduce of two
    assert own[False].tolist() == [(9 * (LAYER + 96 * WIDTH) * 2) // 2] * 2 + [
        (9 * (LAYER + 96 * WIDTH + WIDTH) * 2) // 2
    ] * 2
    assert (own[False] - own[True]).tolist() == [(3 - 1) * matrix // 2 - matrix] * 4


def test_shrink_divides_bytes_and_operations():
    whole, less = (
        made(f"parallel: {{data: 2, tensor: 2, pipeline: 2}}, shrink: {shrink}") for shrink in (1, 16)
    )
    for stream in ("tensor", "data", "pipeline"):
        assert (sent(whole, stream) == 16 * sent(less, stream)).all()
    assert (computed(whole) == 16 * computed(less)).all()


def test_sizes_change_those_of_a_model():
    model = language_model("llama2_7b", SizesConfig(layers=2, sequence=128))
    assert (model.layers, model.sequence, model.width) == (2, 128, 4096)
    assert language_model("llama2_7b", SizesConfig(heads=16)).kv_heads == 16
    assert language_model("llama2_70b", SizesConfig(heads=16)).kv_heads == 8

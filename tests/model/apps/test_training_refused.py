"""What a training program cannot be: each mistake is one line with key, limit and value."""

import re
import sys
from pathlib import Path

import pytest

from hopforge.model.apps.calls import AppError
from hopforge.model.config import ConfigError, parse_config
from hopforge.model.config.load import with_place
from hopforge.model.config.source import read_source
from hopforge.model.topology import build
from hopforge.sim.traffic.packet_stream import WorkloadError
from hopforge.sim.traffic.scheduled import workload_schedule

sys.path.insert(0, str(Path(__file__).parent))
from training_cases import made

EXPERTS = {"experts": 8, "experts_per_token": 2, "expert_feed_forward": 32}


@pytest.mark.parametrize(("workload", "sizes", "text"), [
    ("ranks: 9, parallel: {tensor: 2}", {},
     r"^workload\.parallel: tensor 2 × context 1 × pipeline 1 = 2 must divide the 9 ranks$"),
    ("ranks: 8, parallel: {data: 2, tensor: 2}", {},
     r"^workload\.parallel: tensor 2 × context 1 × pipeline 1 × data 2 = 4 must be the number of ranks=8$"),
    ("parallel: {data: 1, pipeline: 3}", {},
     r"^workload\.parallel\.pipeline: 4 layers must be a multiple of 3 stages$"),
    ("parallel: {data: 1, pipeline: 2}, stages: {schedule: interleaved, virtual_stages: 4}", {},
     r"^workload\.parallel\.pipeline: 4 layers must be a multiple of 2 stages × 4 virtual stages$"),
    ("parallel: {data: 1}, stages: {schedule: interleaved, virtual_stages: 2}", {},
     r"^workload\.stages\.schedule: interleaved needs pipeline of at least 2, not 1$"),
    ("parallel: {data: 1, pipeline: 2}, microbatches: 3, stages: {schedule: interleaved, virtual_stages: 2}", {},
     r"^workload\.microbatches: must be a multiple of pipeline=2 with schedule=interleaved, not 3$"),
    ("parallel: {data: 1, tensor: 3}", {}, r"^workload\.parallel\.tensor: must divide heads=8, not 3$"),
    ("parallel: {data: 1, tensor: 4}", {"heads": 32, "kv_heads": 2, "feed_forward": 130},
     r"^workload\.parallel\.tensor: must divide feed_forward=130, not 4$"),
    ("parallel: {data: 1, tensor: 4}", {"width": 96, "heads": 12, "kv_heads": 6},
     r"^workload\.parallel\.tensor: must divide kv_heads=6 or be a multiple of it, not 4$"),
    ("parallel: {data: 1, context: 3}", {}, r"^workload\.parallel\.context: must divide sequence=32, not 3$"),
    ("parallel: {data: 1, context: 16, context_exchange: all_to_all}", {},
     r"^workload\.parallel\.context: must divide heads of a rank=8, not 16$"),
    ("parallel: {data: 1, context: 8, tensor: 8, sequence: true}", {},
     r"^workload\.parallel\.tensor: must divide tokens of a sequence on a rank=4, not 8$"),
    ("parallel: {data: 2, expert: 2}", {},
     r"^workload\.parallel\.expert: must be 1 for a model without experts, not 2$"),
    ("parallel: {data: 3, expert: 3}", EXPERTS, r"^workload\.parallel\.expert: must divide experts=8, not 3$"),
    ("parallel: {data: 2, expert: 4}", EXPERTS, r"^workload\.parallel\.expert: must divide data=2, not 4$"),
    ("parallel: {data: 2}, skew: 1", {}, r"^workload\.skew: is for models with experts only, this one has none$"),
    ("parallel: {data: 6}, levels: {kind: groups, ranks: 4}", {},
     r"^workload\.levels\.ranks: must divide the 6 ranks of a collective, not 4$"),
    ("parallel: {data: 6}, levels: {kind: torus}", {},
     r"^workload\.levels\.kind: torus needs groups that fill a box .*; the 6 ranks 0, 1, 2, 3, 4, 5 do not"),
    ("parallel: {data: 2}", {"heads": 7}, r"^workload\.sizes\.heads: must divide width=64, not 7$"),
    ("parallel: {data: 2}", {"kv_heads": 3}, r"^workload\.sizes\.kv_heads: must divide heads=8, not 3$"),
    ("parallel: {data: 2}", {"shared_experts": 1},
     r"^workload\.sizes\.shared_experts: is for models with experts only, this one has none$"),
    ("parallel: {data: 2}", {"experts": 4, "experts_per_token": 5},
     r"^workload\.sizes\.experts_per_token: must be from 1 to experts=4, not 5$"),
    ("parallel: {data: 2}", {"experts": 4, "dense_layers": 5},
     r"^workload\.sizes\.dense_layers: must be at most layers=4, not 5$"),
    ("parallel: {data: 2}, collectives: {allreduce: rabenseifner}", {},
     r"^workload\.collectives\.allreduce: must be recursive_doubling, ring, .* for training with model or sizes, "
     r"not rabenseifner$"),
    ("parallel: {data: 2}, collectives: {rules: mpich}", {},
     r"^workload\.collectives\.allreduce: must be recursive_doubling, .*, not rules: mpich$"),
])  # fmt: skip
def test_what_does_not_fit(workload, sizes, text):
    with pytest.raises(AppError, match=text):
        made(workload, sizes=sizes)


def test_what_would_never_be_written_is_refused_at_once():
    with pytest.raises(AppError, match=r"at least 640000000 computations are more than 20000000 \(fewer steps, "):
        made("parallel: {data: 2}, microbatches: 100000, steps: 400")


def test_more_ranks_than_hosts_are_refused_before_their_operations_are_made():
    with pytest.raises(WorkloadError, match=r"^workload: 1048576 ranks are more than the 256 hosts of the 8x8 mesh$"):
        made("parallel: {data: 1048576}")


def test_levels_of_a_torus_need_dimensions():
    with pytest.raises(AppError, match=r"^workload\.levels\.kind: torus needs mesh, torus, hyperx, not fat_tree$"):
        made("parallel: {data: 2}, levels: {kind: torus}", network="{kind: fat_tree, k: 4, n: 2}")


def test_several_hosts_of_a_router_and_complete_lines_are_dimensions():
    network = "{kind: hyperx, sizes: [4, 4], hosts_per_router: 2}"
    schedule = made("parallel: {data: 32}, levels: {kind: torus}", network=network)
    assert schedule.ranks == 32


@pytest.mark.parametrize(("workload", "text"), [
    ("model: llama2", r"^x:3: workload\.model: unknown 'llama2'; did you mean 'llama2_\w+'"),
    ("sizes: {layers: 4, width: 64}", r"^x:3: workload\.sizes\.heads: missing, as workload\.model names no model$"),
])  # fmt: skip
def test_models_that_nobody_knows(workload, text):
    file = f"name: x\ntopology: {{kind: mesh, radices: [4]}}\nworkload: {{kind: training, {workload}}}\n"
    config = parse_config(file)
    with pytest.raises(AppError) as caught:
        workload_schedule(config.workload, build(config.topology, config.address), 1, None)
    assert re.search(text, with_place(str(caught.value), ("x", read_source(file))))


@pytest.mark.parametrize(("workload", "text"), [
    ("", r"workload\.model: missing; or parallelism, for a simple program"),
    ("model: llama2_7b, parallelism: data", r"workload\.parallelism: is a simple program; model and sizes have"),
    ("model: llama2_7b, tokens: 5", r"workload\.tokens: is for parallelism only; a model has sizes"),
    ("parallelism: data, skew: 1", r"workload\.skew: is for model and sizes only, not parallelism=data"),
    ("model: llama2_7b, parallel: {order: [tensor, data, data, pipeline]}", r"workload\.parallel\.order: must name"),
    ("model: llama2_7b, parallel: {sequence: true}", r"workload\.parallel\.sequence: has no effect with tensor=1"),
    ("model: llama2_7b, parallel: {context_exchange: all_to_all}", r"context_exchange: has no effect with context=1"),
    ("model: llama2_7b, parallel: {tensor: 0}", r"workload\.parallel\.tensor: must be at least 1, not 0"),
    ("model: llama2_7b, stages: {virtual_stages: 2}", r"virtual_stages: is for schedule=interleaved only, not.*=1f1b"),
    ("model: llama2_7b, stages: {schedule: interleaved}", r"virtual_stages: must be at least 2 with schedule=interl"),
    ("model: llama2_7b, stages: {schedule: dualpipe}", r"schedule: must be 'gpipe', '1f1b' or 'interleaved', not"),
    ("model: llama2_7b, gradients: {zero: 4}", r"workload\.gradients\.zero: must be at most 3, not 4"),
    ("model: llama2_7b, gradients: {zero: 3, bucket_layers: 2}", r"bucket_layers: must be 1 with zero=3, .*, not 2"),
    ("model: llama2_7b, gradients: {zero: 3, overlap: false}", r"overlap: must be true with zero=3"),
    ("model: llama2_7b, levels: {kind: groups}", r"workload\.levels\.ranks: missing; kind=groups needs it"),
    ("model: llama2_7b, levels: {ranks: 4}", r"workload\.levels\.ranks: is for kind=groups only, not kind=flat"),
    ("model: llama2_7b, shrink: 0.5", r"workload\.shrink: must be at least 1\.0, not 0\.5"),
])  # fmt: skip
def test_keys_that_do_not_go_together(workload, text):
    with pytest.raises(ConfigError, match=rf"^x:3: .*{text}"):
        parse_config(
            f"name: x\ntopology: {{kind: mesh, radices: [4]}}\nworkload: {{kind: training, {workload}}}\n", "x"
        )

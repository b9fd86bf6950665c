"""Section `workload` of a generated program → its calls."""

from hopforge.model.apps.dpsnn import dpsnn_trace
from hopforge.model.apps.graph_search import graph_search_trace
from hopforge.model.apps.himeno import himeno_trace
from hopforge.model.apps.matrix_product import matrix_product_trace
from hopforge.model.apps.npb import npb_trace
from hopforge.model.apps.training import data_parallel_trace, expert_parallel_trace, pipeline_trace
from hopforge.model.config.workload import (
    DpsnnWorkload,
    GeneratedWorkload,
    GraphSearchWorkload,
    HimenoWorkload,
    MatrixProductWorkload,
    NpbWorkload,
    TrainingWorkload,
)
from hopforge.model.workload.trace import Trace


def generated_trace(config: GeneratedWorkload, hosts: int, seed: int) -> Trace:
    """Return the calls of a generated program; one rank for each host if `config` does not say how many.

    Raises
    ------
    AppError
        A class or number of ranks that the program does not allow.
    """
    ranks = hosts if config.ranks is None else config.ranks
    match config:
        case NpbWorkload():
            return npb_trace(config.benchmark, config.problem, ranks, config.graph, config.iterations)
        case MatrixProductWorkload():
            return matrix_product_trace(config.order, config.panel, ranks)
        case GraphSearchWorkload():
            return graph_search_trace(config.scale, config.edge_factor, ranks, seed)
        case HimenoWorkload():
            return himeno_trace(config.size, config.iterations, ranks)
        case DpsnnWorkload():
            return dpsnn_trace(
                rate_hz=config.rate_hz, neurons=config.neurons, steps=config.steps, spike_bytes=config.spike_bytes,
                flops_per_spike=config.flops_per_spike, ranks=ranks, seed=seed,
            )
        case TrainingWorkload():
            return _training_trace(config, ranks)
        case _:
            raise AssertionError(config)


def _training_trace(config: TrainingWorkload, ranks: int) -> Trace:
    if config.parallelism == "data":
        return data_parallel_trace(
            parameters=config.parameters, value_bytes=config.value_bytes, buckets=config.buckets,
            tokens=config.tokens, steps=config.steps, ranks=ranks,
        )
    if config.parallelism == "expert":
        return expert_parallel_trace(
            parameters=config.parameters, value_bytes=config.value_bytes, layers=config.layers, hidden=config.hidden,
            experts_per_token=config.experts_per_token, tokens=config.tokens, steps=config.steps, ranks=ranks,
        )
    return pipeline_trace(
        parameters=config.parameters, value_bytes=config.value_bytes, hidden=config.hidden,
        microbatches=config.microbatches, tokens=config.tokens, steps=config.steps, ranks=ranks,
    )

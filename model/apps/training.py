"""Steps of training a neural network: gradients summed by all (data), experts (MoE), layers in a pipeline."""

from hopforge.model.apps.calls import BYTE, AppError, Calls, written_program
from hopforge.model.workload.trace import Trace

#: operations for a parameter and a token: a multiplication and an addition forwards, twice that backwards
FORWARD, BACKWARD = 2, 4


def data_parallel_trace(
    *, parameters: int, value_bytes: int, buckets: int, tokens: int, steps: int, ranks: int
) -> Trace:
    """Return steps in which every rank trains the whole network on tokens of its own and gradients are summed.

    Parameters
    ----------
    parameters, value_bytes : int
        Of the network, and bytes of a gradient's value.
    buckets : int
        The backward pass hands over its gradients in so many equal parts, the last layers first.
    tokens : int
        Per rank and step.
    steps, ranks : int
        How many.
    """
    part = -(-parameters * value_bytes // buckets)

    def write(calls: Calls) -> None:
        step = calls.part()
        step.compute(float(FORWARD * parameters * tokens))
        for _ in range(buckets):
            step.compute(float(BACKWARD * parameters * tokens / buckets))
            step.allreduce(part, BYTE)
        calls.extend(step, steps)

    return written_program(f"training.data.{ranks}", ranks, write)


def expert_parallel_trace(
    *, parameters: int, value_bytes: int, layers: int, hidden: int, experts_per_token: int, tokens: int, steps: int,
    ranks: int,
) -> Trace:
    """Return steps through layers of experts, spread evenly over the ranks, as many tokens for each.

    In every layer an all-to-all takes each token's `hidden` values to its experts and another one brings the results
    back, forwards and backwards.

    Raises
    ------
    AppError
        Fewer token copies than ranks: an even spread is impossible.
    """
    copies = tokens * experts_per_token
    if copies < ranks:
        raise AppError(
            f"workload.tokens: {tokens} tokens for {experts_per_token} experts each are fewer than the {ranks} ranks"
        )
    block = -(-copies // ranks) * hidden * value_bytes

    def write(calls: Calls) -> None:
        step = calls.part()
        for flops in (FORWARD, BACKWARD):
            for _ in range(layers):
                step.alltoall(block, BYTE)
                step.compute(float(flops * copies * parameters / layers))
                step.alltoall(block, BYTE)
        calls.extend(step, steps)

    return written_program(f"training.expert.{ranks}", ranks, write)


def pipeline_trace(
    *, parameters: int, value_bytes: int, hidden: int, microbatches: int, tokens: int, steps: int, ranks: int
) -> Trace:
    """Return steps of a pipeline with one stage a rank, one microbatch forwards and one backwards in turn (1F1B).

    Rank r first lets min(ranks − 1 − r, microbatches) microbatches pass (Narayanan et al. 2019, figure 4). `tokens` are
    those of a microbatch, `parameters` those of all stages.
    """

    def write(calls: Calls) -> None:
        me, values = calls.rank, tokens * hidden * value_bytes
        own = parameters / ranks
        step = calls.part()

        def forward() -> None:
            if me > 0:
                step.recv(me - 1, 0, values, BYTE)
            step.compute(FORWARD * own * tokens)
            if me < ranks - 1:
                step.isend(me + 1, 0, values, BYTE)

        def backward() -> None:
            if me < ranks - 1:
                step.recv(me + 1, 1, values, BYTE)
            step.compute(BACKWARD * own * tokens)
            if me > 0:
                step.isend(me - 1, 1, values, BYTE)

        ahead = min(ranks - 1 - me, microbatches)
        for _ in range(ahead):
            forward()
        for _ in range(microbatches - ahead):
            forward()
            backward()
        for _ in range(ahead):
            backward()
        step.waitall(microbatches * ((me > 0) + (me < ranks - 1)))
        calls.extend(step, steps)

    return written_program(f"training.pipeline.{ranks}", ranks, write)

"""What a rank does in a step of training: passes through its parts of the model, exchange of gradients.

docs/definitions/training.md is the definition.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hopforge.model.apps.training_order import ORDERS, Pass
from hopforge.model.apps.training_plan import TrainingPlan
from hopforge.model.apps.training_ranks import COMPUTE, STREAMS, Blocks, RankOperations

TENSOR, CONTEXT, EXPERT, PIPELINE, DATA = (STREAMS.index(name) for name in STREAMS[1:])
#: parts of the model that are no layers
EMBEDDING, OUTPUT = "embedding", "output"
_BACKWARD = 2
"""Operations backwards for one forwards."""


class _Unit(NamedTuple):
    """A pass through one layer, the embedding or the output."""

    step: int
    passed: Pass
    part: int | str
    is_first: bool
    is_last: bool


class Steps:
    """Writes the steps of a rank.

    Parameters
    ----------
    plan : TrainingPlan
        Who holds what.
    operations : RankOperations
        Where they are written.
    operations_per_ns : float, optional
        Speed of the rank; None: computing takes no time.
    seed : int
        Of the choice of experts.
    """

    def __init__(
        self, plan: TrainingPlan, operations: RankOperations, operations_per_ns: float | None, seed: int
    ) -> None:
        self._plan, self._model, self._config = plan, plan.model, plan.config
        self._out, self._speed, self._seed = operations, operations_per_ns, seed
        self._own = plan.place(operations.rank)
        self._stage = self._own["pipeline"]
        self._tokens = self._config.microbatch * self._model.sequence // plan.context
        self._shared = self._config.parallel.sequence
        self._groups = {
            kind: plan.group(kind, operations.rank)
            for kind in ("tensor", "context", "data", "expert", "expert data")
        }
        self._front: list[int] = []  # what the next computation waits for
        self._exchanged: list[int] = []  # what the next exchange between copies waits for
        self._pending = 0.0  # operations of a computation that is not written yet
        self._key: tuple[Any, ...] = ()
        self._number = 0  # collectives of this key

    def write(self) -> None:
        """Write all steps."""
        for step in range(self._config.steps):
            self._step(step)
            self._front = list(dict.fromkeys([*self._front, *self._exchanged]))

    def _step(self, step: int) -> None:
        order = ORDERS[self._config.stages.schedule]
        passes = order(self._stage, self._plan.stages, self._plan.chunks, self._config.microbatches)
        units = [unit for passed in passes for unit in self._units(step, passed)]
        fully_shared = self._config.gradients.zero == 3
        left = dict.fromkeys(range(self._plan.chunks), self._config.microbatches)
        late: list[tuple[Any, int, int]] = []
        gathered = self._gather(units[0], []) if fully_shared else []
        for number, unit in enumerate(units):
            if fully_shared:
                self._flush()  # what stands before does not wait for these parameters
            before = list(self._front)
            if unit.is_first:
                self._receive(unit)
            if fully_shared:
                self._front += gathered
                following = units[number + 1 : number + 2]
                gathered = self._gather(following[0], before) if following else []
            self._key, self._number = (step, unit.passed, unit.part), 0
            self._compute_unit(unit)
            if unit.is_last:
                self._flush()
                self._send(unit)
                left[unit.passed.chunk] -= not unit.passed.forward
            if not unit.passed.forward and (self._config.gradients.zero >= 2 or left_over(left, unit)):
                self._bucket(unit, late)
        self._flush()
        for key, dense, routed in [*late, *self._tied(step)]:
            self._exchange(key, dense, routed)
        if self._config.gradients.zero in (1, 2):
            self._gather_parameters(step)

    # ---- passes -----------------------------------------------------------------------------------------------------

    def _position(self, chunk: int) -> int:
        """Return the number of a part of this stage among all parts of the model."""
        return chunk * self._plan.stages + self._stage

    def _is_end(self, chunk: int) -> bool:
        return self._position(chunk) == self._plan.stages * self._plan.chunks - 1

    def _parts(self, chunk: int) -> list[int | str]:
        """Return what a part of this stage is made of, forwards."""
        first = self._position(chunk) * self._plan.chunk_layers
        layers: list[int | str] = list(range(first, first + self._plan.chunk_layers))
        begins = [EMBEDDING] if self._position(chunk) == 0 and self._model.embedding_parameters else []
        return [*begins, *layers, *([OUTPUT] if self._is_end(chunk) and self._model.vocabulary else [])]

    def _units(self, step: int, passed: Pass) -> list[_Unit]:
        parts = self._parts(passed.chunk)[:: 1 if passed.forward else -1]
        return [
            _Unit(step, passed, part, number == 0, number == len(parts) - 1) for number, part in enumerate(parts)
        ]

    def _other(self, passed: Pass, *, ahead: bool) -> tuple[int, int] | None:
        """Return the rank with the part after (or before) this one in the model, and the number of that part."""
        position = self._position(passed.chunk) + (1 if ahead else -1)
        if not 0 <= position < self._plan.stages * self._plan.chunks:
            return None
        return self._plan.rank({**self._own, "pipeline": position % self._plan.stages}), position

    def _message_bytes(self) -> int:
        share = self._plan.tensor if self._shared else 1
        return self._bytes(self._tokens // share * self._model.width * self._config.value_bytes)

    def _receive(self, unit: _Unit) -> None:
        passed = unit.passed
        other = self._other(passed, ahead=not passed.forward)
        if other is not None:
            key = unit.step, passed.forward, passed.microbatch, other[1], self._position(passed.chunk)
            self._front.append(self._out.receive(other[0], self._message_bytes(), key, PIPELINE))

    def _send(self, unit: _Unit) -> None:
        passed = unit.passed
        other = self._other(passed, ahead=passed.forward)
        if other is not None:
            key = unit.step, passed.forward, passed.microbatch, self._position(passed.chunk), other[1]
            self._out.send(other[0], self._message_bytes(), key, PIPELINE, self._front)

    # ---- computing and collectives that it waits for ----------------------------------------------------------------

    def _bytes(self, number: float) -> int:
        return max(1, round(number / self._config.shrink)) if number else 0

    def _compute(self, operations: float) -> None:
        self._pending += operations / self._config.shrink

    def _flush(self) -> None:
        """Write the computation that has come together."""
        time = 0 if self._speed is None else round(self._pending / self._speed)
        self._pending = 0.0
        if time:
            self._front = [self._out.compute(time, self._front, COMPUTE)]

    def _together(
        self, operation: str, kind: str, stream: int, blocks: Blocks, *, outward: bool = True
    ) -> None:
        """Write a collective that the next computation waits for."""
        if len(self._groups[kind]) == 1:
            return
        self._flush()
        self._number += 1
        key = (*self._key, self._number)
        self._front = list(self._out.collective(
            operation, self._groups[kind], blocks, key, stream, self._front, outward=outward
        ))

    def _enter(self) -> None:
        """Bring all tokens to the ranks that share matrices."""
        if self._shared:
            self._together("allgather", "tensor", TENSOR, self._activations())

    def _leave(self) -> None:
        """Add up what the ranks that share matrices have found."""
        self._together("reduce_scatter" if self._shared else "allreduce", "tensor", TENSOR, self._activations())

    def _activations(self) -> int:
        return self._bytes(self._tokens * self._model.width * self._config.value_bytes)

    def _compute_unit(self, unit: _Unit) -> None:
        forward = unit.passed.forward
        if unit.part == EMBEDDING:
            if forward:
                self._leave()
            else:
                self._enter()
        elif unit.part == OUTPUT:
            if forward:
                self._enter()
            self._compute(self._matrix(self._model.output_operations) * (1 if forward else _BACKWARD))
            if not forward:
                self._leave()
        else:
            assert isinstance(unit.part, int)
            if forward or self._config.recompute:
                self._attention(forward=True)
                self._feed_forward(unit.part, 1)
            if not forward:
                self._feed_forward(unit.part, _BACKWARD)
                self._attention(forward=False)

    def _matrix(self, operations: float) -> float:
        """Return the operations of a rank for a matrix that `tensor` ranks share, of all its tokens."""
        return self._tokens * operations / self._plan.tensor

    def _attention(self, *, forward: bool) -> None:
        model, times = self._model, 1 if forward else _BACKWARD
        out = self._matrix(2 * model.width * model.width) * times
        inward = self._matrix(model.projection_operations) * times - out
        scores = self._matrix(model.attention_operations) * times
        self._enter()
        if forward:
            self._compute(inward)
            self._share_heads(forward=True, into=True)
            self._compute(scores)
            self._share_heads(forward=True, into=False)
            self._compute(out)
        else:
            self._compute(out)
            self._share_heads(forward=False, into=True)
            self._compute(scores)
            self._share_heads(forward=False, into=False)
            self._compute(inward)
        self._leave()

    def _share_heads(self, *, forward: bool, into: bool) -> None:
        """Exchange what ranks with parts of a sequence need before (`into`) and after the scores of the attention."""
        model, tensor = self._model, self._plan.tensor
        keys_and_values = 2 * max(model.kv_width // tensor, model.head_width)
        value_bytes = self._config.value_bytes
        if self._config.parallel.context_exchange == "all_to_all":
            inward = model.width // tensor + keys_and_values
            values = inward if forward == into else model.width // tensor
            self._together("alltoall", "context", CONTEXT, self._bytes(self._tokens * values * value_bytes))
        elif forward == into:
            whole = self._bytes(self._tokens * self._plan.context * keys_and_values * value_bytes)
            self._together("allgather" if forward else "reduce_scatter", "context", CONTEXT, whole)

    def _feed_forward(self, layer: int, times: int) -> None:
        model = self._model
        if not model.has_experts(layer):
            self._enter()
            self._compute(self._matrix(model.dense_operations) * times)
            self._leave()
            return
        share = self._plan.tensor if self._shared else 1
        tokens = self._tokens // share  # of this rank alone
        self._compute(tokens * model.router_operations * times)
        self._compute(self._matrix(model.shared_experts * model.expert_operations) * times)
        copies = self._copies(layer, tokens * model.experts_per_token)
        blocks = tuple(self._bytes(each * model.width * self._config.value_bytes) for each in copies)
        own = copies[self._groups["expert"].index(self._out.rank)] * self._plan.experts * share
        self._together("alltoall", "expert", EXPERT, blocks)
        arrived = self._bytes(own * model.width * self._config.value_bytes)
        if self._shared:
            self._together("allgather", "tensor", TENSOR, arrived)
        self._compute(own * model.expert_operations / self._plan.tensor * times)
        if self._shared:
            self._together("reduce_scatter", "tensor", TENSOR, arrived)
        self._together("alltoall", "expert", EXPERT, blocks, outward=False)
        if not self._shared:
            self._leave()

    def _copies(self, layer: int, copies: int) -> list[int]:
        """Return how many copies of tokens a rank sends to the experts of each member of its expert group."""
        experts, ranks = self._model.experts, self._plan.experts
        wanted = np.arange(1, experts + 1) ** -self._config.skew
        wanted = np.random.default_rng([self._seed, 7, layer]).permutation(wanted)
        return largest_remainders(wanted.reshape(ranks, -1).sum(axis=1), copies)

    # ---- between copies of the model --------------------------------------------------------------------------------

    def _parameters(self, part: int | str) -> tuple[int, int]:
        """Return the parameters of a part on this rank: dense ones, and those of routed experts."""
        tensor, model = self._plan.tensor, self._model
        if part == EMBEDDING:
            return -(-model.embedding_parameters // tensor), 0
        if part == OUTPUT:
            return -(-model.output_parameters // tensor), 0
        assert isinstance(part, int)
        routed = model.routed_parameters(part) // self._plan.experts
        return -(-model.layer_parameters(part) // tensor), -(-routed // tensor)

    def _bucket(self, unit: _Unit, late: list[tuple[Any, int, int]]) -> None:
        """Exchange the gradients of a bucket that this unit closes, or put that off."""
        parts = self._parts(unit.passed.chunk)[::-1]
        if unit.part == EMBEDDING and self._is_shared_matrix():
            return  # at the end, with the other copy of it
        closed: Sequence[int | str] = [unit.part]
        if isinstance(unit.part, int):
            layers = [part for part in parts if isinstance(part, int)]
            number, size = layers.index(unit.part) + 1, self._config.gradients.bucket_layers
            if number % size and number < len(layers):
                return
            closed = layers[(number - 1) // size * size : number]
        dense, routed = (sum(each) for each in zip(*map(self._parameters, closed), strict=True))
        key = ("gradients", unit.step, unit.passed.microbatch, unit.passed.chunk, unit.part)
        if not self._config.gradients.overlap:
            late.append((key, dense, routed))
            return
        self._flush()
        self._exchange(key, dense, routed)

    def _exchange(self, key: Any, dense: int, routed: int) -> None:
        operation = "reduce_scatter" if self._config.gradients.zero else "allreduce"
        size = self._config.gradients.bytes or self._config.value_bytes
        self._between_copies(operation, key, dense * size, routed * size, self._front)

    def _between_copies(self, operation: str, key: Any, dense: float, routed: float, after: list[int]) -> None:
        """Write collectives that follow those before; computing goes on."""
        for kind, size in (("data", dense), ("expert data", routed)):
            waits = list(dict.fromkeys([*after, *self._exchanged]))
            if size and len(self._groups[kind]) > 1:
                self._exchanged = list(self._out.collective(
                    operation, self._groups[kind], self._bytes(size), (kind, *key), DATA, waits
                ))

    def _gather(self, unit: _Unit, after: list[int]) -> list[int]:
        """Write the gathering of the parameters of a unit (FSDP); return what ends it."""
        size = self._config.value_bytes
        dense, routed = self._parameters(unit.part)
        if unit.part == OUTPUT and self._is_shared_matrix():
            dense += self._parameters(EMBEDDING)[0]  # the copy of the last stage
        key = ("parameters", unit.step, unit.passed, unit.part)
        before = self._exchanged
        self._between_copies("allgather", key, dense * size, routed * size, after)
        return [] if self._exchanged is before else self._exchanged

    def _gather_parameters(self, step: int) -> None:
        """Write the gathering of all parameters after the step of the optimizer (ZeRO stages 1 and 2)."""
        parts = [part for chunk in range(self._plan.chunks) for part in self._parts(chunk)]
        size = self._config.value_bytes
        dense, routed = (sum(each) for each in zip(*map(self._parameters, parts), strict=True))
        if self._is_shared_matrix() and self._is_end(self._plan.chunks - 1):
            dense += self._parameters(EMBEDDING)[0]
        self._between_copies("allgather", ("parameters", step), dense * size, routed * size, self._front)

    def _is_shared_matrix(self) -> bool:
        """Tell whether first and last stage have a copy each of the matrix of embedding and output."""
        return self._model.tied and self._plan.stages > 1 and self._model.vocabulary > 0

    def _tied(self, step: int) -> list[tuple[Any, int, int]]:
        """Add up the gradients of the two copies of a shared matrix; return what is then exchanged."""
        last = self._plan.stages - 1
        if not self._is_shared_matrix() or self._stage not in (0, last):
            return []
        dense, routed = self._parameters(EMBEDDING)
        members = tuple(self._plan.rank({**self._own, "pipeline": stage}) for stage in (0, last))
        size = self._bytes(dense * (self._config.gradients.bytes or self._config.value_bytes))
        waits = list(dict.fromkeys([*self._front, *self._exchanged]))
        self._exchanged = list(self._out.collective("allreduce", members, size, ("tied", step), DATA, waits))
        return [(("tied gradients", step), dense, routed)]


def left_over(left: dict[int, int], unit: _Unit) -> bool:
    """Tell whether a backward unit is of the last microbatch of its part.

    `left` counts the microbatches that have not ended; it is lowered when the last unit of one is written.
    """
    return left[unit.passed.chunk] == (0 if unit.is_last else 1)


def largest_remainders(wanted: "np.ndarray[Any, np.dtype[np.float64]]", whole: int) -> list[int]:
    """Divide a whole number in proportion, in whole numbers.

    Examples
    --------
    >>> largest_remainders(np.array([1.0, 1.0, 2.0]), 10)
    [3, 2, 5]
    """
    exact = wanted / wanted.sum() * whole
    found = np.floor(exact).astype(np.int64)
    order = np.argsort(found - exact, kind="stable")
    found[order[: whole - int(found.sum())]] += 1
    return [int(each) for each in found]



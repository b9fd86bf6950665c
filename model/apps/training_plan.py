"""Which rank holds what of a model, and whether the degrees of parallelism fit it (docs/definitions/training.md)."""

from dataclasses import dataclass
from functools import cached_property

from hopforge.model.apps.calls import AppError
from hopforge.model.apps.language_models import LanguageModel, language_model
from hopforge.model.config.workload import TrainingWorkload

#: degrees whose product is the number of ranks
AXES = ("tensor", "context", "data", "pipeline")


@dataclass(frozen=True)
class TrainingPlan:
    """A model on ranks.

    Attributes
    ----------
    config : TrainingWorkload
        The section.
    model : LanguageModel
        Its sizes.
    data : int
        Copies of the model.
    """

    config: TrainingWorkload
    model: LanguageModel
    data: int

    @cached_property
    def degrees(self) -> dict[str, int]:
        """Degree of each axis, the fastest one of rank numbers first."""
        parallel = self.config.parallel
        return {axis: self.data if axis == "data" else getattr(parallel, axis) for axis in parallel.order}

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        count = 1
        for degree in self.degrees.values():
            count *= degree
        return count

    @property
    def tensor(self) -> int:
        """Ranks that share matrices."""
        return self.config.parallel.tensor

    @property
    def context(self) -> int:
        """Ranks that share a sequence."""
        return self.config.parallel.context

    @property
    def stages(self) -> int:
        """Stages of the pipeline."""
        return self.config.parallel.pipeline

    @property
    def experts(self) -> int:
        """Ranks that share the experts of a layer."""
        return self.config.parallel.expert

    @property
    def chunks(self) -> int:
        """Parts of the model that a stage holds."""
        return self.config.stages.virtual_stages

    @property
    def chunk_layers(self) -> int:
        """Layers of a part."""
        return self.model.layers // (self.stages * self.chunks)

    def place(self, rank: int) -> dict[str, int]:
        """Return the number of a rank on each axis.

        Examples
        --------
        Of ``tensor: 2, data: 3`` rank 3 is number 1 of its tensor group and number 1 of its data group.
        """
        found = {}
        for axis, degree in self.degrees.items():
            rank, found[axis] = divmod(rank, degree)
        return found

    def rank(self, place: dict[str, int]) -> int:
        """Return the rank with such numbers."""
        number, stride = 0, 1
        for axis, degree in self.degrees.items():
            number += place[axis] * stride
            stride *= degree
        return number

    def group(self, kind: str, rank: int) -> tuple[int, ...]:
        """Return the ranks with which a rank has collectives of a kind, in their order.

        ``tensor``, ``context``; ``data``: copies of the dense parameters (data × context); ``expert``: who shares the
        experts, neighbours on the data axis; ``expert data``: copies of the same experts.
        """
        own = self.place(rank)
        if kind in ("tensor", "context"):
            return tuple(self.rank({**own, kind: n}) for n in range(self.degrees[kind]))
        first = own["data"] - own["data"] % self.experts
        if kind == "expert":
            return tuple(self.rank({**own, "data": first + n}) for n in range(self.experts))
        step = self.experts if kind == "expert data" else 1
        return tuple(
            self.rank({**own, "data": data, "context": context})
            for data in range(own["data"] % step, self.data, step) for context in range(self.context)
        )


def training_plan(config: TrainingWorkload, hosts: int) -> TrainingPlan:
    """Return who holds what.

    Parameters
    ----------
    config : TrainingWorkload
        With `model` or `sizes`.
    hosts : int
        Hosts of the network: the number of ranks if neither `ranks` nor `parallel.data` says it.

    Raises
    ------
    AppError
        Degrees that do not fit the ranks or the model.
    """
    parallel = config.parallel
    rest = parallel.tensor * parallel.context * parallel.pipeline
    words = " × ".join(f"{axis} {getattr(parallel, axis)}" for axis in AXES if axis != "data")
    if parallel.data is None:
        ranks = hosts if config.ranks is None else config.ranks
        if ranks % rest:
            raise AppError(f"workload.parallel: {words} = {rest} must divide the {ranks} ranks")
        data = ranks // rest
    else:
        data = parallel.data
        if config.ranks not in (None, data * rest):
            raise AppError(
                f"workload.parallel: {words} × data {data} = {data * rest} must be the number of ranks={config.ranks}"
            )
    plan = TrainingPlan(config, language_model(config.model, config.sizes), data)
    for check in (_check_stages, _check_heads, _check_tokens, _check_experts):
        check(plan)
    return plan


def _divides(key: str, value: int, what: str, whole: int) -> None:
    if whole % value:
        raise AppError(f"workload.{key}: must divide {what}={whole}, not {value}")


def _check_stages(plan: TrainingPlan) -> None:
    layers, stages, chunks = plan.model.layers, plan.stages, plan.chunks
    if layers % (stages * chunks):
        parts = f"{stages} stages" + (f" × {chunks} virtual stages" if chunks > 1 else "")
        raise AppError(f"workload.parallel.pipeline: {layers} layers must be a multiple of {parts}")
    if chunks > 1:
        if stages == 1:
            raise AppError("workload.stages.schedule: interleaved needs pipeline of at least 2, not 1")
        if plan.config.microbatches % stages:
            raise AppError(
                f"workload.microbatches: must be a multiple of pipeline={stages} with schedule=interleaved, not"
                f" {plan.config.microbatches}"
            )


def _check_heads(plan: TrainingPlan) -> None:
    model, tensor, context = plan.model, plan.tensor, plan.context
    _divides("parallel.tensor", tensor, "heads", model.heads)
    if model.kv_heads % tensor and tensor % model.kv_heads:
        raise AppError(
            f"workload.parallel.tensor: must divide kv_heads={model.kv_heads} or be a multiple of it, not {tensor}"
        )
    _divides("parallel.tensor", tensor, "feed_forward", model.feed_forward)
    if model.experts:
        _divides("parallel.tensor", tensor, "expert_feed_forward", model.expert_feed_forward)
    if plan.config.parallel.context_exchange == "all_to_all":
        for key in ("heads", "kv_heads"):
            own = max(1, getattr(model, key) // tensor)
            _divides("parallel.context", context, f"{key} of a rank", own)


def _check_tokens(plan: TrainingPlan) -> None:
    sequence = plan.model.sequence
    _divides("parallel.context", plan.context, "sequence", sequence)
    if plan.config.parallel.sequence:
        tokens = sequence // plan.context
        _divides("parallel.tensor", plan.tensor, "tokens of a sequence on a rank", tokens)


def _check_experts(plan: TrainingPlan) -> None:
    model, expert = plan.model, plan.experts
    if not model.experts:
        if expert > 1:
            raise AppError(f"workload.parallel.expert: must be 1 for a model without experts, not {expert}")
        if plan.config.skew:
            raise AppError("workload.skew: is for models with experts only, this one has none")
        return
    _divides("parallel.expert", expert, "experts", model.experts)
    _divides("parallel.expert", expert, "data", plan.data)

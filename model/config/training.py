"""Sections of a training program that is a graph: sizes of the model, degrees of parallelism, stages, gradients."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from hopforge.model.config.base import Problem, Section

Count = Annotated[int, Field(ge=1, le=1 << 30)]
Some = Annotated[int, Field(ge=0, le=1 << 30)]
Degree = Annotated[int, Field(ge=1, le=1 << 20)]
Axis = Literal["tensor", "context", "data", "pipeline"]


class SizesConfig(Section):
    """Sizes of a transformer; those that are left out are those of `model`."""

    layers: Annotated[int, Field(ge=1, le=10000)] | None = None
    """Layers."""
    width: Count | None = None
    """Values of a token between layers."""
    heads: Count | None = None
    """Heads of the attention."""
    kv_heads: Count | None = None
    """Heads of keys and values (default: `heads`)."""
    feed_forward: Count | None = None
    """Values inside the feed-forward part."""
    gated: bool | None = None
    """The feed-forward part has three matrices, as with SwiGLU, not two."""
    vocabulary: Some | None = None
    """Words; 0: neither embedding nor output."""
    sequence: Count | None = None
    """Tokens of a sequence."""
    tied: bool | None = None
    """Embedding and output are the same matrix."""
    biases: bool | None = None
    """Matrices and norms have biases."""
    learned_positions: bool | None = None
    """Positions are parameters."""
    experts: Some | None = None
    """Routed experts of a layer; 0: none."""
    experts_per_token: Some | None = None
    """Routed experts that a token goes to."""
    shared_experts: Some | None = None
    """Experts that every token goes to."""
    expert_feed_forward: Some | None = None
    """Values inside an expert (default: `feed_forward`)."""
    dense_layers: Some | None = None
    """First layers without experts."""


class ParallelConfig(Section):
    """How many ranks share what; the product of data, tensor, pipeline and context is the number of ranks."""

    data: Degree | None = None
    """Copies of the model, each with sequences of its own (default: what `ranks` leaves)."""
    tensor: Degree = 1
    """Ranks that share every matrix of a layer."""
    pipeline: Degree = 1
    """Stages."""
    context: Degree = 1
    """Ranks that share every sequence."""
    expert: Degree = 1
    """Ranks that share the experts of a layer; divides `data`."""
    sequence: bool = False
    """Between matrices the ranks of `tensor` share the tokens: reduce-scatter and all-gather in place of all-reduce."""
    context_exchange: Literal["gather", "all_to_all"] = "gather"
    """Attention over a shared sequence: keys and values are gathered, or heads are exchanged for tokens."""
    order: tuple[Axis, Axis, Axis, Axis] = ("tensor", "context", "data", "pipeline")
    """Which degree counts fastest in the number of a rank."""

    def problems(self) -> Iterator[Problem]:
        """Check that every degree has its place, and that keys have an effect."""
        if len(set(self.order)) < len(self.order):
            yield Problem("order", f"must name tensor, context, data and pipeline once each, not {list(self.order)}")
        if self.sequence and self.tensor == 1:
            yield Problem("sequence", "has no effect with tensor=1")
        if self.context_exchange != "gather" and self.context == 1:
            yield Problem("context_exchange", "has no effect with context=1")


class StagesConfig(Section):
    """The order in which a stage takes microbatches."""

    schedule: Literal["gpipe", "1f1b", "interleaved"] = "1f1b"
    """All forwards, then all backwards; one forwards, one backwards; the same with `virtual_stages`."""
    virtual_stages: Annotated[int, Field(ge=1, le=10000)] = 1
    """For `interleaved`: parts of the model that each stage holds."""

    def problems(self) -> Iterator[Problem]:
        """Check that virtual stages are there exactly if they take effect."""
        if self.virtual_stages > 1 and self.schedule != "interleaved":
            yield Problem("virtual_stages", f"is for schedule=interleaved only, not schedule={self.schedule}")
        if self.virtual_stages == 1 and self.schedule == "interleaved":
            yield Problem("virtual_stages", "must be at least 2 with schedule=interleaved, not 1")


class GradientsConfig(Section):
    """How gradients and parameters go between copies of the model."""

    zero: Annotated[int, Field(ge=0, le=3)] = 0
    """Stage of ZeRO: nothing (0), states of the optimizer (1), gradients too (2), parameters too (3, FSDP) are
    shared."""
    bucket_layers: Annotated[int, Field(ge=1, le=10000)] = 1
    """Layers whose gradients are exchanged together."""
    overlap: bool = True
    """A bucket is exchanged while the backward pass goes on; else all of them when it has ended."""
    bytes: Annotated[int, Field(ge=1, le=8)] | None = None
    """Of a gradient (default: `value_bytes`)."""

    def problems(self) -> Iterator[Problem]:
        """Check that parameters that are shared are exchanged layer by layer."""
        if self.zero == 3 and self.bucket_layers > 1:
            yield Problem("bucket_layers", f"must be 1 with zero=3, which gathers layers, not {self.bucket_layers}")
        if self.zero == 3 and not self.overlap:
            yield Problem("overlap", "must be true with zero=3")


class LevelsConfig(Section):
    """All-reduce, all-gather and reduce-scatter in several levels, each with the algorithm of `collectives`."""

    kind: Literal["flat", "groups", "torus"] = "flat"
    """One level; first among neighbours in rank, then among such groups (hierarchical); one for each dimension of a
    mesh or torus on which the ranks are placed."""
    ranks: Annotated[int, Field(ge=2, le=1 << 20)] | None = None
    """For `kind: groups`: ranks of a group."""

    def problems(self) -> Iterator[Problem]:
        """Check that groups have a size, and nothing else has."""
        if self.kind == "groups" and self.ranks is None:
            yield Problem("ranks", "missing; kind=groups needs it")
        if self.kind != "groups" and self.ranks is not None:
            yield Problem("ranks", f"is for kind=groups only, not kind={self.kind}")

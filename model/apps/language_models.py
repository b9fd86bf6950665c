"""Sizes of transformers by name, and what follows from them: parameters, and operations of a token.

docs/definitions/training.md has every formula. Sizes are those that the models' authors publish with them.
"""

import csv
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any

from hopforge.model.apps.calls import AppError
from hopforge.model.config.base import suggestion
from hopforge.model.config.training import SizesConfig

#: operations of a weight for a token: a multiplication and an addition
_PER_WEIGHT = 2


@dataclass(frozen=True)
class LanguageModel:
    """Sizes of a transformer, as in section `workload.sizes`."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    feed_forward: int
    gated: bool
    vocabulary: int
    sequence: int
    tied: bool
    biases: bool
    learned_positions: bool
    experts: int
    experts_per_token: int
    shared_experts: int
    expert_feed_forward: int
    dense_layers: int

    @property
    def head_width(self) -> int:
        """Values of a head."""
        return self.width // self.heads

    @property
    def kv_width(self) -> int:
        """Values of all keys of a token, and of all values."""
        return self.kv_heads * self.head_width

    def has_experts(self, layer: int) -> bool:
        """Tell whether the feed-forward part of a layer is made of experts."""
        return self.experts > 0 and layer >= self.dense_layers

    @property
    def _matrices(self) -> int:
        return 3 if self.gated else 2

    @property
    def attention_weights(self) -> int:
        """Weights of the projections of a layer: queries and output, keys and values."""
        return 2 * self.width * self.width + 2 * self.width * self.kv_width

    @property
    def dense_weights(self) -> int:
        """Weights of a dense feed-forward part."""
        return self._matrices * self.width * self.feed_forward

    @property
    def expert_weights(self) -> int:
        """Weights of one expert."""
        return self._matrices * self.width * self.expert_feed_forward

    @property
    def router_weights(self) -> int:
        """Weights that choose experts."""
        return self.width * self.experts

    @property
    def small_parameters(self) -> int:
        """Norms of a layer, and its biases if it has some."""
        if not self.biases:
            return 2 * self.width
        return 4 * self.width + 2 * self.width + 2 * self.kv_width + self.feed_forward + self.width

    def layer_parameters(self, layer: int) -> int:
        """Return the parameters of a layer without its routed experts."""
        if not self.has_experts(layer):
            return self.attention_weights + self.dense_weights + self.small_parameters
        shared = self.shared_experts * self.expert_weights
        return self.attention_weights + self.router_weights + shared + self.small_parameters

    def routed_parameters(self, layer: int) -> int:
        """Return the parameters of all routed experts of a layer."""
        return self.experts * self.expert_weights if self.has_experts(layer) else 0

    @property
    def embedding_parameters(self) -> int:
        """Of the embedding, and of learned positions."""
        return self.vocabulary * self.width + (self.sequence * self.width if self.learned_positions else 0)

    @property
    def output_parameters(self) -> int:
        """Of the output: the last norm, and a matrix of its own unless it is that of the embedding."""
        own = 0 if self.tied else self.vocabulary * self.width
        return own + self.width * (2 if self.biases else 1)

    @property
    def parameters(self) -> int:
        """All parameters."""
        layers = sum(self.layer_parameters(n) + self.routed_parameters(n) for n in range(self.layers))
        return layers + self.embedding_parameters + self.output_parameters

    # operations forwards, of one token; backwards twice as many

    @property
    def projection_operations(self) -> int:
        """Of the projections of a layer."""
        return _PER_WEIGHT * self.attention_weights

    @property
    def attention_operations(self) -> int:
        """Of scores and weighted sums of a token with the whole sequence (no half left out for causality)."""
        return 2 * _PER_WEIGHT * self.sequence * self.width

    @property
    def dense_operations(self) -> int:
        """Of a dense feed-forward part."""
        return _PER_WEIGHT * self.dense_weights

    @property
    def expert_operations(self) -> int:
        """Of one expert."""
        return _PER_WEIGHT * self.expert_weights

    @property
    def router_operations(self) -> int:
        """Of the choice of experts."""
        return _PER_WEIGHT * self.router_weights

    @property
    def output_operations(self) -> int:
        """Of the output, one value for each word of the vocabulary."""
        return _PER_WEIGHT * self.vocabulary * self.width


@cache
def known_models() -> dict[str, LanguageModel]:
    """Return the models of `language_models.csv` by name."""
    text = (resources.files("hopforge.model.apps") / "language_models.csv").read_text(encoding="utf-8")
    found = {}
    for row in csv.DictReader(text.splitlines()):
        values = {each.name: row[each.name] for each in fields(LanguageModel)}
        numbers: dict[str, Any] = {
            key: value == "yes" if value in ("yes", "no") else int(value) for key, value in values.items()
        }
        found[row["name"]] = LanguageModel(**numbers)
    return found


_NEEDED = ("layers", "width", "heads", "feed_forward", "vocabulary", "sequence")


def language_model(name: str | None, sizes: SizesConfig) -> LanguageModel:
    """Return a model by its name, with the sizes that a file changes.

    Without a name all of `layers`, `width`, `heads`, `feed_forward`, `vocabulary` and `sequence` are needed.

    Raises
    ------
    AppError
        An unknown name, a size that is missing, or sizes that do not fit each other.
    """
    models = known_models()
    if name is not None and name not in models:
        raise AppError(f"workload.model: unknown {name!r}; {suggestion(name, models)}")
    own = {key: value for key, value in sizes.model_dump().items() if value is not None}
    if name is None:
        missing = [key for key in _NEEDED if key not in own]
        if missing:
            raise AppError(f"workload.sizes.{missing[0]}: missing, as workload.model names no model")
        base: dict[str, Any] = dict.fromkeys((each.name for each in fields(LanguageModel)), 0)
        base["kv_heads"] = own["heads"]
        base |= {key: False for key in ("tied", "biases", "learned_positions")} | {"gated": True}
        if own.get("experts"):
            base |= {"experts_per_token": 1, "expert_feed_forward": own["feed_forward"]}
    else:
        base = {each.name: getattr(models[name], each.name) for each in fields(LanguageModel)}
        if "heads" in own and models[name].kv_heads == models[name].heads:
            base["kv_heads"] = own["heads"]
    model = LanguageModel(**base | own)
    _check(model)
    return model


def _check(model: LanguageModel) -> None:
    for key, limit in (("heads", "width"), ("kv_heads", "heads")):
        value, whole = getattr(model, key), getattr(model, limit)
        if whole % value:
            raise AppError(f"workload.sizes.{key}: must divide {limit}={whole}, not {value}")
    if model.dense_layers > model.layers:
        raise AppError(f"workload.sizes.dense_layers: must be at most layers={model.layers}, not {model.dense_layers}")
    if not model.experts:
        for key in ("experts_per_token", "shared_experts", "expert_feed_forward", "dense_layers"):
            if getattr(model, key):
                raise AppError(f"workload.sizes.{key}: is for models with experts only, this one has none")
        return
    if not 1 <= model.experts_per_token <= model.experts:
        raise AppError(
            f"workload.sizes.experts_per_token: must be from 1 to experts={model.experts}, not"
            f" {model.experts_per_token}"
        )
    if not model.expert_feed_forward:
        raise AppError("workload.sizes.expert_feed_forward: missing, as the model has experts")

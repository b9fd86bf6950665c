"""Widths of an agent's network and where its variables lie in one vector of weights."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["VARIABLES", "NetworkShape"]

#: in the order in which they lie in the vector; W[in][out] row by row, each followed by its bias
VARIABLES = ("W1", "b1", "W2", "b2", "WA1", "bA1", "WA2", "bA2", "WV1", "bV1", "WV2", "bV2")
MOST_DIMENSIONS = 4
MOST_WIDTH = 4096


@dataclass(frozen=True)
class NetworkShape:
    """Widths of the layers (docs/definitions/dqn.md#network).

    Attributes
    ----------
    inputs, actions : int
        Of the network: 6n + 1 and 2n on a torus or mesh of n dimensions.
    first, second : int
        Units of the two tanh layers.
    head : int
        Units of the hidden layer of each head.

    Raises
    ------
    ValueError
        A width that is no width.

    Examples
    --------
    >>> NetworkShape.of_grid(2).weights
    202245
    """

    inputs: int
    first: int
    second: int
    head: int
    actions: int

    def __post_init__(self) -> None:
        for name in ("inputs", "first", "second", "head", "actions"):
            width = getattr(self, name)
            if not 1 <= width <= MOST_WIDTH:
                raise ValueError(f"{name} must be 1 … {MOST_WIDTH}, not {width}")

    @classmethod
    def of_grid(cls, dimensions: int, first: int = 256, second: int = 256, head: int = 256) -> "NetworkShape":
        """Return the shape for a torus or mesh."""
        if not 1 <= dimensions <= MOST_DIMENSIONS:
            raise ValueError(f"DQN routing takes 1 … {MOST_DIMENSIONS} dimensions, not {dimensions}")
        return cls(6 * dimensions + 1, first, second, head, 2 * dimensions)

    @cached_property
    def widths(self) -> NDArray[np.int64]:
        """Inputs, first, second, head, actions: int64[5], what kernels take."""
        return np.array([self.inputs, self.first, self.second, self.head, self.actions])

    @cached_property
    def variables(self) -> dict[str, tuple[int, ...]]:
        """Shape of each variable."""
        ends = {
            "1": (self.inputs, self.first), "2": (self.first, self.second),
            "A1": (self.second, self.head), "A2": (self.head, self.actions),
            "V1": (self.second, self.head), "V2": (self.head, 1),
        }  # fmt: skip
        return {name: ends[name[1:]] if name[0] == "W" else ends[name[1:]][1:] for name in VARIABLES}

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each variable begins in the vector, and its length at the end: int64[13]."""
        return np.cumsum([0, *(int(np.prod(shape)) for shape in self.variables.values())])

    @property
    def weights(self) -> int:
        """Length of the vector."""
        return int(self.starts[-1])

    def split(self, vector: NDArray[np.floating]) -> dict[str, NDArray[np.floating]]:
        """Return the variables of a vector of weights, without copies."""
        parts = zip(self.variables.items(), self.starts, self.starts[1:], strict=False)
        return {name: vector[begin:end].reshape(shape) for (name, shape), begin, end in parts}

    def joined(self, variables: dict[str, NDArray[np.floating]]) -> NDArray[np.float64]:
        """Return the vector of these variables."""
        return np.concatenate([np.asarray(variables[name], np.float64).ravel() for name in VARIABLES])

    def drawn(self, generator: np.random.Generator, bias: float = 0.0) -> NDArray[np.float64]:
        """Draw a vector of weights: uniform up to √(6 / (in + out)), biases up to `bias`."""
        parts = []
        for name, shape in self.variables.items():
            limit = np.sqrt(6 / sum(shape)) if name[0] == "W" else bias
            parts.append((2 * generator.random(int(np.prod(shape))) - 1) * limit)
        return np.concatenate(parts)

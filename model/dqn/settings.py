"""Settings of a DQN agent, their defaults and their limits."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

__all__ = ["AgentSettings", "Exploration"]

Exploration = Literal["configuration", "text", "none", "late"]

_WHOLE = {
    "replay": (1, 10**7), "batch": (1, 1 << 16), "learning_starts": (0, 10**9), "train_every": (1, 10**9),
    "target_every": (1, 10**9), "restart_window": (1, 10**9),
}  # fmt: skip


@dataclass(frozen=True)
class AgentSettings:
    """How an agent learns (docs/definitions/dqn.md#agent); the defaults are those of the seed.

    Attributes
    ----------
    learning_rate, beta1, beta2, epsilon : float
        Of Adam.
    clip_norm : float
        Largest norm of the gradient of a variable.
    replay : int
        Samples that are kept.
    batch : int
        Samples of a training step.
    learning_starts, train_every : int
        A training step after stored sample k if k ≥ the first and k is a multiple of the second; the first 0: never.
    target_every : int
        Decisions between two copies to the target network.
    gamma : float
        Discount of `bootstrap`.
    bootstrap : bool
        The target of a sample is its reward plus the discounted estimate of the next router's agent.
    exploration : {"configuration", "text", "none", "late"}
        Schedule of ε.
    restart_below : float
        An agent begins anew when its mean Q falls below this share of its greatest; 0: never.
    restart_window : int
        Decisions of such a mean.

    Raises
    ------
    ValueError
        A setting beyond its limits.
    """

    learning_rate: float = 5e-4
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    clip_norm: float = 40.0
    replay: int = 50_000
    batch: int = 32
    learning_starts: int = 1000
    train_every: int = 4
    target_every: int = 500
    gamma: float = 0.99
    bootstrap: bool = False
    exploration: Exploration = "configuration"
    restart_below: float = 0.0
    restart_window: int = 1000

    def __post_init__(self) -> None:
        for name in ("learning_rate", "epsilon", "clip_norm"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a number > 0, not {value}")
        for name in ("beta1", "beta2", "gamma", "restart_below"):
            value = getattr(self, name)
            if not 0 <= value < 1 and not (name == "gamma" and value == 1):
                raise ValueError(f"{name} must be 0 … {'1' if name == 'gamma' else 'below 1'}, not {value}")
        for name, (least, most) in _WHOLE.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise ValueError(f"{name} must be {least} … {most}, not {value}")
        if self.exploration not in get_args(Exploration):
            known = ", ".join(get_args(Exploration))
            raise ValueError(f"exploration must be one of {known}, not {self.exploration!r}")

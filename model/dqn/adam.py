"""Clipping per variable, and Adam in the form of TensorFlow 1: ε is added to the root that is not corrected."""

import math
from typing import Any

from hopforge.model.dqn.dense import compiled, part

__all__ = ["adam_step", "clip", "step_size"]

LANES = 16


@part
def _norm(g: Any, begin: int, end: int, lanes: Any) -> float:
    """Euclidean norm of a part of a vector, in sixteen sums side by side."""
    lanes[:] = 0
    whole = begin + (end - begin) // LANES * LANES
    for k in range(begin, whole, LANES):
        for j in range(LANES):
            lanes[j] += g[k + j] * g[k + j]
    total = 0.0
    for j in range(LANES):
        total += lanes[j]
    for k in range(whole, end):
        total += g[k] * g[k]
    return math.sqrt(total)


@compiled
def clip(g: Any, starts: Any, limit: float, norms: Any, lanes: Any) -> bool:
    """Scale every variable whose norm is above `limit` down to it; return whether all norms are numbers.

    `norms` (float64[variables]) gets the norms before; `lanes` (float[16]) is scratch.
    """
    sound = True
    for n in range(len(starts) - 1):
        norms[n] = _norm(g, starts[n], starts[n + 1], lanes)
        sound &= math.isfinite(norms[n])
        if norms[n] > limit:
            factor = g.dtype.type(limit / norms[n])
            for k in range(starts[n], starts[n + 1]):
                g[k] *= factor
    return sound


@part
def step_size(rate: float, beta1: float, beta2: float, step: int) -> float:
    """Return lr · √(1 − β2^t) / (1 − β1^t) of training step t = 1, 2, …."""
    return rate * math.sqrt(1 - beta2**step) / (1 - beta1**step)


@part
def adam_step(w: Any, m: Any, v: Any, g: Any, rate: Any, beta1: Any, beta2: Any, epsilon: Any) -> bool:
    """Move the weights; return whether they are all numbers. The scalars are of the type of the weights."""
    one = w.dtype.type(1)
    keep1, keep2 = one - beta1, one - beta2
    wrong = 0
    for k in range(len(w)):
        m[k] = beta1 * m[k] + keep1 * g[k]
        v[k] = beta2 * v[k] + keep2 * (g[k] * g[k])
        w[k] -= rate * m[k] / (math.sqrt(v[k]) + epsilon)
        wrong |= 0 if abs(w[k]) < 3e38 else 1
    return wrong == 0

"""From observations to Q values: two tanh layers, then a head for the advantages and one for the value."""

from typing import Any

from hopforge.model.dqn.dense import add_bias, add_product, compiled, hyperbolic, part, rectified

__all__ = ["forward", "greedy", "layer_views", "weight_views"]


@part
def weight_views(w: Any, widths: Any) -> Any:
    """Split a vector of weights: W1 b1 W2 b2 WA1 bA1 WA2 bA2 WV1 bV1 WV2 bV2."""
    n, h1, h2, head, actions = widths
    e = n * h1
    W1, b1 = w[:e].reshape((n, h1)), w[e : e + h1]
    s = e + h1
    e = s + h1 * h2
    W2, b2 = w[s:e].reshape((h1, h2)), w[e : e + h2]
    s = e + h2
    e = s + h2 * head
    WA1, bA1 = w[s:e].reshape((h2, head)), w[e : e + head]
    s = e + head
    e = s + head * actions
    WA2, bA2 = w[s:e].reshape((head, actions)), w[e : e + actions]
    s = e + actions
    e = s + h2 * head
    WV1, bV1 = w[s:e].reshape((h2, head)), w[e : e + head]
    s = e + head
    e = s + head
    return W1, b1, W2, b2, WA1, bA1, WA2, bA2, WV1, bV1, w[s:e].reshape((head, 1)), w[e : e + 1]


@compiled
def layer_views(work: Any, widths: Any, rows: int) -> Any:
    """Places in the scratch vector for the outputs of all layers: h1, h2, both heads' hidden layers, Q and value."""
    _, h1, h2, head, actions = widths
    e1 = rows * h1
    e2 = e1 + rows * h2
    e3 = e2 + rows * head
    e4 = e3 + rows * head
    e5 = e4 + rows * actions
    return (
        work[:e1].reshape((rows, h1)),
        work[e1:e2].reshape((rows, h2)),
        work[e2:e3].reshape((rows, head)),
        work[e3:e4].reshape((rows, head)),
        work[e4:e5].reshape((rows, actions)),
        work[e5 : e5 + rows].reshape((rows, 1)),
    )


@compiled
def forward(w: Any, widths: Any, observations: Any, work: Any) -> Any:
    """Return Q[row, action] of the observations[row, input].

    `work` (at least rows · (first + second + 2 head + actions + 1) entries) keeps the outputs of all layers.
    """
    W1, b1, W2, b2, WA1, bA1, WA2, bA2, WV1, bV1, WV2, bV2 = weight_views(w, widths)
    h1, h2, a1, v1, q, v = layer_views(work, widths, observations.shape[0])
    add_bias(b1, h1)
    add_product(observations, W1, h1)
    hyperbolic(h1)
    add_bias(b2, h2)
    add_product(h1, W2, h2)
    hyperbolic(h2)
    add_bias(bA1, a1)
    add_product(h2, WA1, a1)
    rectified(a1)
    add_bias(bV1, v1)
    add_product(h2, WV1, v1)
    rectified(v1)
    add_bias(bA2, q)
    add_product(a1, WA2, q)
    add_bias(bV2, v)
    add_product(v1, WV2, v)
    for i in range(q.shape[0]):
        mean = q[i, 0]
        for j in range(1, q.shape[1]):
            mean += q[i, j]
        mean /= q.shape[1]
        for j in range(q.shape[1]):
            q[i, j] = v[i, 0] + (q[i, j] - mean)
    return q


@compiled
def greedy(q: Any, allowed: int) -> int:
    """Return the action of the largest Q among those whose bit in `allowed` is set; the lowest number wins a tie."""
    best = -1
    for j in range(q.shape[0]):
        if (allowed >> j) & 1 and (best < 0 or q[j] > q[best]):
            best = j
    return best

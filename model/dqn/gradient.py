"""Gradient of the loss of a batch: Huber loss of Q(s, a) − target, averaged over the batch."""

import math
from typing import Any

from hopforge.model.dqn.dense import add_product, compiled, part, transpose
from hopforge.model.dqn.forward import forward, layer_views, weight_views

__all__ = ["loss_and_gradient", "work_size"]


def work_size(widths: Any, rows: int) -> int:
    """Entries of the scratch vector for a batch: layers, their derivatives, a transposed layer and a matrix."""
    n, h1, h2, head, actions = (int(width) for width in widths)
    layers = h1 + h2 + 2 * head + actions + 1
    return rows * (2 * layers + max(n, h1, h2, head)) + max(h1 * h2, h2 * head, head * actions)


@part
def _weight_gradient(x: Any, dy: Any, turned: Any, dw: Any, db: Any) -> None:
    """Gradients of a layer y = x W + b from that of y; `turned` is scratch."""
    rows = x.shape[0]
    xt = turned[: x.size].reshape((x.shape[1], rows))
    transpose(x, xt)
    dw[:, :] = 0
    add_product(xt, dy, dw)
    db[:] = 0
    for i in range(rows):
        for j in range(db.shape[0]):
            db[j] += dy[i, j]


@part
def _add_input_gradient(dy: Any, w: Any, turned: Any, dx: Any) -> None:
    """Add dy · Wᵀ to dx; `turned` is scratch."""
    wt = turned[: w.size].reshape((w.shape[1], w.shape[0]))
    transpose(w, wt)
    add_product(dy, wt, dx)


@part
def _through_tanh(h: Any, dh: Any) -> None:
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            dh[i, j] *= 1 - h[i, j] * h[i, j]


@part
def _through_relu(h: Any, dh: Any) -> None:
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            dh[i, j] = dh[i, j] if h[i, j] > 0 else 0 * dh[i, j]


@part
def _loss(q: Any, actions: Any, targets: Any, da: Any, dv: Any) -> float:
    """Return the mean Huber loss, and put its derivatives by advantages and values into `da` and `dv`."""
    rows, count = q.shape
    total = 0.0
    for i in range(rows):
        error = q[i, actions[i]] - targets[i]
        total += 0.5 * error * error if abs(error) <= 1 else abs(error) - 0.5
        slope = min(max(error, -1.0), 1.0) if error == error else error  # noqa: PLR0124 - not a number stays so
        slope /= rows
        dv[i, 0] = slope
        for j in range(count):
            da[i, j] = ((1 if j == actions[i] else 0) - 1 / count) * slope
    return total / rows


@compiled
def loss_and_gradient(w: Any, widths: Any, observations: Any, actions: Any, targets: Any, work: Any, g: Any) -> float:
    """Return the loss of a batch, and put its gradient into the vector `g`.

    Parameters
    ----------
    w, g : float[weights]
        Weights and gradient.
    widths : int64[5]
        Of the layers.
    observations : float[row, input]
    actions : int32[row]
    targets : float[row]
        Constants: nothing flows back through them.
    work : float[work_size]
        Scratch.
    """
    rows = observations.shape[0]
    forward(w, widths, observations, work)
    h1, h2, a1, v1, q, v = layer_views(work, widths, rows)
    size = h1.size + h2.size + a1.size + v1.size + q.size + v.size
    d1, d2, da1, dv1, da, dv = layer_views(work[size:], widths, rows)
    turned = work[2 * size :]
    loss = _loss(q, actions, targets, da, dv)
    _, _, W2, _, WA1, _, WA2, _, WV1, _, WV2, _ = weight_views(w, widths)
    gW1, gb1, gW2, gb2, gWA1, gbA1, gWA2, gbA2, gWV1, gbV1, gWV2, gbV2 = weight_views(g, widths)
    _weight_gradient(a1, da, turned, gWA2, gbA2)
    da1[:, :] = 0
    _add_input_gradient(da, WA2, turned, da1)
    _through_relu(a1, da1)
    _weight_gradient(v1, dv, turned, gWV2, gbV2)
    dv1[:, :] = 0
    _add_input_gradient(dv, WV2, turned, dv1)
    _through_relu(v1, dv1)
    _weight_gradient(h2, da1, turned, gWA1, gbA1)
    _weight_gradient(h2, dv1, turned, gWV1, gbV1)
    d2[:, :] = 0
    _add_input_gradient(da1, WA1, turned, d2)
    _add_input_gradient(dv1, WV1, turned, d2)
    _through_tanh(h2, d2)
    _weight_gradient(h1, d2, turned, gW2, gb2)
    d1[:, :] = 0
    _add_input_gradient(d2, W2, turned, d1)
    _through_tanh(h1, d1)
    _weight_gradient(observations, d1, turned, gW1, gb1)
    return loss if math.isfinite(loss) else math.nan

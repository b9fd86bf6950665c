"""The same formulas written for JAX, which differentiates them by itself: gradients, and weights after 1000 steps."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopforge.model.dqn.gradient import loss_and_gradient, work_size
from hopforge.model.dqn.shape import VARIABLES

sys.path.insert(0, str(Path(__file__).parent))
from dqn_cases import agent_with, cases, seed_weights, step_on_pool, weights_of

jax = pytest.importorskip("jax", reason="the package jax (extra dev) is not installed")


@pytest.fixture(autouse=True)
def _doubles():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def loss(parts: dict[str, Any], observations: Any, actions: Any, targets: Any) -> Any:
    jnp = jax.numpy
    h = jnp.tanh(jnp.tanh(observations @ parts["W1"] + parts["b1"]) @ parts["W2"] + parts["b2"])
    advantage = jax.nn.relu(h @ parts["WA1"] + parts["bA1"]) @ parts["WA2"] + parts["bA2"]
    value = jax.nn.relu(h @ parts["WV1"] + parts["bV1"]) @ parts["WV2"] + parts["bV2"]
    q = value + advantage - advantage.mean(axis=1, keepdims=True)
    error = jnp.abs(jnp.take_along_axis(q, actions[:, None], axis=1)[:, 0] - targets)
    return jnp.where(error <= 1, error**2 / 2, error - 0.5).mean()


def adam(parts: dict[str, Any], moments: Any, t: Any, observations: Any, actions: Any, targets: Any) -> Any:
    """One step in TensorFlow 1's form, with clipping per variable."""
    jnp = jax.numpy
    found = jax.grad(loss)(parts, observations, actions, targets)
    rate = 5e-4 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    new, kept = {}, {}
    for name, gradient in found.items():
        g = gradient * 40.0 / jnp.maximum(jnp.sqrt((gradient**2).sum()), 40.0)
        m, v = 0.9 * moments[name][0] + 0.1 * g, 0.999 * moments[name][1] + 0.001 * g**2
        new[name], kept[name] = parts[name] - rate * m / (jnp.sqrt(v) + 1e-8), (m, v)
    return new, kept


def test_thousand_steps_in_float64() -> None:
    case = next(one for one in cases("agent_training") if one["net"] == "b" and "1000" in one["weights"])
    shape, w = weights_of("b")
    pool = {name: np.array(value) for name, value in case["pool"].items()}
    places = np.arange(1000 * case["batch"]).reshape(1000, -1) % len(pool["reward"])

    def step(state: Any, now: Any) -> Any:
        t, at = now
        return adam(*state, t, pool_at["obs"][at], pool_at["action"][at], pool_at["reward"][at]), None

    pool_at = {name: jax.numpy.asarray(value) for name, value in pool.items()}
    start = shape.split(w), {name: (np.zeros(size), np.zeros(size)) for name, size in shape.variables.items()}
    (parts, _), _ = jax.lax.scan(step, start, (np.arange(1.0, 1001.0), places))
    agents = agent_with(shape, w, case["batch"])
    for t in range(1000):
        step_on_pool(agents, case, t)
    for name, found in shape.split(agents.weights[0]).items():
        expected = np.asarray(parts[name])
        assert (np.abs(found - expected) / (1e-3 + np.abs(expected))).max() < 1e-8, name


@pytest.mark.study
def test_gradients_in_float32() -> None:
    case = cases("agent_seed_network")
    shape, w = seed_weights(case)
    w = w.astype(np.float32)
    batch = case["gradients"][0]["batch"]
    observations, targets = np.array(batch["obs"], np.float32), np.array(batch["reward"], np.float32)
    actions, g = np.array(batch["action"], np.int32), np.zeros_like(w)
    work = np.zeros(work_size(shape.widths, len(targets)), np.float32)
    mine = loss_and_gradient(w, shape.widths, observations, actions, targets, work, g)
    theirs, wanted = jax.value_and_grad(loss)(shape.split(w), observations, actions, targets)
    assert theirs.dtype == np.float32
    assert mine == pytest.approx(float(theirs), rel=1e-5)
    for name in VARIABLES:
        expected = np.asarray(wanted[name])
        assert np.abs(shape.split(g)[name] - expected).max() < 1e-4 * np.abs(expected).max(), name

"""Forward, gradients, clipping and trainings of the golden cases (tests/data/dqn/README.md says how they were made)."""

import sys
from pathlib import Path

import numpy as np
import pytest

from hopforge.model.dqn.adam import clip
from hopforge.model.dqn.forward import forward, greedy, layer_views
from hopforge.model.dqn.gradient import loss_and_gradient, work_size
from hopforge.model.dqn.shape import NetworkShape

sys.path.insert(0, str(Path(__file__).parent))
from dqn_cases import agent_with, cases, fill_batch, seed_weights, step_on_pool, weights_of

#: of the greatest entry, as the README of the golden data demands
TOLERANCE = {np.float64: 1e-12, np.float32: 1e-4}
TYPES = [np.float64, np.float32]


def gradients(shape: NetworkShape, w: np.ndarray, pool: dict, target, dtype) -> tuple[float, np.ndarray, np.ndarray]:
    """Loss, gradient, and how much the rounding of tanh may change the gradients of W1 and b1."""
    agents = agent_with(shape, w, len(pool["reward"]), target=target, dtype=dtype)
    fill_batch(agents, pool, np.arange(len(pool["reward"])))
    work, g = np.zeros(work_size(shape.widths, len(pool["reward"])), dtype), np.zeros(shape.weights, dtype)
    loss = loss_and_gradient(
        w.astype(dtype), shape.widths, agents.batch, agents.batch_actions, agents.batch_targets, work, g
    )
    h1, h2, *others = layer_views(work, shape.widths, len(agents.batch))
    layers = h1.size + h2.size + sum(layer.size for layer in others)
    d2 = layer_views(work[layers:], shape.widths, len(agents.batch))[1]
    into_h1 = np.abs(d2.astype(np.float64) @ shape.split(w)["W2"].T)
    return loss, g, np.abs(agents.batch).max(axis=1) @ into_h1


def assert_gradient(found: np.ndarray, wanted: list, dtype, slack: float) -> None:
    expected = np.array(wanted)
    assert np.abs(found - expected).max() <= TOLERANCE[dtype] * np.abs(expected).max() + slack


@pytest.mark.parametrize("dtype", TYPES)
def test_forward(dtype) -> None:
    for case in cases("agent_forward"):
        shape, w = weights_of(case["net"])
        observations = np.array(case["obs"], dtype)
        work = np.zeros(work_size(shape.widths, len(observations)), dtype)
        q = forward(w.astype(dtype), shape.widths, observations, work)
        value = layer_views(work, shape.widths, len(observations))[-1][:, 0]
        for found, wanted in ((q, case["q"]), (value, case["value"])):
            assert np.abs(found - wanted).max() <= TOLERANCE[dtype] * np.abs(wanted).max()
        every = (1 << shape.actions) - 1
        assert [greedy(row, every) for row in q] == case["greedy"]


@pytest.mark.parametrize("dtype", TYPES)
def test_gradients(dtype) -> None:
    for case in cases("agent_gradients"):
        shape, w = weights_of(case["net"], head_times=case["head_weights_times"])
        target = weights_of(case["net"], target=True)[1]
        loss, g, turning = gradients(shape, w, case["batch"], target, dtype)
        assert loss == pytest.approx(case["loss"], rel=TOLERANCE[dtype])
        # where tanh is almost 1, 1 − h² has lost its digits: one unit in the last place of h counts (numpy's tanh,
        # which made the data, is up to 0.86 of one wrong there; the C library's is rounded correctly)
        slack = 2 * np.finfo(dtype).eps * turning.max()
        for name, part in shape.split(g).items():
            assert_gradient(part, case["gradient"][name], dtype, slack if name in ("W1", "b1") else 0.0)
        norms, lanes = np.zeros(12), np.zeros(16, dtype)
        assert clip(g, shape.starts, case["clip"], norms, lanes)
        names = list(shape.variables)
        for name, norm in zip(names, norms, strict=True):
            turned = slack * np.sqrt(shape.split(g)[name].size) if name in ("W1", "b1") else 0.0
            assert abs(norm - case["norm"][name]) <= TOLERANCE[dtype] * case["norm"][name] + turned
        assert [name for name, norm in zip(names, norms, strict=True) if norm > case["clip"]] == case["clipped"]
        for name in case["clipped"]:
            assert_gradient(shape.split(g)[name], case["clipped_gradient"][name], dtype, slack)


def test_training() -> None:
    for case in cases("agent_training"):
        shape, w = weights_of(case["net"])
        agents, done = agent_with(shape, w, case["batch"], case["clip"]), 0
        for steps, wanted in case["weights"].items():
            losses = [step_on_pool(agents, case, step) for step in range(done, int(steps))]
            done = int(steps)
            assert losses[-1] == pytest.approx(case["losses"][steps], rel=1e-7)
            assert_weights(agents.weights[0], shape.joined(wanted))
        if case["m"]:
            assert np.allclose(agents.moment1[0], shape.joined(case["m"]), rtol=1e-8, atol=1e-12)


def assert_weights(found: np.ndarray, expected: np.ndarray) -> None:
    assert (np.abs(found - expected) / (1e-3 + np.abs(expected))).max() < 1e-8


def test_network_of_the_seed() -> None:
    case = cases("agent_seed_network")
    shape, w = seed_weights(case)
    assert shape.weights == case["weights_total"] == 202245
    split = shape.split(w)
    for name, first in case["first"].items():
        assert split[name].ravel()[: len(first)].tolist() == first
    assert_summary(split, case["initial"])
    observations = np.array(case["forward"]["obs"])
    work = np.zeros(work_size(shape.widths, len(observations)))
    assert np.abs(forward(w, shape.widths, observations, work) - case["forward"]["q"]).max() < 1e-12
    for one in case["gradients"]:
        loss, g, _ = gradients(shape, w, one["batch"], seed_weights(case, target=True)[1], np.float64)
        assert loss == pytest.approx(one["loss"], rel=1e-12)
        assert_summary(shape.split(g), one["gradient"])


def test_training_of_the_network_of_the_seed() -> None:
    case = cases("agent_seed_network")
    shape, w = seed_weights(case)
    training = case["training"]
    agents, done = agent_with(shape, w, training["batch"], training["clip"]), 0
    observations = np.array(case["forward"]["obs"])
    work = np.zeros(work_size(shape.widths, len(observations)))
    for steps, wanted in training["weights"].items():
        losses = [step_on_pool(agents, training, step) for step in range(done, int(steps))]
        done = int(steps)
        assert losses[-1] == pytest.approx(training["losses"][steps], rel=1e-7)
        assert_summary(shape.split(agents.weights[0]), wanted, 1e-8)
        q = forward(agents.weights[0], shape.widths, observations, work)
        assert np.abs(q - training["q_after"][steps]).max() < 1e-8


def assert_summary(found: dict, wanted: dict, tolerance: float = 1e-12) -> None:
    for name, summary in wanted.items():
        part = found[name].ravel()
        at, values = np.array(summary["at"]), np.array(summary["values"])
        assert (np.abs(part[at] - values) <= tolerance * (1e-3 + np.abs(values).max())).all()
        sums = {"sum": part.sum(), "abs": np.abs(part).sum(), "sq": (part**2).sum()}
        for key, value in sums.items():
            assert abs(value - summary[key]) <= 1e-8 * part.size

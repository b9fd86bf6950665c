"""Every product and every sum of the agents rounds by itself: results are the bits that numpy gives, step by step.

Were both one instruction, the compiler would choose which of two products takes part in it, anew in every kernel: a
process that compiles would give other bits than one that loads.
"""

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

import hopforge
from hopforge.model.dqn.adam import adam_step
from hopforge.model.dqn.dense import add_product


@njit
def _adam_step(*given: Any) -> Any:
    return adam_step(*given)


@njit
def _add_product(a: Any, b: Any, c: Any) -> None:
    add_product(a, b, c)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_step_of_adam_is_numpy_s(kind: type) -> None:
    draws = np.random.default_rng(1)
    w, m, g = draws.normal(size=(3, 1003)).astype(kind)
    v = np.square(draws.normal(size=1003)).astype(kind)
    rate, beta1, beta2, epsilon = (kind(x) for x in (1e-3, 0.9, 0.999, 1e-8))
    for _ in range(3):
        moment = beta1 * m + (kind(1) - beta1) * g
        square = beta2 * v + (kind(1) - beta2) * (g * g)
        moved = w - rate * moment / (np.sqrt(square) + epsilon)
        assert _adam_step(w, m, v, g, rate, beta1, beta2, epsilon)
        for ours, theirs in ((m, moment), (v, square), (w, moved)):
            assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("rows", [3, 40])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_product_is_numpy_s_eight_by_eight(kind: type, rows: int) -> None:
    draws = np.random.default_rng(2)
    a, b = draws.normal(size=(rows, 21)).astype(kind), draws.normal(size=(21, 37)).astype(kind)
    ours = np.zeros((rows, 37), kind)
    _add_product(a, b, ours)
    theirs = np.zeros((rows, 37), kind)
    for k in (0, 8):
        p = [a[:, i, None] * b[i] for i in range(k, k + 8)]
        theirs += ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]))
    for k in range(16, 21):
        theirs += a[:, k, None] * b[k]
    assert ours.tobytes() == theirs.tobytes()


def test_no_kernel_lets_the_compiler_change_sums() -> None:
    """`fastmath` would; there is no use of it that gives the same bits in every process."""
    package = Path(hopforge.__file__).parent
    folders = [package, *(entry.resolve() for entry in package.iterdir() if entry.is_dir())]
    files = {path for folder in folders for path in folder.rglob("*.py")}
    assert len(files) > 500
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = [node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)]
        written = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        assert "fastmath" not in [*named, *written], path

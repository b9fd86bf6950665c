import numpy as np
import pytest

from hopforge.model.dqn.int8_forward import int8_agents, int8_sums
from hopforge.model.dqn.int8_network import Int8Network, quantised, whole_observations
from hopforge.model.dqn.int8_table import tanh_table
from hopforge.model.dqn.shape import NetworkShape


def float_advantages(shape: NetworkShape, w: np.ndarray, seen: np.ndarray) -> np.ndarray:
    part = shape.split(w)
    h = np.tanh(np.tanh(seen @ part["W1"] + part["b1"]) @ part["W2"] + part["b2"])
    return np.asarray(np.maximum(h @ part["WA1"] + part["bA1"], 0) @ part["WA2"] + part["bA2"])


def test_it_decides_as_the_floats_do_where_they_are_sure() -> None:
    shape, rng = NetworkShape.of_grid(2), np.random.default_rng(1)
    w, seen = shape.drawn(rng, 0.05), rng.random((2000, 13))
    network = quantised(shape, w, seen[:1000])
    exact = float_advantages(shape, w, seen)
    found = network.advantages(whole_observations(seen))
    scale = (exact * found).sum() / (found.astype(float) ** 2).sum()
    error = np.abs(found * scale - exact)
    assert error.max() < 0.15 * np.abs(exact).max()
    best = np.sort(exact, axis=1)
    sure = best[:, -1] - best[:, -2] > 2 * error.max()
    assert sure.sum() > 200
    assert (network.actions(whole_observations(seen)) == exact.argmax(axis=1))[sure].all()


def test_small_cases_by_hand() -> None:
    one = np.array([[64]], np.int8)
    zero, two = np.zeros(1, np.int32), np.zeros(2, np.int32)
    network = Int8Network((one, one, one, np.array([[1, -1]], np.int8)), (zero, zero, zero, two), (6, 6, 6))
    # 127 · 64 / 64 = 127 in 1/128; twice through tanh; then relu
    table = tanh_table()
    expected = table[table[127]]
    assert network.advantages(np.array([[127], [0], [-127]])).tolist() == [[expected, -expected], [0, 0], [0, 0]]
    assert network.actions(np.array([[0]])).tolist() == [0]
    assert (table[0], table[1], table[64], table[511]) == (0, 1, 59, 127)
    assert whole_observations(np.array([0.0, 0.5, 1.0])).tolist() == [0, 64, 127]


def test_large_biases_cost_bits_of_the_weights() -> None:
    shape, rng = NetworkShape(7, 3, 3, 3, 2), np.random.default_rng(1)
    w = shape.drawn(rng)
    shape.split(w)["bA2"][:] = 1e5, -1e5
    network = quantised(shape, w, rng.random((5, 7)))
    assert network.advantages(whole_observations(rng.random((5, 7)))).max() < 1 << 31
    assert (network.biases[3] == np.array([1, -1]) * np.abs(network.biases[3])).all()
    assert np.abs(network.matrices[3]).max() < 127


def test_what_cannot_be_quantised() -> None:
    shape, rng = NetworkShape(7, 3, 3, 3, 2), np.random.default_rng(1)
    w = shape.drawn(rng)
    with pytest.raises(ValueError, match="observations must be scaled"):
        quantised(shape, w, np.full((1, 7), 3.0))
    with pytest.raises(ValueError, match="W1 or its bias has entries that are no numbers"):
        quantised(shape, w * np.nan, np.zeros((1, 7)))
    with pytest.raises(ValueError, match=r"W1 has weights up to .*; int8 takes 127 and 8388608"):
        quantised(shape, w * 1e4, np.zeros((1, 7)))


@pytest.mark.parametrize("widths", [(13, 32, 24, 40, 4), (7, 1, 3, 2, 2)])
def test_kernel_has_the_same_sums(widths: tuple[int, ...]) -> None:
    shape, rng = NetworkShape(*widths), np.random.default_rng(3)
    seen = rng.random((200, widths[0])).astype(np.float32)
    seen[0], seen[1] = 0, 1
    seen[2:60] = (rng.integers(0, 127, (58, widths[0])) + 0.5) / 127  # halves, as far as float32 has them
    networks = [quantised(shape, shape.drawn(rng, 0.5) * scale, seen) for scale in (1, 3)]
    kernel = int8_agents(networks)
    for agent, network in enumerate(networks):
        found = [int8_sums(kernel, agent, shape.widths, row).tolist() for row in seen]
        assert found == network.advantages(whole_observations(seen)).tolist()
        assert len({tuple(sums) for sums in found}) > 10

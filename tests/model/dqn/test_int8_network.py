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


@pytest.mark.parametrize(("bits", "largest_error"), [(8, 0.15), (12, 0.05)])
def test_it_decides_as_the_floats_do_where_they_are_sure(bits: int, largest_error: float) -> None:
    shape, rng = NetworkShape.of_grid(2), np.random.default_rng(1)
    w, seen = shape.drawn(rng, 0.05), rng.random((2000, 13))
    network = quantised(shape, w, seen[:1000], bits)
    exact = float_advantages(shape, w, seen)
    found = network.advantages(network.whole(seen))
    scale = (exact * found).sum() / (found.astype(float) ** 2).sum()
    error = np.abs(found * scale - exact)
    assert error.max() < largest_error * np.abs(exact).max()
    best = np.sort(exact, axis=1)
    sure = best[:, -1] - best[:, -2] > 2 * error.max()
    assert sure.sum() > 200
    assert (network.actions(network.whole(seen)) == exact.argmax(axis=1))[sure].all()


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


@pytest.mark.parametrize("bits", [8, 10, 12])
def test_tanh_between_the_places_of_its_table(bits: int) -> None:
    """Within half a unit of the table, and half a unit of the line; at most the largest beyond 4."""
    fraction = bits - 1
    one, wide = np.array([[127]], np.int8), 5 << fraction
    size = np.arange(-wide, wide + 1, 7)
    network = Int8Network((one,), (np.zeros(1, np.int32),), (0, 0, 0), bits)
    found = network._tanh(size)
    exact = np.tanh(size / 2**fraction) * 2**fraction
    assert np.abs(found - exact).max() <= 1.0 + 0.5 * (bits == 8)
    assert found.max() == -found.min() == 2**fraction - 1
    assert (np.diff(found) >= 0).all()


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
    for bits in (7, 13):
        with pytest.raises(ValueError, match=f"activation_bits must be 8 … 12, not {bits}"):
            quantised(shape, w, np.zeros((1, 7)), bits)


@pytest.mark.parametrize(
    ("widths", "bits"), [((13, 32, 24, 40, 4), 8), ((7, 1, 3, 2, 2), 8), ((13, 32, 24, 40, 4), 12)]
)
def test_kernel_has_the_same_sums(widths: tuple[int, ...], bits: int) -> None:
    shape, rng = NetworkShape(*widths), np.random.default_rng(3)
    seen = rng.random((200, widths[0])).astype(np.float32)
    seen[0], seen[1] = 0, 1
    seen[2:60] = (rng.integers(0, 127, (58, widths[0])) + 0.5) / ((1 << bits - 1) - 1)  # halves: float32
    networks = [quantised(shape, shape.drawn(rng, 0.5) * scale, seen, bits) for scale in (1, 3)]
    kernel = int8_agents(networks)
    for agent, network in enumerate(networks):
        found = [int8_sums(kernel, agent, shape.widths, row).tolist() for row in seen]
        assert found == network.advantages(network.whole(seen)).tolist()
        assert len({tuple(sums) for sums in found}) > 10

import numpy as np
import pytest

from hopforge.model.dqn.int8_forward import int8_agents, int8_sums
from hopforge.model.dqn.int8_network import Int8Network, _tanh, given_observations, quantised, whole_observations
from hopforge.model.dqn.int8_rounding import rounded_layer
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
    # 127 · 64 / 64 = 127 in 1/128; twice through tanh; then 0 … 255, stored less 128
    table = tanh_table()
    expected = table[table[127]] - 128
    assert network.advantages(np.array([[127], [0], [-127]])).tolist() == [
        [value, -value] for value in (expected, -128, -128)
    ]
    assert (table[0], table[1], table[64], table[511]) == (0, 1, 59, 127)
    assert network.actions(np.array([[0]])).tolist() == [1]


def test_whole_numbers_of_an_observation_by_hand() -> None:
    """Two actions: the last two numbers are flits behind, the two before them flits here, which count to 2."""
    seen = np.array([[0.0, 0.5, 0.0, 2.0, 1.0, 0.25], [1.0, 2.0, 1.0, 3.0, 0.0, 1.0]])
    assert whole_observations(seen, 2).tolist() == [[-128, 0, -128, 127, 127, -64], [127, 127, 0, 127, -128, 127]]
    assert whole_observations(seen[:1], 2, 12).tolist() == [[-2048, 0, -2048, 2047, 2047, -1024]]


@pytest.mark.parametrize("bits", [8, 10, 12])
def test_tanh_between_the_places_of_its_table(bits: int) -> None:
    """Within half a unit of the table, and half a unit of the line; at most the largest beyond 4."""
    fraction = bits - 1
    wide = 5 << fraction
    size = np.arange(-wide, wide + 1, 7)
    found = _tanh(size, fraction)
    exact = np.tanh(size / 2**fraction) * 2**fraction
    assert np.abs(found - exact).max() <= 1.0 + 0.5 * (bits == 8)
    assert found.max() == -found.min() == 2**fraction - 1
    assert (np.diff(found) >= 0).all()


def test_large_biases_cost_bits_of_the_weights() -> None:
    shape, rng = NetworkShape(7, 3, 3, 3, 2), np.random.default_rng(1)
    w = shape.drawn(rng)
    shape.split(w)["bA2"][:] = 1e5, -1e5
    network = quantised(shape, w, rng.random((5, 7)))
    assert np.abs(network.advantages(network.whole(rng.random((5, 7))))).max() < 1 << 31
    assert np.sign(network.biases[3]).tolist() == [1, -1]
    assert np.abs(network.matrices[3]).max() < 127


@pytest.mark.parametrize("width", [1024, pytest.param(4096, marks=pytest.mark.study)])
def test_no_inputs_reach_the_end_of_a_sum(width: int) -> None:
    """A wide layer (studied: the widest) with 12 bits: whatever comes in, in any order, sums stay within 32 bits."""
    shape, rng = NetworkShape(7, 4, width, 2, 2), np.random.default_rng(2)
    w = shape.drawn(rng)
    shape.split(w)["WA1"][:] = 1.0
    network = quantised(shape, w, rng.random((16, 7)), 12)
    for matrix, bias in zip(network.matrices, network.biases, strict=True):
        most = np.abs(bias.astype(np.int64)) + (np.abs(matrix.astype(np.int64)).sum(axis=0) << 11)
        assert most.max() < 1 << 31
    assert np.abs(network.matrices[2]).max() > 31


def test_rounding_by_hand() -> None:
    """Two inputs that are always equal: the second weight makes up for what the first has lost; so does the bias."""
    seen = np.array([[0.0, 0.0], [1.0, 1.0]])
    whole, bias = rounded_layer(seen, seen, np.array([[0.4], [0.4]]), np.array([0.3]), scale=1.0, largest=127)
    assert sorted(whole[:, 0].tolist()) == [0, 1]
    assert bias == pytest.approx(np.array([0.3 + 0.8 / 2 - 1 / 2]))
    # what no observation shows stays as it is; beyond the largest it ends there
    still = np.zeros((2, 2))
    whole, bias = rounded_layer(still, still, np.array([[3.2], [-9.0]]), np.array([0.3]), scale=1.0, largest=5)
    assert whole[:, 0].tolist() == [3, -5]
    assert bias == pytest.approx(np.array([0.3]))


def test_rounded_sums_are_nearer_than_those_of_nearest_weights() -> None:
    rng = np.random.default_rng(4)
    seen = np.tanh(rng.random((300, 5)) @ rng.normal(size=(5, 40)))
    matrix, bias = rng.normal(size=(40, 6)), rng.normal(size=6)
    whole, offset = rounded_layer(seen, seen, matrix, bias, scale=16.0, largest=127)
    exact = seen @ matrix + bias
    nearest = seen @ (np.floor(matrix * 16 + 0.5) / 16) + bias
    assert np.std(seen @ (whole / 16) + offset - exact) < 0.5 * np.std(nearest - exact)


def test_given_observations_have_short_queues() -> None:
    given = given_observations(NetworkShape.of_grid(2, 4, 4, 4))
    assert given.shape == (1024, 13)
    assert np.abs(given.mean(axis=0) - np.array([0.5] * 5 + [0.2] * 8)).max() < 0.05


def test_what_cannot_be_quantised() -> None:
    shape, rng = NetworkShape(7, 3, 3, 3, 2), np.random.default_rng(1)
    w = shape.drawn(rng)
    with pytest.raises(ValueError, match="observations must be scaled"):
        quantised(shape, w, np.full((1, 7), 3.0))
    with pytest.raises(ValueError, match="W1 or its bias has entries that are no numbers"):
        quantised(shape, w * np.nan, np.zeros((1, 7)))
    with pytest.raises(ValueError, match=r"W1 has weights up to .*; int8 takes 63, and sums of 32 bits"):
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
    seen[2:60] = (rng.integers(0, 255, (58, widths[0])) + 0.5) / ((1 << bits) - 1)  # halves: float32
    networks = [quantised(shape, shape.drawn(rng, 0.5) * scale, seen, bits) for scale in (1, 3)]
    kernel = int8_agents(networks)
    for agent, network in enumerate(networks):
        found = [int8_sums(kernel, agent, shape.widths, row).tolist() for row in seen]
        assert found == network.advantages(network.whole(seen)).tolist()
        assert len({tuple(sums) for sums in found}) > 10


def test_small_advantages_are_told_apart() -> None:
    """The action does not depend on the scale of the advantages, so neither do the whole numbers."""
    shape, rng = NetworkShape(7, 4, 5, 6, 3), np.random.default_rng(3)
    w, seen = shape.drawn(rng), rng.random((64, 7))
    large = quantised(shape, w, seen)
    for name in ("WA2", "bA2"):
        shape.split(w)[name][:] *= 2.0**-30
    small = quantised(shape, w, seen)
    whole = large.whole(seen)
    assert (small.advantages(whole) == large.advantages(whole)).all()
    assert len(set(small.actions(whole))) > 1

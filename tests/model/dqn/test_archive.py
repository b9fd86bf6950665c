import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from hopforge.model.dqn.agents import DIVERGED, new_agents
from hopforge.model.dqn.archive import ArchiveError, load_agents, read_weights, save_agents
from hopforge.model.dqn.forward import forward
from hopforge.model.dqn.gradient import work_size
from hopforge.model.dqn.onnx_model import onnx_model, write_onnx
from hopforge.model.dqn.settings import AgentSettings
from hopforge.model.dqn.shape import NetworkShape

TORUS = "torus 4×4, an agent per row"
SHAPE = NetworkShape(13, 6, 5, 4, 4)


def agents_of(seed: int, shape: NetworkShape = SHAPE, count: int = 4, replay: int = 8):
    return new_agents(shape, AgentSettings(replay=replay, bootstrap=True), count, seed)


def test_saved_and_loaded(tmp_path: Path) -> None:
    saved, loaded = agents_of(1), agents_of(2)
    save_agents(tmp_path / "a.npz", saved, TORUS)
    load_agents(tmp_path / "a.npz", loaded, TORUS)
    assert (loaded.weights == saved.weights).all()
    assert (loaded.target == saved.weights).all()
    assert (loaded.streams != saved.streams).all()
    shape, topology, weights = read_weights(tmp_path / "a.npz")
    assert (shape, topology) == (SHAPE, TORUS)
    assert (weights == saved.weights).all()
    save_agents(tmp_path / "b.npz", loaded, TORUS)
    assert (tmp_path / "b.npz").read_bytes() == (tmp_path / "a.npz").read_bytes()


def test_whole_state(tmp_path: Path) -> None:
    saved, loaded = agents_of(1), agents_of(2)
    for name in ("weights", "target", "moment1", "moment2", "samples", "next_samples", "actions", "streams", "counts"):
        getattr(saved, name)[...] += np.array(len(name) % 3 + 1).astype(getattr(saved, name).dtype)
    saved.counts[:, DIVERGED] = 0
    save_agents(tmp_path / "a.npz", saved, TORUS, complete=True)
    load_agents(tmp_path / "a.npz", loaded, TORUS, complete=True)
    for name in ("weights", "target", "moment1", "moment2", "samples", "actions", "next_agents", "streams", "counts"):
        assert (getattr(loaded, name) == getattr(saved, name)).all(), name


@pytest.mark.parametrize(
    ("other", "topology", "complete", "message"),
    [
        (agents_of(1), "torus 8×8", False, "its agents were trained on torus 4×4, an agent per row, not on torus 8×8"),
        (agents_of(1, NetworkShape(13, 6, 7, 4, 4)), TORUS, False, "W2 must have the shape 4×6×7, not 4×6×5"),
        (agents_of(1, count=2), TORUS, False, "W1 must have the shape 2×13×6, not 4×13×6"),
        (agents_of(1), TORUS, True, "has no target: it was saved without the state of a run"),
    ],
)
def test_another_network_is_refused(tmp_path: Path, other, topology: str, complete: bool, message: str) -> None:
    save_agents(tmp_path / "a.npz", agents_of(1), TORUS)
    before = other.weights.copy()
    with pytest.raises(ArchiveError, match=f"a.npz: {message}"):
        load_agents(tmp_path / "a.npz", other, topology, complete=complete)
    assert (other.weights == before).all()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [("actions", 4, "actions must be 0 … 3"), ("next_agents", 4, "next_agents must be -1 … 3"), ("counts", -1, "0 …")],
)
def test_state_that_no_run_has(tmp_path: Path, name: str, value: int, message: str) -> None:
    saved = agents_of(1)
    getattr(saved, name)[0, 0] = value
    save_agents(tmp_path / "a.npz", saved, TORUS, complete=True)
    with pytest.raises(ArchiveError, match=message):
        load_agents(tmp_path / "a.npz", agents_of(2), TORUS, complete=True)
    load_agents(tmp_path / "a.npz", agents_of(2), TORUS)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("state_moment1", np.nan, "moment1 has entries that are no numbers"),
        ("state_moment2", -1.0, "moment2 has entries below 0"), ("state_samples", np.inf, "samples has entries that"),
        ("state_sums", np.nan, "sums has entries that are no numbers"), ("state_counts", 7, "counts tell of a restart"),
    ],
)  # fmt: skip
def test_state_that_is_no_number(tmp_path: Path, name: str, value: float, message: str) -> None:
    path = tmp_path / "a.npz"
    save_agents(path, agents_of(1), TORUS, complete=True)
    with np.load(path) as found:
        arrays = dict(found)
    arrays[name][0, -2 if name == "state_counts" else -1] = value  # the column of what was forgotten
    np.savez(path, **arrays)
    with pytest.raises(ArchiveError, match=f"a.npz: {message}"):
        load_agents(path, agents_of(2), TORUS, complete=True)


def test_agents_that_got_no_numbers_are_not_resumed(tmp_path: Path) -> None:
    agents = agents_of(1)
    agents.counts[0, DIVERGED] = 3
    save_agents(tmp_path / "a.npz", agents, TORUS, complete=True)
    with pytest.raises(ArchiveError, match=r"a.npz: an agent of it got no numbers"):
        load_agents(tmp_path / "a.npz", agents_of(2), TORUS, complete=True)


def test_a_topology_with_control_characters_is_one_line(tmp_path: Path) -> None:
    save_agents(tmp_path / "a.npz", agents_of(1), "ring\nof\x1b[31m")
    with pytest.raises(ArchiveError, match=r"trained on ring\?of\?\[31m, not on torus") as caught:
        load_agents(tmp_path / "a.npz", agents_of(2), TORUS)
    assert "\n" not in str(caught.value)


def test_a_damaged_archive_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    save_agents(path, agents_of(1), TORUS)
    content = path.read_bytes()
    for cut in (0, 10, len(content) // 2, len(content) - 5):
        path.write_bytes(content[:cut])
        with pytest.raises(ArchiveError, match=r"^[^\n]*no archive of agents, or a damaged one[^\n]*$"):
            read_weights(path)
    noise = np.random.default_rng(1)
    for _ in range(60):
        changed = bytearray(content)
        changed[int(noise.integers(len(changed)))] ^= 1 << int(noise.integers(8))
        path.write_bytes(bytes(changed))
        try:
            read_weights(path)  # a bit between the files may not count
        except ArchiveError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bA1": None}, "it has no bA1"),
        ({"format": np.array("another")}, "its format must be 'hopforge DQN agents 1', not 'another'"),
        ({"W1": np.full((4, 13, 6), np.nan, np.float32)}, "W1 has entries that are no numbers"),
        ({"W1": np.zeros((4, 13, 6), np.int32)}, "W1 must hold floats, not int32"),
        ({"W1": np.float32(1)}, "W1 has the shape of one number"),
        ({"WV1": np.zeros((4, 5, 3), np.float32)}, "WV1 must have the shape 4×5×4, not 4×5×3"),
        ({"b2": np.zeros((3, 5), np.float32)}, "b2 has the shape 3×5"),
    ],
)
def test_what_is_no_archive_of_agents(tmp_path: Path, changes: dict, message: str) -> None:
    path = tmp_path / "a.npz"
    save_agents(path, agents_of(1), TORUS)
    with np.load(path) as found:
        arrays = {**found, **changes}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(ArchiveError, match=message):
        read_weights(path)


def test_weights_beyond_the_agents_type(tmp_path: Path) -> None:
    path, agents = tmp_path / "a.npz", agents_of(1)
    save_agents(path, agents, TORUS)
    with np.load(path) as found:
        np.savez(path, **{**found, "W1": np.full((4, 13, 6), 1e300)})
    before = agents.weights.copy()
    with pytest.raises(ArchiveError, match=r"a.npz: has weights that are too large for float32"):
        load_agents(path, agents, TORUS)
    assert (agents.weights == before).all()


def test_files_that_are_not_there_or_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArchiveError, match=r"none.npz: No such file"):
        read_weights(tmp_path / "none.npz")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("W1.npy", bytes(3 << 20))
    (tmp_path / "bomb.npz").write_bytes(content.getvalue())
    monkeypatch.setenv("HOPFORGE_INPUT_MIB", "1")
    with pytest.raises(ArchiveError, match=r"bomb.npz: holds more than 1 MiB"):
        read_weights(tmp_path / "bomb.npz")


def test_onnx_model_computes_the_same(tmp_path: Path) -> None:
    reference = pytest.importorskip("onnx.reference", reason="the package onnx (extra agents) is not installed")
    shape = NetworkShape.of_grid(2)
    w = shape.drawn(np.random.default_rng(1), 0.05).astype(np.float32)
    observations = np.random.default_rng(2).random((7, 13)).astype(np.float32)
    q = forward(w, shape.widths, observations, np.zeros(work_size(shape.widths, 7), np.float32))
    write_onnx(tmp_path / "agent.onnx", shape, w)
    (found,) = reference.ReferenceEvaluator(str(tmp_path / "agent.onnx")).run(None, {"observation": observations})
    assert np.abs(found - q).max() < 1e-5
    assert np.abs(found).max() > 0.1
    assert onnx_model(shape, w).SerializeToString(deterministic=True) == (tmp_path / "agent.onnx").read_bytes()

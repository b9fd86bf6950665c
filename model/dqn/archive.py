"""Weights of agents as a NumPy archive: saved, checked and loaded (docs/definitions/dqn.md#archives)."""

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.dqn.agents import BEGUN, DECISIONS, DIVERGED, FORGOTTEN, STORED, Agents
from hopforge.model.dqn.shape import VARIABLES, NetworkShape
from hopforge.model.errors import UserError
from hopforge.model.input_file import largest_bytes, read_input, too_large
from hopforge.model.output.destination import one_file

__all__ = ["ArchiveError", "load_agents", "read_weights", "refuse_large_state", "save_agents", "shape_of"]

FORMAT = "hopforge DQN agents 1"
#: what a run needs beside the weights in order to go on as if it had not stopped
STATE = ("target", "moment1", "moment2", "samples", "actions", "rewards", "next_samples", "next_agents",
         "next_allowed", "streams", "counts", "sums")  # fmt: skip


class ArchiveError(UserError):
    """An archive that cannot be read, or that belongs to another network: names file and reason."""


def refuse_large_state(agents: Agents) -> None:
    """Refuse to save the whole state of agents that could not be read again.

    Raises
    ------
    ArchiveError
        Their archive would be too large.
    """
    most = largest_bytes()
    if agents.weights.nbytes + sum(getattr(agents, name).nbytes for name in STATE) + (1 << 16) > most:
        raise ArchiveError(f"routing.dqn.save: the state of these agents holds {too_large(most)}")


def shape_of(agents: Agents) -> NetworkShape:
    """Return the shape of the agents' networks."""
    return NetworkShape(*(int(width) for width in agents.widths))


def save_agents(path: Path, agents: Agents, topology: str, *, complete: bool = False) -> None:
    """Write the weights of all agents.

    Parameters
    ----------
    path : Path
        Of the archive; equal agents give equal bytes.
    agents : Agents
    topology : str
        What the agents were trained on, as `load_agents` wants it again.
    complete : bool
        Also samples, moments and random streams: all that a run needs to go on.

    Raises
    ------
    ResultError
        The file would replace something else.
    OSError
        It cannot be written.
    """
    shape = shape_of(agents)
    arrays: dict[str, NDArray[Any]] = {"format": np.array(FORMAT), "topology": np.array(topology)}
    parts = [shape.split(row) for row in agents.weights]
    arrays |= {name: np.array([part[name] for part in parts]) for name in VARIABLES}
    if complete:
        arrays |= {f"state_{name}": getattr(agents, name) for name in STATE}
    with one_file(path, "a ZIP archive") as scratch, zipfile.ZipFile(scratch, "w") as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.asarray(array, order="C"), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content.getvalue())  # without the time of day


def load_agents(path: Path, agents: Agents, topology: str, *, complete: bool = False) -> None:
    """Read weights into agents; their target networks become copies, unless the archive is complete.

    Raises
    ------
    ArchiveError
        The file cannot be read, or was made for other networks, other agents or another topology.
    """
    found = _read(path)
    _check_topology(path, found, topology)
    weights = _joined(path, found)
    wanted = {name: (len(agents.weights), *size) for name, size in shape_of(agents).variables.items()}
    _check_shapes(path, found, wanted)
    state = {}
    if complete:
        state = {f"state_{name}": getattr(agents, name) for name in STATE}
        _check_shapes(path, found, {name: array.shape for name, array in state.items()})
        _check_state(path, found, agents)
    kind = agents.weights.dtype
    if np.abs(weights).max() > np.finfo(kind).max:
        raise ArchiveError(f"{path}: has weights that are too large for {kind}")
    agents.weights[...] = weights
    agents.target[...] = weights
    for name, array in state.items():
        array[...] = found[name]


def read_weights(path: Path) -> tuple[NetworkShape, str, NDArray[Any]]:
    """Return shape, topology and weights[agent, weight] of an archive.

    Raises
    ------
    ArchiveError
        The file cannot be read, or holds something else.
    """
    found = _read(path)
    weights = _joined(path, found)
    try:
        inputs, first = found["W1"].shape[1:]
        shape = NetworkShape(inputs, first, found["W2"].shape[2], *found["WA2"].shape[1:])
    except (ValueError, IndexError) as error:
        raise ArchiveError(f"{path}: its matrices do not fit together") from error
    _check_shapes(path, found, {name: (len(weights), *size) for name, size in shape.variables.items()})
    return shape, str(found["topology"]), weights


def _read(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of an archive of ours."""
    try:
        content = read_input(path)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(one.file_size for one in archive.infolist()) > largest_bytes():
                raise ArchiveError(f"{path}: holds {too_large(largest_bytes())}")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            read = {name: arrays[name] for name in arrays.files}
            found = {name: array for name, array in read.items() if isinstance(array, np.ndarray)}
    except OSError as error:
        raise ArchiveError(f"{path}: {error.strerror or error}") from error
    except ArchiveError:
        raise
    except Exception as error:  # whatever zipfile and numpy make of a damaged file
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ArchiveError(f"{path}: no archive of agents, or a damaged one ({reason})") from error
    for name in ("format", "topology", *VARIABLES):
        if name not in found:
            raise ArchiveError(f"{path}: no archive of agents: it has no {name}")
    if str(found["format"]) != FORMAT:
        raise ArchiveError(f"{path}: its format must be {FORMAT!r}, not {str(found['format'])[:40]!r}")
    return found


def _check_topology(path: Path, found: dict[str, NDArray[Any]], wanted: str) -> None:
    if str(found["topology"]) != wanted:
        told = "".join(one if one.isprintable() else "?" for one in str(found["topology"])[:80])
        raise ArchiveError(f"{path}: its agents were trained on {told}, not on {wanted}")


def _check_shapes(path: Path, found: dict[str, NDArray[Any]], wanted: dict[str, tuple[int, ...]]) -> None:
    for name, shape in wanted.items():
        plain = name.removeprefix("state_")
        if name not in found:
            raise ArchiveError(f"{path}: has no {plain}: it was saved without the state of a run")
        if found[name].shape != shape:
            raise ArchiveError(f"{path}: {plain} must have the shape {_by(shape)}, not {_by(found[name].shape)}")


def _check_state(path: Path, found: dict[str, NDArray[Any]], agents: Agents) -> None:
    """Refuse numbers that kernels would take for places of arrays that are not there."""
    actions = int(agents.widths[-1])
    most = {"actions": actions, "next_agents": len(agents.weights), "next_allowed": 1 << actions, "counts": 1 << 62}
    for name in STATE:
        part, kind = found[f"state_{name}"], getattr(agents, name).dtype
        if part.dtype != kind:
            raise ArchiveError(f"{path}: {name} must hold {kind}, not {part.dtype}")
        least = -1 if name == "next_agents" else 0
        if name in most and not ((least <= part) & (part < most[name])).all():
            raise ArchiveError(f"{path}: {name} must be {least} … {most[name] - 1}")
        if part.dtype.kind == "f" and not (np.isfinite(part) | (np.isneginf(part) & (name == "sums"))).all():
            raise ArchiveError(f"{path}: {name} has entries that are no numbers")
    if (found["state_moment2"] < 0).any():
        raise ArchiveError(f"{path}: moment2 has entries below 0")
    counts = found["state_counts"]
    if counts[:, DIVERGED].any():
        raise ArchiveError(f"{path}: an agent of it got no numbers")
    if (counts[:, BEGUN] > counts[:, DECISIONS]).any() or (counts[:, FORGOTTEN] > counts[:, STORED]).any():
        raise ArchiveError(f"{path}: counts tell of a restart after the last decision or sample")


def _by(shape: tuple[int, ...]) -> str:
    return "×".join(str(size) for size in shape) or "of one number"


def _joined(path: Path, found: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """Weights[agent, weight] of an archive, all of them numbers."""
    return np.concatenate(list(_rows(path, found)), axis=1)


def _rows(path: Path, found: dict[str, NDArray[Any]]) -> Iterator[NDArray[Any]]:
    agents = found["W1"].shape[0] if found["W1"].ndim else 0
    for name in VARIABLES:
        part = found[name]
        if part.dtype.kind != "f":
            raise ArchiveError(f"{path}: {name} must hold floats, not {part.dtype}")
        if part.ndim != (3 if name[0] == "W" else 2) or part.shape[0] != agents or not part.size:
            raise ArchiveError(f"{path}: {name} has the shape {_by(part.shape)}; the first size is that of agents")
        if not np.isfinite(part).all():
            raise ArchiveError(f"{path}: {name} has entries that are no numbers")
        yield part.reshape(agents, -1)

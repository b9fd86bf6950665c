"""Steps of training a transformer as a schedule: the ranks' operations, put together (docs/definitions/training.md)."""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hopforge.model.apps.calls import AppError
from hopforge.model.apps.training_levels import TAKEN, Algorithms
from hopforge.model.apps.training_plan import TrainingPlan, training_plan
from hopforge.model.apps.training_ranks import STREAMS, Grid, RankOperations, Tags
from hopforge.model.apps.training_steps import Steps
from hopforge.model.config.workload import LevelsConfig, TrainingWorkload
from hopforge.model.topology import Topology
from hopforge.model.workload.schedule import ANY, MAX_OPERATIONS, Edges, Schedule

#: networks whose routers have coordinates
_GRIDS = {"mesh": "radices", "torus": "radices", "hyperx": "sizes"}
_LONGEST = 1 << 62
"""Time of a computation, in ns."""

#: most computations that are written; each comes with some messages, and takes some microseconds and 100 bytes
MAX_GENERATED = 20_000_000


def training_schedule(
    config: TrainingWorkload, topology: Topology, place: Callable[[int], NDArray[np.int32]], seed: int,
    host_gflops: float | None,
) -> Schedule:
    """Return steps of training; the unit is the nanosecond.

    Parameters
    ----------
    config : TrainingWorkload
        With `model` or `sizes`.
    topology : Topology
        The network: its number of hosts, and for `levels: torus` its dimensions.
    place : callable
        Number of ranks → host of each; refuses too many.
    seed : int
        Of the choice of experts.
    host_gflops : float, optional
        Speed of a rank in 10⁹ operations per second; None: computing takes no time.

    Raises
    ------
    AppError
        Degrees, groups or a placement that do not fit, or too many operations.
    """
    plan = training_plan(config, topology.hosts // topology.host_links)
    host = place(plan.ranks)
    least = _least_operations(config, plan)
    if least > MAX_GENERATED:
        raise AppError(
            f"workload: at least {least} computations are more than {MAX_GENERATED} "
            "(fewer steps, microbatches or layers)"
        )
    algorithms = _algorithms(config)
    grid = _grids(config.levels, topology, host)
    tags = Tags()
    parts, total = [], 0
    for rank in range(plan.ranks):
        operations = RankOperations(rank, tags, algorithms, grid)
        Steps(plan, operations, host_gflops, seed).write()
        total += len(operations.kind)
        if total > MAX_OPERATIONS or tags.next > ANY:
            raise AppError(f"workload: more than {MAX_OPERATIONS} operations or {ANY} tags (fewer steps or layers)")
        parts.append(_arrays(operations))
    return _joined(f"training.{config.model or 'own'}.{plan.ranks}", parts)


def _least_operations(config: TrainingWorkload, plan: TrainingPlan) -> int:
    """Return how many computations there are at least: each layer forwards and backwards for each microbatch."""
    layers = plan.chunks * plan.chunk_layers
    return 2 * layers * config.microbatches * config.steps * plan.ranks


def _algorithms(config: TrainingWorkload) -> Algorithms:
    """Return the algorithm of each operation.

    Raises
    ------
    AppError
        One that has not the messages which levels need, or rules in place of names.
    """
    found = []
    for operation, taken in TAKEN.items():
        name = config.collectives.named(operation)
        if name not in taken:
            given = f"rules: {config.collectives.rules}" if name is None else name
            raise AppError(
                f"workload.collectives.{operation}: must be {', '.join(taken[:-1])} or {taken[-1]} "
                f"for training with model or sizes, not {given}"
            )
        found.append((operation, name))
    return tuple(found)


def _arrays(operations: RankOperations) -> dict[str, NDArray[np.int64]]:
    """Return the fields of a rank's operations as arrays, which need less room."""
    longest = max(operations.size, default=0)
    if longest > _LONGEST:
        raise AppError(f"workload: a computation or message of {longest:.3g} ns or bytes is more than {_LONGEST:.3g}")
    keys = ("kind", "peer", "size", "tag", "cpu", "before", "after")
    return {key: np.array(getattr(operations, key), np.int64) for key in keys}


def _joined(name: str, parts: list[dict[str, NDArray[np.int64]]]) -> Schedule:
    first = np.concatenate([[0], np.cumsum([len(part["kind"]) for part in parts])]).astype(np.int64)
    kind, peer, size, tag, cpu = (
        np.concatenate([part[key] for part in parts]).astype(dtype)
        for key, dtype in (("kind", "u1"), ("peer", "u4"), ("size", "u8"), ("tag", "u4"), ("cpu", "u1"))
    )
    before, after = (
        np.concatenate([part[key] + start for part, start in zip(parts, first[:-1], strict=True)])
        for key in ("before", "after")
    )
    total = len(kind)
    nothing = np.empty(0, np.int64)
    return Schedule(
        name, "", first, kind, peer, size, tag, cpu, np.zeros(total, np.uint8),
        Edges.of(total, before, after), Edges.of(total, nothing, nothing), streams=STREAMS,
    )  # fmt: skip


def _grids(
    levels: LevelsConfig, topology: Topology, host: NDArray[np.int32]
) -> Callable[[tuple[int, ...]], Grid]:
    """Return what says how the members of a group stand in a grid."""
    if levels.kind == "flat":
        return lambda members: ((len(members),), members)
    if levels.kind == "groups":
        assert levels.ranks is not None, "checked by model.config"
        size = levels.ranks
        return lambda members: _in_groups(members, size)
    if topology.kind not in _GRIDS:
        raise AppError(f"workload.levels.kind: torus needs {', '.join(_GRIDS)}, not {topology.kind}")
    coordinates = _coordinates(topology, host)
    return cache(lambda members: _in_box(members, coordinates))


def _in_groups(members: tuple[int, ...], size: int) -> Grid:
    count = len(members)
    if count <= size:
        return (count,), members
    if count % size:
        raise AppError(f"workload.levels.ranks: must divide the {count} ranks of a collective, not {size}")
    return (size, count // size), members


def _coordinates(topology: Topology, host: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return int64[rank, level]: which of the ranks of its host, which host of its router, place in each dimension."""
    order = np.argsort(host, kind="stable")
    sorted_hosts = host[order]
    inside = np.empty(len(host), np.int64)
    inside[order] = np.arange(len(host)) - np.searchsorted(sorted_hosts, sorted_hosts)
    found = [inside, topology.host_port[host].astype(np.int64)]
    rest = topology.host_router[host].astype(np.int64)
    for size in topology.params[_GRIDS[topology.kind]]:
        found.append(rest % size)
        rest = rest // size
    return np.stack(found, axis=1)


def _in_box(members: tuple[int, ...], coordinates: NDArray[np.int64]) -> Grid:
    """Return the dimensions of the box that some ranks fill, and the ranks in its order."""
    places = coordinates[list(members)]
    dims, number, stride = [], np.zeros(len(members), np.int64), 1
    for values in places.T:
        seen, at = np.unique(values, return_inverse=True)
        number += at * stride
        stride *= len(seen)
        if len(seen) > 1:
            dims.append(len(seen))
    if stride != len(members) or len(np.unique(number)) < len(members):
        shown = ", ".join(map(str, members[:8])) + (", …" if len(members) > 8 else "")
        raise AppError(
            f"workload.levels.kind: torus needs groups that fill a box of the network; the {len(members)} ranks"
            f" {shown} do not (workload.mapping, parallel.order)"
        )
    ordered = np.array(members)[np.argsort(number)]
    return tuple(dims) or (1,), tuple(ordered.tolist())

"""Regular networks: which channels are alike, and what is explored in place of the whole.

Definition: docs/definitions/short-proof.md.

Channels with one *kind* are alike: a kind is a number, -1 for a channel to a host. A proof on kinds needs only that
every dependency of the whole network is, by its kinds, one of those of the parts that are explored.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.limits import fitting_address
from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import (
    DragonflyConfig,
    FatTreeConfig,
    FullyConnectedConfig,
    HyperXConfig,
    MeshConfig,
    TopologyConfig,
    TorusConfig,
)
from hopforge.model.network.core.state import NetState
from hopforge.model.routing.contract.plan import IrregularError, RoutingPlan
from hopforge.model.routing.proof.plane_kinds import ANY_COORDINATE, narrow_sizes, widen_turns
from hopforge.model.topology import TOPOLOGIES, Topology

#: most ways over a router between that narrow grids are explored for
_MOST_WAYS_OVER = 24_000_000
#: makes the state of a network with a routing, at cycle 0
Build = Callable[[Topology, RoutingPlan], NetState]


class Part(NamedTuple):
    """What is explored in place of the whole.

    Attributes
    ----------
    topology, plan, state
        Of this part.
    destinations : list of int
        Hosts in it.
    kinds : list of ndarray, int64[channel]
        Kind of every channel of the part; several, if the part stands in several places.
    """

    topology: Topology
    plan: RoutingPlan
    state: NetState
    destinations: list[int]
    kinds: list[NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Representatives:
    """What stands for a whole network.

    Attributes
    ----------
    kinds : ndarray, int64[channel]
        Kind of every channel of the whole network.
    count : int
        How many kinds there can be.
    parts : list of Part
        What is explored.
    words : str
        For people.
    inside : bool
        The parts stand in the whole network as they are, so that what deadlocks in them deadlocks in it.
    widen : callable, optional
        Makes of the dependencies of the parts, int64[pair] (kind · count + kind), all that the whole may have; None:
        too many.
    """

    kinds: NDArray[np.int64]
    count: int
    parts: list[Part]
    words: str
    inside: bool = True
    widen: Callable[[NDArray[np.int64]], NDArray[np.int64] | None] | None = None


def represent(topology: Topology, plan: RoutingPlan, state: NetState, build: Build | None) -> Representatives:
    """Find what stands for a network.

    Parameters
    ----------
    topology, plan, state
        The whole network. Its plan makes the promise of `model.routing.contract.plan.Regular`.
    build : callable, optional
        For the parts of a grid.

    Raises
    ------
    IrregularError
        Why nothing does: it says what is not regular.
    """
    kind = topology.kind
    if kind not in _KINDS:
        raise IrregularError(f"there is none for a {kind}")
    if topology.damaged:
        raise IrregularError("links have failed")
    if topology.aggregation is not None:
        raise IrregularError("links are aggregated")
    config, find = _KINDS[kind]
    wanted = _built(config(topology))
    if wanted is None or not _same(topology, wanted):
        raise IrregularError(f"ports or links are not those of a {kind}")
    return find(topology, plan, state, build)


def _same(one: Topology, other: Topology) -> bool:
    """Whether two networks have the same ports, links and hosts."""
    names = ("peer_router", "peer_port", "host_at", "host_router", "host_port", "ports")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def _built(config: TopologyConfig) -> Topology | None:
    """Build a network as its section says; None: no address is wide enough."""
    address = fitting_address(config, AddressConfig())
    return None if address is None else TOPOLOGIES[config.kind](config, address)


def _channel_kinds(kind_of_port: NDArray[np.int64], stride: int, vcs: int) -> NDArray[np.int64]:
    """Kind of every channel, from those of ports for VC 0 (-1: none), `stride` apart for each VC."""
    kinds = kind_of_port.reshape(-1, 1) + stride * np.arange(vcs)
    return np.where(kind_of_port.reshape(-1, 1) < 0, -1, kinds).reshape(-1)


# --- meshes and tori: (dimension, direction, VC, coordinate in the dimension)


def _grid_config(topology: Topology) -> MeshConfig | TorusConfig:
    given: dict[str, Any] = dict(topology.params)
    return MeshConfig(kind="mesh", **given) if topology.kind == "mesh" else TorusConfig(kind="torus", **given)


def _grid_kinds(
    topology: Topology, vcs: int, dimensions: tuple[int, ...], most: int, narrow: int | None = None
) -> NDArray[np.int64]:
    """Kinds of a grid whose dimensions have these numbers in the whole; `most`: the largest radix of that.

    Of the dimension `narrow`, which is shorter than that of the whole, all coordinates are one.
    """
    radices, first = topology.params["radices"], int(topology.params["hosts_per_router"])
    kinds = np.full((topology.routers, topology.max_ports), -1, np.int64)
    rest = np.arange(topology.routers)
    for own, (dimension, radix) in enumerate(zip(dimensions, radices, strict=True)):
        for direction in (0, 1):
            kinds[:, first + 2 * own + direction] = (2 * dimension + direction) * vcs * most + (
                rest % radix if dimension != narrow else most + ANY_COORDINATE
            )
        rest = rest // radix
    return _channel_kinds(kinds, most, vcs)


def _grid(topology: Topology, plan: RoutingPlan, state: NetState, build: Build | None) -> Representatives:
    """Every two dimensions as a grid of their own: a dependency is between channels of at most two."""
    radices = tuple(int(k) for k in topology.params["radices"])
    assert plan.regular is not None
    if plan.regular.smaller is None or build is None:
        raise IrregularError("grids of two dimensions cannot be made for it")
    if len(radices) == 2:
        return _plane(topology, plan, state, build)
    if len(radices) < 2:
        raise IrregularError("it needs two dimensions")
    vcs, most = int(state["vcs"]), max(radices)
    places: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for one, other in combinations(range(len(radices)), 2):
        places.setdefault((radices[one], radices[other]), []).append((one, other))
    parts = []
    for size, pairs in places.items():
        grid = _built(_grid_config(topology).model_copy(update={"radices": size}))
        assert grid is not None, "a part of a network with addresses has some"
        smaller = plan.regular.smaller(grid)
        parts.append(
            Part(
                grid,
                smaller,
                build(grid, smaller),
                np.unique(grid.host_router, return_index=True)[1].tolist(),
                [_grid_kinds(grid, vcs, pair, most) for pair in pairs],
            )
        )
    kinds = _grid_kinds(topology, vcs, tuple(range(len(radices))), most)
    names = ", ".join(f"{one}x{other}" for one, other in places)
    words = f"every two of its {len(radices)} dimensions are explored as a {topology.kind} of their own ({names})"
    return Representatives(kinds, 2 * len(radices) * vcs * most, parts, words)


def _plane(topology: Topology, plan: RoutingPlan, state: NetState, build: Build) -> Representatives:
    """Two narrow grids, each with one dimension of the whole and a short other one (`plane_kinds`)."""
    if plan.obligation == "escape":
        raise IrregularError("it needs three dimensions where there is an escape")
    assert plan.regular is not None
    assert plan.regular.smaller is not None
    radices = tuple(int(k) for k in topology.params["radices"])
    vcs, most = int(state["vcs"]), max(radices) + 1
    parts, sizes = [], narrow_sizes((radices[0], radices[1]))
    if plan.uses_via and max(one * other for _, (one, other) in sizes) ** 3 > _MOST_WAYS_OVER:
        raise IrregularError("a dimension is too long for all ways over a router between")
    for narrow, size in sizes:
        grid = _built(_grid_config(topology).model_copy(update={"radices": size}))
        assert grid is not None, "a part of a network with addresses has some"
        smaller = plan.regular.smaller(grid)
        destinations = np.unique(grid.host_router, return_index=True)[1].tolist()
        kinds = _grid_kinds(grid, vcs, (0, 1), most, narrow)
        parts.append(Part(grid, smaller, build(grid, smaller), destinations, [kinds]))
    names = " and ".join("x".join(map(str, size)) for _, size in sizes)
    words = (
        f"a {topology.kind} of {names} is explored, each with one dimension of the whole; from one dimension to the "
        "other every coordinate is taken to follow every other one"
    )
    count = 4 * vcs * most
    return Representatives(
        _grid_kinds(topology, vcs, (0, 1), most), count, parts, words, inside=False,
        widen=lambda pairs: widen_turns(pairs, count, vcs, most, (radices[0], radices[1])),
    )  # fmt: skip


# --- dragonflies: (local or global, VC)


def _dragonfly_config(topology: Topology) -> DragonflyConfig:
    given: dict[str, Any] = {name: topology.params[name] for name in ("p", "a", "h", "g", "arrangement")}
    return DragonflyConfig(kind="dragonfly", **given)


def _dragonfly(topology: Topology, plan: RoutingPlan, state: NetState, build: Build | None) -> Representatives:
    """Destinations at three routers: where each pair of groups has one link and no port is free, all are alike."""
    p, a, h, g = (int(topology.params[name]) for name in ("p", "a", "h", "g"))
    if g != a * h + 1:
        raise IrregularError(f"it needs a*h + 1 = {a * h + 1} groups, not {g}")
    vcs = int(state["vcs"])
    kinds = np.full((topology.routers, topology.max_ports), -1, np.int64)
    kinds[:, p : p + a - 1], kinds[:, p + a - 1 :] = 0, vcs
    routers = sorted({0, topology.routers // 2, topology.routers - 1})
    destinations = [int(topology.host_at[router, 0]) for router in routers]
    words = (
        "local and global channels are told apart by their virtual channel alone, and packets explored go from all "
        f"hosts to routers {', '.join(map(str, routers))}"
    )
    part = _channel_kinds(kinds, 1, vcs)
    return Representatives(part, 2 * vcs, [Part(topology, plan, state, destinations, [part])], words)


# --- trees: (level, up or down, VC)


def _tree_config(topology: Topology) -> FatTreeConfig:
    return FatTreeConfig(kind="fat_tree", k=int(topology.params["k"]), n=int(topology.params["n"]))


def _tree(topology: Topology, plan: RoutingPlan, state: NetState, build: Build | None) -> Representatives:
    """Destination host 0: shifting the digits of hosts and switches takes every host to every other one."""
    k, n, vcs = int(topology.params["k"]), int(topology.params["n"]), int(state["vcs"])
    level = np.arange(topology.routers)[:, None] // k**n
    up = np.arange(topology.max_ports)[None, :] >= k
    kinds = np.where(topology.peer_router >= 0, (2 * level + up) * vcs, -1).astype(np.int64)
    channels = _channel_kinds(kinds, 1, vcs)
    words = "channels are told apart by level, direction and virtual channel, and packets explored go to host 0"
    return Representatives(channels, 2 * (n + 1) * vcs, [Part(topology, plan, state, [0], [channels])], words)


# --- HyperX and fully connected networks: (dimension, VC)


#: routers of a line that show what longer lines do: where a packet was, is, goes next and has its goal
_LINE = 4


def _hyperx_config(topology: Topology) -> HyperXConfig | FullyConnectedConfig:
    given: dict[str, Any] = dict(topology.params)
    if topology.kind == "hyperx":
        return HyperXConfig(kind="hyperx", **given)
    return FullyConnectedConfig(kind="fully_connected", **given)


def _hyperx_sizes(topology: Topology) -> tuple[int, ...]:
    return tuple(int(size) for size in topology.params.get("sizes", (topology.routers,)))


def _hyperx_kinds(topology: Topology, vcs: int) -> NDArray[np.int64]:
    sizes, first = _hyperx_sizes(topology), int(topology.params["hosts_per_router"])
    kinds = np.full((topology.routers, topology.max_ports), -1, np.int64)
    kinds[:, first:] = np.repeat(np.arange(len(sizes)), [size - 1 for size in sizes]) * vcs
    return _channel_kinds(kinds, 1, vcs)


def _hyperx(topology: Topology, plan: RoutingPlan, state: NetState, build: Build | None) -> Representatives:
    """Lines of four routers, destination host 0: coordinates of a dimension can be exchanged."""
    assert plan.regular is not None
    if plan.regular.smaller is None or build is None:
        raise IrregularError("a smaller network cannot be made for it")
    if plan.obligation == "escape":
        raise IrregularError("it has an escape")
    vcs, sizes = int(state["vcs"]), _hyperx_sizes(topology)
    short = tuple(min(size, _LINE) for size in sizes)
    config = _hyperx_config(topology)
    small = _built(config.model_copy(update={"sizes": short} if topology.kind == "hyperx" else {"routers": short[0]}))
    assert small is not None, "a part of a network with addresses has some"
    smaller = plan.regular.smaller(small)
    part = Part(small, smaller, build(small, smaller), [0], [_hyperx_kinds(small, vcs)])
    words = f"the {small.name} is explored, all packets of which go to host 0"
    return Representatives(_hyperx_kinds(topology, vcs), len(sizes) * vcs, [part], words)


#: kind of network → its section, as built, and what stands for it
_KINDS: dict[str, tuple[Callable[[Topology], TopologyConfig], Callable[..., Representatives]]] = {
    "mesh": (_grid_config, _grid),
    "torus": (_grid_config, _grid),
    "dragonfly": (_dragonfly_config, _dragonfly),
    "fat_tree": (_tree_config, _tree),
    "hyperx": (_hyperx_config, _hyperx),
    "fully_connected": (_hyperx_config, _hyperx),
}

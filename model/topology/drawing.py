"""Where routers stand in a picture of the network: its shape at a glance, not the cables' lengths (`floor_plan`)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.topology.base import Topology
from hopforge.model.topology.floor_plan import clos_levels, link_ends

__all__ = ["MOST_SPRINGS", "Drawing", "draw_places"]

Places = NDArray[np.float64]

#: routers of a graph without places up to which springs find some: the time grows with the square
MOST_SPRINGS = 400
#: width of a tree, in parts of its height
_TREE_SHAPE = 2.2


@dataclass(frozen=True, eq=False)
class Drawing:
    """Places of routers in a picture.

    Attributes
    ----------
    places : ndarray, float64[router, 2]
        x to the right and y upwards, in any unit.
    group : ndarray, int32[router]
        Groups whose routers stand together (a dragonfly's); all 0 if there are none.
    bend : float
        How far a link bends to its right, as a share of its length: enough to pass what stands on the straight line.
    words : str
        How to read the picture.
    """

    places: Places
    group: NDArray[np.int32]
    bend: float
    words: str


def draw_places(topology: Topology) -> Drawing:
    """Return where routers stand in a picture of the network.

    Meshes, tori, HyperX: the first two dimensions as x and y, the third one on a diagonal within each cell, more as
    blocks beside each other. Rings of tori are folded (0, 2, 4, … 5, 3, 1), so that no link spans a row. Trees:
    levels as rows, roots on top; butterflies: stages as rows. Dragonflies, Slim Flies: groups as rings on a ring;
    Cascade: as grids. Other graphs: the places of their file; without them a ring if all are connected, springs
    (networkx) up to `MOST_SPRINGS` routers, above the two slowest eigenvectors of the graph.
    """
    kind, params = topology.kind, topology.params
    none = np.zeros(topology.routers, np.int32)
    number = np.arange(topology.routers, dtype=np.int64)
    if kind in ("mesh", "torus", "hyperx"):
        return _grid(number, params["sizes" if kind == "hyperx" else "radices"], kind)
    if kind == "fat_tree":
        return Drawing(_tree(number, params["k"] ** params["n"], params["n"] + 1), none, 0.0, "levels as rows")
    if kind == "butterfly" and params["n"] > 2:
        stage = params["k"] ** (params["n"] - 1)
        words = "stages as rows, up from the first one, which is the last one, too"
        return Drawing(_tree(number, stage, params["n"] - 1), none, 0.0, words)
    if kind == "dragonfly":
        return _rings(number // params["a"], number % params["a"], params["g"], params["a"])
    if kind == "slim_fly":
        q = params["q"]
        return _rings(number // q % q, number // (q * q) * q + number % q, q, 2 * q)
    if kind == "dragonfly_plus":
        size = params["leaves"] + params["spines"]
        return _rings(number // size, number % size, params["g"], size)
    if kind == "cascade":
        return _grids(number, params["sizes"], params["g"])
    if kind in ("clos", "director"):
        return Drawing(_rows(*clos_levels(topology)), none, 0.0, "levels as rows")
    if topology.position is not None:
        return Drawing(np.array(topology.position), none, 0.08, "places on the floor plan")
    if kind == "fully_connected" or topology.routers < 4:
        return Drawing(_circle(number, topology.routers, 1.0), none, 0.04, "routers in a ring")
    return Drawing(*_graph(topology, none))


def _grid(number: NDArray[np.int64], radices: tuple[int, ...], kind: str) -> Drawing:
    sizes = list(radices)
    coordinates, stride = [], 1
    for size in sizes:
        c = number // stride % size
        coordinates.append(np.where(2 * c < size, 2 * c, 2 * (size - c) - 1) if kind == "torus" else c)
        stride *= size
    deep = sizes[2] if len(sizes) > 2 else 1
    cell = deep + 1 if deep > 1 else 1  # the third dimension runs through it on a diagonal
    places = np.zeros((len(number), 2))
    span = [1.0, 1.0]
    for dim, c in enumerate(coordinates):
        if dim == 2:
            places += np.stack([c, 0.5 * c], axis=1)
            continue
        axis = dim % 2 if dim < 2 else (dim - 1) % 2
        places[:, axis] += c * span[axis] * cell
        span[axis] *= sizes[dim]
        if dim > 1 or len(sizes) > 3:
            span[axis] += 1  # room between blocks
    if sizes and len(sizes) == 1 and kind == "torus" and sizes[0] > 2:  # a ring is drawn as a ring
        return Drawing(_circle(number, sizes[0], 1.0), np.zeros(len(number), np.int32), 0.04, "a ring")
    words = ["x to the right, y upwards"]
    words += ["z on the diagonals"] if len(sizes) > 2 else []
    words += ["more dimensions as blocks"] if len(sizes) > 3 else []
    words += ["rings are folded: 0, 2, 4, … 5, 3, 1"] if kind == "torus" else []
    bend = {"mesh": 0.06, "torus": 0.16, "hyperx": 0.14}[kind]
    return Drawing(places, np.zeros(len(number), np.int32), bend, ", ".join(words))


def _tree(number: NDArray[np.int64], per_level: int, levels: int) -> Places:
    step = max(1.0, per_level / _TREE_SHAPE / max(levels - 1, 1))
    return np.stack([number % per_level, number // per_level * step], axis=1).astype(np.float64)


def _rows(level: NDArray[np.int64], place: NDArray[np.int64]) -> Places:
    """Put levels of any numbers of routers as rows of one width, each of them even."""
    count = np.bincount(level)
    widest = int(count.max())
    step = max(1.0, widest / _TREE_SHAPE / max(len(count) - 1, 1))
    return np.stack([(place + 0.5) * widest / count[level] - 0.5, level * step], axis=1)


def _circle(number: NDArray[np.int64], count: int, radius: float) -> Places:
    angle = math.pi / 2 - 2 * math.pi * number / max(count, 1)
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _rings(group: NDArray[np.int64], member: NDArray[np.int64], groups: int, members: int) -> Drawing:
    """Put groups as small rings on a large one."""
    small = 1.0 if members == 1 else 0.5 / math.sin(math.pi / members)
    large = 0.0 if groups == 1 else (small + 0.9) / math.sin(math.pi / groups)
    angle = math.pi / 2 - 2 * math.pi * (group / groups + member / members)  # member 0 stands outside
    places = _circle(group, groups, large) + small * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return Drawing(places, group.astype(np.int32), 0.05, "groups as rings; links between groups cross the middle")


def _grids(number: NDArray[np.int64], sizes: tuple[int, int], groups: int) -> Drawing:
    """Put groups as small grids on a large ring."""
    width, height = sizes
    group, x, y = number // (width * height), number % width, number // width % height
    half = math.hypot(width - 1, height - 1) / 2
    large = 0.0 if groups == 1 else (half + 0.9) / math.sin(math.pi / groups)
    places = _circle(group, groups, large) + np.stack([x - (width - 1) / 2, y - (height - 1) / 2], axis=1)
    words = "groups as grids, rows to the right; links between groups cross the middle"
    return Drawing(places, group.astype(np.int32), 0.1, words)


def _graph(topology: Topology, none: NDArray[np.int32]) -> tuple[Places, NDArray[np.int32], float, str]:
    ends = link_ends(topology)[:, [0, 2]]
    if topology.routers > MOST_SPRINGS:
        return _spectral(ends, topology.routers), none, 0.05, "neighbours near each other (eigenvectors of the graph)"
    import networkx as nx  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

    graph: nx.Graph = nx.Graph()
    graph.add_nodes_from(range(topology.routers))
    graph.add_edges_from(ends.tolist())
    start = {router: place for router, place in enumerate(_spectral(ends, topology.routers))}
    found = nx.spring_layout(graph, pos=start, iterations=120, seed=1)
    places = np.array([found[router] for router in range(topology.routers)])
    return places, none, 0.05, "neighbours near each other (springs)"


def _spectral(ends: NDArray[np.int64], routers: int) -> Places:
    """Return the two slowest eigenvectors of the graph, each spread evenly so that nothing lies on another."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - as above
    from scipy.sparse.csgraph import laplacian  # noqa: PLC0415
    from scipy.sparse.linalg import eigsh  # noqa: PLC0415

    both = np.concatenate([ends, ends[:, ::-1]])
    matrix = csr_array((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(routers, routers))
    weights = laplacian(matrix, normed=True)
    identity = csr_array((np.ones(routers), (np.arange(routers), np.arange(routers))), shape=(routers, routers))
    start = np.random.default_rng(1).standard_normal(routers)
    if routers < 8:
        _, vectors = np.linalg.eigh(weights.toarray())
    else:
        _, vectors = eigsh(2.0 * identity - weights, k=3, which="LA", v0=start, tol=1e-4, maxiter=3000)
        vectors = vectors[:, ::-1]
    return _on_squares(vectors[:, 1], vectors[:, 2])


def _on_squares(x: NDArray[np.float64], y: NDArray[np.float64]) -> Places:
    """Put points on the squares of a board: columns by `x`, within each by `y`."""
    side = math.isqrt(len(x) - 1) + 1
    places = np.zeros((len(x), 2))
    for column, chosen in enumerate(np.array_split(np.argsort(x, kind="stable"), side)):
        order = chosen[np.argsort(y[chosen], kind="stable")]
        places[order, 0] = column
        places[order, 1] = np.arange(len(order)) - (len(order) - 1) / 2
    return places

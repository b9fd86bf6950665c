"""What the figures of LOREN share: names and colours of the schemes, and the networks that tables are made for."""

from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.irregular.landmarks import fitting
from hopforge.model.irregular.loren import loren_next_hops, loren_tables
from hopforge.model.irregular.neighbours import neighbour_array
from hopforge.model.irregular.shortest import shortest_next_hops
from hopforge.model.irregular.tables import RoutingTables, build_tables
from hopforge.model.topology import build
from hopforge.model.topology.random_graph import layout_random_edges

SOURCE = "seed 002"
DEGREE = 4
#: longest links of the thesis' networks by the side of the floor plan (section 4.4.1)
LENGTH = {8: 2, 32: 8}
#: sizes of tables that it compares by the side of the floor plan (section 4.4.1)
LIMITS = {8: (18, 32), 32: (116, 502)}
#: virtual channels by the side of the floor plan (table 6.1)
VCS = {8: 2, 32: 6}
#: schemes in the order of their colours
LABELS = {"loren": "LOREN", "cowen": "Cowen", "thorup_zwick": "Thorup–Zwick", "shortest": "shortest"}
COLOURS = {scheme: number for number, scheme in enumerate(LABELS)}
#: schemes that the thesis compares under ACRO
COMPARED = ("loren", "cowen", "thorup_zwick")


def layout_neighbours(side: int, length: int, seed: int, graph: int) -> NDArray[np.int32]:
    """Neighbours of a layout-conscious random graph, int32[node, degree], connected or not."""
    edges = layout_random_edges(side, DEGREE, length, np.random.default_rng((seed, graph, side, length)))
    both = np.concatenate([edges, edges[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    counts = np.bincount(both[:, 0], minlength=side * side)
    if (counts == DEGREE).all():
        return both[:, 1].reshape(side * side, DEGREE).astype(np.int32)
    rows = np.split(both[:, 1], np.cumsum(counts)[:-1])
    return neighbour_array([row.tolist() for row in rows])


@lru_cache(maxsize=4)
def connected_neighbours(side: int, length: int, seed: int, graph: int) -> NDArray[np.int32]:
    """As `layout_neighbours`; drawn until the graph is connected, which LOREN's own check tells."""
    for attempt in range(100):
        neighbours = layout_neighbours(side, length, seed, graph + 1000 * attempt)
        try:
            loren_tables(neighbours)
        except UserError:
            continue
        return neighbours
    raise UserError(f"none of 100 graphs of side {side} was connected")


def scheme_next_hops(
    neighbours: NDArray[np.int32], scheme: str, t_max: int, seed: int, graph: int
) -> NDArray[np.int32]:
    """Next hops of a scheme of `LABELS` with at most `t_max` entries, int32[node, destination]."""
    if scheme == "loren":
        return loren_next_hops(loren_tables(neighbours, t_max))
    if scheme == "shortest":
        return shortest_next_hops(neighbours)
    return fitting(neighbours, scheme, t_max, np.random.default_rng((seed, graph))).next_hop


def graphs_text(number: int) -> str:
    """``1 graph``, ``2 graphs``."""
    return f"{number} graph{'s' if number != 1 else ''}"


class Case(NamedTuple):
    """A network with tables.

    Attributes
    ----------
    side : int
        Of the floor plan.
    t_max : int
        Most entries of a table.
    scheme : str
        Of `LABELS`, or ``file``.
    graph : int
        Seed of the network.
    file : Path, optional
        Next hops of scheme ``file``.
    """

    side: int
    t_max: int
    scheme: str
    graph: int
    file: Path | None = None


def case_config(case: Case, vcs: int, pattern: str = "uniform") -> Config:
    """Describe a network with the routers of table 6.1: 8 flits per VC, 4 stages, packets of 1 flit."""
    tables: dict[str, object] = {"scheme": case.scheme, "layers": "acro"}
    if case.scheme in COMPARED:
        tables["t_max"] = case.t_max
    if case.file is not None:
        tables["file"] = case.file
    return Config.model_validate(
        {
            "name": f"loren{case.side**2}",
            "seed": case.graph,
            "topology": {
                "kind": "layout_random", "n": case.side, "degree": DEGREE, "length": LENGTH[case.side],
                "seed": case.graph,
            },
            "address": {"width_bits": 24},
            "tables": tables,
            "router": {"vcs": vcs, "buffer_flits": 8, "rc_cycles": 1},
            "routing": {"algorithm": "tables"},
            "traffic": {"pattern": pattern, "packet_flits": 1},
        }
    )  # fmt: skip


@lru_cache(maxsize=4)
def case_tables(case: Case) -> RoutingTables:
    """Tables and ACRO's layers."""
    config = case_config(case, VCS[case.side])
    return build_tables(config.tables, build(config.topology, config.address), config.seed)


@lru_cache(maxsize=64)
def fitting_graph(side: int, t_max: int, seed: int, number: int) -> tuple[int, int]:
    """Find a network on which ACRO gives all of `COMPARED` no more layers than the thesis has virtual channels.

    Returns
    -------
    tuple of int
        Seed of the network; networks drawn for the first `number` + 1 that fit.
    """
    first = fitting_graph(side, t_max, seed, number - 1)[0] + 1 if number else 1000 * seed
    for graph in count(first):
        if all(case_tables(Case(side, t_max, scheme, graph)).layers.count <= VCS[side] for scheme in COMPARED):
            return graph, graph - 1000 * seed + 1
    raise AssertionError("unreachable")

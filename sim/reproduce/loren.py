"""LOREN's tables: least size (figures 4.5, 4.6, 7.1), path lengths (4.3, 4.4), load of channels (table 4.2)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.irregular.channels import channel_list, check_next_hops, hop_counts
from hopforge.model.irregular.landmarks import fitting
from hopforge.model.irregular.load import all_to_all_load
from hopforge.model.irregular.loren import loren_next_hops, loren_tables
from hopforge.model.irregular.neighbours import neighbour_array
from hopforge.model.irregular.shortest import shortest_next_hops
from hopforge.model.plots import PALETTE, Line, draw_lines, new_figure, style_axes
from hopforge.model.topology.random_graph import layout_random_edges
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer

_SOURCE = "seed 002"
_LABELS = {"shortest": "shortest", "loren": "LOREN", "cowen": "Cowen", "thorup_zwick": "Thorup–Zwick"}

#: mean over graphs of the largest of the least tables, degree 4, length 4 (thesis, figure 4.5; spec compact-routing.md)
_LEAST = {64: 13.9, 256: 18.4, 1024: 21.3, 4096: 22.7, 65_536: 27.3, 1_048_576: 28.0}
#: table 4.2: mean and deviation of the paths per channel by (side, t_max, scheme)
_LOAD = {
    (8, 18): {"cowen": (71.61, 57.31), "thorup_zwick": (73.29, 62.49), "loren": (71.82, 53.22)},
    (8, 32): {"cowen": (69.09, 51.95), "thorup_zwick": (69.95, 52.77), "loren": (67.25, 50.51)},
    (32, 116): {"cowen": (1966.0, 1506.0), "thorup_zwick": (1990.0, 1458.0), "loren": (2184.0, 1165.0)},
    (32, 502): {"cowen": (1804.0, 1138.0), "thorup_zwick": (1784.0, 1077.0), "loren": (1826.0, 1056.0)},
}
_LENGTH = {8: 2, 32: 8}


def _neighbours(side: int, length: int, seed: int, graph: int) -> NDArray[np.int32]:
    edges = layout_random_edges(side, 4, length, np.random.default_rng((seed, graph, side, length)))
    both = np.concatenate([edges, edges[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    counts = np.bincount(both[:, 0], minlength=side * side)
    if (counts == 4).all():
        return both[:, 1].reshape(side * side, 4).astype(np.int32)
    rows = np.split(both[:, 1], np.cumsum(counts)[:-1])
    return neighbour_array([row.tolist() for row in rows])


def _connected(side: int, length: int, seed: int, graph: int) -> NDArray[np.int32]:
    """Draw graphs until one is connected; LOREN's own check tells."""
    for attempt in range(100):
        neighbours = _neighbours(side, length, seed, graph + 1000 * attempt)
        try:
            loren_tables(neighbours)
        except UserError:
            continue
        return neighbours
    raise UserError(f"none of 100 graphs of side {side} was connected")


def _least_points(options: Options) -> list[Point]:
    graphs = {64: 100, 256: 40, 1024: 20, 4096: 10, 65_536: 4, 1_048_576: 1} if options.full else {
        64: 20, 256: 20, 1024: 8, 4096: 3, 65_536: 1
    }  # fmt: skip
    return [{"nodes": nodes, "graph": graph} for nodes, count in graphs.items() for graph in range(count)]


def _least(point: Point, options: Options) -> list[Row]:
    nodes, graph = integer(point, "nodes"), integer(point, "graph")
    tables = loren_tables(_connected(round(nodes**0.5), 4, options.seed, graph))
    row: Row = {**point, "entries": tables.least_entries, "bits": tables.least_entries * tables.entry_bits()}
    return [row]


def _compare_least(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for nodes, thesis in _LEAST.items():
        part = data[data["nodes"] == nodes]
        ours = float(part["entries"].mean()) if len(part) else None
        note = f"mean of {len(part)} graphs; the thesis: of 1000" if len(part) else "measured with --full"
        found.append(Comparison(f"entries, {nodes} switches", "", thesis, ours, note))
    largest = data[data["nodes"] == 1_048_576]
    bits = float(largest["bits"].mean()) if len(largest) else None
    note = "2·log2 N bits an entry" + ("" if len(largest) else "; measured with --full")
    return [*found, Comparison("bits, 1048576 switches", "bit", 1140.0, bits, note)]


def _draw_least(data: pd.DataFrame, options: Options) -> Figure:
    sizes = sorted(int(nodes) for nodes in data["nodes"].unique())
    ours = [float(data[data["nodes"] == nodes]["entries"].mean()) for nodes in sizes]
    figure, (axes,) = new_figure()
    style_axes(
        axes, title="Least entries of LOREN, degree 4, length 4", x_label="switches", y_label="entries", log_x=True,
        x_ticks=sizes,
    )  # fmt: skip
    axes.set_ylim(0, 32)
    thesis = [_LEAST[nodes] for nodes in sizes]
    draw_lines(axes, [Line("thesis", sizes, thesis, color=1, dashed=True), Line("ours", sizes, ours, color=0)])
    return figure


def _load_points(options: Options) -> list[Point]:
    graphs = 10 if options.full else 3
    return [
        {"side": side, "t_max": t_max, "scheme": scheme, "graph": graph}
        for side, t_max in _LOAD
        for scheme in ("loren", "cowen", "thorup_zwick", "shortest")
        for graph in range(graphs)
        if scheme != "shortest" or t_max in (18, 116)
    ]


def _load(point: Point, options: Options) -> list[Row]:
    side, t_max, graph = (integer(point, key) for key in ("side", "t_max", "graph"))
    neighbours = _connected(side, _LENGTH[side], options.seed, graph)
    scheme = str(point["scheme"])
    if scheme == "loren":
        next_hop = loren_next_hops(loren_tables(neighbours, t_max))
    elif scheme == "shortest":
        next_hop = shortest_next_hops(neighbours)
    else:
        next_hop = fitting(neighbours, scheme, t_max, np.random.default_rng((options.seed, graph))).next_hop
    channels = channel_list(neighbours)
    table = check_next_hops(next_hop, channels)
    hops = hop_counts(table, channels)[~np.eye(side * side, dtype=bool)]
    load = all_to_all_load(table, channels)
    return [
        {**point, "mean": float(load.mean()), "deviation": float(load.std()), "hops": float(hops.mean()),
         "longest": int(hops.max())}
    ]  # fmt: skip


def _compare_load(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for (side, t_max), schemes in _LOAD.items():
        for scheme, (mean, deviation) in schemes.items():
            part = data[(data["side"] == side) & (data["t_max"] == t_max) & (data["scheme"] == scheme)]
            where = f"{_LABELS[scheme]}, {side * side} switches, {t_max} entries"
            note = f"{len(part)} graphs"
            found.append(Comparison(f"{where}: mean", "paths", mean, float(part["mean"].mean()), note))
            found.append(Comparison(f"{where}: deviation", "paths", deviation, float(part["deviation"].mean()), note))
    return found


def _draw_load(data: pd.DataFrame, options: Options) -> Figure:
    figure, panels = new_figure(panels=2, width_in=6.0)
    for axes, side in zip(panels, _LENGTH, strict=True):
        style_axes(
            axes, title=f"{side * side} switches, all to all: ours, and × thesis", x_label="mean paths per channel",
            y_label="deviation of the paths per channel",
        )  # fmt: skip
        for colour, (scheme, label) in zip(PALETTE, _LABELS.items(), strict=False):
            part = data[(data["side"] == side) & (data["scheme"] == scheme)]
            for t_max in sorted(part["t_max"].unique()):
                x, y = (float(part[part["t_max"] == t_max][key].mean()) for key in ("mean", "deviation"))
                axes.plot(x, y, marker="o", color=colour)
                name = label if scheme == "shortest" else f"{label}, {t_max}"
                axes.annotate(name, (x, y), xytext=(6, 3), textcoords="offset points", fontsize=8, color=colour)
                paper = _LOAD[side, int(t_max)].get(scheme)
                if paper is not None:
                    axes.plot([x, paper[0]], [y, paper[1]], color=colour, linewidth=0.6, alpha=0.6)
                    axes.plot(*paper, marker="x", color=colour)
        axes.margins(0.15)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "loren.fig4.5",
        "Least entries that LOREN's tables need",
        f"{_SOURCE}, figures 4.5, 4.6, 7.1",
        ("layout-conscious random graphs of degree 4 and length 4, links mixed by random switches",),
        _least_points,
        _least,
        _compare_least,
        _draw_least,
        aliases=("loren.fig4.6", "loren.fig7.1"),
    ),
    Reproduction(
        "loren.table4.2",
        "Paths per channel under all-to-all traffic",
        f"{_SOURCE}, table 4.2",
        (
            "degree 4, length 2 (64 switches) and 8 (1024)",
            "landmarks: the parameter with most landmarks whose tables fit",
            "ties of shortest paths: lowest number",
        ),
        _load_points,
        _load,
        _compare_load,
        _draw_load,
    ),
)

"""Load of channels (table 4.2) and of switches, with landmarks and their clusters (figures 4.9 to 4.11)."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hopforge.model.irregular.channels import ChannelList, channel_list, check_next_hops, hop_counts
from hopforge.model.irregular.landmarks import LandmarkTables, landmark_tables, thorup_zwick
from hopforge.model.irregular.neighbours import distances
from hopforge.model.irregular.shortest import shortest_next_hops
from hopforge.model.output.plots import PALETTE, new_figure, style_axes
from hopforge.sim.pages.route_load import all_to_all_load
from hopforge.sim.reproduce.irregular.loren_networks import (
    COLOURS,
    LABELS,
    LENGTH,
    SOURCE,
    connected_neighbours,
    graphs_text,
    scheme_next_hops,
)
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer

#: table 4.2: mean and deviation of the paths per channel by (side, t_max, scheme)
_LOAD = {
    (8, 18): {"cowen": (71.61, 57.31), "thorup_zwick": (73.29, 62.49), "loren": (71.82, 53.22)},
    (8, 32): {"cowen": (69.09, 51.95), "thorup_zwick": (69.95, 52.77), "loren": (67.25, 50.51)},
    (32, 116): {"cowen": (1966.0, 1506.0), "thorup_zwick": (1990.0, 1458.0), "loren": (2184.0, 1165.0)},
    (32, 502): {"cowen": (1804.0, 1138.0), "thorup_zwick": (1784.0, 1077.0), "loren": (1826.0, 1056.0)},
}
#: figures 4.9 to 4.11: side, entries of LOREN, landmarks and entries of Thorup and Zwick's tables, patterns
_SIDE, _LOREN_ENTRIES, _LANDMARKS, _LANDMARK_ENTRIES, _PATTERNS = 32, 116, 18, 75, 1000
#: least and largest load of a switch, of both schemes together (section 4.4.5)
_LEAST_LOAD, _LARGEST_LOAD = 2149.0, 75_544.0


def _load_points(options: Options) -> list[Point]:
    graphs = 10 if options.full else 3
    return [
        {"side": side, "t_max": t_max, "scheme": scheme, "graph": graph}
        for side, t_max in _LOAD
        for scheme in LABELS
        for graph in range(graphs)
        if scheme != "shortest" or t_max in (18, 116)
    ]


def _load(point: Point, options: Options) -> list[Row]:
    side, t_max, graph = (integer(point, key) for key in ("side", "t_max", "graph"))
    neighbours = connected_neighbours(side, LENGTH[side], options.seed, graph)
    scheme = str(point["scheme"])
    next_hop = scheme_next_hops(neighbours, scheme, t_max, options.seed, graph)
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
            where = f"{LABELS[scheme]}, {side * side} switches, {t_max} entries"
            note = graphs_text(len(part))
            found.append(Comparison(f"{where}: mean", "paths", mean, float(part["mean"].mean()), note))
            found.append(Comparison(f"{where}: deviation", "paths", deviation, float(part["deviation"].mean()), note))
    return found


def _draw_load(data: pd.DataFrame, options: Options) -> Figure:
    figure, panels = new_figure(panels=2, width_in=6.0)
    for axes, side in zip(panels, LENGTH, strict=True):
        style_axes(
            axes, title=f"{side * side} switches, all to all: ours, and × thesis", x_label="mean paths per channel",
            y_label="deviation of the paths per channel",
        )  # fmt: skip
        for scheme, label in LABELS.items():
            colour = PALETTE[COLOURS[scheme]]
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


def switch_load(next_hop: NDArray[np.int32], channels: ChannelList) -> NDArray[np.float64]:
    """Mean number of paths that begin, end or pass at a switch in `_PATTERNS` patterns, float64[switch].

    In a pattern every switch sends to one of all others, each equally likely; the expected value is exact.
    """
    nodes = len(next_hop)
    into = np.bincount(
        channels.target, weights=all_to_all_load(check_next_hops(next_hop, channels), channels), minlength=nodes
    )
    return np.asarray(_PATTERNS * (1 + into / (nodes - 1)))


def landmarks_of_number(
    distance: NDArray[np.uint8], number: int, entries: int, shortest: NDArray[np.int32], seed: int
) -> LandmarkTables:
    """Draw Thorup and Zwick's tables until they have `number` landmarks, of ten such the one nearest to `entries`."""
    draw = thorup_zwick(distance, np.random.default_rng((seed, number)))
    found: list[LandmarkTables] = []
    while len(found) < 10:
        for size in range(1, number + 1):
            chosen = draw(size)
            if len(chosen) == number:
                found.append(landmark_tables(chosen, distance, shortest))
    return min(found, key=lambda tables: abs(int(tables.entries.max()) - entries))


@lru_cache(maxsize=2)
def _switches(graph: int, seed: int) -> tuple[LandmarkTables, NDArray[np.float64], NDArray[np.float64]]:
    """Landmarks and the loads under Thorup and Zwick and under LOREN; figures 4.9 to 4.11 share them."""
    neighbours = connected_neighbours(_SIDE, LENGTH[_SIDE], seed, graph)
    channels = channel_list(neighbours)
    landmark = landmarks_of_number(
        distances(neighbours), _LANDMARKS, _LANDMARK_ENTRIES, shortest_next_hops(neighbours), seed
    )
    loren = scheme_next_hops(neighbours, "loren", _LOREN_ENTRIES, seed, graph)
    return landmark, switch_load(landmark.next_hop, channels), switch_load(loren, channels)


def _switch_points(options: Options) -> list[Point]:
    return [{"graph": graph} for graph in range(5 if options.full else 1)]


def _measure_switches(point: Point, options: Options) -> list[Row]:
    landmark, thorup, loren = _switches(integer(point, "graph"), options.seed)
    chosen, entries = set(landmark.landmarks.tolist()), int(landmark.entries.max())
    return [
        {**point, "switch": u, "x": u % _SIDE, "y": u // _SIDE, "landmark": int(landmark.landmark_of[u]),
         "is_landmark": u in chosen, "entries": entries, "thorup_zwick": float(thorup[u]), "loren": float(loren[u])}
        for u in range(_SIDE * _SIDE)
    ]  # fmt: skip


def _compare_clusters(data: pd.DataFrame, options: Options) -> list[Comparison]:
    graphs = data.groupby("graph")
    note = f"{graphs_text(len(graphs))}; of ten draws with 18 landmarks the one nearest to the thesis' entries"
    sizes = data.groupby(["graph", "landmark"]).size().groupby("graph")
    values = (
        ("landmarks", float(_LANDMARKS), graphs["is_landmark"].sum()),
        ("entries of the largest table", float(_LANDMARK_ENTRIES), graphs["entries"].first()),
        ("switches of the smallest cluster", None, sizes.min()),
        ("switches of the largest cluster", None, sizes.max()),
    )
    return [Comparison(quantity, "", stated, float(ours.mean()), note) for quantity, stated, ours in values]


def _compare_switches(scheme: str, data: pd.DataFrame, options: Options) -> list[Comparison]:
    graphs = data.groupby("graph")[scheme]
    note = (
        f"mean of {graphs_text(data['graph'].nunique())}; a path counts where it begins, ends or passes; the "
        "thesis: least and largest of both schemes on one graph"
    )
    marked = data[data["is_landmark"]].groupby("graph")[scheme].mean().mean()
    others = data[~data["is_landmark"]].groupby("graph")[scheme].mean().mean()
    both = data.groupby("graph")[["loren", "thorup_zwick"]].min().min(axis=1).mean()
    top = _LARGEST_LOAD if scheme == "thorup_zwick" else None
    return [
        Comparison("least load of a switch, both schemes", "paths", _LEAST_LOAD, float(both), note),
        Comparison(f"largest load of a switch, {LABELS[scheme]}", "paths", top, float(graphs.max().mean()), note),
        Comparison(f"mean load, {LABELS[scheme]}", "paths", None, float(graphs.mean().mean()), ""),
        Comparison(f"deviation of the load, {LABELS[scheme]}", "paths", None, float(graphs.std(ddof=0).mean()), ""),
        Comparison("mean load of the 18 switches that are landmarks of Thorup–Zwick", "paths", None, float(marked), ""),
        Comparison("mean load of all other switches", "paths", None, float(others), ""),
    ]


def _draw_clusters(data: pd.DataFrame, options: Options) -> Figure:
    part = data[data["graph"] == 0]
    figure, (axes,) = new_figure(width_in=6.0, height_in=6.2)
    style_axes(axes, title="Landmarks (L) and their clusters, Thorup–Zwick", x_label="x", y_label="y")
    axes.grid(visible=False)
    number = {landmark: k for k, landmark in enumerate(sorted(part["landmark"].unique()))}
    # neighbouring numbers in unlike colours
    shades = np.array([number[landmark] * 7 % len(number) for landmark in part["landmark"]])
    axes.imshow(shades.reshape(_SIDE, _SIDE), cmap="tab20", origin="lower", vmin=0, vmax=len(number), alpha=0.75)
    for u in part[part["is_landmark"]]["switch"].tolist():
        axes.text(u % _SIDE, u // _SIDE, "L", ha="center", va="center", fontsize=9, fontweight="bold")
    return figure


def _draw_switches(scheme: str, data: pd.DataFrame, options: Options) -> Figure:
    part = data[data["graph"] == 0]
    figure, (axes,) = new_figure(width_in=6.6, height_in=6.0)
    entries = _LOREN_ENTRIES if scheme == "loren" else int(part["entries"].iloc[0])
    style_axes(axes, title=f"Paths at a switch, {LABELS[scheme]}, {entries} entries", x_label="x", y_label="y")
    axes.grid(visible=False)
    both = part[["loren", "thorup_zwick"]].to_numpy()
    image = axes.imshow(
        part[scheme].to_numpy().reshape(_SIDE, _SIDE), cmap="coolwarm", origin="lower", vmin=both.min(), vmax=both.max()
    )
    for u in part[part["is_landmark"]]["switch"].tolist() if scheme == "thorup_zwick" else ():
        axes.text(u % _SIDE, u // _SIDE, "L", ha="center", va="center", fontsize=7)
    bar = figure.colorbar(image, ax=axes, shrink=0.85)
    bar.set_label("paths in 1000 uniform patterns; scale of both schemes", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    return figure


def _switch_figure(
    figure: str,
    title: str,
    compare: Callable[[pd.DataFrame, Options], Sequence[Comparison]],
    draw: Callable[[pd.DataFrame, Options], Figure],
) -> Reproduction:
    return Reproduction(
        f"loren.fig{figure}",
        title,
        f"{SOURCE}, figure {figure}",
        (
            "32×32 switches, degree 4, length 8; Thorup–Zwick with 18 landmarks, LOREN with 116 entries",
            "1000 uniform patterns as their expected value; scale from the least to the largest load of both",
        ),
        _switch_points,
        _measure_switches,
        compare,
        draw,
    )


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "loren.table4.2",
        "Paths per channel under all-to-all traffic",
        f"{SOURCE}, table 4.2",
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
    _switch_figure("4.9", "Landmarks and their clusters", _compare_clusters, _draw_clusters),
    _switch_figure(
        "4.10",
        "Load of the switches under Thorup and Zwick's tables",
        lambda data, options: _compare_switches("thorup_zwick", data, options),
        lambda data, options: _draw_switches("thorup_zwick", data, options),
    ),
    _switch_figure(
        "4.11",
        "Load of the switches under LOREN's tables",
        lambda data, options: _compare_switches("loren", data, options),
        lambda data, options: _draw_switches("loren", data, options),
    ),
)

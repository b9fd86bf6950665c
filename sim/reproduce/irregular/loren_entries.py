"""How many entries and bits the tables of LOREN and of the landmark schemes need (figures 3.1, 4.5, 4.6, 7.1)."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hopforge.model.irregular.landmarks import fitting
from hopforge.model.irregular.loren import loren_tables
from hopforge.model.output.plots import PALETTE, PAPER, Line, draw_lines, draw_paper_points, new_figure, style_axes
from hopforge.sim.reproduce.irregular.loren_networks import (
    COLOURS,
    COMPARED,
    LABELS,
    SOURCE,
    connected_neighbours,
    graphs_text,
)
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer

_LENGTH = 4
#: mean over graphs of the largest of the least tables, degree 4, length 4 (spec compact-routing.md; for 4096 switches
#: also section 4.4.2.1)
_LEAST = {
    "loren": {64: 13.9, 256: 18.4, 1024: 21.3, 4096: 22.7, 65_536: 27.3, 1_048_576: 28.0},
    "cowen": {4096: 257.0},
    "thorup_zwick": {4096: 150.0},
}
_LARGEST = 1_048_576
_GRAPHS = {64: 20, 256: 20, 1024: 8, 4096: 3, 65_536: 1}
_FULL_GRAPHS = {64: 100, 256: 40, 1024: 20, 4096: 10, 65_536: 4, _LARGEST: 1}
_LANDMARK_GRAPHS = {64: 10, 256: 3}
_FULL_LANDMARK_GRAPHS = {64: 40, 256: 20, 1024: 8, 4096: 1}
#: destinations that one InfiniBand subnet can name (section 3.1: "approximately 48,000 LIDs at maximum")
_INFINIBAND = 48_000


def _points(options: Options) -> list[Point]:
    loren, landmarks = (_FULL_GRAPHS, _FULL_LANDMARK_GRAPHS) if options.full else (_GRAPHS, _LANDMARK_GRAPHS)
    return [
        {"scheme": scheme, "nodes": nodes, "graph": graph}
        for scheme in COMPARED
        for nodes, number in (loren if scheme == "loren" else landmarks).items()
        for graph in range(number)
    ]


@lru_cache(maxsize=1024)
def _least(scheme: str, nodes: int, graph: int, seed: int) -> tuple[int, int]:
    """Entries of the largest table, and bits of an entry; figures 4.5 and 4.6 share it."""
    neighbours = connected_neighbours(round(nodes**0.5), _LENGTH, seed, graph)
    if scheme == "loren":
        tables = loren_tables(neighbours)
        return tables.least_entries, tables.entry_bits()
    landmark = fitting(neighbours, scheme, None, np.random.default_rng((seed, graph)))
    return int(landmark.entries.max()), 2 * (nodes - 1).bit_length()


def _measure(point: Point, options: Options) -> list[Row]:
    nodes, graph = integer(point, "nodes"), integer(point, "graph")
    entries, entry_bits = _least(str(point["scheme"]), nodes, graph, options.seed)
    return [{**point, "entries": entries, "bits": entries * entry_bits}]


def _mean(data: pd.DataFrame, scheme: str, nodes: int, column: str) -> tuple[float | None, int]:
    part = data[(data["scheme"] == scheme) & (data["nodes"] == nodes)]
    return (float(part[column].mean()) if len(part) else None), len(part)


def _compare_entries(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for scheme, stated in _LEAST.items():
        for nodes in sorted({*stated, *data[data["scheme"] == scheme]["nodes"]}):
            ours, graphs = _mean(data, scheme, nodes, "entries")
            note = f"mean of {graphs_text(graphs)}; the thesis: of 1000" if graphs else "measured with --full"
            found.append(Comparison(f"entries, {LABELS[scheme]}, {nodes} switches", "", stated.get(nodes), ours, note))
    loren, _ = _mean(data, "loren", 4096, "entries")
    for scheme, percent in (("cowen", 91.0), ("thorup_zwick", 85.0)):
        other, _ = _mean(data, scheme, 4096, "entries")
        less = 100 * (1 - loren / other) if loren is not None and other is not None else None
        note = "landmarks: the parameter of least tables" + ("" if less is not None else "; measured with --full")
        found.append(Comparison(f"4096 switches: LOREN below {LABELS[scheme]}", "%", percent, less, note))
    most, _ = _mean(data, "loren", _LARGEST, "entries")
    growth = 100 * (most / loren - 1) if loren is not None and most is not None else None
    note = "one graph" if growth is not None else "measured with --full"
    return [*found, Comparison(f"LOREN, growth from 4096 to {_LARGEST} switches", "%", 23.0, growth, note)]


def shortest_bits(nodes: int) -> int:
    """Bits of a table with an entry for every destination, N·log₂ N (section 4.4.2.2)."""
    return nodes * max(1, (nodes - 1).bit_length())


def _compare_bits(data: pd.DataFrame, options: Options) -> list[Comparison]:
    largest, graphs = _mean(data, "loren", _LARGEST, "bits")
    note = "2·log₂ N bits an entry; " + ("one graph" if graphs else "measured with --full")
    found = [
        Comparison(f"LOREN, {_LARGEST} switches", "bit", 1140.0, largest, note),
        _shortest_comparison(),
    ]
    for scheme in COMPARED:
        for nodes in sorted(data[data["scheme"] == scheme]["nodes"].unique()):
            ours, graphs = _mean(data, scheme, int(nodes), "bits")
            note = f"mean of {graphs_text(graphs)}, 2·log₂ N bits an entry"
            if scheme != "loren" or nodes != _LARGEST:
                found.append(Comparison(f"{LABELS[scheme]}, {nodes} switches", "bit", None, ours, note))
    return found


def _shortest_comparison() -> Comparison:
    note = "N·log₂ N; the thesis rounds"
    return Comparison(f"shortest, {_LARGEST} switches", "bit", 20e6, float(shortest_bits(_LARGEST)), note)


def _infiniband(axes: Axes) -> None:
    bits = float(shortest_bits(_INFINIBAND))
    axes.axhline(bits, color=PAPER, linewidth=1, linestyle=":")
    axes.annotate(
        "InfiniBand: 48 000 destinations", (64, bits), xytext=(0, 5), textcoords="offset points", fontsize=9,
        color=PAPER,
    )  # fmt: skip


_SIZES = (64, 256, 1024, 4096, 65_536, _LARGEST)


#: how far the name of a curve is moved up, points
_SHIFT = {"loren": -9, "cowen": -6, "thorup_zwick": 6}


def _axes(axes: Axes, title: str, y_label: str, y_ticks: Sequence[float] | None = None) -> None:
    style_axes(
        axes, title=title, x_label="switches", y_label=y_label, log_x=True, log_y=True, x_ticks=_SIZES,
        y_ticks=y_ticks,
    )  # fmt: skip


def _draw_schemes(axes: Axes, data: pd.DataFrame, column: str) -> None:
    """Draw a curve per scheme with its name at its last point, as the curves end at different sizes."""
    for scheme in COMPARED:
        means = data[data["scheme"] == scheme].groupby("nodes")[column].mean()
        color = PALETTE[COLOURS[scheme]]
        axes.plot(means.index.to_numpy(), means.to_numpy(), color=color, linewidth=1.7, marker="o", markersize=4.5)
        axes.annotate(
            LABELS[scheme], (float(means.index[-1]), float(means.iloc[-1])), xytext=(8, _SHIFT[scheme]),
            textcoords="offset points", color=color, fontsize=9, va="center",
        )  # fmt: skip


def _draw_entries(data: pd.DataFrame, options: Options) -> Figure:
    figure, (axes,) = new_figure()
    _axes(axes, "Least entries of the largest table, degree 4, length 4", "entries", (10, 20, 50, 100, 200))
    axes.set_xlim(45, 2.5e6)
    _draw_schemes(axes, data, "entries")
    stated = [(nodes, value) for values in _LEAST.values() for nodes, value in values.items()]
    stated.sort(key=lambda pair: pair[1])
    x, y = zip(*stated, strict=True)
    draw_paper_points(axes, x, y, label="thesis", offset=(12, 0))
    return figure


def _shortest_line() -> Line:
    return Line(LABELS["shortest"], _SIZES, [shortest_bits(nodes) for nodes in _SIZES], color=COLOURS["shortest"])


def _draw_bits(data: pd.DataFrame, options: Options) -> Figure:
    figure, (axes,) = new_figure()
    _axes(axes, "Least size of the largest table, degree 4, length 4", "bits")
    _infiniband(axes)
    _draw_schemes(axes, data, "bits")
    draw_lines(axes, [_shortest_line()])
    draw_paper_points(axes, [_LARGEST, _LARGEST], [20e6, 1140.0], label="thesis", offset=(0, -14))
    return figure


def _shortest_points(options: Options) -> list[Point]:
    return [{"nodes": nodes} for nodes in _SIZES]


def _measure_shortest(point: Point, options: Options) -> list[Row]:
    nodes = integer(point, "nodes")
    return [{"nodes": nodes, "bits": shortest_bits(nodes), "fits": nodes <= _INFINIBAND}]


def _compare_shortest(data: pd.DataFrame, options: Options) -> list[Comparison]:
    bound = float(shortest_bits(_INFINIBAND))
    note = "a table with all destinations that a subnet can name; the plot with the thesis' own bound is lost"
    fits = float(data[data["fits"]]["nodes"].max())
    return [
        _shortest_comparison(),
        Comparison("bound of InfiniBand", "bit", None, bound, note),
        Comparison("largest of these networks within it", "switches", None, fits, "48 000 destinations at most"),
    ]


def _draw_shortest(data: pd.DataFrame, options: Options) -> Figure:
    figure, (axes,) = new_figure()
    _axes(axes, "Table for shortest paths", "bits")
    _infiniband(axes)
    draw_lines(axes, [_shortest_line()])
    draw_paper_points(axes, _LARGEST, 20e6, label="thesis", offset=(0, -14))
    return figure


_ASSUMED = (
    "layout-conscious random graphs of degree 4 and length 4, links mixed by random switches",
    "landmarks: the parameter whose largest table is smallest",
)
REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "loren.fig3.1",
        "Tables for shortest paths, and the bound of InfiniBand",
        f"{SOURCE}, figure 3.1",
        ("an entry for every destination, log₂ N bits each",),
        _shortest_points,
        _measure_shortest,
        _compare_shortest,
        _draw_shortest,
    ),
    Reproduction(
        "loren.fig4.5",
        "Least entries that the tables need",
        f"{SOURCE}, figure 4.5",
        _ASSUMED,
        _points,
        _measure,
        _compare_entries,
        _draw_entries,
    ),
    Reproduction(
        "loren.fig4.6",
        "Least bits that the tables need",
        f"{SOURCE}, figures 4.6 and 7.1 (the same with the bound of InfiniBand)",
        _ASSUMED,
        _points,
        _measure,
        _compare_bits,
        _draw_bits,
        aliases=("loren.fig7.1",),
    ),
)

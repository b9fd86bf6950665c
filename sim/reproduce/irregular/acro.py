"""Virtual layers by ACRO, LASH and LASH-TOR: their number (figures 5.4 and 5.5) and the time to find them (5.6)."""

import time
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hopforge.model.irregular.channels import channel_list, check_next_hops
from hopforge.model.irregular.layers import assign_layers
from hopforge.model.irregular.neighbours import neighbour_array
from hopforge.model.irregular.shortest import shortest_next_hops
from hopforge.model.output.plots import Line, draw_lines, new_figure, style_axes
from hopforge.model.topology.graph import components
from hopforge.model.topology.random_graph import random_regular_edges
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer

_LABELS = {"acro": "ACRO", "lash": "LASH", "lash_tor": "LASH-TOR"}
_DEGREES = {64: (3, 4, 6, 8, 12), 256: (3, 5, 8, 12)}
_ALL_DEGREES = (3, 4, 5, 6, 8, 10, 12)
#: minutes at 1024 switches of degree 16 (thesis, section 5.5.3; Python and NetworkX)
_MINUTES = {"acro": 30.0, "lash": 589.0, "lash_tor": 700.0}
#: the thesis: ACRO needs up to this many % fewer layers than LASH, on average and at most
_FEWER = {64: (37.0, 50.0), 256: (60.0, 63.0)}


def random_neighbours(nodes: int, degree: int, seed: int, graph: int) -> NDArray[np.int32]:
    """Neighbours of a connected random regular graph, int32[node, degree]."""
    generator = np.random.default_rng((seed, graph, nodes, degree))
    while True:
        edges = random_regular_edges(nodes, degree, generator)
        if components(edges, nodes)[0] == 1:
            both = np.concatenate([edges, edges[:, ::-1]])
            rows = [both[both[:, 0] == u, 1].tolist() for u in range(nodes)]
            return neighbour_array(rows)


def random_next_hops(neighbours: NDArray[np.int32], seed: int) -> NDArray[np.int32]:
    """Next hops on one shortest path of each pair, drawn at random: int32[node, destination]."""
    return shortest_next_hops(neighbours, "random", np.random.default_rng(seed))


def _count_points(nodes: int, options: Options) -> list[Point]:
    graphs = 40 if options.full else 6
    degrees = _ALL_DEGREES if options.full else _DEGREES[nodes]
    return [{"nodes": nodes, "degree": degree, "graph": graph} for degree in degrees for graph in range(graphs)]


def _count(point: Point, options: Options) -> list[Row]:
    nodes, degree, graph = (integer(point, key) for key in ("nodes", "degree", "graph"))
    neighbours = random_neighbours(nodes, degree, options.seed, graph)
    channels = channel_list(neighbours)
    table = check_next_hops(random_next_hops(neighbours, options.seed), channels)
    return [
        {**point, "method": method, "layers": assign_layers(method, table, neighbours, channels).count}
        for method in _LABELS
    ]


def _layers(data: pd.DataFrame, degree: int, method: str) -> NDArray[np.float64]:
    part = data[(data["degree"] == degree) & (data["method"] == method)]
    return part["layers"].to_numpy(float)


def _compare_count(nodes: int, data: pd.DataFrame, options: Options) -> list[Comparison]:
    degrees = sorted(int(degree) for degree in data["degree"].unique())
    graphs = data["graph"].nunique()
    mean_claim, most_claim = _FEWER[nodes]
    pairs = [[_layers(data, degree, method) for method in ("acro", "lash")] for degree in degrees]
    mean = max(100 * (1 - acro.mean() / lash.mean()) for acro, lash in pairs)
    most = max(100 * (1 - acro.max() / lash.max()) for acro, lash in pairs)
    note = f"best of degrees {', '.join(map(str, degrees))}, {graphs} graphs each; the thesis: 100 each, degrees to 12"
    found = [
        Comparison("fewer layers than LASH, mean", "%", mean_claim, mean, note),
        Comparison("fewer layers than LASH, largest number", "%", most_claim, most, note),
    ]
    for method, label in _LABELS.items():
        spread = max(float(np.ptp(_layers(data, degree, method))) for degree in degrees)
        claim = "2 for 64 switches of degree 3" if method == "lash" else "never above 1"
        found.append(
            Comparison(f"{label}: largest less smallest number", "layers", None, spread, "of all degrees", claim)
        )
    for degree in degrees:
        for method, label in _LABELS.items():
            layers = _layers(data, degree, method)
            note = f"{layers.min():.0f} to {layers.max():.0f} in {graphs} graphs; the plots of the thesis are lost"
            found.append(Comparison(f"{label}, degree {degree}: mean", "layers", None, float(layers.mean()), note))
    return found


def _draw_count(nodes: int, data: pd.DataFrame, options: Options) -> Figure:
    degrees = sorted(int(degree) for degree in data["degree"].unique())
    figure, panels = new_figure(panels=3, width_in=4.6)
    values = data.groupby(["method", "degree"])["layers"].agg(["max", "min", "mean"])
    top = 1.1 * float(data["layers"].max())
    for axes, title, column in zip(panels, ("largest", "smallest", "mean"), ("max", "min", "mean"), strict=True):
        style_axes(
            axes, title=f"{nodes} switches: {title}", x_label="degree", y_label="virtual layers", x_ticks=degrees
        )
        lines = [
            Line(
                label,
                degrees,
                [values[column][method, degree] for degree in degrees],
                number,
                dashed=method == "lash_tor",
            )
            for number, (method, label) in enumerate(_LABELS.items())
        ]
        axes.set_ylim(0, top)
        draw_lines(axes, lines)
    return figure


def _time_points(options: Options) -> list[Point]:
    sizes = (64, 256, 1024) if options.full else (64, 256)
    return [{"nodes": nodes, "degree": 16, "method": method} for nodes in sizes for method in _LABELS]


def _time(point: Point, options: Options) -> list[Row]:
    nodes, degree = integer(point, "nodes"), integer(point, "degree")
    method = str(point["method"])
    for size in (20, nodes):  # the small one compiles
        neighbours = random_neighbours(size, min(degree, 4) if size == 20 else degree, options.seed, 0)
        channels = channel_list(neighbours)
        table = check_next_hops(random_next_hops(neighbours, options.seed), channels)
        begin = time.process_time()
        layers = assign_layers(method, table, neighbours, channels)
        seconds = time.process_time() - begin
    return [{**point, "seconds": seconds, "layers": layers.count}]


def _compare_time(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for method, label in _LABELS.items():
        part = data[(data["nodes"] == 1024) & (data["method"] == method)]
        seconds = float(part["seconds"].iloc[0]) if len(part) else None
        note = "processor time of one graph, check included; the thesis: wall time, Python and NetworkX, 2012 server"
        quantity = f"{label}, 1024 switches of degree 16"
        found.append(
            Comparison(quantity, "s", 60 * _MINUTES[method], seconds, note if len(part) else "measured with --full")
        )
    return found


def _draw_time(data: pd.DataFrame, options: Options) -> Figure:
    figure, (axes,) = new_figure()
    style_axes(
        axes, title="Time to assign virtual layers, degree 16", x_label="switches", y_label="processor time (s)",
        log_x=True, log_y=True, x_ticks=sorted(int(nodes) for nodes in data["nodes"].unique()),
    )  # fmt: skip
    lines = []
    for number, (method, label) in enumerate(_LABELS.items()):
        part = data[data["method"] == method].sort_values("nodes")
        lines.append(Line(label, part["nodes"].to_numpy(), part["seconds"].to_numpy(), color=number))
    draw_lines(axes, lines)
    return figure


def _count_figure(number: str, nodes: int) -> Reproduction:
    return Reproduction(
        f"acro.fig{number}",
        f"Virtual layers of ACRO, LASH and LASH-TOR, {nodes} switches",
        f"seed 002, figure {number}",
        ("random regular graphs; one shortest path per pair, drawn at random", "LASH-TOR without up*/down* at its end"),
        lambda options: _count_points(nodes, options),
        _count,
        lambda data, options: _compare_count(nodes, data, options),
        lambda data, options: _draw_count(nodes, data, options),
    )


REPRODUCTIONS: Sequence[Reproduction] = (
    _count_figure("5.4", 64),
    _count_figure("5.5", 256),
    Reproduction(
        "acro.fig5.6",
        "Time to assign virtual layers",
        "seed 002, figure 5.6",
        ("random regular graphs of degree 16; one shortest path per pair, drawn at random",),
        _time_points,
        _time,
        _compare_time,
        _draw_time,
    ),
)

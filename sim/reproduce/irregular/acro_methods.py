"""Figures 3.4, 7.2 and table 3.1 of Kawano's thesis (seed 002): layers against time, LASH version 2 among them."""

import time
from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.irregular.channels import channel_list, check_next_hops
from hopforge.model.irregular.layers import LAYERS
from hopforge.model.output.plots import PALETTE, new_figure, style_axes
from hopforge.sim.reproduce.irregular.acro import random_neighbours, random_next_hops
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer

#: LASH version 2 is that of Domke, Hoefler and Nagel, [29] of the thesis: all paths in a layer, cycles broken
_LABELS = {"lash": "LASH version 1", "dfsssp": "LASH version 2", "lash_tor": "LASH-TOR", "acro": "ACRO"}
#: the thesis, table 3.1: virtual layers for 256 switches ("up to")
_STATED = {"lash": 9.0, "lash_tor": 4.0}
_DEGREE = 4


def _points(options: Options) -> list[Point]:
    sizes, graphs = ((64, 256, 1024), 10) if options.full else ((64, 256), 3)
    return [
        {"nodes": nodes, "graph": graph, "method": method}
        for nodes in sizes
        for graph in range(graphs if nodes < 1024 else 1)
        for method in _LABELS
    ]


def _measure(point: Point, options: Options) -> list[Row]:
    nodes, graph = integer(point, "nodes"), integer(point, "graph")
    seconds = count = 0.0
    for size in (20, nodes):  # the small one compiles
        neighbours = random_neighbours(size, _DEGREE, options.seed, graph)
        channels = channel_list(neighbours)
        table = check_next_hops(random_next_hops(neighbours, options.seed), channels)
        begin = time.process_time()
        count = LAYERS[str(point["method"])](table, neighbours, channels).count
        seconds = time.process_time() - begin
    return [{**point, "layers": count, "seconds": seconds}]


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    means = data.groupby(["nodes", "method"])[["layers", "seconds"]].mean()
    for nodes in data["nodes"].unique():
        graphs = data[data["nodes"] == nodes]["graph"].nunique()
        for method, label in _LABELS.items():
            layers, seconds = means.loc[(nodes, method)]
            paper = _STATED.get(method) if nodes == 256 else None
            note = f"mean of {graphs} graphs of degree {_DEGREE}; {1000 * seconds:.0f} ms of processor time, no check"
            found.append(Comparison(f"{label}, {nodes} switches", "layers", paper, float(layers), note))
    # "LASH ver.2" has fewer operations than "ver.1", ACRO fewer layers than both: figures 3.4 and 7.2
    largest = max(data["nodes"])
    ratio = float(means.loc[(largest, "lash"), "seconds"] / means.loc[(largest, "dfsssp"), "seconds"])
    note = "version 1 adds a dependency at a time to an order that is kept, which the thesis' O(N³) does not know"
    found.append(
        Comparison(
            f"time of LASH version 1 over version 2, {largest} switches", "", None, ratio, note,
            "version 2 has O(N²) in place of O(N³)",
        )
    )  # fmt: skip
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    figure, (axes,) = new_figure()
    nodes = max(data["nodes"])
    style_axes(
        axes, title=f"{nodes} switches of degree {_DEGREE}", x_label="processor time (s)", y_label="virtual layers",
        log_x=True,
    )  # fmt: skip
    part = data[data["nodes"] == nodes].groupby("method")[["layers", "seconds"]].mean()
    for k, (method, label) in enumerate(_LABELS.items()):
        x, y = part.loc[method, "seconds"], part.loc[method, "layers"]
        axes.plot([x], [y], marker="o", color=PALETTE[k], linestyle="none")
        axes.annotate(label, (x, y), xytext=(6, 5), textcoords="offset points", fontsize=9, color=PALETTE[k])
    axes.margins(x=0.3, y=0.2)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "acro.fig3.4",
        "Layers against time, LASH versions 1 and 2",
        "seed 002, figures 3.4 and 7.2, table 3.1",
        (
            "random regular graphs of degree 4; one shortest path per pair, drawn at random; the plots have no numbers",
            "version 2: all paths in one layer, of each cycle the dependency with the fewest paths moves up (`dfsssp`)",
            "table 3.1 does not say for which networks of 256 switches its 9 and 4 layers hold",
        ),
        _points,
        _measure,
        _compare,
        _draw,
        aliases=("acro.table3.1", "acro.fig7.2"),
    ),
)

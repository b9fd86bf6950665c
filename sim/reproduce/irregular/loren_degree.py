"""Figure 2.4 of Kawano's thesis (seed 002): the degree that suffices where links have a limited length."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import LayoutRandomConfig
from hopforge.model.output.plots import Line, draw_lines, new_figure, style_axes
from hopforge.model.topology import build
from hopforge.model.topology.routing_table import hop_statistics
from hopforge.sim.reproduce.irregular.loren_networks import SOURCE
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer, pick

#: side of the floor plan of the figure (10⁶ nodes), and longest links on it
_SIDE = 1000
_LENGTHS = (25, 50, 100, 150, 200, 300, 500, 1000)
#: smaller floor plans on which networks are drawn: side → lengths
_DRAWN = {16: (4, 6, 8), 32: (6, 8, 12)}


def stated_degree(nodes: int, length: int) -> float:
    """Evaluate the formula of section 2.2: exp(L · log N / √N)."""
    return math.exp(length * math.log(nodes) / math.sqrt(nodes))


def mean_by_length(side: int, length: int) -> float:
    """Mean hops between two places of a side × side grid where every two at most `length` apart are linked.

    Examples
    --------
    >>> mean_by_length(2, 1)  # each has two at one hop and one at two
    1.3333333333333333
    """
    # ordered pairs by the difference of one coordinate, then by the sum of both: exact integers
    line = [side, *(2 * (side - gap) for gap in range(1, side))]
    pairs = np.convolve(np.array(line, np.int64), np.array(line, np.int64))
    hops = -(-np.arange(len(pairs)) // length)
    return float((pairs * hops).sum() / (side**4 - side**2))


def mean_by_degree(nodes: int, degree: int) -> float:
    """Least mean hops that any graph of this degree can have: as many as possible at each distance (Moore).

    Examples
    --------
    >>> mean_by_degree(10, 3)  # the Petersen graph: 3 at one hop, 6 at two
    1.6666666666666667
    """
    left, level, hops, total = nodes - 1, degree, 1, 0
    while left > 0:
        here = min(level, left)
        total, left, level, hops = total + hops * here, left - here, level * (degree - 1), hops + 1
    return total / (nodes - 1)


def balanced_degree(side: int, length: int) -> int:
    """Find the least degree from which on the length of links, no longer the degree, bounds the mean path."""
    goal, degree = mean_by_length(side, length), 3
    while mean_by_degree(side * side, degree) > goal:
        degree += max(1, degree // 200)
    return degree


def drawn_hops(side: int, length: int, degree: int, seed: int) -> float:
    """Mean hops of a layout-conscious random network."""
    config = LayoutRandomConfig(kind="layout_random", n=side, degree=degree, length=length, seed=seed)
    return hop_statistics(build(config, AddressConfig())).mean_path_length


def _points(options: Options) -> list[Point]:
    bounds: list[Point] = [{"kind": "bounds", "side": _SIDE, "length": length} for length in _LENGTHS]
    sides = tuple(_DRAWN) if options.full else (16,)
    return bounds + [
        {"kind": "drawn", "side": side, "length": length} for side in sides for length in _DRAWN[side]
    ]  # fmt: skip


def _measure(point: Point, options: Options) -> list[Row]:
    side, length = integer(point, "side"), integer(point, "length")
    formula = stated_degree(side * side, length)
    degree = max(3, math.ceil(formula))
    drawn = drawn_hops(side, length, degree, options.seed) if point["kind"] == "drawn" else None
    return [{
        **point, "formula": formula, "balanced": balanced_degree(side, length), "degree": degree, "drawn_hops": drawn,
        "mean_hops": mean_by_length(side, length), "degree_hops": mean_by_degree(side * side, degree),
    }]  # fmt: skip


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for length in _LENGTHS:
        where: Row = {"kind": "bounds", "length": length}
        paper, ours = (pick(data, column, **where) for column in ("formula", "balanced"))
        note = f"paper: its formula; ours: exact bounds, {pick(data, 'mean_hops', **where):.2f} hops by the length"
        found.append(Comparison(f"degree that suffices, 10⁶ nodes, links to {length}", "", paper, ours, note))
    for row in data[data["kind"] == "drawn"].to_dict("records"):
        bound = max(row["mean_hops"], row["degree_hops"])
        bounds = f"{row['mean_hops']:.2f} by length, {row['degree_hops']:.2f} by degree"
        note = f"{row['drawn_hops']:.2f} hops; bounds: {bounds}"
        name = (
            f"hops over their bound, {row['side'] ** 2} nodes drawn, links to {row['length']}, degree {row['degree']}"
        )
        found.append(Comparison(name, "", None, row["drawn_hops"] / bound, note, "the optimum number of hops"))
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    figure, (axes,) = new_figure()
    style_axes(
        axes, title="Degree that suffices, 10⁶ nodes", x_label="longest link (places)", y_label="degree", log_y=True
    )
    part = data[data["kind"] == "bounds"]
    lines = [Line("formula", part["length"], part["formula"], 0), Line("bounds", part["length"], part["balanced"], 1)]
    draw_lines(axes, lines)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "loren.fig2.4",
        "Degree that suffices for the longest link",
        f"{SOURCE}, figure 2.4 and the formula of section 2.2",
        (
            "the plot is lost, its formula is not: the paper's values are exp(L · log N / √N), which is 1 where L is 0",
            "ours: the least degree whose Moore bound of the mean path is at most the exact mean of ⌈distance/L⌉ hops "
            "on the grid (in steps of half a per cent above 200)",
            "drawn networks have the degree of the formula, rounded up: 256 nodes; 1024 too with --full",
        ),
        _points,
        _measure,
        _compare,
        _draw,
    ),
)

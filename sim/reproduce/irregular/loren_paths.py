"""Path length against the size of the tables (figures 4.3 and 4.4)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.errors import UserError
from hopforge.model.irregular.channels import channel_list, check_next_hops, hop_counts
from hopforge.model.output.plots import Line, draw_lines, new_figure, style_axes
from hopforge.sim.reproduce.irregular.loren_networks import (
    COLOURS,
    COMPARED,
    LABELS,
    LENGTH,
    LIMITS,
    SOURCE,
    connected_neighbours,
    graphs_text,
    scheme_next_hops,
)
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer

#: sizes of tables by the side of the floor plan; those that a scheme cannot have are left out
_SIZES = {
    8: (10, 11, 12, 13, 14, 16, 18, 20, 24, 28, 32, 40, 48, 56, 63),
    32: (50, 64, 80, 96, 116, 160, 224, 320, 502, 720, 1023),
}
_QUICK_SIZES = {8: _SIZES[8], 32: (50, 64, 116, 224, 502, 720)}
#: the thesis' text: side → (column, scheme compared with, least change over sizes of tables in %)
_STATED = {
    8: (("mean", "thorup_zwick", -7.9), ("longest", "cowen", 4.9)),
    32: (
        ("mean", "thorup_zwick", -2.0),
        ("mean", "cowen", 0.4),
        ("mean", "shortest", 6.4),
        ("longest", "cowen", 19.3),
        ("longest", "shortest", 40.8),
    ),
}
_WORDS = {"mean": "mean path", "longest": "longest path"}


def _points(side: int, options: Options) -> list[Point]:
    graphs = {8: 10, 32: 3} if options.full else {8: 3, 32: 1}
    sizes = _SIZES[side] if options.full else _QUICK_SIZES[side]
    points: list[Point] = []
    for graph in range(graphs[side]):
        points.append({"side": side, "scheme": "shortest", "t_max": side * side - 1, "graph": graph})
        for t_max in sizes:
            points += [{"side": side, "scheme": scheme, "t_max": t_max, "graph": graph} for scheme in COMPARED]
    return points


def _measure(point: Point, options: Options) -> list[Row]:
    side, t_max, graph = (integer(point, key) for key in ("side", "t_max", "graph"))
    neighbours = connected_neighbours(side, LENGTH[side], options.seed, graph)
    try:
        next_hop = scheme_next_hops(neighbours, str(point["scheme"]), t_max, options.seed, graph)
    except UserError:  # a table so small is impossible
        return [{**point, "mean": None, "longest": None}]
    channels = channel_list(neighbours)
    hops = hop_counts(check_next_hops(next_hop, channels), channels)[~np.eye(side * side, dtype=bool)]
    return [{**point, "mean": float(hops.mean()), "longest": int(hops.max())}]


def _means(data: pd.DataFrame, column: str) -> pd.DataFrame:
    """Mean over graphs by t_max (rows) and scheme (columns); only sizes that all graphs of the scheme can have."""
    table = data.pivot_table(index="t_max", columns="scheme", values=column, aggfunc="mean", dropna=False)
    some = data.assign(missing=data[column].isna()).pivot_table(
        index="t_max", columns="scheme", values="missing", aggfunc="max"
    )
    return table.astype(float).where(some.astype(float) == 0)


def _compare(side: int, data: pd.DataFrame, options: Options) -> list[Comparison]:
    graphs = data["graph"].nunique()
    found = []
    means = {column: _means(data, column) for column in _WORDS}
    for column, against, percent in _STATED[side]:
        table = means[column]
        other = table[against] if against != "shortest" else float(table["shortest"].dropna().iloc[0])
        # with an entry for every switch all schemes are equal; the thesis names sizes to about half of that
        change = (100 * (table["loren"] / other - 1)).dropna().loc[: LIMITS[side][1]]
        place = int(change.argmin())
        note = f"at {change.index[place]} entries, {graphs_text(graphs)}"
        quantity = f"{_WORDS[column]} of LOREN over {LABELS[against]}, least to {LIMITS[side][1]} entries"
        found.append(Comparison(quantity, "%", percent, float(change.iloc[place]), note))
    for scheme in COMPARED:
        possible = means["mean"][scheme].dropna().index
        first = [t for t in LIMITS[side] if scheme == "cowen" and t == LIMITS[side][0]]
        note = "of the sizes measured; landmarks: the parameter with most landmarks that fit"
        found.append(
            Comparison(f"least entries, {LABELS[scheme]}", "", float(first[0]) if first else None,
                       float(possible.min()), note)
        )  # fmt: skip
    for column, words in _WORDS.items():
        for scheme in LABELS:
            for t_max in (side * side - 1,) if scheme == "shortest" else LIMITS[side]:
                if t_max not in means[column].index:
                    continue
                ours = float(means[column][scheme][t_max])
                where = "" if scheme == "shortest" else f", {t_max} entries"
                found.append(Comparison(f"{words}, {LABELS[scheme]}{where}", "hops", None, ours, graphs_text(graphs)))
    return found


def _draw(side: int, data: pd.DataFrame, options: Options) -> Figure:
    figure, panels = new_figure(panels=2, width_in=5.5)
    for axes, column, name in zip(panels, _WORDS, ("mean over pairs", "longest path"), strict=True):
        means = _means(data, column)
        style_axes(
            axes, title=f"{side * side} switches: {name}", x_label="most entries of a table", y_label="hops",
            log_x=side > 8,
            x_ticks=(64, 128, 256, 512, 1023) if side > 8 else (10, 18, 32, 48, 63),
        )  # fmt: skip
        lines = []
        for scheme in COMPARED:
            curve = means[scheme].dropna()
            lines.append(Line(LABELS[scheme], curve.index.to_numpy(), curve.to_numpy(), color=COLOURS[scheme]))
        least = float(means["shortest"].dropna().iloc[0])
        ends = [float(means.index.min()), float(means.index.max())]
        lines.append(Line(LABELS["shortest"], ends, [least] * 2, COLOURS["shortest"], dashed=True, marked=False))
        draw_lines(axes, lines)
    return figure


def _figure(number: str, side: int) -> Reproduction:
    return Reproduction(
        f"loren.fig{number}",
        f"Path length against the entries of a table, {side * side} switches",
        f"{SOURCE}, figure {number}",
        (
            f"degree 4, length {LENGTH[side]}; ties of shortest paths: lowest number",
            "the thesis varies the parameter α of the landmark schemes; here: of those whose tables fit the one with "
            "most landmarks",
        ),
        lambda options: _points(side, options),
        _measure,
        lambda data, options: _compare(side, data, options),
        lambda data, options: _draw(side, data, options),
    )


REPRODUCTIONS: Sequence[Reproduction] = (_figure("4.3", 8), _figure("4.4", 32))

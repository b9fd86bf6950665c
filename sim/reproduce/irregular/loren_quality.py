"""Effective bandwidth and average efficiency under imbalanced traffic (figures 4.7 and 4.8)."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hopforge.model.irregular.channels import ChannelList, channel_list, check_next_hops
from hopforge.model.output.plots import Line, draw_lines, new_figure, style_axes
from hopforge.sim.pages.route_load import Quality, hotspot_quality, local_quality
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
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer, number

_TRAFFIC = (("hotspot", 0.1), ("hotspot", 0.3), ("hotspot", 0.7), ("local", 1.0), ("local", 2.0), ("local", 3.0))
_LETTER = {"hotspot": "β", "local": "γ"}
#: the thesis' text: most that LOREN gains, by measure and side, %; bandwidth: with the larger tables
_STATED = {"bandwidth": {8: 10.2, 32: 4.1}, "efficiency": {8: 6.7, 32: 3.2}}
_TITLES = {"bandwidth": "Effective bandwidth", "efficiency": "Average efficiency"}


def _points(options: Options) -> list[Point]:
    graphs = {8: 10, 32: 3} if options.full else {8: 4, 32: 1}
    return [
        {"side": side, "t_max": t_max, "scheme": scheme, "traffic": traffic, "value": value, "graph": graph,
         "patterns": 10_000 if options.full and side == 8 else 1000 if options.full else 200}
        for side, limits in LIMITS.items()
        for graph in range(graphs[side])
        for t_max in limits
        for scheme in COMPARED
        for traffic, value in _TRAFFIC
    ]  # fmt: skip


@lru_cache(maxsize=4)
def _table(side: int, t_max: int, scheme: str, graph: int, seed: int) -> tuple[NDArray[np.int32], ChannelList]:
    neighbours = connected_neighbours(side, LENGTH[side], seed, graph)
    channels = channel_list(neighbours)
    return check_next_hops(scheme_next_hops(neighbours, scheme, t_max, seed, graph), channels), channels


@lru_cache(maxsize=1024)
def _quality(
    side: int, t_max: int, scheme: str, traffic: str, value: float, graph: int, patterns: int, seed: int
) -> Quality:
    """Both measures; figures 4.7 and 4.8 share it. All schemes see the same patterns."""
    table, channels = _table(side, t_max, scheme, graph, seed)
    generator = np.random.default_rng((seed, graph, side))
    if traffic == "hotspot":
        return hotspot_quality(value, patterns, table, channels, generator)
    place = np.stack([np.arange(side * side) % side, np.arange(side * side) // side], axis=1).astype(float)
    return local_quality(value, place, patterns, table, channels, generator)


def _measure(point: Point, options: Options) -> list[Row]:
    side, t_max, graph, patterns = (integer(point, key) for key in ("side", "t_max", "graph", "patterns"))
    found = _quality(
        side, t_max, str(point["scheme"]), str(point["traffic"]), number(point, "value"), graph, patterns, options.seed
    )
    return [{**point, **found._asdict()}]


def _means(data: pd.DataFrame, measure: str, side: int, t_max: int) -> pd.DataFrame:
    """Mean over graphs by traffic (rows, in the order of `_TRAFFIC`) and scheme (columns)."""
    part = data[(data["side"] == side) & (data["t_max"] == t_max)]
    return part.pivot_table(index=["traffic", "value"], columns="scheme", values=measure, aggfunc="mean").loc[
        list(_TRAFFIC)
    ]


def _compare(measure: str, data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for side, percent in _STATED[measure].items():
        graphs = int(data[data["side"] == side]["graph"].nunique())
        best: list[tuple[float, str, str, int]] = []
        for t_max in LIMITS[side]:
            means = _means(data, measure, side, t_max)
            for against in COMPARED[1:]:
                gain = 100 * (means["loren"] / means[against] - 1)
                for (traffic, value), more in zip(_TRAFFIC, gain, strict=True):
                    best.append((float(more), f"{traffic}({value:g})", against, t_max))
        large = [entry for entry in best if entry[3] == LIMITS[side][1]] if measure == "bandwidth" else best
        more, words, against, t_max = max(large)
        note = (
            f"over {LABELS[against]}, {words}, {t_max} entries; {graphs_text(graphs)}; against which, the thesis "
            "doesn't say"
        )
        found.append(Comparison(f"{side * side} switches: most that LOREN gains", "%", percent, more, note))
        for traffic in _LETTER:
            some = [entry[0] for entry in best if entry[1].startswith(traffic)]
            if measure == "efficiency":
                claim = ""
            elif side == 32 and traffic == "hotspot":
                claim = "worse"
            else:
                claim = "better"
            better = sum(gain > 0 for gain in some)
            text = f"better in {better} of {len(some)} cases, {min(some):+.1f} to {max(some):+.1f} %"
            found.append(
                Comparison(f"{side * side} switches, {traffic}: LOREN over the others, mean", "%", None,
                           float(np.mean(some)), text.replace("-", "−"), claim)
            )  # fmt: skip
    for side, limits in LIMITS.items():
        for t_max in limits:
            means = _means(data, measure, side, t_max)
            for scheme in COMPARED:
                values = " / ".join(f"{value:.4f}" for value in means[scheme])
                note = f"mean of hotspot(0.1), (0.3), (0.7), local(1), (2), (3): {values}"
                quantity = f"{LABELS[scheme]}, {side * side} switches, {t_max} entries"
                found.append(Comparison(quantity, "", None, float(means[scheme].mean()), note))
    return found


def _draw(measure: str, data: pd.DataFrame, options: Options) -> Figure:
    cases = [(side, t_max) for side, limits in LIMITS.items() for t_max in limits]
    figure, panels = new_figure(panels=len(cases), width_in=4.6)
    places = [0, 1, 2, np.nan, 3.5, 4.5, 5.5]  # no line from hotspot to local
    names = [f"{traffic}\n{_LETTER[traffic]} = {value:g}" for traffic, value in _TRAFFIC]
    for axes, (side, t_max) in zip(panels, cases, strict=True):
        style_axes(
            axes, title=f"{side * side} switches, {t_max} entries", x_label="traffic", y_label=_TITLES[measure].lower(),
            x_ticks=[place for place in places if not np.isnan(place)], x_tick_labels=names,
        )  # fmt: skip
        axes.tick_params(axis="x", labelsize=8)
        means = _means(data, measure, side, t_max)
        axes.set_ylim(0, 1.08 * float(means.to_numpy().max()))
        lines = []
        for scheme in COMPARED:
            values = means[scheme].tolist()
            lines.append(Line(LABELS[scheme], places, [*values[:3], np.nan, *values[3:]], COLOURS[scheme]))
        draw_lines(axes, lines)
    return figure


def _figure(figure: str, measure: str) -> Reproduction:
    return Reproduction(
        f"loren.fig{figure}",
        f"{_TITLES[measure]} under imbalanced traffic",
        f"{SOURCE}, figure {figure}",
        (
            "degree 4, length 2 (64 switches) and 8 (1024); a new hot switch in every pattern",
            "pairs of a switch with itself don't count; all schemes see the same patterns",
        ),
        _points,
        _measure,
        lambda data, options: _compare(measure, data, options),
        lambda data, options: _draw(measure, data, options),
    )


REPRODUCTIONS: Sequence[Reproduction] = (_figure("4.7", "bandwidth"), _figure("4.8", "efficiency"))

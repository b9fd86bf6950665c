"""Tables whose rows are no points of a plot: what is plotted of them instead."""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from hopforge.sim.pages.bench_outcome import bench_figure
from hopforge.sim.pages.explore import LARGEST_PLOT, explorer, side_by_side
from hopforge.sim.pages.report import Explorer

__all__ = ["plotted"]

#: steps of a packet, which the picture of `hopforge trace` draws
_NOT_PLOTTED = frozenset(["events", "phases"])


def plotted(name: str, table: pd.DataFrame, command: str, units: Mapping[str, str]) -> Explorer | None:
    """Return the plot of a table with what it says; None for a table with nothing to plot."""
    try:
        return _known(name, table, command, units)
    except (ArithmeticError, LookupError, TypeError, ValueError):  # a file of this name that holds something else
        return explorer(name, table, command, units=units)


def _known(name: str, table: pd.DataFrame, command: str, units: Mapping[str, str]) -> Explorer | None:
    """Return the plot of a table whose name and columns tell what it holds."""
    columns = set(map(str, table.columns))
    if name in _NOT_PLOTTED and "packet" in columns:
        return None
    if {"figure", "first", "second", "difference_percent", "verdict"} <= columns:
        return explorer(name, side_by_side(table), command, units=units)
    if name == "worst_permutation" and "host" in columns and len(columns) > 1:
        return _permutation(name, table, command)
    if name == "comparison" and {"quantity", "ours", "unit"} <= columns and table["unit"].nunique(dropna=False) > 1:
        return None
    if name == "synth" and {"block", "recipe"} <= columns and table["block"].nunique() > 1:
        best = table.drop_duplicates("block")
        plot = explorer(name, best, command, "The best recipe of each block.", units)
        return None if plot is None else replace(plot, by="")
    if name == "bench" and "case" in columns:
        return _bench(name, table, command, units)
    if name == "collectives" and {"group", "operation", "bytes", "by", "cycles"} <= columns:
        return _beside_hosts(name, table, command)
    return explorer(name, table, command, units=units)


def _permutation(name: str, table: pd.DataFrame, command: str) -> Explorer:
    """Return the destination of each host, as points: lines between hosts would mean nothing."""
    points = table.melt("host", var_name="routing", value_name="destination").dropna()
    caption = "Which host each host sends to, so that the busiest channel has the most to carry."
    step = -(-len(points) // LARGEST_PLOT)
    if step > 1:
        caption = f"{caption} One of every {step} points, of {len(points)} in all."
    shown = {str(column): points[column].iloc[::step].tolist() for column in points}
    names = ["host", "destination"]
    return Explorer(
        name, shown, "host", "destination", "routing", names, names, ["routing"], "markers", caption, command
    )


def _beside_hosts(name: str, table: pd.DataFrame, command: str) -> Explorer | None:
    """Return how many times as long the best algorithm of the hosts takes as the network."""
    keys = ["operation", "group", "bytes"]
    inside = table["by"] == "network"
    best = table[~inside].groupby(keys, sort=False)["cycles"].min()
    ratio = (best / table[inside].groupby(keys, sort=False)["cycles"].min()).dropna()
    points = ratio.reset_index(name="times as fast as by hosts")
    points["result"] = points.pop("operation") + ", group " + points.pop("group").astype(str)
    points["bytes"] = points["bytes"].astype(str)
    return explorer(name, points, command, "Cycles of the best algorithm of the hosts over those of the network.")


def _bench(name: str, table: pd.DataFrame, command: str, units: Mapping[str, str]) -> Explorer | None:
    """Return the figure that the bench is about, a bar for each case."""
    plot = explorer(name, table, command, units=units)
    figure, what = bench_figure(table)
    if plot is None or not {"case", figure} <= set(plot.columns) or figure not in plot.y_choices:
        return plot
    return replace(plot, x="case", y=figure, by="", caption=what,
                   style="bars" if table["case"].is_unique else "markers")  # fmt: skip

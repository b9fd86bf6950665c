"""Plots with one look: named units, direct labels instead of legends, colours that colour-blind readers can tell apart.

Only matplotlib's object interface is used (a `Figure` with the Agg canvas), so that nothing global is touched and no
display is needed.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import ArrayLike

from hopforge.model.output.colour_scale import colour_map
from hopforge.model.output.destination import one_file

__all__ = [
    "GREY",
    "PALETTE",
    "PAPER",
    "Line",
    "draw_grouped_bars",
    "draw_heat_map",
    "draw_lines",
    "draw_paper_points",
    "new_figure",
    "save_figure",
    "style_axes",
]

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's colours without yellow (unreadable on white) and black (kept for the paper's values)."""

PAPER = "#000000"
"""Colour of everything that the paper states."""

GREY = "#6b6b6b"

_MARKERS = ("o", "s", "^", "D", "v", "P")
_TEXT = "#222222"


@dataclass(frozen=True)
class Line:
    """One curve: points, and how it differs from its neighbours."""

    label: str
    x: ArrayLike
    y: ArrayLike
    color: int = 0
    """Index into `PALETTE`."""
    dashed: bool = False
    marked: bool = True
    error: ArrayLike | None = None
    """Half width of the error bar at every point, in the unit of y."""


def new_figure(
    *, panels: int = 1, columns: int | None = None, width_in: float = 7.2, height_in: float = 4.3
) -> tuple[Figure, list[Axes]]:
    """Make a figure with `panels` axes, `columns` (default: all) side by side; the size is that of one panel."""
    if panels < 1:
        raise ValueError(f"panels must be at least 1, not {panels}")
    across = columns or panels
    down = -(-panels // across)
    figure = Figure(figsize=(width_in * across, height_in * down), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = [figure.add_subplot(down, across, i + 1) for i in range(panels)]
    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    engine.set(wspace=0.1)  # the labels at the right ends of a panel's curves must not touch the next panel
    return figure, axes


def lay_out(figure: Figure) -> None:
    """Fix limits and layout, in which labels are then placed, without drawing; a saved figure keeps its own."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)


def _plain(value: float, _position: int | None = None) -> str:
    if value and (abs(value) < 1e-3 or abs(value) >= 1e6):
        return f"{value:.0e}".replace("e-0", "e−").replace("e+0", "e")
    return f"{value:,.10g}".replace(",", "\u202f").replace("-", "−")


def style_axes(
    axes: Axes,
    *,
    title: str,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = False,
    x_ticks: Sequence[float] | None = None,
    y_ticks: Sequence[float] | None = None,
    x_tick_labels: Sequence[str] | None = None,
) -> None:
    """Title, axis labels (with their units), scales and ticks; to be called before the data are drawn."""
    axes.set_title(title, loc="left", fontsize=11, color=_TEXT, pad=10)
    axes.set_xlabel(x_label, fontsize=10, color=_TEXT)
    axes.set_ylabel(y_label, fontsize=10, color=_TEXT)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(colors=_TEXT, labelsize=9)
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)
    if log_x:
        axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")
    for axis, ticks, is_log in ((axes.xaxis, x_ticks, log_x), (axes.yaxis, y_ticks, log_y)):
        if ticks is not None:
            axis.set_ticks(list(ticks))
            axis.set_minor_locator(NullLocator())
        elif is_log:
            axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(_plain))
    if x_tick_labels is not None:
        axes.set_xticks(list(x_ticks or range(len(x_tick_labels))), labels=list(x_tick_labels))


def _spread(positions: Sequence[float], gap: float) -> list[float]:
    """Move positions apart until neighbours are `gap` apart, keeping their order and, if possible, their centre."""
    order = np.argsort(positions, kind="stable")
    blocks: list[list[float]] = []  # [centre, count] of labels that touch
    for index in order:
        blocks.append([float(positions[index]), 1])
        while len(blocks) > 1 and blocks[-1][0] - blocks[-2][0] < gap * (blocks[-1][1] + blocks[-2][1]) / 2:
            upper = blocks.pop()
            lower = blocks.pop()
            count = lower[1] + upper[1]
            blocks.append([(lower[0] * lower[1] + upper[0] * upper[1]) / count, count])
    placed: list[float] = []
    for centre, count in blocks:
        placed.extend(centre + gap * (i - (count - 1) / 2) for i in range(int(count)))
    result = [0.0] * len(placed)
    for rank, index in enumerate(order):
        result[int(index)] = placed[rank]
    return result


def draw_lines(axes: Axes, lines: Sequence[Line]) -> None:
    """Draw the curves and write each label at its right end, in its colour, without overlaps.

    A curve without points has its label, too, at the bottom.
    Call it once per axes, after `style_axes`.
    """
    if not lines:
        raise ValueError("lines must have at least 1 entry, not 0")
    ends = []
    for line in lines:
        x = np.asarray(line.x, dtype=float)
        y = np.asarray(line.y, dtype=float)
        color = PALETTE[line.color % len(PALETTE)]
        marker = _MARKERS[line.color % len(_MARKERS)] if line.marked else None
        style = (0, (4, 2)) if line.dashed else "-"
        axes.plot(x, y, color=color, linestyle=style, linewidth=1.7, marker=marker, markersize=4.5)
        if line.error is not None:
            half = np.asarray(line.error, dtype=float)
            axes.errorbar(x, y, yerr=half, fmt="none", ecolor=color, elinewidth=1, capsize=2.5)
        end = (float(x[-1]), float(y[-1])) if len(x) else (math.nan, math.nan)
        ends.append((*end, color))
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    lay_out(figure)
    bottom, top = axes.get_window_extent().y0, axes.get_window_extent().y1
    heights = [float(axes.transData.transform(end[:2])[1]) for end in ends]
    heights = [min(max(h, bottom), top) if np.isfinite(h) else bottom for h in heights]
    label_gap = 12.5 * figure.dpi / 72
    placed = _spread(heights, label_gap)
    overshoot = max(0.0, bottom - min(placed)) - max(0.0, max(placed) - top) if placed else 0.0
    for line, (end_x, end_y, color), height in zip(lines, ends, placed, strict=True):
        fraction = (height + overshoot - bottom) / (top - bottom)
        axes.annotate(
            line.label,
            xy=(end_x, end_y),
            xycoords="data",
            xytext=(1.035, fraction),
            textcoords="axes fraction",
            color=color,
            fontsize=9,
            va="center",
            ha="left",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.6, "alpha": 0.6, "shrinkA": 1, "shrinkB": 3},
        )


def draw_paper_points(
    axes: Axes,
    x: ArrayLike,
    y: ArrayLike,
    *,
    label: str,
    offset: tuple[float, float] = (8, 6),
) -> None:
    """Draw what the paper states as open black circles; the label (with its offset in points) goes to the last."""
    xs = np.atleast_1d(np.asarray(x, dtype=float))
    ys = np.atleast_1d(np.asarray(y, dtype=float))
    axes.plot(
        xs,
        ys,
        linestyle="none",
        marker="o",
        markersize=9,
        markerfacecolor="none",
        markeredgecolor=PAPER,
        markeredgewidth=1.4,
        zorder=5,
    )
    axes.annotate(
        label,
        xy=(xs[-1], ys[-1]),
        xytext=offset,
        textcoords="offset points",
        fontsize=9,
        color=PAPER,
        ha="center" if offset[0] == 0 else "left" if offset[0] > 0 else "right",
        va="center",
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
    )


def draw_grouped_bars(
    axes: Axes,
    *,
    groups: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
) -> None:
    """Draw bars side by side per group, each with its value on top; a legend if there are several series.

    Series whose name starts with "paper" are hollow: black, or, if there are several, in the colour of the series that
    follows. None leaves a gap.
    """
    if not series:
        raise ValueError("series must have at least 1 entry, not 0")
    width = 0.8 / len(series)
    color = 0
    papers = sum(name.startswith("paper") for name in series)
    for position, (name, values) in enumerate(series.items()):
        if len(values) != len(groups):
            raise ValueError(f"series {name!r} must have groups={len(groups)} values, not {len(values)}")
        is_paper = name.startswith("paper")
        face = "none" if is_paper else PALETTE[color % len(PALETTE)]
        edge = (PALETTE[color % len(PALETTE)] if papers > 1 else PAPER) if is_paper else face
        color += not is_paper
        named = False
        for group, value in enumerate(values):
            if value is None or not np.isfinite(value):
                continue
            x = group + (position - (len(series) - 1) / 2) * width
            axes.bar(x, value, width=width * 0.9, facecolor=face, edgecolor=edge, linewidth=1.3)
            axes.annotate(
                _plain(round(value) if abs(value) >= 100 else float(f"{value:.3g}")),
                xy=(x, value),
                xytext=(0, 2),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize=8,
                color=_TEXT,
            )
            if not named:
                axes.plot([], [], marker="s", linestyle="none", markerfacecolor=face, markeredgecolor=edge, label=name)
                named = True
    axes.set_xticks(range(len(groups)), labels=list(groups))
    axes.tick_params(axis="x", length=0)
    axes.margins(y=0.14)
    if len(series) > 1:
        axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0), labelcolor=_TEXT)
    _turn_touching_names(axes)


def _turn_touching_names(axes: Axes) -> None:
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    lay_out(figure)
    boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
    if any(left.x1 + 4 > right.x0 for left, right in pairwise(boxes)):
        for label in axes.get_xticklabels():
            label.set(rotation=30, ha="right", rotation_mode="anchor")


def draw_heat_map(axes: Axes, values: ArrayLike, *, label: str, largest: float) -> None:
    """Draw a table of values from 0 to `largest` as colours (row 0 at the bottom; NaN: nothing there), with a scale."""
    axes.grid(visible=False)
    for axis in (axes.xaxis, axes.yaxis):  # there is no router 0.5
        axis.set_major_locator(MaxNLocator(nbins=9, integer=True))
    image = axes.imshow(
        np.asarray(values, dtype=float), cmap=colour_map(), vmin=0.0, vmax=largest, origin="lower", aspect="auto"
    )
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    bar = figure.colorbar(image, ax=axes, shrink=0.9)
    bar.set_label(label, fontsize=9, color=_TEXT)
    bar.ax.tick_params(colors=_TEXT, labelsize=8)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a PNG to `path`, whole or not at all.

    As matplotlib with a tight box, but without drawing all once more to find that; nothing is laid out afterwards.
    """
    lay_out(figure)
    figure.set_layout_engine("none")
    box = figure.get_tightbbox().padded(0.15)
    with one_file(path) as part:
        figure.savefig(part, format="png", bbox_inches=box, facecolor="white", metadata={"Software": ""})

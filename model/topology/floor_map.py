"""Networks drawn as maps: routers in their places, links as curves, a value of every channel as a colour."""

import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from hopforge.model.output.colour_scale import colour_map
from hopforge.model.output.plots import GREY, PALETTE, new_figure, save_figure, style_axes
from hopforge.model.topology.base import Topology
from hopforge.model.topology.drawing import Drawing, draw_places
from hopforge.model.topology.floor_plan import link_ends, positions

Points = NDArray[np.float64]

#: most links that a map shows
MAX_DRAWN_LINKS = 20_000
#: points of a drawn link, and how far it bends to its right, as a share of its length
ARC_POINTS, ARC_BEND = 9, 0.12


def _arcs(start: Points, end: Points, bend: float | Points = ARC_BEND, pull: Points | None = None) -> Points:
    """Links as curves that bend to the right of their direction: float64[link, point, 2].

    `bend` is a share of the length; `pull`: what the middle of each curve moves by.
    """
    t = np.linspace(0, 1, ARC_POINTS)[None, :, None]
    way = end - start
    aside = np.stack([way[:, 1], -way[:, 0]], axis=1)[:, None, :]
    middle = aside * (4 * np.asarray(bend).reshape(-1, 1, 1))
    if pull is not None:
        middle = middle + 2 * pull[:, None, :]
    return start[:, None, :] * (1 - t) + end[:, None, :] * t + middle * (t * (1 - t))


def _drawn_links(drawing: Drawing, source: NDArray[np.int32], target: NDArray[np.int32]) -> Points:
    """Links between routers as curves of a drawing; those between groups lead through the middle."""
    start, end = drawing.places[source], drawing.places[target]
    across = drawing.group[source] != drawing.group[target]
    centre = (drawing.places.min(axis=0) + drawing.places.max(axis=0)) / 2
    pull = np.where(across[:, None], 0.5 * (centre - (start + end) / 2), 0.0)
    return _arcs(start, end, np.where(across, 0.01, drawing.bend), pull)


def link_curves(topology: Topology) -> Points:
    """Channels between routers as curves of the drawing (`drawing.draw_places`), in the order of `Topology.channels`.

    float64[channel, point, 2]; the two directions of a link bend to different sides: traffic keeps right.
    """
    channels = topology.channels()
    return _drawn_links(draw_places(topology), channels.src_router, channels.dst_router)


def new_drawing(topology: Topology, title: str) -> tuple[Figure, Axes]:
    """Make a figure of the drawing of a network, with the routers as points (hollow: without hosts); no axes."""
    figure, axes = new_map(topology, title, draw_places(topology).places)
    axes.set_axis_off()
    axes.set_title(title, loc="left", fontsize=11)
    return figure, axes


def new_map(topology: Topology, title: str, places: Points | None = None) -> tuple[Figure, Axes]:
    """Make a figure of the floor plan (or of `places`), with the routers as points (hollow: without hosts)."""
    place = positions(topology) if places is None else places
    width, height = place.max(axis=0) - place.min(axis=0) + (1 if places is None else 1e-6)
    longer = max(width, height)
    figure, (axes,) = new_figure(
        width_in=2 + 7 * max(width / longer, 0.3), height_in=1.2 + 6.5 * max(height / longer, 0.3)
    )
    style_axes(axes, title=title, x_label="x (places)", y_label="y (places)")
    axes.grid(visible=False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    axes.set_aspect("equal", adjustable="datalim")
    hosts = np.bincount(topology.host_router, minlength=topology.routers) > 0
    size = float(np.clip(9000 / topology.routers, 1, 60))
    for chosen, face in ((hosts, "#222222"), (~hosts, "white")):
        if chosen.any():
            axes.scatter(
                place[chosen, 0], place[chosen, 1], s=size, facecolor=face, edgecolor="#222222", linewidth=0.6, zorder=3
            )
    if topology.routers <= 150:
        for router, (x, y) in enumerate(place):
            axes.annotate(
                str(router), (x, y), xytext=(4, 4), textcoords="offset points", fontsize=6, color=GREY, zorder=4,
                path_effects=[withStroke(linewidth=1.5, foreground="white")],  # links do not cut the number
            )  # fmt: skip
    return figure, axes


def draw_network(topology: Topology, path: Path) -> None:
    """Draw routers and links as a PNG."""
    ends = link_ends(topology)
    figure, axes = new_drawing(topology, topology.name)
    if len(ends) > MAX_DRAWN_LINKS:
        axes.set_title(f"{topology.name}: {len(ends)} links, too many to be drawn", loc="left", fontsize=11)
    else:
        alpha = float(np.clip(60 / math.sqrt(max(len(ends), 1)) / 4, 0.15, 0.9))
        lines = _drawn_links(draw_places(topology), ends[:, 0].astype(np.int32), ends[:, 2].astype(np.int32))
        width = float(np.clip(250 / max(len(ends), 1), 0.3, 1.1))
        axes.add_collection(LineCollection(list(lines), colors=PALETTE[0], linewidths=width, alpha=alpha, zorder=2))
    save_figure(figure, path)


def draw_channel_values(topology: Topology, values: ArrayLike, *, title: str, label: str, path: Path) -> None:
    """Draw a value of every channel between routers as the colour of a curve of the drawing.

    Parameters
    ----------
    topology : Topology
        At most `MAX_DRAWN_LINKS` links.
    values : array_like, float[channel]
        In the order of `Topology.channels`. The two directions of a link bend to different sides: traffic keeps right.
    title, label : str
        Of the figure and of the scale of colours.
    path : Path
        PNG.
    """
    value = np.asarray(values, float)
    order = np.argsort(value, kind="stable")  # the highest on top
    figure, axes = new_drawing(topology, title)
    lines = link_curves(topology)[order]
    drawn = LineCollection(
        list(lines), array=value[order], cmap=colour_map(), linewidths=np.clip(400 / len(order), 0.8, 2.2), zorder=2
    )
    drawn.set_clim(0.0, max(float(value.max(initial=0.0)), 1e-9))
    axes.add_collection(drawn)
    bar = figure.colorbar(drawn, ax=axes, shrink=0.9)
    bar.set_label(f"{label}{_range_words(value)}", fontsize=9, color="#222222")
    bar.ax.tick_params(labelsize=8)
    save_figure(figure, path)


def _range_words(value: NDArray[np.float64]) -> str:
    """Say the lowest and the highest value, both as exactly as the highest to three digits."""
    if not len(value):
        return ""
    digits = 2 - int(np.floor(np.log10(max(abs(float(value.max())), 1e-9))))
    low, high = (f"{round(float(each), digits):g}" for each in (value.min(), value.max()))
    return f": all {high}" if low == high else f": {low} to {high}"

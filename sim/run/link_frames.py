"""Loads of links over time as pictures: a PNG for each bin of a run, and all of them as an animated GIF."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.image import AxesImage
from numpy.typing import NDArray
from PIL import Image

from hopforge.model.errors import UserError
from hopforge.model.output.colour_scale import colour_map
from hopforge.model.output.plots import draw_heat_map, new_figure, style_axes
from hopforge.model.topology import Topology
from hopforge.model.topology.floor_map import MAX_DRAWN_LINKS, link_curves, new_drawing

__all__ = ["MAX_FRAMES", "LinkPicture", "check_frames", "write_frames"]

MAX_FRAMES = 500
FRAME_MS = 120
_DPI = 90
_LABEL = "share of the time that a link is busy"


def check_frames(bins: int) -> None:
    """Refuse more pictures than anyone looks at.

    Raises
    ------
    UserError
        More bins than `MAX_FRAMES`.
    """
    if bins > MAX_FRAMES:
        raise UserError(f"--frames draws at most {MAX_FRAMES} bins, not simulation.series_bins={bins}")


class LinkPicture:
    """A figure of all links whose colours can be changed.

    Meshes and tori of two dimensions: a panel for each direction, with the routers in their places. Others: curves of
    the drawing, the two directions of a link bent to different sides; with too many links a map of output port over
    router.

    Parameters
    ----------
    topology : Topology
        The network.
    largest : float
        Load at the end of the scale; 0 is at its beginning.
    """

    def __init__(self, topology: Topology, largest: float) -> None:
        self.channels = topology.channels()
        self._ports = topology.max_ports
        self._images: list[tuple[AxesImage, int | None]] = []
        self._lines: LineCollection | None = None
        radices = topology.params.get("radices", ())
        self.shape: tuple[int, ...] = (topology.routers,)
        if topology.kind in ("mesh", "torus") and len(radices) == 2:
            self.shape = (int(radices[1]), int(radices[0]))
            first = topology.max_ports - 4
            self.figure, panels = new_figure(panels=4, width_in=3.4, height_in=3.4)
            for axes, port, name in zip(panels, range(first, first + 4), ("+x", "−x", "+y", "−y"), strict=True):
                style_axes(axes, title=f"to {name}", x_label="x of the router", y_label="y of the router")
                self._add_image(axes, np.zeros(self.shape), largest, port)
        elif 0 < len(self.channels.src_router) <= 2 * MAX_DRAWN_LINKS:
            self.figure, axes = new_drawing(topology, topology.name)
            self._curves = link_curves(topology)
            width = float(np.clip(400 / len(self._curves), 0.8, 2.2))
            self._lines = LineCollection(list(self._curves), cmap=colour_map(), linewidths=width, zorder=2)
            self._lines.set_clim(0.0, largest)
            axes.add_collection(self._lines)
            self.figure.colorbar(self._lines, ax=axes, shrink=0.9).set_label(_LABEL, fontsize=9)
        else:
            self.figure, (axes,) = new_figure(width_in=9.0)
            style_axes(axes, title=topology.name, x_label="router", y_label="output port")
            self._add_image(axes, np.zeros((self._ports, topology.routers)), largest, None)
        self._title = self.figure.suptitle(" ", x=0.01, ha="left", fontsize=9)
        self.figure.set_dpi(_DPI)
        self._canvas = FigureCanvasAgg(self.figure)
        self._canvas.draw()
        self.figure.set_layout_engine("none")  # everything stays in its place from now on

    def _add_image(self, axes: Axes, values: NDArray[np.float64], largest: float, port: int | None) -> None:
        draw_heat_map(axes, values, label=_LABEL, largest=largest)
        self._images.append((axes.images[0], port))

    def show(self, loads: NDArray[np.float64], text: str) -> Image.Image:
        """Return the picture of these loads.

        Parameters
        ----------
        loads : float[channel]
            In the order of `Topology.channels`.
        text : str
            Above the picture.
        """
        self._title.set_text(text)
        if self._lines is not None:
            order = np.argsort(loads, kind="stable")  # the highest on top
            self._lines.set_segments(list(self._curves[order]))
            self._lines.set_array(loads[order])
        if self._images:
            table = np.full((self._ports, int(np.prod(self.shape))), np.nan)
            table[self.channels.src_port, self.channels.src_router] = loads
            for image, port in self._images:
                image.set_data(table if port is None else table[port].reshape(self.shape))
        self._canvas.draw()
        return Image.fromarray(np.asarray(self._canvas.buffer_rgba())).convert("RGB")


def write_frames(
    topology: Topology,
    loads: NDArray[np.float64],
    texts: list[str],
    folder: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Write ``frames/0000.png``, …, and ``links.gif``, which shows them one after the other.

    All have one scale, from 0 to the largest load of the run.

    Parameters
    ----------
    topology : Topology
        The network.
    loads : float[bin, channel]
        Share of the time that each link is busy; channels in the order of `Topology.channels`.
    texts : list of str
        What stands above each picture.
    folder : Path
        Of a run's results; exists.
    progress : callable, optional
        Called with (pictures done, in all).

    Raises
    ------
    UserError
        A network without links between routers.
    """
    if loads.shape[1] == 0:
        raise UserError("--frames: there are no links between routers")
    picture = LinkPicture(topology, max(float(loads.max()), 1e-9))
    (folder / "frames").mkdir()
    pictures = []
    for number, (row, text) in enumerate(zip(loads, texts, strict=True)):
        image = picture.show(row, text)
        image.save(folder / "frames" / f"{number:04d}.png")
        pictures.append(image.quantize(64))
        progress(number + 1, len(texts))
    first, *others = pictures
    first.save(folder / "links.gif", save_all=True, append_images=others, duration=FRAME_MS, loop=0, optimize=False)

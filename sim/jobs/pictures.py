"""Pictures of `hopforge jobs`: how large jobs are (figure 2.13 of the thesis), how long they wait."""

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.output.plots import Line, draw_lines, new_figure, save_figure, style_axes
from hopforge.sim.jobs.prepared import JobsReport

__all__ = ["draw_jobs"]

SHORTEST_WAIT_S = 1.0


def draw_jobs(found: JobsReport, scratch: Path) -> None:
    """Draw ``job_sizes.png`` and ``waits.png`` into a folder."""
    _draw_sizes(found, scratch / "job_sizes.png")
    _draw_waits(found, scratch / "waits.png")


def _draw_sizes(found: JobsReport, path: Path) -> None:
    table = found.tables["job_sizes"]
    axes_of = ("nodes", "processors")
    figure, panels = new_figure(panels=len(axes_of), width_in=5.6)
    for axes, axis in zip(panels, axes_of, strict=True):
        chosen = table["axis"] == axis
        style_axes(
            axes, title=f"Jobs of at most x {axis}", x_label=axis, y_label="share", log_x=True,
            y_ticks=(0, 0.2, 0.4, 0.6, 0.8, 1),
        )  # fmt: skip
        lines = [("of jobs", "jobs", 0), (f"of {axis.removesuffix('s')} hours", "hours", 1)]
        draw_lines(axes, [
            _steps(label, table["size"][chosen], table[key][chosen], color) for label, key, color in lines
            if not np.isnan(table[key][chosen]).any()
        ])  # fmt: skip
    save_figure(figure, path)


def _draw_waits(found: JobsReport, path: Path) -> None:
    figure, (axes,) = new_figure()
    style_axes(
        axes, title="Waits of jobs, the shortest first", x_label="share of jobs", log_y=True,
        y_label=f"longest wait in s, at least {SHORTEST_WAIT_S:g}", x_ticks=(0, 0.2, 0.4, 0.6, 0.8, 1),
    )  # fmt: skip
    placements = list(found.setup.placements)
    draw_lines(axes, [
        Line(
            f"{scheduler}, {placement}", np.arange(1, len(wait) + 1) / len(wait), np.maximum(wait, SHORTEST_WAIT_S),
            placements.index(placement), dashed=scheduler == "fcfs", marked=False,
        ) for (scheduler, placement), wait in found.waits.items()
    ])  # fmt: skip
    save_figure(figure, path)


def _steps(label: str, x: ArrayLike, share: NDArray[np.float64], color: int) -> Line:
    """Return a line that rises where a size or a time occurs."""
    return Line(label, np.repeat(x, 2), np.append(0.0, np.repeat(share, 2))[:-1], color, marked=False)

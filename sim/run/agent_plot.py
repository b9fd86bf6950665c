"""Mean Q, reward, loss and ε of agents over time as a picture."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hopforge.model.output.columns import Columns
from hopforge.model.output.plots import Line, draw_lines, new_figure, save_figure, style_axes

__all__ = ["plot_agents"]

_PANELS = (("mean_q", "mean Q"), ("mean_reward", "mean reward"), ("mean_loss", "mean loss"), ("epsilon", "ε"))
#: points of a curve, and curves of a panel: beyond them means of neighbours, and the mean of all agents
_POINTS, _AGENTS = 200, 6


def plot_agents(series: Columns, title: str, path: Path) -> None:
    """Draw a curve for each agent, or for many agents their mean."""
    agents = int(np.max(series["agent"], initial=0)) + 1
    figure, axes = new_figure(panels=4, columns=2)
    cycles = np.asarray(series["cycle"]).reshape(-1, agents)[:, 0]
    groups = [part for part in np.array_split(np.arange(len(cycles)), min(_POINTS, len(cycles))) if len(part)]
    for panel, (name, words) in zip(axes, _PANELS, strict=True):
        style_axes(panel, title=f"{words}, {title}", x_label="cycle", y_label=words)
        values = np.asarray(series[name], np.float64).reshape(-1, agents)
        shown = values if agents <= _AGENTS else _means(values)
        lines = []
        for k in range(shown.shape[1]):
            points = [(cycles[part[-1]], shown[part, k][~np.isnan(shown[part, k])]) for part in groups]
            known = [(cycle, float(found.mean())) for cycle, found in points if len(found)]
            if known:
                label = f"agent {k}" if agents <= _AGENTS else f"mean of {agents}"
                lines.append(Line(label, [x for x, _ in known], [y for _, y in known], k, marked=False))
        if lines:
            draw_lines(panel, lines)
    save_figure(figure, path)


def _means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over the agents that have a value; NaN where none has: float[time, 1]."""
    known = (~np.isnan(values)).sum(axis=1)
    return np.where(known > 0, np.nansum(values, axis=1) / np.maximum(known, 1), np.nan)[:, None]

"""The picture of `hopforge wavelengths`: rate of lookups by number of lanes."""

from pathlib import Path

import pandas as pd

from hopforge.model.config import Config
from hopforge.model.output.plots import Line, draw_lines, new_figure, save_figure, style_axes
from hopforge.sim.hits.wavelength_costs import TCAMS

__all__ = ["draw_rates"]

_TITLES = {"lane": "a TCAM for each lane", "link": "a TCAM for each link", "switch": "a TCAM for the switch"}


def draw_rates(table: pd.DataFrame, config: Config, path: Path) -> None:
    """Draw the rate of the slowest link against lanes, a panel for each place of the TCAMs."""
    figure, panels = new_figure(panels=len(TCAMS), columns=len(TCAMS), width_in=14.0)
    lanes = sorted(table["lanes"].unique().tolist())
    for axes, tcams in zip(panels, TCAMS, strict=True):
        style_axes(
            axes, title=_TITLES[tcams], x_label="lanes", y_label="slowest link, Gbps", log_x=True, x_ticks=lanes
        )
        here = table[table["tcams"].where(table["lanes"] > 1, table["tcams"].replace("link", "lane")) == tcams]
        if tcams == "link":  # the only lane is the link
            here = table[table["tcams"] == tcams]
        several = here[here["lanes"] > 1]
        lines = []
        for number, ((spread, share), part) in enumerate(several.groupby(["spread", "share"], sort=False)):
            whole = pd.concat([here[here["lanes"] == 1], part]).sort_values("lanes")
            color, dashed = number // max(1, several["share"].nunique()), share == "split"
            lines.append(Line(f"{spread}, {share}", whole["lanes"], whole["rate_gbps"], color, dashed=dashed))
        if not lines:
            lines.append(Line("one engine", here["lanes"], here["rate_gbps"], 0))
        draw_lines(axes, lines)
        for rate in config.wavelengths.rates_gbps:
            axes.axhline(rate, linestyle=":", color="0.4")
    save_figure(figure, path)

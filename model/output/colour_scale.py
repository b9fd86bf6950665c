"""The one scale of colours from low to high: plots, report and viewer take it from here.

Blue is low, red is high, on white and on dark paper. Neighbouring stops stay apart for readers who see no red, no
green or no blue (`tests/model/output/test_colour_scale.py` computes how they look to them).
"""

from matplotlib.colors import LinearSegmentedColormap

__all__ = ["NOTHING", "STOPS", "colour_map"]

STOPS = ("#7fb2d9", "#a6a4b4", "#d3964f", "#cc6526", "#b32d1b")
"""Colours at equal distances, low to high."""

NOTHING = "#8b949e"
"""Colour of what has no value."""


def colour_map() -> LinearSegmentedColormap:
    """Return the scale for matplotlib."""
    return LinearSegmentedColormap.from_list("hopforge", list(STOPS))

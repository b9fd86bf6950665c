"""Which of the open assumptions of OutFlank routing's network decide γ*: one answer changed at a time, k = 8."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.packet.saturation import find_saturation
from hopforge.model.plots import PALETTE, new_figure, style_axes
from hopforge.sim.reproduce.outflank import (
    ALGORITHMS,
    PAPER,
    PATTERNS,
    cell_config,
    compare_cell,
    message_count,
    search_rows,
)
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer

_K = 8
#: one change of section `packet` each
CHANGES: dict[str, dict[str, Any]] = {
    "the definition": {},
    "the source waits for answers": {"feed_waits": True},
    "5 free slots for packets of the source": {"inject_slots": 5},
    "queues at the receiving end": {"queues": "receiving"},
    "queue measure: adaptive channel only": {"congestion": "adaptive"},
    "u*/u = 1 where u* = 0": {"idle_ratio": "one"},
    "nothing where all queues are full": {"full_profit": "zero"},
    "wraparound keeps its directions": {"wraparound": "directions"},
    "both ways at half the ring": {"ties": "both"},
    "messages at random times": {"process": "exponential"},
    "every node begins at another bit": {"phase": "random"},
}
#: cells of POR and of OFR in which the definition is not within 0.05
CELLS = (("butterfly_stages", "por"), ("bit_reverse", "ofr"))


def _points(options: Options) -> list[Point]:
    return [
        {
            "pattern": pattern,
            "algorithm": algorithm,
            "change": change,
            "seed": options.seed,
            "messages": message_count(_K, options),
        }
        for pattern, algorithm in CELLS
        for change in CHANGES
        if pattern == "butterfly_stages" or change != "every node begins at another bit"
    ]


def measure_change(point: Point, _options: Options) -> list[Row]:
    """Find γ* of one cell with one answer changed: a row for each load that was tried."""
    changes = CHANGES[str(point["change"])]
    config = cell_config(
        str(point["pattern"]), str(point["algorithm"]), _K, "definition", integer(point, "messages"), **changes
    )
    return search_rows(point, find_saturation(config, integer(point, "seed")))


def _compare(data: pd.DataFrame, _options: Options) -> list[Comparison]:
    result = []
    keys = ["pattern", "algorithm", "change"]
    for key, part in data.groupby(keys, sort=False):
        pattern, algorithm, change = map(str, key)
        paper = PAPER[_K][pattern][ALGORITHMS.index(algorithm)]
        result.append(compare_cell(part, paper, f"γ*, {PATTERNS[pattern]}, {algorithm.upper()}", change))
    return result


def _draw(data: pd.DataFrame, _options: Options) -> Figure:
    figure, panels = new_figure(panels=len(CELLS), width_in=6.0, height_in=3.6)
    for axes, (pattern, algorithm) in zip(panels, CELLS, strict=True):
        style_axes(axes, title=f"{PATTERNS[pattern]}, {algorithm.upper()}, k = {_K}", x_label="γ*", y_label="")
        cell = data[(data["pattern"] == pattern) & (data["algorithm"] == algorithm)]
        found = cell.groupby("change", sort=False)["saturation"].first()
        axes.barh(list(found.index), found.to_numpy(), color=PALETTE[0], height=0.6)
        axes.invert_yaxis()
        paper = PAPER[_K][pattern][ALGORITHMS.index(algorithm)]
        axes.axvline(paper, color=PALETTE[1], label="paper")
        axes.legend(loc="lower right")
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "outflank.assumptions",
        "Largest sustained load with one of the open assumptions changed",
        "seed 003, table 2; issue 5",
        (
            "k = 8; the answers of docs/torus-adaptive.md but for the one named",
            "18 messages (--full: 32) of 96 packets",
        ),
        _points,
        measure_change,
        _compare,
        _draw,
        parallel=True,
    ),
)

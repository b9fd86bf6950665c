"""What the ranks of a graph did when, as pictures of the report: computing, exposed communication, waiting."""

from typing import Any

import numpy as np
import pandas as pd

from hopforge.sim.pages.find import ResultSet
from hopforge.sim.pages.report import Fact, Figure, Item

__all__ = ["TIMELINE", "has_timeline", "timeline_items"]

TIMELINE = "timeline"
"""The table that only the pictures show."""

_STATES = {"idle": "waiting", "exposed": "communication", "computing": "computing"}
_COLOURS = ("#c9ced6", "#d9742b", "#2b6fb3")
_SHOWN_RANKS = 3
_STREAM = "stream_"


def has_timeline(result: ResultSet) -> bool:
    """Tell whether a result has the tables of ranks that ran a graph."""
    return {TIMELINE, "activity"} <= set(result.tables)


def timeline_items(result: ResultSet) -> tuple[list[Fact], list[Item]]:
    """Return cards and pictures.

    Raises
    ------
    KeyError, TypeError, ValueError
        Tables of another version.
    """
    table, ranks = result.tables[TIMELINE], result.tables["activity"]
    makespan = float(ranks[["computing_s", "exposed_s", "idle_s"]].iloc[0].sum())
    facts = [Fact("makespan", f"{1e3 * makespan:.4g} ms")]
    for key, label in (("computing_s", "computing"), ("exposed_s", "exposed communication"), ("idle_s", "waiting")):
        facts.append(Fact(label, f"{100 * float(ranks[key].mean()) / makespan:.3g} %", "mean of ranks"))
    links = result.tables.get("links")
    if links is not None and bool(links["between_routers"].any()):
        busiest = links[links["between_routers"]].iloc[0]
        facts.append(Fact("busiest link", f"{100 * float(busiest['busy_share']):.3g} %", str(busiest["link"])))
    return facts, [_all_ranks(table, result.command), _some_ranks(table, ranks, result.command)]


def _times(table: pd.DataFrame) -> list[float]:
    return [round(1e3 * float(each), 6) for each in np.unique(table["begin_s"])]


def _all_ranks(table: pd.DataFrame, command: str) -> Figure:
    """Return a row for each rank, in the colour of what it mostly did."""
    shares = np.stack([table.pivot(index="rank", columns="begin_s", values=key).to_numpy(float) for key in _STATES])
    state = shares.argmax(axis=0)
    numbers = sorted(int(each) for each in table["rank"].unique())
    stops = [[edge / len(_STATES), colour] for n, colour in enumerate(_COLOURS) for edge in (n, n + 1)]
    trace = {
        "type": "heatmap", "x": _times(table), "y": numbers, "z": state, "zmin": -0.5, "zmax": len(_STATES) - 0.5,
        "colorscale": stops, "colorbar": _legend(list(range(len(_STATES))), list(_STATES.values())),
        "hovertemplate": "rank %{y}, %{x:.4~g} ms<extra></extra>",
    }  # fmt: skip
    layout = {"xaxis": {"title": {"text": "ms"}}, "yaxis": {"title": {"text": "rank"}, "autorange": "reversed"},
              "margin": {"l": 56, "r": 12}}  # fmt: skip
    caption = (
        "What each rank did for most of each part of the time: compute; wait for messages that are under way"
        " (exposed communication); wait for others that have not sent yet."
    )
    return Figure("Ranks over time", [trace], layout, caption, command, height_px=min(760, 220 + 5 * len(numbers)))


def _some_ranks(table: pd.DataFrame, ranks: pd.DataFrame, command: str) -> Figure:
    """Return a row for each stream of a few ranks: the share of each part of the time in which it was busy."""
    streams = [str(column) for column in table.columns if str(column).startswith(_STREAM)]
    used = [column for column in streams if float(table[column].max()) > 0]
    rows, labels = [], []
    for rank in _chosen(ranks):
        own = table[table["rank"] == rank].sort_values("begin_s")
        for key, label in (("computing", "computing"), *((each, each.removeprefix(_STREAM)) for each in used),
                           ("exposed", "exposed"), ("idle", "waiting")):  # fmt: skip
            rows.append(own[key].tolist())
            labels.append(f"{rank} {label}")
    trace: dict[str, Any] = {
        "type": "heatmap", "x": _times(table), "y": labels, "z": rows, "zmin": 0, "zmax": 1, "ygap": 2,
        "colorscale": [[0, "rgba(128,128,128,0.12)"], [1, _COLOURS[2]]],
        "colorbar": _legend([0, 0.5, 1], ["0 %", "50 %", "100 %"]),
        "hovertemplate": "rank %{y}, %{x:.4~g} ms: %{z:.0%}<extra></extra>",
    }  # fmt: skip
    layout = {"xaxis": {"title": {"text": "ms"}}, "yaxis": {"type": "category", "autorange": "reversed"},
              "margin": {"l": 110, "r": 12}}  # fmt: skip
    caption = (
        "Ranks that wait least, communicate most and wait most. Of each part of the time, the share in which the rank"
        " computed, a message of a stream was under way from or to it, this was exposed, or it waited for others."
    )
    return Figure("Streams of some ranks", [trace], layout, caption, command, height_px=200 + 20 * len(rows))


def _legend(values: list[float], words: list[str]) -> dict[str, Any]:
    """Return a bar of colours below the picture, which leaves its width to it."""
    return {
        "orientation": "h", "y": -0.22, "yanchor": "top", "x": 0.5, "thickness": 10, "len": 0.9,
        "tickvals": values, "ticktext": words,
    }  # fmt: skip


def _chosen(ranks: pd.DataFrame) -> list[int]:
    if len(ranks) <= _SHOWN_RANKS:
        return [int(each) for each in ranks["rank"]]
    places = [int(ranks["idle_s"].argmin()), int(ranks["exposed_s"].argmax()), int(ranks["idle_s"].argmax())]
    return sorted({int(ranks["rank"].iloc[place]) for place in places})

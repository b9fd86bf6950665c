"""What is plotted of a table first: the reader can choose other columns."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from hopforge.sim.pages.report import Explorer

__all__ = ["LARGEST_PLOT", "cells", "explorer", "side_by_side"]

LARGEST_PLOT = 20_000
"""Rows of a table that are plotted."""

NEAR_ONE = 0.9
"""Rates all above this are drawn as points on an axis of their own, not as bars from 0."""

_MOST_SERIES = 24
_X = (
    "load", "offered_load", "cycle", "end_cycle", "start_cycle", "time_us", "time_ns", "rank", "t_max", "router",
    "switch", "port_class", "routers", "entries", "targets", "bytes",
)  # fmt: skip
_Y = (
    "latency", "hit_rate", "finish_cycle", "finish_s", "engine_ratio", "makespan_s", "million_per_s",
    "million_flit_hops_per_s", "cpu_s", "packet_over_flow", "mean_hops", "bandwidth", "area_um2", "delay_ns", "cells",
    "score", "load", "cycles",
)  # fmt: skip
_SERIES = ("variant", "method", "recipe", "pattern", "engine", "seed", "by", "result")
_IDENTITY = (
    "router", "port", "rank", "host", "seed", "seeds", "number", "packet", "member", "to_router", "dst", "peer", "vc",
    "out_port", "out_vc", "flit", "bit", "trace", "group",
)  # fmt: skip
_NAMES = frozenset((*_IDENTITY, "switch", "bits")) - {"rank"}


def explorer(
    title: str, table: pd.DataFrame, command: str = "", caption: str = "", units: Mapping[str, str] | None = None
) -> Explorer | None:
    """Return a plot of the table with a first choice of axes; None for a table with nothing to plot.

    Latencies of saturated points are left out, and the caption says so: the queues of the hosts grow, and their mean
    with the length of the run. -1, the latency of what did not arrive, is left out, too. Numbers that are only names,
    as of ports, are not plotted first.
    More than `LARGEST_PLOT` rows are thinned evenly, and the caption says so.
    """
    table = table.loc[:, ~table.columns.duplicated()].copy()
    table.columns = table.columns.map(str)
    for name in [name for name in table if table[name].dtype.kind == "f"]:
        table[name] = _without_noise(table[name])
    varied = [name for name in table.columns if _distinct(table[name], 2)]
    numbers = [name for name in varied if is_numeric_dtype(table[name]) and not is_bool_dtype(table[name])]
    if len(table) < 2 or not numbers or len(varied) < 2:
        return None
    words = [name for name in varied if name not in numbers]
    x = _first_x(table, varied, numbers, words)
    values = [name for name in numbers if name != x]
    if not set(values) - set(_IDENTITY):
        return None
    y = _prefer(_Y, values) or _first_y(table, values)
    kinds = [name for name in varied if not _distinct(table[name], _most_series(table[name]) + 1)]
    choices = [name for name in kinds if name not in (x, y)]
    by = _prefer(_SERIES, choices)
    if not _separates(table, x, by):
        by = next((name for name in choices if _separates(table, x, name)), by)
    step = -(-len(table) // LARGEST_PLOT)
    if step > 1:
        caption = f"{caption} One of every {step} rows, of {len(table)} in all.".strip()
    if _saturated(table).any() and any("latency" in name for name in numbers):
        caption = f"{caption} Latencies of saturated points are left out.".strip()
    shown = _measured_latencies(table.iloc[::step])
    high = "rate" in y and table[y].min() > NEAR_ONE  # bars from 0 would all look alike
    lies = "markers" if high else "bars"
    joined = x not in _NAMES and _separates(table, x, by)  # a line between two hosts means nothing
    style = lies if x in words else "lines" if joined else "markers"
    return Explorer(
        title,
        {name: cells(shown[name]) for name in varied},
        x,
        y,
        by,
        varied,
        numbers,
        kinds,
        style,
        caption,
        command,
        {} if units is None else units,
    )


def side_by_side(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `hopforge compare` for a plot: a column for each figure, which have units of their own.

    Each result has a row at each load, or whatever names the rows; ``result`` tells which. Saturated latencies are left
    out. Of results of one row only the differences in per cent can stand in one plot.
    """
    apart = ("figure", "first", "second", "difference", "difference_percent", "interval", "verdict")
    names = [str(name) for name in table.columns if name not in apart and table[name].nunique() > 1]
    if not names:
        return table[["figure", "difference_percent"]][table["verdict"] != "saturated"]
    parts = []
    for side in ("first", "second"):
        values = table.assign(value=table[side].where(table["verdict"] != "saturated"))
        part = values.pivot_table(index=names, columns="figure", values="value", sort=False).reset_index()
        called = part.pop("variant").astype(str) + f" {side}" if "variant" in names and len(names) > 1 else side
        parts.append(part.assign(result=called))
    return pd.concat(parts, ignore_index=True)


def cells(column: pd.Series) -> list[Any]:
    """Return the values as text, numbers, booleans and None; long texts are cut."""
    return [_cell(value) for value in column.astype(object).tolist()]


def _cell(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    text = str(value).encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= 200 else f"{text[:200]}…"


def _without_noise(column: pd.Series) -> pd.Series:
    """Return the values with ten digits: an axis from 0.4999999999999998 to 0.5 shows nothing."""
    values = column.to_numpy(np.float64)
    known = np.isfinite(values) & (values != 0)
    digits = np.floor(np.log10(np.abs(values, where=known, out=np.ones_like(values))))
    scale = 10.0 ** np.clip(9 - digits, -300, 300)
    return pd.Series(np.where(known, np.round(values * scale) / scale, values), column.index)


def _first_x(table: pd.DataFrame, varied: Sequence[str], numbers: Sequence[str], words: Sequence[str]) -> str:
    known = _prefer(_X, [name for name in varied if name != "load" or "router" not in varied])  # loads of channels
    if known:
        return known
    if words and table[words[0]].is_unique and len(table) <= 60:
        return words[0]
    return next(iter(numbers))


def _first_y(table: pd.DataFrame, values: Sequence[str]) -> str:
    """Return the first measured column: one with fractions, for whole numbers are often what was chosen."""
    measured = [name for name in values if name not in _IDENTITY]
    fractions = (name for name in measured if (table[name].dropna() % 1 != 0).any())
    return next(fractions, next(iter(measured), values[0]))


def _prefer(wanted: Sequence[str], names: Sequence[str]) -> str:
    return next((name for name in wanted if name in names), "")


def _most_series(column: pd.Series) -> int:
    return _MOST_SERIES if not is_numeric_dtype(column) or (column.dropna() % 1 == 0).all() else _MOST_SERIES // 4


def _distinct(column: pd.Series, count: int) -> bool:
    """Tell whether the column has at least `count` different values."""
    try:
        return bool(column.nunique() >= count)
    except TypeError:  # lists and the like
        return False


def _separates(table: pd.DataFrame, x: str, by: str) -> bool:
    """Tell whether no series has two points at the same place."""
    names = [x, by] if by else [x]
    return not table.duplicated(names).any()


def _saturated(table: pd.DataFrame) -> "pd.Series[bool]":
    """Tell which points are saturated, where the table says it."""
    if "saturated" in table and is_bool_dtype(table["saturated"]):
        return table["saturated"].astype(bool)
    return pd.Series(data=False, index=table.index)


def _measured_latencies(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table without latencies of saturated points and of what did not arrive."""
    known = ~_saturated(table)
    table = table.copy()
    for name in table.columns:
        if "latency" in name and is_numeric_dtype(table[name]):
            table[name] = table[name].where(known & (table[name] != -1), np.nan)
    return table

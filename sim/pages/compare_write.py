"""A comparison on the terminal and on disk: words, table, plot."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hopforge.model.errors import UserError
from hopforge.model.output.plots import Line, draw_lines, new_figure, save_figure, style_axes
from hopforge.model.output.results import command_words, package_versions, staged, write_metadata, write_tables
from hopforge.sim.pages.compare import Comparison, Subject
from hopforge.sim.pages.glance import network_words
from hopforge.sim.run.rate_time import model_rate_time

__all__ = ["comparison_lines", "comparison_rows", "write_comparison"]

_MOST_CHANGES, _MOST_CURVES = 12, 3
#: commands that read no buffers, with a table that only their results have
_KINDS = {"hits": "ports", "app": "app"}
_FIGURES = ("figure", "first", "second", "difference", "difference_percent", "interval", "verdict")
_CURVES = {
    "latency": "mean latency (cycles)", "accepted": "accepted (flits per host and {time})",
    "lifetime_ns": "mean lifetime (ns)",
}  # fmt: skip


def comparison_rows(found: Comparison) -> list[tuple[str, str]]:
    """Say what was compared, what was changed between the two, and how many figures differ."""
    rows = []
    for which, subject in (("first", found.first), ("second", found.second)):
        network = ", ".join(filter(None, _network(subject)))
        rows.append((which, f"{subject.name}: {network}" if network else subject.name))
    changes = list(found.changed.items())
    for key, (ours, theirs) in changes[:_MOST_CHANGES]:
        rows.append((f"changed: {key}", f"{_short(ours)} → {_short(theirs)}"))
    if len(changes) > _MOST_CHANGES:
        rows.append(("changed", f"{len(changes) - _MOST_CHANGES} keys more (metadata.json)"))
    if not changes:
        rows.append(("changed", "nothing, or the configurations are not known"))
    for words, count in found.table["verdict"].value_counts().sort_index().items():
        rows.append((str(words), f"{count} figure{'' if count == 1 else 's'}"))
    if found.left_out:
        more = f" and {len(found.left_out) - 4} more" if len(found.left_out) > 4 else ""
        rows.append(("only in one of them", ", ".join(found.left_out[:4]) + more))
    return rows


def comparison_lines(found: Comparison) -> list[list[str]]:
    """Return headings and a row for each figure."""
    names = _names(found)
    lines = [[*names, "figure", "first", "second", "difference", "%", "± (95 %)", "verdict"]]
    for row in found.table.to_dict("records"):
        lines.append([
            *(_number(row[name]) for name in names), row["figure"],
            *(_number(row[name]) for name in ("first", "second", "difference")),
            _number(row["difference_percent"], ".2f"), _number(row["interval"]), row["verdict"],
        ])  # fmt: skip
    return lines


def write_comparison(found: Comparison, folder: Path) -> None:
    """Write table (CSV, Parquet), plot (PNG; of results over loads) and metadata (JSON).

    Raises
    ------
    UserError
        The folder is that of a result, whose metadata would be lost.
    """
    compared = [each.folder.resolve() for each in (found.first, found.second) if each.folder is not None]
    if folder.resolve() in compared:
        raise UserError(f"{folder}: is a result that is compared, and is not overwritten; name another folder")
    changed = {key: list(values) for key, values in found.changed.items()}
    with staged(folder) as scratch:
        write_tables(scratch, {"comparison": found.table})
        write_metadata(scratch, {
            "command": command_words(), "first": found.first.name, "second": found.second.name,
            "networks": [list(_network(each)) for each in (found.first, found.second)], "changed": changed,
            "left_out": found.left_out, "versions": package_versions(),
        })  # fmt: skip
        _plot(found, scratch / "comparison.png")


def _network(subject: Subject) -> tuple[str, str]:
    """Return kind and sizes of the network of a result; empty words where its configuration is not known."""
    return network_words(subject.config, next((kind for kind in _KINDS if _KINDS[kind] in subject.tables), "net"))


def _names(found: Comparison) -> list[str]:
    """Return the columns that tell the rows apart."""
    names = [str(name) for name in found.table.columns if name not in _FIGURES]
    return [name for name in names if found.table[name].nunique() > 1]


def _plot(found: Comparison, path: Path) -> None:
    """Draw both results over the load, or, of results with one row, nothing."""
    table = found.table
    if "load" not in table or table["load"].nunique() < 2:
        return
    figures = [name for name in _CURVES if (table["figure"] == name).any()]
    if not figures:
        return
    figure, panels = new_figure(panels=len(figures))
    time = " or ".join(dict.fromkeys(_rate_time(each) for each in (found.first, found.second)))
    for axes, name in zip(panels, figures, strict=True):
        label = _CURVES[name].format(time=time)
        style_axes(axes, title=name.replace("_ns", ""), x_label="offered load", y_label=label)
        draw_lines(axes, _lines(found, table[(table["figure"] == name) & (table["verdict"] != "saturated")]))
    save_figure(figure, path)


def _rate_time(subject: Subject) -> str:
    """Return the time in which rates are counted: that of a cycle where the configuration is not known."""
    router = subject.config.get("router")
    return model_rate_time(router.get("model") if isinstance(router, Mapping) else None)


def _lines(found: Comparison, rows: pd.DataFrame) -> list[Line]:
    groups: list[tuple[Any, pd.DataFrame]] = [("", rows)]
    if "variant" in rows and rows["variant"].nunique() > 1:
        groups = list(rows.groupby("variant", sort=False))[:_MOST_CURVES]
    lines = []
    for number, (variant, points) in enumerate(groups):
        for column, dashed in (("first", False), ("second", True)):
            color = number if len(groups) > 1 else int(dashed)
            lines.append(Line(f"{variant} {column}".strip(), points["load"], points[column], color, dashed=dashed))
    return lines if len(rows) else [Line("no load without saturation", [0.0], [0.0], marked=False)]


def _number(value: Any, form: str = ".5g") -> str:
    if isinstance(value, str):
        return value
    if value is None or not np.isfinite(value):
        return "–"
    if form == ".5g" and 1e5 <= abs(value) < 1e15:  # else it would have an exponent
        form = ",.0f"
    return format(value, form).replace("-", "−")


def _short(value: Any) -> str:
    text = "–" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"

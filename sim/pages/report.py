"""One self-contained HTML page of tables and interactive plots.

A page is plain data: a `Report` of sections, each with cards, tables, figures, pictures and texts. Whatever makes
results returns a `Section`; pages are put together from sections of any origin. Nothing is loaded from outside.
"""

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from plotly.offline import get_plotlyjs

from hopforge.model.output.colour_scale import STOPS
from hopforge.model.output.destination import check_destination, is_special
from hopforge.model.output.results import check_writable, write_text

PAGE = "a page of hopforge"
"""What a file of ours holds (`model.output.destination`)."""


@dataclass(frozen=True)
class Fact:
    """One number that matters, on a card.

    Attributes
    ----------
    label, value : str
        What it is, and its value with unit.
    note : str
        One line below: what it is compared with, or where it comes from.
    """

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
        Heading, with the unit if there is one.
    digits : int or None
        Digits after the point of numbers; None writes them as they are.
    bar : bool
        Draw each number also as a bar against the largest of the column.
    """

    name: str
    digits: int | None = None
    bar: bool = False


@dataclass(frozen=True)
class Table:
    """A table that the reader can sort and filter.

    Attributes
    ----------
    title, caption : str
        Heading, and what to see in it.
    columns : sequence of Column
        Columns.
    rows : sequence of sequence
        Cells: text, numbers or None.
    command : str
        Command that repeats the result.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    caption: str = ""
    command: str = ""

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(f"rows[{number}] must have columns={len(self.columns)} cells, not {len(row)}")


@dataclass(frozen=True)
class Figure:
    """An interactive plot.

    Attributes
    ----------
    title, caption : str
        Heading, and what to see in it.
    traces : sequence of mapping
        Plotly traces; numpy arrays are allowed. Colours are the page's unless given.
    layout : mapping
        Plotly layout: axes, bar mode and the like. Fonts and background are the page's.
    command : str
        Command that repeats the result.
    height_px : int
        Height on the page.
    half : bool
        Half as wide as the page, beside a neighbour that is, too.
    """

    title: str
    traces: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any] = field(default_factory=dict)
    caption: str = ""
    command: str = ""
    height_px: int = 380
    half: bool = False


@dataclass(frozen=True)
class Explorer:
    """An interactive plot of a table whose axes the reader can change.

    Attributes
    ----------
    title, caption : str
        Heading, and what to see in it.
    columns : mapping of str to sequence
        Values of every column that can be chosen, all of one length: text, numbers or None.
    x, y, by : str
        Columns that are plotted first; rows that differ in `by` are series of their own (empty: one series).
    x_choices, y_choices, by_choices : sequence of str
        Columns that can be chosen instead.
    style : str
        ``lines``, ``markers`` or ``bars``. A column NAME_interval is drawn as error bars of NAME.
    command : str
        Command that repeats the result.
    units : mapping of str to str
        Units of columns, for the titles of the axes.
    """

    title: str
    columns: Mapping[str, Sequence[Any]]
    x: str
    y: str
    by: str = ""
    x_choices: Sequence[str] = ()
    y_choices: Sequence[str] = ()
    by_choices: Sequence[str] = ()
    style: str = "lines"
    caption: str = ""
    command: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    height_px: int = 380

    def __post_init__(self) -> None:
        lengths = {len(values) for values in self.columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns must have one length, not {sorted(lengths)}")
        for name in {self.x, self.y, self.by, *self.x_choices, *self.y_choices, *self.by_choices} - {""}:
            if name not in self.columns:
                raise ValueError(f"{name!r} must be one of the columns {list(self.columns)}")
        if self.style not in STYLES:
            raise ValueError(f"style must be one of {', '.join(STYLES)}, not {self.style!r}")


_FEW_BARS = 6
VIEW_SCRIPTS = ("view_draw.js", "view_panel.js", "view_controls.js")
STYLES = ("lines", "markers", "bars")


@dataclass(frozen=True)
class Picture:
    """A PNG file, embedded.

    Attributes
    ----------
    title, caption : str
        Heading, and what to see in it.
    png : bytes
        The file.
    command : str
        Command that repeats the result.
    shown : bool
        Open from the start; else closed until the reader opens it.
    """

    title: str
    png: bytes
    caption: str = ""
    command: str = ""
    shown: bool = False

    @property
    def address(self) -> str:
        """The picture as a data URL."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode("ascii")


@dataclass(frozen=True)
class Listing:
    """Text of fixed width, such as a configuration; closed until the reader opens it."""

    title: str
    text: str


@dataclass(frozen=True)
class NetworkView:
    """A network that the reader moves through.

    Attributes
    ----------
    title, caption : str
        Heading, and what to see in it.
    data : mapping
        What `network_view.network_view` returns.
    command : str
        Command that repeats the result.
    """

    title: str
    data: Mapping[str, Any]
    caption: str = ""
    command: str = ""


Item = Table | Figure | Explorer | Picture | Listing | NetworkView


@dataclass(frozen=True)
class Section:
    """One part of the page.

    Attributes
    ----------
    title, text : str
        Heading and introduction; blank lines separate paragraphs.
    facts : sequence of Fact
        Cards, first.
    items : sequence of Item
        What follows, in this order.
    """

    title: str
    text: str = ""
    facts: Sequence[Fact] = ()
    items: Sequence[Item] = ()


@dataclass(frozen=True)
class Report:
    """A whole page.

    Attributes
    ----------
    title, summary : str
        Heading, and the result in one or two sentences.
    sections : sequence of Section
        Parts.
    provenance : mapping of str to str
        What is needed to repeat it: command, configuration, seed, versions.
    wide : bool
        Use the whole width of the window.
    """

    title: str
    summary: str
    sections: Sequence[Section]
    provenance: Mapping[str, str] = field(default_factory=dict)
    wide: bool = False


def thousands(number: float) -> str:
    r"""Return a whole number with thin spaces between its thousands.

    Examples
    --------
    >>> thousands(1234567) == "1\u202f234\u202f567"
    True
    """
    return f"{int(number):,}".replace(",", "\u202f")


def bars(
    title: str,
    groups: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    y: str,
    x: str = "",
    caption: str = "",
    command: str = "",
) -> Figure:
    """Return a bar chart from zero, each value on its bar: one of each series for each group.

    `x` and `y` are the titles of the axes.
    """
    for name, values in series.items():
        if len(values) != len(groups):
            raise ValueError(f"series {name!r} must have groups={len(groups)} values, not {len(values)}")
    series, without = shown_series(series)
    traces = [
        {
            "type": "bar",
            "name": name,
            "x": list(groups),
            "y": values,
            "texttemplate": "%{y:.3~g}",
            "textposition": "outside",
            "cliponaxis": False,
        }
        for name, values in series.items()
    ]
    layout = {
        "xaxis": {"title": {"text": x}, "type": "category"},
        "yaxis": {"title": {"text": y}, "rangemode": "tozero"},
        "bargap": 0.5,
        "showlegend": len(series) > 1,
    }
    caption = " ".join(filter(None, (caption, without)))
    return Figure(title, traces, layout, caption, command, half=len(groups) * len(series) <= _FEW_BARS)


def shown_series(series: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the series that have a bar, and in words those that have none: a legend names only what is there."""
    there = {name: values for name, values in series.items() if any(_number(value) for value in plain(values))}
    if not there or len(there) == len(series):
        return dict(series), ""
    return there, f"All zero: {', '.join(name for name in series if name not in there)}."


def heatmap(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Any,
    *,
    x: str,
    y: str,
    unit: str,
    caption: str = "",
    command: str = "",
    limits: tuple[float, float] | None = None,
) -> Figure:
    """Return a map of ``values[row, column]``; NaN leaves a gap, `unit` stands at the colour bar.

    `limits` are the values at the ends of the colour bar, those of the data unless given.
    """
    low, high = (None, None) if limits is None else limits
    traces = [{
        "type": "heatmap", "x": list(columns), "y": list(rows), "z": values, "zmin": low, "zmax": high,
        "colorscale": [[number / (len(STOPS) - 1), colour] for number, colour in enumerate(STOPS)],
        "colorbar": {"title": {"text": unit, "side": "top"}, "thickness": 12}, "xgap": 1, "ygap": 1,
        "hovertemplate": f"{y} %{{y}}, {x} %{{x}}: %{{z:.4~g}} {unit}<extra></extra>",
    }]  # fmt: skip
    layout = {"xaxis": {"title": {"text": x}, "type": "category"}, "yaxis": {"title": {"text": y}, "type": "category"}}
    return Figure(title, traces, layout, caption, command, height_px=min(900, 160 + 18 * len(rows)))


def render(report: Report) -> str:
    """Return the page as text."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["cell"] = _cell
    environment.filters["largest"] = _largest
    environment.tests["plot"] = lambda item: isinstance(item, Figure | Explorer)
    for kind in (Table, Figure, Explorer, Picture, Listing, NetworkView):
        environment.tests[kind.__name__.lower()] = lambda item, kind=kind: isinstance(item, kind)
    numbered = [(f"section-{number}", section) for number, section in enumerate(report.sections, start=1)]
    views = [item for section in report.sections for item in section.items if isinstance(item, NetworkView)]
    plots = [item for section in report.sections for item in section.items if isinstance(item, Figure | Explorer)]
    return environment.from_string(_template("report.html.j2")).render(
        report=report,
        sections=numbered,
        plot_number={id(plot): number for number, plot in enumerate(plots, start=1)},
        plots=_embed([_plot_data(plot) for plot in plots]),
        view_number={id(view): number for number, view in enumerate(views)},
        networks=_embed([view.data for view in views]) if views else "",
        style=_template("report.css") + (_template("view.css") if views else ""),
        view_scripts=[_template(name) for name in VIEW_SCRIPTS] if views else [],
        script=_template("report.js"),
        plotly=_plotly() if plots else "",
        plot_shapes=_template("plot_shapes.js"),
        styles=STYLES,
        id=id,
    )


def _template(name: str) -> str:
    return (resources.files("hopforge.sim.pages") / "templates" / name).read_text(encoding="utf-8")


def _plot_data(plot: Figure | Explorer) -> dict[str, Any]:
    if isinstance(plot, Figure):
        return {"data": plot.traces, "layout": plot.layout, "title": plot.title, "half": plot.half}
    return {"columns": plot.columns, "units": plot.units, "title": plot.title}


def check_page(path: Path) -> None:
    """Refuse to write where something else than a page of hopforge is, or where nothing can be written.

    Raises
    ------
    ResultError
        Naming the path.
    """
    check_destination(path, PAGE, named=True)
    if not is_special(path):
        check_writable(path.parent)


def write_report(report: Report, path: Path) -> None:
    """Write the page to `path`, whole or not at all."""
    write_text(path, render(report), PAGE)


def _plotly() -> str:
    source = get_plotlyjs()
    if "</script" in source.lower():
        raise RuntimeError("plotly.js contains </script and cannot stand inside a page")
    return source


def embedded_bytes(value: Any) -> int:
    """Return how long plain data are in a page."""
    return len(_embed(value))


def _embed(value: Any) -> str:
    """Return JSON that can stand inside a script element."""
    return json.dumps(plain(value), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def plain(value: Any) -> Any:
    """Return `value` of lists, dicts and finite numbers only; what is not finite becomes null."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _number(value: Any) -> float | None:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # a whole number beyond every float
        return None


def _cell(value: Any, column: Column) -> tuple[str, float | None]:
    """Return the text of a cell and, if it is a number, what it is sorted by."""
    number = _number(value)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–", None
    if number is None:
        return str(value), None
    if column.digits is None and number == int(number):
        return thousands(number), number
    text = f"{number:,.{column.digits}f}" if column.digits is not None else f"{number:.6g}"
    return text.replace(",", "\u202f"), number


def _largest(table: Table) -> list[float | None]:
    """Return the largest magnitude of each column, None for a column without numbers."""
    columns = [[_number(row[index]) for row in table.rows] for index in range(len(table.columns))]
    return [max((abs(number) for number in column if number is not None), default=None) for column in columns]

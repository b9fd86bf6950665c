"""The page of all results below a folder: an overview, then a section for each folder of results."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import yaml

from hopforge.sim.pages.explore import cells, explorer
from hopforge.sim.pages.find import Found, ResultSet
from hopforge.sim.pages.glance import glance
from hopforge.sim.pages.hit_page import REGULAR, HitRun, consequence_section, hit_section
from hopforge.sim.pages.network_item import DRAWN_ONLY, ViewBudget, report_view
from hopforge.sim.pages.outcome import outcome
from hopforge.sim.pages.plotted import plotted
from hopforge.sim.pages.report import Column, Fact, Figure, Item, Listing, Picture, Report, Section, Table, bars
from hopforge.sim.pages.timeline import TIMELINE, has_timeline, timeline_items

__all__ = ["MOST_ROWS", "result_page"]

MOST_ROWS = 200
"""Rows of a table on the page unless asked for more or fewer."""

_ROWS_IN_ALL = 30_000
_LONGEST_FACTS = 80
_APART = (
    "command", "kind", "files", "config", "versions", "assumptions", "comparisons", "results", "recipes", "blocks",
    "survivors", "columns",
)  # fmt: skip
#: tables of one row that tell what a run measured
_MAIN = ("measurement", "program", "app")
_MEASURES = (
    ("hit_rate", "hit rate"),
    ("latency", "latency, cycles"),
    ("accepted", "accepted"),
    ("makespan", "makespan, cycles"),
    ("makespan_s", "makespan, s"),
    ("mismatches", "mismatches"),
)


def result_page(found: Found, command: str, *, rows: int = MOST_ROWS) -> Report:
    """Return the page of what `find_results` found; a folder with a page of its own (`hopforge demo`) gives just that.

    Parameters
    ----------
    found : Found
        Results.
    command : str
        Command that writes the page again.
    rows : int
        Rows of a table that are shown; fewer where the page would hold more than 30 000.
    """
    sets = _uncovered(found.sets)
    own = next((result.page for result in sets if result.folder == "." and result.page is not None), None)
    if own is not None and len(sets) == 1 and not found.problems:
        return own
    tables = sum(len(result.tables) for result in sets)
    shown = max(1, min(rows, max(10, _ROWS_IN_ALL // max(tables, 1))))
    first = glance(sets)
    sections = [*([] if first is None else [first]), _overview(found)]
    together = _together(found.sets)
    if together is not None:
        sections.append(together)
    budget = ViewBudget()
    for result in sets:
        sections += [_section(result, shown, budget)] if result.page is None else _own_sections(result)
    words = f"{_count(len(found.sets), 'result')}, {_count(tables, 'table')}"
    if found.problems:
        words += f"; {_count(len(found.problems), 'file')} could not be shown"
    return Report(f"hopforge: results in {found.name}", f"{words}.", sections, {"repeat": command})


def _own_sections(result: ResultSet) -> list[Section]:
    assert result.page is not None
    return [replace(section, title=f"{result.folder}: {section.title}") for section in result.page.sections]


def _uncovered(sets: list[ResultSet]) -> list[ResultSet]:
    """Return the results without those that the page of another folder shows."""
    covered = [name if result.folder == "." else f"{result.folder}/{name}" for result in sets for name in result.covers]
    return [
        result
        for result in sets
        if not any(result.folder == name or result.folder.startswith(f"{name}/") for name in covered)
    ]


def _count(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"


def _overview(found: Found) -> Section:
    rows = [
        [found.name if result.folder == "." else result.folder, result.kind,
         _text(result.config.get("name", result.metadata.get("name"))),
         _text(result.metadata.get("seed")), _headline(result), result.command or "not known"]
        for result in found.sets
    ]  # fmt: skip
    heads = [Column(name) for name in ("folder", "made by", "name", "seed", "found", "command")]
    items: list[Item] = [Table("All results", heads, rows)]
    if found.problems:
        items.append(
            Table(
                "Files that could not be shown",
                [Column("file"), Column("reason")],
                [[problem.path, problem.reason] for problem in found.problems],
            )
        )
    text = "Click a heading to sort."
    if any(len(table) > 1 for result in found.sets for table in result.tables.values()):
        text += " Plots zoom where you drag (on a phone with + and −); a click on a name hides its series."
    if found.others:
        kinds = ", ".join(f"{number} {ending}" for ending, number in found.others.items())
        text += f"\n\nOther files, not shown: {kinds}."
    if found.unlisted:
        names = ", ".join([*found.unlisted[:6], *(["…"] if len(found.unlisted) > 6 else [])])
        text += f"\n\nOf earlier runs, or not of hopforge, as metadata.json does not list them; not shown: {names}."
    return Section("Overview", text, (), items)


def _headline(result: ResultSet) -> str:
    """Return the figures that matter most, if the result has any that are known."""
    tables = sorted(result.tables.items(), key=lambda named: named[0] not in _MAIN)  # not the latency of acknowledges
    rows = [table.iloc[0].to_dict() for _, table in tables if len(table) == 1]
    totals = result.metadata.get("totals")
    for row in [totals] if isinstance(totals, dict) else rows:
        known = [key for key, _ in _MEASURES if _is_figure(row.get(key))]
        if row.get("saturated") and "latency" in known:  # it grows with the length of the run
            known.remove("latency")
        if row.get("lookups") == 0 and "hit_rate" in known:
            known.remove("hit_rate")
        words = [f"{name} {row[key]:.6g}" for key, name in _MEASURES if key in known]
        if words:
            return ", ".join(words)
    curve = result.tables.get("curve")
    if curve is not None and "accepted" in curve and len(curve) and curve["accepted"].dtype.kind in "iuf":
        return f"accepted at most {curve['accepted'].max():.4g}"
    return _came_out(result)


def _came_out(result: ResultSet) -> str:
    try:
        return ", ".join(f"{fact.label} {fact.value}" for fact in outcome(result))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):  # of another version, or edited
        return ""


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # noqa: PLR0124 - no nan


#: other words of a unit in names of columns
_ALSO = {
    "cycles": ("cycle",), "gbit/s": ("gbps",), "s": ("seconds",), "million packets per second": ("mpps",),
    "flits": ("flit",),
}  # fmt: skip


def _together(sets: list[ResultSet]) -> Section | None:
    """Return the sweeps in one plot and the single runs in one table; None with fewer than two of both."""
    items: list[Item] = []
    curves = [
        (result, result.tables["curve"]) for result in sets if {"load", "latency"} <= set(_columns(result, "curve"))
    ]
    if len(curves) > 1:
        parts = []
        for result, curve in curves:
            names = [result.folder] * len(curve)
            if "variant" in curve:
                names = [
                    " ".join((result.folder, str(v))) if str(v) not in ("", "nan") else result.folder
                    for v in curve["variant"]
                ]
            parts.append(curve.assign(variant=names))
        plot = explorer(
            "All sweeps",
            pd.concat(parts, ignore_index=True),
            _commands(result for result, _ in curves),
            "Saturated points have no latency.",
            _shared_units([result for result, _ in curves], "curve"),
        )
        items += [plot] if plot is not None else []
    for name in ("measurement", "program", "app"):
        rows = [(result, result.tables[name]) for result in sets if len(result.tables.get(name, ())) == 1]
        if len(rows) > 1:
            table = pd.concat([row.assign(result=result.folder) for result, row in rows], ignore_index=True)
            table = table[["result", *(column for column in table.columns if column != "result")]]
            units = _shared_units([result for result, _ in rows], name)
            commands = _commands(result for result, _ in rows)
            items.append(_table(f"All runs: {name}", table, len(table), "", commands, units))
    return Section("Side by side", "", (), items) if items else None


def _commands(results: Iterable[ResultSet]) -> str:
    return "; ".join(dict.fromkeys(result.command for result in results if result.command))


def _columns(result: ResultSet, name: str) -> list[str]:
    table = result.tables.get(name)
    return [] if table is None else [str(column) for column in table.columns]


def _section(result: ResultSet, rows: int, budget: ViewBudget) -> Section:
    kind = result.kind
    name = "results" if result.folder == "." else result.folder
    facts, items = _known(result)
    picture, why = report_view(result, budget)
    steps = kind == "trace"  # the picture is the result
    pictures = [
        Picture(f"{picture} (as the command drew it)", data, "", result.command, steps)
        for picture, data in sorted(result.pictures.items())
    ]
    items = [*([] if picture is None else [picture]), *items, *_generic(result, rows)]
    items = [*pictures, *items] if steps else [*items, *pictures]
    if result.config:
        text = yaml.safe_dump(_writable(result.config), sort_keys=False, allow_unicode=True, width=110)
        items.append(Listing("configuration, with all defaults", text))
    words = "\n\n".join(text for text in (_words(result), why) if text)
    return Section(f"{name} ({kind})" if kind != "tables" else name, words, facts, items)


def _words(result: ResultSet) -> str:
    """Return what is known about the run, for people."""
    paragraphs = []
    title, source = result.metadata.get("title"), result.metadata.get("source")
    if isinstance(title, str):
        paragraphs.append(f"{title} ({source})." if isinstance(source, str) else f"{title}.")
    assumptions = result.metadata.get("assumptions")
    if isinstance(assumptions, list) and assumptions:
        paragraphs.append("Assumed: " + "; ".join(str(words) for words in assumptions) + ".")
    if not result.command:
        paragraphs.append("No file here says which command made it.")
    versions = result.metadata.get("versions")
    if isinstance(versions, dict):
        paragraphs.append("With " + ", ".join(f"{name} {version}" for name, version in versions.items()) + ".")
    return "\n\n".join(paragraphs)


def _known(result: ResultSet) -> tuple[list[Fact], list[Item]]:
    """Return cards and plots of results that are shown in a way of their own."""
    if {"ports", "classes"} <= set(result.tables) and "totals" in result.metadata:
        try:
            run = _hit_run(result)
            label = result.folder if result.folder != "." else _text(result.config.get("name", "with cache"))
            sections = [
                section({label: run}, {label: result.command}) for section in (hit_section, consequence_section)
            ]
        except (KeyError, TypeError, ValueError):  # of another version: shown like any table
            return [], []
        return list(sections[0].facts), [item for one in sections for item in one.items if not isinstance(item, Table)]
    if has_timeline(result):
        try:
            return timeline_items(result)
        except (ArithmeticError, IndexError, KeyError, TypeError, ValueError):  # of another version
            return [], []
    chart = _comparison(result)
    return [], [chart] if chart is not None else []


def _hit_run(result: ResultSet) -> HitRun:
    metadata, config = result.metadata, result.config
    regular = config["topology"]["kind"] in REGULAR
    slot_bytes = int(config["timing"]["slot_bytes"])
    ports, classes = result.tables["ports"], result.tables["classes"]
    return HitRun(str(metadata["topology"]["name"]), regular, slot_bytes, metadata["totals"], classes, ports)


def _comparison(result: ResultSet) -> Figure | None:
    """Return the deviations from the paper's values; None if there are none."""
    if not {"quantity", "deviation_percent"} <= set(_columns(result, "comparison")):
        return None
    table = result.tables["comparison"]
    known = table[pd.to_numeric(table["deviation_percent"], errors="coerce").notna()]
    if known.empty:
        return None
    names = [f"{number}. {text}"[:60] for number, text in enumerate(known["quantity"].astype(str), start=1)]
    values = {"deviation": pd.to_numeric(known["deviation_percent"]).tolist()}
    whose = "the paper's values" if "paper" in table else "the reference"
    return bars(f"Deviation from {whose}", names, values, y="%", command=result.command)


def _generic(result: ResultSet, rows: int) -> Iterator[Item]:
    """Yield a plot and a table of every table, and the facts of the metadata."""
    for name, table in sorted(result.tables.items()):
        if name in DRAWN_ONLY or (name == TIMELINE and has_timeline(result)):
            continue
        units = _units(result, name)
        if len(table) == 1:
            values = [[_with_unit(str(column), units), *cells(table[column])] for column in table.columns]
            yield Table(name, [Column("quantity"), Column("value")], values, "", result.command)
            continue
        file = f"{result.folder}/{result.files[name]}".removeprefix("./")
        plot = plotted(name, table, result.command, units)
        if plot is not None:
            yield plot
        yield _table(name if plot is None else f"{name}, rows", table, rows, file, result.command, units)
    apart = (*_APART, "found") if any(len(table) == 1 for table in result.tables.values()) else _APART
    facts = list(_flat({key: value for key, value in result.metadata.items() if key not in apart}))
    if facts and {name for name, _ in facts} != {"seed"}:
        note = f"The first {_LONGEST_FACTS} of {len(facts)}." if len(facts) > _LONGEST_FACTS else ""
        yield Table("What the run wrote about itself", [Column("quantity"), Column("value")],
                    facts[:_LONGEST_FACTS], note, result.command)  # fmt: skip


def _units(result: ResultSet, name: str) -> dict[str, str]:
    """Return the units of a table's columns that the run wrote: not of shares, numbers of things, and `delay_ns`."""
    try:
        notes = result.metadata["columns"][name]
        units = {str(column): str(note["unit"]) for column, note in notes.items()}
        return {column: unit for column, unit in units.items() if unit not in ("", "1") and not _says(column, unit)}
    except (AttributeError, KeyError, TypeError):  # of another version, or edited
        return {}


def _says(column: str, unit: str) -> bool:
    """Tell whether a column's name is its unit or ends with it."""
    typed = unit.casefold().replace("µ", "u").replace("²", "2").replace("%", "percent")
    words = (typed, *_ALSO.get(typed, ()))
    return f"_{column.casefold()}".endswith(tuple(f"_{word}" for word in words))


def _shared_units(results: list[ResultSet], name: str) -> dict[str, str]:
    """Return the units of columns that are the same in all results."""
    first, *others = [_units(result, name) for result in results]
    return {column: unit for column, unit in first.items() if all(each.get(column) == unit for each in others)}


def _with_unit(column: str, units: Mapping[str, str]) -> str:
    return f"{column}, {units[column]}" if column in units else column


def _table(
    title: str, table: pd.DataFrame, rows: int, file: str = "", command: str = "",
    units: Mapping[str, str] | None = None,
) -> Table:  # fmt: skip
    """Return the first `rows` rows; the caption says what is left out."""
    note = ""
    if len(table) > rows:
        note = f"The first {rows} of {len(table)} rows; sorting and filtering see only these. All are in {file}."
    shown = table.iloc[:rows]
    columns = [cells(shown.iloc[:, number]) for number in range(table.shape[1])]
    heads = [Column(_with_unit(_text(name), units or {})) for name in table.columns]
    return Table(title, heads, list(zip(*columns, strict=True)), note, command)


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[list[Any]]:
    """Yield [name, value] of everything that is no list, nested names joined by points."""
    for key, value in values.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        elif isinstance(value, list):
            if value and len(value) <= 12 and not any(isinstance(one, list | dict) for one in value):
                yield [name, _text(", ".join(str(one) for one in value))]
        else:
            yield [name, value if isinstance(value, bool | int | float) or value is None else _text(value)]


def _text(value: Any) -> str:
    if value is None or value == "":
        return "–"
    text = str(value).encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= 200 else f"{text[:200]}…"


def _writable(value: Any) -> Any:
    """Return JSON data as plain objects for YAML."""
    if isinstance(value, Mapping):
        return {str(key): _writable(inner) for key, inner in value.items()}
    return [_writable(inner) for inner in value] if isinstance(value, list) else value

"""Every number that a report prints is one of the files beside it: read from the page and from the CSV alone."""

import csv
import json
import math
import re
import warnings
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import hopforge as hf
from hopforge import cli

NET = """\
name: small
topology: {kind: mesh, radices: [3, 3]}
router: {vcs: 2, buffer_flits: 4, route_computation: lookup}
lookup: {cache: {entries: 4, ways: 2}, tcam: {kind: external, latency_cycles: 25}}
workload: {kind: npb, benchmark: is, class: S, ranks: 8}
traffic: {packet_flits: 3}
simulation: {load: 0.1, warmup_cycles: 200, min_cycles: 1000, max_cycles: 2000, loads: [0.1, 0.9], series_bins: 9}
"""
NUMBER = re.compile(r"[−-]?\d[\d\u202f]*(?:\.\d+)?(?:e[+-]\d+)?")
#: numbers that a page makes of several: sizes of networks, knees between two loads
DERIVED = re.compile(r"known within 88\.9 %|routers|hosts|packages|\d[a-z]?[x×]\d")
#: commands and digests
WORDS = re.compile(r"hopforge|[0-9a-f]{16,}$")


class Page(HTMLParser):
    """Sections of a page: title → facts, and tables as (title, headings, rows of (text, data-value))."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.sections: dict[str, dict[str, list[Any]]] = {}
        self._open: list[str] = []
        self._words, self._heading, self._value = "", "", None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("h2", "h3", "th", "td", "b", "span", "script"):
            self._words, self._value = "", given.get("data-value")
        if tag == "div" and given.get("class") == "fact":
            self._section["facts"].append([])
        if tag == "table":
            self._section["tables"].append((self._heading, [], []))
        if tag == "tr":
            self._section["tables"][-1][2].append([])
        self._open.append(tag)

    @property
    def _section(self) -> dict[str, list[Any]]:
        return list(self.sections.values())[-1]

    def handle_data(self, data: str) -> None:
        self._words += data

    def handle_endtag(self, tag: str) -> None:
        words = self._words.strip()
        if tag == "h2":
            self.sections[words] = {"facts": [], "tables": []}
        elif tag == "h3":
            self._heading = words
        elif tag == "th":
            self._section["tables"][-1][1].append(words)
        elif tag == "td":
            self._section["tables"][-1][2][-1].append((words, self._value))
        elif tag in ("b", "span") and self.sections and self._section["facts"] and "div" in self._open:
            self._section["facts"][-1].append(words)


def shown(text: str) -> tuple[float, float]:
    """Return a printed number and half a unit of its last digit."""
    plain = text.replace("\u202f", "").replace("−", "-")
    digits, _, power = plain.partition("e")
    decimals = len(digits.partition(".")[2])
    return float(plain), 0.5 * 10.0 ** (int(power or 0) - decimals)


def agree(text: str, value: str) -> bool:
    """Tell whether a cell of the page and one of a CSV are the same: empty, words, whole, or to six digits."""
    try:
        number = float(value)
    except ValueError:
        return text == (value or "–")
    if not math.isfinite(number):
        return text == "–"
    if not NUMBER.fullmatch(text):
        return False
    printed, _ = shown(text)
    if number == 0 or number == int(number):
        return printed == number
    return abs(printed - number) <= 0.5 * 10.0 ** (math.floor(math.log10(abs(number))) - 5) * (1 + 1e-9)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Page, str]:
    folder = tmp_path_factory.mktemp("values")
    results, config = folder / "build", hf.loads(NET)
    plain = config.replace({"router.route_computation": "table"})
    with warnings.catch_warnings(action="ignore", category=hf.HopforgeWarning):  # sections of the other commands
        hf.simulate(config, progress=False).write(results / "cached")
        hf.simulate(plain, load=0.9, progress=False).write(results / "full")
        hf.sweep(config, workers=1, progress=False).write(results / "sweep")
        hf.series(plain, progress=False).write(results / "series")
        hf.hits(config, progress=False).write(results / "hits")
        hf.app(plain, progress=False).write(results / "app")
    done = CliRunner().invoke(cli.app, ["report", str(results), "-o", str(folder / "r.html")])
    assert done.exit_code == 0, done.output
    text = (folder / "r.html").read_text(encoding="utf-8")
    return results, Page(text), text


def rows_of(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(encoding="utf-8") as file:
        heads, *rows = csv.reader(file)
    return heads, rows


def files(folder: Path) -> dict[str, tuple[list[str], list[list[str]]]]:
    return {path.stem: rows_of(path) for path in folder.glob("*.csv")}


def test_every_cell_of_a_table_is_that_of_its_file(page: tuple[Path, Page, str]) -> None:
    results, read, _ = page
    compared = 0
    for name, section in read.sections.items():
        tables = files(results / name.partition(" ")[0]) if (results / name.partition(" ")[0]).is_dir() else {}
        for title, printed_heads, printed_rows in section["tables"]:
            heads_of_file, in_file = tables.get(title.removesuffix(", rows"), ([], []))
            if not heads_of_file:
                continue
            heads, rows = printed_heads, [row for row in printed_rows if row]
            if heads == ["quantity", "value"]:
                heads, rows = [head for (head, _), _ in rows], [[value for _, value in rows]]
            assert [head.partition(", ")[0] for head in heads] == heads_of_file, (name, title)
            assert len(rows) == min(len(in_file), 200), (name, title)
            for printed, stored in zip(rows, in_file, strict=False):
                for (text, value), cell, head in zip(printed, stored, heads_of_file, strict=True):
                    assert agree(text, cell), (name, title, head, text, cell)
                    assert value is None or float(value) == float(cell), (name, title, head, value, cell)
                    compared += 1
    assert compared > 500


def numbers(results: Path) -> set[float]:
    """Return all numbers of the files of one result, as they are, in per cent and per thousand."""
    found: set[float] = set()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            list(map(walk, value.values()))
        elif isinstance(value, list):
            list(map(walk, value))
        else:
            with_number(value)

    def with_number(value: Any) -> None:
        try:
            number = float(value)
        except (TypeError, ValueError):
            return
        if math.isfinite(number):
            found.update((number, 100 * number, number / 1000))

    for heads, rows in files(results).values():
        walk([*heads, *rows])
        place = heads.index("makespan_s") if "makespan_s" in heads else None
        times = [float(row[place]) for row in rows if place is not None and row[place]]
        walk([factor * time for time in times for factor in (1e3, 1e6, 1e9)])
    walk(json.loads((results / "metadata.json").read_text()))
    return found


def test_facts_and_the_tables_that_a_page_makes_itself_are_of_the_files(page: tuple[Path, Page, str]) -> None:
    """At a glance, overview, hit rates: every number is in some file or configuration, or says what it is made of."""
    results, read, _ = page
    everywhere = set().union(*(numbers(folder) for folder in results.iterdir() if folder.is_dir()))
    told = 0
    for name, section in read.sections.items():
        stored = files(results / name.partition(" ")[0]) if (results / name.partition(" ")[0]).is_dir() else {}
        own = [table for table in section["tables"] if table[0].removesuffix(", rows") not in stored]
        cells = [text for _, _, rows in own for row in rows for text, _ in row if not WORDS.match(text)]
        for words in (*(" ".join(fact) for fact in section["facts"]), *cells):
            for text in NUMBER.findall(words):
                value, half = shown(text)
                if not any(abs(value - one) <= half * (1 + 1e-9) for one in everywhere):
                    assert DERIVED.search(words), (name, words, text)
                told += 1
    assert told > 60


def test_plots_hold_the_numbers_of_the_files(page: tuple[Path, Page, str]) -> None:
    results, _, text = page
    plots = json.loads(re.search(r'<script type="application/json" id="figures">(.*?)</script>', text, re.DOTALL)[1])  # type: ignore[index]
    known = [
        {head: [row[k] for row in rows] for k, head in enumerate(heads)}
        for folder in results.iterdir() for heads, rows in files(folder).values()
    ]  # fmt: skip
    explorers = [plot for plot in plots if "columns" in plot]
    assert len(explorers) >= 5
    for plot in explorers:
        columns = plot["columns"]
        assert any(
            set(columns) <= set(table) and all(holds(values, table[head]) for head, values in columns.items())
            for table in known
        ), sorted(columns)


def holds(values: list[Any], cells: list[str]) -> bool:
    """Tell whether the values of a plot are the cells of a column; None is left out of the plot."""
    return len(values) == len(cells) and all(
        value is None or str(value) == cell or agree(str(value), cell)
        for value, cell in zip(values, cells, strict=True)
    )

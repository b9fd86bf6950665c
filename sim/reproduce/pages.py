"""The pages of results: Markdown from kept data, and from a fresh run of ``hopforge reproduce``.

``python -m hopforge.sim.reproduce.pages docs/results`` writes every page that ``data/pages.yml`` names. A section of a
page is one name in the folder of data:

- ``NAME.json`` and ``NAME.csv``: a reproduced figure, the ``metadata.json`` and ``comparison.csv`` of a run;
- ``NAME.csv``, perhaps with ``NAME.md``: a table with its heading and text;
- ``NAME.md`` alone: text.

A fresh run takes the same way: its section is made from the two files that it has just written.
"""

import csv
import json
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import yaml

from hopforge.model.errors import UserError
from hopforge.model.output.results import write_text
from hopforge.sim.reproduce.origins import ORIGINS_PAGE, origins_rows, read_origins, small_line
from hopforge.sim.reproduce.registry import Comparison

#: most characters of a line of prose and of a cell of a table
WIDTH = 120
#: a deviation in % that is but rounding of the last bits, and has no sign
ROUNDING = 1e-9

FIGURES_HEAD = """\
What the papers state beside what we measure. The papers' plots are lost: a dash means that their text states no value.
Deviation is (ours − paper)/paper, or from the bound that the paper states. Where there is none, the column says why:
kept (ours is within the bound), equal and from 0 (the paper's value is 0), no number (a claim in words), no value.
Each command also writes the data (CSV), the figure (PNG) and what is needed to repeat it (JSON).
"""

_PAGE_HEAD = """\
# {title}

This page is written by `make docs` from the files in [data](data/README.md): change these, not the page.
"""

#: where the table goes in the text of NAME.md; without it, at the end
_TABLE_MARK = "{table}"


# --- text


def format_value(value: float | None) -> str:
    """Four significant digits, or a dash for None."""
    if value is None:
        return "–"
    return (f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}").replace("-", "−")


def with_unit(value: float | None, unit: str) -> str:
    """`format_value` and the unit, if there are any."""
    return f"{format_value(value)} {unit}" if unit and value is not None else format_value(value)


def paper_text(comparison: Comparison) -> str:
    """Give the paper's wording where it states a bound, else its number with the unit."""
    return comparison.claim or with_unit(comparison.paper, comparison.unit)


def deviation_text(comparison: Comparison, percent: float | None) -> str:
    """Signed deviation in %, or why there is none."""
    if percent is None:
        percent = comparison.deviation_percent
    if percent is None:
        return comparison.no_deviation
    return f"{percent if abs(percent) > ROUNDING else 0.0:+.1f} %".replace("-", "−")


def cells(comparison: Comparison, deviation_percent: float | None) -> tuple[str, str, str, str, str]:
    """Quantity, paper, ours, deviation and assumption as texts."""
    ours = with_unit(comparison.ours, comparison.unit)
    deviation = deviation_text(comparison, deviation_percent)
    return comparison.quantity, paper_text(comparison), ours, deviation, comparison.assumption


def wrapped(text: str, first: str = "", others: str = "") -> str:
    """Wrap text to `WIDTH`, the first line after `first` and the others after `others`.

    Code in backquotes and links stay whole, and no line begins with what Markdown takes for a list or a heading.
    """
    kept = re.sub(r"`[^`]*`|\[[^]]*\]\([^)]*\)", lambda whole: whole[0].replace(" ", "\0"), text)
    kept = re.sub(r" (?=(?:[-+*#>|]+|\d+[.)])(?: |$))", "\0", kept)
    lines = textwrap.fill(
        kept, WIDTH, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )
    return lines.replace("\0", " ")


def bullets(texts: Iterable[str]) -> str:
    """Give a list with one item for each text."""
    return "".join(wrapped(text, "- ", "  ") + "\n" for text in texts)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Give a Markdown table, with numbered notes below it.

    What stands in a column `note`, and every cell of more than `WIDTH` characters, becomes a note; equal ones are one.
    A column `note` without any is left out.
    """
    notes: dict[str, int] = {}

    def shown(column: str, text: str) -> str:
        if column == "note":
            return str(notes.setdefault(text, len(notes) + 1)) if text else ""
        return f"note {notes.setdefault(text, len(notes) + 1)}" if len(text) > WIDTH else text

    kept = [k for k, column in enumerate(columns) if column != "note" or any(row[k] for row in rows)]
    body = [[shown(columns[k], row[k]).replace("|", r"\|") for k in kept] for row in rows]
    lines = [f"| {' | '.join(columns[k] for k in kept)} |", "|" + "---|" * len(kept)]
    lines += [f"| {' | '.join(row)} |" for row in body]
    text = "\n".join(lines) + "\n"
    if notes:
        numbered = (wrapped(note, f"{k}. ", " " * len(f"{k}. ")) for note, k in notes.items())
        text += "\nNotes\n\n" + "\n".join(numbered) + "\n"
    return text


# --- reproduced figures


def _number(text: str) -> float | None:
    return float(text) if text else None


def read_comparisons(path: Path) -> list[tuple[Comparison, float | None]]:
    """Comparisons of a ``comparison.csv``, each with its deviation in %."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            (
                Comparison(
                    row["quantity"],
                    row["unit"],
                    _number(row["paper"] if "paper" in row else row["reference"]),
                    _number(row["ours"]),
                    row["assumption"],
                    row["claim"],
                ),
                _number(row["deviation_percent"]),
            )
            for row in csv.DictReader(file)
        ]


def figure_section(metadata_path: Path, comparison_path: Path) -> str:
    """Heading, command, assumptions and table of one reproduced figure."""
    metadata = json.loads(metadata_path.read_text(encoding="utf-8"))
    source = metadata["source"][0].upper() + metadata["source"][1:]
    rows = [cells(*pair) for pair in read_comparisons(comparison_path)]
    parts = [
        f"## {metadata['name']}: {metadata['title']}\n",
        wrapped(f"{source}. `{' '.join(metadata['command'])}`") + "\n",
        bullets(metadata["assumptions"]),
        table(("quantity", metadata.get("reference", "paper"), "ours", "deviation", "assumption"), rows),
    ]
    return "\n".join(part for part in parts if part)


# --- pages from kept data


@dataclass(frozen=True)
class Page:
    """What ``pages.yml`` says of one page.

    Attributes
    ----------
    name
        File below the folder of results, without ``.md``.
    title, intro
        Heading, and text before the first section.
    sections
        Patterns of names in the folder of data, in the order of the page.
    headings
        Headings of sections that have no ``NAME.md``.
    """

    name: str
    title: str
    intro: str
    sections: tuple[str, ...]
    headings: Mapping[str, str]


def read_pages(path: Path) -> list[Page]:
    """Pages of a ``pages.yml``.

    Raises
    ------
    UserError
        A key that no page has, or one that is missing.
    """
    known = {"title", "intro", "sections", "headings"}
    pages = []
    for name, page in yaml.safe_load(path.read_text(encoding="utf-8")).items():
        if unknown := sorted(set(page) - known):
            raise UserError(f"{path}: {name}: unknown key {unknown[0]!r}; known: {', '.join(sorted(known))}")
        if missing := sorted({"title", "sections"} - set(page)):
            raise UserError(f"{path}: {name}: {missing[0]} is missing")
        pages.append(
            Page(name, page["title"], page.get("intro", ""), tuple(page["sections"]), page.get("headings", {}))
        )
    return pages


def _in_order(names: Iterable[str]) -> list[str]:
    # fig4.10 comes after fig4.9
    return sorted(names, key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)])


def data_names(folder: Path) -> list[str]:
    """Names of all sections for which there are data; ``*-notes.csv`` belong to the sections that they are about."""
    names = {
        path.name.removesuffix(path.suffix) for path in folder.iterdir() if path.suffix in (".csv", ".json", ".md")
    }
    return _in_order(name for name in names if name != "README" and not name.endswith("-notes"))


def read_notes(folder: Path, prefix: str) -> dict[str, list[str]]:
    """Remarks of ``PREFIX-notes.csv`` by the section that they are about, in the order of the file."""
    remarks: dict[str, list[str]] = {}
    path = folder / f"{prefix}-notes.csv"
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                remarks.setdefault(row["about"], []).append(row["note"])
    return remarks


def _table_section(folder: Path, name: str, heading: str, remarks: Sequence[str]) -> str:
    text_path, table_path = folder / f"{name}.md", folder / f"{name}.csv"
    text = text_path.read_text(encoding="utf-8").strip() if text_path.exists() else ""
    if text.startswith("# "):
        text = f"#{text}"
    elif not text.startswith("#") and heading:
        text = f"## {heading}\n\n{text}".strip()
    figures = ""
    if table_path.exists():
        with table_path.open(encoding="utf-8", newline="") as file:
            columns, *rows = csv.reader(file)
        for k, row in enumerate(rows, 2):
            if len(row) != len(columns):
                raise UserError(f"{table_path}:{k}: {len(row)} cells under {len(columns)} columns")
        figures = table(columns, rows)
    if _TABLE_MARK in text:
        return text.replace(_TABLE_MARK, figures.strip()) + "\n" + (f"\n{bullets(remarks)}" if remarks else "")
    return "\n".join(part for part in (text and f"{text}\n", bullets(remarks), figures) if part)


def page_text(page: Page, folder: Path) -> str:
    """Give the whole page, or "" if there are no data for it."""
    names = data_names(folder)
    chosen = dict.fromkeys(n for pattern in page.sections for n in names if fnmatchcase(n, pattern))
    if not chosen:
        return ""
    notes: dict[str, list[str]] = {}
    for prefix in dict.fromkeys(name.split("-")[0] for name in chosen):
        notes |= read_notes(folder, prefix)
    sections, origins = [], read_origins(folder)
    for name in chosen:
        if (folder / f"{name}.json").exists():
            section = figure_section(folder / f"{name}.json", folder / f"{name}.csv")
        else:
            section = _table_section(folder, name, page.headings.get(name, ""), notes.pop(name, []))
        sections.append(section + small_line(origins.get(name)))
    sections += [f"## {page.headings.get(about, about)}\n\n{bullets(texts)}" for about, texts in notes.items()]
    head = [_PAGE_HEAD.format(title=page.title)]
    if any((folder / f"{name}.json").exists() for name in chosen):
        head.append(FIGURES_HEAD)
    if page.intro:
        head.append(page.intro.strip() + "\n")
    return "\n".join([*head, *sections])


def results_pages(folder: Path) -> dict[str, str]:
    """Text of every page of the folder of results by its file name, from what lies in ``data``.

    Raises
    ------
    UserError
        Data that no page shows, or that two pages show.
    """
    data = folder / "data"
    pages = read_pages(data / "pages.yml")
    for name in data_names(data):
        shown = [page.name for page in pages if any(fnmatchcase(name, pattern) for pattern in page.sections)]
        if len(shown) != 1:
            raise UserError(f"{data / name}: shown by {' and '.join(shown) or 'no page'}; one page must show it")
    texts = {f"{page.name}.md": page_text(page, data) for page in pages}
    if origins := read_origins(data):
        texts["origins.md"] = ORIGINS_PAGE + "\n" + table(*origins_rows(origins))
    return {name: text for name, text in texts.items() if text}


# --- pages from a fresh run


def run_page(folders: Sequence[Path], command: str) -> str:
    """Page of the figures that a run has written to `folders`; it names the command that wrote it."""
    head = f"# Reproduced figures\n\nThis page is written by `{command}`.\n"
    sections = [figure_section(folder / "metadata.json", folder / "comparison.csv") for folder in folders]
    return "\n".join([head, FIGURES_HEAD, *sections])


def main(arguments: Sequence[str]) -> int:
    """Write the pages of the folder named on the command line."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m hopforge.sim.reproduce.pages FOLDER\n")
        return 2
    folder = Path(arguments[0])
    try:
        for name, text in results_pages(folder).items():
            write_text(folder / name, text)
    except (UserError, OSError) as error:
        sys.stderr.write(f"hopforge: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

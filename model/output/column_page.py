"""The page of all columns: ``python -m hopforge.model.output.column_page > docs/definitions/columns.md``."""

import sys
from collections.abc import Iterator

from hopforge.model.output.column_notes import ANY_TABLE, ColumnNote, all_notes

_HEAD = """\
# Columns of results

This page is written by `make docs` from `model/output/column_notes.csv`; change that file, not the page.

Every table lies in a folder of results as CSV and as Parquet ([results.md](results.md) says which command writes
which).
Units and meanings are in the files themselves:

- Parquet: `units` and `meanings` in the metadata of the schema (JSON); pandas reads them as `table.attrs["units"]`;
- CSV: `columns` in `metadata.json` beside it, by table and column.

A unit of 1 is a share or a factor. Without a unit a column is a number of things, a name, or a text. Where a run counts
in other units than this page says, its files say so (`series` of routers with times in ns). `NAME_median`, `NAME_p95`,
`NAME_p99`, `NAME_max`, `NAME_std`, `NAME_lowest` and `NAME_highest` are median, percentiles, largest value, standard
deviation, lowest and highest value of NAME.
"""


def text() -> str:
    """Return the page."""
    tables: dict[str, dict[str, ColumnNote]] = {}
    for (table, column), note in all_notes().items():
        tables.setdefault(table, {})[column] = note
    same: dict[tuple[tuple[str, ColumnNote], ...], list[str]] = {}
    for table, notes in tables.items():
        same.setdefault(tuple(notes.items()), []).append(table)
    parts = [_HEAD, *("\n".join(_section(names, dict(notes))) for notes, names in same.items())]
    return "\n".join(parts)


def _section(names: list[str], notes: dict[str, ColumnNote]) -> Iterator[str]:
    heading = ", ".join(f"`{name}`" for name in names)
    yield "## Columns of several tables" if names == [ANY_TABLE] else f"## {heading}"
    yield ""
    yield "| column | unit | meaning |"
    yield "|---|---|---|"
    for column, note in notes.items():
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in (f"`{column}`", note.unit, note.meaning)) + " |"
    yield ""


if __name__ == "__main__":
    sys.stdout.write(text().rstrip() + "\n")

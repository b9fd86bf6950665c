"""What the columns of results mean, and their units: `column_notes.csv`, a row for each column.

Parquet files carry them in their schema, ``metadata.json`` holds them for CSV, docs/definitions/columns.md lists them.
"""

import csv
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple

__all__ = ["ANY_TABLE", "ColumnNote", "all_notes", "column_notes"]

#: in place of the name of a table: any
ANY_TABLE = "*"
_SHARES = re.compile(r"(?P<of>.+)_(?P<what>median|p95|p99|max|std|lowest|highest)")
#: columns of a class of traffic begin with its name
_OF_CLASS = re.compile(r"[a-z][a-z0-9_]*_(offered|accepted|saturated|latency)")
_WORDS = {
    "median": "median", "p95": "smallest value that 95 % do not exceed", "p99": "the same for 99 %",
    "max": "largest value", "std": "standard deviation", "lowest": "lowest value", "highest": "highest value",
}  # fmt: skip


class ColumnNote(NamedTuple):
    """Unit (``1``: a share or factor; empty: a number of things, a name, a text) and meaning of a column."""

    unit: str
    meaning: str


@cache
def all_notes() -> dict[tuple[str, str], ColumnNote]:
    """Return the notes by table and column, in the order of the file."""
    file = resources.files("hopforge").joinpath("model", "output", "column_notes.csv")
    rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    return {(row["table"], row["column"]): ColumnNote(row["unit"], row["meaning"]) for row in rows}


def column_notes(
    table: str, columns: Iterable[str], units: Mapping[str, str] | None = None
) -> dict[str, ColumnNote]:
    """Return what is known of the columns of a table, in their order.

    `units` are those that are others in this run, by the column or by the unit that the note says.
    """
    others = units or {}
    found = {column: _note(table, column) for column in columns}
    return {
        column: note._replace(unit=others.get(column, others.get(note.unit, note.unit)))
        for column, note in found.items()
        if note is not None
    }


def _note(table: str, column: str) -> ColumnNote | None:
    known = all_notes()
    for place in (table, ANY_TABLE):
        if (place, column) in known:
            return known[place, column]
    numbered = (table, re.sub(r"_\d+$", "_N", column))
    if numbered in known:
        return known[numbered]
    of_class = _OF_CLASS.fullmatch(column)
    if of_class and (table, f"CLASS_{of_class[1]}") in known:
        return known[table, f"CLASS_{of_class[1]}"]
    if column.startswith("stream_") and (table, "stream_NAME") in known:
        return known[table, "stream_NAME"]
    share = _SHARES.fullmatch(column)
    of = _note(table, share["of"]) if share else None
    return None if share is None or of is None else ColumnNote(of.unit, f"{_WORDS[share['what']]} of {share['of']}")

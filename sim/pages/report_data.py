"""Pages as data: sections of a page in a JSON file, which `hopforge report` shows again, alone or with others."""

import base64
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hopforge.model.output.run_files import printable
from hopforge.sim.pages.report import (
    Column,
    Explorer,
    Fact,
    Figure,
    Item,
    Listing,
    NetworkView,
    Picture,
    Report,
    Section,
    Table,
    plain,
)

__all__ = ["PAGE_FILE", "page_from_data", "write_page_data"]

PAGE_FILE = "page.json"

_KINDS: dict[str, type[Item]] = {
    kind.__name__: kind for kind in (Table, Figure, Explorer, Picture, Listing, NetworkView)
}


def write_page_data(report: Report, path: Path, covers: Sequence[str]) -> None:
    """Write the page as JSON; numbers that are not finite become null.

    Parameters
    ----------
    report : Report
        The page.
    path : Path
        File.
    covers : sequence of str
        Folders beside the file whose results the page shows.
    """
    sections = [
        {
            "title": section.title,
            "text": section.text,
            "facts": [dataclasses.asdict(fact) for fact in section.facts],
            "items": [_item_data(item) for item in section.items],
        }
        for section in report.sections
    ]
    content = {
        "title": report.title,
        "summary": report.summary,
        "provenance": dict(report.provenance),
        "sections": sections,
        "covers": list(covers),
    }
    text = json.dumps(plain(content), ensure_ascii=False, allow_nan=False)
    path.write_text(printable(text) + "\n", encoding="utf-8")


def _item_data(item: Item) -> dict[str, Any]:
    values = {field.name: getattr(item, field.name) for field in dataclasses.fields(item)}
    if isinstance(item, Table):
        values["columns"] = [dataclasses.asdict(column) for column in item.columns]
    if isinstance(item, Picture):
        values["png"] = base64.b64encode(item.png).decode("ascii")
    return {"kind": type(item).__name__, **values}


def page_from_data(content: Any) -> tuple[Report, tuple[str, ...]]:
    """Return the page that `write_page_data` wrote, and the folders that it covers.

    Raises
    ------
    ValueError
        The content is that of no page, or of another version.
    """
    try:
        sections = [
            Section(
                _words(section["title"]),
                _words(section["text"]),
                [Fact(**{key: _words(value) for key, value in fact.items()}) for fact in section["facts"]],
                [_item(dict(item)) for item in section["items"]],
            )
            for section in content["sections"]
        ]
        provenance = {_words(key): _words(value) for key, value in content["provenance"].items()}
        covers = tuple(_words(name) for name in content["covers"])
        return Report(_words(content["title"]), _words(content["summary"]), sections, provenance), covers
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError("holds no page of this version of hopforge") from error


def _words(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"must be text, not {type(value).__name__}")
    return value


def _item(values: dict[str, Any]) -> Item:
    kind = _KINDS[values.pop("kind")]
    if kind is Table:
        values["columns"] = [Column(**column) for column in values["columns"]]
    if kind is Picture:
        values["png"] = base64.b64decode(values["png"], validate=True)
    if kind is Figure and not all(isinstance(trace, Mapping) for trace in values["traces"]):
        raise TypeError("traces must be objects")
    return kind(**values)

"""A function of Handle and getTag on a network: what `hopforge reduction` runs, shows and writes.

Definition: docs/definitions/handle-tag.md.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hopforge.model.lookup.handle_tag import HandleTagError, Port, ReductionFound, check_on
from hopforge.model.lookup.handle_tag_expression import Value
from hopforge.model.lookup.handle_tag_file import read_handle_tag
from hopforge.model.output.results import command_facts, package_versions, staged, write_metadata, write_tables

__all__ = ["ReductionCheck"]

_MOST_LINES = 40


class ReductionCheck:
    """A check of a function: prepared, then run, then shown and written.

    Parameters
    ----------
    path : Path
        Of the file.

    Raises
    ------
    ConfigError
        The file is no good.
    """

    unit = "switches"

    def __init__(self, path: Path) -> None:
        self.file = read_handle_tag(path)
        self.found: ReductionFound | None = None

    def run(self, progress: Callable[[int, int], None] = lambda done, total: None) -> ReductionFound:
        """Compute all tags and compare their ports.

        Raises
        ------
        ConfigError
            The network is too large, or an expression cannot be computed.
        """
        try:
            self.found = check_on(self.file.function, self.file.kind, self.file.k, progress)
        except HandleTagError as error:
            raise self.file.placed(error) from error
        return self.found

    @property
    def _done(self) -> ReductionFound:
        assert self.found is not None, "run comes first"
        return self.found

    def values(self) -> dict[str, Any]:
        """Return the figures."""
        found = self._done
        bad = found.bad
        return {
            "switches": found.table.shape[0], "destinations": found.table.shape[1], "tags": len(found.tags),
            "per_switch": found.per_switch, "ok": found.ok,
            "bad": None if bad is None else [[bad.level, bad.switch], bad.first, bad.second],
        }  # fmt: skip

    def rows(self) -> list[tuple[str, str]]:
        """Say what was checked, how many tags there are, and whether equal tags have equal ports."""
        found, values = self._done, self.values()
        radices = " x ".join(map(str, self.file.k))
        size = f"{values['switches']:,} switches, {values['destinations']:,} destinations"
        return [
            ("network", f"{self.file.kind} {radices}: {size}"),
            ("tags", f"{values['tags']:,} in all, at most {found.per_switch:,} on a switch"),
            ("ports", "equal tags have equal ports on every switch" if found.ok else self._conflict()),
        ]

    def _conflict(self) -> str:
        bad = self._done.bad
        assert bad is not None
        level = f" of level {bad.level}" if self.file.kind == "fattree" else ""
        ports = " and ".join(_words(port) for port in bad.ports)
        who = f"switch {bad.switch}{level}: destinations {bad.first} and {bad.second}"
        return f"{who} have tag {_words(bad.tag)}, ports {ports}"

    def lines(self) -> list[list[str]]:
        """Return headings and a line for each of the first tags."""
        found = self._done
        counts = np.bincount(found.table.ravel(), minlength=len(found.tags))
        shown = list(enumerate(found.tags))[:_MOST_LINES]
        lines = [[f"{number}", _words(tag), f"{counts[number]:,}"] for number, tag in shown]
        more = len(found.tags) - len(shown)
        return [["number", "tag", "pairs"], *lines, *([["", f"and {more:,} more", ""]] if more else [])]

    def write(self, folder: Path) -> None:
        """Write the table of tags and what the tags are, all or nothing."""
        found = self._done
        switches, destinations = found.table.shape
        levels, numbers = np.array(found.levels, np.int64).T
        table = {
            "level": np.repeat(levels, destinations), "switch": np.repeat(numbers, destinations),
            "destination": np.tile(np.arange(destinations), switches), "tag": found.table.ravel().astype(np.int64),
        }  # fmt: skip
        tags = {"number": np.arange(len(found.tags)), "value": np.array([_words(tag) for tag in found.tags])}
        function = self.file.function
        said = {
            "kind": self.file.kind, "k": list(self.file.k),
            "function": {name: getattr(function, name) for name in ("loop", "handle", "tag", "default")},
        }  # fmt: skip
        with staged(folder) as scratch:
            write_tables(scratch, {"reduction": table, "tags": tags})
            facts = {**command_facts(None), "versions": package_versions()}
            write_metadata(scratch, {"file": str(self.file.path), **facts, **said, "totals": self.values()})


def _words(value: Value | Port) -> str:
    """Return a tag or a port as people write it."""
    if isinstance(value, tuple):
        return f"({', '.join(_words(each) for each in value)}{',' if len(value) == 1 else ''})"  # type: ignore[arg-type]
    return str(value)

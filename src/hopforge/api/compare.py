"""Two results side by side: what `hopforge compare` shows."""

import os
import tempfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from hopforge.api.result import FileCall, Picture, Result, html_image, html_lines, html_rows, no_pickle, refuse_unknown
from hopforge.api.writing import forced
from hopforge.model.errors import UserError
from hopforge.model.output.results import said_command
from hopforge.sim.pages.compare import Comparison as Found
from hopforge.sim.pages.compare import Subject, compare_results, subject_at
from hopforge.sim.pages.compare_write import comparison_lines, comparison_rows, write_comparison

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "compare"]


class Comparison:
    """How two results differ; Jupyter shows it as a table and a plot."""

    def __init__(self, found: Found, words: str) -> None:
        self._found, self._words = found, words

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise no_pickle(type(self))

    @property
    def table(self) -> "pd.DataFrame":
        """A row for each figure: its two values, their difference, its 95 % interval, and the verdict."""
        return self._found.table

    @property
    def changed(self) -> Mapping[str, tuple[Any, Any]]:
        """Keys of the configuration that differ, with both values."""
        return self._found.changed

    @property
    def rows(self) -> list[tuple[str, str]]:
        """What the command shows above its table: subject and words."""
        return comparison_rows(self._found)

    @cached_property
    def _picture(self) -> Picture | None:
        with tempfile.TemporaryDirectory(prefix="hopforge-") as name:
            path = self.write(name) / "comparison.png"
            return Picture(path.stem, path.read_bytes()) if path.exists() else None

    def plot(self) -> Picture:
        """Return both results over the load.

        Raises
        ------
        UserError
            They have one load, or none.
        """
        if self._picture is None:
            refuse_unknown("picture", "", [])
        return self._picture

    def write(self, folder: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write table, plot and metadata to a folder, as the command does.

        Parameters
        ----------
        folder : str or Path
            Made if it is not there.
        force : bool
            Replace inputs and files of another kind, too.

        Raises
        ------
        UserError
            The files cannot be written.
        """
        with forced(force), said_command([self._words], "compare"):
            write_comparison(self._found, Path(folder))
        return Path(folder)

    def __repr__(self) -> str:
        """Return what the command shows."""
        lines = comparison_lines(self._found)
        width = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
        shown = ("  ".join(f"{cell:>{wide}}" for cell, wide in zip(line, width, strict=True)) for line in lines)
        return "\n".join([f"<{self._words}>", *(f"{subject}: {words}" for subject, words in self.rows), *shown])

    def _repr_html_(self) -> str:
        image = "" if self._picture is None else html_image(self._picture)
        return html_rows(self.rows) + html_lines(comparison_lines(self._found)) + image


def compare(first: Result | str | os.PathLike[str], second: Result | str | os.PathLike[str]) -> Comparison:
    """Compare two results, as ``hopforge compare``.

    Parameters
    ----------
    first, second : Result, str or Path
        Results of `simulate`, `sweep`, `app` or `hits`, or folders that hold one.

    Returns
    -------
    Comparison
        `table` has a row for each figure, `changed` what differs between the configurations.

    Raises
    ------
    UserError
        They have no figures in common, or a folder holds no result or several.
    """
    subjects = [_subject(name, each) for name, each in (("first", first), ("second", second))]
    given = ", ".join(each.name if isinstance(of, Result) else repr(each.name)
                      for each, of in zip(subjects, (first, second), strict=True))  # fmt: skip
    return Comparison(compare_results(*subjects), f"hopforge.compare({given})")


def _subject(name: str, given: Result | str | os.PathLike[str]) -> Subject:
    if isinstance(given, Result):
        if isinstance(given._call, FileCall):
            raise UserError(f"{name}: hopforge.{given._call.kind} gives nothing to compare")
        return Subject(given._call.words, given.tables, given._call.config.model_dump(mode="json"))
    if isinstance(given, (str, os.PathLike)):
        return subject_at(Path(given))
    raise TypeError(f"{name} must be a Result or a folder, not {type(given).__name__}")

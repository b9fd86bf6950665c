"""Find what runs of hopforge left below a folder: tables, metadata, pictures, and what could not be read."""

import json
import os
import re
import shlex
import stat
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd
import pyarrow as pa

from hopforge.model.errors import UserError
from hopforge.model.output.run_files import METADATA, json_text, kind_of_run, listed_files, printable
from hopforge.sim.pages.report import Report
from hopforge.sim.pages.report_data import PAGE_FILE, page_from_data

__all__ = [
    "LARGEST_FILE",
    "LARGEST_PICTURE",
    "Found",
    "Problem",
    "ResultSet",
    "check_folder",
    "find_results",
    "printable",
]

LARGEST_FILE = 256 << 20
"""Bytes of a table or JSON file that is still read."""

LARGEST_PICTURE = 8 << 20
"""Bytes of a picture that is still embedded."""

#: columns of names: in CSV, too, they are words, whatever they look like (`null`, `1e5`)
_NAMES = ("variant", "program", "job")
_METADATA = (METADATA, "mutation.json", "cosim.json", "synth.json")
_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Problem:
    """A file that could not be shown, and why."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclass
class ResultSet:
    """The results in one folder.

    Attributes
    ----------
    folder : str
        Path below the folder that was searched, ``.`` for itself.
    metadata : dict
        What the run wrote about itself; empty without a file of metadata.
    tables : dict of str to DataFrame
        Tables by file name without ending.
    files : dict of str to str
        Name of the file that each table was read from.
    pictures : dict of str to bytes
        PNG files by name.
    headless : dict of str to Path
        CSV files without headings, by name; they are not read.
    page : Report or None
        A page that the run wrote itself.
    covers : tuple of str
        Folders below this one whose results that page shows.
    files_of_run : frozenset of str, optional
        What the run has written, if its metadata list it: other files of the folder are of an earlier run.
    """

    folder: str
    metadata: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    pictures: dict[str, bytes] = field(default_factory=dict)
    headless: dict[str, Path] = field(default_factory=dict)
    page: Report | None = None
    covers: tuple[str, ...] = ()
    files_of_run: frozenset[str] | None = None

    @property
    def command(self) -> str:
        """What repeats the run, as typed in a shell or (one word) in Python; empty if the run did not write it."""
        words = self.metadata.get("command")
        if isinstance(words, str):
            return words
        if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
            return shlex.join(words) if len(words) > 1 else words[0]
        name = self.metadata.get("name")
        if isinstance(name, str) and "assumptions" in self.metadata:  # of a figure of a paper, before 0.2
            return f"hopforge reproduce {shlex.quote(name)} --seed {self.metadata.get('seed', 1)}"
        return ""

    @property
    def kind(self) -> str:
        """The command of hopforge that made it, such as ``sweep`` or ``bench net``; ``tables`` if that is not known."""
        return kind_of_run(self.metadata | {"command": self.command}) or "tables"

    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration of the run; empty if it did not write one."""
        config = self.metadata.get("config")
        return config if isinstance(config, dict) else {}


@dataclass(frozen=True)
class Found:
    """Everything below a folder.

    Attributes
    ----------
    name : str
        Name of the folder.
    sets : list of ResultSet
        Results by folder, sorted.
    problems : list of Problem
        Files that look like results and could not be read.
    others : dict of str to int
        Number of files that are no results, by ending.
    unlisted : list of str
        Tables and pictures that the metadata beside them do not list: of an earlier run, or not of hopforge.
    """

    name: str
    sets: list[ResultSet]
    problems: list[Problem]
    others: dict[str, int]
    unlisted: list[str]


def find_results(folder: Path, ignore: Path | None = None, progress: Callable[[int, int], None] | None = None) -> Found:
    """Read all results below `folder`, in an order that does not depend on the file system.

    Folders that are links and hidden files and folders are not entered.

    Parameters
    ----------
    folder : Path
        Where to look.
    ignore : Path, optional
        A file that is no result: the page itself.
    progress : callable, optional
        Called with (files done, files in all).

    Raises
    ------
    UserError
        There is no such folder, or it cannot be listed.
    """
    check_folder(folder)
    problems: list[Problem] = []
    paths = [path for path in _walk(folder, problems) if not _same(path, ignore)]
    sets: dict[str, ResultSet] = {}
    others: dict[str, int] = {}
    unlisted: list[str] = []
    for number, path in enumerate(paths):
        if progress is not None:
            progress(number, len(paths))
        place = _place(path.parent, folder)
        target = sets.get(place) or ResultSet(place)
        if _is_unlisted(path, target):
            unlisted.append(_place(path, folder))
            continue
        try:
            taken = _read(path, target)
        except (OSError, ValueError, RecursionError, MemoryError, pa.ArrowException, Warning) as error:
            problems.append(Problem(_place(path, folder), _reason(error)))
            continue
        if taken:
            sets[place] = target
        else:
            ending = path.suffix.lower() or "without ending"
            others[ending] = others.get(ending, 0) + 1
    ordered = [sets[place] for place in sorted(sets, key=_natural)]
    problems.sort(key=lambda problem: _natural(problem.path))
    return Found(printable(folder.resolve().name) or "/", ordered, problems, dict(sorted(others.items())), unlisted)


def check_folder(folder: Path) -> None:
    """Raise UserError if there is no such folder."""
    if not folder.is_dir():
        raise UserError(f"{folder}: {'is no folder' if folder.exists() else 'no such folder'}")


def _same(path: Path, other: Path | None) -> bool:
    return other is not None and path.name == other.name and path.resolve() == other.resolve()


def _place(path: Path, folder: Path) -> str:
    return printable(PurePosixPath(path.relative_to(folder)).as_posix())


def _natural(text: str) -> list[tuple[int, int, str]]:
    """Return what sorts by whole numbers where there are any: case2 before case10."""
    parts = re.split(r"([0-9]{1,18})", text)
    return [(0, int(part), "") if number % 2 else (1, 0, part) for number, part in enumerate(parts)]


def _walk(folder: Path, problems: list[Problem]) -> Iterator[Path]:
    """Yield the files below `folder`: metadata first, a table's CSV after its Parquet, which is exact."""

    def failed(error: OSError) -> None:
        if Path(error.filename) == folder:
            raise UserError(f"{folder}: {error.strerror}") from error
        problems.append(Problem(_place(Path(error.filename), folder), _reason(error)))

    for root, folders, names in os.walk(folder, onerror=failed):
        here = Path(root)
        links = [name for name in folders if (here / name).is_symlink() and not name.startswith(".")]
        problems += [Problem(_place(here / name, folder), "a link to a folder, not followed") for name in links]
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in links)
        visible = [name for name in names if not name.startswith(".")]
        yield from (here / name for name in sorted(visible, key=_turn))


def _turn(name: str) -> tuple[bool, bool, str]:
    return name not in _METADATA, not name.endswith(".parquet"), name


def _is_unlisted(path: Path, target: ResultSet) -> bool:
    """Tell whether a table, picture or page is not of the run that wrote the metadata beside it."""
    known = path.name == PAGE_FILE or path.suffix.lower() in (".csv", ".parquet", ".png")
    return known and target.files_of_run is not None and printable(path.name) not in target.files_of_run


def _read(path: Path, target: ResultSet) -> bool:
    """Add the file to `target`; False for a file that is no result."""
    ending, name = path.suffix.lower(), printable(path.stem)
    if ending not in (".csv", ".parquet", ".png") and path.name not in (*_METADATA, PAGE_FILE):
        return False
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("is no file")
    largest = LARGEST_PICTURE if ending == ".png" else LARGEST_FILE
    if status.st_size > largest:
        raise ValueError(f"has {status.st_size >> 20} MiB; not more than {largest >> 20} are read")
    if ending == ".png":
        target.pictures[printable(path.name)] = _picture(path)
        return True
    if ending == ".json":
        content = _read_json(path)
        if path.name == PAGE_FILE:
            target.page, target.covers = page_from_data(content)
        else:
            names, before = listed_files(content), target.files_of_run
            if target.metadata:  # of another command: `cosim`, `synth` and `mutate` list none
                names = None if names is None or before is None else names | before
            target.files_of_run = names
            target.metadata |= content
        return True
    if name in target.tables:
        return True  # the same table, read from Parquet
    table = pd.read_parquet(path) if ending == ".parquet" else _read_csv(path)
    if table is None:
        target.headless[printable(path.name)] = path
        return False
    target.tables[name], target.files[name] = table, printable(path.name)
    return True


def _picture(path: Path) -> bytes:
    data = path.read_bytes()
    if not data.startswith(_PNG) or b"IEND" not in data[-16:]:
        raise ValueError("is no complete PNG picture")
    return data


def _read_json(path: Path) -> dict[str, Any]:
    content = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(content, dict):
        raise ValueError(f"must hold an object, not {type(content).__name__}")
    read: dict[str, Any] = json.loads(json_text(content))  # without what is no character
    return read


def _read_csv(path: Path) -> pd.DataFrame | None:
    """Return the table; None for one without headings, which is data for another program."""
    headings = pd.read_csv(path, nrows=0, index_col=False, encoding="utf-8-sig").columns
    if all(re.fullmatch(r"-?[0-9.]+", str(name)) for name in headings):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as data beyond the last heading
        table = pd.read_csv(path, low_memory=False, index_col=False, encoding="utf-8-sig")
        if names := [name for name in headings if name in _NAMES]:
            words = pd.read_csv(path, usecols=names, dtype=str, keep_default_na=False, encoding="utf-8-sig")
            table[names] = words.where(words != "")
    return table


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error).split("\n")[0]
    if isinstance(error, UnicodeDecodeError):
        return "is no UTF-8 text"
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    if isinstance(error, MemoryError):
        return "not enough memory"
    words = printable(str(error)).strip().split("\n")[0]
    if columns := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", words):  # of pandas' reader
        return f"line {columns[2]} has {columns[3]} columns, not {columns[1]}"
    return words[:200] or type(error).__name__

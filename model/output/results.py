"""Results on disk: tidy tables as CSV and Parquet, metadata as JSON, all or nothing."""

import contextlib
import errno
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import hopforge
from hopforge.model.output.column_notes import column_notes
from hopforge.model.output.columns import (
    Columns,
    holds_whole_numbers,
    notes_of_file,
    write_csv,
    write_frame,
    write_parquet,
)
from hopforge.model.output.destination import ResultError, check_destination, kind_at, made, one_file, put
from hopforge.model.output.program_digest import program_digest
from hopforge.model.output.run_files import json_text, list_files, printable, remove_files, stale_files

try:
    import fcntl
except ImportError:  # Windows: names are replaced whole all the same
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import pandas as pd

Table: TypeAlias = "pd.DataFrame | Columns"

#: columns that tell how long a computation took: no two runs agree, so they stand in a table of their own
MEASURED = frozenset(["cpu_seconds"])
#: columns that name a row of that table
_NAMING = ("variant", "load", "seed", "program", "engine", "backend")

_PACKAGES = ("numpy", "numba", "pandas", "pyarrow", "matplotlib", "pydantic")


class Configuration(Protocol):
    """What is noted of a checked configuration."""

    seed: int

    @property
    def unused(self) -> Sequence[str]:
        """Sections of the file that the command does not use."""
        ...

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        """Return all keys, defaults written out."""
        ...


@contextlib.contextmanager
def locked(folder: Path, *, wait: bool) -> Iterator[bool]:
    """Be the only process in this block for a folder, where its file system can tell; the lock ends with the process.

    Yields
    ------
    bool
        Whether the file system can tell.

    Raises
    ------
    ResultError
        Another process is there, and `wait` is false.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        known = fcntl is not None
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise ResultError(
                f"{folder}: another hopforge is at work here; wait for its end, or name another folder (--output)"
            ) from None
        except OSError:
            known = False
        yield known
    finally:
        os.close(handle)


@contextlib.contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Collect files in a hidden folder and move them to `folder` when the block ends well.

    ``metadata.json`` then lists them; what it listed before, of the same command, and this block does not write goes
    (`model.output.run_files`). If anything fails, `folder` is as before: nothing half-written, no folder that was not
    there.

    Yields
    ------
    Path
        Where the block writes; names (also of subfolders) stay.

    Raises
    ------
    ResultError
        The folder cannot be made or written, the disk is full, or a file would replace an input or one of another kind
        (`model.output.destination`).
    """
    target = Path(folder)
    scratch: Path | None = None
    try:
        with made(target):
            try:
                with contextlib.ExitStack() as held:
                    with locked(target, wait=True):
                        _forget_unfinished(target)
                        scratch = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=target))
                        held.enter_context(locked(scratch, wait=False))
                    yield scratch
                    with locked(target, wait=True):  # the files of two commands do not mix
                        _move(scratch, target)
            finally:
                if scratch is not None:
                    shutil.rmtree(scratch, ignore_errors=True)
    except OSError as error:
        raise ResultError(f"{target}: cannot write results: {error.strerror or error}") from error


def _move(scratch: Path, target: Path) -> None:
    list_files(scratch)
    stale = stale_files(scratch, target)
    moves = [(source, target / source.relative_to(scratch)) for source in sorted(scratch.rglob("*"))]
    for source, place in moves:  # before the first one moves
        if place.exists() and place.is_dir() != source.is_dir():
            is_what = "is no folder" if source.is_dir() else "is a folder"
            raise FileExistsError(errno.EEXIST, f"{place.name} {is_what}")
        if source.is_file():
            check_destination(place, kind_at(source))
    for source, place in moves:
        if source.is_dir():
            place.mkdir(exist_ok=True)
        else:
            put(source, place)
    remove_files(stale)


def _forget_unfinished(target: Path) -> None:
    """Remove what commands that were killed have left; those that still run hold a lock."""
    for left in target.glob(".unfinished-*"):
        with contextlib.suppress(ResultError, OSError), locked(left, wait=False) as known:
            if known:
                shutil.rmtree(left, ignore_errors=True)


def forget_parts(folder: Path) -> None:
    """Remove half a file that a killed command has left in a folder of our own; its lock is held."""
    for part in folder.glob(".*.part"):
        part.unlink()


class _UndoError(Exception):
    """Leaves `staged` without a trace."""


def check_writable(folder: Path) -> None:
    """Find out before a long run whether its results can be written; leaves nothing behind.

    Raises
    ------
    ResultError
        They cannot.
    """
    with contextlib.suppress(_UndoError), staged(folder):
        raise _UndoError


def write_text(path: Path, text: str, kind: str | None = None) -> None:
    """Write a file whole or not at all, making its folder if need be; a pipe or a device is written to.

    Parameters
    ----------
    path : Path
        Of the file.
    text : str
        What is written, in UTF-8.
    kind : str, optional
        What the text is, if the user named this very file (`model.output.destination.kind_of`).

    Raises
    ------
    ResultError
        It cannot be written, or would replace an input or a file of another kind.
    """
    with one_file(path, kind) as part:
        part.write_text(printable(text), encoding="utf-8")


def write_own(path: Path, text: str) -> None:
    """Write a file in a folder of our own; a folder of that name is renamed, a pipe or a link to nowhere removed."""
    if path.is_dir() and not path.is_symlink():
        number = 1
        while os.path.lexists(aside := path.with_name(f"{path.name}.damaged{number}")):
            number += 1
        path.rename(aside)
    elif os.path.lexists(path) and not path.is_file():
        path.unlink()
    write_text(path, text)


def write_tables(folder: Path, tables: Mapping[str, Table], units: Mapping[str, str] | None = None) -> None:
    """Write each table as NAME.csv and NAME.parquet (floats in full precision in both).

    Columns of measured times (`MEASURED`) go to the table ``times``, with what names their row. The schema of Parquet
    says unit and meaning of each column; `write_metadata`, called afterwards, says it for CSV.

    Parameters
    ----------
    folder : Path
        For the files.
    tables : dict of str to table
        By name.
    units : dict of str to str, optional
        Units that are others in this run than `model.output.column_notes` says, by column or by that unit.
    """
    for name, table in _times_apart(tables).items():
        notes = column_notes(name, map(str, table), units)
        if isinstance(table, Mapping):
            write_csv(table, folder / f"{name}.csv")
            write_parquet(table, folder / f"{name}.parquet", notes)
            continue
        frame = _with_whole_numbers(table)
        frame.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
        write_frame(frame, folder / f"{name}.parquet", notes)


def _with_whole_numbers(table: "pd.DataFrame") -> "pd.DataFrame":
    """Give columns of whole numbers with gaps the type of whole numbers."""
    whole = [name for name in table if holds_whole_numbers(str(name), table[name].to_numpy())]
    return table.astype(dict.fromkeys(whole, "Int64")) if whole else table


def _times_apart(tables: Mapping[str, Table]) -> dict[str, Table]:
    found: dict[str, Table] = {}
    for name, table in tables.items():
        columns = [str(column) for column in table]
        times = [column for column in columns if column in MEASURED]
        if times:
            found["times"] = _columns(table, [*(column for column in columns if column in _NAMING), *times])
        found[name] = _columns(table, [column for column in columns if column not in MEASURED]) if times else table
    return found


def _columns(table: Table, names: list[str]) -> Table:
    return {name: table[name] for name in names} if isinstance(table, Mapping) else table[names]


def write_metadata(folder: Path, metadata: Mapping[str, Any], name: str = "metadata") -> None:
    """Write NAME.json, keys in the given order; last, what the columns of the CSV files beside it mean."""
    columns = _columns_beside(folder)
    metadata = {**metadata, **({"columns": columns} if columns else {})}
    text = json_text(metadata, _plain)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def _columns_beside(folder: Path) -> dict[str, dict[str, dict[str, str]]]:
    """Return unit and meaning of the columns of each CSV file."""
    found = {}
    for path in sorted(folder.glob("*.csv")):
        notes = notes_of_file(path.with_suffix(".parquet"))
        if notes:
            found[path.stem] = {name: note._asdict() for name, note in notes.items()}
    return found


#: what the present block is; every thread has its own
_said: ContextVar[tuple[list[str], str] | None] = ContextVar("said", default=None)


@contextlib.contextmanager
def said_command(words: Sequence[str], kind: str) -> Iterator[None]:
    """Let results of this block say that `words` made them, not the command line of the process.

    Parameters
    ----------
    words : sequence of str
        What makes them again.
    kind : str
        Command of hopforge that writes the same files.
    """
    token = _said.set((list(words), kind))
    try:
        yield
    finally:
        _said.reset(token)


def command_facts(command: Sequence[str] | None = None) -> dict[str, Any]:
    """Return what metadata say of the command, by default the one of this process; of an expression also its kind."""
    said = _said.get()
    if command is None and said is not None:
        return {"command": list(said[0]), "kind": said[1]}
    return {"command": command_words() if command is None else list(command)}


def command_words() -> list[str]:
    """Return the command line of this process, its program as a bare name, or what `said_command` says."""
    said = _said.get()
    if said is not None:
        return list(said[0])
    program = Path(sys.argv[0])
    name = "hopforge" if program.stem in ("__main__", "hopforge") else program.name  # python -m hopforge
    return [name, *sys.argv[1:]]


def run_metadata(
    config: Configuration, command: Sequence[str] | None = None, *, seed: int | None = None
) -> dict[str, Any]:
    """Return what is needed to repeat a run: command, seed, versions and the whole configuration.

    Parameters
    ----------
    config : Configuration
        Checked configuration; defaults are written out.
    command : sequence of str, optional
        By default the command line of this process, its program as a bare name.
    seed : int, optional
        Of the run, where it is not the one of the configuration (``--seed``).
    """
    return {
        **command_facts(command),
        "seed": config.seed if seed is None else seed,
        "versions": {"python": platform.python_version(), **package_versions()},
        "program_digest": program_digest(),
        **({"not_used": list(config.unused)} if config.unused else {}),
        "config": config.model_dump(mode="json"),
    }


def package_versions() -> dict[str, str]:
    """Return the versions of hopforge and of the packages that compute and write results."""
    return {"hopforge": hopforge.__version__, **{name: _version(name) for name in _PACKAGES}}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "item"):
        return value.item()
    return str(value)

"""Results on disk: tidy tables as CSV and Parquet, metadata as JSON, all or nothing."""

import contextlib
import errno
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import hopforge
from hopforge.model.errors import UserError
from hopforge.model.output.columns import Columns, write_csv, write_parquet
from hopforge.model.output.program_digest import program_digest

if TYPE_CHECKING:
    import pandas as pd

Table: TypeAlias = "pd.DataFrame | Columns"

_PACKAGES = ("numpy", "numba", "pandas", "pyarrow", "matplotlib", "pydantic")


class Configuration(Protocol):
    """What is noted of a checked configuration."""

    seed: int

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        """Return all keys, defaults written out."""
        ...


class ResultError(UserError):
    """Results that could not be written: names the folder and the reason."""


@contextlib.contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Collect files in a hidden folder and move them to `folder` when the block ends well.

    If anything fails, `folder` is as before: nothing half-written, no folder that was not there.

    Yields
    ------
    Path
        Where the block writes; names (also of subfolders) stay.

    Raises
    ------
    ResultError
        The folder cannot be made or written, or the disk is full.
    """
    target = Path(folder)
    made: list[Path] = []
    scratch: Path | None = None
    try:
        for part in [*reversed(target.parents), target]:
            if not part.exists():
                part.mkdir()
                made.append(part)
        scratch = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=target))
        yield scratch
        moves = [(source, target / source.relative_to(scratch)) for source in sorted(scratch.rglob("*"))]
        for source, place in moves:  # before the first one moves
            if place.exists() and place.is_dir() != source.is_dir():
                raise FileExistsError(errno.EEXIST, f"{place.name} is {'no' if source.is_dir() else 'a'} folder")
        for source, place in moves:
            if source.is_dir():
                place.mkdir(exist_ok=True)
            else:
                source.replace(place)
        made.clear()
    except OSError as error:
        raise ResultError(f"{target}: cannot write results: {error.strerror or error}") from error
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
        for part in reversed(made):
            with contextlib.suppress(OSError):
                part.rmdir()


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


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all, making its folder if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_tables(folder: Path, tables: Mapping[str, Table]) -> None:
    """Write each table as NAME.csv and NAME.parquet (floats in full precision in both)."""
    for name, table in tables.items():
        if isinstance(table, Mapping):
            write_csv(table, folder / f"{name}.csv")
            write_parquet(table, folder / f"{name}.parquet")
            continue
        table.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
        table.to_parquet(folder / f"{name}.parquet", index=False)


def write_metadata(folder: Path, metadata: Mapping[str, Any], name: str = "metadata") -> None:
    """Write NAME.json, keys in the given order."""
    text = json.dumps(metadata, indent=2, ensure_ascii=False, default=_plain)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def command_words() -> list[str]:
    """Return the command line of this process, its program as a bare name."""
    program = Path(sys.argv[0])
    name = "hopforge" if program.stem in ("__main__", "hopforge") else program.name  # python -m hopforge
    return [name, *sys.argv[1:]]


def run_metadata(config: Configuration, command: Sequence[str] | None = None) -> dict[str, Any]:
    """Return what is needed to repeat a run: command, seed, versions and the whole configuration.

    Parameters
    ----------
    config : Configuration
        Checked configuration; defaults are written out.
    command : sequence of str, optional
        By default the command line of this process, its program as a bare name.
    """
    return {
        "command": command_words() if command is None else list(command),
        "seed": config.seed,
        "versions": {"python": platform.python_version(), **package_versions()},
        "program_digest": program_digest(),
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

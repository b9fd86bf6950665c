"""What a run found: its figures, tables and pictures, the same that the command of its name writes."""

import base64
import contextlib
import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

from hopforge.api.configuration import Configuration
from hopforge.api.errors import placed, warn
from hopforge.api.writing import forced, writing
from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.output.destination import one_file
from hopforge.model.output.results import check_writable, said_command
from hopforge.model.output.run_files import kind_of_run
from hopforge.sim.start.preparation import for_command

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Call",
    "FileCall",
    "Found",
    "Picture",
    "Result",
    "called",
    "check_folder",
    "file_call",
    "forced",
    "html_image",
    "html_lines",
    "html_rows",
    "no_pickle",
    "refuse_unknown",
]


class Found(Protocol):
    """What a command found, and how it writes it."""

    def values(self) -> dict[str, Any]:
        """Return what was measured, by name."""

    def rows(self) -> list[tuple[str, str]]:
        """Return what the command shows: subject and words."""

    def write(self, folder: Path, *, plots: bool = False) -> None:
        """Write tables and metadata, with `plots` also pictures of what the tables hold."""


class Call(NamedTuple):
    """A call of a function of this room.

    Attributes
    ----------
    configuration : Configuration
        As it was given.
    config : Config
        As the command uses it.
    words : str
        The Python expression that makes the result again: ``metadata.json`` names it as the command.
    kind : str
        Command that writes the same files.
    """

    configuration: Configuration
    config: Config
    words: str
    kind: str

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Let errors of the block name file, line and key, and its files the expression that made them."""
        with placed(self.configuration._name, self.configuration._source), said_command([self.words], self.kind):
            yield


@contextlib.contextmanager
def called(configuration: Configuration, command: str, function: str, **options: Any) -> Iterator[Call]:
    """Yield what a function of this room works with; afterwards warn of sections that play no part.

    Parameters
    ----------
    configuration : Configuration
        What is run.
    command : str
        A name of `sim.start.preparation.COMMANDS`.
    function : str
        Its public name.
    **options
        Its arguments, left out where they are None.
    """
    given = "".join(f", {name}={value!r}" for name, value in options.items() if value is not None)
    with placed(configuration._name, configuration._source):
        used = for_command(command, configuration._config)
    kind = kind_of_run({"command": ["hopforge", *command.split()]}) or command
    call = Call(configuration, used, f"hopforge.{function}({configuration!r}{given})", kind)
    with call.named():
        yield call
    if call.config.unused:
        warn(f"hopforge {command} does not use {', '.join(call.config.unused)}")


class FileCall(NamedTuple):
    """A call of a function of this room that reads no configuration.

    Attributes
    ----------
    name : str
        Of the file that it reads, for errors.
    words, kind : str
        As of `Call`.
    """

    name: str
    words: str
    kind: str

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """As `Call.named`."""
        with placed(self.name, None), said_command([self.words], self.kind):
            yield


def file_call(function: str, file: "str | os.PathLike[str] | None", **options: Any) -> FileCall:
    """Return the call of a function with a file, or without.

    Parameters
    ----------
    function : str
        Its public name, which is that of the command.
    file : str or Path, optional
        What it reads.
    **options
        Its other arguments, left out where they are None.
    """
    given = [] if file is None else [repr(os.fspath(file))]
    given += [f"{name}={value!r}" for name, value in options.items() if value is not None]
    return FileCall("" if file is None else os.fspath(file), f"hopforge.{function}({', '.join(given)})", function)


class _Files(NamedTuple):
    tables: dict[str, "pd.DataFrame"]
    pictures: dict[str, "Picture"]


class Picture:
    """A plot as PNG; Jupyter shows it."""

    def __init__(self, name: str, png: bytes) -> None:
        self._name, self._png = name, png

    @property
    def name(self) -> str:
        """What the command calls the file, without its ending."""
        return self._name

    @property
    def png(self) -> bytes:
        """The bytes of the file."""
        return self._png

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write it to a file.

        Parameters
        ----------
        path : str or Path
            Of the file.
        force : bool
            Replace an input or a file of another kind, too.

        Raises
        ------
        UserError
            The file cannot be written, or would replace an input or a file of another kind and `force` is false.
        """
        if not force and Path(path).suffix.lower() not in ("", ".png"):
            raise UserError(f"{path}: a picture is PNG; end the name in .png, or say force=True")
        with writing(Path(path), force), one_file(Path(path), "a PNG picture") as part:
            part.write_bytes(self._png)
        return Path(path)

    def __repr__(self) -> str:
        """Say what it is, where pictures cannot be shown."""
        return f"<picture {self._name}, {len(self._png):,} bytes: save(path) writes it>"

    def _repr_png_(self) -> bytes:
        return self._png


def no_pickle(kind: type) -> TypeError:
    """Return the error of a result that is pickled, as a pool of processes does: it holds compiled functions."""
    parts = "its table or dict(result.values)" if hasattr(kind, "values") else "its table"
    name = kind.__name__.removeprefix("_")
    return TypeError(f"{name} cannot be pickled or copied: return {parts}, or write it to a folder with write()")


class Result:
    """What a run found; Jupyter shows it as a table and a plot.

    ``result["NAME"]`` is what was measured under this name, `values` all of it.
    """

    def __init__(
        self, call: Call | FileCall, found: Found, *, tables: tuple[str, ...], picture: tuple[str, ...] = ()
    ) -> None:
        self._call, self._found = call, found
        self._first_tables, self._first_pictures = tables, picture

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise no_pickle(type(self))

    @property
    def configuration(self) -> Configuration:
        """What was run.

        Raises
        ------
        UserError
            It was no configuration, as of `rules` and `jobs`.
        """
        if isinstance(self._call, FileCall):
            raise UserError("this result has no configuration")
        return self._call.configuration

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """What was measured, by the names that the columns of `table` have."""
        return MappingProxyType(self._found.values())

    @property
    def rows(self) -> list[tuple[str, str]]:
        """What the command shows on the terminal: subject and words."""
        return self._found.rows()

    @cached_property
    def tables(self) -> Mapping[str, "pd.DataFrame"]:
        """All tables that the command writes, by their names."""
        return MappingProxyType(self._written.tables)

    @property
    def table(self) -> "pd.DataFrame":
        """The first table."""
        return self.tables[self._first(self._first_tables, self.tables, "table")]

    @cached_property
    def pictures(self) -> Mapping[str, Picture]:
        """All plots, by their names."""
        return MappingProxyType(self._written.pictures or self._files(plots=True).pictures)

    def plot(self, name: str | None = None) -> Picture:
        """Return a plot, by default the first one.

        Raises
        ------
        UserError
            There is none of this name, or none at all.
        """
        wanted = self._first_pictures if name is None else (name,)
        return self.pictures[self._first(wanted, self.pictures, "picture")]

    def write(self, folder: str | os.PathLike[str], *, plots: bool = False, force: bool = False) -> Path:
        """Write tables and metadata to a folder, as the command does.

        Parameters
        ----------
        folder : str or Path
            Made if it is not there.
        plots : bool
            Draw pictures also where the command draws them only with ``--plots``.
        force : bool
            Replace inputs and files of another kind, too.

        Raises
        ------
        UserError
            The files cannot be written.
        """
        with self._call.named(), forced(force):
            self._found.write(Path(folder), plots=plots)
        return Path(folder)

    @cached_property
    def _written(self) -> _Files:
        return self._files(plots=False)

    def _files(self, *, plots: bool) -> _Files:
        """Return tables and pictures as the command writes them: they cannot differ from its files."""
        import pandas as pd  # noqa: PLC0415 - takes half a second, and many a program asks for `values` only

        with tempfile.TemporaryDirectory(prefix="hopforge-") as name:
            folder = self.write(Path(name), plots=plots)
            tables = {path.stem: pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))}
            pictures = {path.stem: Picture(path.stem, path.read_bytes()) for path in sorted(folder.glob("*.png"))}
        return _Files(tables, pictures)

    def _first(self, wanted: Iterable[str], there: Iterable[str], what: str) -> str:
        wanted, there = list(wanted), list(there)
        for name in wanted:
            if name in there:
                return name
        refuse_unknown(what, wanted[0] if wanted else "", there)

    def __getitem__(self, name: str) -> Any:
        """Return what was measured under a name.

        Raises
        ------
        KeyError
            Listing the known ones.
        """
        if name not in self.values:
            known = ", ".join(self.values) or "none; result.table has a column for each figure"
            raise KeyError(f"{name}; known: {known}")
        return self.values[name]

    def __contains__(self, name: object) -> bool:
        """Tell whether something was measured under a name."""
        return name in self.values

    __iter__ = None  # `values` and `tables` are gone through

    def __repr__(self) -> str:
        """Return what the command shows."""
        width = max((len(subject) for subject, _ in self.rows), default=0)
        return "\n".join([f"<{self._call.words}>", *(f"{subject:{width}}  {words}" for subject, words in self.rows)])

    def _repr_html_(self) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a plot says nothing new
            there = self.pictures
        shown = next((there[name] for name in self._first_pictures if name in there), None)
        image = "" if shown is None else html_image(shown)
        return html_rows(self.rows) + image


def html_rows(rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of two columns as HTML."""
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(subject)}</th><td style="text-align:left">{escape(words)}</td></tr>'
        for subject, words in rows
    )
    return f"<table>{cells}</table>"


def html_lines(lines: Sequence[Sequence[str]]) -> str:
    """Return headings and rows as an HTML table."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in lines[0])
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in lines[1:])
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_image(picture: Picture) -> str:
    """Return a picture as HTML."""
    data = base64.b64encode(picture.png).decode("ascii")
    return f'<img alt="{escape(picture.name)}" style="max-width:100%" src="data:image/png;base64,{data}">'


def refuse_unknown(what: str, name: str, known: Iterable[str]) -> NoReturn:
    """Refuse a name that is not among the known ones."""
    names = ", ".join(known)
    if not names:
        raise UserError(f"this result has no {what}")
    raise UserError(f"{what} must be one of {names}, not {name!r}")


def check_folder(folder: "str | os.PathLike[str] | None") -> Path | None:
    """Find out before a run whether its results can be written."""
    if folder is None:
        return None
    check_writable(Path(folder))
    return Path(folder)

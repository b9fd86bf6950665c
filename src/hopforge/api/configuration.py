"""A checked configuration in a Python program: load it, change it, write it."""

import json
import os
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import yaml

from hopforge.api.errors import placed
from hopforge.api.kept_graphs import graph_folder
from hopforge.api.writing import writing
from hopforge.model.config import Config, ConfigError
from hopforge.model.config.base import named_files
from hopforge.model.config.load import check_source, load_file, parse_config
from hopforge.model.config.source import (
    PLACE,
    Source,
    VariantError,
    apply_changes,
    plain_value,
    read_source,
    undotted,
)
from hopforge.model.output.results import write_text

__all__ = ["Configuration", "configuration", "load", "loads"]


class Configuration:
    """One switch and its network, checked; it never changes.

    Made by `load`, `loads`, `network` and `replace`. The keys are those of the YAML file
    (docs/definitions/configuration.md).
    """

    def __init__(self, name: str, source: Source, config: Config, folder: Path, recipe: str, text: str | None) -> None:
        self._name, self._source, self._config, self._folder = name, source, config, folder
        self._recipe, self._text = recipe, text

    @property
    def name(self) -> str:
        """Key `name`: prefix of the Verilog modules and of every output."""
        return self._config.name

    @property
    def text(self) -> str:
        """The YAML text: that of the file, or, after `replace`, of all keys that are set."""
        return _yaml(self._source.data) if self._text is None else self._text

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of ``simulation.variants``."""
        return tuple(self._config.variants)

    def __getitem__(self, key: str) -> Any:
        """Return the value of a dotted key, its default if the file leaves it out; a section as a dictionary.

        Raises
        ------
        KeyError
            There is no such key.
        """
        if not isinstance(key, str):
            raise TypeError(f"a key is a text as 'router.vcs', not {key!r}")
        found: Any = self._config.model_dump(mode="json")
        for step in undotted(key) if _KEY.fullmatch(key) else (None,):
            try:
                if isinstance(found, str):
                    raise TypeError("a text has no entries")
                found = found[step]
            except (KeyError, IndexError, TypeError):
                raise KeyError(f"{key}: the configuration of {self._name} has no such key") from None
        return found

    def __contains__(self, key: object) -> bool:
        """Tell whether the configuration has a key, set or left out."""
        try:
            self[key]  # type: ignore[index]
        except (KeyError, TypeError):
            return False
        return True

    __iter__ = None  # sections have keys of their own: `text` shows all

    def replace(self, key: str | Mapping[str, Any], value: Any = ...) -> "Configuration":
        """Return a new configuration with other values, checked as a file is.

        Parameters
        ----------
        key : str or mapping
            A dotted key, ``"router.vcs"``, or several with their values. The name of a section replaces the whole
            section.
        value : object, optional
            Of the one key: what YAML can hold; numpy's numbers and arrays, and paths, too. A file is found relative to
            the folder of the configuration.

        Raises
        ------
        ConfigError
            The new values are wrong, alone or together, or one key lies in another one.

        Examples
        --------
        >>> mesh = loads("{name: small, topology: {kind: mesh, radices: [4, 4]}}")
        >>> mesh.replace("router.vcs", 4)["router.vcs"]
        4
        """
        if isinstance(key, str) == (value is ...):
            raise TypeError("replace takes a key and a value, or one mapping of keys to values")
        changes = {key: value} if isinstance(key, str) else dict(key)
        with placed(self._name, None):
            source = _changed(self._source, {name: _plain(name, each) for name, each in changes.items()})
            config = check_source(source, self._name, folder=self._folder, keys=False)
        shown = f"{key!r}, {value!r}" if isinstance(key, str) else repr(changes)
        return Configuration(self._name, source, config, self._folder, f"{self._recipe}.replace({shown})", None)

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write it as a YAML file, which the commands read, too; files that it names are named from there.

        The graph of `network` is written beside it.

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
        path = Path(path)
        data, text = self._source.data, self.text
        graphs = self._graphs()
        if graphs or path.absolute().parent.resolve() != self._folder.absolute().resolve():
            moved = _moved(data, self._config, path.absolute().parent)
            text = text if moved == data else _yaml(moved)
        with writing(path, force):
            for graph in graphs:
                beside = path.with_name(graph.name)  # the name tells the contents
                if not (beside.is_file() and beside.read_bytes() == graph.read_bytes()):
                    write_text(beside, graph.read_text(encoding="utf-8"), "JSON")
            write_text(path, text, "YAML")
        return path

    def _graphs(self) -> list[Path]:
        """Return the files of graphs that were made in Python."""
        configs = (self._config, *self._config.variants.values())
        files = {file for config in configs for file in named_files(config).values()}
        return sorted(file for file in files if file.parent == graph_folder())

    def __eq__(self, other: object) -> bool:
        """Tell whether all keys have the same values, wherever they come from."""
        return isinstance(other, Configuration) and self._config == other._config

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Return what makes it again."""
        return self._recipe

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"


def load(path: str | os.PathLike[str]) -> Configuration:
    """Read and check a YAML file; files that it names are found relative to its folder.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Configuration
        Checked, with the defaults of all keys that are left out.

    Raises
    ------
    ConfigError
        One line ``file:line: key: reason`` for each mistake; `mistakes` holds the parts.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"load takes the name of a file, not {type(path).__name__}")
    if "\n" in os.fspath(path) and not os.path.exists(path):  # noqa: PTH110 - of a long text Path raises OSError
        raise ConfigError("load takes the name of a file, not its text, which hopforge.loads takes")
    if not os.fspath(path):
        raise ConfigError("load takes the name of a file, not an empty text")
    path = Path(path)
    folder = path.absolute().parent  # wherever the program goes then
    with placed(str(path), None):
        found = load_file(path, folder=folder, keys=False)
    return Configuration(str(path), found.source, found.config, folder, f"hopforge.load({str(path)!r})", found.text)


def loads(text: str, *, folder: str | os.PathLike[str] = ".") -> Configuration:
    """Read and check YAML text.

    Parameters
    ----------
    text : str
        What a file would hold.
    folder : str or Path
        Files that the text names are found relative to it.

    Returns
    -------
    Configuration
        As of `load`.

    Raises
    ------
    ConfigError
        One line ``<python>:line: key: reason`` for each mistake.
    """
    if not isinstance(text, str):
        raise TypeError(f"loads takes the text of a configuration, not {type(text).__name__}")
    name, place = "<python>", Path(folder).absolute()
    with placed(name, None):
        config = parse_config(text, name, folder=place, keys=False)
    given = "" if Path(folder) == Path() else f", folder={os.fspath(folder)!r}"
    return Configuration(name, read_source(text), config, place, f"hopforge.loads({text!r}{given})", text)


def made_here(data: dict[str, Any], recipe: str) -> Configuration:
    """Check data that were made in Python, whose files have absolute names."""
    name, folder = "<python>", Path.cwd()
    with placed(name, None):
        changes = {key: _plain(key, value) for key, value in data.items()}
        source = _changed(Source({}, {(): 0}), changes)
        config = check_source(source, name, folder=folder, keys=False)
    return Configuration(name, source, config, folder, recipe, None)


def configuration(given: "Configuration | str | os.PathLike[str]") -> Configuration:
    """Return a configuration, or the one of the file of this name."""
    if isinstance(given, Configuration):
        return given
    if isinstance(given, str | os.PathLike):
        return load(given)
    raise TypeError(f"expected a configuration of hopforge.load or the name of a file, not {type(given).__name__}")


#: steps of a key, none of them empty: ``topology.radices[2]``
_KEY = re.compile(r"[^.\[\]]+(?:\.[^.\[\]]+|\[[0-9]+\])*")


def _changed(source: Source, changes: Mapping[str, Any]) -> Source:
    for key in changes:
        if not isinstance(key, str):
            raise TypeError(f"a key is a text as 'router.vcs', not {key!r}")
        if not _KEY.fullmatch(key):
            raise ConfigError(f"{key!r} is no key")
    places = {undotted(key): key for key in changes}
    for place, key in places.items():
        for depth in range(1, len(place)):
            if place[:depth] in places:  # which one comes first would decide
                raise ConfigError(f"{key}: lies in {places[place[:depth]]}, which is replaced as a whole, too")
    try:
        return apply_changes(source, changes)
    except VariantError as error:
        raise ConfigError(str(error)) from error


def _plain(key: str, value: Any) -> Any:
    """Return a value as YAML would give it."""

    def simple(other: Any) -> Any:
        if isinstance(other, os.PathLike):
            return os.fspath(other)
        if hasattr(other, "tolist"):  # numpy
            return other.tolist()
        raise TypeError(f"{key}: a value of type {type(other).__name__} cannot stand in a configuration")

    try:
        text = json.dumps(value, default=simple, allow_nan=False, ensure_ascii=False)
        text.encode()
        return json.loads(text)
    except UnicodeEncodeError as error:
        raise ConfigError(f"{key}: text with half a character (a lone surrogate)") from error
    except RecursionError as error:
        raise ConfigError(f"{key}: is nested too deeply") from error
    except ValueError as error:
        raise ConfigError(f"{key}: must be finite and hold no circle, not {value!r}") from error


class _Dumper(yaml.SafeDumper):
    """Writes what `read_source` reads: no aliases, and quotes where a text looks like something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, value: str) -> yaml.Node:
    style = None if isinstance(plain_value(value), str) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def _yaml(data: Any) -> str:
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)


def _moved(data: Any, config: Config, folder: Path) -> Any:
    """Return the data with the files that they name as seen from `folder`."""
    found = _named_from(data, "", named_files(config), folder)
    for name, variant in config.variants.items():
        overrides = found[PLACE[0]][PLACE[1]][name]
        files = named_files(variant)
        for key, value in overrides.items():
            overrides[key] = _named_from(value, key, files, folder)
    return found


def _named_from(value: Any, key: str, files: Mapping[str, Path], folder: Path) -> Any:
    if isinstance(value, dict):
        return {
            name: _named_from(each, f"{key}.{name}" if key else str(name), files, folder)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [_named_from(each, f"{key}[{number}]", files, folder) for number, each in enumerate(value)]
    if isinstance(value, str) and Path(value).parent == graph_folder():
        return Path(value).name  # it is written beside the file
    if key in files and isinstance(value, str) and not Path(value).is_absolute():
        return os.path.relpath(files[key].absolute(), folder)
    return value

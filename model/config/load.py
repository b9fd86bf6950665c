"""Read a YAML file, check it, and say file, line and key of what is wrong."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from hopforge.model.config.base import Problem, named_files
from hopforge.model.config.limits import fitting_address, hardware_problems, key_problems
from hopforge.model.config.root import Config
from hopforge.model.config.source import (
    PLACE,
    Source,
    SourceError,
    VariantError,
    apply_variant,
    dotted,
    explain,
    read_source,
    undotted,
)
from hopforge.model.errors import UserError
from hopforge.model.input_file import read_input, remember_input

LARGEST_MIB = 1  # a configuration is written by a person
_KEY = re.compile(r"([a-z]\w*(?:\.\w+|\[\d+\])+(?=:? )|[a-z]\w*(?=: ))")
#: a key whose value is a file
FILE_KEY = re.compile("(.*_)?file|packets|process_groups|weights")
_loaded: list[tuple[str, Source]] = []  # the configuration that was loaded last


class ConfigError(UserError, ValueError):
    """A user's mistake: file, line, key and reason, one line for each."""


class Loaded(NamedTuple):
    """A file that was read.

    Attributes
    ----------
    text : str
        What stands in it.
    source : Source
        Its data, with lines.
    config : Config
        What it describes.
    """

    text: str
    source: Source
    config: Config


def load_config(path: Path, *, hardware: bool = False, keys: bool = True) -> Config:
    """Read and check the YAML file `path`; paths in it are relative to its folder.

    Parameters
    ----------
    path : Path
        The file.
    hardware : bool
        Refuse also what the functional model can do and the hardware cannot.
    keys : bool
        Refuse also addresses and engines that do not fit the network (`suited` does it for a command that uses them).

    Raises
    ------
    ConfigError
        One line ``file:line: key: reason`` for each problem.
    """
    return load_file(path, hardware=hardware, keys=keys).config


def load_file(path: Path, *, folder: Path | None = None, hardware: bool = False, keys: bool = True) -> Loaded:
    """Read and check a file as `load_config`, and return it with what stands in it.

    The files that it names are found relative to `folder`, by default its own.
    """
    path = Path(path)
    try:
        raw = read_input(path, LARGEST_MIB)
    except OSError as error:
        unwritten = path.parts[:1] == ("configs",) and not Path("configs").exists()
        hint = "; 'hopforge init examples' writes the folder configs" if unwritten else ""
        raise ConfigError(f"{path}: cannot read the configuration: {error.strerror}{hint}") from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: not UTF-8 text (byte {raw[error.start]:#04x})") from error
    beside = path.parent if folder is None else folder
    config = parse_config(text, source=str(path), folder=beside, hardware=hardware, keys=keys)
    source = read_source(text)
    _loaded[:] = [(str(path), source)]
    for named in named_files(config).values():
        remember_input(named)
    return Loaded(text, source, config)


def with_place(message: str, loaded: tuple[str, Source] | None = None) -> str:
    """Return `message` with file and line before each line that begins with a key of a configuration or its file.

    What is found out later than in `load_config` (a trace with more ranks than the network has hosts) names its key
    only, or the file that such a key names; the command line adds the place.

    Parameters
    ----------
    message : str
        What is wrong.
    loaded : (str, Source), optional
        Name and data of the configuration; by default of the one that was loaded last.
    """
    known = [loaded] if loaded is not None else _loaded
    return "\n".join(_with_place(line, *known[0]) for line in message.split("\n")) if known else message


def _with_place(message: str, name: str, source: Source) -> str:
    if message.startswith((f"{name}:", f"{name} (")):
        return message
    key = _KEY.match(message)
    where = undotted(key[1]) if key is not None else ()
    if where and where[0] in Config.model_fields:
        return f"{_at(name, source.line(where))}: {message}"
    for where, line in source.lines.items():
        named = where and FILE_KEY.fullmatch(str(where[-1]))
        if named and message.startswith(f"{Path(name).parent / str(source.value(where))}: "):
            return f"{_at(name, line)}: {dotted(where)}: {message}"
    return message


def _at(name: str, line: int) -> str:
    """Return where something stands; line 0 is no line of the file (`apply_changes`)."""
    return f"{name}:{line}" if line else name if name.startswith("<") else f"{name} (changed in Python)"


def parse_config(
    text: str, source: str = "<string>", *, folder: Path | None = None, hardware: bool = False, keys: bool = True
) -> Config:
    """Check YAML text; `source` stands in error messages, paths are relative to `folder` (default: as they are).

    `hardware` and `keys`: as for `load_config`.

    Raises
    ------
    ConfigError
        One line ``source:line: key: reason`` for each problem.
    """
    try:
        read = read_source(text)
    except SourceError as error:
        raise _error(source, error.problems) from error
    return check_source(read, source, folder=folder, hardware=hardware, keys=keys)


def check_source(
    read: Source, source: str, *, folder: Path | None = None, hardware: bool = False, keys: bool = True
) -> Config:
    """Check what was read; as `parse_config`, which reads text."""
    config = _checked(read, source, folder, hardware=hardware, keys=keys)
    for name in config.simulation.variants:
        try:
            variant = apply_variant(read, name)
        except VariantError as error:
            raise _error(source, [(error.line, f"{dotted((*PLACE, name))}: {error}")]) from error
        config.variants[name] = _checked(variant, source, folder, hardware=hardware, keys=keys, variant=name)
    return config


def suited(config: Config, *, hardware: bool, keys: bool) -> Config:
    """Return a configuration that was read with ``keys=False`` for a command.

    Where nothing makes keys of addresses, those that the network does not fit are replaced by some that it does.

    Raises
    ------
    ConfigError
        With the key of each problem, as in `load_config`.
    """
    variants = {name: _suited(each, f"{dotted((*PLACE, name))}: ", hardware=hardware, keys=keys)
                for name, each in config.variants.items()}  # fmt: skip
    found = _suited(config, "", hardware=hardware, keys=keys)
    if found is not config or any(variants[name] is not each for name, each in config.variants.items()):
        found = found.model_copy()
        found._variants = variants
    return found


def _suited(config: Config, prefix: str, *, hardware: bool, keys: bool) -> Config:
    problems = list(_problems(config, hardware=hardware, keys=keys))
    if problems:
        raise ConfigError("\n".join(f"{prefix}{problem}" for problem in problems))
    address = None if keys else fitting_address(config.topology, config.address)
    return config if address in (None, config.address) else config.model_copy(update={"address": address})


def _problems(config: Config, *, hardware: bool, keys: bool) -> Iterator[Problem]:
    if keys and config.router.route_computation == "table":  # else `Config` has said so
        yield from key_problems(config.topology, config.address, config.lookup)
    if hardware:
        yield from hardware_problems(config.address, config.lookup)


def _checked(
    read: Source, source: str, folder: Path | None, *, hardware: bool, keys: bool, variant: str | None = None
) -> Config:
    """Check the data of a file, or of one of its variants (whose name then stands in the errors)."""
    prefix = "" if variant is None else f"{dotted((*PLACE, variant))}: "
    try:
        # JSON mode: lists become tuples and strings paths, while ints, floats and booleans stay strict
        config = Config.model_validate_json(json.dumps(read.data), context={"folder": folder})
    except ValidationError as error:
        raise _error(source, [(line, prefix + reason) for line, reason in explain(error, read, Config)]) from error
    problems = list(_problems(config, hardware=hardware, keys=keys))
    if problems:
        raise _error(source, [(read.line(undotted(problem.key)), prefix + str(problem)) for problem in problems])
    config._written = tuple(read.data)
    return config


def _error(source: str, problems: list[tuple[int, str]]) -> ConfigError:
    return ConfigError("\n".join(f"{_at(source, line)}: {reason}" for line, reason in sorted(problems)))

"""Read a YAML file, check it, and say file, line and key of what is wrong."""

import json
import re
from pathlib import Path

from pydantic import ValidationError

from hopforge.model.config.explain import explain
from hopforge.model.config.limits import hardware_problems
from hopforge.model.config.root import Config
from hopforge.model.config.source import (
    PLACE,
    Source,
    SourceError,
    VariantError,
    apply_variant,
    dotted,
    read_source,
    undotted,
)
from hopforge.model.errors import UserError

MAX_BYTES = 1 << 20  # a configuration is written by a person
_KEY = re.compile(r"([a-z]\w*(?:\.\w+|\[\d+\])+(?=:? )|[a-z]\w*(?=: ))")
_loaded: list[tuple[str, Source]] = []  # the configuration that was loaded last


class ConfigError(UserError, ValueError):
    """A user's mistake: file, line, key and reason, one line for each."""


def load_config(path: Path, *, hardware: bool = False) -> Config:
    """Read and check the YAML file `path`; paths in it are relative to its folder.

    Parameters
    ----------
    path : Path
        The file.
    hardware : bool
        Refuse also what the functional model can do and the hardware cannot.

    Raises
    ------
    ConfigError
        One line ``file:line: key: reason`` for each problem.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the configuration: {error.strerror}") from error
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{path}: more than {MAX_BYTES} bytes; this is no configuration")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: not UTF-8 text (byte {raw[error.start]:#04x})") from error
    config = parse_config(text, source=str(path), folder=path.parent, hardware=hardware)
    _loaded[:] = [(str(path), read_source(text))]
    return config


def with_place(message: str) -> str:
    """Return `message` with file and line before it, if it begins with a key of the configuration loaded last.

    What is found out later than in `load_config` (a trace with more ranks than the network has hosts) names its key
    only; the command line adds the place.
    """
    key = _KEY.match(message)
    if key is None or not _loaded:
        return message
    path, source = _loaded[0]
    where = undotted(key[1])
    return f"{path}:{source.line(where)}: {message}" if where[0] in Config.model_fields else message


def parse_config(text: str, source: str = "<string>", *, folder: Path | None = None, hardware: bool = False) -> Config:
    """Check YAML text; `source` stands in error messages, paths are relative to `folder` (default: as they are).

    Raises
    ------
    ConfigError
        One line ``source:line: key: reason`` for each problem.
    """
    try:
        read = read_source(text)
    except SourceError as error:
        raise _error(source, error.problems) from error
    config = _checked(read, source, folder, hardware=hardware)
    for name in config.simulation.variants:
        try:
            variant = apply_variant(read, name)
        except VariantError as error:
            raise _error(source, [(error.line, f"{dotted((*PLACE, name))}: {error}")]) from error
        config.variants[name] = _checked(variant, source, folder, hardware=hardware, variant=name)
    return config


def _checked(read: Source, source: str, folder: Path | None, *, hardware: bool, variant: str | None = None) -> Config:
    """Check the data of a file, or of one of its variants (whose name then stands in the errors)."""
    prefix = "" if variant is None else f"{dotted((*PLACE, variant))}: "
    try:
        # JSON mode: lists become tuples and strings paths, while ints, floats and booleans stay strict
        config = Config.model_validate_json(json.dumps(read.data), context={"folder": folder})
    except ValidationError as error:
        raise _error(source, [(line, prefix + reason) for line, reason in explain(error, read, Config)]) from error
    problems = list(hardware_problems(config.address, config.lookup)) if hardware else []
    if problems:
        raise _error(source, [(read.line(undotted(problem.key)), prefix + str(problem)) for problem in problems])
    return config


def _error(source: str, problems: list[tuple[int, str]]) -> ConfigError:
    return ConfigError("\n".join(f"{source}:{line}: {reason}" for line, reason in sorted(problems)))

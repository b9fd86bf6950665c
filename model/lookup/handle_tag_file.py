"""Files of `hopforge reduction`: a network and a function of Handle and getTag (docs/definitions/handle-tag.md)."""

from pathlib import Path
from typing import Any, NamedTuple

from hopforge.model.config import ConfigError
from hopforge.model.config.source import Source, SourceError, dotted, read_source, undotted
from hopforge.model.input_file import read_input_text
from hopforge.model.lookup.handle_tag import HandleTag, HandleTagError

__all__ = ["HandleTagFile", "read_handle_tag"]

LARGEST_MIB = 1  # a person writes it
_KEYS = {"": ("kind", "k", "function"), "function": ("loop", "handle", "tag", "default")}


class HandleTagFile(NamedTuple):
    """What a file says.

    Attributes
    ----------
    kind : str
        Of the network.
    k : tuple of int
        Radices of its digits.
    function : HandleTag
        The function.
    path, source : Path, Source
        Where it stands.
    """

    kind: str
    k: tuple[int, ...]
    function: HandleTag
    path: Path
    source: Source

    def placed(self, error: HandleTagError) -> ConfigError:
        """Return an error with file and line before its key."""
        return _wrong(self.path, self.source, error.key, error.reason)


def read_handle_tag(path: Path) -> HandleTagFile:
    """Read a file.

    Raises
    ------
    ConfigError
        One line ``file:line: key: reason``: what cannot be read, an unknown or missing key, a value of another type, an
        expression that is not accepted.
    """
    try:
        source = read_source(read_input_text(path, LARGEST_MIB))
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the function: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: not UTF-8 text (byte {error.object[error.start]:#04x})") from error
    except SourceError as error:
        raise ConfigError("\n".join(f"{path}:{line}: {reason}" for line, reason in error.problems)) from error
    function = _section(path, source, "")["function"]
    parts = {"loop": "i", **_section(path, source, "function")}
    for name, value in parts.items():
        if type(value) is int and name != "loop":
            parts[name] = str(value)  # default: 0
        elif not isinstance(value, str):
            raise _wrong(path, source, f"function.{name}", f"must be text, not {_short(value)}")
    kind, k = source.data["kind"], source.data["k"]
    if not isinstance(k, list) or any(type(each) is not int for each in k):
        raise _wrong(path, source, "k", f"must be a list of whole numbers, not {_short(k)}")
    if not isinstance(kind, str):
        raise _wrong(path, source, "kind", f"must be text, not {_short(kind)}")
    try:
        function = HandleTag(**parts)
    except HandleTagError as error:
        raise _wrong(path, source, error.key, error.reason) from error
    return HandleTagFile(kind, tuple(k), function, path, source)


def _section(path: Path, source: Source, name: str) -> dict[str, Any]:
    """Return a section that has all its keys, and no others; `loop` may be left out."""
    data, known = source.data[name] if name else source.data, _KEYS[name]
    if not isinstance(data, dict):
        what = f"{name}: must be a section" if name else "must be a section"
        raise _wrong(path, source, "", f"{what} with the keys {', '.join(known)}")
    unknown = next((key for key in data if key not in known), None)
    if unknown is not None:
        where = (name, unknown) if name else (unknown,)
        line = source.line(where)
        raise ConfigError(f"{path}:{line}: {dotted(where)}: unknown key; known: {', '.join(known)}")
    missing = next((key for key in known if key not in data and key != "loop"), None)
    if missing is not None:
        raise _wrong(path, source, f"{name}.{missing}" if name else missing, "is missing")
    return dict(data)


def _wrong(path: Path, source: Source, key: str, reason: str) -> ConfigError:
    return ConfigError(f"{path}:{source.line(undotted(key))}: {key}{': ' if key else ''}{reason}")


def _short(value: object) -> str:
    return repr(value)[:60]

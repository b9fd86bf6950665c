"""The text of a configuration of BookSim 2: ``key = value;``, as its scanner and parser read it.

Of all patterns the scanner takes the longest match, the first one of equals. Lists have no spaces: ``{1,5}``. There are
no files that include others. A parameter of the command line is read as ``key=value;``.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hopforge.model.errors import UserError
from hopforge.model.input_file import read_input, read_input_text

#: of a configuration: written by a person
LARGEST_MIB = 1
_LARGEST_INT = (1 << 31) - 1
_SKIP, _TEXT, _WHOLE, _FLOAT, _END = "skip", "text", "whole number", "number", "end of the text"
_PATTERNS = (
    (_SKIP, re.compile(r"//[^\n]*")),
    (_SKIP, re.compile(r"[ \t\r\n]+")),
    (_TEXT, re.compile(r"\{[A-Za-z0-9_\-.({,)}]+\}")),
    (_WHOLE, re.compile(r"-?[0-9]+")),
    (_FLOAT, re.compile(r"-?[0-9]*\.[0-9]+")),
    (_FLOAT, re.compile(r"-?(?:[0-9]*\.)?[0-9]+(?:[eE][+-]?[0-9]+)?")),
    (_TEXT, re.compile(r"[A-Za-z_\-/.][A-Za-z0-9_\-/.+({,)}]*")),
)


class BooksimError(UserError, ValueError):
    """A configuration of BookSim that cannot be translated: names file and line, key and value."""


@dataclass(frozen=True)
class Setting:
    """One ``key = value;``.

    Attributes
    ----------
    key : str
        Left of the equals sign.
    value : str, int or float
        Right of it; BookSim tells the three apart.
    where : str
        ``FILE:LINE``, or the words of the command line.
    """

    key: str
    value: str | int | float
    where: str

    @property
    def shown(self) -> str:
        """The value as a message shows it."""
        return str(self.value)


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


_AS_VALUE = "injection_rate=.2"


def read_settings(words: Sequence[str]) -> list[Setting]:
    """Read what follows ``hopforge import booksim``: files, and parameters ``key=value`` that replace theirs.

    Raises
    ------
    BooksimError
        No file, one that cannot be read, or text that BookSim does not take.
    """
    settings: list[Setting] = []
    if all("=" in word for word in words):
        raise BooksimError("import booksim: name a configuration file before parameters key=value")
    files = [word for word in words if "=" not in word]
    for word in words:
        if len(files) > 1 and word in files and not Path(word).exists():
            raise BooksimError(
                f"import booksim: {word} is no file; write a parameter as KEY=VALUE, such as {_AS_VALUE}"
            )
        if "=" in word:
            settings += _parse(f"{word};", f"parameter {word}", lines=False)
        else:
            settings += _parse(_text(Path(word)), word, lines=True)
    return settings


def _text(path: Path) -> str:
    try:
        if read_input(path, LARGEST_MIB).startswith(codecs.BOM_UTF8):
            raise BooksimError(f"{path}:1: BookSim takes no byte-order mark before the text; save the file without one")
        return read_input_text(path, LARGEST_MIB)
    except UnicodeDecodeError as error:
        raise BooksimError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise BooksimError(f"{path}: {error.strerror or error}") from error


def _tokens(text: str) -> Iterator[_Token]:
    place, line = 0, 1
    while place < len(text):
        matches = ((kind, pattern.match(text, place)) for kind, pattern in _PATTERNS)
        found = [(kind, match[0]) for kind, match in matches if match]
        kind, taken = max(found, key=lambda one: len(one[1]), default=(text[place], text[place]))
        if kind != _SKIP:
            yield _Token(kind, taken, line)
        line += taken.count("\n")
        place += len(taken)
    yield _Token(_END, "", line)


def _parse(text: str, name: str, *, lines: bool) -> list[Setting]:
    """Parse ``key = value;`` again and again; there is at least one."""
    settings: list[Setting] = []
    tokens = _tokens(text)

    def take(wanted: str, *kinds: str) -> _Token:
        found = next(tokens)
        if found.kind not in kinds:
            if found.kind == _END and not settings and wanted == "a key":
                raise BooksimError(f"{name}: no setting in it: expected key = value; at least once")
            there = found.text or f"the {found.kind}"
            hint = " (a list has no spaces)" if there == "{" else ""
            raise BooksimError(f"{_where(name, found, lines)}: expected {wanted}, not {there}{hint}")
        return found

    while True:
        key = take("a key", _TEXT, *([_END] if settings else []))
        if key.kind == _END:
            return settings
        take(f"= after {key.text}", "=")
        value = take(f"a value after {key.text} =", _TEXT, _WHOLE, _FLOAT)
        take(f"; after {key.text} = {value.text}", ";")
        where = _where(name, key, lines)
        settings.append(Setting(key.text, _value(value, where, key.text), where))


def _where(name: str, token: _Token, lines: bool) -> str:
    return f"{name}:{token.line}" if lines else name


def _value(token: _Token, where: str, key: str) -> str | int | float:
    if token.kind == _TEXT:
        return token.text
    if token.kind == _FLOAT:
        value = float(token.text)
        if abs(value) == float("inf"):
            raise BooksimError(f"{where}: {key}: {token.text} is too large a number")
        return value
    if len(token.text) > 11 or abs(int(token.text)) > _LARGEST_INT:  # int() of very long texts is slow
        raise BooksimError(f"{where}: {key}: {token.text} does not fit 32 bits")
    return int(token.text)

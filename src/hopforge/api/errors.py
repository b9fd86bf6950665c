"""What goes wrong, as a Python program sees it: errors that know file, line and key; warnings."""

import contextlib
import inspect
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from numbers import Real
from pathlib import Path
from typing import Any

import hopforge
from hopforge.model.config.load import with_place
from hopforge.model.config.source import Source
from hopforge.model.errors import Mistake, UserError

__all__ = ["HopforgeWarning", "a_number", "number_within", "numbers", "placed", "several", "warn", "yes_or_no"]

_LINE = re.compile(r"(?P<line>:\d+)?(?: \(changed in Python\))?: (?P<rest>.*)", re.DOTALL)
#: an option of a command, but not within a command that the message names
_OPTION = re.compile(r"(?<![\w-])(?<!hopforge )--(?P<name>[a-z]+(?:-[a-z]+)*)(?![\w-])")
#: modules of errors that a mistake in a configuration is made of
_READERS = ("pydantic", "yaml", "hopforge.model.config")
_KEY = re.compile(r"(?P<key>[a-z]\w*(?:\.\w+|\[\d+\])+(?=:? )|[a-z]\w*(?=: ))")


class HopforgeWarning(UserWarning):
    """What the commands say beside their results: sections of a file that are not used, runs that are done again."""


@contextlib.contextmanager
def placed(name: str, source: Source | None) -> Iterator[None]:
    """Give every `UserError` of this block its `mistakes`, with file and line where they are known.

    Options of the commands get the names that they have in Python.

    Parameters
    ----------
    name : str
        Of the configuration: its file, or what stands for it.
    source : Source, optional
        Its data; None while they are not read.
    """
    try:
        yield
    except UserError as error:
        if not error._mistakes:
            message = _OPTION.sub(_argument, str(error))
            message = message if source is None else with_place(message, (name, source))
            error.args = (message,)
            error._mistakes = tuple(_mistake(line, name) for line in message.split("\n"))
            if type(error.__cause__).__module__.startswith(_READERS):  # says the same in other words
                error.__cause__ = None
        raise


@cache
def _arguments() -> frozenset[str]:
    functions = [each for name in hopforge.__all__ if inspect.isfunction(each := getattr(hopforge, name))]
    return frozenset(name for function in functions for name in inspect.signature(function).parameters)


def _argument(option: re.Match[str]) -> str:
    """Return the argument of the public functions that is an option: ``--size`` of one is ``sizes`` of many."""
    name = option["name"].replace("-", "_")
    for each in (name, f"{name}s", f"{name.removesuffix('y')}ies"):
        if each in _arguments():
            return each
    return option[0]


def _mistake(text: str, name: str) -> Mistake:
    place = _LINE.fullmatch(text.removeprefix(name)) if text.startswith(name) else None
    rest = text if place is None else place["rest"]
    key = _KEY.match(rest)
    named = "" if key is None else key["key"]
    line = place["line"] if place is not None else None
    return Mistake(
        "" if place is None else name,
        None if line is None else int(line[1:]),
        named,
        rest.removeprefix(f"{named}: ") if named else rest,
    )


def warn(text: str) -> None:
    """Warn at the line of the user's program."""
    home = str(Path(hopforge.__file__).parent)
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_code.co_filename, home):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, HopforgeWarning, stacklevel=level + 1)


def _is_ours(file: str, home: str) -> bool:
    return file.startswith(home) or file == contextlib.__file__


def several(name: str, given: Any) -> tuple[Any, ...]:
    """Return an argument that is a sequence; one text is none.

    Raises
    ------
    TypeError
        It is no sequence.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{name} must be a list, not {given!r}")
    return tuple(given)


def a_number(name: str, value: Any, kind: type[float]) -> Any:
    """Return an argument as a number of Python, int or float; None is the configuration's.

    Raises
    ------
    TypeError
        It is no number, or not of this kind.
    """
    if value is None:
        return None
    try:
        fits = not _is_bool(value) and (kind(value) == value or (kind is float and _is_nan(value)))
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise TypeError(f"{name} must be {'a whole number' if kind is int else 'a number'}, not {value!r}")
    return kind(value)


def numbers(name: str, given: Any, kind: type[float]) -> tuple[Any, ...]:
    """Return an argument that is a sequence of numbers, at least one (`a_number`).

    Raises
    ------
    TypeError
        It is no sequence, or one of them is no number.
    UserError
        It is empty.
    """
    found = several(name, given)
    if not found:
        raise UserError(f"{name} must not be empty")
    if None in found:
        raise TypeError(f"{name} must hold numbers, not None")
    return tuple(a_number(name, each, kind) for each in found)


def number_within(name: str, value: Any, least: float, most: float | None = None) -> Any:
    """Return an argument as a number of Python, of the type of `least`; None is the configuration's.

    Raises
    ------
    TypeError
        It is no number.
    UserError
        It is too small or too large, or not a number (NaN).
    """
    found = a_number(name, value, type(least))
    if found is None:
        return None
    if _is_nan(found) or value < least:
        raise UserError(f"{name} must be at least {least:g}, not {value}")
    if most is not None and value > most:
        raise UserError(f"{name} must be at most {most:.12g}, not {value}")
    return found


def yes_or_no(name: str, value: Any) -> bool:
    """Return an argument that is true or false: a text or a list in its place is a mistake.

    Raises
    ------
    TypeError
        It is something else.
    """
    if not _is_bool(value):
        raise TypeError(f"{name} must be true or false, not {value!r}")
    return bool(value)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b"  # that of numpy


def _is_nan(value: Any) -> bool:
    return isinstance(value, Real) and value != value  # noqa: PLR0124

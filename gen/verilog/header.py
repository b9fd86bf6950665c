"""The comment over a module: what it is, by the docstring of its component, and with which parameters."""

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from amaranth.lib.wiring import Component

__all__ = ["header"]

_SECTION = re.compile(r"^(?:Parameters|Raises|Examples|Attributes|Notes|Returns|See Also)\n-+$", re.MULTILINE)
_PARAMETERS = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+$|\Z)", re.MULTILINE | re.DOTALL)
_WIDTH = 112
_VALUES_MAX = 8
"""Numbers of a sequence up to which it is written."""


def header(name: str, component: Component | None) -> str:
    """Return comment lines for a module; empty for one that no component stands behind."""
    if component is None:
        return ""
    kind = type(component)
    module = kind.__module__.removeprefix("hopforge.").replace(".", "/")
    lines = [f"{name}: {kind.__name__} ({module}.py)", ""]
    lines += _description(kind)
    given = ", ".join(f"{key} = {value}" for key, value in _parameters(component))
    if given:
        lines += ["", *textwrap.wrap(f"Parameters: {given}.", _WIDTH, break_long_words=False, break_on_hyphens=False)]
    return "".join(f"// {line}".rstrip() + "\n" for line in lines)


def _description(kind: type[Component]) -> list[str]:
    """Return the lines of the class docstring before its first section, without marks of markup."""
    text = _SECTION.split(_docstring(kind))[0].strip().replace("`", "")
    return text.splitlines()


def _docstring(kind: type[Component]) -> str:
    return inspect.cleandoc(kind.__doc__ or "")


def _parameters(component: Component) -> Iterator[tuple[str, str]]:
    """Yield names and values of the documented parameters; those of a group of parameters for the group."""
    found = _PARAMETERS.search(_docstring(type(component)))
    names = re.findall(r"^([a-z]\w*(?:, \w+)*)(?: :|$)", found[1], re.MULTILINE) if found else []
    for name in (part for line in names for part in line.split(", ")):
        value = getattr(component, name, None)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            for field in dataclasses.fields(value):
                yield from _written(field.name, getattr(value, field.name))
        else:
            yield from _written(name, value)


def _written(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, (bool, int, str)):
        yield name, str(value)
    elif isinstance(value, (tuple, list)) and value and all(isinstance(part, (int, str)) for part in value):
        few = len(value) <= _VALUES_MAX
        yield name, f"({', '.join(map(str, value))})" if few else f"{len(value)} values"

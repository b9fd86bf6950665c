"""Variants of a configuration: the same file with other values of some keys."""

import copy
from collections.abc import Mapping
from typing import Any

from hopforge.model.config.source import Path, Source, undotted

PLACE: Path = ("simulation", "variants")


def apply_variant(source: Source, name: str) -> Source:
    """Return the data of variant `name`, without the key ``simulation.variants``; lines are those of the same file.

    A dotted key of the variant (``routing.algorithm``) replaces one value, the name of a section the whole section;
    sections that the file leaves out are made.

    Raises
    ------
    VariantError
        A key that leads through something that is no section and no list, or into ``simulation.variants``.
    """
    data, lines = copy.deepcopy(source.data), dict(source.lines)
    overrides: Mapping[str, Any] = source.data[PLACE[0]][PLACE[1]][name]
    del data[PLACE[0]][PLACE[1]]
    for key, value in overrides.items():
        origin, where = (*PLACE, name, key), undotted(key)
        if not where or where[:2] == PLACE:
            raise VariantError(source.line(origin), f"{key!r} cannot be changed by a variant")
        _put(data, where, copy.deepcopy(value), source.line(origin))
        for path in [path for path in lines if path[: len(where)] == where]:
            del lines[path]
        for depth in range(1, len(where)):
            lines.setdefault(where[:depth], source.line(origin))
        for path, line in source.lines.items():
            if path[: len(origin)] == origin:
                lines[(*where, *path[len(origin) :])] = line
    return Source(data, lines)


class VariantError(ValueError):
    """A key that a variant cannot change.

    Attributes
    ----------
    line : int
        Of the key.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


def _put(data: Any, where: Path, value: Any, line: int) -> None:
    node = data
    for depth, step in enumerate(where):
        fits = step in range(len(node)) if isinstance(node, list) else isinstance(node, dict) and isinstance(step, str)
        if not fits:
            raise VariantError(line, f"{'.'.join(map(str, where))}: there is no {step!r} in it")
        if depth == len(where) - 1:
            node[step] = value
        elif isinstance(node, dict):
            node = node.setdefault(step, {})
        else:
            node = node[step]

"""YAML text as plain data that remembers the line of every key.

YAML 1.2's core schema: only ``true`` and ``false`` are booleans, ``1e-3`` is a number, ``010`` is ten and a date is
text. Keys stand once; tags, anchors, aliases and merge keys are refused, so that a small file cannot become large.

At the end: what is wrong with a file (`explain`), said with line and key.
"""

import copy
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from hopforge.model.config.base import SectionError, suggestion

Path = tuple[str | int, ...]
MAX_DEPTH = 50
MAX_NUMBER = 100  # characters; longer digits are text
MAX_VALUES = 20_000  # reading them takes a second

_PLAIN_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "map", "seq")}
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}
_SURROGATE = re.compile("[\ud800-\udfff]")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0x[0-9a-fA-F]+|0o[0-7]+|0b[01]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


class Source(NamedTuple):
    """Plain data and the line (from 1) of every key and item by its path from the root."""

    data: Any
    lines: dict[Path, int]

    def line(self, path: Path) -> int:
        """Return the line of `path`, or of the nearest section around it that is in the file; 0: changed since."""
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines.get(path, 1)

    def value(self, path: Path) -> Any:
        """Return what stands at `path`; None: nothing, as where a variant has lines of what it left out."""
        node = self.data
        for step in path:
            try:
                node = node[step]
            except (LookupError, TypeError):
                return None
        return node


class SourceError(ValueError):
    """Text that is not YAML as hopforge reads it.

    Attributes
    ----------
    problems : list of (int, str)
        Line (from 1) and reason.
    """

    def __init__(self, problems: list[tuple[int, str]]) -> None:
        super().__init__("; ".join(f"line {line}: {reason}" for line, reason in problems))
        self.problems = problems


class _Composer(yaml.SafeLoader):
    """YAML's own parser without its types: every plain scalar stays a string until `plain_value` reads it."""

    yaml_implicit_resolvers: dict[str, Any] = {}
    depth = values = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        event = self.peek_event()
        if self.depth > MAX_DEPTH:  # before the rest is read: that takes the square of the depth
            raise SourceError([(event.start_mark.line + 1, "nested too deeply")])
        self.values += 1
        if self.values > MAX_VALUES:
            raise SourceError([(event.start_mark.line + 1, f"more than {MAX_VALUES} keys and values in the file")])
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise SourceError(
                [
                    (
                        event.start_mark.line + 1,
                        f"anchors and aliases are not supported (near {event.anchor!r}); repeat the value",
                    )
                ]
            )
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def read_source(text: str) -> Source:
    """Read YAML `text`.

    Raises
    ------
    SourceError
        With line and reason: syntax, duplicate key, key that is no text, tag, anchor or alias, too deep.
    """
    try:
        loader = _Composer(text)
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise SourceError([(mark.line + 1 if mark else 1, _syntax(error))]) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SourceError([(line, f"character {error.character!r} is not allowed in YAML text")]) from error
    if node is None or (isinstance(node, ScalarNode) and not node.value):
        raise SourceError([(1, "the file is empty")])
    reader = _Reader()
    data = reader.value(node, ())
    if reader.problems:
        raise SourceError(reader.problems)
    return Source(data, reader.lines)


def _syntax(error: yaml.MarkedYAMLError) -> str:
    problem = str(error.problem or error.context)
    if "'\\t'" in problem:
        return "a tab; YAML is indented with spaces"
    if error.context and error.problem:
        problem = f"{error.context}, {problem}"
    return f"not valid YAML: {' '.join(problem.split())}"


class _Reader:
    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
        self.problems: list[tuple[int, str]] = []

    def value(self, node: Node, path: Path) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        if node.tag not in _PLAIN_TAGS:
            self.problems.append((line, f"tag {node.tag!r} is not supported"))
        elif len(path) > MAX_DEPTH:
            self.problems.append((line, "nested too deeply"))
        elif isinstance(node, MappingNode):
            return self._mapping(node, path)
        elif isinstance(node, SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        elif isinstance(node, ScalarNode):
            if _SURROGATE.search(node.value):
                self.problems.append((line, "text with half a character (a lone surrogate)"))
            return node.value if node.style else plain_value(node.value)
        return None

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, ScalarNode):
                self.problems.append((line, "a key must be plain text"))
                continue
            key = key_node.value
            where = (*path, key)
            if key == "<<":
                self.problems.append((line, "merge keys (<<) are not supported; repeat the keys"))
                continue
            if key in data:
                self.problems.append((line, f"{dotted(where)}: key stands twice, first on line {self.lines[where]}"))
                continue
            self.lines[where] = line
            data[key] = self.value(value_node, where)
        return data


def dotted(path: Path) -> str:
    """Return `path` as people write it.

    Examples
    --------
    >>> dotted(("topology", "radices", 2))
    'topology.radices[2]'
    """
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def undotted(key: str) -> Path:
    """Return the path that `dotted` writes as `key`.

    Examples
    --------
    >>> undotted("topology.radices[2]")
    ('topology', 'radices', 2)
    """
    return tuple(int(step) if step.isascii() and step.isdecimal() else step for step in re.findall(r"[^.\[\]]+", key))


def plain_value(text: str) -> Any:
    """Return what a scalar without quotes means.

    Examples
    --------
    >>> plain_value("0x10"), plain_value("yes")
    (16, 'yes')
    """
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > MAX_NUMBER:
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


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
        _change(data, lines, where, copy.deepcopy(value), source.line(origin))
        for path, line in source.lines.items():
            if path[: len(origin)] == origin:
                lines[(*where, *path[len(origin) :])] = line
    return Source(data, lines)


def apply_changes(source: Source, changes: Mapping[str, Any]) -> Source:
    """Return the data with other values of dotted keys; the line of what was changed is 0.

    As in a variant, the name of a section replaces the whole section, and sections that the file leaves out are made.

    Raises
    ------
    VariantError
        A key that leads through something that is no section and no list, or to a single key of a variant.
    """
    data, lines = copy.deepcopy(source.data), dict(source.lines)
    for key, value in changes.items():
        where = undotted(key)
        if not where:
            raise VariantError(0, f"{key!r} is no key")
        if where[:2] == PLACE and len(where) > 2:
            raise VariantError(0, f"{key}: replace {dotted(PLACE)} as a whole: its keys have dots of their own")
        _change(data, lines, where, copy.deepcopy(value), 0)
        lines[where] = 0
    return Source(data, lines)


def _change(data: Any, lines: dict[Path, int], where: Path, value: Any, line: int) -> None:
    """Put a value in its place; the lines of what was there go, those of sections that are made are `line`."""
    _put(data, where, value, line)
    for path in [path for path in lines if path[: len(where)] == where]:
        del lines[path]
    for depth in range(1, len(where)):
        lines.setdefault(where[:depth], line)


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
            of = f", which has {len(node)} entries, from 0 on" if isinstance(node, list) else ""
            raise VariantError(line, f"{'.'.join(map(str, where))}: there is no {step!r} in it{of}")
        if depth == len(where) - 1:
            node[step] = value
        elif isinstance(node, dict):
            node = node.setdefault(step, {})
        else:
            node = node[step]


_KINDS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number of sensible size",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text",
    "path_type": "a path",
    "tuple_type": "a list",
    "model_type": "a section (key: value)",
    "model_attributes_type": "a section (key: value)",
    "dict_type": "a section (key: value)",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}


def explain(error: ValidationError, source: Source, model: type[BaseModel]) -> Iterator[tuple[int, str]]:
    """Return line (from 1) and ``key: reason`` of everything that `error` says about `source`.

    `model` is the class of the whole file; its schema tells the known keys.
    """
    schema = _schema(model)
    found: dict[Path, list[str]] = {}
    for details in error.errors(include_url=False):
        path, section = _walk(details["loc"], schema, unknown=details["type"] == "extra_forbidden")
        for where, reason in _reasons(details, path, section):
            found.setdefault(where, []).append(reason)
    for where, reasons in found.items():
        for reason in _as_one(reasons):
            yield source.line(where), f"{dotted(where)}: {reason}" if where else reason


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()


def _as_one(reasons: list[str]) -> list[str]:
    """Join what each kind of a union says about the same value: "must be 'a', or expected a whole number, not 'b'"."""
    value = reasons[0].rpartition(", not ")[2]
    ending = f", not {value}"
    if len(reasons) == 1 or not all(reason.endswith(ending) for reason in reasons):
        return reasons
    return [", or ".join(reason.removesuffix(ending) for reason in reasons) + ending]


def describe(value: Any) -> str:
    """Return a short description of a value of a YAML file."""
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return "a section" if isinstance(value, dict) else "a list"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _walk(
    location: tuple[str | int, ...], schema: dict[str, Any], *, unknown: bool
) -> tuple[Path, dict[str, Any]]:
    """Return the path of the data, without the tags of unions, and the schema of the innermost section.

    With `unknown` the last step is a key that no section has, whatever it looks like.
    """
    path: Path = ()
    node, section = schema, schema
    for step in location[:-1] if unknown else location:
        node = _resolve(node, schema)
        choices = node.get("discriminator", {}).get("mapping", {})
        if step in choices:
            node = {"$ref": choices[step]}
            section = _resolve(node, schema)
            continue
        if isinstance(step, str) and step.startswith("<"):  # the tag of a union that a function tells apart
            section = node
            continue
        if isinstance(step, str) and _is_union_of_scalars(node):
            continue  # the tag is the kind
        if "properties" in node:
            section = node
        path = (*path, step)
        node = node.get("items", {}) if isinstance(step, int) else node.get("properties", {}).get(step, {})
    node = _resolve(node, schema)
    path = (*path, location[-1]) if unknown else path
    return path, node if "properties" in node else section


def _is_union_of_scalars(node: dict[str, Any]) -> bool:
    return "anyOf" in node and all(choice.get("type") not in (None, "object", "array") for choice in node["anyOf"])


def _resolve(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Follow references, and an optional section to the section."""
    while True:
        choices = [] if "discriminator" in node else node.get("anyOf", node.get("oneOf", []))
        sections = [choice for choice in choices if "$ref" in choice or "discriminator" in choice]
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rsplit("/", 1)[-1]]
        elif sections:
            node = sections[0]
        else:
            return node


def _reasons(details: ErrorDetails, path: Path, section: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    if kind == "extra_forbidden":
        yield path, f"unknown key; {suggestion(str(path[-1]), section['properties'])}"
    elif kind == "missing":
        yield path, "missing"
    elif kind == "union_tag_not_found":
        yield (*path, "kind"), "missing"
    elif kind == "union_tag_invalid":
        tag, known = context["tag"], [tag.strip("'") for tag in context["expected_tags"].split(", ")]
        yield (*path, "kind"), f"unknown {tag!r}; {suggestion(tag, known)}"
    elif kind == "literal_error":
        yield path, f"must be {context['expected']}, not {describe(value)}"
    elif kind in _BOUNDS:
        bound, words = _BOUNDS[kind]
        yield path, f"must be {words} {context[bound]}, not {describe(value)}"
    elif kind in _KINDS:
        yield path, f"expected {_KINDS[kind]}, not {describe(value)}"
    elif kind == "string_pattern_mismatch":
        own = path in (("routing", "algorithm"), ("traffic", "pattern")) and value.endswith(".py")
        hint = f"; a file of your own is {path[-1]}: file, file: {value}" if own else ""
        yield path, f"must match {context['pattern']}, not {describe(value)}{hint}"
    elif kind == "too_short" and isinstance(value, list) and len(value) >= context["min_length"]:
        return  # long enough, but its elements are wrong, and each is told
    elif kind == "too_short" and not context["actual_length"]:
        yield path, "must not be empty"
    elif kind in {"too_short", "too_long"}:
        words = f"at least {context['min_length']}" if kind == "too_short" else f"at most {context['max_length']}"
        yield path, f"must have {words} items, not {context['actual_length']}"
    elif isinstance(context.get("error"), SectionError):
        for problem in context["error"].problems:
            yield (*path, *undotted(problem.key)), problem.reason
    else:
        yield path, details["msg"]

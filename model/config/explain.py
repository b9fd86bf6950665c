"""Turn what pydantic finds into one sentence a key, as a person would say it."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hopforge.model.config.base import SectionError, suggestion
from hopforge.model.config.source import Path, Source, dotted, undotted

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

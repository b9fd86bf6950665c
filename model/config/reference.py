"""The configuration's own documentation: JSON schema for editors, a page of every key for people."""

import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from hopforge.model.config.root import Config

_INTRO = """# Configuration

Every key of a configuration file. This page is written from the code by `make docs` (`hopforge schema --markdown`); a
test fails if it is out of date.

- A file is YAML 1.2: only `true` and `false` are booleans. An unknown or repeated key is an error. Anchors and tags are
  refused.
- Paths are relative to the file itself.
- `hopforge check FILE` names the commands that a file is good for, and says why not for the others; errors, one line
  for each, name file, line and key.
- Each command names the sections of the file that it does not use, and keys of hardware alone that it cannot follow
  (`router.protection`, `router.host_ports`, `lookup.cache.protection`).
- `hopforge schema` prints the JSON schema for editors that complete and check YAML.
- `configs/` holds commented examples.
"""
_WIDTH = 120  # characters of a line and of a cell; what is longer stands below its table


def json_schema() -> str:
    """Return the JSON schema of a configuration file as text."""
    schema = Config.model_json_schema()
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def markdown() -> str:
    """Return the page of every key as Markdown."""
    schema = Config.model_json_schema()
    return _INTRO + "".join(_section("", schema, schema["$defs"]))


def _section(
    path: str, section: dict[str, Any], definitions: dict[str, Any], around: Sequence[dict[str, Any]] = ()
) -> Iterator[str]:
    """Return heading and table of one section, then those of the sections in it, in the order of the file.

    `around`: kinds of the sections around it; one of these within it is described there.
    """
    kind = section["properties"].get("kind", {})
    kinds = [kind["const"]] if "const" in kind else kind.get("enum", []) if "default" not in kind else []
    title = f"`{path}`" if path else "Top level"
    if kinds:
        title += f" with `kind: {'`, `'.join(kinds)}`"
    yield f"\n## {title}\n\n{section['description']}\n\n"
    yield "| key | value | default | meaning |\n|---|---|---|---|\n"
    required, notes = section.get("required", []), []
    for key, node in section["properties"].items():
        default = "required" if key in required else default_words(node.get("default"))
        meaning = " ".join(node.get("description", "").split())  # a row of a table is one line
        values = kind_words(node, definitions)
        if len(values) > _WIDTH:
            notes.append(_note(f"- `{key}` is one of {values}."))
            values = _beginning(values)
        if len(meaning) > _WIDTH:
            notes.append(_note(f"- `{key}`: {meaning}"))
            meaning = _beginning(meaning)
        yield f"| `{key}` | {values} | {default} | {meaning} |\n"
    if notes:
        yield "\n" + "\n".join(notes) + "\n"
    for key, node in section["properties"].items():
        listed = "[]" if "items" in node else ""
        kinds_here = inner_sections(node.get("items", node), definitions)
        for inner in kinds_here:
            if not any(inner is each for each in around):
                where = f"{path}.{key}{listed}" if path else f"{key}{listed}"
                yield from _section(where, inner, definitions, [*around, *kinds_here])


def _note(text: str) -> str:
    """Return a point of the list below a table."""
    return textwrap.fill(text, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _beginning(meaning: str) -> str:
    """Return the clauses of a long meaning that fit into a cell, and that the rest stands below the table."""
    rest = "(more below the table)"
    head = meaning[: _WIDTH - len(rest)]
    ends = [found.end() for found in re.finditer(r"[.,;](?= )", head)]
    # not within code or brackets
    whole = [end for end in ends if head[:end].count("`") % 2 == 0 and head[:end].count("(") == head[:end].count(")")]
    return f"{head[: whole[-1]]} {rest}" if whole else rest


def inner_sections(node: dict[str, Any], definitions: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas of the sections that a key can have; several by `kind`."""
    if "$ref" in node:
        return [definitions[node["$ref"].rsplit("/", 1)[-1]]]
    choices = node.get("anyOf", node.get("oneOf", []))
    return [found for choice in choices for found in inner_sections(choice, definitions)]


def kind_words(node: dict[str, Any], definitions: dict[str, Any]) -> str:
    """Return type and bounds of a value in words."""
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
    if "$ref" in node:
        return "section"
    choices = node.get("anyOf", node.get("oneOf"))
    if choices is not None:
        kinds = dict.fromkeys(kind_words(choice, definitions) for choice in choices if choice.get("type") != "null")
        return "section by `kind`" if "oneOf" in node and list(kinds) == ["section"] else " or ".join(kinds)
    if "prefixItems" in node:
        return f"pair of {kind_words(node['prefixItems'][0], definitions).replace('number', 'numbers')}"
    if node["type"] == "array":
        if "$ref" in node["items"]:
            return "list of sections"
        if "prefixItems" in node["items"]:
            return f"list of {kind_words(node['items'], definitions).replace('pair', 'pairs', 1)}"
        return f"list of {kind_words(node['items'], definitions).replace('number', 'numbers')}"
    if node["type"] == "object":
        return "sections by name"
    words = {"integer": "whole number", "number": "number", "boolean": "`true`, `false`", "string": "text"}[
        node["type"]
    ]
    if "pattern" in node:
        words = f"text like `{node['pattern']}`"
    bounds = [
        f"{sign} {node[bound]}"
        for bound, sign in {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}.items()
        if bound in node
    ]
    return " ".join([words, ", ".join(bounds)]).strip()


def default_words(value: Any) -> str:
    """Return a default in words."""
    if value is None or value == {}:
        return "none"
    return "see below" if isinstance(value, dict) else f"`{json.dumps(value)}`"
